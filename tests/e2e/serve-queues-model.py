#!/usr/bin/python3
"""serve-queues-model.py WEIR [TEST...] -- asks that wait at a guard of a server, beside a plain
model that was written from docs/guards.md and docs/rules.md.

Random guards (places, order, who may wait and how long, permits by key, shedding) and random asks
by name and by attributes, with priorities and keys; exits with every outcome, clients that hang up,
deadlines to the nanosecond, degradations, forced breakers, and other rules while permits are out
and others wait.  After every step those that the model lets in, and no others, are answered, each
with its reason.  While a guard sheds it is not known whether an ask waits, or why it does not.

WEIR_SEED=n runs one round again."""
import os
import random
import select
import time

from guarding import NAMES, Doors
from serving import LONG, Error, run_tests, until

MS = 10**6
KEYS = ["192.0.2.1", "192.0.2.2", "192.0.2.3", ""]
KNOWN = 7  # turns, after which waits are estimated


class Terms:
    """What a rule says."""

    def __init__(self, r, sheds):
        self.sheds, self.max = sheds, r.randint(1, 4)
        self.places = r.choice([1, 2, 3, 4, 6, 10, 20])
        self.per_key = min(r.choice([0, 0, 1, 2]), self.max)
        self.degrade = r.choice([0, 0, 2])
        self.wait = {
            p: r.choice([300, 1000, 5000]) for p in r.sample([-3, 0, 2, 5], r.randint(1, 2))
        }
        if r.random() < 0.6:
            self.wait = None if sheds else r.choice([500, 2000, 8000])
        self.queued = isinstance(self.wait, dict) or r.random() < 0.85
        self.order = r.choice(["fifo", "priority"])
        if not self.queued:
            self.places, self.order = 1024 if sheds else 0, "priority"

    def rule(self):
        words = ["max: %d" % self.max]
        if self.per_key:
            words = ["max: %d, key: \"{ip}\", total: %d" % (self.per_key, self.max)]
        if self.queued:
            words.append("queue: %d, order: %s" % (self.places, self.order))
            if isinstance(self.wait, dict):
                each = ", ".join("\"%d\": %dms" % pair for pair in self.wait.items())
                words.append("wait: { %s }" % each)
            elif self.wait:
                words.append("wait: %dms" % self.wait)
        return ("version: 1\nguards:\n  - { name: g, lease: 1h, match: { uri: /x }, shed: %s,"
                " priority: \"{header.p|0}\", concurrency: { %s }%s }\n" %
                (str(self.sheds).lower(), ", ".join(words),
                 ", degrade: %d" % self.degrade if self.degrade else ""))

    def wait_of(self, priority, waiting):
        """How long it may wait, in ms, while nothing is shed."""
        if isinstance(self.wait, dict):
            return max(((p, ms) for p, ms in self.wait.items() if priority >= p), default=(0, 0))[1]
        if self.wait or not self.sheds:
            return self.wait if self.queued else 0
        fits = priority >= 7 or 14 * waiting < self.places * (7 + max(priority, 0))
        return 1000 if fits else 0


class Ask:
    """One that waits, or is at work."""

    def __init__(self, client, priority, key, keyed):
        self.client, self.priority, self.key, self.keyed = client, priority, key, keyed
        self.deadline, self.permit = 0, None

    def answer(self):
        told = dict(zip(NAMES, self.client.read()))
        self.client.close()
        self.permit = told["permit"]
        return told


class Walk:
    def __init__(self, doors, r, sheds):
        self.doors, self.r, self.sheds = doors, r, sheds
        self.now = 1000 * 1000 * MS
        self.waiting, self.inside = [], []
        self.degradation, self.force, self.turns = 0, "none", 0
        self.use(Terms(r, sheds))
        self.order = self.terms.order

    def use(self, terms):
        told = self.doors.resp("WEIR.RULES.SET", terms.rule())
        assert not isinstance(told, Error), (told, terms.rule())
        self.terms = terms

    # -------------------------------------------------------------- the model ----

    def of_key(self, asks, key):
        """Those since the guard has a bound by key."""
        return sum(a.key == key and a.keyed for a in asks)

    def refused(self, ask):
        """Why, however many permits are free; None: not for that."""
        t = self.terms
        if t.degrade and self.degradation >= t.degrade:
            return "degraded"
        if self.force == "open":
            return "open"
        full = t.per_key and ask.key and self.of_key(self.inside, ask.key) >= t.per_key
        return "key-busy" if full else None

    def let_in(self, ask):
        ask.keyed = self.terms.per_key > 0
        self.inside.append(ask)

    def decide(self, ask, wait_ms):
        """granted, waits, or a reason."""
        t = self.terms
        reason = self.refused(ask)
        if reason:
            return reason
        if len(self.inside) < t.max and not self.waiting:
            return "granted"
        wait = min(wait_ms, t.wait_of(ask.priority, len(self.waiting)))
        if wait == 0:
            return "busy"
        self.order = t.order  # the queue is as in the rules for the first that asks to wait
        ask.deadline = self.now + wait * MS
        left = t.places - len(self.waiting)
        if left <= 0:
            return "full"
        mine = self.of_key(self.waiting, ask.key) if ask.key and t.per_key else 0
        return "key-busy" if mine and mine >= min(t.per_key, left) else "waits"

    def turns_now(self):
        """Those that leave the queue, in order, with the reason."""
        left = [(a, "late") for a in self.waiting if self.now > a.deadline]
        self.waiting = [a for a in self.waiting if self.now <= a.deadline]
        while self.waiting:
            first = self.waiting[0]  # max() is the first of equals
            if self.order == "priority":
                first = max(self.waiting, key=lambda a: a.priority)
            reason = self.refused(first)
            if reason is None and len(self.inside) >= self.terms.max:
                break
            self.waiting.remove(first)
            if reason is None:
                self.turns += 1
                self.let_in(first)
            left.append((first, reason or "granted"))
        return left

    # ------------------------------------------------------------------ deeds ----

    def is_shedding(self):
        changes = [c["event"] for c in self.doors.guard("g")["changes"]
                   if c["event"].startswith("shedding")]
        return self.sheds and changes[:1] == ["shedding-began"]

    def come(self):
        r, shedding = self.r, self.is_shedding()
        ask = Ask(self.doors.server.resp(), r.choice([0, 0, 2, 5, 7, -3]), r.choice(KEYS),
                  self.terms.per_key > 0)
        wait = r.choice([0, 100, 1000, 4000])
        expected = self.decide(ask, wait)
        words = ["WEIR.ENTER"] + (["WAIT", wait] if wait else [])
        if r.random() < 0.5:
            words += ["GUARD", "g", "PRIORITY", ask.priority] + (["USER", ask.key]
                                                                 if ask.key else [])
        else:
            words += ["uri", "/x", "header.p", ask.priority] + (["ip", ask.key] if ask.key else [])
        ask.client.send(*words)
        if self.waits(ask):
            assert expected == "waits" or shedding, (expected, "waits", words)
            self.order = self.terms.order
            self.waiting.append(ask)
            ask.deadline = ask.deadline or self.now + min(wait, 1000) * MS
            return
        told = ask.answer()
        if told["reason"] in ("full", "late") or told["reason"] == "key-busy" != self.refused(ask):
            self.order = self.terms.order  # it has asked to wait
        if told["allowed"]:
            assert expected == "granted", (expected, told, words)
            self.let_in(ask)
        elif told["reason"] == "late":  # by the estimate
            assert (expected == "waits" or shedding) and self.waiting and self.turns >= KNOWN, told
        elif not shedding:
            assert told["reason"] == expected, (expected, told, words)

    def waits(self, ask):
        """It is answered, or one more waits."""
        while not select.select([ask.client.socket], [], [], 0.002)[0]:
            if self.doors.guard("g")["waiting"] > len(self.waiting):
                return True
        return False

    def go(self):
        if self.inside:
            ask = self.inside.pop(self.r.randrange(len(self.inside)))
            outcome = self.r.choice(["ok", "error", "ignored", "timeout"])
            assert self.doors.exit(ask.permit, outcome) == 1

    def hang_up(self):
        if self.waiting:
            self.waiting.pop(self.r.randrange(len(self.waiting))).client.close()
            # The next in line may be refused at once, if the rules have changed since it came.
            until("it is gone", lambda: self.doors.guard("g")["waiting"] <= len(self.waiting))

    def move(self):
        self.now += self.r.choice([1, 37 * MS, 99 * MS, 300 * MS, 1000 * MS])
        if self.waiting and self.r.random() < 0.3:  # one has its last moment, or is late
            first = min(a.deadline for a in self.waiting)
            self.now = max(self.now, first + self.r.choice([0, 1]))
        self.doors.resp("WEIR.CLOCK", self.now)

    def change(self):
        self.use(Terms(self.r, self.sheds))

    def degrade(self):
        self.degradation = self.r.choice([0, 0, 2])
        self.doors.resp("WEIR.DEGRADE.SET", self.degradation)

    def set_force(self):
        self.force = self.r.choice(["none", "open", "none"])
        self.doors.resp("WEIR.GUARD.FORCE", "g", self.force)

    def look(self):
        for ask, reason in self.turns_now():
            told = ask.answer()
            assert told["reason"] == reason and told["allowed"] == (reason == "granted"), (reason,
                                                                                           told)
        if self.r.random() < 0.2:
            time.sleep(0.01)  # two turns in vain
        early = select.select([a.client.socket for a in self.waiting], [], [], 0)[0]
        assert not early, [a.answer() for a in self.waiting if a.client.socket in early]
        seen = self.doors.guard("g")
        assert (seen["in_flight"], seen["waiting"]) == (len(self.inside), len(self.waiting)), seen

    def step(self):
        deeds = [(self.come, 50), (self.go, 28), (self.hang_up, 6), (self.move, 9),
                 (self.change, 8), (self.degrade, 1.5), (self.set_force, 1.5)]
        self.r.choices([d for d, _ in deeds], [w for _, w in deeds])[0]()
        self.look()


def play(weir, seed):
    r = random.Random(seed)
    walk = None
    try:
        with Doors(weir, rules=Terms(r, False).rule()) as doors:
            walk = Walk(doors, r, seed % 3 == 0)
            for _ in range(150):
                walk.step()
    except (AssertionError, TimeoutError):
        print("again: WEIR_SEED=%d\n%s" % (seed, walk.terms.rule() if walk else ""))
        raise


def test_L11_G7_waiting_as_a_model_has_it(weir):
    seed = os.environ.get("WEIR_SEED")
    for n in [int(seed)] if seed else range(1, 301 if LONG else 13):
        play(weir, n)


if __name__ == "__main__":
    run_tests(globals())
