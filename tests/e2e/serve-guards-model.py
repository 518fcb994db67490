#!/usr/bin/python3
"""serve-guards-model.py WEIR [TEST...] -- guards at a server, over RESP and HTTP in turns, beside a
plain model that was written from docs/guards.md.

Random guards (permits, by key or not; breakers with windows of time and of calls; short and long
leases) and random asks: enters by name with a cost and a user, enters by the rules through several
guards, exits with every outcome, renewals, old tokens, breakers forced and let go, other numbers of
permits, and time.  After every step the answer must be the model's, and so must the guard's state
and counts.

WEIR_SEED=n runs one round again."""
import os
import random

from guarding import Doors
from serving import LONG, SECOND, Error, run_tests, write

MS = SECOND // 1000
SLOW_MS = 3_000_000  # longer than any lease: work in flight never hangs
NEVER = None


class Permit:
    def __init__(self, guard, cost, key, since):
        self.guard, self.cost, self.key, self.since = guard, cost, key, since
        self.began, self.attempt = since, 0  # the try of the breaker that it is a probe of


class Breaker:
    """closed, open, half-open; every call is kept, with the sixteenth of the window it ended in."""

    def __init__(self, o):
        self.o, self.state, self.force = o, "closed", "none"
        self.calls, self.rounds, self.attempt = [], 0, 0
        self.at = self.out = self.back = self.bad = self.slow = 0

    def counted(self, now):
        if "calls" in self.o:
            return self.calls[-self.o["calls"]:]
        part = self.o["window"] // 16
        return [c for c in self.calls if c[0] // part > now // part - 16]

    def reaches(self, n, errors, slow):
        """Whether these are too many of n calls."""
        o, above = self.o, self.o.get("above", False)

        def beyond(value, threshold, whole=False):
            return value > threshold or value == threshold and (not above or whole)

        return n > 0 and (
            "error_percent" in o and beyond(errors * 100, o["error_percent"] * n,
                                            o["error_percent"] == 100)
            or "slow_percent" in o and beyond(slow * 100, o["slow_percent"] * n,
                                              o["slow_percent"] == 100)
            or "errors" in o and beyond(errors, o["errors"]))

    def open(self, now):
        self.state, self.rounds = "open", self.rounds + 1
        self.at = now + min(self.o["open_for"] * 2**(self.rounds - 1), self.o["open_max"])

    def close(self):
        self.state, self.calls, self.rounds = "closed", [], 0

    def ask(self, now, permit):
        """The retry of a refusal, in ms (0: about); False: it passes."""
        if self.force == "open":
            return NEVER
        if self.force == "closed" or self.state == "closed":
            return False
        if self.state == "open":
            if now < self.at:
                return -(-(self.at - now) // MS)
            self.state, self.attempt = "half-open", self.attempt + 1
            self.out = self.back = self.bad = self.slow = 0
        if self.out + self.back >= self.o["probes"]:
            return 0
        self.out += 1
        permit.attempt = self.attempt
        return False

    def is_of_now(self, permit):
        return (permit.attempt == self.attempt and self.state == "half-open" and
                self.force == "none")

    def give(self, permit):
        self.out -= bool(permit.attempt) and self.is_of_now(permit)

    def tell(self, permit, bad, slow, now):
        if permit.attempt:
            if self.is_of_now(permit):
                self.tell_probe(bad, slow, now)
            return
        if self.state != "closed" or self.force == "open":
            return
        self.calls.append((now, bad, slow))
        seen = self.counted(now)
        if (self.force == "none" and len(seen) >= self.o["min_calls"] and
                self.reaches(len(seen), sum(c[1] for c in seen), sum(c[2] for c in seen))):
            self.open(now)

    def tell_probe(self, bad, slow, now):
        self.out, self.back = self.out - 1, self.back + 1
        self.bad, self.slow = self.bad + bad, self.slow + slow
        n, left = self.o["probes"], self.o["probes"] - self.back
        if self.reaches(n, self.bad, self.slow) or "errors" in self.o and self.bad:
            self.open(now)
        elif not self.reaches(n, self.bad + left, self.slow + left) and ("errors" not in self.o or
                                                                         not left):
            self.close()

    def set_force(self, force):
        if force != self.force:
            self.force = force
            self.close()


class Guard:
    def __init__(self, name, o):
        self.name, self.o = name, o
        self.permits = []
        self.breaker = Breaker(o["breaker"] or {})
        self.counts = dict.fromkeys(["ok", "error", "timeout", "dropped", "open", "busy",
                                     "key_busy", "reclaimed"], 0)

    def in_flight(self, key=None):
        return sum(p.cost for p in self.permits if key is None or p.key == key)

    def expire(self, now):
        for p in [p for p in self.permits if now - p.since > self.o["lease"]]:
            self.permits.remove(p)
            self.breaker.give(p)
            self.counts["reclaimed"] += 1

    def enter(self, cost, key, now):
        """(reason, retry in ms or 0: about, permit)"""
        cost = cost or 1
        key = key if self.o["per_key"] else ""
        if cost > self.o["max"] or key and cost > self.o["per_key"]:
            return "too-big", NEVER, None
        permit = Permit(self, cost, key, now)
        retry = self.breaker.ask(now, permit)
        if retry is not False:
            self.counts["open"] += 1
            return "open", retry, None
        if key and self.in_flight(key) + cost > self.o["per_key"]:
            reason = "key-busy"
        elif self.in_flight() + cost > self.o["max"]:
            reason = "busy"
        else:
            self.permits.append(permit)
            return "granted", NEVER, permit
        self.breaker.give(permit)
        self.counts[reason.replace("-", "_")] += 1
        return reason, 0, None

    def exit(self, permit, outcome, took, now):
        """took in ms; None: since it entered."""
        self.permits.remove(permit)
        took = (now - permit.began) // MS if took is None else took
        if outcome == "ignored":
            self.breaker.give(permit)
            return
        self.counts[outcome] += 1
        if self.o["breaker"]:
            slow = "slow_percent" in self.o["breaker"] and (took > SLOW_MS or outcome == "timeout")
            self.breaker.tell(permit, outcome != "ok", slow, now)

    def remaining(self, key):
        """Limit and what is left: of the key, if that is less."""
        left = self.o["max"] - self.in_flight()
        if self.o["per_key"] and key and self.o["per_key"] - self.in_flight(key) < left:
            return self.o["per_key"], self.o["per_key"] - self.in_flight(key)
        return self.o["max"], left


# ------------------------------------------------------------------- random guards ----


def random_breaker(r):
    o = {"min_calls": r.randint(1, 6), "probes": r.randint(1, 4), "above": r.random() < 0.3}
    o["open_for"] = r.randint(1, 40) * SECOND // 4
    o["open_max"] = o["open_for"] * r.randint(1, 5)
    kind = r.choice(["error_percent", "errors", "slow_percent", "both"])
    if kind in ("error_percent", "both"):
        o["error_percent"] = r.choice([1, 20, 34, 50, 75, 100])
    if kind == "errors":
        o["errors"] = r.randint(1, 4)
    if kind in ("slow_percent", "both"):
        o["slow_percent"] = r.choice([1, 34, 50, 67, 100])
    if r.random() < 0.7:
        o["window"] = r.choice([1, 2, 8, 10, 20, 60]) * SECOND
    else:
        o["calls"] = r.randint(o.get("errors", 0) + 1, 12)
        o["min_calls"] = min(o["min_calls"], o["calls"])
    return o


def breaker_text(o):
    words = ["min_calls: %d" % o["min_calls"], "probes: %d" % o["probes"], "jitter: 0%",
             "open_for: %dms" % (o["open_for"] // MS), "open_max: %dms" % (o["open_max"] // MS)]
    words += ["at: above"] if o["above"] else []
    words += ["errors: %d%%" % o["error_percent"]] if "error_percent" in o else []
    words += ["errors: %d" % o["errors"]] if "errors" in o else []
    words += ["slow: %dms, ratio: %d%%" % (SLOW_MS, o["slow_percent"])
              ] if "slow_percent" in o else []
    words.append("calls: %d" % o["calls"] if "calls" in o else "window: %ds" %
                 (o["window"] // SECOND))
    return "{ %s }" % ", ".join(words)


def random_permits(r):
    most = r.randint(1, 8)
    return {"max": most, "per_key": r.randint(1, min(4, most)) if r.random() < 0.5 else 0}


def random_guards(r):
    return [Guard("g%d" % i, dict(random_permits(r), lease=r.choice([5, 30, 2400]) * SECOND,
                                  breaker=random_breaker(r) if r.random() < 0.7 else None))
            for i in range(6)]


def rules_of(guards):
    lines = []
    for i, guard in enumerate(guards):
        o = guard.o
        concurrency = str(o["max"])
        if o["per_key"]:
            concurrency = '{ max: %d, key: "{account}", total: %d }' % (o["per_key"], o["max"])
        uris = ["/%d" % (i // 2)] + (["/all"] if i % 2 else [])
        lines.append("  - { name: g%d, match: { uri: [%s] }, concurrency: %s, lease: %ds%s }" % (
            i, ", ".join(uris), concurrency, o["lease"] // SECOND,
            ", breaker: " + breaker_text(o["breaker"]) if o["breaker"] else ""))
    return "version: 1\nguards:\n" + "\n".join(lines) + "\n"


# ----------------------------------------------------------------------- both at once ----


class Walk:
    def __init__(self, doors, guards, r):
        self.doors, self.guards, self.random = doors, guards, r
        self.now = 1000 * SECOND
        self.held = []  # [token, the token before it, permits]
        self.used = []  # tokens that are nothing any more
        self.steps = []

    def same(self, what, got, expected):
        assert got == expected, "%s: %r, the model says %r; the last steps:\n%s" % (
            what, got, expected, "\n".join(self.steps[-40:]))

    def resp(self):
        return self.random.random() < 0.5

    def enter(self, **ask):
        """As HTTP answers it."""
        if not self.resp():
            answer = self.doors.web("POST", "/v1/enter", ask).json()
            assert "allowed" in answer, answer
            return answer
        words = []
        for name in ("guard", "cost", "user"):
            words += [name.upper(), ask[name]] if name in ask else []
        for item in ask.get("attributes", {}).items():
            words += item
        answer = self.doors.enter(*words)
        assert not isinstance(answer, Error), answer
        return dict(answer, allowed=answer["allowed"] == 1)

    def check_retry(self, answer, retry):
        got = None if answer["retry_ms"] == -1 else answer["retry_ms"]  # RESP has no null there
        if retry == 0:
            assert got is not None and got > 0, answer
        else:
            self.same("retry_ms", got, retry)

    def enter_named(self):
        r = self.random
        guard, cost, user = r.choice(self.guards), r.choice([0, 1, 1, 1, 2, 3, 9]), r.choice(
            ["", "ann", "bob"])
        ask = {"guard": guard.name, "cost": cost}
        if user:
            ask["user"] = user
        answer = self.enter(**ask)
        reason, retry, permit = guard.enter(cost, user, self.now)
        self.steps.append("%d enter %s -> %s" % (self.now, ask, answer["reason"]))
        self.same("reason", answer["reason"], reason)
        self.same("allowed", answer["allowed"], reason == "granted")
        if permit:
            self.same("limit and remaining", (answer["limit"], answer["remaining"]),
                      guard.remaining(user))
            self.same("lease", answer["lease_ms"], guard.o["lease"] // MS)
            self.held.append([answer["permit"], None, [permit]])
        else:
            self.check_retry(answer, retry)

    def enter_by_rules(self):
        r = self.random
        uri, user = r.choice(["/0", "/1", "/2", "/all"]), r.choice(["", "ann", "bob"])
        attributes = dict({"uri": uri}, **({"account": user} if user else {}))
        through = [g for i, g in enumerate(self.guards)
                   if uri == "/%d" % (i // 2) or uri == "/all" and i % 2]
        answer = self.enter(attributes=attributes)
        self.steps.append("%d enter %s -> %s %s" % (self.now, attributes, answer["reason"],
                                                    answer["guard"]))
        permits, reason, retry = [], "granted", NEVER
        for guard in through:
            reason, retry, permit = guard.enter(1, user, self.now)
            if not permit:
                self.same("guard", answer["guard"], guard.name)
                self.check_retry(answer, retry)
                break
            permits.append(permit)
        self.same("reason", answer["reason"], reason)
        if reason == "granted":
            self.held.append([answer["permit"], None, permits])
        else:
            for permit in permits:
                permit.guard.exit(permit, "ignored", None, self.now)

    def send_exit(self, token, outcome, took):
        if self.resp():
            more = [] if took is None else ["TOOK", took]
            return self.doors.exit(token, outcome, *more) == 1
        ask = {"permit": token, "outcome": outcome}
        if took is not None:
            ask["took_ms"] = took
        return self.doors.web("POST", "/v1/exit", ask).json()["exited"]

    def exit(self):
        r = self.random
        if r.random() < 0.1 and self.used:
            self.same("an old token", self.send_exit(r.choice(self.used), "error", 1), False)
            return
        if not self.held:
            return
        token, before, permits = self.held.pop(r.randrange(len(self.held)))
        outcome = r.choice(["ok", "ok", "ok", "error", "error", "timeout", "dropped", "ignored"])
        took = r.choice([None, 1, SLOW_MS, SLOW_MS + 1])
        left = [p for p in permits if p in p.guard.permits]
        self.steps.append("%d exit %s %s of %s" % (self.now, outcome, took,
                                                   [p.guard.name for p in left]))
        by_old = before and r.random() < 0.5
        self.same("exited", self.send_exit(before if by_old else token, outcome, took),
                  bool(left))
        for p in left:
            p.guard.exit(p, outcome, took, self.now)
        self.used = (self.used + [token])[-50:]

    def renew(self):
        if not self.held:
            return
        held = self.random.choice(self.held)
        left = [p for p in held[2] if p in p.guard.permits]
        repeated = held[1] and self.random.random() < 0.3
        token = held[1] if repeated else held[0]
        if self.resp():
            answer = self.doors.resp("WEIR.RENEW", token)
            answer = answer or [None, None]
        else:
            told = self.doors.web("POST", "/v1/renew", {"permit": token}).json()
            answer = [told["permit"], told["lease_ms"]]
        self.steps.append("%d renew%s %s" % (self.now, " again" if repeated else "",
                                             [p.guard.name for p in left]))
        self.same("renewed", answer[0] is not None, bool(left))
        if not left:
            self.held.remove(held)
            return
        self.same("lease", answer[1], min(p.guard.o["lease"] for p in left) // MS)
        for p in left:
            p.since = self.now
        held[1] = token
        held[0], held[2] = answer[0], left

    def force(self):
        guard, force = self.random.choice(self.guards), self.random.choice(
            ["none", "none", "open", "closed"])
        self.steps.append("%d force %s %s" % (self.now, guard.name, force))
        self.doors.resp("WEIR.GUARD.FORCE", guard.name, force)
        guard.breaker.set_force(force)

    def change(self):
        """Other numbers of permits: those that are out stay out, with their keys."""
        guard = self.random.choice(self.guards)
        guard.o.update(random_permits(self.random))
        self.steps.append("%d change %s to %d, %d" % (self.now, guard.name, guard.o["max"],
                                                      guard.o["per_key"]))
        write(self.doors.server.rules, rules_of(self.guards))
        answer = self.doors.resp("WEIR.RULES.RELOAD")
        assert not isinstance(answer, Error), answer

    def move(self):
        """Not into the moments after a lease's end, when a permit may be back or not."""
        r = self.random
        waits = [g.breaker.at - self.now for g in self.guards if g.breaker.state == "open"]
        step = r.choice([r.randint(0, 2 * SECOND), r.randint(0, 2 * SECOND), MS, 1,
                         r.randint(0, 50 * SECOND), r.randint(0, 3000 * SECOND)])
        if waits and r.random() < 0.5:
            step = r.choice(waits) - r.choice([0, 0, 1, MS])
        now = self.now + max(step, 0)
        ages = [now - p.since - g.o["lease"] for g in self.guards for p in g.permits]
        if any(-10 * MS < age < SECOND for age in ages):
            return
        self.now = now
        self.steps.append("%d" % now)
        assert self.doors.resp("WEIR.CLOCK", now) == "OK"
        for guard in self.guards:
            guard.expire(now)

    def look(self):
        guard = self.random.choice(self.guards)
        got, counts, b = self.doors.guard(guard.name), guard.counts, guard.breaker
        self.same("in flight of " + guard.name, got["in_flight"], guard.in_flight())
        self.same("outcomes", got["outcomes"],
                  {name: counts[name] for name in ("ok", "error", "timeout", "dropped")})
        self.same("refused", {name: got["refused"][name] for name in ("open", "busy", "key_busy")},
                  {name: counts[name] for name in ("open", "busy", "key_busy")})
        self.same("reclaimed", got["reclaimed"], counts["reclaimed"])
        self.same("force", got["force"], b.force)
        if guard.o["breaker"]:
            state = "open" if b.force == "open" else b.state
            self.same("breaker of " + guard.name, got["breaker"], state)
            if state == "closed":
                seen = b.counted(self.now)
                self.same("window of " + guard.name, (got["calls"], got["errors"], got["slow"]),
                          (len(seen), sum(c[1] for c in seen), sum(c[2] for c in seen)))

    def step(self):
        deeds = [(self.enter_named, 30), (self.enter_by_rules, 15), (self.exit, 35),
                 (self.renew, 5), (self.force, 1), (self.change, 1), (self.move, 10)]
        self.random.choices([d for d, _ in deeds], [w for _, w in deeds])[0]()
        self.look()


def play(weir, seed, steps):
    r = random.Random(seed)
    guards = random_guards(r)
    rules = rules_of(guards)
    try:
        with Doors(weir, rules=rules) as doors:
            walk = Walk(doors, guards, r)
            for _ in range(steps):
                walk.step()
    except AssertionError:
        print("again: WEIR_SEED=%d\n%s" % (seed, rules))
        raise


def test_G4_L1_guards_as_a_model_has_them(weir):
    seed = os.environ.get("WEIR_SEED")
    for n in [int(seed)] if seed else range(1, 41 if LONG else 5):
        play(weir, n, 2000 if LONG else 800)


if __name__ == "__main__":
    run_tests(globals())
