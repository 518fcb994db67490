#!/usr/bin/env python3
"""redis-scripts.py WEIR.SO [TEST...] -- the scripts of cluster/account in a real redis-server, by
its own clock: expiry, replicas, restarts, full memory, rights, and keys shared with the module."""
import os
import struct
import sys

from redising import Error, Redis, until, wait_ms
from serving import run_tests

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../cluster/account")
METER, WINDOW, LOG = "gcra 10/1h burst 10", "fixed-window 10/1h", "sliding-log 10/1h"
HOUR = 3600 * 10**6  # us


def text_of(name):
    with open(os.path.join(FOLDER, name + ".lua")) as file:
        return file.read()


def head_of(r, limit, state):
    """The head of accounts under a limit: as the module writes it.  The key may expire before it is
    read."""
    with r.connect() as raw:
        size = -1
        while size < 0:
            r.ok("WEIR.TAKE", "head", limit)
            raw.send("GET", "head")
            size = int(raw.line()[1:])
        while len(raw.bytes) < size + 2:
            raw.more()
        head = raw.bytes[:size - state]
    r.ok("DEL", "head")
    return head


def head_terms(head, at):
    """The place behind the head, in digits, the account's format, and the head."""
    return b"%d\0<c%dI8Bi8\0%c" % (len(head) + at, len(head), len(head)) + head


def short(n, size=7):
    return struct.pack("<q", n)[:size]


def meter_terms(head, price, capacity):
    return short(price) + short(capacity) + short(1000) + head_terms(head, 0)


def window_terms(head, count, period, cost=1):
    return short(cost, 4) + short(count) + short(period) + head_terms(head, 9) + b"\0"


class Scripts:
    """Takes of one unit under the three limits: 10 an hour."""

    def __init__(self, r):
        self.heads = {"meter": head_of(r, METER, 17), "window": head_of(r, WINDOW, 17),
                      "sliding-log": head_of(r, LOG, 32)}
        price = HOUR * 1000 // 10
        self.arguments = {
            "meter": [meter_terms(self.heads["meter"], price, 10 * price)],
            "window": [window_terms(self.heads["window"], 10, HOUR)],
            "sliding-log": [self.heads["sliding-log"], struct.pack("<4q", 1, 10, HOUR, 6),
                            HOUR // 1000 + 2]}

    def words(self, name, key):
        return ["EVAL", text_of(name), 1, key, *self.arguments[name]]

    def take(self, r, name, key):
        answer = r(*self.words(name, key))
        if isinstance(answer, (Error, list)):
            return answer  # not usual
        if name == "meter":
            return answer >= 0
        if name == "window":
            return isinstance(answer, int) or "+" in answer[-7:]
        return answer[1:8] == 7 * "\0"  # the first number, packed: below 128, or negative


LIMITS = {"meter": METER, "window": WINDOW, "sliding-log": LOG}


def test_D1_no_key_is_left_without_expiry(module):
    with Redis(module) as r:
        scripts = Scripts(r)
        for name, limit in LIMITS.items():
            for i in range(12):
                granted = scripts.take(r, name, name)
                life, reset = r("PTTL", name), r("WEIR.PEEK", name, limit, "COST", 0)[4]
                if name != "window" or reset > 1000:  # unless the hour has just ended
                    assert granted == (i < 10), (name, i)
                assert life >= reset, (name, i, life, reset)


def test_D1_an_emptied_window_keeps_its_expiry(module):
    """The script counts on in it, and leaves the expiry as it is."""
    limit = "fixed-window 10/1000d"
    with Redis(module) as r:
        terms = window_terms(head_of(r, limit, 17), 10, 24000 * HOUR)
        r.ok("WEIR.TAKE", "k", limit, "COST", 2)
        r.ok("WEIR.GIVE", "k", limit, "COST", 2)
        assert r("EVAL", text_of("window"), 1, "k", terms) > 0
        assert r("PTTL", "k") > 1000
        assert r("WEIR.PEEK", "k", limit, "COST", 0)[2] == 9


def test_scripts_and_module_share_keys(module):
    with Redis(module) as r:
        scripts = Scripts(r)
        for name, limit in (("meter", METER), ("sliding-log", LOG)):
            granted = 0
            for i in range(20):
                granted += scripts.take(r, name, name) if i % 2 else r("WEIR.TAKE", name, limit)[0]
            assert granted == 10, (name, granted)
            assert r("WEIR.INFO", name)[7] == 0


def test_a_window_counts_across_its_bytes(module):
    """The script writes one byte of the count, or all of them if another changes too."""
    limit, period, left = "fixed-window 70000/1000d", 24000 * HOUR, 70000
    with Redis(module) as r:
        head = head_of(r, limit, 17)
        for cost in (1, 254, 1, 1, 254, 1, 255, 1, 300, 64466, 1, 1, 1):
            r.ok("EVAL", text_of("window"), 1, "k", window_terms(head, 70000, period, cost))
            left -= cost
            assert r("WEIR.PEEK", "k", limit, "COST", 0)[2] == left, (cost, left)


def test_replicas_get_the_resulting_state(module):
    with Redis(module) as master:
        scripts = Scripts(master)
        with Redis(module, "--replicaof", "127.0.0.1", str(master.port)) as replica:
            until("the replica is in step",
                  lambda: replica.info("replication", "master_link_status") == "up")
            for name in LIMITS:
                for _ in range(3):
                    assert scripts.take(master, name, name) is True
            master.ok("WAIT", 1, 10000)
            for name in LIMITS:
                assert master("GET", name) == replica("GET", name)
                assert master.expiry(name) == replica.expiry(name)
                assert "READONLY" in str(replica(*scripts.words(name, name)))


def test_restart_with_append_only_file(module):
    r = Redis(module, "--appendonly", "yes", "--appendfsync", "always")
    scripts = Scripts(r)
    for name in LIMITS:
        for _ in range(4):
            scripts.take(r, name, name)
    before = [r.expiry(name) for name in LIMITS]
    r.kill()
    r.start()
    assert [r.expiry(name) for name in LIMITS] == before
    for name, limit in LIMITS.items():
        assert r("WEIR.PEEK", name, limit, "COST", 0)[2] in (6, 10 if name == "window" else 6)
    r.stop()


def test_out_of_memory_changes_nothing(module):
    with Redis(module) as r:
        scripts = Scripts(r)
        for name in LIMITS:
            assert scripts.take(r, name, name) is True
        before = [r("GET", name) for name in LIMITS]
        r.ok("CONFIG", "SET", "maxmemory", 1)
        for name in LIMITS:
            assert "OOM" in str(scripts.take(r, name, name))
        assert [r("GET", name) for name in LIMITS] == before


def test_foreign_values_stay(module):
    with Redis(module) as r:
        scripts = Scripts(r)
        r.ok("SET", "text", "hello")
        r.ok("RPUSH", "list", 1)
        for name in LIMITS:
            assert scripts.take(r, name, "text")[1] == "hello"
            answer = scripts.take(r, name, "list")
            assert isinstance(answer, Error) and "WRONGTYPE" in answer
        assert r("GET", "text") == "hello"


def test_reset_takes_all_or_none(module):
    with Redis(module) as r:
        scripts, reset = Scripts(r), ["EVAL", text_of("reset")]
        for name in LIMITS:
            assert scripts.take(r, name, name) is True
        r.ok("SET", "text", "hello")
        assert str(r(*reset, 4, *LIMITS, "text")).startswith("WRONGTYPE")
        assert r("EXISTS", *LIMITS) == 3
        assert r(*reset, 3, "meter", "none", "window") == 2
        assert r("EXISTS", *LIMITS) == 1 and r("GET", "text") == "hello"
        assert scripts.take(r, "meter", "meter") is True
        assert r("WEIR.PEEK", "meter", METER, "COST", 0)[2] == 9


def test_rights(module):
    with Redis(module) as r:
        scripts = Scripts(r)
        r.ok("ACL", "SETUSER", "ann", "on", ">pw", "~*", "+eval", "+get", "+time")
        with r.connect() as ann:
            assert ann("AUTH", "ann", "pw") == "OK"
            for name in LIMITS:
                assert isinstance(ann(*scripts.words(name, name)), Error)
        assert r("DBSIZE") == 0


def test_another_limit_is_left_to_the_caller(module):
    with Redis(module) as r:
        scripts = Scripts(r)
        for name, limit in (("meter", "gcra 11/1h burst 10"), ("window", "fixed-window 11/1h"),
                            ("sliding-log", "sliding-log 11/1h")):
            r.ok("WEIR.TAKE", name, limit)
            before = r("GET", name)
            answer = scripts.take(r, name, name)
            assert isinstance(answer, list) and answer[1] == before
            assert r("GET", name) == before


def test_expiry_is_renewed_before_it_is_needed(module):
    """A spent key drains in 100 ms; asked for a second, it never goes while it owes."""
    with Redis(module) as r:
        limit = "gcra 100/1s burst 10"
        head = head_of(r, limit, 17)
        terms = meter_terms(head, 10**7, 10**8)
        for _ in range(100):
            owed = r("EVAL", text_of("meter"), 1, "k", terms)
            life, reset = r("PTTL", "k"), r("WEIR.PEEK", "k", limit, "COST", 0)[4]
            assert owed < 10**8 and (reset == 0 or life >= reset), (owed, life, reset)
            wait_ms(10)
        until("the key goes", lambda: r("EXISTS", "k") == 0, 10)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    run_tests(globals())
