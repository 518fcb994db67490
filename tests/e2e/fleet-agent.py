#!/usr/bin/env python3
"""fleet-agent.py FLEET-AGENT [TEST...] -- processes that join a fleet (weir-fleet.h), on a real
redis-server: one limit, parts, rules of the fleet; Redis killed and stopped."""
import importlib
import os
import shutil
import signal
import subprocess
import tempfile

from fleeting import PART, Agent, account, url
from redising import Redis, until
from serving import run_tests

Cluster = importlib.import_module("redis-cluster").Cluster
RULES = """version: 1
rules:
  - name: r
    key: "{user}"
    limit: 100/1s
"""


FLEET = RULES + """    across: fleet
    within: 1s
    when_alone: %s
"""


def parts(*nodes):
    return [node.info().part for node in nodes]


def test_D4_parts(program):
    """Parts of those that are there; of one that leaves or dies the others have them."""
    with Redis() as r, Agent(program, url(r), "a", rules=RULES) as a:
        until("a has all", lambda: a.info().part == PART, 60)
        with Agent(program, url(r), "b", rules=RULES) as b:
            until("halves", lambda: parts(a, b) == [PART // 2, PART // 2], 60)
            assert a.info().members == 2 and a.info().connected
            assert b("leave") == "left"
            until("a has all again", lambda: parts(a) == [PART], 60)
        with Agent(program, url(r), "c", rules=RULES) as c:
            until("halves again", lambda: parts(a, c) == [PART // 2, PART // 2], 60)
            c.kill()
            until("c is forgotten", lambda: parts(a) == [PART], 60)


def test_D4_redis_away(program):
    """Nobody waits for a Redis that is away: joining, checking, leaving; and the part stays."""
    with Redis() as r, Agent(program, url(r), "a", rules=RULES) as a:
        until("a has all", lambda: a.info().part == PART, 60)
        r.process.send_signal(signal.SIGSTOP)
        until("it is noticed", lambda: not a.info().connected, 60)
        assert a.info().why
        with Agent(program, url(r), "b", rules=RULES) as b:
            assert b("check ann 1") == "granted"
            assert a("check ann 1") == "granted"
            assert a.info().part == PART
            assert b("leave") == "left"
        r.process.send_signal(signal.SIGCONT)
        until("it is back", lambda: a.info().connected, 60)


def run_all(ms, *nodes):
    """What each node lets pass meanwhile, and the longest time that it took, in s."""
    for node in nodes:
        node.process.stdin.write("run ann %d\n" % ms)
        node.process.stdin.flush()
    lines = [node.process.stdout.readline().split() for node in nodes]
    return [int(line[0]) for line in lines], max(int(line[1]) for line in lines) / 1e9


def test_D5_a_new_node_passes_nothing_before_its_first_turn(program):
    """Redis is away, and asks come as soon as the node has joined."""
    with tempfile.TemporaryDirectory() as folder:
        rules = folder + "/rules"
        with open(rules, "w") as file:
            file.write((FLEET % "share").replace("1s", "1ms"))
        for _ in range(10):
            said = subprocess.run([program, "redis://127.0.0.1:1", "a", "-", rules], check=True,
                                  input=20 * "check ann 1\n", stdout=subprocess.PIPE, text=True)
            assert said.stdout.split() == 20 * ["alone"], said.stdout


def test_D3_one_limit(program):
    """100/s on two nodes together: never more than the bound, and all of it is used."""
    rules = FLEET % "closed"
    with Redis() as r, Agent(program, url(r), "a", rules=rules) as a, \
            Agent(program, url(r), "b", rules=rules) as b:
        until("both draw", lambda: not a.info().alone and not b.info().alone, 60)
        granted, took = run_all(2000, a, b)
        assert sum(granted) <= 100 + 100 * (took + 0.25) + 1, (granted, took)
        assert sum(granted) >= 100, (granted, took)  # on any machine


def test_D5_redis_killed(program):
    """Then each node goes by its part, and when Redis is back they share the limit again."""
    rules = FLEET % "share"
    with Redis() as r, Agent(program, url(r), "a", rules=rules) as a, \
            Agent(program, url(r), "b", rules=rules) as b:
        until("halves", lambda: parts(a, b) == [PART // 2, PART // 2], 60)
        until("both draw", lambda: not a.info().alone and not b.info().alone, 60)
        r.kill()
        until("both are alone", lambda: a.info().alone and b.info().alone, 60)
        granted, took = run_all(2000, a, b)
        for n in granted:
            # a share, and perhaps a purse that was full
            assert n <= 50 + 50 * (took + 0.25) + 1 + 25, (granted, took)
            assert n >= 50 * 2 * 0.5, (granted, took)
        r.start()
        until("both draw again", lambda: not a.info().alone and not b.info().alone, 60)
        granted, took = run_all(1000, a, b)
        assert sum(granted) <= 2 * 100 + 100 * (took + 0.25) + 1, (granted, took)
        assert sum(granted) >= 100 * 0.5, (granted, took)


def passes(node, user, n):
    """Soon: a machine that stands still for a moment leaves an ask alone, and then it is closed."""
    until("%s gets %d" % (user, n), lambda: node("check %s %d" % (user, n)) == "granted", 60)


def test_D5_redis_stopped(program):
    """Asks under way are answered, whatever Redis does."""
    rules = FLEET % "share"
    with Redis() as r, Agent(program, url(r), "a", rules=rules) as a, \
            Agent(program, url(r), "b", rules=rules) as b:
        until("halves", lambda: parts(a, b) == [PART // 2, PART // 2], 60)
        run_all(300, a, b)
        r.process.send_signal(signal.SIGSTOP)
        granted, took = run_all(1500, a, b)
        # what was in the purses, and the shares
        assert sum(granted) <= 100 + 100 * (took + 0.25) + 25 + 2, (granted, took)
        r.process.send_signal(signal.SIGCONT)
        until("both draw again", lambda: not a.info().alone and not b.info().alone, 60)
        passes(a, "bob", 1)


def test_D5_charged(program):
    """A share begins with what was left, and what passes by it is charged when Redis is back."""
    rules = (FLEET % "share").replace("100/1s", "fixed-window 1000/24h align=first")
    with Redis() as r, Agent(program, url(r), "a", rules=rules) as a:
        until("a has all", lambda: a.info().part == PART and not a.info().alone, 60)
        passes(a, "ann", 300)
        r.process.send_signal(signal.SIGSTOP)
        until("a is alone", lambda: a.info().alone, 60)
        assert a("check ann 701") == "limited"
        assert a("check ann 200") == "granted"
        r.process.send_signal(signal.SIGCONT)
        until("a draws", lambda: not a.info().alone, 60)
        passes(a, "ann", 500)
        until("it is spent", lambda: a("check ann 1") == "limited", 60)


def agents(*nodes):
    return [node.info().agent for node in nodes]


def test_D3_take_over(program):
    """Of processes on one table one is the agent; another takes over when it dies or is stopped,
    and one that goes on stands by.  Both draw from one account all the while."""
    folder = tempfile.mkdtemp(prefix="weir-table-")
    table, rules = os.path.join(folder, "table"), FLEET % "closed"
    with Redis() as r, Agent(program, url(r), "host", table=table, rules=rules) as a, \
            Agent(program, url(r), "other", rules=rules) as c:
        until("a is the agent", lambda: agents(a) == [1], 60)
        with Agent(program, url(r), "host", table=table, rules=rules) as b:
            until("halves", lambda: parts(a, c) == [PART // 2, PART // 2], 60)
            assert agents(a, b) == [1, 0]
            passes(b, "eve", 1)
            granted, took = run_all(1000, a, b, c)
            if b"__tsan_init" not in open(program, "rb").read():  # its locks replace swaps
                assert sum(granted) <= 100 + 100 * (took + 0.25) + 1, (granted, took)
            a.stop()
            until("b is the agent", lambda: b.info().agent == 1 and not b.info().alone, 60)
            passes(b, "fay", 1)
            a.go_on()
            until("a stands by", lambda: agents(a, b) == [0, 1], 60)
            until("still two members", lambda: parts(b, c) == [PART // 2, PART // 2], 60)
            passes(a, "gus", 1)
            b.kill()
            until("a is the agent again", lambda: a.info().agent == 1 and not a.info().alone, 60)
            passes(a, "hal", 1)
        with Agent(program, url(r), "host", table=table, rules=rules) as b:
            assert a("leave") == "left"
            until("b has its place", lambda: b.info().agent == 1 and not b.info().alone, 60)
            passes(b, "ida", 1)
    shutil.rmtree(folder)


def test_D3_paid_back(program):
    """A process that leaves pays back what it has drawn ahead: another gets it, to the unit."""
    rules = (FLEET % "closed").replace("100/1s", "fixed-window 3000/24h align=first")
    with Redis() as r, Agent(program, url(r), "a", rules=rules) as a:
        until("a draws", lambda: not a.info().alone, 60)
        granted, _ = run_all(400, a)
        drawn = a.info().drawn
        assert drawn >= granted[0] > 0
        assert a("leave") == "left"
        with Agent(program, url(r), "b", rules=rules) as b:
            until("b draws", lambda: not b.info().alone, 60)
            passes(b, "ann", 3000 - granted[0])
            until("it is spent", lambda: b("check ann 1") == "limited", 60)


def test_D3_cluster(program):
    """Accounts on three masters, one of which is killed."""
    rules = FLEET % "closed"
    users = ["user%d" % i for i in range(12)]
    with Cluster() as cluster, Agent(program, cluster.url(), "a", rules=rules) as a, \
            Agent(program, cluster.url(), "b", rules=rules) as b:
        for user in users:
            passes(a, user, 30)
            passes(b, user, 30)
        found = []

        def is_found():
            passes(a, "user0", 1)  # an account that is full is gone, after a second at most
            found[:] = [n for n in cluster.masters() if account(n, "default/r:user0")]
            return found

        until("there is the account", is_found, 60)
        found[0].kill()
        for user in users:
            passes(a, user, 1)
            passes(b, user, 1)


def fleet(weir, r, *words, text=None):
    return subprocess.run([weir, "fleet", *words, "--redis", url(r)], input=text, text=True,
                          capture_output=True)


def publish(weir, r, text):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        newest = fleet(weir, r, "rules", "get").stdout.split("\n")[0]
        file.write((newest + "\n" if newest.startswith("#") else "") + text)
        file.flush()
        done = fleet(weir, r, "rules", "set", file.name)
        assert done.returncode == 0, done.stderr


def test_D6_rules(program):
    """Rules of the fleet come, and are refused with the reason; a node that starts while Redis is
    away begins with the last ones."""
    weir = os.path.join(os.path.dirname(program), "..", "weir")
    copies = tempfile.mkdtemp(prefix="weir-copies-")
    with Redis() as r:
        publish(weir, r, RULES)
        with Agent(program, url(r), "a", copies=copies) as a:
            until("the first version", lambda: a.info().version == 1, 60)
            publish(weir, r, RULES.replace("100/1s", "5/1h"))
            until("the second", lambda: a.info().version == 2, 60)
            assert [a("check ann 1") for _ in range(6)].count("limited") == 1
            publish(weir, r, RULES + "# bad\n")
            until("the third is refused", lambda: a.info().refused == 3, 60)
            assert a.info().version == 2 and a.info().why == "it is bad"
            until("and that is told", lambda: "it is bad" in fleet(weir, r, "nodes").stdout, 60)
        r.process.send_signal(signal.SIGSTOP)
        with Agent(program, url(r), "a", copies=copies) as a:
            until("the copy", lambda: a.info().version == 2, 60)
            assert [a("check bob 1") for _ in range(6)].count("limited") == 1
        r.process.send_signal(signal.SIGCONT)
    shutil.rmtree(copies)


if __name__ == "__main__":
    run_tests(globals())
