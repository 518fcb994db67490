#!/usr/bin/env python3
"""serve-fleet-hostile.py WEIR [--long] [TEST...] -- a node whose Redis answers nonsense: every
reply may be changed on its way, by chance and by a seed.  The node lives, answers every ask, and is
a good node again when the replies are."""
import random
import socket
import threading

from fleeting import LONG, Node, back, joined, url
from redising import Redis
from serving import run_tests

RULE = """  - name: %s
    key: "{%s}"
    limit: %s
    across: fleet
    within: 20ms
    when_alone: %s
"""
LIMITS = {"bucket": ("token-bucket 40/1s burst 9", "share"), "log": ("sliding-log 30/1s", "closed"),
          "window": ("fixed-window 60/2s", "open"), "sliding": ("sliding-window 60/2s", "share"),
          "daily": ("2000/day", "closed"), "banned": ("token-bucket 5/1s", "closed")}
RULES = "version: 1\nrules:\n" + "".join(
    RULE % (name, name, *row) for name, row in LIMITS.items()
) + "    ban: { refusals: 5/10s, for: 5s }\n"

NUMBERS = [b"0", b"-1", b"1", b"9223372036854775807", b"-9223372036854775808", b"1000001", b"x",
           b"", b"4294967296", b"99999999999999999999", b"1e9", b"+3"]
ERRORS = [b"ERR " + b"x" * 400, b"MOVED 99999 127.0.0.1:1", b"ASK 1 127.0.0.1:1", b"READONLY no",
          b"NOSCRIPT no", b"LOADING", b"BUSY", b"OOM no", b"TRYAGAIN", b"CLUSTERDOWN", b"NOAUTH no"]


# ---------------------------------------------------------------------- values


def parse(data, at):
    """One value of RESP from there, (kind, what), and where it ends; None: more is to come."""
    end = data.find(b"\r\n", at)
    if end < 0:
        return None
    kind, rest, at = data[at:at + 1], data[at + 1:end], end + 2
    if kind == b"$" and int(rest) >= 0:
        end = at + int(rest)
        return ((kind, data[at:end]), end + 2) if len(data) >= end + 2 else None
    if kind not in b"*%~>":
        return (kind, None if kind == b"$" else rest), at
    items = []
    for _ in range(int(rest) * (2 if kind == b"%" else 1)):
        found = parse(data, at)
        if found is None:
            return None
        items.append(found[0])
        at = found[1]
    return (kind, items), at


def show(value):
    kind, what = value
    if kind in b"*%~>":
        n = len(what) // (2 if kind == b"%" else 1)
        return kind + b"%d\r\n" % n + b"".join(show(item) for item in what)
    if kind == b"$":
        return b"$-1\r\n" if what is None else b"$%d\r\n%s\r\n" % (len(what), what)
    return kind + what + b"\r\n"


def change_bytes(dice, what):
    changed = bytearray(what)
    for _ in range(dice.randint(1, 4)):
        changed[dice.randrange(len(changed))] = dice.choice([0, 127, 128, 255, dice.randrange(256)])
    if dice.random() < 0.3:
        del changed[dice.randrange(len(changed) + 1):]
    return bytes(changed) * (dice.randint(2, 50) if dice.random() < 0.1 else 1)


def change_items(dice, items):
    at, how = dice.randrange(len(items)), dice.random()
    if how < 0.15:
        return items[:at] + items[at + 1:]
    if how < 0.3:
        return items[:at] + items[at:at + 1] + items[at:]
    if how < 0.35:
        return items * dice.randint(2, 40)
    return items[:at] + [change(dice, items[at])] + items[at + 1:]


def change(dice, value):
    kind, what = value
    if dice.random() < 0.1:
        return dice.choice([(b":", dice.choice(NUMBERS)), (b"-", dice.choice(ERRORS)), (b"*", []),
                            (b"$", None), (b"$", bytes(range(dice.randrange(256)))), (b"+", b"OK")])
    if kind == b":":
        return kind, dice.choice(NUMBERS)
    if kind == b"$" and what:
        return kind, change_bytes(dice, what)
    if kind == b"*" and what:
        return kind, change_items(dice, what)
    return value


class Liar:
    """Between a node and Redis.  `rate`: of the replies, how many are changed."""

    def __init__(self, port, seed):
        self.to, self.rate, self.dice = port, 0, random.Random(seed)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "redis://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                here, _ = self.listener.accept()
            except OSError:
                return
            there = socket.create_connection(("127.0.0.1", self.to))
            for ends in ((here, there, False), (there, here, True)):
                threading.Thread(target=self.pass_on, args=ends, daemon=True).start()

    def pass_on(self, source, to, lies):
        waiting = b""
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                if lies:
                    waiting += data
                    data, waiting = self.tell(waiting)
                to.sendall(data)
        except OSError:
            pass
        for end in (source, to):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def tell(self, data):
        """Whole replies, changed or not, and what is left."""
        out, at = b"", 0
        while at < len(data) and (found := parse(data, at)) is not None:
            value, at = found
            text = show(change(self.dice, value) if self.dice.random() < self.rate else value)
            if self.dice.random() < self.rate / 50:
                text = text[:self.dice.randrange(len(text) + 1)]
            out += text
        return out, data[at:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


# ----------------------------------------------------------------------- tests


def ask(dice, client, admin):
    """Thirty asks in a row, each answered once; and now and then what an operator does."""
    for _ in range(30):
        client.send("WEIR.CHECK", "COST", dice.choice([1, 1, 2, 5]), dice.choice(list(LIMITS)),
                    "k%d" % dice.randrange(6))
    for _ in range(30):
        answer = client.read()
        assert isinstance(answer, list) and len(answer) == 10, answer
    admin(*dice.choice([("WEIR.EXPLAIN", "bucket", "k1"), ("WEIR.RESET", "bucket", "bucket", "k1"),
                        ("WEIR.BAN", "banned", "k%d" % dice.randrange(50), "5s"),
                        ("WEIR.STATUS",)]))


def test_D5_redis_answers_nonsense(weir):
    for seed in range(1, 5 if LONG else 2):
        dice = random.Random(seed)
        with Redis() as redis, Liar(redis.port, seed) as liar, \
                Node(weir, url(redis), "good", rules=RULES) as good, \
                Node(weir, liar.url, "bad", rules=RULES) as bad, \
                Node(weir, liar.url, "follows") as follows:
            joined(good, bad, follows)
            with bad.resp() as client, bad.resp() as admin:
                for _ in range(100 if LONG else 30):
                    liar.rate = dice.choice([0, 0.02, 0.2, 0.6])
                    ask(dice, client, admin)
            liar.rate = 0
            back(good, bad, follows)


if __name__ == "__main__":
    run_tests(globals())
