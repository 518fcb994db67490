#!/usr/bin/env python3
"""fleet-members.py REDIS-LOAD [--long] [TEST...] -- nodes of a fleet as processes, on a real
redis-server and a real cluster: killed, stopped, leaving; a Redis that stands still; a master that
is killed.  At no moment is the sum of the parts in force more than 1."""
import importlib
import os
import signal
import subprocess
import sys
import threading
import time

from redising import Redis, until
from redisload import url
from serving import run_tests

Cluster = importlib.import_module("redis-cluster").Cluster
ONE = 1000000
BEAT = 200


class Node:
    """fleet-member, under way; `log` has its answers: came, until, part."""

    def __init__(self, there, name, weight=1, want=ONE):
        self.log, self.ended = [], None
        program = os.path.join(os.path.dirname(sys.argv[1]), "fleet-member")
        self.process = subprocess.Popen(
            [program, there, name, str(BEAT), str(weight), str(want)], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.log.append([int(word) for word in line.split()])

    def part(self):
        came, end, part, _ = self.log[-1] if self.log else (0, 0, 0, 0)
        return part if time.monotonic_ns() < end else 0

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.ended = time.monotonic_ns()

    def spans(self):
        """When which part was in force."""
        for i, (came, end, part, _) in enumerate(self.log):
            after = self.log[i + 1][0] if i + 1 < len(self.log) else self.ended or end
            yield came, min(end, after), part


class Fleet:
    """Checks the law for all nodes that ever were, at the end."""

    def __init__(self):
        self.nodes = []

    def add(self, *words, **options):
        self.nodes.append(Node(*words, **options))
        return self.nodes[-1]

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        for node in self.nodes:
            node.process.send_signal(signal.SIGCONT)
            node.kill()
            node.reader.join()
        if kind is None:
            assert self.most() <= ONE, self.most()

    def most(self):
        """The largest sum of parts that were in force at the same time."""
        steps = []
        for node in self.nodes:
            for begin, end, part in node.spans():
                if part and begin < end:
                    steps += [(begin, part), (end, -part)]
        most = total = 0
        for _, change in sorted(steps):
            total += change
            most = max(most, total)
        return most


def wait_for_parts(what, nodes, parts):
    until(what, lambda: [n.part() for n in nodes] == parts, 60,
          lambda: str([n.log[-1:] for n in nodes]))


def test_D4_members(program):
    """By weight; a killed one's part goes to the others, and so does one that leaves."""
    with Redis() as r, Fleet() as fleet:
        a, b, c = (fleet.add(url(r), name, weight=weight)
                   for name, weight in (("a", 1), ("b", 1), ("c", 2)))
        wait_for_parts("by weight", nodes=[a, b, c], parts=[ONE // 4, ONE // 4, ONE // 2])
        c.kill()
        begun = time.monotonic()
        wait_for_parts("a dead node's part is back", nodes=[a, b], parts=[ONE // 2, ONE // 2])
        print("a dead node's part was back after %.2f s" % (time.monotonic() - begun))
        b.process.terminate()
        wait_for_parts("a node has left", nodes=[a], parts=[ONE])
        b.process.wait(60)
        d = fleet.add(url(r), "d")
        wait_for_parts("another has joined", nodes=[a, d], parts=[ONE // 2, ONE // 2])


def test_D4_lending(program):
    with Redis() as r, Fleet() as fleet:
        a, b = fleet.add(url(r), "a"), fleet.add(url(r), "b", want=0)
        wait_for_parts("b lends to a", nodes=[a, b], parts=[ONE * 7 // 8, ONE // 8])


def test_D4_stopped(program):
    """A node that stands still has no part when it goes on; a Redis that does leaves nobody with
    one; both come back by themselves."""
    with Redis() as r, Fleet() as fleet:
        a, b = fleet.add(url(r), "a"), fleet.add(url(r), "b")
        wait_for_parts("halves", nodes=[a, b], parts=[ONE // 2, ONE // 2])
        b.process.send_signal(signal.SIGSTOP)
        wait_for_parts("a has all", nodes=[a, b], parts=[ONE, 0])
        b.process.send_signal(signal.SIGCONT)
        wait_for_parts("halves again", nodes=[a, b], parts=[ONE // 2, ONE // 2])
        r.process.send_signal(signal.SIGSTOP)
        wait_for_parts("parts have ended", nodes=[a, b], parts=[0, 0])
        r.process.send_signal(signal.SIGCONT)
        wait_for_parts("halves after Redis stood still", nodes=[a, b],
                       parts=[ONE // 2, ONE // 2])


def test_D4_master_killed(program):
    with Cluster() as cluster, Fleet() as fleet:
        there = cluster.url()
        a, b = fleet.add(there, "a"), fleet.add(there, "b")
        wait_for_parts("halves", nodes=[a, b], parts=[ONE // 2, ONE // 2])
        master = next(n for n in cluster.masters() if n("EXISTS", "weir:{fleet:test}") == 1)
        c = fleet.add(there, "c")
        master.kill()
        until("its replica took its place", lambda: len(cluster.masters()) == 3, 60)
        third = ONE // 3
        wait_for_parts("thirds", nodes=[a, b, c], parts=[third, third, third])
        new = next(n for n in cluster.masters() if n("EXISTS", "weir:{fleet:test}") == 1)
        new.process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        new.process.send_signal(signal.SIGCONT)
        cluster.wait()
        wait_for_parts("thirds again", nodes=[a, b, c], parts=[third, third, third])


if __name__ == "__main__":
    run_tests(globals())
