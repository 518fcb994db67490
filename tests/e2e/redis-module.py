#!/usr/bin/env python3
"""redis-module.py WEIR.SO [TEST...] -- the module inside a real redis-server: its commands, what is
kept (RDB, AOF, DUMP, COPY, replicas), what is refused, Redis Cluster."""
import os
import subprocess
import sys

from redising import VERSION, Error, Redis, until
from redisload import url, weir
from serving import run_tests

MS = 1_000_000
SECOND = 1000 * MS

# One fresh key, max_burst 4, one per second: time in ms, quantity, the five numbers.
CELL = [
    (0, 6, [1, 5, 5, -1, 0]), (0, 1, [0, 5, 4, -1, 1]), (0, 1, [0, 5, 3, -1, 2]),
    (0, 1, [0, 5, 2, -1, 3]), (0, 1, [0, 5, 1, -1, 4]), (0, 1, [0, 5, 0, -1, 5]),
    (0, 1, [1, 5, 0, 1, 5]), (3000, 1, [0, 5, 2, -1, 3]), (3100, 1, [0, 5, 1, -1, 4]),
    (4000, 1, [0, 5, 1, -1, 4]), (8000, 1, [0, 5, 4, -1, 1]), (9500, 1, [0, 5, 4, -1, 1]),
    (9500, 0, [0, 5, 4, -1, 1]), (9500, 2, [0, 5, 2, -1, 3]), (9500, 5, [1, 5, 2, 3, 3]),
]
STORE = "Cell error: Store error: "
USAGE = STORE + "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"


def test_S1_throttle_answers_as_redis_cell(module):
    with Redis(module, clock=True) as r:
        for ms, quantity, expected in CELL:
            r.ok("WEIR.CLOCK", 10**18 + ms * MS)
            assert r("CL.THROTTLE", "k", 4, 1, 1, quantity) == expected, (ms, quantity)
        assert r("CL.THROTTLE", "user123", 15, 30, 60) == [0, 16, 15, -1, 2]
        assert r("CL.THROTTLE", "k") == USAGE
        assert r("CL.THROTTLE", "k", 1, 1, 1, 1, 1) == USAGE
        assert r("CL.THROTTLE", "k", "x", 1, 1) == STORE + "Couldn't parse as integer: x"
        assert r("CL.THROTTLE", "k", 1, 0, 1) == STORE + "Zero rates are not supported"
        assert r("CL.THROTTLE", "k", 1, 1, 0) == STORE + "Zero rates are not supported"
        assert r("CL.THROTTLE") == USAGE
        assert r("CL.THROTTLE", "k", 1, 0, 0, "x") == STORE + "Couldn't parse as integer: x"
        assert r("CL.THROTTLE", "k", 1, 1, 1, -1).startswith("Cell error: Negative quantities")
        assert r("CL.THROTTLE", "k", -1, 1, 1).startswith("Cell error: Negative numbers")
        assert r("CL.THROTTLE", "k", 2**63 - 1, 1, 1).startswith("Cell error: The burst")
        assert r("CL.THROTTLE", "k", 1, 1, 2**62).startswith("Cell error: The period")
        assert r("CL.THROTTLE", "k", 1, 1, 2**64).startswith(STORE)


def test_S1_throttle_reads_numbers_as_redis_cell(module):
    with Redis(module, clock=True) as r:
        r.ok("WEIR.CLOCK", 10**18)
        for i, words in enumerate((("+15", "30", "60", "+1"), ("015", "0030", "60", "01"),
                                   ("15", "30", "0" * 100 + "60"), ("-0", "30", "60", "-0"))):
            burst, left = (1, 1) if words[0] == "-0" else (16, 15)
            assert r("CL.THROTTLE", "k%d" % i, *words)[:3] == [0, burst, left], words
        for word in ("", "+", "-", "--1", " 1", "1 ", "1.0", "1e3", "0x10", "\u00e9"):
            assert r("CL.THROTTLE", "k", 1, 1, word) == \
                STORE + "Couldn't parse as integer: " + word
        assert r("DBSIZE") == 3  # a look left nothing


def test_throttle_keeps_the_debt_under_another_limit(module):
    with Redis(module, clock=True) as r:
        r.ok("WEIR.CLOCK", 10**18)
        assert r("CL.THROTTLE", "k", 9, 10, 10, 5) == [0, 10, 5, -1, 5]  # owes 5 s
        assert r("CL.THROTTLE", "k", 9, 3, 30, 0) == [0, 10, 9, -1, 5]  # of 100 s
        assert r("CL.THROTTLE", "k", 3, 7, 7, 4)[0] == 1
        assert r("CL.THROTTLE", "k", 9, 10, 10, 0) == [0, 10, 5, -1, 5]  # a refusal wrote nothing


def test_throttle_keeps_a_long_debt_under_a_fine_limit(module):
    """In its parts, of which a nanosecond has 999983, 2306 s are the longest debt: what is owed now
    counts, not what was owed when the key was written."""
    with Redis(module, clock=True) as r:
        r.ok("WEIR.CLOCK", 10**18)
        assert r("CL.THROTTLE", "k", 0, 1, 9000) == [0, 1, 0, -1, 9000]
        r.ok("WEIR.CLOCK", 10**18 + 8000 * SECOND)
        assert r("CL.THROTTLE", "k", 999, 999983, 60) == [1, 1000, 0, 1000, 1000]
        assert r("CL.THROTTLE", "k", 0, 1, 9000, 0)[4] == 1000


def test_throttle_and_take_share_an_account(module):
    with Redis(module, clock=True) as r:
        r.ok("WEIR.CLOCK", 10**18)
        assert r("CL.THROTTLE", "ann", 15, 30, 60) == [0, 16, 15, -1, 2]
        assert r("WEIR.TAKE", "ann", "gcra 30/60 burst 16") == [1, 16, 14, -1, 4000, 0]
        assert r("CL.THROTTLE", "ann", 15, 30, 60, 0) == [0, 16, 14, -1, 4]


def test_throttle_goes_on_from_a_value_of_redis_cell(module):
    with Redis(module, clock=True) as r:
        r.ok("WEIR.CLOCK", 10**18)
        r.ok("SET", "old", 10**18 + 3 * SECOND, "PX", 3000)
        assert r("CL.THROTTLE", "old", 4, 1, 1) == [0, 5, 1, -1, 4]
        r.ok("SET", "far", 10**18 + 10**10 * SECOND // 2)
        assert r("CL.THROTTLE", "far", 4, 1, 1) == [1, 5, 0, 1, 5]


def test_D1_several_follow_a_clock_that_was_set_back(module):
    """A new master's clock may be an hour behind."""
    with Redis(module, clock=True) as r:
        both = ["WEIR.TAKE", "a", "5/10s", "COST", 5, "AND", "b", "5/20s", "COST", 5]
        for begin in (10**18, 10**18 - 3600 * SECOND):
            r.ok("WEIR.CLOCK", begin)
            r(*both)
            assert [answer[0] for answer in r(*both)] == [0, 0]
            r.ok("WEIR.CLOCK", begin + 21 * SECOND)
            assert [answer[0] for answer in r(*both)] == [1, 1]


def test_D1_verbs(module):
    with Redis(module, clock=True) as r:
        r.ok("WEIR.CLOCK", 10**18)
        assert r("WEIR.TAKE", "k", "5/10s") == [1, 5, 4, -1, 2000, 0]
        assert r("weir.take", "k", "5/10s", "cost", 4, "ns") == [1, 5, 0, -1, 10 * SECOND, 0]
        assert r("WEIR.TAKE", "k", "5/10s") == [0, 5, 0, 2000, 10000, 0]
        assert r("WEIR.TAKE", "k", "5/10s", "WAIT", 2000) == [1, 5, 0, -1, 12000, 2000]
        assert r("WEIR.TAKE", "k", "5/10s", "COST", 6) == [0, 5, 0, -1, 12000, 0]
        assert r("WEIR.GIVE", "k", "5/10s", "COST", 3) == "OK"
        assert r("WEIR.PEEK", "k", "5/10s", "COST", 2) == [1, 5, 0, -1, 10000, 0]
        assert r("WEIR.PEEK", "k", "5/10s", "COST", 0) == [1, 5, 2, -1, 6000, 0]
        info = r("WEIR.INFO", "k")
        assert dict(zip(info[::2], info[1::2])) == {
            "algorithm": "token-bucket", "limit": "token-bucket 5/10s", "most": 5, "remaining": 2,
            "reset_ms": 6000}
        assert r("WEIR.RESET", "k", "none") == 1
        assert r("EXISTS", "k") == 0 and r("WEIR.INFO", "k") is None
        assert r("WEIR.GIVE", "k", "5/10s", "COST", 3) == "OK" and r("EXISTS", "k") == 0
        assert r("WEIR.TAKE", "k", "5/10s", "COST", 6)[0] == 0 and r("EXISTS", "k") == 0


def test_a_refusal_never_says_at_once(module):
    """A client that waits as long as it is told would ask without end."""
    with Redis(module, clock=True) as r:
        r.ok("WEIR.CLOCK", 10**18)
        for limit in ("1000000/1s burst 1", "gcra 999983/1s burst 1", "leaky-bucket 3/1us burst 1"):
            assert r("WEIR.TAKE", limit, limit)[0] == 1
            assert r("WEIR.TAKE", limit, limit)[3:5] == [1, 1], limit


def test_D1_draw(module):
    with Redis(module, clock=True) as r:
        def draw(*words):
            answer = r("WEIR.DRAW", "{k}", "10/10s", "DEMAND", "{k}:demand", *words)
            assert answer[8:] == [now[0] // 1000, 2500]  # b / 4r
            return answer[:8]

        now = [10**18]
        r.ok("WEIR.CLOCK", now[0])
        assert draw("NEED", 2, "WAITING", 7) == [5, 10, 5, -1, 5000, 0, 0, 0]  # half of what is left
        assert draw("NEED", 2, "WAITING", 7) == [2, 10, 3, -1, 7000, 0, 0, 0]
        assert draw("NEED", 3, "WAITING", 7) == [3, 10, 0, -1, 10000, 0, 1, 0]
        assert draw("NEED", 2, "WAITING", 7) == [0, 10, 0, 2000, 10000, 0, 1, 0]
        assert draw("NEED", 11) == [0, 10, 0, -1, 10000, 0, 1, 0]
        now[0] += 10**10
        r.ok("WEIR.CLOCK", now[0])
        # All the demand is here: its share is 0.9 * 0.1 + 10 / 4, of which it has one
        assert draw("HAVE", 1, "ASKED", 8, "FAST", 20000, "SLOW", 8000) == \
            [1, 10, 9, -1, 1000, 0, 0, 2]
        assert isinstance(r("WEIR.DRAW", "{k}", "10/10s"), Error)
        assert r("WEIR.DRAW", "k", "5/s", "DEMAND", "k") == "ERR the same key twice"
        r.ok("SET", "text", "hello")
        assert r("WEIR.DRAW", "k", "5/s", "DEMAND", "text").startswith("WRONGTYPE")
        keys = ["WEIR.DRAW", "{k}", "5/s", "NEED", 1, "DEMAND", "{k}d", "ID", "{k}i"]
        assert r("COMMAND", "GETKEYS", *keys) == ["{k}", "{k}d", "{k}i"]


def test_D1_repay(module):
    with Redis(module, clock=True) as r:
        def draw(limit, units):
            answer = r("WEIR.DRAW", "{k}", limit, "DEMAND", "{k}d", "NEED", units, "WAITING", units)
            return answer[8]

        def repay(limit, units, drawn, *more):
            return r("WEIR.REPAY", "{k}", limit, "DEMAND", "{k}d", "DRAWN", drawn, "UNITS", units,
                     *more)

        def left(limit):
            return r("WEIR.PEEK", "{k}", limit, "COST", 0)[2]

        r.ok("WEIR.CLOCK", 10**18)
        drawn = draw("10/10s", 6)
        r.ok("WEIR.CLOCK", 10**18 + 10**6)
        assert [repay("10/10s", 4, drawn, "ID", "{k}id") for _ in range(3)] == [4, 4, 4]
        assert left("10/10s") == 8
        r.ok("WEIR.CLOCK", 10**18 + 2600 * 10**6)
        assert repay("10/10s", 2, drawn) == 0  # they are not worth anything any more
        r.ok("DEL", "{k}")
        drawn = draw("fixed-window 10/10s", 6)
        r.ok("WEIR.CLOCK", 10**18 + 10**10)
        draw("fixed-window 10/10s", 5)
        assert repay("fixed-window 10/10s", 6, drawn) == 0  # that window is over
        assert left("fixed-window 10/10s") == 5
        assert repay("10/10s", 1, 0, "AND", "b", "5/s").startswith("ERR unknown option")
        assert r("WEIR.REPAY", "{k}", "5/s", "DEMAND", "{k}d") == "ERR DRAWN is needed"
        assert r("WEIR.REPAY", "{k}", "5/s", "DRAWN", 5) == "ERR DEMAND is needed"
        keys = ["WEIR.REPAY", "{k}", "5/s", "DEMAND", "{k}d", "DRAWN", 5, "ID", "{k}i"]
        assert r("COMMAND", "GETKEYS", *keys) == ["{k}", "{k}d", "{k}i"]


def test_D1_a_repeated_ask_is_charged_once(module):
    with Redis(module) as r:
        ask = ["k", "gcra 10/1h burst 10", "COST", 3, "ID", "id", "KEEP", 60000]
        first = r("WEIR.TAKE", *ask)
        assert [r("WEIR.TAKE", *ask)[:3] for _ in range(3)] == 3 * [first[:3]] == 3 * [[1, 10, 7]]
        assert 0 < r("PTTL", "id") <= 60000
        assert r("WEIR.GIVE", *ask) == "ERR the id belongs to another ask"
        for cost in (0, 2, 4, 1000):  # a repeat asks for as much
            assert r("WEIR.TAKE", *ask[:3], cost, *ask[4:]) == "ERR the id belongs to another ask"
        assert r("WEIR.GIVE", *ask[:4], "ID", "id2") == "OK"
        assert r("WEIR.GIVE", *ask[:4], "ID", "id2") == "OK"
        assert r("WEIR.GIVE", *ask[:3], 4, "ID", "id2") == "ERR the id belongs to another ask"
        assert r("WEIR.PEEK", "k", ask[1], "COST", 0)[2] == 10
        both = ["a", "5/1h", "ID", "id3", "AND", "b", "1/1h"]
        assert [[a[0] for a in r("WEIR.TAKE", *both)] for _ in range(3)] == 3 * [[1, 1]]
        assert [a[2] for a in r("WEIR.PEEK", "a", "5/1h", "COST", 0, "AND", "b", "1/1h", "COST",
                                0)] == [4, 0]
        assert r("WEIR.TAKE", "a", "5/1h", "AND", "b", "1/1h", "ID", "id4")[1][0] == 0
        assert r("EXISTS", "id4") == 0  # a refusal leaves nothing
        assert r("WEIR.TAKE", "k", "5/s", "ID", "id3") == "ERR the id belongs to another ask"
        assert r("WEIR.TAKE", "k", "5/s", "ID", "k") == "ERR the same key twice"
        r.ok("RPUSH", "list", 1)
        assert r("WEIR.TAKE", "k", "5/s", "ID", "list") == "ERR the id belongs to another ask"
        r.ok("WEIR.TAKE", "k", "5/s", "ID", "short", "KEEP", 1)
        until("it is forgotten", lambda: r("EXISTS", "short") == 0)


def test_a_look_looks_at_no_id(module):
    """What its id has taken says nothing about the next ask; weir_redis_peek sends none."""
    with Redis(module, clock=True) as r:
        r.ok("WEIR.CLOCK", 10**18)
        assert r("WEIR.TAKE", "k", "10/1h", "COST", 3, "ID", "id")[2] == 7
        for cost in (0, 1, 3):
            for more in ([], ["ID", "id"], ["ID", "new"]):
                assert r("WEIR.PEEK", "k", "10/1h", "COST", cost, *more)[:3] == [1, 10, 7 - cost]
        assert r("EXISTS", "new") == 0


def test_D1_an_id_is_kept_for_a_century_at_most(module):
    """More would be no time to Redis, nor to its replicas."""
    with Redis(module) as master, replica_of(master, module) as replica:
        for keep in (2**63 - 1, 10**18, 10**15):
            ask = ["WEIR.TAKE", "k", "5/1h", "ID", "id%d" % keep, "KEEP", keep]
            assert [master(*ask)[0], master(*ask)[0]] == [1, 1]
            assert 10**12 < master("PTTL", ask[4]) < 10**13
        master.ok("WAIT", 1, 10000)
        assert replica("DBSIZE") == 4 == master("DBSIZE")
        assert master("WEIR.PEEK", "k", "5/1h", "COST", 0)[2] == 2


def test_all_or_nothing(module):
    with Redis(module, clock=True) as r:
        r.ok("WEIR.CLOCK", 10**18)
        both = ["WEIR.TAKE", "{u}:minute", "fixed-window 5/1m", "COST", 2, "AND", "{u}:day",
                "10/day", "COST", 2]
        answers = [r(*both) for _ in range(3)]
        assert [[a[0] for a in answer] for answer in answers] == [[1, 1], [1, 1], [0, 1]]
        assert r("WEIR.PEEK", "{u}:day", "10/day", "COST", 0)[2] == 6  # the third took nothing
        assert r("WEIR.GIVE", *both[1:]) == "OK"
        assert r("WEIR.PEEK", "{u}:day", "10/day", "COST", 0)[2] == 8
        assert r("WEIR.TAKE", "a", "5/s", "AND", "a", "6/s") == (
            "ERR the same key twice; use two, as {k}:minute and {k}:day")
        assert r("COMMAND", "GETKEYS", *both) == ["{u}:minute", "{u}:day"]


def test_a_changed_limit_keeps_what_was_used(module):
    with Redis(module, clock=True) as r:
        r.ok("WEIR.CLOCK", 10**18)
        assert r("WEIR.TAKE", "k", "sliding-log 5/10s", "COST", 4)[2] == 1
        assert r("WEIR.TAKE", "k", "sliding-log 6/20s")[:3] == [1, 6, 1]
        assert r("WEIR.PEEK", "k", "sliding-log 3/20s", "COST", 0)[2] == 0
        assert r("WEIR.TAKE", "k", "gcra 6/20s")[2] == 5  # another algorithm begins anew


def test_D3_a_refusal_by_a_smaller_count_leaves_the_account(module):
    with Redis(module, clock=True) as r:
        r.ok("WEIR.CLOCK", 10**18)
        assert r("WEIR.TAKE", "k", "fixed-window 8/1h", "COST", 7)[2] == 1
        assert r("WEIR.TAKE", "k", "fixed-window 5/1h")[0] == 0
        assert r("WEIR.TAKE", "k", "fixed-window 8/1h", "COST", 2)[0] == 0
        assert r("WEIR.TAKE", "k", "fixed-window 9/1h", "COST", 2)[0] == 1


def test_a_refusal_leaves_the_account_of_another_algorithm(module):
    with Redis(module) as r:
        r.ok("WEIR.TAKE", "k", "sliding-log 5/1h", "COST", 4)
        before = r("GET", "k")
        assert r("WEIR.TAKE", "k", "gcra 5/1h", "COST", 6)[0] == 0
        assert r("WEIR.TAKE", "k", "gcra 5/1h", "COST", 0)[0] == 1
        assert r("CL.THROTTLE", "k", 4, 1, 1, 6)[0] == 1
        assert r("WEIR.GIVE", "k", "fixed-window 5/1h align=first") == "OK"
        assert r("GET", "k") == before


def test_errors(module):
    with Redis(module) as r:
        assert r("WEIR.TAKE", "k", "tokn 5/10s").startswith("ERR unknown")
        r.ok("CL.THROTTLE", "c", 15, 30, 60)
        assert isinstance(r("WEIR.TAKE", "k", "15 30 60 "), Error)  # no limit here
        r.ok("DEL", "c")
        for words in (["WEIR.TAKE", "k"], ["WEIR.TAKE"], ["WEIR.TAKE", "k", "5/"],
                      ["WEIR.TAKE", "k", "5/s", "COST"], ["WEIR.TAKE", "k", "5/s", "COST", -1],
                      ["WEIR.TAKE", "k", "5/s", "COST", "x"], ["WEIR.TAKE", "k", "5/s", "NONE"],
                      ["WEIR.TAKE", "k", "5/s", "AND"], ["WEIR.TAKE", "k", "5/s", "AND", "b"],
                      ["WEIR.TAKE", "k", "5/s\0"], ["WEIR.TAKE", "k", "5/s" + " " * 300],
                      ["WEIR.TAKE", "k", "sliding-log 10000000/s"],
                      ["WEIR.TAKE", "k", "sliding-log 100000/1h"],
                      ["WEIR.TAKE", "k", "sliding-window 5/1h buckets=1000000"],
                      ["WEIR.DRAW", "k", "5/s", "AND", "b"], ["WEIR.TAKE", "k", "5/s", "ID"],
                      ["WEIR.DRAW", "k", "5/s", "NEED", 1], ["WEIR.TAKE", "k", "5/s", "KEEP", 0],
                      ["WEIR.RESET"], ["WEIR.INFO"], ["WEIR.INFO", "a", "b"],
                      ["WEIR.CLOCK", 5]):
            answer = r(*words)
            assert isinstance(answer, Error) and answer.startswith("ERR "), (words, answer)
        many = ["WEIR.TAKE", "k0", "5/s"]
        for i in range(1, 40):
            many += ["AND", "k%d" % i, "5/s"]
        assert r(*many) == "ERR too many keys"
        assert r("DBSIZE") == 0


def test_no_refusal_says_to_come_back_at_once(module):
    """Milliseconds are rounded up: a client that obeys does not spin."""
    with Redis(module, clock=True) as r:
        r.ok("WEIR.CLOCK", 10**18)
        for limit in ("gcra 100000/1s burst 1", "fixed-window 1/2us", "sliding-log 1/2us"):
            assert r("WEIR.TAKE", limit, limit)[0] == 1
            assert r("WEIR.TAKE", limit, limit)[:4] == [0, 1, 0, 1], limit


def test_foreign_values_stay(module):
    with Redis(module) as r:
        r.ok("SET", "text", "hello")
        r.ok("SET", "number", 5)
        r.ok("RPUSH", "list", 1)
        r.ok("SET", "damaged", b"W\x01\x05")
        r.ok("SET", "empty", "")
        r.ok("SET", "larger", 10**18 - 1)  # counters, no times of redis-cell
        for key in ("text", "number", "larger", "list", "damaged", "empty"):
            for words in (["CL.THROTTLE", key, 1, 1, 1], ["WEIR.TAKE", key, "5/s"],
                          ["WEIR.PEEK", key, "5/s"], ["WEIR.GIVE", key, "5/s"],
                          ["WEIR.DRAW", key, "5/s", "DEMAND", "d"], ["WEIR.RESET", key],
                          ["WEIR.REPAY", key, "5/s", "DEMAND", "d", "DRAWN", 1],
                          ["WEIR.INFO", key],
                          ["WEIR.TAKE", "new", "5/s", "AND", key, "5/s"]):
                answer = r(*words)
                assert isinstance(answer, Error) and answer.startswith("WRONGTYPE"), (words, answer)
        assert r("GET", "number") == "5" and r("GET", "text") == "hello"
        assert r("LRANGE", "list", 0, -1) == ["1"]
        assert r("EXISTS", "new") == 0 and r("GET", "empty") == ""
        r.ok("WEIR.TAKE", "account", "5/1h")
        assert r("WEIR.RESET", "account", "text").startswith("WRONGTYPE")
        assert r("EXISTS", "account") == 1  # all of them, or none
        assert r("WEIR.RESET", "account", "account") == 1


def now_us(r):
    seconds, us = r("TIME")
    return int(seconds) * 1000000 + int(us)


def test_expiry_is_rounded_up(module):
    with Redis(module) as r:
        for limit in ("1/s", "gcra 5/1m burst 3", "fixed-window 5/1m", "sliding-window 5/1m",
                      "sliding-log 5/1m", "5/day", "1/day zone=Asia/Tokyo", "leaky-bucket 1/5s"):
            if VERSION < 7:  # which does not say when a key expires
                break
            # The time is asked outside of the script: in newer servers it stands still inside.
            before = now_us(r)
            reset, expiry = r.ok("EVAL", """
                local reset = redis.call('WEIR.TAKE', KEYS[1], ARGV[1], 'NS')[5]
                return {reset, redis.call('PEXPIRETIME', KEYS[1])}""", 1, "k:" + limit, limit)
            after = now_us(r)
            assert before * 1000 + reset < expiry * MS <= after * 1000 + reset + MS, limit
        # Many units per millisecond: a state that lived for 0 ms would let everything pass.
        granted = r("EVAL", """local granted = 0
            for i = 1, 1000 do
              granted = granted + redis.call('WEIR.TAKE', KEYS[1], '100000/s burst 1')[1]
            end
            return granted""", 1, "fast")
        assert granted < 1000
        r.ok("WEIR.TAKE", "short", "1/20ms")
        until("the key expires", lambda: r("EXISTS", "short") == 0, 10)


def test_D1_a_grant_gives_a_key_its_expiry_again(module):
    with Redis(module) as r:
        for limit in ("gcra 5/1h", "fixed-window 5/1h", "sliding-log 5/1h"):
            assert r("WEIR.TAKE", limit, limit)[2] == 4 and r("PERSIST", limit) == 1
            assert r("WEIR.TAKE", limit, limit)[2] == 3 and r("PTTL", limit) > 0, limit


def fill(r):
    """A key of each algorithm, and what they answer."""
    for limit in LIMITS:
        assert r.ok("WEIR.TAKE", "k:" + limit, limit, "COST", 2)[0] == 1, limit
    return look(r)


def look(r):
    return [r.ok("WEIR.PEEK", "k:" + limit, limit, "COST", 0)[:3] for limit in LIMITS]


LIMITS = ["gcra 5/1h", "token-bucket 5/1h", "leaky-bucket 5/1h", "leaky-bucket 5/1h queue 9",
          "fixed-window 5/1w", "sliding-window 5/1h", "sliding-log 5/1h", "5/month",
          "token-bucket 1009/86400s burst 100000"]


def test_survives_reload_and_restart(module):
    r = Redis(module)
    expected = fill(r)
    assert [left for _, _, left in expected] == [3, 3, 3, 8, 3, 3, 3, 3, 99998]
    ttls = [r.expiry("k:" + limit) for limit in LIMITS]
    assert r("DEBUG", "RELOAD") == "OK"
    assert look(r) == expected
    r.ok("SAVE")
    r.kill()
    r.start()
    assert look(r) == expected
    assert [r.expiry("k:" + limit) for limit in LIMITS] == ttls
    r.stop()


def test_append_only_file(module):
    r = Redis(module, "--appendonly", "yes", "--appendfsync", "always")
    expected = fill(r)
    r.kill()
    r.start()
    assert look(r) == expected
    r.ok("BGREWRITEAOF")
    until("the rewrite is done", lambda: r.info("persistence", "aof_rewrite_in_progress") == "0"
          and r.info("persistence", "aof_rewrite_scheduled") == "0")
    r.ok("WEIR.TAKE", "k:gcra 5/1h", "gcra 5/1h")
    r.ok("WEIR.RESET", "k:5/month")
    r.kill()
    r.start()
    assert r("WEIR.PEEK", "k:gcra 5/1h", "gcra 5/1h", "COST", 0)[2] == 2
    assert r("EXISTS", "k:5/month") == 0
    r.stop()


def test_a_server_without_the_module_loads_the_keys(module):
    r = Redis(module)
    fill(r)
    r.ok("SAVE")
    r.kill()
    with Redis(None, "--dbfilename", "dump.rdb", folder=r.folder) as plain:
        assert plain("DBSIZE") == len(LIMITS)
        assert plain("TYPE", "k:gcra 5/1h") == "string"


def test_dump_restore_copy_rename(module):
    with Redis(module) as r:
        r.ok("WEIR.TAKE", "k", "gcra 5/1h", "COST", 2)
        r.ok("COPY", "k", "copy")
        r.ok("RENAME", "k", "moved")
        r.ok("EVAL", "return redis.call('RESTORE', 'again', 0, redis.call('DUMP', 'copy'))", 0)
        for key in ("copy", "moved", "again"):
            assert r("WEIR.PEEK", key, "gcra 5/1h", "COST", 0)[2] == 3, key


def replica_of(master, module, *options):
    replica = Redis(module, "--replicaof", "127.0.0.1", str(master.port), "--repl-diskless-load",
                    "on-empty-db", *options)
    until("the replica is in step", lambda: replica.info("replication",
                                                         "master_link_status") == "up")
    return replica


def test_a_replica_may_load_beside_its_old_data(module):
    """Redis asks each module whether it can bear that, and loads from a file otherwise."""
    with Redis(module) as master, replica_of(master, module, "--repl-diskless-load",
                                             "swapdb") as replica:
        log = open(os.path.join(replica.folder, "log")).read()
        assert "with EOF to parser" in log, log


def test_valkey_may_move_slots_at_once(module):
    """Since Valkey 9, if all modules can bear it."""
    with Redis(module, cluster=True) as r:
        said = r("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", 0, 1, "NODE", "0" * 40)
        assert isinstance(said, Error) and "module" not in said, said


def test_replicas_get_the_resulting_state(module):
    with Redis(module) as master:
        master.ok("WEIR.TAKE", "before", "gcra 5/1h", "COST", 1)
        with replica_of(master, module) as replica:
            expected = fill(master)
            master.ok("CL.THROTTLE", "cell", 4, 5, 3600)
            master.ok("WAIT", 1, 10000)
            assert look(replica) == expected
            for limit in LIMITS:  # the same bytes, and the same expiry
                key = "k:" + limit
                assert master("GET", key) == replica("GET", key)
                assert master.expiry(key) == replica.expiry(key)
            assert replica("WEIR.PEEK", "before", "gcra 5/1h", "COST", 0)[2] == 4
            for words in (["WEIR.TAKE", "k", "5/s"], ["CL.THROTTLE", "k", 1, 1, 1],
                          ["WEIR.GIVE", "k", "5/s"], ["WEIR.RESET", "k"],
                          ["WEIR.REPAY", "k", "5/s", "DEMAND", "d", "DRAWN", 1]):
                assert replica(*words).startswith("READONLY"), words
            # Failover: the replica goes on from there.
            master.ok("WEIR.RESET", "before")
            master.ok("WAIT", 1, 10000)
            replica.ok("REPLICAOF", "NO", "ONE")
            assert look(replica) == expected
            assert replica("EXISTS", "before") == 0
            assert replica.ok("WEIR.TAKE", "k:gcra 5/1h", "gcra 5/1h")[2] == 2
            assert replica.ok("CL.THROTTLE", "cell", 4, 5, 3600)[2] == 3


def test_only_what_changes_is_replicated(module):
    with Redis(module, "--appendonly", "yes") as r:
        assert r("WEIR.TAKE", "k", "gcra 1/1h")[0] == 1
        r.ok("SELECT", 0)
        size = r.info("persistence", "aof_current_size")
        for _ in range(20):
            assert r("WEIR.TAKE", "k", "gcra 1/1h")[0] == 0
            assert r("CL.THROTTLE", "c", 0, 1, 60, 2)[0] == 1
            r.ok("WEIR.PEEK", "k", "gcra 1/1h")
            r.ok("WEIR.GIVE", "k", "gcra 1/1h", "COST", 0)
            r.ok("WEIR.TAKE", "k", "gcra 1/1h", "AND", "other", "5/s")
        assert r.info("persistence", "aof_current_size") == size


def test_cluster_refuses_keys_of_two_slots(module):
    with Redis(module, cluster=True) as r:
        r.ok("CLUSTER", "ADDSLOTS", *range(16384))
        until("the cluster is up", lambda: "cluster_state:ok" in r("CLUSTER", "INFO"))
        answer = r("WEIR.TAKE", "a", "5/s", "AND", "b", "5/s")
        assert isinstance(answer, Error) and answer.startswith("CROSSSLOT"), answer
        assert [a[0] for a in r.ok("WEIR.TAKE", "{u}a", "5/s", "AND", "{u}b", "5/s")] == [1, 1]
        assert r("WEIR.RESET", "a", "b").startswith("CROSSSLOT")
        assert r("WEIR.RESET", "{u}a", "{u}b") == 2
        assert r("CL.THROTTLE", "x", 15, 30, 60) == [0, 16, 15, -1, 2]


def test_rights_without_scripts(module):
    """Those that docs/redis.md names: the client finds the module without COMMAND."""
    with Redis(module) as r:
        r.ok("ACL", "SETUSER", "ann", "on", ">pw", "~weir:*", "+weir.take", "+weir.peek",
             "+weir.give")
        for verb in ("take", "peek", "give"):
            said, code = weir(verb, "--redis", url(r, "ann:pw@"), "--limit", "10/1h", "k")
            assert code == 0, (verb, said)


def test_a_give_of_which_the_rest_is_not_known(module):
    with Redis(module) as r:
        r.ok("ACL", "SETUSER", "ann", "on", ">pw", "~weir:*", "+weir.take", "+weir.give")
        to = ("--redis", url(r, "ann:pw@"), "--limit", "10/1h", "--name", "n", "k")
        assert weir("take", *to)[1] == 0
        said, code = weir("give", *to)
        assert code == 0 and "given back; what is left is not known" in said, (said, code)
        assert weir("peek", "--redis", url(r), *to[2:])[0] == "would be granted, leaving 9 of 10\n"


def test_access_control_by_key(module):
    with Redis(module) as r:
        r.ok("ACL", "SETUSER", "ann", "on", ">pw", "~mine:*", "+@all")
        r.ok("ACL", "SETUSER", "bob", "on", ">pw", "~*", "+weir.peek")
        with r.connect() as ann:
            assert ann("AUTH", "ann", "pw") == "OK"
            assert ann("WEIR.TAKE", "mine:1", "5/s")[0] == 1
            assert ann("WEIR.TAKE", "other", "5/s").startswith("NOPERM")
            assert ann("WEIR.TAKE", "mine:1", "5/s", "AND", "other", "5/s").startswith("NOPERM")
            assert ann("CL.THROTTLE", "other", 1, 1, 1).startswith("NOPERM")
            assert ann("WEIR.RESET", "mine:1", "other").startswith("NOPERM")
        with r.connect() as bob:
            assert bob("AUTH", "bob", "pw") == "OK"
            assert bob("WEIR.PEEK", "k", "5/s")[0] == 1
            assert bob("WEIR.TAKE", "k", "5/s").startswith("NOPERM")


def test_access_control_by_category(module):
    """Where modules may have categories: newer than 7.0, which is tested by hand."""
    with Redis(module) as r:
        if "weir" not in r("ACL", "CAT"):
            assert VERSION < 8, r("ACL", "CAT")
            return
        r.ok("ACL", "SETUSER", "ann", "on", ">pw", "~*", "+@weir")
        with r.connect() as ann:
            assert ann("AUTH", "ann", "pw") == "OK"
            assert ann("WEIR.TAKE", "k", "5/s")[0] == 1
            assert ann("CL.THROTTLE", "c", 1, 1, 1)[0] == 0
            assert ann("GET", "k").startswith("NOPERM")
        r.ok("ACL", "SETUSER", "bob", "on", ">pw", "~*", "+@read")
        with r.connect() as bob:
            assert bob("AUTH", "bob", "pw") == "OK"
            assert bob("WEIR.PEEK", "k", "5/s")[0] == 1
            assert bob("WEIR.TAKE", "k", "5/s").startswith("NOPERM")


def test_words_that_are_missing(module):
    """Redis 6.2 asks where the keys are before it is known that there are any."""
    for cluster in (False, True):
        with Redis(module, cluster=cluster) as r:
            r.ok("ACL", "SETUSER", "ann", "on", ">pw", "~mine:*", "+@all")
            with r.connect() as ann:
                assert ann("AUTH", "ann", "pw") == "OK"
                for verb in ("WEIR.TAKE", "WEIR.PEEK", "WEIR.GIVE", "WEIR.DRAW", "WEIR.REPAY",
                             "WEIR.RESET", "WEIR.INFO", "CL.THROTTLE"):
                    assert isinstance(ann(verb), Error), verb
                    assert isinstance(ann(verb, "mine:1", "5/s", "ID"), Error) or cluster, verb
                    ann("COMMAND", "GETKEYS", verb)


def test_out_of_memory(module):
    with Redis(module) as r:
        r.ok("WEIR.TAKE", "k", "5/1h")
        r.ok("CONFIG", "SET", "maxmemory-policy", "noeviction")
        r.ok("CONFIG", "SET", "maxmemory", 1)
        assert r("WEIR.TAKE", "k", "5/1h").startswith("OOM")
        assert r("CL.THROTTLE", "c", 1, 1, 1).startswith("OOM")
        assert r("WEIR.PEEK", "k", "5/1h", "COST", 0)[2] == 4
        assert r("WEIR.GIVE", "k", "5/1h") == "OK"
        for new in (("WEIR.GIVE", "k", "5/1h", "ID", "{k}id"),
                    ("WEIR.REPAY", "k", "5/1h", "DEMAND", "{k}demand", "DRAWN", 1)):
            assert r(*new).startswith("OOM"), new
        assert r("DBSIZE") == 1


def test_in_transactions_and_scripts(module):
    with Redis(module) as r:
        r.ok("MULTI")
        r.ok("WEIR.TAKE", "k", "5/1h")
        r.ok("WEIR.TAKE", "k", "5/1h")
        assert [a[2] for a in r.ok("EXEC")] == [4, 3]
        assert r("EVAL", "return redis.call('WEIR.TAKE', KEYS[1], '5/1h')[3]", 1, "k") == 2
        r.ok("WATCH", "k")
        with r.connect() as other:
            other("WEIR.TAKE", "k", "5/1h")
        r.ok("MULTI")
        r.ok("PING")
        assert r("EXEC") is None


def test_many_limits_and_unload(module):
    with Redis(module) as r:
        for i in range(3000):
            assert r("WEIR.TAKE", "k%d" % (i % 7), "%d/1h" % (i + 1), "COST", 0)[0] == 1
        r.ok("MODULE", "UNLOAD", "weir")
        assert isinstance(r("MODULE", "LOAD", os.path.abspath(module), "nonsense"), Error)
        r.ok("MODULE", "LOAD", os.path.abspath(module))
        assert r("WEIR.TAKE", "x", "5/1h")[0] == 1


def test_a_load_that_fails_leaves_nothing(module):
    """The module is there already: it goes on, with its own clock."""
    with Redis(module) as r:
        def load(times, *words):
            for _ in range(times):
                assert isinstance(r("MODULE", "LOAD", os.path.abspath(module), *words), Error)
            return int(r.info("memory", "used_memory"))

        used = [load(1000) for _ in range(5)]  # the server's own buffers change now and then
        assert min(after - before for before, after in zip(used, used[1:])) < 16000, used
        load(1, "test-clock")
        load(1, "nonsense")
        assert r("WEIR.TAKE", "k", "1/1s")[0] == 1
        until("its clock goes on", lambda: r("WEIR.TAKE", "k", "1/1s")[0] == 1, 10)


def test_memory_of_a_key(module):
    """At most 40 bytes more than a counter with an expiry."""
    with Redis(module) as r:
        r.ok("SET", "counter", 5, "PX", 100000)
        r.ok("CL.THROTTLE", "account", 15, 30, 60)
        more = r("MEMORY", "USAGE", "account") - r("MEMORY", "USAGE", "counter")
        assert more <= 40, more


def test_clock_is_real_without_the_argument(module):
    with Redis(module) as r:
        assert isinstance(r("WEIR.CLOCK", 1), Error)
        assert r("WEIR.TAKE", "k", "1/2s")[0] == 1
        assert r("WEIR.TAKE", "k", "1/2s")[0] == 0
        until("two seconds pass", lambda: r("WEIR.TAKE", "k", "1/2s")[0] == 1, 10)


def test_D1_the_shell_asks_the_module(module):
    """Also where scripts are not allowed."""
    weir = os.path.join(os.path.dirname(module), "..", "weir")
    with Redis(module) as r:
        r.ok("ACL", "SETUSER", "ann", "on", ">pw", "~*", "+@all", "-@scripting")
        words = ["--redis", "redis://ann:pw@127.0.0.1:%d" % r.port, "--limit", "2/1h", "k"]
        for verb, code in [("take", 0), ("take", 0), ("take", 1), ("give", 0)]:
            done = subprocess.run([weir, verb, *words], timeout=60, stdout=subprocess.DEVNULL)
            assert done.returncode == code, (verb, done)
        assert r.info("commandstats", "cmdstat_weir.take").startswith("calls=3,")


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    run_tests(globals())
