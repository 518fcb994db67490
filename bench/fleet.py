#!/usr/bin/env python3
"""fleet.py WEIR [PART...] -- figures of a fleet on this host: name, value, unit, by tabs.

Parts: killed, calls, hot, cold; all of them by default.  Machines are busy: costs are CPU time of
the server's process, and ratios of two loads in one run."""
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "tests", "e2e"))
from fleeting import Load, Node, back, joined, url  # noqa: E402
from redising import Redis  # noqa: E402
from serving import encode  # noqa: E402

RULE = """version: 1
rules:
  - name: all
    key: "{user}"
    limit: %s
"""
FLEET = RULE + """    across: fleet
    within: %s
    when_alone: share
"""


def tell(name, value, unit):
    print("fleet %s\t%.4g\t%s" % (name, value, unit), flush=True)


def cpu_of(pid):
    """Seconds, of all threads that it has."""
    total, folder = 0, "/proc/%d/task" % pid
    for thread in os.listdir(folder):
        with open(os.path.join(folder, thread, "schedstat"), encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def commands_of(redis):
    """Those of clients: not what scripts call inside."""
    text = redis.client("INFO", "commandstats")
    return sum(int(line.split("calls=")[1].split(",")[0]) for line in text.splitlines()
               if line.startswith(("cmdstat_evalsha", "cmdstat_eval:")))


class Flood(threading.Thread):
    """Batches on one connection, each sent when the one before is answered."""

    def __init__(self, node, batches):
        super().__init__()
        self.client, self.batches = node.resp(), batches
        self.asked = self.allowed = 0

    def run(self):
        for n, data in self.batches:
            self.client.raw(data)
            got, lines = b"", 0
            while lines < n:
                got += self.client.socket.recv(1 << 20)
                lines = got.count(b"*10\r\n") if b"*10" in got[:3] else got.count(b"*5\r\n")
                if lines == n and not self.is_whole(got):
                    lines = 0
            self.asked += n
            self.allowed += got.count(b"*10\r\n:1\r\n") + got.count(b"*5\r\n:0\r\n")
        self.client.close()

    @staticmethod
    def is_whole(got):
        """The last answer has all its members."""
        last = got[got.rfind(b"*"):].split(b"\r\n")
        if last[0] == b"*5":
            return len(last) == 7
        texts = sum(1 for word in last if word[:1] == b"$" and word != b"$-1")
        return got.endswith(b"\r\n") and len(last) == 12 + texts


def for_seconds(seconds, batch):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield batch


def flood(nodes, seconds, batch):
    """What each allowed and was asked, CPU time of all, and the time it took."""
    floods = [Flood(node, for_seconds(seconds, batch)) for node in nodes]
    before, begin = sum(cpu_of(node.pid) for node in nodes), time.monotonic()
    for one in floods:
        one.start()
    for one in floods:
        one.join()
    took = time.monotonic() - begin
    return ([one.allowed for one in floods], sum(one.asked for one in floods),
            sum(cpu_of(node.pid) for node in nodes) - before, took)


# ------------------------------------------------------------------------ parts


def killed(weir):
    """Two nodes, 100/s, all that they can be asked; Redis killed at 2 s and started at 5 s."""
    rules = FLEET % ("token-bucket 100/1s", "20ms")
    with Redis() as redis, Node(weir, url(redis), "a", rules=rules) as a, \
            Node(weir, url(redis), "b", rules=rules) as b:
        joined(a, b)
        with Load(a) as one, Load(b) as two:
            time.sleep(1)  # the burst
            last, begin = (one.allowed, two.allowed), time.monotonic()
            for i in range(20):
                if i == 4:
                    redis.kill()
                if i == 10:
                    redis.start()
                time.sleep(max(0, begin + (i + 1) / 2 - time.monotonic()))
                now = one.allowed, two.allowed
                tell("100/s, two nodes, Redis %s, after %.1f s" % (
                    "killed" if 4 <= i < 10 else "there", i / 2),
                     2 * (now[0] - last[0] + now[1] - last[1]), "allowed/s")
                last = now
            back(a, b)


def calls(weir):
    """Two nodes, 20 calls each, by 2/s."""
    for limit in ["token-bucket 2/1s", "sliding-log 2/1s", "fixed-window 2/1s"]:
        rules = FLEET % (limit, "1s")
        with Redis() as redis, Node(weir, url(redis), "a", rules=rules) as a, \
                Node(weir, url(redis), "b", rules=rules) as b:
            joined(a, b)
            begin, passes = time.monotonic(), 0
            with a.resp() as one, b.resp() as two:
                for _ in range(20):
                    for client in (one, two):
                        passes += client("WEIR.CHECK", "user", "ann")[0]
                    time.sleep(0.1)
            took = time.monotonic() - begin
            tell("2 x 20 calls, %s: passed" % limit, passes, "calls")
            tell("2 x 20 calls, %s: by the limit at most" % limit,
                 2 + 2 * took if "window" not in limit else 2 * (int(took) + 2), "calls")


def hot(weir):
    """Four nodes, one key: 500,000/s, and half of all that the machine can ask for."""
    batch = 500, encode(("WEIR.CHECK", "user", "ann")) * 500
    with Redis() as redis:
        offered, local = hot_by(weir, redis, RULE % "token-bucket 500000/1s", batch, "local")
        _, fleet = hot_by(weir, redis, FLEET % ("token-bucket 500000/1s", "100ms"), batch, "fleet",
                          500000)
        tell("hot: CPU per decision, fleet / local", fleet / local, "ratio")
        limit = int(offered / 2) // 1000 * 1000
        _, fleet = hot_by(weir, redis, FLEET % ("token-bucket %d/1s burst %d" % (limit, limit),
                                                "100ms"), batch, "fleet, twice the limit", limit)
        tell("hot: CPU per decision, fleet refusing half / local", fleet / local, "ratio")


def hot_by(weir, redis, rules, batch, name, limit=0):
    nodes = [Node(weir, url(redis), "n%d" % i, rules=rules, threads=1) for i in range(4)]
    joined(*nodes)
    begin = time.monotonic()
    before = sum(flood(nodes, 3, batch)[0])  # the burst, and the rate becomes known
    commands = commands_of(redis)
    allowed, asked, cpu, took = flood(nodes, 4, batch)
    commands = commands_of(redis) - commands
    most = limit * (1 + time.monotonic() - begin + 0.25)  # a burst, the time and the life
    for node in nodes:
        node.stop()
    tell("hot, %s: offered" % name, asked / took, "asks/s")
    tell("hot, %s: commands per 1,000 decisions, beats included" % name, 1000 * commands / asked,
         "")
    if limit:
        tell("hot, %s: allowed / limit" % name, sum(allowed) / (limit * took), "ratio")
        tell("hot, %s: allowed / bound, from the beginning" % name, (before + sum(allowed)) / most,
             "ratio")
        tell("hot, %s: least part of a node" % name, 4 * min(allowed) / sum(allowed), "ratio")
    return asked / took, cpu / asked


def cold(weir):
    """Keys that are asked once each: in pipelines, and by clients that wait for each answer."""
    cold_by(weir, 200000, 4, 100)
    cold_by(weir, 50000, 50, 1)


def cold_by(weir, n, connections, most):
    name = "cold, %d x %d" % (connections, most)
    with Redis() as redis, Node(weir, url(redis), "a", threads=1,
                                rules=FLEET % ("token-bucket 10/1h", "10s")) as node:
        joined(node)

        def batches(part, make):
            for at in range(part, n, most * connections):
                words = [make(i) for i in range(at, min(n, at + most * connections), connections)]
                yield len(words), b"".join(encode(word) for word in words)

        costs = []
        for make in [lambda i: ("CL.THROTTLE", "user:%d" % i, 10, 10, 3600),
                     lambda i: ("WEIR.CHECK", "user", "user:%d" % i)]:
            floods = [Flood(node, batches(i, make)) for i in range(connections)]
            before, commands = cpu_of(node.pid), commands_of(redis)
            for one in floods:
                one.start()
            for one in floods:
                one.join()
            costs.append((cpu_of(node.pid) - before) / n)
        tell(name + ": commands per key, beats included", (commands_of(redis) - commands) / n, "")
        tell(name + ": decided alone", node.fleet["asks_alone"], "asks")
        tell(name + ": allowed / asked", sum(one.allowed for one in floods) / n, "")
        tell(name + ": CPU per decision", 1e6 * costs[1], "us")
        tell(name + ": CPU per CL.THROTTLE", 1e6 * costs[0], "us")
        tell(name + ": CPU per decision / CL.THROTTLE", costs[1] / costs[0], "ratio")


PARTS = {"killed": killed, "calls": calls, "hot": hot, "cold": cold}

if __name__ == "__main__":
    for part in sys.argv[2:] or PARTS:
        PARTS[part](sys.argv[1])
