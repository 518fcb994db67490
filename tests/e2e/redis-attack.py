#!/usr/bin/env python3
"""redis-attack.py REDIS-LOAD [--long] [TEST...] -- the client of Redis against servers that mean it
harm: replies that are none, absurd numbers, a byte at a time, without end; many restarts; keys of
every byte.  Each ask is answered once and in time, memory and descriptors stay bounded, and no
password is shown."""
import contextlib
import itertools
import os
import random
import socket
import subprocess
import threading
import time

from redising import Redis
from redisload import EXAMPLE, LONG, LONG_MS, WEIR, Load, load, status, url, weir
from serving import run_tests, until

WELCOME = b"%3\r\n+version\r\n+7.0.15\r\n+mode\r\n+standalone\r\n+role\r\n+master\r\n"
NO_CLUSTER = b"-ERR This instance has cluster support disabled\r\n"
LIMIT = "gcra 1/1h burst 100"


class Fake:
    """A server whose replies to anything but the greeting are made by `answer(words)`: bytes, or
    pieces of them with pauses between, or None, which ends the connection."""

    def __init__(self, answer, greets=True, hosts=1, cluster=False):
        self.answer, self.greets, self.ending = answer, greets, False
        self.cluster = cluster
        self.port, self.listeners = 0, []
        self.open, self.most, self.total = 0, 0, 0
        self.lock = threading.Lock()
        for i in range(hosts):
            listener = socket.create_server(("127.0.0.%d" % (i + 1), self.port), backlog=128)
            self.port = listener.getsockname()[1]
            self.listeners.append(listener)
            threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                s, _ = listener.accept()
                threading.Thread(target=self.serve, args=(s,), daemon=True).start()

    def serve(self, s):
        with self.lock:
            self.open += 1
            self.most = max(self.most, self.open)
            self.total += 1
        with contextlib.suppress(OSError, ValueError):
            with s, s.makefile("rb") as lines:
                while not self.ending:
                    if not self.reply(s, self.command(lines)):
                        break
        with self.lock:
            self.open -= 1

    @staticmethod
    def command(lines):
        head = lines.readline()
        if not head:
            raise OSError
        words = []
        for _ in range(int(head[1:])):
            size = int(lines.readline()[1:])
            words.append(lines.read(size + 2)[:-2])
        return words

    def reply(self, s, words):
        if self.greets and words[0] == b"HELLO":
            answer = WELCOME
        elif self.greets and words[0] == b"CLUSTER" and not self.cluster:
            answer = NO_CLUSTER
        else:
            answer = self.answer(words)
        if answer is None:
            return False
        for piece in [answer] if isinstance(answer, bytes) else answer:
            if self.ending:
                return False
            s.sendall(piece)
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ending = True
        for listener in self.listeners:
            listener.close()

    def url(self, login="", rest=""):
        return "redis://%s127.0.0.1:%d%s" % (login, self.port, rest)


NASTY = [
    b"", b"\r\n", b"\0", b"+\r\n", b":\r\n", b":x\r\n", b":99999999999999999999999\r\n", b"$-2\r\n",
    b":-9223372036854775808\r\n", b":9223372036854775807\r\n", b"$99999999999\r\n", b"$5\r\nab",
    b"$3\r\nabcdef\r\n", b"*-7\r\n", b"*2147483647\r\n", b"*99999999999999999999\r\n", b"*0\r\n",
    b"*1\r\n" * 2000 + b":1\r\n", b"*2\r\n:1\r\n", b"%1\r\n+a\r\n+b\r\n", b"~1\r\n:1\r\n",
    b"_\r\n", b"#t\r\n", b"#x\r\n", b",nan\r\n", b",1e999\r\n", b"(123456789012345678901234\r\n",
    b"=15\r\ntxt:some string\r\n", b"!5\r\nERR x\r\n", b">2\r\n+message\r\n+x\r\n",
    b"|1\r\n+a\r\n:1\r\n", b"-MOVED\r\n", b"-MOVED 99999 127.0.0.1:1\r\n", b"-MOVED -1 x:0\r\n",
    b"-MOVED 1 127.0.0.1:99999\r\n", b"-ASK 1 :1\r\n", b"-NOSCRIPT\r\n", b"-\r\n",
    b"-ERR " + b"x" * 100000 + b"\r\n", b"-TRYAGAIN\r\n", b"-LOADING x\r\n", b"-READONLY x\r\n",
    b"-CLUSTERDOWN x\r\n", b"*2\r\n:1\r\n$-1\r\n", b"*2\r\n:9223372036854775807\r\n$-1\r\n",
    b"*2\r\n:1763000000000000\r\n$2\r\nW\1\r\n", b"*2\r\n:-5\r\n:-5\r\n", b":1\r\n:2\r\n:3\r\n",
    b"*1\r\n*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n",
]


def memory(pid):
    with open("/proc/%d/status" % pid) as file:
        return int([line for line in file if line.startswith("VmHWM")][0].split()[1])  # KiB


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def test_D1_replies_that_are_none(program):
    dice = random.Random(5)
    for greets in (True, False):
        with Fake(lambda words: dice.choice(NASTY + [None]), greets) as fake:
            for limit in (None, LIMIT, "fixed-window 5/1h", "sliding-log 5/1h", "smooth 5/1h"):
                result = load(program, fake.url(), 6 if LONG else 0.6, timeout=50, limit=limit)
                total = result.good + result.errors + result.undone + result.unknown
                assert total > 5, result.tally


def test_D1_a_byte_at_a_time(program):
    def slowly(words):
        for i in range(1000):
            time.sleep(0.02)
            yield b":1\r\n"[i % 4:i % 4 + 1] if i < 4 else b":"

    with Fake(slowly) as fake, Load(program, fake.url(), 2, timeout=50) as result:
        time.sleep(0.5)
    assert result.good == 0 and result.unknown + result.undone > 10, result.tally


def test_D1_replies_without_end(program):
    chunk = b"x" * 65536

    def endless(words):
        yield b"$1000000000\r\n"
        while True:
            yield chunk

    def many(words):
        yield b"*100000000\r\n"
        while True:
            yield b":1\r\n" * 10000

    for answer in (endless, many):
        with Fake(answer) as fake, Load(program, fake.url(), 600, timeout=100) as result:
            until("it is asked", lambda fake=fake: fake.most > 0)
            time.sleep(1)
            most = memory(result.process.pid)
            result.end()
        assert result.good == 0, result.tally
        assert most < 400 * 1024, most  # 16 MiB a reply, a few connections; a sanitizer's share


def test_D1_a_server_that_says_nothing(program):
    """It takes connections, and no more: a few at a time are tried, and none is left behind."""
    with Fake(lambda words: [], greets=False) as fake:
        with Load(program, fake.url(), 600, timeout=50, threads=16) as result:
            until("it is asked", lambda: fake.most > 0)
            time.sleep(4 if LONG else 2)
            open_now = descriptors(result.process.pid)
            result.end()
        assert open_now < 60 and fake.most <= 4, (open_now, fake.most)
        assert result.good == 0 and result.undone > 50, result.tally
        until("all are closed", lambda: fake.open == 0)


def test_D1_many_restarts(program):
    with Redis() as r:
        with Load(program, url(r), 600, timeout=100, limit=LIMIT) as result:
            end = time.monotonic() + (38 if LONG else 2)
            restarts = 0
            while time.monotonic() < end and restarts < 100:
                r.kill()
                r.start()
                restarts += 1
            until("it is asked again", lambda: r("DBSIZE") > 0)
            open_now = descriptors(result.process.pid)
            result.end()
        assert open_now < 40, (restarts, open_now)
        assert result.good > 0, (restarts, result.tally)
        assert load(program, url(r), timeout=LONG_MS).undone == 0


def test_D1_hundreds_of_connections(program):
    """Each ends after two replies, and looks up the host's name: nothing of them is left."""
    commands = itertools.count()
    with Fake(lambda words: None if next(commands) % 3 == 2 else b":1\r\n") as fake:
        there = "redis://localhost:%d" % fake.port
        with Load(program, there, 600, timeout=LONG_MS) as result:
            until("it has connected often", lambda: fake.total > (20000 if LONG else 600), 120)
            pid = result.process.pid
            left = descriptors(pid), len(os.listdir("/proc/%d/task" % pid))
            result.end()
        assert left[0] < 40 and left[1] < 20, left
        assert result.good > 200 and result.undone == 0, result.tally


def test_D1_passwords_are_not_shown(program):
    secret = "s3cr3t-pass"
    refusals = (b"-WRONGPASS invalid\r\n", b"-ERR unknown command\r\n", b"-NOAUTH x\r\n", None,
                b"x\r\n")
    for reply in refusals:
        with Fake(lambda words, reply=reply: reply, greets=False) as fake:
            there = fake.url("ann:%s@" % secret)
            said = [weir("take", "--redis", there, "--limit", "5/1h", "k")[0],
                    weir("redis", "status", there)[0],
                    subprocess.run([EXAMPLE, there], capture_output=True, text=True,
                                   timeout=60).stdout,
                    str(load(program, there, 0.2).tally)]
        assert not any(secret in text for text in said), said
    for wrong in ("redis://:%s@", "redis://:%s@h:x", "rdis://:%s@h", "redis://:%s%%zz@h"):
        said, code = weir("take", "--redis", wrong % secret, "--limit", "5/1h", "k")
        assert code == 2 and secret not in said, said


def test_D1_status_of_a_server_that_lies(program):
    for seconds, micros in ((2**63 - 1, 0), (2**63 // 10**9, 999999), (0, 2**63 - 1), ("x", 0)):
        time_of = b"*2\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(t), t) for t in (
            str(seconds).encode(), str(micros).encode()))
        with Fake(lambda words, reply=time_of: reply if words[0] == b"TIME" else b"+x\r\n") as fake:
            said, code = status(fake.url())
            node, = said["nodes"]
            assert code == 0 and node["version"] == "7.0.15", said
            assert node["clock_margin_ns"] == 0, said  # not known


def test_D1_status_of_valkey(program):
    """Without HELLO its version is in INFO, beside that of a Redis it is compatible with."""
    text = b"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n"
    info = b"$%d\r\n%s\r\n" % (len(text), text)
    with Fake(lambda words: info if words[0] == b"INFO" else b"+x\r\n") as fake:
        said, code = status(fake.url(rest="?protocol=2"))
        assert code == 0 and said["nodes"][0]["version"] == "8.0.1", said


def test_D1_status_asks_what_is_not_known(program):
    """HELLO has told the version and the role."""
    asked = []

    def answer(words):
        asked.append(words[0])
        return b"+x\r\n"

    with Fake(answer) as fake:
        node, = status(fake.url())[0]["nodes"]
        assert node["role"] == "master" and node["version"] == "7.0.15", node
        assert b"PING" in asked and b"INFO" not in asked, asked


def test_D1_status_of_a_server_that_stops(program):
    """Whatever it is asked then: it does not answer, and it is not asked on."""
    for last in (b"INFO", b"WEIR.TAKE", b"COMMAND", b"EVALSHA", b"EVAL", b"TIME", b"PING"):
        pings, stopped = itertools.count(), []

        def answer(words, last=last, stopped=stopped):
            if words[0] == last and (last != b"PING" or next(pings) == 3) or stopped:
                stopped.append(words[0])
                return []
            return b"-NOSCRIPT\r\n" if words[0] == b"EVALSHA" else b"-ERR unknown command\r\n"

        with Fake(answer) as fake:
            for timeout in ("300ms", "3s", "30s"):  # on a busy machine it gives up before the stop
                pings, stopped[:] = itertools.count(), []
                said, code = status(fake.url(rest="?protocol=2"), "--timeout", timeout)
                if stopped:
                    break
            node, = said["nodes"]
            assert code == 1 and not node["answers"], (last, said)
            assert set(stopped) == {last}, (last, stopped)


def test_D2_status_of_a_large_cluster(program):
    """All its nodes are told, or slots would seem to have no master."""
    nodes = 100

    def answer(words):
        if words[0] != b"CLUSTER":
            return b"+x\r\n"
        slots = [b"*3\r\n:%d\r\n:%d\r\n*2\r\n+127.0.0.%d\r\n:%d\r\n" % (
            i * 16384 // nodes, (i + 1) * 16384 // nodes - 1, i + 1, fake.port)
            for i in range(nodes)]
        return b"*%d\r\n%s" % (nodes, b"".join(slots))

    with Fake(answer, hosts=nodes, cluster=True) as fake:
        said, code = status(fake.url())
        assert code == 0 and len(said["nodes"]) == nodes and said["slots"] == 16384, said


def test_D1_keys_of_every_byte(program):
    with Redis() as r:
        for first in range(1, 256, 15):
            key = bytes(range(first, min(first + 15, 256)))
            takes = [subprocess.run([WEIR, "take", "--redis", url(r), "--limit",
                                     "1/1h", "--", key], capture_output=True).returncode
                     for _ in range(2)]
            assert takes == [0, 1], (key, takes)
        long = "k" * 100000
        assert weir("take", "--redis", url(r), "--limit", "1/1h", long)[1] == 0
        assert weir("take", "--redis", url(r), "--limit", "1/1h", long)[1] == 1
        assert weir("take", "--redis", url(r), "--limit", "1/1h", "")[1] in (0, 2)


if __name__ == "__main__":
    run_tests(globals())
