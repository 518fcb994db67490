#!/usr/bin/env python3
"""serve-fleet-model.py WEIR [--long] [TEST...] -- random asks on real nodes and a real Redis,
through random faults, judged by a model that knows docs/distributed.md and nothing else.

An ask was decided at some moment between its sending and its answer.  Bounds are judged over those
that lie in a span for certain, so that a slow machine breaks no law.

    meters    at most burst + rate (T + life) in any time T
    windows   their own limit
    all       a limit of an hour or a day knows exactly what passed, if nothing failed and every
              draw was answered in time; and never less, if Redis kept its writes
"""
import os
import random
import signal
import threading
import time

from fleeting import LONG, Node, joined, url
from redising import Redis, until
from serving import run_tests, takes_a_clock

METER, FIXED, SLIDING = "meter", "fixed", "sliding"
HOUR, DAY = 3600, 86400
LEAVES = 0.3  # seconds: a node that ends waits no longer for Redis
LIMITS = {  # name: limit, kind, count, period, burst
    "bucket": ("token-bucket 40/1s burst 20", METER, 40, 1, 20),
    "gcra": ("gcra 200/1s burst 100", METER, 200, 1, 100),
    "leaky": ("leaky-bucket 50/1s burst 25", METER, 50, 1, 25),
    "minute": ("token-bucket 120/1m burst 10", METER, 120, 60, 10),
    "window": ("fixed-window 60/2s", FIXED, 60, 2, 60),
    "hourly": ("fixed-window 1000/1h", FIXED, 1000, HOUR, 1000),
    "daily": ("2000/day", FIXED, 2000, DAY, 2000),
    "sliding": ("sliding-window 60/2s", SLIDING, 60, 2, 60),
    "log": ("sliding-log 30/1s", SLIDING, 30, 1, 30),
}
RULE = """  - name: %s
    key: "{%s}"
    limit: %s
    across: fleet
    within: 100ms
    when_alone: closed
"""
RULES = "version: 1\nrules:\n" + "".join(
    RULE % (name, name, row[0]) for name, row in LIMITS.items())


# ----------------------------------------------------------------------- model


def excess_of_meter(passed, rate, burst):
    """The most beyond the bound, over all spans that begin with one ask and end with another."""
    life = min(max(burst / rate / 4, 0.02), 10)
    worst = 0
    for i, (begin, _, _) in enumerate(passed):
        units = 0
        for end, cost in sorted((end, cost) for _, end, cost in passed[i:]):
            units += cost
            worst = max(worst, units - burst - rate * (end - begin + life))
    return worst


def excess_of_sliding(passed, count, period):
    worst = 0
    for i, (begin, _, _) in enumerate(passed):
        units = sum(cost for _, end, cost in passed[i:] if end < begin + period - 0.00001)
        worst = max(worst, units - count)
    return worst


def excess_of_fixed(passed, count, period):
    units = {}
    for begin, end, cost in passed:
        if begin // period == end // period:
            units[begin // period] = units.get(begin // period, 0) + cost
    return max(units.values(), default=0) - count


def excess(name, passed):
    _, kind, count, period, burst = LIMITS[name]
    if kind == METER:
        return excess_of_meter(passed, count / period, burst)
    if kind == FIXED:
        return excess_of_fixed(passed, count, period)
    return excess_of_sliding(passed, count, period)


# ----------------------------------------------------------------------- story


class Caller(threading.Thread):
    """Asks one node for random keys of random limits, again and again, also after it was killed."""

    def __init__(self, node, seed):
        super().__init__()
        self.node, self.dice, self.ending = node, random.Random(seed), False
        self.keys, self.cost = ["a", "b"][:self.dice.randint(1, 2)], self.dice.choice([1, 1, 3, 8])
        self.passed, self.problem = {}, None

    def run(self):
        while not self.ending:
            try:
                with self.node.resp() as client:
                    while not self.ending:
                        self.step(client)
            except (OSError, EOFError, KeyError):
                time.sleep(0.02)  # killed, and not yet back
            except Exception as problem:
                self.problem = problem
                return

    def step(self, client):
        asks = []
        for _ in range(self.dice.randint(1, 6)):
            names = self.dice.sample(list(LIMITS), self.dice.choice([1, 1, 2, 3]))
            asks.append(({name: self.dice.choice(self.keys) for name in names},
                         self.dice.randint(1, self.cost)))
        begin = time.time()
        for keys, cost in asks:
            client.send("WEIR.CHECK", "COST", cost, *[w for pair in keys.items() for w in pair])
        for keys, cost in asks:
            answer = client.read()
            assert isinstance(answer, list) and len(answer) == 10, answer
            if answer[0]:
                for pair in keys.items():
                    self.passed.setdefault(pair, []).append((begin, time.time(), cost))
        time.sleep(self.dice.random() * 0.02)


def pause(process, span):
    process.send_signal(signal.SIGSTOP)
    time.sleep(span)
    process.send_signal(signal.SIGCONT)


def restart(node, span):
    node.kill()
    time.sleep(span)
    node.start()


def fill_memory(redis, span):
    redis.ok("CONFIG", "SET", "maxmemory", 1)
    time.sleep(span)
    redis.ok("CONFIG", "SET", "maxmemory", 0)


FAULTS = {
    "node killed": lambda redis, node, span: restart(node, span),
    "node stopped": lambda redis, node, span: pause(node.process, span),
    "Redis stopped": lambda redis, node, span: pause(redis.process, span),
    "Redis full": lambda redis, node, span: fill_memory(redis, span),
    "flushed": lambda redis, node, span: redis.ok("FLUSHALL"),
    "scripts flushed": lambda redis, node, span: redis.ok("SCRIPT", "FLUSH"),
    "connections cut": lambda redis, node, span: redis.ok("CLIENT", "KILL", "TYPE", "normal",
                                                          "SKIPME", "yes"),
}


def shift(weir, dice):
    """Of a node's clock: by nothing, an hour, or more than any window."""
    if not takes_a_clock(weir):
        return {}
    library = os.path.join(os.path.dirname(os.path.abspath(weir)), "tests", "shifted-clock.so")
    seconds = dice.choice([0, 3600, -3600, 40 * DAY, -40 * DAY])
    return {"LD_PRELOAD": library, "SHIFT_SECONDS": str(seconds)} if seconds else {}


def used_of(weir, redis, name, key):
    """Of a limit's account, when no node has units of it."""
    with Node(weir, url(redis), "last", rules=RULES) as last:
        joined(last)
        with last.resp() as client:
            def accounts():
                return client.json("WEIR.EXPLAIN", name, key)["accounts"]

            account, = until("Redis answers", accounts)
    return account["limit"] - account["remaining"] - 1  # after the ask that is explained


def stopped_in_time(node):
    """All that it paid back has come to Redis: it waits for that for a while."""
    begin = time.monotonic()
    node.stop()
    return time.monotonic() - begin < LEAVES


def play(weir, seed, n_faults):
    dice, faults = random.Random(seed), []
    with Redis() as redis:
        nodes = [Node(weir, url(redis), "n%d" % i, rules=RULES,
                      env=shift(weir, dice) if i == 1 else None)
                 for i in range(dice.choice([2, 3]))]
        try:
            joined(*nodes)
            callers = [Caller(node, seed * 100 + i) for i, node in enumerate(nodes)]
            for caller in callers:
                caller.start()
            for _ in range(n_faults):
                time.sleep(dice.random())
                faults.append(dice.choice(list(FAULTS)))
                FAULTS[faults[-1]](redis, dice.choice(nodes), dice.random() * dice.choice([0.2, 2]))
            time.sleep(2)
            for caller in callers:
                caller.ending = True
                caller.join()
                assert caller.problem is None, caller.problem
            exact = not faults and not any(node.fleet["asks_alone"] for node in nodes)
        finally:
            in_time = [stopped_in_time(node) for node in nodes]
        judge(weir, redis, "seed %d, %s" % (seed, faults), faults.count("flushed"),
              exact and all(in_time), callers)


def judge(weir, redis, said, flushes, exact, callers):
    pairs = sorted({pair for caller in callers for pair in caller.passed})
    for name, key in pairs:
        passed = sorted(ask for caller in callers for ask in caller.passed.get((name, key), []))
        units = sum(cost for _, _, cost in passed)
        beyond = excess(name, passed) - flushes * LIMITS[name][4]
        assert beyond <= 0.001, "%s: %s %s: %.2f beyond the bound" % (said, name, key, beyond)
        if key == "a" and LIMITS[name][3] >= HOUR and flushes == 0:
            used = used_of(weir, redis, name, key)
            window = passed[0][0] // LIMITS[name][3]
            if time.time() // LIMITS[name][3] == window:  # else the account has begun another
                assert used == units or (used > units and not exact), (said, name, used, units)
    print("%s: %d keys%s" % (said, len(pairs), ", exact" if exact else ""))


def test_D3_nothing_fails(weir):
    for seed in range(1, 4 if LONG else 2):
        play(weir, seed, 0)


def test_D3_anything_fails(weir):
    for seed in range(100, 112 if LONG else 101):
        play(weir, seed, 1 + seed % 4)


if __name__ == "__main__":
    run_tests(globals())
