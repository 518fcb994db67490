#!/usr/bin/env python3
"""redis-forged.py WEIR.SO [TEST...] -- the module and the scripts on keys that somebody has damaged
or made up, and with words that make no sense: each ask is answered, nothing that was answered with
an error is changed, and every key that is written is an account with an expiry."""
import importlib
import random
import struct
import sys

from redising import Error, Redis
from serving import encode, run_tests

scripts = importlib.import_module("redis-scripts")
LIMITS = ["gcra 5/1h", "token-bucket 1009/86400s burst 100000", "leaky-bucket 5/1h queue 9",
          "fixed-window 5/1h", "fixed-window 5/1h align=first", "sliding-window 5/1h",
          "sliding-log 5/1h", "5/month", "5/day zone=Europe/Berlin", "smooth 5/1h", "warm-up 5/1h"]
ABSURD = [0, 1, -1, 2**31, 2**32, 2**52, 2**53, 2**62, 2**63 - 1, -2**63, 2**64, 10**30]


def raw(r, *words):
    """A bulk string as bytes."""
    r.client.send(*words)
    n = int(r.client.line()[1:])
    if n < 0:
        return None
    while len(r.client.bytes) < n + 2:
        r.client.more()
    data, r.client.bytes = r.client.bytes[:n], r.client.bytes[n + 2:]
    return data


def samples(r):
    """Accounts, a demand and receipts as they really are."""
    found = []
    for limit in LIMITS:
        r.ok("WEIR.DRAW", "k", limit, "DEMAND", "d", "NEED", 2, "ID", "i")
        r.ok("WEIR.TAKE", "k", limit, "ID", "j")
        found += [raw(r, "GET", key) for key in ("k", "d", "i", "j") if r("EXISTS", key)]
        r.ok("FLUSHALL")
    return found


def forge(dice, good):
    """One of them with a few bytes changed, cut, or grown."""
    data = bytearray(dice.choice(good))
    for _ in range(dice.choice((0, 1, 1, 2, 4, 16))):
        at = dice.randrange(len(data))
        data[at] = dice.choice((0, 1, 127, 128, 255, dice.randrange(256), data[at] ^ 1))
    if dice.random() < 0.2:  # a number that is absurd
        at = dice.randrange(len(data))
        data[at:at + 8] = struct.pack("<Q", dice.choice(ABSURD) % 2**64)
    end = dice.random()
    if end < 0.2:
        data = data[:dice.randrange(len(data) + 1)]
    elif end < 0.3:
        data += bytes(dice.randrange(256) for _ in range(dice.randrange(1, 40)))
    return bytes(data)


def verbs(dice, limit):
    cost = dice.choice((0, 1, 5, 6, 2**53, 2**63 - 1))
    return dice.choice((
        ["WEIR.TAKE", "k", limit, "COST", cost], ["WEIR.PEEK", "k", limit, "COST", cost],
        ["WEIR.TAKE", "k", limit, "COST", cost, "WAIT", dice.choice((0, 1000, 2**63 - 1))],
        ["WEIR.TAKE", "other", "9/s", "AND", "k", limit, "COST", cost, "ID", "i"],
        ["WEIR.GIVE", "k", limit, "COST", cost], ["WEIR.INFO", "k"],
        ["WEIR.TAKE", "k", limit, "COST", cost, "ID", "i"],
        ["WEIR.GIVE", "k", limit, "COST", cost, "ID", "i"],
        ["WEIR.DRAW", "k", limit, "DEMAND", "d", "NEED", max(cost, 1), "ID", "i"],
        ["WEIR.DRAW", "k", limit, "DEMAND", "d", "WAITING", cost, "HAVE", cost, "ASKED", cost,
         "FAST", cost, "SLOW", cost],
        ["WEIR.REPAY", "k", limit, "DEMAND", "d", "DRAWN", dice.choice((0, cost, 10**15)), "UNITS",
         max(cost, 1), "ID", "i"],
        ["CL.THROTTLE", "k", 4, 5, 3600, cost], ["CL.THROTTLE", "k", 4, 5, 3600]))


def check_numbers(words, answer):
    if isinstance(answer, list) and isinstance(answer[0], list):
        for part in answer:
            check_numbers(words, part)
    elif words[0] == "CL.THROTTLE":
        refused, most, left, retry, reset = answer
        assert refused in (0, 1) and 0 <= left <= most and retry >= -1 and reset >= 0, (words,
                                                                                        answer)
    elif words[0] in ("WEIR.TAKE", "WEIR.PEEK", "WEIR.DRAW"):
        granted, most, left, retry, reset, wait = answer[:6]
        assert granted >= 0 and 0 <= left <= most, (words, answer)
        assert retry >= -1 and reset >= -1 and wait >= 0, (words, answer)


def test_D1_forged_values_under_keys(module):
    dice = random.Random(14)
    with Redis(module, clock=True) as r:
        r.ok("WEIR.CLOCK", 10**18)
        good = samples(r)
        for _ in range(6000):
            values = {key: forge(dice, good) for key in "kdi" if key == "k" or dice.random() < 0.3}
            r.ok("FLUSHALL")
            for key, value in values.items():
                r.ok("SET", key, value)
            words = verbs(dice, dice.choice(LIMITS))
            answer = r(*words)
            said = (words, values, answer)
            if isinstance(answer, Error):
                assert answer.startswith(("WRONGTYPE", "ERR ", "Cell error")), said
            else:
                check_numbers(words, answer)
            for key in r("KEYS", "*"):
                value = raw(r, "GET", key)
                if value != values.get(key):
                    assert not isinstance(answer, Error) and r("PTTL", key) > 0, said
                    assert value[:2] in (b"W\1", b"D\1", b"I\1", b"I\2", b"I\3"), said


def memory(pid):
    with open("/proc/%d/status" % pid) as file:
        return int([line for line in file if line.startswith("VmHWM")][0].split()[1])  # KiB


def test_D1_a_forged_head_takes_no_memory(module):
    """30 bytes that speak of a log of a gigabyte."""
    with Redis(module) as r:
        r.ok("WEIR.TAKE", "k", "sliding-log 5/1h")
        before = memory(r.process.pid)
        count = b"\x80\x94\xeb\x4c"  # 161,155,584
        r.ok("SET", "k", raw(r, "GET", "k")[:3] + count + raw(r, "GET", "k")[4:-6])
        for words in (["WEIR.TAKE", "k", "sliding-log 5/1h"], ["WEIR.INFO", "k"],
                      ["WEIR.PEEK", "k", "sliding-log 6/1h"], ["WEIR.RESET", "k"]):
            r(*words)
        assert memory(r.process.pid) - before < 64 * 1024


def test_D1_a_key_of_a_limit_above_the_bound(module):
    """Written when there was none: what is wrong with it is said."""
    with Redis(module) as r:
        r.ok("WEIR.TAKE", "k", "sliding-log 5/1h")
        value = raw(r, "GET", "k")
        r.ok("SET", "k", value[:3] + b"\xa0\x8d\x06" + value[4:])  # 100,000
        answer = r("WEIR.INFO", "k")
        assert isinstance(answer, Error) and "a key has at most 262144 bytes" in answer, answer


def test_D1_absurd_words(module):
    dice = random.Random(5)
    pieces = ["k", "i", "d", "AND", "ID", "KEEP", "COST", "WAIT", "NS", "DEMAND", "NEED", "WAITING",
              "HAVE", "ASKED", "FAST", "SLOW", "DRAWN", "UNITS", "5/1h", "sliding-log 5/1h",
              "5/day", "", "x" * 70000, "\0", "5/s burst 99999999999999999999", *ABSURD]
    commands = ["CL.THROTTLE", "WEIR.TAKE", "WEIR.PEEK", "WEIR.GIVE", "WEIR.DRAW", "WEIR.REPAY",
                "WEIR.RESET", "WEIR.INFO"]
    with Redis(module) as r:
        for _ in range(6000):
            words = [dice.choice(commands)]
            if words[0] != "CL.THROTTLE" and dice.random() < 0.8:
                words += [dice.choice("kj"), dice.choice(("5/1h", "fixed-window 3/1h"))]
            words += [dice.choice(pieces) for _ in range(dice.randrange(9))]
            answer = r(*words)
            if isinstance(answer, Error):
                assert answer.startswith(("ERR ", "WRONGTYPE", "Cell error")), (words, answer)
            r("COMMAND", "GETKEYS", *words)
        for key in r("KEYS", "*"):
            assert r("PTTL", key) != -1, key


def test_D1_absurd_limits(module):
    """The largest and the smallest, at every verb, one after the other on the same keys."""
    dice = random.Random(6)

    def number():
        near = dice.choice((0, 2 ** dice.randrange(64), 10 ** dice.randrange(19), 2**63))
        return max(1, near + dice.randrange(-2, 3))

    def limit():
        text = "%s %d/%d%s" % (dice.choice((
            "gcra", "token-bucket", "leaky-bucket", "fixed-window", "sliding-window", "sliding-log",
            "smooth", "warm-up")), number(), number() if dice.random() < 0.5 else 1,
            dice.choice(("ns", "us", "ms", "s", "h")))
        for option in (" burst %d", " queue %d", " buckets=%d"):
            text += option % number() if dice.random() < 0.3 else ""
        return text

    with Redis(module) as r:
        passed = 0
        for _ in range(6000):
            words = [dice.choice(("TAKE", "PEEK", "GIVE", "DRAW", "REPAY")), dice.choice("kj"),
                     dice.choice(("token-bucket 2305843009213693952/1ns burst 9007199254740992",
                                  *[limit() for _ in range(50)]))]
            words += {"DRAW": ["DEMAND", "d", "NEED", number(), "WAITING", number()],
                      "REPAY": ["DEMAND", "d", "DRAWN", number(), "UNITS", number()],
                      }.get(words[0], ["COST", number()])
            answer = r("WEIR." + words[0], *words[1:])
            passed += not isinstance(answer, Error)
            if dice.random() < 0.2:
                r("CL.THROTTLE", dice.choice("kj"), *[number() for _ in range(4)])
                r("WEIR.INFO", "k")
        assert passed > 1000, passed


def script(r, name):
    return r.ok("SCRIPT", "LOAD", scripts.text_of(name))


def asks(r):
    """Takes by each script that decides: keys and arguments.  5 an hour."""
    hour, price = 3600 * 10**6, 3600 * 10**9 // 5
    meter, window, log, ring = (scripts.head_of(r, limit, state) for limit, state in (
        ("gcra 5/1h", 17), ("fixed-window 5/1h", 17), ("sliding-log 5/1h", 32),
        ("sliding-window 5/1h buckets=4", 17 + 20)))
    decide = script(r, "decide")
    items = {
        "m": [meter, struct.pack("<11q", 1, 1000, 0, price // 1000, 0, 2**52, 0, hour, 0, price,
                                 5 * price)],
        "w": [window, struct.pack("<4q", 1, 5, hour, 0)],
        "s": [ring, struct.pack("<7q", 1, 5, 5, hour // 4, 1, hour, 4500002)],
        "l": [log, struct.pack("<5q", 1, 5, hour, 6, 3600002)],
    }
    found = [
        ["EVALSHA", script(r, "meter"), 1, "k",
         scripts.meter_terms(meter, price, 5 * price)],
        ["EVALSHA", script(r, "window"), 1, "k", scripts.window_terms(window, 5, hour)],
        ["EVALSHA", script(r, "sliding-log"), 1, "k", log, struct.pack("<4q", 1, 5, hour, 6),
         3600002],
    ]
    for verb in ("take", "give"):
        found += [["EVALSHA", decide, 1, "k", verb, 0, kind, *words]
                  for kind, words in items.items()]
    found.append(["EVALSHA", decide, 2, "k", "i", "take", 1000, "m", *items["m"]])
    numbers = struct.pack("<9q", 1, 0, 1, 1000, 0, 400000, 1, 250, 1000)
    found.append(["EVALSHA", decide, 2, "k", "d", "draw", 0, "m", *items["m"],
                  numbers + struct.pack("<2q", 5 * 10**6, 10002)])
    found.append(["EVALSHA", decide, 2, "k", "d", "back", 0, "m", *items["m"],
                  struct.pack("<4q", 10**15, 0, 5 * 10**6, 10002)])
    return found, (meter, window, log, ring)


def test_D1_scripts_on_forged_values(module):
    """Whatever is not an account is answered as it is, and stays."""
    dice = random.Random(7)
    with Redis(module, clock=True) as r:
        r.ok("WEIR.CLOCK", 10**18)
        good = samples(r)
        commands, heads = asks(r)
        good += [head + bytes(dice.randrange(256) for _ in range(n)) for head in heads
                 for n in (0, 5, 16, 17, 26, 32, 37, 60)]
        for _ in range(6000):
            values = {key: forge(dice, good) for key in "kdi" if key == "k" or dice.random() < 0.3}
            r.ok("FLUSHALL")
            for key, value in values.items():
                r.ok("SET", key, value)
            words = dice.choice(commands)
            answer = r(*words)
            assert not isinstance(answer, Error), (words, values, answer)
            for key in r("KEYS", "*"):
                assert key in values or r("PTTL", key) != -1, (words, values)


def test_D1_many_asks_in_one_transaction(module):
    with Redis(module) as r:
        commands = [["MULTI"]] + 500 * [["WEIR.TAKE", "k", "100/1h"]] + [["EXEC"]]
        r.client.raw(b"".join(encode(words) for words in commands))
        answers = [r.client.read() for _ in commands]
        assert sum(a[0] for a in answers[-1]) == 100
        granted = r("EVAL", """local granted = 0
            for i = 1, 500 do
              local got = redis.pcall('WEIR.TAKE', KEYS[1], i % 2 == 0 and '7/1h' or 'nonsense')
              granted = granted + (got[1] or 0)
            end
            return granted""", 1, "s")
        assert granted == 7


def test_D1_a_reader_may_peek(module):
    """Of Redis 7 on, rights to a key may be to read it only."""
    with Redis(module) as r:
        if isinstance(r("ACL", "SETUSER", "ann", "on", ">pw", "%R~*", "+@all"), Error):
            return
        r.ok("WEIR.TAKE", "k", "5/1h")
        with r.connect() as ann:
            assert ann("AUTH", "ann", "pw") == "OK"
            assert ann("WEIR.PEEK", "k", "5/1h", "COST", 0)[2] == 4
            assert ann("WEIR.INFO", "k")[7] == 4
            for words in (["WEIR.TAKE", "k", "5/1h"], ["WEIR.GIVE", "k", "5/1h"],
                          ["WEIR.RESET", "k"], ["CL.THROTTLE", "k", 1, 1, 1]):
                assert ann(*words).startswith("NOPERM"), words


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    run_tests(globals())
