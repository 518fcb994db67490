#!/usr/bin/env python3
"""fleet-scale.py WEIR [SECONDS] -- a fleet of 1 to 8 nodes on 1 and 3 masters, beside the usual
way: one EVALSHA for each request.  Prints name, value, unit, by tabs, which
scripts/fleet-picture.py draws.

All of it shares the host: decisions a second are what the host can do together with the clients;
CPU time for a decision is what holds elsewhere.  The usual way is pipelined as deep as asks are,
and its clients' time is not counted, which is kind to it."""
import contextlib
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from fleet import FLEET, Node, Redis, cpu_of, encode, flood, joined, tell, url  # noqa: E402
from redising import until  # noqa: E402

NODES, MASTERS = [1, 2, 4, 8], [1, 3]
KEYS = ["account:%d" % i for i in range(24)]  # on all masters
BATCH = 480
LIMIT = 50000  # a second, for each key
SECONDS = 3.0


@contextlib.contextmanager
def masters_of(n):
    """Redis alone, or a cluster."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Redis(cluster=n > 1)) for _ in range(n)]
        for i, server in enumerate(servers[: n if n > 1 else 0]):
            server.ok("CLUSTER", "MEET", "127.0.0.1", servers[0].port)
            server.ok("CLUSTER", "ADDSLOTSRANGE", 16384 * i // n, 16384 * (i + 1) // n - 1)
        until("the cluster is up", lambda: n == 1 or all(
            server.info_of_cluster("cluster_state") == "ok" and
            server.info_of_cluster("cluster_known_nodes") == str(n) for server in servers))
        yield servers


def info_of_cluster(self, field):
    return dict(line.split(":") for line in self("CLUSTER", "INFO").split())[field]


Redis.info_of_cluster = info_of_cluster


def tell_scale(name, figures, redis_cpu, other_cpu):
    asked, took = figures
    tell("scale, %s: decisions" % name, asked / took, "/s")
    tell("scale, %s: decisions by CPU time" % name, asked / (redis_cpu + other_cpu), "/s of CPU")
    tell("scale, %s: CPU of Redis" % name, 1e6 * redis_cpu / asked, "us a decision")


def by_fleet(weir, n, masters):
    asks = b"".join(encode(("WEIR.CHECK", "user", KEYS[i % len(KEYS)])) for i in range(BATCH))
    rules = FLEET % ("token-bucket %d/1s" % LIMIT, "100ms")
    with masters_of(masters) as servers, contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(Node(weir, url(servers[0]), "n%d" % i, rules=rules,
                                          threads=1)) for i in range(n)]
        joined(*nodes)
        flood(nodes, SECONDS / 2, (BATCH, asks))  # rates become known
        before = sum(cpu_of(server.process.pid) for server in servers)
        _, asked, cpu, took = flood(nodes, SECONDS, (BATCH, asks))
        redis_cpu = sum(cpu_of(server.process.pid) for server in servers) - before
        tell_scale("fleet, %d nodes, %d masters" % (n, masters), (asked, took), redis_cpu, cpu)


class Caller(threading.Thread):
    """Calls the script for each request, on a connection to each master."""

    def __init__(self, servers, sha, owners, seconds):
        super().__init__()
        self.seconds, self.asked, self.ways = seconds, 0, []
        for server in servers:
            keys = [key for key in KEYS if owners[key] is server]
            words = [("EVALSHA", sha, 1, key, LIMIT, 1000) for key in keys]
            times = BATCH // len(KEYS)
            self.ways.append((server.connect(), b"".join(map(encode, words)) * times,
                              len(words) * times))

    def run(self):
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            for client, data, _ in self.ways:
                client.raw(data)
            for client, _, n in self.ways:
                lines = 0
                while lines < 3 * n:
                    lines += client.socket.recv(1 << 20).count(b"\n")
                self.asked += n
        for client, _, _ in self.ways:
            client.close()


def by_script(n, masters):
    with open(os.path.join(HERE, "serve", "token-bucket.lua"), encoding="ascii") as file:
        text = file.read()
    with masters_of(masters) as servers:
        sha = [server.ok("SCRIPT", "LOAD", text) for server in servers][0]
        slots = {key: servers[0].ok("CLUSTER", "KEYSLOT", key) if masters > 1 else 0
                 for key in KEYS}
        owners = {key: servers[slot * masters // 16384] for key, slot in slots.items()}
        callers = [Caller(servers, sha, owners, SECONDS) for _ in range(n)]
        before, begin = sum(cpu_of(server.process.pid) for server in servers), time.monotonic()
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        took = time.monotonic() - begin
        cpu = sum(cpu_of(server.process.pid) for server in servers) - before
        tell_scale("EVALSHA, %d nodes, %d masters" % (n, masters),
                   (sum(caller.asked for caller in callers), took), cpu, 0)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        SECONDS = float(sys.argv[2])
    for how_many in MASTERS:
        for size in NODES:
            by_fleet(sys.argv[1], size, how_many)
            by_script(size, how_many)
