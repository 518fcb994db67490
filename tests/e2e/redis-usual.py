#!/usr/bin/env python3
"""redis-usual.py WEIR.SO [TEST...] -- what the usual limiters in Redis get wrong, each reproduced
on a real redis-server, beside Weir.  docs/redis.md tells the story."""
import sys

from redising import Redis, until
from serving import run_tests

SECOND = 1_000_000_000

# INCR, then EXPIRE if it was the first.
WINDOW = """local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return n <= tonumber(ARGV[1]) and 1 or 0"""

# A sorted set of instants; the caller's clock, in ms; counted after it was added.
LOG = """local now, window = tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - window)
redis.call('ZADD', KEYS[1], now, ARGV[4])
redis.call('PEXPIRE', KEYS[1], window)
return redis.call('ZCARD', KEYS[1]) <= tonumber(ARGV[1]) and 1 or 0"""

# Tokens and their time in a hash; the caller's clock, in ms.
BUCKET = """local capacity, rate, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(state[1]) or capacity, tonumber(state[2]) or now
tokens = math.min(capacity, tokens + math.max(0, now - at) * rate)
local granted = 0
if tokens >= 1 then tokens, granted = tokens - 1, 1 end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil(capacity / rate))
return granted"""


# The same by Redis's clock.
BUCKET_BY_REDIS = "local t = redis.call('TIME')\n" + BUCKET.replace(
    "tonumber(ARGV[3])", "t[1] * 1000 + math.floor(t[2] / 1000)").replace(
    "math.max(0, now - at)", "(now - at)")

# GCRA, as redis-cell keeps it: the moment at which the debt is paid, in ms.
CELL = """local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local paid = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + tonumber(ARGV[2])
if paid > now + ARGV[1] * ARGV[2] then return 0 end
redis.call('SET', KEYS[1], string.format('%.0f', paid), 'PX', string.format('%.0f', paid - now))
return 1"""


def clock(r, ms):
    r.ok("WEIR.CLOCK", 10**18 + ms * 1_000_000)


def test_window_admits_twice_the_limit_across_its_edge(module):
    with Redis(module, clock=True) as r:
        before = sum(r("EVAL", WINDOW, 1, "k", 5, 60000) for _ in range(9))
        r.ok("PEXPIRE", "k", 0)  # the window ends now
        after = sum(r("EVAL", WINDOW, 1, "k", 5, 60000) for _ in range(9))
        assert before + after == 10  # of 5 a minute, in an instant
        granted = 0
        for ms in (59999, 60000):
            clock(r, ms)
            granted += sum(r("WEIR.TAKE", "log", "sliding-log 5/60s")[0] for _ in range(9))
        assert granted == 5


def test_increment_without_expiry_blocks_for_ever(module):
    with Redis(module, clock=True) as r:
        with r.connect() as client:
            client("INCR", "k")  # and the client dies before EXPIRE
        assert r("PTTL", "k") == -1
        assert [r("EVAL", WINDOW, 1, "k", 5, 60000) for _ in range(6)] == [1, 1, 1, 1, 0, 0]
        assert r("PTTL", "k") == -1  # nothing will ever free it
        r.ok("WEIR.TAKE", "ours", "fixed-window 5/60s")
        assert r("PTTL", "ours") > 0


def test_refused_asks_fill_the_log_and_keep_it_full(module):
    with Redis(module, clock=True) as r:
        passed = 0
        for ms in range(0, 300000, 1000):  # one ask a second for five minutes, 5 a minute allowed
            passed += r("EVAL", LOG, 1, "k", 5, ms + 1, 60000, "m%d" % ms)
        assert passed == 5  # and then never again: refused asks count
        assert r("ZCARD", "k") == 60
        granted = 0
        for ms in range(0, 300000, 1000):
            clock(r, ms)
            granted += r("WEIR.TAKE", "log", "sliding-log 5/60s")[0]
        assert granted == 25


def test_log_counts_asks_of_the_same_instant_once(module):
    with Redis(module, clock=True) as r:
        passed = sum(r("EVAL", LOG, 1, "k", 5, 1000, 60000, "1000") for _ in range(100))
        assert passed == 100  # the member is the time: a set has it once
        clock(r, 1000)
        assert sum(r("WEIR.TAKE", "log", "sliding-log 5/60s")[0] for _ in range(100)) == 5


def test_float_bucket_loses_tokens(module):
    with Redis(module, clock=True) as r:
        r.ok("HSET", "k", "tokens", 0, "at", 0)
        for ms in range(1, 10):
            assert r("EVAL", BUCKET, 1, "k", 10, "0.1", ms) == 0
        assert r("EVAL", BUCKET, 1, "k", 10, "0.1", 10) == 0  # ten tenths are less than one
        clock(r, 0)
        assert r("WEIR.TAKE", "ours", "100/1s burst 10", "COST", 10)[0] == 1
        for ms in range(1, 10):
            clock(r, ms)
            assert r("WEIR.TAKE", "ours", "100/1s burst 10")[0] == 0
        clock(r, 10)
        assert r("WEIR.TAKE", "ours", "100/1s burst 10")[0] == 1


def test_callers_clock_mints_tokens(module):
    """Two callers, one of them a minute ahead, by turns: the bucket fills on every turn."""
    with Redis(module, clock=True) as r:
        bucket = BUCKET.replace("math.max(0, now - at)", "math.abs(now - at)")
        passed = sum(r("EVAL", bucket, 1, "k", 5, "0.001", 1000 + 60000 * (i % 2))
                     for i in range(100))
        assert passed == 100
        # Even with max(0, ...): the late caller sets the time back for the other.
        passed = sum(r("EVAL", BUCKET, 1, "k2", 5, "0.001", 1000 + 60000 * (i % 2))
                     for i in range(100))
        assert passed == 100
        clock(r, 1000)  # Redis's own clock, for every client
        assert sum(r("WEIR.TAKE", "ours", "1/1s burst 5")[0] for _ in range(100)) == 5


def test_a_new_master_whose_clock_is_behind_refuses_for_as_long(module):
    """An hour: the states say when, by the clock of the master that is gone."""
    ours = [("WEIR.TAKE", "gcra", "gcra 5/1s"), ("WEIR.TAKE", "bucket", "5/1s")]
    usual = [("EVAL", BUCKET_BY_REDIS, 1, "usual", 5, "0.005"), ("EVAL", CELL, 1, "cell", 5, 200)]

    def passes(r, words):
        answer = r.ok(*words)
        return answer[0] if isinstance(answer, list) else answer

    def is_over(master, replica):
        until("the replica is in step",
              lambda: replica.info("replication", "master_link_status") == "up")
        behind = int(master("TIME")[0]) - int(replica("TIME")[0])
        assert 3590 < behind < 3610, behind
        for words in ours + usual:
            while passes(master, words):  # used up
                pass
        master.ok("WAIT", 1, 10000)
        replica.ok("REPLICAOF", "NO", "ONE")
        if replica("EXISTS", "usual", "cell") < 2:  # they expired before: the machine is slow
            return False
        for words in ours:
            until("a unit comes back", lambda words=words: passes(replica, words), 10)
        assert [passes(replica, words) for words in usual] == [0, 0]  # a unit is due here too
        return True

    for _ in range(20):
        with Redis(module) as master, Redis(module, "--replicaof", "127.0.0.1", str(master.port),
                                            shift=-3600) as replica:
            if is_over(master, replica):
                return
    raise AssertionError("the keys expire before the replica is a master")


def test_list_as_bucket_depends_on_its_filler(module):
    with Redis(module, clock=True) as r:
        for _ in range(2):  # two processes fill it, each at the full rate
            r.ok("RPUSH", "k", *range(5))
        passed = sum(r("LPOP", "k") is not None for _ in range(20))
        assert passed == 10  # of 5
        assert r("LPOP", "k") is None  # and if the filler is gone, nobody passes
        clock(r, 0)
        assert sum(r("WEIR.TAKE", "ours", "5/1s")[0] for _ in range(20)) == 5
        clock(r, 1000)
        assert sum(r("WEIR.TAKE", "ours", "5/1s")[0] for _ in range(20)) == 5


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    run_tests(globals())
