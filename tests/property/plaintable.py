"""plaintable.py -- for table-model.py: what docs/algorithms.md says, in exact numbers and without
any thought of speed.  One object is one key under one limit."""
import copy
import math
from fractions import Fraction

SECOND = 10**9
MINUTE = 60 * SECOND
CHAIN = 53  # longer logs are chains in a table
NEVER = 2**63 - 1
GRANTED, LIMITED, TOO_BIG, BAD_ASK = range(4)


class Limit:
    """From its text; the period is in ns, options are written with =."""

    def __init__(self, text):
        self.text = text
        self.algorithm, rate, *options = text.split()
        count, period = rate.split("/")
        named = dict(option.split("=") for option in options)
        self.count, self.period = int(count), int(period[:-2])
        self.queue = int(named["queue"]) if "queue" in named else None
        self.burst = int(named.get("burst", self.count if self.queue is None else 1))
        self.buckets = int(named.get("buckets", 10))
        self.first = named.get("align") == "first"
        self.loose = named.get("edge") == "loose"
        self.price = Fraction(self.period, self.count)  # of a unit, in ns

    @property
    def most(self):
        if self.algorithm in ("fixed-window", "sliding-window", "sliding-log"):
            return self.count
        return self.burst + (self.queue or 0)


class Key:
    """What is common.  Subclasses have `ask`, which changes the key as a grant would."""

    def __init__(self, limit):
        self.limit = limit

    def take(self, cost, wait, now, commit=True):
        """A decision: allowed, reason, limit, remaining, wait, retry, reset."""
        if cost < 0:
            return dict(self.take(0, 0, now, False), allowed=False, reason=BAD_ASK, wait=0,
                        retry=NEVER)
        after = copy.deepcopy(self)
        decision = after.ask(cost, wait, now)
        if commit and decision["allowed"] and cost > 0:
            self.__dict__.update(after.__dict__)
        return decision

    def decide(self, now, cost, turn, wait, spend):
        """`turn`: how long the ask would have to wait."""
        if cost > self.limit.most and not isinstance(self, Smooth):
            allowed, reason, turn, retry = False, TOO_BIG, 0, NEVER
        elif turn > wait:
            allowed, reason, turn, retry = False, LIMITED, 0, turn - wait
        else:
            allowed, reason, retry = True, GRANTED, 0
            spend()
        return {"allowed": allowed, "reason": reason, "limit": self.limit.most,
                "remaining": self.remaining(now), "wait": turn, "retry": retry,
                "reset": self.reset(now)}


class Debt(Key):
    """token-bucket, gcra, leaky-bucket: ns that are owed, as of `at`."""

    def __init__(self, limit):
        super().__init__(limit)
        self.at, self.owed = 0, Fraction(0)

    def least(self):
        return Fraction(0)

    def pay(self, now):
        now = max(now, self.at)
        self.owed = max(self.least(), self.owed - (now - self.at))
        self.at = now

    def remaining(self, _):
        return max(0, math.floor(self.limit.most - self.owed / self.limit.price))

    def reset(self, _):
        return math.ceil(self.owed - self.least())

    def is_fresh(self, now):
        self.pay(now)
        return self.owed == self.least()

    def spend(self, units):
        self.owed += units * self.limit.price

    def ask(self, cost, wait, now):
        self.pay(now)
        limit = self.limit
        turn = beyond = max(0, math.ceil(self.owed + (cost - limit.most) * limit.price))
        if limit.queue is not None:  # a turn; or there is no place to wait for it
            turn = max(0, math.ceil(self.owed - (limit.burst - 1) * limit.price))
            turn = max(turn, beyond + wait) if beyond else turn
        return self.decide(now, cost, turn, wait, lambda: self.spend(cost))

    def give(self, units, now):
        self.pay(now)
        self.owed = max(self.least(), self.owed - units * self.limit.price)

    def charge(self, units, now):
        self.pay(now)
        self.spend(units)

    def give_unused(self, units, kept, turn, now):
        """What time has not: since what was kept is paid, the key may have been full."""
        self.pay(now)
        lost = max(0, self.at - turn - kept * self.limit.price)
        self.give(max(0, units - lost / self.limit.price), now)

    def change(self, limit, now):
        self.pay(now)
        used = self.owed / self.limit.price
        if limit.algorithm == "token-bucket" and used:
            used = limit.burst - min(limit.burst, self.limit.burst - used)  # tokens stay
        self.owed, self.limit = used * limit.price, limit


class Smooth(Debt):
    """Less than nothing owed is saved up."""

    def least(self):
        return -self.limit.burst * self.limit.price

    def remaining(self, _):
        return max(0, math.floor(-self.owed / self.limit.price))

    def ask(self, cost, wait, now):
        self.pay(now)
        return self.decide(now, cost, max(0, math.ceil(self.owed)), wait, lambda: self.spend(cost))

    def change(self, limit, now):
        self.pay(now)
        if self.owed < 0:  # the same share of the most
            self.owed = self.owed / self.least() * -limit.burst * limit.price
        self.limit = limit


class Narrow(Debt):
    """In a narrow table: the moment when the debt is paid, and waits of a minute at most
    (docs/shm.md)."""

    def __init__(self, limit):
        super().__init__(limit)
        self.paid = 0

    def pay(self, now):
        self.at = now
        self.owed = max(0, self.paid - now)

    def keep(self):
        most = self.limit.most * self.limit.price + MINUTE
        self.paid = self.at + int(min(self.owed, most))

    def spend(self, units):
        super().spend(units)
        self.keep()

    def ask(self, cost, wait, now):
        return super().ask(cost, min(wait, MINUTE), now)

    def give(self, units, now):
        super().give(units, now)
        self.keep()

    def change(self, limit, now):
        self.limit = limit


class FixedWindow(Key):
    """`used` counts on from the present window into those that are promised."""

    def __init__(self, limit):
        super().__init__(limit)
        self.end, self.used = None, 0

    def begin(self, now):
        period = self.limit.period
        self.end = now + period if self.limit.first else (now // period + 1) * period

    def roll(self, now):
        period = self.limit.period
        if self.end is not None and now >= self.end:
            windows = (now - self.end) // period + 1
            self.used = max(0, self.used - windows * self.limit.count)
            self.end = self.end + windows * period if self.used or not self.limit.first else None
        if self.end is None:
            self.begin(now)

    def remaining(self, _):
        return max(0, self.limit.count - self.used)

    def reset(self, now):
        last = (self.used - 1) // self.limit.count
        return self.end + last * self.limit.period - now if self.used else 0

    def is_fresh(self, now):
        self.roll(now)
        return self.used == 0

    def ask(self, cost, wait, now):
        self.roll(now)
        count, place = self.limit.count, self.used
        if place % count + cost > count:
            place = (place // count + 1) * count  # whole, in a window of its own
        window = place // count if cost else max(0, (place - 1) // count)
        turn = self.end + (window - 1) * self.limit.period - now if window else 0

        def spend():
            self.used = place + cost if cost else self.used

        return self.decide(now, cost, turn, wait, spend)

    def give(self, units, now):
        self.roll(now)
        self.used = max(0, self.used - units)
        if self.used == 0 and self.limit.first:
            self.end = None

    def charge(self, units, now):
        self.roll(now)
        self.used += units

    def give_unused(self, units, _, turn, now):
        present = copy.copy(self)
        present.roll(now)
        if turn >= present.end - self.limit.period:
            self.give(units, now)

    def is_promised(self, _):
        return self.used > self.limit.count

    def change(self, limit, now):
        self.roll(now)
        other = (limit.period, limit.first) != (self.limit.period, self.limit.first)
        self.used, self.limit = min(self.used, limit.count), limit
        if self.used == 0:
            self.end = None
        elif other:
            self.begin(now)


class SlidingWindow(Key):
    """Units by bucket.  `head` is the last bucket that was promised or filled."""

    def __init__(self, limit):
        super().__init__(limit)
        self.units, self.head, self.seen = {}, 0, 0

    def width(self):
        return self.limit.period // self.limit.buckets

    def bucket(self, now):
        return now // self.width()

    def lasts(self):
        """The number of buckets for which a unit counts, after its own."""
        return self.limit.buckets - (1 if self.limit.loose else 0)

    def sum(self, bucket):
        return sum(n for b, n in self.units.items() if bucket - self.lasts() <= b <= bucket)

    def drop(self, now):
        least = self.bucket(now) - self.lasts()
        self.units = {b: n for b, n in self.units.items() if b >= least and n}

    def remaining(self, now):
        bucket = self.bucket(now)
        return max(0, self.limit.count - self.sum(bucket)) if self.head <= bucket else 0

    def reset(self, now):
        gone = [(b + self.lasts() + 1) * self.width() for b, n in self.units.items() if n]
        return max([0, self.head * self.width() - now] + [at - now for at in gone])

    def is_fresh(self, now):
        return self.reset(max(now, self.seen)) == 0

    def ask(self, cost, wait, now):
        now = max(now, self.seen)
        bucket = max(self.bucket(now), self.head)
        while cost <= self.limit.count and self.sum(bucket) + cost > self.limit.count:
            bucket += 1

        def spend():
            if cost:
                self.units[bucket] = self.units.get(bucket, 0) + cost
                self.head, self.seen = bucket, now

        return self.decide(now, cost, max(0, bucket * self.width() - now), wait, spend)

    def give(self, units, _):
        for bucket in sorted(self.units, reverse=True):
            back = min(units, self.units[bucket])
            self.units[bucket] -= back
            units -= back

    def charge(self, units, now):
        self.seen = max(now, self.seen)
        self.head = max(self.bucket(self.seen), self.head)
        self.units[self.head] = self.units.get(self.head, 0) + units

    def give_unused(self, units, _, turn, now):
        """Where it was counted: an ask that was overtaken, up to a second later."""
        last = self.bucket(turn if self.is_promised(0) else turn + SECOND)
        for bucket in sorted(b for b in self.units if self.bucket(turn) <= b <= last):
            if (self.bucket(turn) + self.lasts() + 1) * self.width() > max(now, self.seen):
                back = min(units, self.units[bucket])
                self.units[bucket] -= back
                units -= back

    def is_promised(self, now):
        return self.head > self.bucket(max(now, self.seen))

    def change(self, limit, now):
        self.seen = max(now, self.seen)
        self.drop(self.seen)
        old, width = self.units, self.width()
        self.limit, self.units = limit, {}
        for bucket, n in old.items():  # where the old one ended
            at = self.bucket(min((bucket + 1) * width - 1, self.seen))
            self.units[at] = self.units.get(at, 0) + n
        self.head = self.bucket(self.seen)


class SlidingLog(Key):
    """The moment of every unit.  Until `turn`, the last that was promised, nobody passes."""

    def __init__(self, limit):
        super().__init__(limit)
        self.units, self.turn, self.seen = [], 0, 0

    def live(self, now):
        return [at for at in self.units if at > now - self.limit.period]

    def remaining(self, now):
        return max(0, self.limit.count - len(self.live(now))) if self.turn <= now else 0

    def reset(self, now):
        return max([0, self.turn - now] + [at + self.limit.period - now for at in self.units])

    def is_fresh(self, now):
        return self.reset(max(now, self.seen)) == 0

    def ask(self, cost, wait, now):
        now = max(now, self.seen)
        turn = max(now, self.turn)
        live = self.live(turn)
        beyond = len(live) + cost - self.limit.count
        if 0 < beyond <= len(live):
            turn = live[beyond - 1] + self.limit.period

        def spend():
            if cost:
                self.units = self.live(now) + [turn] * cost
                self.turn, self.seen = turn, now

        return self.decide(now, cost, turn - now, wait, spend)

    def give(self, units, _):
        del self.units[max(0, len(self.units) - units):]

    def charge(self, units, now):
        self.seen = max(now, self.seen)
        self.turn = max(self.turn, self.seen)
        self.units = (self.live(self.seen) + [self.turn] * units)[-self.limit.count:]

    def give_unused(self, units, _, turn, now):
        """As a sliding window; of a log that is a chain only the newest can go, if they are of one
        instant."""
        if turn + self.limit.period <= max(now, self.seen):
            return
        last = turn if self.is_promised(0) else turn + SECOND
        place = sum(at < turn for at in self.units)
        there = sum(turn <= at <= last for at in self.units)
        if self.limit.count <= CHAIN:
            del self.units[place:place + min(units, there)]
        elif len(set(self.units[place:])) == 1:
            self.give(min(units, there), now)

    def is_promised(self, now):
        return self.turn > max(now, self.seen)

    def change(self, limit, now):
        self.seen = max(now, self.seen)
        self.units, self.limit = self.live(self.seen)[-limit.count:], limit


KEYS = {"token-bucket": Debt, "gcra": Debt, "leaky-bucket": Debt, "smooth": Smooth,
        "fixed-window": FixedWindow, "sliding-window": SlidingWindow, "sliding-log": SlidingLog}


NARROW = ["token-bucket", "gcra", "leaky-bucket", "sliding-window", "sliding-log"]


def fresh(limit, narrow):
    kind = KEYS[limit.algorithm]
    return Narrow(limit) if narrow and kind is Debt else kind(limit)


def take_all(asks):
    """Of [(item, key, cost, wait, now)], one for each key: the decision, and nothing is taken."""
    each = [(item, key.take(cost, wait, now, False)) for item, key, cost, wait, now in asks]
    no = [(item, d) for item, d in each if not d["allowed"]]
    never = [(item, d) for item, d in no if d["reason"] == TOO_BIG]
    item, told = (never or no or [min(each, key=lambda pair: pair[1]["remaining"])])[0]
    return dict(told, item=item, wait=0 if no else max(d["wait"] for _, d in each),
                retry=max(d["retry"] for _, d in each))
