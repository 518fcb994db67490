#!/usr/bin/env python3
"""redis-throttle.py WEIR.SO [TEST...] -- CL.THROTTLE at random, and WEIR.TAKE under gcra on the
same keys, against what docs/from-redis-cell.md says, in fractions: another limit with each ask,
debts of a nanosecond and of days."""
import math
import random
from fractions import Fraction

from redising import Redis
from serving import run_tests

SECOND, MS = 10**9, 10**6
OWED_MAX = 2**61  # parts: docs/algorithms.md, Promises
BURSTS, COUNTS = (1, 2, 3, 5, 10, 100, 1000), (1, 2, 7, 30, 1000, 999983)
PERIODS = (1, 2, 7, 60, 3600, 86400)


class Limit:
    def __init__(self, dice):
        self.burst, self.count, self.period = map(dice.choice, (BURSTS, COUNTS, PERIODS))
        self.price = Fraction(self.period * SECOND, self.count)
        self.capacity = self.burst * self.price

    def parts(self, debt):
        """Rounded up to what a state can hold."""
        scale = self.price.denominator
        return min(Fraction(math.ceil(debt * scale), scale), Fraction(OWED_MAX, scale))

    def decide(self, debt, cost):
        """(whether it passes, the debt then, time to retry; None: it did, or never will)"""
        after = debt + cost * self.price
        if after <= self.capacity:
            return True, after, None
        return False, debt, None if cost > self.burst else math.ceil(after - self.capacity)

    def left(self, debt):
        return max(0, math.floor((self.capacity - debt) / self.price))

    def __str__(self):
        return "gcra %d/%ds burst %d" % (self.count, self.period, self.burst)


class Key:
    def __init__(self):
        self.limit, self.debt, self.at = None, Fraction(0), 0

    def owes(self, now):
        return max(Fraction(0), self.debt - (now - self.at))

    def set(self, limit, debt, now):
        self.limit, self.debt, self.at = limit, debt, now


def seconds(ns):
    return -1 if ns is None else ns // SECOND + (ns % SECOND >= MS)


def throttle(r, name, key, limit, cost, now):
    debt = limit.parts(key.owes(now))
    passes, after, retry = limit.decide(debt, cost)
    answer = r("CL.THROTTLE", name, limit.burst - 1, limit.count, limit.period, cost)
    if passes and (cost > 0 or debt > 0):
        key.set(limit, after, now)
    return answer, [not passes, limit.burst, limit.left(after), seconds(retry),
                    seconds(math.ceil(after))]


def take(r, name, key, limit, cost, now):
    """The units that are used stay used, each at the new price; the change is kept."""
    debt = key.owes(now)
    if debt > 0 and str(key.limit) != str(limit):
        debt = limit.parts(debt / key.limit.price * limit.price)
        key.set(limit, debt, now)
    passes, after, retry = limit.decide(debt, cost)
    answer = r("WEIR.TAKE", name, str(limit), "COST", cost, "NS")
    if passes and cost > 0:
        key.set(limit, after, now)
    return answer, [passes, limit.burst, limit.left(after), -1 if retry is None else retry,
                    math.ceil(after), 0]


def next_moment(dice, now, limit):
    kind = dice.random()
    if kind < 0.3:
        return now
    if kind < 0.6:
        return now + int(limit.price * dice.random() * 2)
    if kind < 0.8:
        return now + dice.randrange(10**6)
    return now + int(dice.random() * dice.choice((limit.period * SECOND, 3 * limit.capacity)))


def test_S1_throttle_and_take_in_fractions(module):
    dice = random.Random(14)
    with Redis(module, clock=True) as r:
        now = 10**18
        for case in range(150):
            limits, keys, said = [Limit(dice) for _ in range(3)], [Key(), Key()], []
            for _ in range(40):
                which, limit = dice.randrange(2), dice.choice(limits)
                now = min(next_moment(dice, now, limit), 4 * 10**18)
                r.ok("WEIR.CLOCK", now)
                cost = dice.choice((1, 1, 1, 0, 2, limit.burst, limit.burst + 1, 2**63 - 1,
                                    dice.randint(0, limit.burst)))
                ask = take if dice.random() < 0.3 else throttle
                answer, expected = ask(r, "%d:%d" % (case, which), keys[which], limit, cost, now)
                said.append((now, ask.__name__, which, str(limit), cost, answer))
                assert answer == expected, (expected, said[-12:])


if __name__ == "__main__":
    run_tests(globals())
