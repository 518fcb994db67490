#!/usr/bin/env python3
"""redis-told.py WEIR.SO [TEST...] -- what Redis is told of the keys that the module writes: whoever
begins to listen, and in whatever way, has the same bytes from then on; a change is counted; clients
that watch a key or cache it hear of changes alone."""
import importlib
import sys
import threading

from redising import VERSION, Redis, until
from serving import run_tests

module_tests = importlib.import_module("redis-module")
LIMITS, replica_of = module_tests.LIMITS, module_tests.replica_of


def take(r):
    """One unit of each, by every way in."""
    for limit in LIMITS:
        r.ok("WEIR.TAKE", "k:" + limit, limit)
    r.ok("CL.THROTTLE", "cell", 99, 1, 3600)
    r.ok("WEIR.TAKE", "{a}", "9/1h", "ID", "{a}id%d" % r("DBSIZE"), "KEEP", 3600000, "AND", "{a}b",
         "fixed-window 99/1w")
    r.ok("WEIR.DRAW", "{d}", "99/1h", "DEMAND", "{d}demand", "NEED", 2)
    r.ok("MULTI")
    r.ok("WEIR.TAKE", "in a transaction", "99/1h", "COST", 3)
    r.ok("WEIR.GIVE", "in a transaction", "99/1h")
    r.ok("EXEC")
    r.ok("EVAL", "redis.call('WEIR.TAKE', KEYS[1], '99/1h')", 1, "in a script")


def keys_of(r):
    return {key: (r("GET", key), r.expiry(key) if VERSION >= 7 else r("PTTL", key) > 0)
            for key in r("KEYS", "*")}


def compare(master, replica):
    take(master)
    assert master.ok("WAIT", 1, 30000) == 1
    same(keys_of(master), keys_of(replica))


def same(expected, found):
    for key in expected.keys() | found.keys():
        assert expected.get(key) == found.get(key), (key, expected.get(key), found.get(key))


def link_is_up(replica):
    return replica.info("replication", "master_link_status") == "up"


def is_written(r):
    return all(r.info("persistence", "aof_rewrite_" + what) == "0"
               for what in ("in_progress", "scheduled"))


def test_a_replica_that_comes_later(module):
    with Redis(module) as master:
        take(master)
        with replica_of(master, module) as replica:
            compare(master, replica)
        take(master)
        with replica_of(master, module) as replica:
            compare(master, replica)


def test_commands_that_are_renamed(module):
    """Without SET and DEL a replica decides by itself: it misses nothing."""
    renamed = [word for name in ("SET", "DEL") for word in ("--rename-command", name, "OUR" + name)]
    with Redis(module, *renamed) as master, Redis(module, *renamed) as replica:
        replica.ok("REPLICAOF", "127.0.0.1", master.port)
        until("it is in step", lambda: link_is_up(replica))
        for _ in range(3):
            master.ok("WEIR.TAKE", "a", "fixed-window 9/1w")
        master.ok("WEIR.TAKE", "b", "fixed-window 9/1w")
        assert master.ok("WEIR.RESET", "b") == 1
        assert master.ok("WAIT", 1, 30000) == 1
        assert replica.ok("WEIR.INFO", "a")[7] == 6 and replica("WEIR.INFO", "b") is None
        master.ok("WEIR.TAKE", "a", "fixed-window 9/1w", "AND", "b", "fixed-window 9/1w")
        master.ok("EVAL", "for _ = 1, 2 do redis.call('WEIR.TAKE', KEYS[1], ARGV[1]) end", 1, "b",
                  "fixed-window 9/1w")
        assert master.ok("WAIT", 1, 30000) == 1
        assert [replica.ok("WEIR.INFO", key)[7] for key in "ab"] == [5, 6]


def test_a_replica_that_lost_its_connection(module):
    with Redis(module) as master, replica_of(master, module) as replica:
        compare(master, replica)
        full = master.info("stats", "sync_full")
        for _ in range(3):
            master.ok("CLIENT", "KILL", "TYPE", "replica")
            take(master)
            until("it is back", lambda: link_is_up(replica))
            compare(master, replica)
        assert master.info("stats", "sync_full") == full  # it went on from the backlog


def test_listeners_that_come_under_load(module):
    """Replicas, then an append-only file: each ask before the snapshot is in it, each ask after it
    is heard."""
    ends = threading.Event()

    def ask(r, thread):
        with r.connect() as client:
            while not ends.is_set():
                client.many([["CL.THROTTLE", "%d:%d" % (thread, i), 99999, 1, 3600]
                             for i in range(50)])

    with Redis(module, "--appendfsync", "always") as r:
        threads = [threading.Thread(target=ask, args=(r, i)) for i in range(2)]
        for thread in threads:
            thread.start()
        try:
            until("all keys are there", lambda: r("DBSIZE") >= 100)
            with replica_of(r, module) as first, replica_of(r, module) as second:
                r.ok("CONFIG", "SET", "appendonly", "yes")
                until("it is written", lambda: is_written(r))
                ends.set()
                for thread in threads:
                    thread.join()
                take(r)
                assert r.ok("WAIT", 2, 30000) == 2
                same(keys_of(r), keys_of(first))
                same(keys_of(r), keys_of(second))
        finally:
            ends.set()
        before = keys_of(r)
        r.ok("DEBUG", "LOADAOF")
        same(before, keys_of(r))


def test_a_master_that_steps_down(module):
    """And up again: the other one goes on from its backlog."""
    with Redis(module) as first, Redis(module) as second:
        take(first)
        take(second)
        second.ok("REPLICAOF", "127.0.0.1", first.port)
        until("it is in step", lambda: link_is_up(second))
        for master, replica in ((first, second), (second, first)):
            compare(master, replica)
            master.ok("FAILOVER")
            until("they have changed", lambda m=master, r=replica: m.info(
                "replication", "role") == "slave" and link_is_up(m) and r.info(
                    "replication", "role") == "master")
            compare(replica, master)
        assert second.info("stats", "sync_full") == "0"


def test_a_replica_of_a_replica_that_becomes_a_master(module):
    with Redis(module) as first, replica_of(first, module) as second, \
            replica_of(second, module) as third:
        compare(first, second)
        take(first)
        second.ok("REPLICAOF", "NO", "ONE")
        take(second)
        until("it is in step", lambda: link_is_up(third))
        compare(second, third)
        full = second.info("stats", "sync_full")
        third.ok("REPLICAOF", "NO", "ONE")  # and back: what was heard before is over
        take(third)
        third.ok("REPLICAOF", "127.0.0.1", second.port)
        until("it is in step", lambda: link_is_up(third))
        compare(second, third)
        assert second.info("stats", "sync_full") != full


def test_a_master_that_was_alone_then_a_replica(module):
    """The other replica goes on from its backlog: no snapshot, no fork."""
    with Redis(module) as first, Redis(module) as second:
        take(second)
        second.ok("REPLICAOF", "127.0.0.1", first.port)
        until("it is in step", lambda: link_is_up(second))
        with replica_of(first, module) as third:
            take(first)
            assert first.ok("WAIT", 2, 30000) == 2
            second.ok("REPLICAOF", "NO", "ONE")
            take(second)
            third.ok("REPLICAOF", "127.0.0.1", second.port)
            until("it is in step", lambda: link_is_up(third))
            compare(second, third)
            assert second.info("stats", "sync_full") == "0"


def test_an_append_only_file_that_is_switched_on(module):
    r = Redis(module, "--appendfsync", "always")
    take(r)
    r.ok("CONFIG", "SET", "appendonly", "yes")
    take(r)
    until("it is written", lambda: is_written(r))
    take(r)
    before = keys_of(r)
    r.kill()
    r.command += ["--appendonly", "yes"]
    r.start()
    same(before, keys_of(r))
    take(r)
    before = keys_of(r)
    r.kill()
    r.start()
    same(before, keys_of(r))
    r.stop()


def test_changes_are_counted(module):
    """By them Redis decides when to save."""
    with Redis(module) as r:
        def changes():
            return int(r.info("persistence", "rdb_changes_since_last_save"))

        def by(*words):
            before = changes()
            r.ok(*words)
            return changes() - before

        assert [by("WEIR.TAKE", "k", "2/1h") for _ in range(4)] == [1, 1, 0, 0]
        assert [by("CL.THROTTLE", "c", 1, 1, 3600) for _ in range(3)] == [1, 1, 0]
        assert by("WEIR.TAKE", "a", "5/1h", "AND", "b", "5/1h", "ID", "i") == 3
        assert by("WEIR.PEEK", "a", "5/1h") == 0
        assert by("WEIR.GIVE", "k", "2/1h") == 1
        assert by("WEIR.RESET", "k", "c") == 2


def test_a_refusal_is_no_change_to_those_who_watch(module):
    with Redis(module) as r, r.connect() as other:
        def passes(*words):
            r.ok("WATCH", "k")
            other(*words)
            r.ok("MULTI")
            return r.ok("EXEC") == []

        assert not passes("WEIR.TAKE", "k", "2/1h")
        assert not passes("CL.THROTTLE", "k", 0, 1, 3600)  # another algorithm: it begins anew
        assert passes("CL.THROTTLE", "k", 0, 1, 3600)
        assert passes("WEIR.TAKE", "k", "gcra 1/1h")
        assert passes("WEIR.GIVE", "k", "gcra 1/1h", "COST", 0)
        assert not passes("WEIR.GIVE", "k", "gcra 1/1h")
        assert not passes("WEIR.TAKE", "k", "gcra 1/1h")
        assert not passes("WEIR.RESET", "k")
        assert passes("WEIR.RESET", "k")
        assert not passes("WEIR.TAKE", "j", "5/1h", "ID", "k")  # a receipt


def test_a_refusal_is_no_change_to_those_who_cache(module):
    """A client of RESP3 that has read a key is told when its copy is old."""
    with Redis(module) as r, r.connect() as cache:
        def is_told(*words):
            cache("GET", "k")
            r.ok(*words)
            cache.send("PING")
            first = cache.read()
            if first == "PONG":
                return False
            assert first == ["invalidate", ["k"]] and cache.read() == "PONG", first
            return True

        cache("HELLO", 3)
        assert cache("CLIENT", "TRACKING", "ON") == "OK"
        assert is_told("WEIR.TAKE", "k", "gcra 1/1h")
        assert not is_told("WEIR.TAKE", "k", "gcra 1/1h")
        assert not is_told("WEIR.PEEK", "k", "gcra 1/1h")
        assert is_told("WEIR.RESET", "k")


def test_no_key_stays_where_time_passed_meanwhile(module):
    """The server stood still between the decision and the expiry, which has passed."""
    with Redis(module, late_us=2500) as r:
        for _ in range(20):
            for key, limit in (("k", "100000/s burst 1"), ("w", "fixed-window 5/1ms"),
                               ("l", "sliding-log 1/2ms")):
                r.ok("WEIR.TAKE", key, limit)
                assert r("PTTL", key) != -1, limit


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    run_tests(globals())
