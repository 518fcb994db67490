#!/usr/bin/env python3
"""run.py BUILD -- what a decision costs the server, beside redis-server, throttlecrab and nginx:
name<TAB>value<TAB>unit, one figure a line.

    serve.WHO.WHAT.KEYS.pP.cpu     server's CPU seconds per million requests, at pipeline P; KEYS is
    hot (one key) or random (a million)
    serve.WHO.WHAT.KEYS.pP.rate    requests per second
    serve.ratio....                our CPU per decision over theirs, of neighbouring runs
    serve.instructions.*           user-space instructions per command, pipelined (callgrind)
    serve.latency.WHO.p99          at half of the load it can carry, in ms

The server has one core, the load generator (redis-benchmark, wrk) the other; with two threads they
share both.  Every figure is the median of three runs, peers by turns.  WEIR_BENCH_QUICK=1 takes a
tenth of the requests.
"""
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
QUICK = 10 if os.environ.get("WEIR_BENCH_QUICK") else 1
RUNS = 1 if QUICK > 1 else 3
KEYS = 1000000
CHECK = ["WEIR.CHECK", "ip", "10.__rand_int__", "uri", "/api/things", "method", "POST", "account",
         "a__rand_int__"]
TICKS = os.sysconf("SC_CLK_TCK")
build = os.path.abspath(sys.argv[1])
weir = os.path.join(build, "weir")
folder = tempfile.mkdtemp(prefix="weir-bench-")
started = []
figures = {}


def say(name, value, unit):
    figures[name] = value
    print("%s\t%.4g\t%s" % (name, value, unit), flush=True)


def note(text):
    print("skipped: " + text, file=sys.stderr, flush=True)


def cpu_of(pid):
    fields = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Peer:
    """A server on a port of its own; pinned to the first core unless it has two threads."""

    def __init__(self, name, command, port, pin=True, ready=None, **options):
        self.name, self.port = name, port
        self.process = subprocess.Popen((["taskset", "-c", "0"] if pin else []) + command,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, **options)
        started.append(self)
        for line in self.process.stdout:
            if ready is None or re.search(ready, line):
                break
        else:
            raise RuntimeError(name + " did not start")
        self.pid = self.process.pid

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()


def free_port():
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_weir(threads=1, rules=None, pin=True, keys=1250000):
    port, http = free_port(), free_port()
    command = [weir, "serve", "--resp", "127.0.0.1:%d" % port, "--http", "127.0.0.1:%d" % http,
               "--memory", "--threads", str(threads), "--keys", str(keys)]
    peer = Peer("weir", command + (["--rules", rules] if rules else []), port, pin=pin,
                ready=r"^  table")
    peer.http = http
    return peer


def start_redis():
    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--appendonly", "no", "--dir",
               folder, "--daemonize", "no"]
    return Peer("redis", command, port, ready="Ready to accept|eady to accept")


def load(peer, requests, pipeline, words, pin=True):
    """(CPU seconds per million, requests per second) of one run of redis-benchmark."""
    command = ["redis-benchmark", "-h", "127.0.0.1", "-p", str(peer.port), "-c", "50", "-n",
               str(requests), "-P", str(pipeline), "-r", str(KEYS), "--csv"]
    before = cpu_of(peer.pid)
    out = subprocess.run((["taskset", "-c", "1"] if pin else []) + command + words,
                         capture_output=True, text=True, check=True).stdout
    spent = cpu_of(peer.pid) - before
    rate = float(out.strip().splitlines()[-1].split('","')[1].strip('"'))
    return spent * 1e6 / requests, rate


def measure(rows, pipeline, requests, pin=True):
    """rows: (name, peer, words).  By turns, three times; the medians."""
    results = {name: [] for name, _, _ in rows}
    for name, peer, words in rows:
        load(peer, requests // 10, pipeline, words, pin)
    for _ in range(RUNS):
        for name, peer, words in rows:
            results[name].append(load(peer, requests, pipeline, words, pin))
    for name in results:
        say("serve.%s.p%d.cpu" % (name, pipeline), statistics.median(r[0] for r in results[name]),
            "s/million")
        say("serve.%s.p%d.rate" % (name, pipeline), statistics.median(r[1] for r in results[name]),
            "requests/s")


def sha(peer, script):
    text = open(os.path.join(HERE, script + ".lua")).read()
    return subprocess.run(["redis-cli", "-p", str(peer.port), "SCRIPT", "LOAD", text],
                          capture_output=True, text=True, check=True).stdout.strip()


def evalsha(peer, script, key):
    return ["EVALSHA", sha(peer, script), "1", key, "100", "60000"]


def ratio(name, ours, theirs):
    if ours in figures and theirs in figures:
        say("serve.ratio." + name, figures[ours] / figures[theirs], "of theirs")


def throttles():
    ours, theirs = start_weir(), start_redis()
    for keys, key in (("random", "key:__rand_int__"), ("hot", "key:1")):
        throttle = ["CL.THROTTLE", key, "99", "100", "60"]
        for pipeline, requests in ((1, 300000), (16, 2000000), (64, 4000000)):
            measure([("weir.throttle." + keys, ours, throttle),
                     ("redis.incr." + keys, theirs, ["INCR", key])], pipeline, requests // QUICK)
            ratio("throttle-incr.%s.p%d" % (keys, pipeline),
                  "serve.weir.throttle.%s.p%d.cpu" % (keys, pipeline),
                  "serve.redis.incr.%s.p%d.cpu" % (keys, pipeline))
    for script in ("token-bucket", "fixed-window", "gcra", "sorted-set"):
        subprocess.run(["redis-cli", "-p", str(theirs.port), "FLUSHALL"], stdout=subprocess.DEVNULL)
        for pipeline, requests in ((1, 150000), (16, 300000), (64, 300000)):
            measure([("redis.evalsha-%s.random" % script, theirs,
                      evalsha(theirs, script, "key:__rand_int__"))], pipeline, requests // QUICK)
            ratio("throttle-%s.random.p%d" % (script, pipeline),
                  "serve.weir.throttle.random.p%d.cpu" % pipeline,
                  "serve.redis.evalsha-%s.random.p%d.cpu" % (script, pipeline))
    ours.stop()
    theirs.stop()


def threads():
    ours = start_weir(threads=2, pin=False)
    for pipeline, requests in ((1, 300000), (16, 2000000), (64, 4000000)):
        measure([("weir-2-threads.throttle.random", ours,
                  ["CL.THROTTLE", "key:__rand_int__", "99", "100", "60"])], pipeline,
                  requests // QUICK, pin=False)
    ours.stop()


def write_rules(path, n):
    """n rules, of which three apply to the requests of the load."""
    with open(path, "w") as file:
        file.write("version: 1\nrules:\n  - {name: per-ip, key: '{ip}', limit: 1000000/60s}\n"
                   "  - {name: api, match: {uri: '/api/**'}, key: '{ip}', limit: 1000000/60s}\n"
                   "  - {name: posts, match: {method: POST}, key: '{account}', limit: 1000000/60s}\n")
        for i in range(n - 3):
            file.write("  - {name: rule-%d, match: {uri: '/other/%d/**'}, key: '{ip}', limit: 10/s}\n" % (i, i))


def checks():
    rules = os.path.join(folder, "rules.yaml")
    write_rules(rules, 1000)
    ours = start_weir(rules=rules, keys=4000000)  # three keys a request
    throttle = ["CL.THROTTLE", "key:__rand_int__", "99", "100", "60"]
    for pipeline, requests in ((1, 300000), (16, 1000000), (64, 2000000)):
        measure([("weir.check-1000-rules.random", ours, CHECK),
                 ("weir.throttle-beside.random", ours, throttle)], pipeline, requests // QUICK)
        ratio("check-throttle.random.p%d" % pipeline,
              "serve.weir.check-1000-rules.random.p%d.cpu" % pipeline,
              "serve.weir.throttle-beside.random.p%d.cpu" % pipeline)
    ours.stop()


def wrk(peer, port, path, script=None, seconds=4):
    command = ["taskset", "-c", "1", "wrk", "-t", "1", "-c", "50", "-d",
               "%ds" % max(1, seconds // QUICK)]
    before = cpu_of(peer.cpu_pid)
    out = subprocess.run(command + (["-s", script] if script else [])
                         + ["http://127.0.0.1:%d%s" % (port, path)], capture_output=True, text=True,
                         check=True).stdout
    spent = cpu_of(peer.cpu_pid) - before
    requests = int(re.search(r"(\d+) requests in", out).group(1))
    return spent * 1e6 / requests, float(re.search(r"Requests/sec:\s+([\d.]+)", out).group(1))


def start_nginx():
    port = free_port()
    path = os.path.join(folder, "nginx.conf")
    with open(path, "w") as file:
        file.write("worker_processes 1; pid %s/nginx.pid; error_log /dev/null; daemon off; master_process off;\nevents { worker_connections 1024; }\n"
                   "http { access_log off; keepalive_requests 100000000; server { listen 127.0.0.1:%d; location / { return 200 'ok'; } } }\n" % (folder, port))
    process = subprocess.Popen(["taskset", "-c", "0", "nginx", "-p", folder, "-c", path],
                               stderr=subprocess.DEVNULL)
    peer = Peer.__new__(Peer)
    peer.name, peer.port, peer.process, peer.pid = "nginx", port, process, process.pid
    started.append(peer)
    import socket

    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return peer
        except OSError:
            if process.poll() is not None:
                raise RuntimeError("nginx did not start")


def http():
    if not shutil.which("wrk") or not shutil.which("nginx"):
        note("HTTP: wrk or nginx is not here")
        return
    rules = os.path.join(folder, "rules.yaml")
    write_rules(rules, 3)
    ours, theirs = start_weir(rules=rules), start_nginx()
    ours.cpu_pid, theirs.cpu_pid = ours.pid, theirs.pid
    script = os.path.join(folder, "check.lua")
    with open(script, "w") as file:
        file.write("wrk.method = 'POST'\nlocal n = 0\nrequest = function()\n  n = (n * 1103515245 + 12345) % 2147483648\n"
                   "  return wrk.format('POST', '/v1/check', nil, '{\"attributes\":{\"ip\":\"10.1.2.' .. (n % 256) .. '\",\"uri\":\"/api/x\",\"method\":\"POST\",\"account\":\"a' .. n % 1000000 .. '\"}}')\nend\n")
    results = {"weir.http-check": [], "nginx.return-200": []}
    for _ in range(RUNS):
        results["weir.http-check"].append(wrk(ours, ours.http, "/v1/check", script))
        results["nginx.return-200"].append(wrk(theirs, theirs.port, "/"))
    for name, values in results.items():
        say("serve.%s.cpu" % name, statistics.median(v[0] for v in values), "s/million")
        say("serve.%s.rate" % name, statistics.median(v[1] for v in values), "requests/s")
    ratio("http-check-nginx", "serve.weir.http-check.cpu", "serve.nginx.return-200.cpu")
    ours.stop()
    theirs.stop()


def latency():
    """p99 at half of what the slower of both can carry unpipelined: fewer connections and
    redis-benchmark's own pace."""
    ours, theirs = start_weir(), start_redis()
    for name, peer, words in (("weir", ours,
                               ["CL.THROTTLE", "key:__rand_int__", "99", "100", "60"]),
                               ("redis", theirs, ["INCR", "key:__rand_int__"])):
        values = []
        for _ in range(RUNS):
            command = (["taskset", "-c", "1", "redis-benchmark", "-p", str(peer.port), "-c", "8",
                        "-n", str(200000 // QUICK), "-r", str(KEYS), "--csv"] + words)
            out = subprocess.run(command, capture_output=True, text=True,
                                 check=True).stdout.strip().splitlines()
            values.append(float(out[-1].split(",")[6].strip('"')))
        say("serve.latency.%s.p99" % name, statistics.median(values), "ms")
    ours.stop()
    theirs.stop()


def count(rules, words):
    """Instructions of one command: the difference of a longer run and a shorter one."""
    port, counts = free_port(), []
    log = os.path.join(folder, "callgrind.log")
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
               "--log-file=" + log, weir, "serve", "--resp", "127.0.0.1:%d" % port, "--http", "",
               "--memory",
               "--threads", "1", "--keys", "100000", "--test-clock", "--rules", rules]
    for n in (20000, 60000):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in process.stdout:
            if line.startswith("  table"):
                break
        subprocess.run(["redis-benchmark", "-p", str(port), "-c", "4", "-n", str(n), "-P", "64",
                        "-r", "10000", "--csv"] + words, stdout=subprocess.DEVNULL, check=True)
        process.send_signal(signal.SIGTERM)
        process.wait()
        counts.append(int(re.search(r"Collected : (\d+)", open(log).read()).group(1)))
    return (counts[1] - counts[0]) / 40000


def instructions():
    if not shutil.which("valgrind"):
        note("instructions: no valgrind here")
        return
    rules = os.path.join(folder, "rules.yaml")
    write_rules(rules, 1000)
    say("serve.instructions.throttle",
        count("", ["CL.THROTTLE", "key:__rand_int__", "99", "100", "60"]), "instructions")
    say("serve.instructions.check", count(rules, CHECK), "instructions")


def throttlecrab():
    """Its own server, if the registry gives it."""
    root = os.path.join(build, "bench-out", "throttlecrab")
    binary = os.path.join(root, "bin", "throttlecrab-server")
    if not os.path.exists(binary):
        if not shutil.which("cargo"):
            note("throttlecrab: no cargo here")
            return
        done = subprocess.run(["cargo", "install", "--quiet", "--root", root,
                               "throttlecrab-server"], stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            note("throttlecrab: cargo install failed: " + done.stderr.strip().splitlines()[-1])
            return
    port = free_port()
    process = subprocess.Popen(["taskset", "-c", "0", binary, "--redis", "--redis-host",
                                "127.0.0.1", "--redis-port", str(port)], stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
    peer = Peer.__new__(Peer)
    peer.name, peer.port, peer.process, peer.pid = "throttlecrab", port, process, process.pid
    started.append(peer)
    import socket
    import time

    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            time.sleep(0.1)
    for pipeline, requests in ((1, 200000), (16, 400000), (64, 400000)):
        try:
            measure([("throttlecrab.throttle.random", peer,
                      ["THROTTLE", "key:__rand_int__", "100", "100", "60"])], pipeline,
                      requests // QUICK)
        except (subprocess.CalledProcessError, IndexError, OSError) as problem:
            note("throttlecrab at pipeline %d: %s" % (pipeline, problem))
            break
        ratio("throttle-throttlecrab.random.p%d" % pipeline,
              "serve.weir.throttle.random.p%d.cpu" % pipeline,
              "serve.throttlecrab.throttle.random.p%d.cpu" % pipeline)
    peer.stop()


PARTS = {"throttles": throttles, "threads": threads, "checks": checks, "http": http,
         "latency": latency, "instructions": instructions, "throttlecrab": throttlecrab}


def main():
    for tool in ("redis-server", "redis-benchmark", "taskset"):
        if not shutil.which(tool):
            note("the server's figures: no %s here" % tool)
            return
    try:
        for name in sys.argv[2:] or PARTS:
            PARTS[name]()
    finally:
        for peer in started:
            peer.stop()
        shutil.rmtree(folder, ignore_errors=True)


main()
