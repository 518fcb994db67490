#!/usr/bin/python3
"""table-model.py LIBRARY FIRST STORIES -- several processes use the limits of one table in turns:
take, peek, give, forget, reserve and settle, several at once, changes of limits, limits that go and
come back, processes that leave and come.  Every answer is the one of a plain model
(plaintable.py), which knows the documents and nothing of the code.

The axis of time lies far ahead of the table's own clock, so that only the callers' counts."""
import ctypes
import multiprocessing
import os
import random
import sys
import tempfile
from ctypes import POINTER, byref, c_bool, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t
from ctypes import c_uint, c_uint8, c_uint16, c_void_p

from plaintable import KEYS, NARROW, SECOND, Limit, SlidingLog, SlidingWindow, fresh, take_all

PROCESSES = 3
STEPS = 150
FAR = 4 * 10**18
TICK = 2**20  # of stories in which limits change: so conversions are exact
TELLS = ["allowed", "reason", "limit", "remaining", "wait", "retry", "reset"]


# ----------------------------------------------------------------- the library


class WeirLimit(ctypes.Structure):
    _fields_ = [("algorithm", c_char_p), ("count", c_int64), ("period", c_int64),
                ("burst", c_int64), ("queue", c_int64), ("buckets", c_int32),
                ("align_first", c_bool), ("loose", c_bool), ("warmup", c_int64), ("cold", c_int32),
                ("calendar", c_int32), ("zone", c_char * 40)]


class WeirError(ctypes.Structure):
    _fields_ = [("column", c_int), ("text", c_char * 244)]


class WeirKey(ctypes.Structure):
    _fields_ = [("bytes", c_char_p), ("len", c_size_t)]


class WeirAsk(ctypes.Structure):
    _fields_ = [("key", WeirKey), ("cost", c_int64), ("wait_max", c_int64), ("now", c_int64),
                ("priority", ctypes.c_int8), ("user_class", c_uint8)]


class WeirDecision(ctypes.Structure):
    _fields_ = [("allowed", c_bool), ("reason", c_uint8), ("item", c_uint16), ("limit", c_int64),
                ("remaining", c_int64), ("wait", c_int64), ("retry", c_int64), ("reset", c_int64)]

    def told(self):
        return {name: getattr(self, name) for name, _ in self._fields_}


class WeirItem(ctypes.Structure):
    _fields_ = [("limiter", c_void_p), ("ask", WeirAsk)]


class WeirReservation(ctypes.Structure):
    _fields_ = [("limiter", c_void_p), ("key", WeirKey), ("cost", c_int64), ("turn", c_int64),
                ("expires", c_int64)]


class WeirTableOptions(ctypes.Structure):
    _fields_ = [("path", c_char_p), ("keys", c_int64), ("slab", c_int64), ("limiters", c_int64),
                ("bans", c_int64), ("guards", c_int64), ("narrow", c_bool), ("mode", c_uint),
                ("owner", c_uint), ("group", c_uint)]


CALLS = {
    "table_create": (c_int, [c_void_p, POINTER(WeirTableOptions), POINTER(WeirError)]),
    "table_destroy": (None, [c_void_p]),
    "table_tend": (None, [c_void_p, c_int64]),
    "limit_parse": (c_int, [POINTER(WeirLimit), c_char_p, POINTER(WeirError)]),
    "limiter_create": (c_int, [c_void_p, c_void_p, c_char_p, POINTER(WeirLimit),
                               POINTER(WeirError)]),
    "limiter_drop": (None, [c_void_p]),
    "limiter_change": (c_int, [c_void_p, POINTER(WeirLimit), c_int64, POINTER(WeirError)]),
    "take": (c_bool, [c_void_p, POINTER(WeirAsk), POINTER(WeirDecision)]),
    "peek": (c_bool, [c_void_p, POINTER(WeirAsk), POINTER(WeirDecision)]),
    "give": (None, [c_void_p, POINTER(WeirAsk)]),
    "forget": (c_bool, [c_void_p, WeirKey, c_int64]),
    "take_many": (c_size_t, [c_void_p, c_size_t, c_void_p]),
    "take_all": (c_bool, [c_void_p, c_size_t, c_void_p]),
    "reserve": (c_bool, [c_void_p, POINTER(WeirAsk), c_int64, POINTER(WeirReservation),
                         POINTER(WeirDecision)]),
    "settle": (c_bool, [POINTER(WeirReservation), c_int64, c_int64]),
}


class User:
    """A process's view of the table.  Methods take and return what a pipe can carry."""

    def __init__(self, library, path, narrow):
        self.weir = ctypes.CDLL(library)
        for name, (result, arguments) in CALLS.items():
            call = getattr(self.weir, "weir_" + name)
            call.restype, call.argtypes = result, arguments
            setattr(self, "weir_" + name, call)
        self.table, self.limiters, self.reservations = c_void_p(), {}, {}
        self.error = WeirError()
        options = WeirTableOptions(path=path.encode(), keys=2000, slab=8 << 20,
                                   narrow=narrow)
        self.check(self.weir_table_create(byref(self.table), options, self.error))

    def check(self, code):
        if code:
            raise RuntimeError(self.error.text.decode())

    def limit(self, text):
        limit = WeirLimit()
        self.check(self.weir_limit_parse(limit, text.encode(), self.error))
        return limit

    def make(self, name, text):
        limiter = c_void_p()
        self.check(self.weir_limiter_create(byref(limiter), self.table, name.encode(),
                                            self.limit(text), self.error))
        self.limiters[name] = limiter

    def change(self, name, text, now):
        self.check(self.weir_limiter_change(self.limiters[name], self.limit(text), now, self.error))

    def drop(self, name):
        self.weir_limiter_drop(self.limiters.pop(name))

    def tend(self, now):
        self.weir_table_tend(self.table, now)

    def leave(self):
        self.weir_table_destroy(self.table)

    @staticmethod
    def ask(key, cost, wait, now):
        return WeirAsk(key=WeirKey(key.encode(), len(key)), cost=cost, wait_max=wait, now=now)

    def take(self, name, *ask):
        decision = WeirDecision()
        self.weir_take(self.limiters[name], self.ask(*ask), decision)
        return decision.told()

    def peek(self, name, *ask):
        decision = WeirDecision()
        self.weir_peek(self.limiters[name], self.ask(*ask), decision)
        return decision.told()

    def give(self, name, key, units, now):
        self.weir_give(self.limiters[name], self.ask(key, units, 0, now))

    def forget(self, name, key, now):
        return self.weir_forget(self.limiters[name], WeirKey(key.encode(), len(key)), now)

    def items(self, asks):
        return (WeirItem * len(asks))(*[WeirItem(self.limiters[name], self.ask(*ask))
                                        for name, *ask in asks])

    def many(self, asks):
        decisions = (WeirDecision * len(asks))()
        self.weir_take_many(self.items(asks), len(asks), decisions)
        return [decision.told() for decision in decisions]

    def all(self, asks):
        decision = WeirDecision()
        self.weir_take_all(self.items(asks), len(asks), byref(decision))
        return decision.told()

    def reserve(self, number, name, ask, lifetime):
        reservation, decision, key = WeirReservation(), WeirDecision(), ask[0].encode()
        self.weir_reserve(self.limiters[name], self.ask(*ask), lifetime, reservation, decision)
        reservation.key = WeirKey(key, len(key))
        self.reservations[number] = reservation, key  # which must live as long
        return decision.told()

    def settle(self, number, cost, now):
        return self.weir_settle(self.reservations.pop(number)[0], cost, now)


def work(pipe, *where):
    user = User(*where)
    while (call := pipe.recv()) is not None:
        try:
            pipe.send(getattr(user, call[0])(*call[1:]))
        except RuntimeError as error:
            pipe.send(error)
    user.leave()


class Process:
    def __init__(self, *where):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=work, args=(theirs, *where))
        self.process.start()

    def __call__(self, *call):
        self.pipe.send(call)
        answer = self.pipe.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self):
        self.pipe.send(None)
        self.process.join()


# --------------------------------------------------------------------- stories


class Story:
    def __init__(self, library, seed):
        self.random = random.Random(seed)
        self.narrow = self.random.random() < 0.3
        self.ticks = self.random.random() < 0.5
        self.changes = 4 if self.ticks else 0
        self.folder = tempfile.TemporaryDirectory(prefix="weir-model-", dir="/dev/shm")
        self.where = library, os.path.join(self.folder.name, "table"), self.narrow
        self.processes = [Process(*self.where) for _ in range(PROCESSES)]
        self.limits, self.keys, self.reserved, self.told = {}, {}, {}, []
        self.now = self.latest = FAR // TICK * TICK
        for name in "abcd"[:self.random.randint(1, 4)]:
            self.make(name)

    def end(self):
        for process in self.processes:
            process.end()
        self.folder.cleanup()

    def invent(self, algorithm):
        r = self.random
        unit = TICK if self.ticks else r.choice([1, 7, 1000, 10**6, 10**9])
        count = r.randint(1, 12)
        if algorithm in ("token-bucket", "gcra", "leaky-bucket", "smooth"):
            period = count * unit * 2**r.randint(0, 3)
            if not self.ticks and not self.narrow:
                period = r.randint(1, 40) * unit
            text = "%s %d/%dns burst=%d" % (algorithm, count, period, 2**r.randint(0, 3))
            queue = algorithm == "leaky-bucket" and not self.narrow and r.random() < 0.5
            return text + (" queue=%d" % r.randint(0, 6) if queue else "")
        if algorithm == "sliding-window":
            buckets = r.choice([1, 2, 3, 5, 10, 700])
            edge = " edge=loose" if r.random() < 0.3 else ""
            return "%s %d/%dns buckets=%d%s" % (algorithm, count, r.randint(1, 20) * buckets * unit,
                                                buckets, edge)
        count = count if r.random() < 0.6 or algorithm == "fixed-window" else r.randint(50, 200)
        align = " align=first" if algorithm == "fixed-window" and r.random() < 0.5 else ""
        return "%s %d/%dns%s" % (algorithm, count, r.randint(1, 40) * unit, align)

    def make(self, name):
        text = self.invent(self.random.choice(NARROW if self.narrow else list(KEYS)))
        for process in self.processes:
            process("make", name, text)
        self.limits[name] = Limit(text)
        self.tell("make", name, text)

    def tell(self, *what):
        self.told.append(what)

    def any(self, *call):
        return self.random.choice(self.processes)(*call)

    def key(self, name, key):
        if (name, key) not in self.keys:
            self.keys[name, key] = fresh(self.limits[name], self.narrow)
            self.keys[name, key].there = False
        return self.keys[name, key]

    def expect(self, answer, decision, *what):
        self.tell(*what, answer, decision)
        names = TELLS + (["item"] if "item" in decision else [])
        wrong = [name for name in names if answer[name] != decision[name]]
        if wrong:
            raise AssertionError("%s: %s" % (what, ", ".join(
                "%s is %s, not %s" % (name, answer[name], decision[name]) for name in wrong)))

    def taken(self, key, cost, decision):
        key.there = key.there or (decision["allowed"] and cost > 0)

    def pass_time(self):
        r = self.random
        most = max(limit.period for limit in self.limits.values())
        unit = max(1, min(int(limit.price) for limit in self.limits.values()))
        step = r.choice([0, 0, 0, 1, unit, r.randint(1, 8 * unit), r.randint(1, 3 * most)])
        if r.random() < 0.05:  # overtaken
            step = max(-r.randint(0, SECOND), self.latest - 9 * SECOND // 10 - self.now)
        self.now += step // TICK * TICK if self.ticks else step
        self.latest = max(self.latest, self.now)

    def an_ask(self, name):
        r = self.random
        limit = self.limits[name]
        cost = r.choice([0, 1, 1, 1, 2, 3, r.randint(1, limit.most + 1)])
        cost = -1 if r.random() < 0.02 else cost
        wait = r.choice([0, 0, 0, int(limit.price) * r.randint(0, 5),
                         limit.period * r.randint(0, 4)])
        return r.choice("xy"), cost, wait // TICK * TICK if self.ticks else wait, self.now

    # Each is one step; `name` is a limit's.

    def take(self, name):
        ask = self.an_ask(name)
        key = self.key(name, ask[0])
        decision = key.take(*ask[1:])
        self.taken(key, ask[1], decision)
        self.expect(self.any("take", name, *ask), decision, "take", name, *ask)

    def peek(self, name):
        ask = self.an_ask(name)
        decision = self.key(name, ask[0]).take(*ask[1:], False)
        self.expect(self.any("peek", name, *ask), decision, "peek", name, *ask)

    def give(self, name):
        text, units, _, now = self.an_ask(name)
        key = self.key(name, text)
        if units > 0 and key.there:
            key.give(units, now)
        self.tell("give", name, text, units, now)
        self.any("give", name, text, units, now)

    def forget(self, name, text=None):
        text = text or self.random.choice("xy")
        key = self.key(name, text)
        was_used = not key.is_fresh(self.latest)
        self.tell("forget", name, text, self.latest)
        assert self.any("forget", name, text, self.latest) == was_used, (name, text, was_used)
        large = isinstance(key, (SlidingWindow, SlidingLog))  # nothing of it is left, but its slot
        self.keys[name, text] = fresh(self.limits[name], self.narrow)
        self.keys[name, text].there = key.there and not large

    def many(self, name):
        asks = [(name, *self.an_ask(name)) for _ in range(self.random.randint(1, 20))]
        for ask, answer in zip(asks, self.any("many", asks)):
            key = self.key(name, ask[1])
            decision = key.take(*ask[2:])
            self.taken(key, ask[2], decision)
            self.expect(answer, decision, "many", *ask)

    def all(self, _):
        names = [self.random.choice(list(self.limits)) for _ in range(self.random.randint(1, 6))]
        asks = [(name, *self.an_ask(name)) for name in names]
        asks = [(name, text, max(cost, 0), wait, now) for name, text, cost, wait, now in asks]
        parts = {}  # items on one key are one ask
        for i, (name, text, cost, wait, _) in enumerate(asks):
            part = parts.setdefault((name, text), [i, 0, wait])
            part[1:] = part[1] + cost, min(part[2], wait)
        decision = take_all([(i, self.key(*at), cost, wait, self.now)
                             for at, (i, cost, wait) in parts.items()])
        self.expect(self.any("all", asks), decision, "all", asks)
        for at, (_, cost, wait) in parts.items():
            if decision["allowed"]:
                self.key(*at).take(cost, wait, self.now)
                self.taken(self.key(*at), cost, decision)

    def reserve(self, name):
        ask, number = self.an_ask(name), len(self.told)
        lifetime = self.limits[name].period * self.random.choice([0, 1, 10])
        key = self.key(name, ask[0])
        decision = key.take(*ask[1:])
        self.taken(key, ask[1], decision)
        process = self.random.choice(self.processes)
        answer = process("reserve", number, name, ask, lifetime)
        self.expect(answer, decision, "reserve", name, *ask)
        if decision["allowed"]:
            turn = self.now + decision["wait"]
            self.reserved[number] = process, name, ask[0], ask[1], turn, turn + lifetime

    def settle(self, _):
        if not self.reserved:
            return
        number = self.random.choice(list(self.reserved))
        process, name, text, cost, turn, expires = self.reserved.pop(number)
        true = self.random.choice([0, cost, self.random.randint(0, cost), cost + 2])
        in_time = self.now < expires
        self.tell("settle", name, text, cost, true, turn, self.now)
        assert process("settle", number, true, self.now) == in_time
        key = self.key(name, text)
        if in_time and cost > true and key.there:
            key.give_unused(cost - true, true, turn, self.now)
        elif in_time and true > cost:
            key.charge(true - cost, self.now)
            key.there = True

    def change(self, name):
        old = self.limits[name]
        text = self.invent(old.algorithm)
        if self.changes == 0 or text == old.text or ("queue" in text) != ("queue" in old.text):
            return
        self.changes -= 1
        for at, key in list(self.keys.items()):  # how a promise goes on is not told in numbers
            if at[0] == name and hasattr(key, "is_promised") and key.is_promised(self.latest):
                self.forget(*at)
        self.now = self.latest
        self.tell("change", name, text, self.now)
        self.any("change", name, text, self.now)
        self.limits[name] = Limit(text)
        for at, key in self.keys.items():
            if at[0] == name and key.there:
                key.change(self.limits[name], self.now)
            elif at[0] == name:
                key.limit = self.limits[name]

    def replace(self, name):
        """Nobody wants it any more; then another limit has its name."""
        self.tell("replace", name)
        for process in self.processes:
            process("drop", name)
        for _ in range(7):
            self.any("tend", self.latest)
            self.latest += 11 * SECOND // TICK * TICK
        self.now = self.latest
        self.keys = {at: key for at, key in self.keys.items() if at[0] != name}
        self.reserved = {n: r for n, r in self.reserved.items() if r[1] != name}
        self.make(name)

    def leave_and_come(self, _):
        i = self.random.randrange(PROCESSES)
        self.tell("leave and come", i)
        self.reserved = {n: r for n, r in self.reserved.items() if r[0] is not self.processes[i]}
        self.processes[i].end()
        self.processes[i] = Process(*self.where)
        for name, limit in self.limits.items():
            self.processes[i]("make", name, limit.text)

    def run(self):
        steps = [(self.take, 40), (self.peek, 10), (self.give, 8), (self.forget, 2), (self.many, 8),
                 (self.all, 12), (self.reserve, 8), (self.settle, 8), (self.change, 4),
                 (self.replace, 1), (self.leave_and_come, 1)]
        for _ in range(STEPS):
            self.pass_time()
            step, = self.random.choices([s for s, _ in steps], [weight for _, weight in steps])
            step(self.random.choice(list(self.limits)))


def tell_story(library, seed):
    story = Story(library, seed)
    try:
        story.run()
    except (AssertionError, RuntimeError) as error:
        for what in story.told[-30:]:
            print("   ", *what)
        print("story %d: %s" % (seed, error))
        return False
    finally:
        story.end()
    return True


def main():
    library, first, stories = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    failed = [seed for seed in range(first, first + stories) if not tell_story(library, seed)]
    print("%d stories, failed: %s" % (stories, failed or "none"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
