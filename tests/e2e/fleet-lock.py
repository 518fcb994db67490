#!/usr/bin/env python3
"""fleet-lock.py REDIS-LOAD [--long] [TEST...] -- `weir fleet lock` and the locks of weir-redis.h on
a real redis-server and a real cluster: holders and waiters that are killed or stand still, a Redis
that stands still, a master that is killed."""
import importlib
import json
import os
import signal
import subprocess
import tempfile
import time

from redising import Redis, until
from redisload import EXAMPLE, WEIR, url, weir
from serving import run_tests

Cluster = importlib.import_module("redis-cluster").Cluster
LOCK_EXAMPLE = os.path.join(os.path.dirname(EXAMPLE), "example-lock")


class Held:
    """`weir fleet lock` with a shell that says its token, and ends when it reads a line."""

    def __init__(self, there, *options, script="echo $WEIR_LOCK_TOKEN; read line; echo $line"):
        self.process = subprocess.Popen(
            [WEIR, "fleet", "lock", "jobs", "--redis", there, *options, "--", "sh", "-c", script],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def token(self):
        """Waits until it has the lock."""
        return int(self.process.stdout.readline())

    def end(self, line="end"):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        out, said = self.process.communicate(timeout=60)
        return self.process.returncode, out + said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def show(there):
    said, code = weir("fleet", "lock", "jobs", "--show", "--json", "--redis", there)
    assert code == 0, said
    return json.loads(said)


def wait_for_line(there, n):
    until("%d wait" % n, lambda: show(there)["waiting"] == n)


def test_D7_one_at_a_time(program):
    """Ten at once: each appends a beginning and an end, and no other's stand between them."""
    with Redis() as r, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "log")
        script = "echo b $WEIR_LOCK_TOKEN >>%s; sleep 0.02; echo e $WEIR_LOCK_TOKEN >>%s" % (
            path, path)
        all = [Held(url(r), "--wait", "1m", script=script) for _ in range(10)]
        for held in all:
            assert held.end()[0] == 0
        lines = [line.split() for line in open(path)]
        tokens = [int(token) for _, token in lines]
        assert [kind for kind, _ in lines] == ["b", "e"] * 10, lines
        assert tokens == sorted(tokens) and len(set(tokens)) == 10, tokens
        assert show(url(r))["holder"] is None


def test_D7_refusals_and_codes(program):
    with Redis() as r:
        there = url(r)
        with Held(there) as held:
            token = held.token()
            assert show(there)["token"] == token
            said, code = weir("fleet", "lock", "jobs", "--redis", there, "--", "true")
            assert code == 75 and "held by" in said, said
            said, code = weir("fleet", "lock", "jobs", "--wait", "1s", "--redis", there, "--",
                              "true")
            assert code == 75 and "nobody else is waiting" in said, said
            assert weir("fleet", "lock", "other", "--redis", there, "--", "true")[1] == 0
            said, code = weir("fleet", "lock", "jobs", "--release", "--token", "1", "--redis",
                              there)
            assert code == 1 and "another token" in said, said
            assert held.end("7")[0] == 0
        said, code = weir("fleet", "lock", "jobs", "--wait", "1m", "--redis", there, "--", "sh",
                          "-c", "exit 3")
        assert code == 3, said
        said, code = weir("fleet", "lock", "jobs", "--wait", "1m", "--redis", there, "--",
                          "no-such-command")
        assert code == 127, said
        said, code = weir("fleet", "lock", "jobs", "--release", "--redis", there)
        assert code == 1 and said == "free\n", said
        r.ok("SET", "weir:{lock:text}", "something else")
        said, code = weir("fleet", "lock", "text", "--redis", there, "--", "true")
        assert code == 125 and "WRONGTYPE" in said, said
    said, code = weir("fleet", "lock", "jobs", "--redis", "redis://127.0.0.1:1", "--", "true")
    assert code == 125 and "does not answer" in said, said


def test_D7_an_empty_id_is_nobodys(program):
    """Least of all that of a holder whose time is over."""
    path = os.path.join(os.path.dirname(__file__), "..", "..", "cluster", "fleet", "lock.lua")
    script = open(path).read()
    with Redis() as r:
        def ask(verb, id="", life=10**10, token=0):
            return r("EVAL", script, 3, "{k}", "{k}:line", "{k}:heard", verb, id, life, token, "")

        held, token = ask("take", "ann", 10000)[:2]
        assert held == 1
        until("its time is over", lambda: ask("look")[5] == "")
        for verb in ["keep", "take", "wait", "free", "quit"]:
            assert ask(verb, token=token)[0] == 0, verb
            assert ask("look") == [0, token, 0, 0, 0, ""], (verb, ask("look"))


def test_D7_in_order(program):
    """First come, first served; one that was killed and one that stands still lose their places."""
    with Redis() as r:
        there = url(r)
        with Held(there) as holder:
            holder.token()
            waiters = []
            for i in range(4):
                waiters.append(Held(there, "--wait", "1m"))
                wait_for_line(there, i + 1)
            waiters[0].process.kill()
            waiters[2].process.send_signal(signal.SIGSTOP)
            wait_for_line(there, 2)
            assert holder.end()[0] == 0
            first = waiters[1].token()
            waiters[2].process.send_signal(signal.SIGCONT)
            wait_for_line(there, 2)
            assert waiters[1].end()[0] == 0
            second = waiters[3].token()
            assert waiters[3].end()[0] == 0
            third = waiters[2].token()
            assert waiters[2].end()[0] == 0
            assert first < second < third
            waiters[0].process.communicate()


def test_D7_killed_holder(program):
    """Its lock ends with its lifetime, and its command gets SIGTERM."""
    with Redis() as r, tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ended")
        script = "trap 'echo > %s; exit' TERM; echo $WEIR_LOCK_TOKEN; while :; do sleep 0.05; done"
        with Held(url(r), "--lifetime", "3s", script=script % path) as held:
            token = held.token()
            with Held(url(r), "--wait", "1m") as waiter:
                wait_for_line(url(r), 1)
                held.process.kill()
                assert waiter.token() > token
                assert waiter.end()[0] == 0
            until("the command has ended", lambda: os.path.exists(path))


def test_D7_renewed(program):
    """A lifetime is much shorter than the work."""
    with Redis() as r:
        with Held(url(r), "--lifetime", "6s") as held:
            token = held.token()
            left = [show(url(r))["left_ns"]]
            until("it was renewed", lambda: left.append(show(url(r))["left_ns"])
                  or left[-1] > left[-2])
            assert show(url(r))["token"] == token
            assert held.end()[0] == 0


class Store:
    """Obeys the largest token that it has seen."""

    def __init__(self):
        self.token, self.texts = 0, []

    def write(self, token, text):
        if token < self.token:
            return False
        self.token = token
        self.texts.append(text)
        return True


def test_D7_fencing_stops_a_stalled_holder(program):
    """The holder stands still for longer than its lifetime, as a machine that is suspended does;
    when it goes on it writes before it looks, and the store refuses."""
    with Redis() as r:
        there, store = url(r), Store()
        with Held(there, "--lifetime", "500ms") as ann:
            token = ann.token()
            assert store.write(token, "ann")
            ann.process.send_signal(signal.SIGSTOP)
            with Held(there, "--wait", "1m") as bob:
                assert store.write(bob.token(), "bob")
                ann.process.send_signal(signal.SIGCONT)
                assert not store.write(token, "ann again")
                assert store.texts == ["ann", "bob"]
                code, said = ann.end("")
                assert "lost" in said and code == 76, (code, said)
                assert show(there)["holder"] is not None  # Bob's: it was not given back by Ann
                assert bob.end()[0] == 0


def test_D7_lost_and_kept_going(program):
    with Redis() as r:
        there = url(r)
        with Held(there, "--lifetime", "3s") as held:
            held.token()
            said, code = weir("fleet", "lock", "jobs", "--release", "--redis", there)
            assert code == 0 and said.startswith("taken from "), said
            assert held.process.wait(60) == 76
        with Held(there, "--lifetime", "3s", "--keep-going") as held:
            held.token()
            assert weir("fleet", "lock", "jobs", "--release", "--redis", there)[1] == 0
            line = held.process.stderr.readline()
            assert "goes on without it" in line, line
            assert held.end("4") == (0, "4\n")


def test_D7_redis_stands_still(program):
    """For longer than a place in line lasts: the holder goes on, and so does the line's order."""
    with Redis() as r:
        there = url(r)
        with Held(there, "--lifetime", "1m") as holder:
            token = holder.token()
            with Held(there, "--wait", "1m") as first:
                wait_for_line(there, 1)
                with Held(there, "--wait", "1m") as second:
                    wait_for_line(there, 2)
                    r.process.send_signal(signal.SIGSTOP)
                    time.sleep(2.5)
                    r.process.send_signal(signal.SIGCONT)
                    assert holder.end()[0] == 0
                    tokens = [token, first.token()]
                    assert first.end()[0] == 0
                    tokens.append(second.token())
                    assert second.end()[0] == 0 and tokens == sorted(tokens), tokens


def test_D7_example(program):
    with Redis() as r:
        said = subprocess.run([LOCK_EXAMPLE, url(r)], capture_output=True, text=True, timeout=60)
        assert said.stdout == ("ann writes\nbob writes\nann's write is refused: another has had the "
                               "lock since\nbob has the lock, and the store says bob\n"), said


def test_D7_master_killed(program):
    """kill -9 of the master that has the lock, in a cluster: its replica has it too, and tokens
    grow; the holder goes on, or is told that the lock is lost."""
    with Cluster() as cluster:
        there = cluster.url()
        with Held(there, "--lifetime", "1m") as held:
            token = held.token()
            master = next(n for n in cluster.masters() if n("EXISTS", "weir:{lock:jobs}") == 1)
            with Held(there, "--wait", "2m") as waiter:
                wait_for_line(there, 1)
                master.kill()
                until("its replica took its place", lambda: len(cluster.masters()) == 3, 60)
                cluster.wait()
                code, said = held.end("7")
                assert code in (0, 76), (code, said)
                assert waiter.token() > token
                assert waiter.end()[0] == 0


if __name__ == "__main__":
    run_tests(globals())
