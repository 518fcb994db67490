#!/usr/bin/env python3
"""run.py BUILD -- a real server at ten times what it can do, with and without a guard:
name<TAB>value<TAB>unit, one figure a line.

    guard.http.capacity             requests per second that bench/guard/real-server.c answers when
    nobody has to wait long
    guard.http.unloaded.p99         of two clients, in ms
    guard.http.WHO.answered         requests per second, refusals among them
    guard.http.WHO.goodput          200s that came within a second, in % of the capacity
    guard.http.WHO.p50, .p99        of all 200s, in ms
    guard.http.WHO.refused          503s per second
    guard.http.guard.limit          what the adaptive limit came to (4 workers)

WHO is plain (no guard), guard, and storm: with the guard, whoever is refused asks again at once, as
often as this machine can.  For plain and guard 2,000 clients ask once a second each
(bench/guard/load.lua), ten times the 200 that four workers of 20 ms can do.  wrk's clients never
give up: they wait for their answer for ever, which is kinder to a server than clients that leave
dead requests in its queue and ask again. The first seconds, in which queues fill and limits are
found, do not count.
"""
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS = 2000
BEFORE, SECONDS = 3, 6


def say(name, value, unit):
    print("guard.http.%s\t%.4g\t%s" % (name, value, unit), flush=True)


class Backend:
    def __init__(self, build, kind):
        self.process = subprocess.Popen([os.path.join(build, "bench", "bench-backend"), kind],
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        found = re.search(r"^limit (\d+)$", self.process.communicate()[0], re.M)
        return int(found.group(1)) if found else None


def load(port, clients, before, seconds, pause_ms):
    """What load.lua has counted: per second, and in ms."""
    command = ["wrk", "-t", "1", "-c", str(clients), "-d", "%ds" % (before + seconds + 1),
               "--timeout", "1s", "-s", os.path.join(HERE, "load.lua"),
               "http://127.0.0.1:%d/" % port, "--", str(before), str(seconds), str(pause_ms)]
    out = subprocess.run(command, capture_output=True, text=True, check=True,
                         timeout=before + seconds + 30).stdout
    words = re.search(r"^weir (.*)$", out, re.M).group(1).split()
    good, late, refused, other = (int(word) / seconds for word in words[:4])
    return {"good": good, "late": late, "refused": refused, "other": other, "p50": float(words[4]),
            "p99": float(words[5])}


def against(build, kind, *how):
    backend = Backend(build, kind)
    try:
        seen = load(backend.port, *how)
    finally:
        limit = backend.stop()
    return seen, limit


def tell(name, seen, limit, capacity):
    say(name + ".answered", sum(seen[what] for what in ("good", "late", "refused", "other")),
        "requests/s")
    say(name + ".goodput", 100 * seen["good"] / capacity, "% of capacity")
    say(name + ".p50", seen["p50"], "ms")
    say(name + ".p99", seen["p99"], "ms")
    say(name + ".refused", seen["refused"], "requests/s")
    if limit is not None:
        say(name + ".limit", limit, "permits")


def main():
    build = os.path.abspath(sys.argv[1])
    if not shutil.which("wrk"):
        print("skipped: the guarded server: no wrk here", file=sys.stderr)
        return
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    capacity = against(build, "plain", 12, 1, 4, 0)[0]["good"]
    say("capacity", capacity, "requests/s")
    say("unloaded.p99", against(build, "plain", 2, 1, 3, 0)[0]["p99"], "ms")
    tell("plain", *against(build, "plain", CLIENTS, BEFORE, SECONDS, 1000), capacity)
    tell("guard", *against(build, "guard", CLIENTS, BEFORE, SECONDS, 1000), capacity)
    tell("storm", *against(build, "guard", CLIENTS, BEFORE, SECONDS, 0), capacity)


main()
