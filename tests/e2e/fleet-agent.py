#!/usr/bin/env python3
"""fleet-agent.py FLEET-AGENT [TEST...] -- processes that join a fleet (weir-fleet.h), on a real
redis-server: parts, rules of the centre."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from redising import Redis, until
from serving import run_tests

ONE = 1000000
RULES = """version: 1
rules:
  - name: r
    key: "{user}"
    limit: 100/1s
"""


def url(redis):
    return "redis://127.0.0.1:%d" % redis.port


class Info:
    def __init__(self, line):
        words = line.split(None, 7)
        (self.agent, self.connected, self.learning, self.part, self.members, self.version,
         self.refused) = [int(word) for word in words[:7]]
        self.why = words[7].strip() if len(words) > 7 else ""


class Node:
    """fleet-agent, under way."""

    def __init__(self, program, redis, name, table="-", rules=None, copies=None):
        self.folder = tempfile.mkdtemp(prefix="weir-agent-")
        path = os.path.join(self.folder, "rules.yaml")
        open(path, "w").write(rules or "")
        words = [program, url(redis), name, table, path if rules else "-", copies or self.folder]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def __call__(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def info(self):
        return Info(self("info"))

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.go_on()
        self.process.stdin.close()
        try:
            code = self.process.wait(60)
        finally:
            self.kill()
        shutil.rmtree(self.folder)
        if kind is None:
            assert code in (0, -signal.SIGKILL), code


def parts(*nodes):
    return [node.info().part for node in nodes]


def test_D4_parts(program):
    """Parts of those that are there; of one that leaves or dies the others have them."""
    with Redis() as r, Node(program, r, "a", rules=RULES) as a:
        until("a has all", lambda: a.info().part == ONE, 60)
        with Node(program, r, "b", rules=RULES) as b:
            until("halves", lambda: parts(a, b) == [ONE // 2, ONE // 2], 60)
            assert a.info().members == 2 and a.info().connected
            assert b("leave") == "left"
            until("a has all again", lambda: parts(a) == [ONE], 60)
        with Node(program, r, "c", rules=RULES) as c:
            until("halves again", lambda: parts(a, c) == [ONE // 2, ONE // 2], 60)
            c.kill()
            until("c is forgotten", lambda: parts(a) == [ONE], 60)


def test_D4_redis_away(program):
    """Nobody waits for a Redis that is away: joining, checking, leaving; and the part stays."""
    with Redis() as r, Node(program, r, "a", rules=RULES) as a:
        until("a has all", lambda: a.info().part == ONE, 60)
        r.process.send_signal(signal.SIGSTOP)
        until("it is noticed", lambda: not a.info().connected, 60)
        assert a.info().why
        with Node(program, r, "b", rules=RULES) as b:
            assert b("check ann 1") == "granted"
            assert a("check ann 1") == "granted"
            assert a.info().part == ONE
            assert b("leave") == "left"
        r.process.send_signal(signal.SIGCONT)
        until("it is back", lambda: a.info().connected, 60)


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
        with Node(program, r, "a", copies=copies) as a:
            until("the first version", lambda: a.info().version == 1, 60)
            publish(weir, r, RULES.replace("100", "5"))
            until("the second", lambda: a.info().version == 2, 60)
            assert [a("check ann 1") for _ in range(6)].count("limited") == 1
            publish(weir, r, RULES + "# bad\n")
            until("the third is refused", lambda: a.info().refused == 3, 60)
            assert a.info().version == 2 and a.info().why == "it is bad"
            until("and that is told", lambda: "it is bad" in fleet(weir, r, "nodes").stdout, 60)
        r.process.send_signal(signal.SIGSTOP)
        with Node(program, r, "a", copies=copies) as a:
            until("the copy", lambda: a.info().version == 2, 60)
            assert [a("check bob 1") for _ in range(6)].count("limited") == 1
        r.process.send_signal(signal.SIGCONT)
    shutil.rmtree(copies)


if __name__ == "__main__":
    run_tests(globals())
