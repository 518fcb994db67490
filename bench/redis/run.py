#!/usr/bin/env python3
"""run.py BUILD -- what a decision costs redis-server: name<TAB>value<TAB>unit, one figure a line.

    redis.WHAT.pP.cpu      CPU of redis-server per decision in us, at pipeline P, 100000 keys
    redis.WHAT.p64.rate    decisions per second
    redis.ratio....        ours over theirs, both with their keys in Redis, by turns in slices of a
                           tenth of the requests: what slows the machine down for a while slows both
    redis.memory.*         bytes per key with an expiry, by used_memory; small-counter is a counter
                           up to 9,999, which Redis shares, counter a larger one
    redis.cluster.N.*      a cluster of N masters, CL.THROTTLE at pipeline 64, a connection each:
                           CPU per decision and the decisions a second with a core for each, asked
                           one after the other; and the decisions a second of all at once on this
                           machine, masters and load on the same cores

WHAT is incr, incr-ttl (on keys with an expiry), module (CL.THROTTLE of weir.so), cell (redis-cell
0.2.2, the newest among Rust's crates), usual-bucket, usual-window, usual-log (the scripts in
bench/serve) and script-bucket, script-window, script-log (ours).  The server has one core, the load
the other; every figure is the median of five runs by turns.  WEIR_BENCH_QUICK=1 takes a fifth of
the requests, once.
"""
import multiprocessing
import os
import random
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
QUICK = 5 if os.environ.get("WEIR_BENCH_QUICK") else 1
RUNS = 1 if QUICK > 1 else 5
KEYS = 100000
SLICES = 10
REQUESTS = {1: 60000 // QUICK, 16: 300000 // QUICK, 64: 500000 // QUICK}


def encode(words):
    out = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(out)


def say(name, value, unit):
    print("%s\t%.4g\t%s" % (name, value, unit), flush=True)


class Redis:
    def __init__(self, *options, core=0):
        self.folder = tempfile.mkdtemp(prefix="weir-bench-")
        self.path = os.path.join(self.folder, "socket")
        self.process = subprocess.Popen(
            ["taskset", "-c", str(core), "redis-server", "--port", "0", "--unixsocket", self.path,
             "--save", "", "--dir", self.folder, *options], stdout=subprocess.DEVNULL)
        self.socket = socket.socket(socket.AF_UNIX)
        while self.socket.connect_ex(self.path) != 0:
            assert self.process.poll() is None, "redis-server ended"
            time.sleep(0.02)

    def __call__(self, *words):
        self.socket.sendall(encode(words))
        data = b""
        while not data.endswith(b"\r\n"):
            data += self.socket.recv(1 << 20)
        if data[:1] == b"$":
            head, rest = data.split(b"\r\n", 1)
            return rest[:int(head[1:])]
        return data[1:-2]

    def cpu(self):
        """Of its only thread at work, in seconds."""
        return int(open("/proc/%d/schedstat" % self.process.pid).read().split()[0]) / 1e9

    def memory(self):
        info = self("INFO", "memory").decode()
        return int([line for line in info.splitlines() if line.startswith("used_memory:")][0][12:])

    def stop(self):
        self.socket.close()
        os.kill(self.process.pid, signal.SIGTERM)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Load:
    """A command for many keys: `words` has the key's place as None; `lines` a reply's lines."""

    def __init__(self, redis, words, lines=1, prepare=None):
        self.redis, self.words, self.lines, self.prepare = redis, words, lines, prepare
        self.prefix = b"key"

    def name(self, key):
        return b"%s:%06d" % (self.prefix, key)

    def command(self, key):
        return encode([self.name(key) if word is None else word for word in self.words])

    def fresh(self):
        self.redis("FLUSHALL")
        self.fill()

    def fill(self):
        for at in range(0, KEYS, 1000):  # every key is there, so that no run has more new ones
            batch = [self.command(key) for key in range(at, at + 1000)]
            self.exchange(b"".join(batch), 1000 * self.lines)
            if self.prepare:
                batch = [encode([self.prepare, self.name(key), "100000"])
                         for key in range(at, at + 1000)]
                self.exchange(b"".join(batch), 1000)

    def exchange(self, data, lines):
        self.redis.socket.sendall(data)
        before = b""
        while lines > 0:
            data = self.redis.socket.recv(1 << 20)
            lines -= (before + data).count(b"\r\n")  # some replies hold bytes of any kind
            before = data[-1:]

    def run(self, pipeline, slices=1):
        rounds = REQUESTS[pipeline] // pipeline // slices
        batches = [b"".join(self.command(random.randrange(KEYS)) for _ in range(pipeline))
                   for _ in range(min(rounds, 3000))]
        cpu, began = self.redis.cpu(), time.monotonic()
        for i in range(rounds):
            self.exchange(batches[i % len(batches)], pipeline * self.lines)
        spent, took = self.redis.cpu() - cpu, time.monotonic() - began
        return spent / (rounds * pipeline) * 1e6, rounds * pipeline / took


def read(*path):
    with open(os.path.join(ROOT, *path), "rb") as file:
        return file.read()


def script(redis, *path):
    return redis("SCRIPT", "LOAD", read(*path))


def head_of(redis, limit, state):
    """The head of accounts under a limit, as the module writes it."""
    redis("WEIR.TAKE", "head", limit)
    return redis("GET", "head")[:-state]


def terms(numbers, head, at):
    """As script-words.c puts them: numbers with their sizes, the place behind the head, the
    account's format, the head."""
    return (b"".join(struct.pack("<q", n)[:size] for n, size in numbers) +
            b"%d\0<c%dI8Bi8\0%c" % (len(head) + at, len(head), len(head)) + head)


def loads_of(redis, cell):
    usual = {name: script(redis, "bench/serve", name + ".lua")
             for name in ("token-bucket", "fixed-window", "sorted-set")}
    ours = {name: script(redis, "cluster/account", name + ".lua")
            for name in ("meter", "window", "sliding-log")}
    bucket = head_of(redis, "gcra 1/100s burst 10000", 17)  # no key expires during a run
    window = head_of(redis, "fixed-window 1000000/1000s", 17)
    log = head_of(redis, "sliding-log 100/60s", 31)
    loads = {
        "incr": Load(redis, ["INCR", None]),
        "incr-ttl": Load(redis, ["INCR", None], prepare="EXPIRE"),
        "module": Load(redis, ["CL.THROTTLE", None, 9999, 1, 100], 6),
        "usual-bucket": Load(redis, ["EVALSHA", usual["token-bucket"], 1, None, 10000, 10**9],
                             3),
        "script-bucket": Load(redis, ["EVALSHA", ours["meter"], 1, None,
                                      terms([(10**11, 7), (10**15, 7), (1000, 7)], bucket, 0)]),
        "usual-window": Load(redis, ["EVALSHA", usual["fixed-window"], 1, None, 1000000, 1000000]),
        "script-window": Load(redis, ["EVALSHA", ours["window"], 1, None,
                                      terms([(1, 4), (1000000, 7), (10**9, 7)], window, 9) +
                                      b"\0"]),
        "usual-log": Load(redis, ["EVALSHA", usual["sorted-set"], 1, None, 100, 60000]),
        "script-log": Load(redis, ["EVALSHA", ours["sliding-log"], 1, None, log,
                                   struct.pack("<4q", 1, 100, 60000000, 5), 60002], 2),
    }
    if cell:
        loads["cell"] = Load(cell, ["CL.THROTTLE", None, 9999, 1, 100], 6)
    return loads


def measure(loads):
    results = {(name, pipeline): [] for pipeline in REQUESTS for name in loads}
    for _ in range(RUNS):
        for name, load in loads.items():
            load.fresh()
            for pipeline in REQUESTS:
                results[name, pipeline].append(load.run(pipeline))
    for (name, pipeline), runs in results.items():
        say("redis.%s.p%d.cpu" % (name, pipeline), statistics.median(r[0] for r in runs), "us")
        if pipeline == 64:
            say("redis.%s.p64.rate" % name, statistics.median(r[1] for r in runs), "1/s")


def compare_two(ours, theirs, pipeline):
    """CPU of ours over CPU of theirs."""
    ours.prefix, theirs.prefix = b"one", b"two"
    for load in (ours, theirs):
        load.redis("FLUSHALL")
    for load in (ours, theirs):
        load.fill()
    slices = [(ours.run(pipeline, SLICES)[0], theirs.run(pipeline, SLICES)[0])
              for _ in range(SLICES)]
    return sum(a for a, _ in slices) / sum(b for _, b in slices)


def compare(loads):
    for ours, theirs, pipeline in (
            ("module", "incr", 1), ("module", "incr-ttl", 64), ("module", "cell", 64),
            ("module", "usual-bucket", 64), ("script-bucket", "usual-bucket", 64),
            ("script-window", "usual-window", 64), ("script-log", "usual-log", 64)):
        if theirs in loads:
            ratios = [compare_two(loads[ours], loads[theirs], pipeline) for _ in range(RUNS)]
            say("redis.ratio.%s.over-%s.p%d" % (ours, theirs, pipeline),
                statistics.median(ratios), "times")


def weigh(loads):
    redis = loads["module"].redis
    counters = {"small-counter": Load(redis, ["SET", None, 9999, "EX", 100000]),
                "counter": Load(redis, ["SET", None, 10000, "EX", 100000])}
    sizes = {}
    for name, load in (counters | loads).items():
        if name in ("small-counter", "counter", "module", "script-bucket", "script-window", "cell"):
            load.redis("FLUSHALL")
            before = load.redis.memory()
            load.fresh()
            sizes[name] = (load.redis.memory() - before) / KEYS
            say("redis.memory." + name, sizes[name], "bytes")
    for name in counters:
        say("redis.memory.module.over-" + name, sizes["module"] - sizes[name], "bytes")


def slot_of(key):
    crc = 0
    for byte in key:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xffff
    return crc % 16384


class Part(Load):
    """Keys of one master: a tag for each of its first slots."""

    def __init__(self, redis, first, last):
        super().__init__(redis, ["CL.THROTTLE", None, 9999, 1, 100], 6)
        tags = (b"%d" % n for n in range(1 << 30))
        self.tags = [tag for tag, _ in zip((t for t in tags if first <= slot_of(t) <= last),
                                           range(1000))]

    def name(self, key):
        return b"{%s}%03d" % (self.tags[key % 1000], key // 1000)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    return port if port <= 55535 else free_port()  # the bus is 10,000 higher


def start_cluster(module, masters):
    """All slots are spread over the masters, which know each other."""
    nodes, size = [], -(-16384 // masters)
    for i in range(masters):
        node = Redis("--loadmodule", module, "--port", str(free_port()), "--bind", "127.0.0.1",
                     "--cluster-enabled", "yes", core=i % os.cpu_count())
        nodes.append(node)
        node("CLUSTER", "ADDSLOTSRANGE", i * size, min(16384, (i + 1) * size) - 1)
        port = nodes[0]("CONFIG", "GET", "port").split(b"\r\n")[-1]
        if i > 0:
            node("CLUSTER", "MEET", "127.0.0.1", port)
    while not all(b"cluster_state:ok" in node("CLUSTER", "INFO") for node in nodes):
        time.sleep(0.05)
    return nodes, [Part(node, i * size, min(16384, (i + 1) * size) - 1)
                   for i, node in enumerate(nodes)]


def drive(part, start, rates):
    """One of the processes that ask a master each, at the same time."""
    os.sched_setaffinity(0, range(os.cpu_count()))
    part.redis.socket = socket.socket(socket.AF_UNIX)
    part.redis.socket.connect(part.redis.path)
    start.wait()
    rates.put(part.run(64)[1])


def drive_all(parts):
    start, rates = multiprocessing.Barrier(len(parts)), multiprocessing.Queue()
    drivers = [multiprocessing.Process(target=drive, args=(part, start, rates)) for part in parts]
    for driver in drivers:
        driver.start()
    total = sum(rates.get(timeout=600) for _ in drivers)
    for driver in drivers:
        driver.join()
    return total


def measure_cluster(module):
    for masters in (1, 2, 3):
        nodes, parts = start_cluster(module, masters)
        try:
            figures, together = [], []
            for part in parts:
                part.fresh()
            for _ in range(RUNS):
                figures.append([part.run(64)[0] for part in parts])
                together.append(drive_all(parts))
        finally:
            for node in nodes:
                node.stop()
        by_master = [statistics.median(run[i] for run in figures) for i in range(masters)]
        say("redis.cluster.%d.cpu" % masters, statistics.mean(by_master), "us")
        say("redis.cluster.%d.rate" % masters, sum(1e6 / cpu for cpu in by_master), "1/s")
        say("redis.cluster.%d.together" % masters, statistics.median(together), "1/s")


def build_cell(folder):
    """redis-cell from its crate; None if that cannot be."""
    try:
        subprocess.run(["sh", os.path.join(HERE, "cell.sh"), folder], check=True, timeout=400,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        print("skipped: redis-cell: its crate could not be built", file=sys.stderr)
        return None
    return os.path.join(folder, "libredis_cell.so")


def main():
    build = os.path.abspath(sys.argv[1])
    os.sched_setaffinity(0, {os.cpu_count() - 1})
    out = os.path.join(build, "bench-out", "redis-cell")
    os.makedirs(out, exist_ok=True)
    module = build_cell(out)
    redis = Redis("--loadmodule", os.path.join(build, "redis-module/weir.so"))
    cell = Redis("--loadmodule", module) if module else None
    loads = loads_of(redis, cell)
    try:
        measure(loads)
        compare(loads)
        weigh(loads)
    finally:
        redis.stop()
        if cell:
            cell.stop()
    measure_cluster(os.path.join(build, "redis-module/weir.so"))


if __name__ == "__main__":
    main()
