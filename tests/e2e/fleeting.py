"""fleeting.py -- shared by the tests of a fleet on real servers: nodes, a load that counts, and
wires between a node and Redis that can be cut.

Nothing here is bounded by wall time: a load measures how long it took, and bounds are reckoned from
that."""
import contextlib
import importlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from redising import until
from serving import Server, free_port

LONG = "--long" in sys.argv
sys.argv = [word for word in sys.argv if word != "--long"]
PART = 1000000
# HOURLY % (units, within, when_alone)
HOURLY = """version: 1
rules:
  - name: hourly
    key: "{user}"
    limit: fixed-window %s/1h
    across: fleet
    within: %s
    when_alone: %s
"""


def url(redis):
    return "redis://127.0.0.1:%d" % redis.port


def account(redis, name):
    """Whether there is an account of FLEET/RULE:KEY; its name ends in a digest of its limit."""
    return len(redis("KEYS", "weir:{%s}:0.????????" % name)) == 1


class Node(Server):
    """weir serve in a fleet.  `where`: None, if its environment says it; `name`: None for the one
    it finds."""

    def __init__(self, weir, where, name=None, *options, **more):
        self.name, self.dead = name or "the node", False
        place = ["--fleet", where] if where else []
        named = ["--fleet-node", name] if name else []
        super().__init__(weir, *place, *named, *options, clock=False, **more)

    def start(self):
        self.dead = False
        super().start()

    def kill(self):
        super().kill()
        self.dead = True

    def stop(self, expect=0):
        if not self.dead:
            return super().stop(expect)
        shutil.rmtree(self.folder, ignore_errors=True)
        return ""

    @property
    def fleet(self):
        with self.resp() as client:
            return client.json("WEIR.STATUS")["fleet"]

    def draws(self):
        """It asks accounts."""
        fleet = self.fleet
        return fleet["connected"] and not fleet["alone"]

    def is_ready(self, members):
        """It has an equal part, and asks accounts."""
        fleet = self.fleet
        return (fleet["members"] == members and fleet["part"] == PART // members and
                self.draws())


def joined(*nodes, members=None):
    """All are ready."""
    for node in nodes:
        until("%s has its part" % node.name, lambda: node.is_ready(members or len(nodes)),
              state=lambda: str(node.fleet))


def back(*nodes):
    """All draw again.  Returns for how long, at most, some did and others went by their shares."""
    began, away = time.monotonic(), list(nodes)

    def all_draw():
        nonlocal began, away
        now = time.monotonic()
        away = [node for node in away if not node.draws()]
        began = now if len(away) == len(nodes) else began
        return not away

    until("all draw again", all_draw, state=lambda: str([node.fleet for node in away]))
    return time.monotonic() - began


@contextlib.contextmanager
def nodes_on_cluster(weir, rules):
    """Two nodes, on three masters with a replica each."""
    sys.argv[1:2] = [os.path.join(os.path.dirname(os.path.abspath(weir)), "tests", "x")]
    Cluster = importlib.import_module("redis-cluster").Cluster
    with Cluster() as cluster, Node(weir, cluster.url(), "a", rules=rules) as a, \
            Node(weir, cluster.url(), "b", rules=rules) as b:
        joined(a, b)
        yield cluster, a, b


class Info:
    def __init__(self, line):
        words = line.split(None, 12)
        (self.agent, self.alone, self.connected, self.learning, self.part, self.members,
         self.version, self.refused, self.draws, self.drawn, self.repaid,
         self.asks_alone) = [int(word) for word in words[:12]]
        self.why = words[12].strip() if len(words) > 12 else ""


class Agent:
    """fleet-agent, under way.  Without rules it has those of the fleet, and a copy of them in the
    folder `copies`."""

    def __init__(self, program, where, name, table="-", rules=None, copies=None):
        self.folder = tempfile.mkdtemp(prefix="weir-agent-")
        path = os.path.join(self.folder, "rules.yaml")
        open(path, "w").write(rules or "")
        words = [program, where, name, table, path if rules else "-", copies or self.folder]
        self.stopped = False
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def __call__(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def info(self):
        return Info(self("info"))

    def stop(self):
        self.stopped = True
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.stopped = False
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.stopped:  # another SIGCONT may keep the sanitizer from looking for leaks, for ever
            self.go_on()
        self.process.stdin.close()
        try:
            code = self.process.wait(60)
        finally:
            self.kill()
        shutil.rmtree(self.folder)
        if kind is None:
            assert code in (0, -signal.SIGKILL), code


class Load:
    """Asks a node again and again, in batches with an ECHO behind each: every ask is answered once
    and in its order, or the connection ends (the node was killed).  `key`: a text, or a function
    that makes the next."""

    def __init__(self, node, key="ann", batch=10, pause=0.005, cost=1):
        self.node, self.key, self.batch, self.pause, self.cost = node, key, batch, pause, cost
        self.allowed, self.asked, self.reasons, self.problem = 0, 0, {}, None
        self.by_key = {}
        self.ending = False

    def __enter__(self):
        self.begin = time.monotonic()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.ending = True
        self.thread.join()
        self.took = time.monotonic() - self.begin
        if self.problem:
            raise self.problem
        return self

    def run(self):
        try:
            with self.node.resp() as client:
                n = 0
                while not self.ending:
                    self.step(client, n)
                    n += 1
                    time.sleep(self.pause)
        except (EOFError, ConnectionError):
            pass  # killed
        except Exception as problem:
            self.problem = problem

    def step(self, client, n):
        keys = [self.key() if callable(self.key) else self.key for _ in range(self.batch)]
        for key in keys:
            client.send("WEIR.CHECK", "COST", self.cost, "user", key)
        client.send("ECHO", n)
        for key in keys:
            answer = client.read()
            assert isinstance(answer, list) and len(answer) == 10, answer
            self.asked += 1
            self.allowed += answer[0] * self.cost
            self.by_key[key] = self.by_key.get(key, 0) + answer[0] * self.cost
            self.reasons[answer[8]] = self.reasons.get(answer[8], 0) + 1
        assert client.read() == str(n)


def passed(*loads, key=None):
    return sum(load.by_key.get(key, 0) if key else load.allowed for load in loads)


class Wire:
    """Between a node and Redis: it can be cut, so that nothing comes through and nobody is told."""

    def __init__(self, port):
        self.to, self.cut, self.ending = port, False, False
        self.port = free_port()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.pairs, self.ends = {}, []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.ending:
            if self.cut:
                time.sleep(0.005)
                continue
            ready, _, _ = select.select([self.listener, *self.pairs], [], [], 0.01)
            for end in ready:
                if end is self.listener:
                    self.join()
                elif end in self.pairs and not self.cut:
                    self.pass_on(end)

    def join(self):
        here, _ = self.listener.accept()
        try:
            there = socket.create_connection(("127.0.0.1", self.to))
        except OSError:
            here.close()
            return
        self.pairs[here], self.pairs[there] = there, here

    def pass_on(self, end):
        other = self.pairs[end]
        try:
            data = end.recv(65536)
            if data:
                other.sendall(data)
                return
        except OSError:
            pass
        del self.pairs[end], self.pairs[other]
        end.close()
        other.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ending = True
        self.thread.join()
        for end in [self.listener, *self.pairs]:
            end.close()
