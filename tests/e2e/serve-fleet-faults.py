#!/usr/bin/env python3
"""serve-fleet-faults.py WEIR [--long] [TEST...] -- servers of a fleet on a real Redis, through
faults: what passes is never more than stated, and every ask is answered once, in its order.

Bounds are counts: a meter with burst b and rate r lets b + r (T + life) pass in a time T, which is
measured."""
import collections
import contextlib
import ctypes
import itertools
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

from fleeting import HOURLY, LONG, Load, Node, Wire, back, joined, nodes_on_cluster, passed, url
from redising import Redis, until
from serving import Resp, Told, ask_for_successor, encode, run_tests, takes_a_clock

PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # a successor's parent ends

BURST, RATE, LIFE = 100, 100, 0.25
METER = """version: 1
rules:
  - name: meter
    key: "{user}"
    limit: token-bucket 100/1s
    across: fleet
    within: 20ms
    when_alone: %s
"""


def bound(took):
    return BURST + RATE * (took + LIFE) + 1


def check(client, user, cost=1):
    return client("WEIR.CHECK", "COST", cost, "user", user)


def take_all(nodes, n, user="ann"):
    """Asks all nodes in turn until n have passed; then not one more does."""
    clients = [node.resp() for node in nodes]
    total = 0

    def more():
        nonlocal total
        total += sum(check(client, user)[0] for client in clients)
        return total >= n

    until("%d have passed" % n, more, state=lambda: "%d have" % total)
    total += sum(check(client, user)[0] for client in clients for _ in range(20))
    assert total == n, total


def spend(node, n, user="ann"):
    """Units of one node, until n have passed or it is refused."""
    with node.resp() as client:
        for i in range(n):
            if check(client, user)[0] == 0:
                return i
    return n


# ------------------------------------------------------------------ one Redis


def test_D5_redis_stopped(weir):
    """For 5 s: each goes by its share, together by the limit, and back."""
    rules = METER % "share"
    with Redis() as redis, Node(weir, url(redis), "a", rules=rules) as a, \
            Node(weir, url(redis), "b", rules=rules) as b:
        joined(a, b)
        with Load(a) as one, Load(b) as two:
            until("both pass", lambda: one.allowed and two.allowed)
            redis.process.send_signal(signal.SIGSTOP)
            until("both are alone", lambda: a.fleet["alone"] and b.fleet["alone"])
            alone = one.allowed, two.allowed
            time.sleep(5 if LONG else 1)
            assert one.allowed > alone[0] and two.allowed > alone[1], alone
            redis.process.send_signal(signal.SIGCONT)
            part = RATE / 2 * back(a, b)  # of a node that goes by its share while the other draws
            again = one.allowed, two.allowed
            until("both pass again", lambda: one.allowed > again[0] and two.allowed > again[1])
        took = max(one.took, two.took)
        print("stopped: %d of %d in %.1f s" % (passed(one, two), bound(took) + part, took))
        assert passed(one, two) <= bound(took) + part, (one.allowed, two.allowed, took, part)


def test_D5_redis_killed_and_empty(weir):
    """It comes back without its accounts: a burst more."""
    rules = METER % "share"
    with Redis() as redis, Node(weir, url(redis), "a", rules=rules) as a, \
            Node(weir, url(redis), "b", rules=rules) as b:
        joined(a, b)
        with Load(a) as one, Load(b) as two:
            for _ in range(3 if LONG else 1):
                until("both pass", lambda: one.allowed and two.allowed)
                redis.kill()
                until("both are alone", lambda: a.fleet["alone"] and b.fleet["alone"])
                redis.start()
                back(a, b)
            again = one.allowed, two.allowed
            until("both pass again", lambda: one.allowed > again[0] and two.allowed > again[1])
        took, lost = max(one.took, two.took), BURST * (3 if LONG else 1)
        print("killed: %d of %d in %.1f s" % (passed(one, two), bound(took) + lost, took))
        assert passed(one, two) <= bound(took) + lost, (one.allowed, two.allowed, took)


def test_D5_redis_comes_and_goes(weir):
    """For hardly longer than nodes need to be back: account and shares each pass the limit, and a
    part once more for a charge that was lost."""
    users = ["u%d" % i for i in range(8)]
    rules = HOURLY % (100, "20ms", "share")
    with Redis() as redis, contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(Node(weir, url(redis), "n%d" % i, rules=rules))
                 for i in range(3)]
        joined(*nodes)
        loads = [stack.enter_context(Load(node, key=lambda: random.choice(users), batch=1,
                                          pause=0.015)) for node in nodes]
        for _ in range(20):
            redis.process.send_signal(signal.SIGSTOP)
            time.sleep(0.9)
            redis.process.send_signal(signal.SIGCONT)
            time.sleep(1.1 + random.random() / 10)
        most = max(passed(*loads, key=user) for user in users)
        print("comes and goes: at most %d of 100" % most)
        assert most <= 200 + 100 // 3, most


# One rule for each attribute.
WITHIN = "version: 1\nrules:\n" + "".join("""  - name: by-%s
    key: "{%s}"
    limit: fixed-window 20/1h
    across: fleet
    within: %s
    when_alone: closed
""" % (key, key, within)
    for key, within in [("user", "20ms"), ("account", "50ms"), ("team", "10s")])


def test_D5_a_slow_redis_delays_nobody_beyond_within(weir):
    """By a clock that is told, so that a busy host changes nothing.  Redis stands still: an ask is
    answered when the clock says that its time is over, and not before.  One that can wait longer
    has its units when Redis goes on."""
    if not takes_a_clock(weir):
        return
    told, keys = Told(), ["user", "account", "account user team", "team"]
    with Redis() as redis, contextlib.ExitStack() as stack, \
            Node(weir, url(redis), "a", rules=WITHIN, threads=1, env=told.env(weir)) as a:
        until("it has joined", lambda: told.step(10) or a.is_ready(1), state=lambda: str(a.fleet))
        other, *clients = [stack.enter_context(a.resp()) for _ in range(1 + len(keys))]
        begin = told.now

        def waiting():
            for i in range(3):  # then the one thread has read what came before
                assert other("ECHO", i) == str(i)
            return [key for key, client in zip(keys, clients)
                    if not select.select([client.socket], [], [], 0)[0]]

        redis.process.send_signal(signal.SIGSTOP)
        for key, client in zip(keys, clients):
            client.send("WEIR.CHECK", *[word for name in key.split() for word in (name, "ann")])
        assert waiting() == keys
        for ms, left in [(19, keys), (20, ["account", "team"]), (49, ["account", "team"]),
                         (50, ["team"]), (150, ["team"])]:
            told.step(begin + ms - told.now)
            until("after %d ms" % ms, lambda: waiting() == left, state=lambda: str(waiting()))
        redis.process.send_signal(signal.SIGCONT)
        answers = [client.read() for client in clients]
        assert [(answer[0], answer[8]) for answer in answers] == [(0, "alone")] * 3 + [
            (1, "granted")], answers
        assert a.fleet["asks_alone"] == 3, a.fleet


def test_D5_checks_that_are_cancelled_keep_nobody_out(weir):
    """Redis and the clock stand still.  Of 4096 places an address gets half: also one whose clients
    leave theirs, again and again, for which draws are under way all the same."""
    if not takes_a_clock(weir):
        return
    told, reasons = Told(), collections.Counter()
    with Redis() as redis, Node(weir, url(redis), "a", rules=HOURLY % (20, "10s", "closed"),
                                threads=1, env=told.env(weir)) as a:
        until("it has joined", lambda: told.step(10) or a.is_ready(1), state=lambda: str(a.fleet))
        redis.process.send_signal(signal.SIGSTOP)
        for i in range(8):
            draws = a.fleet["draws"]
            checks = [{"attributes": {"user": "%d-%d" % (i, k)}} for k in range(1000)]
            with contextlib.closing(a.http()) as gone:
                gone.connection.request("POST", "/v1/check/batch", json.dumps({"checks": checks}))
                until("they wait", lambda: a.fleet["draws"] > draws or is_answered(gone))
                gone.connection.sock.shutdown(socket.SHUT_WR)
                answers = json.loads(gone.connection.getresponse().read())["answers"]
            reasons.update(answer["reason"] for answer in answers)
        assert reasons["cancelled"] + reasons["dry"] == 8000, reasons
        assert 1000 <= reasons["cancelled"] <= 2048, reasons
        door = "127.0.0.1", a.ports["resp"]
        with socket.create_connection(door, 60, ("127.0.0.2", 0)) as other:
            other.sendall(encode(("WEIR.CHECK", "user", "ann")))
            redis.process.send_signal(signal.SIGCONT)
            answer = b""
            while answer.count(b"\r\n") < 12:  # its numbers, its rule and its reason
                answer += other.recv(1000)
            assert b"granted" in answer, answer
        until("all places are free", lambda: told.step(10) or batch_passes(a))


def is_answered(http):
    return bool(select.select([http.connection.sock], [], [], 0)[0])


def batch_passes(node):
    """A thousand checks find places."""
    checks = [{"attributes": {"user": "later %d" % k}} for k in range(1000)]
    with contextlib.closing(node.http()) as client:
        client.connection.request("POST", "/v1/check/batch", json.dumps({"checks": checks}))
        answers = json.loads(client.connection.getresponse().read())["answers"]
    return all(answer["allowed"] for answer in answers)


def test_D5_redis_full(weir):
    """Draws are refused, and the node says why; with room, all is as before."""
    with Redis() as redis, \
            Node(weir, url(redis), "a", rules=HOURLY % (20, "10s", "closed")) as a:
        joined(a)
        assert spend(a, 5, "before") == 5
        redis.ok("CONFIG", "SET", "maxmemory-policy", "noeviction")
        redis.ok("CONFIG", "SET", "maxmemory", 1)
        until("it is noticed", lambda: not a.fleet["connected"], state=lambda: str(a.fleet))
        assert "memory" in a.fleet["why"], a.fleet
        with a.resp() as client:
            answer = check(client, "full")
            assert answer[0] == 0, answer
        redis.ok("CONFIG", "SET", "maxmemory", 0)
        back(a)
        with a.resp() as client:
            until("it passes", lambda: check(client, "new")[0] == 1)


def test_D5_draws_are_refused(weir):
    """A user that may beat, and not draw.  Draws are counted, and asks: as many as there are."""
    def draws():
        stats = redis.ok("INFO", "commandstats").split("\r\n")
        return sum(int(word.split("=")[1]) for line in stats if line.startswith("cmdstat_evalsha:")
                   for word in line.split(",") if "rejected_" in word or "failed_" in word)

    with Redis() as redis:
        redis.ok("ACL", "SETUSER", "fl", "on", ">pw", "~*", "&*", "+@all")
        where = "redis://fl:pw@127.0.0.1:%d" % redis.port
        with Node(weir, where, "a", rules=HOURLY % (20, "10s", "closed")) as a:
            joined(a)
            assert a.fleet["why"] is None and spend(a, 1, "before") == 1
            redis.ok("ACL", "SETUSER", "fl", "resetkeys", "~weir:{fleet:default}*")
            before = draws()
            with a.resp() as client:
                assert check(client, "ann")[0] == 0
                until("it says why", lambda: a.fleet["why"], state=lambda: str(a.fleet))
                fleet = a.fleet
                assert "draws are refused: " in fleet["why"], fleet
                assert fleet["connected"] and not fleet["alone"], fleet
                assert fleet["asks_alone"] == 1, fleet
                for _ in range(200):
                    assert check(client, "ann")[0] == 0
            assert a.fleet["asks_alone"] == 201, a.fleet
            assert 1 <= draws() - before <= 201 + 10, draws() - before  # and what is paid back
            until("it is logged", lambda: "draws are refused: " in a.complaints())
            assert a.complaints().count("draws are refused: ") == 1, a.complaints()
            redis.ok("ACL", "SETUSER", "fl", "~*")
            with a.resp() as client:
                until("it passes", lambda: check(client, "ann")[0] == 1)
                until("it is well", lambda: check(client, "bob", 0) and check(client, "eve")[0] >= 0
                      and a.fleet["why"] is None, 60, lambda: str(a.fleet))


def test_D5_password_changed(weir):
    """While nodes are connected, and with connections cut: they go on by their own parts."""
    with Redis() as redis:
        redis.ok("CONFIG", "SET", "requirepass", "one")
        redis.client = redis.connect()
        redis.ok("AUTH", "one")
        where = "redis://:one@127.0.0.1:%d" % redis.port
        with Node(weir, where, "a", rules=HOURLY % (20, "10s", "closed")) as a:
            joined(a)
            redis.ok("CONFIG", "SET", "requirepass", "two")
            redis.ok("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            until("it is noticed", lambda: not a.fleet["connected"], state=lambda: str(a.fleet))
            assert "two" not in a.complaints() and ":one" not in a.complaints()
            with a.resp() as client:
                assert check(client, "ann")[0] == 0
            redis.ok("CONFIG", "SET", "requirepass", "one")
            back(a)


# ---------------------------------------------------------------------- nodes


def test_D3_node_killed_with_full_purses(weir):
    """Meters have all their capacity again after b / r + life.  Of a window the purse is lost."""
    rules = METER % "closed" + (HOURLY % (2000, "10s", "closed")).split("rules:\n")[1].replace(
        "{user}", "{account}")
    with Redis() as redis, Node(weir, url(redis), "a", rules=rules) as a, \
            Node(weir, url(redis), "b", rules=rules) as b:
        joined(a, b)
        with a.resp() as client:
            spent = sum(client("WEIR.CHECK", "account", "ann")[0] for _ in range(300))
            meter = sum(check(client, "bob")[0] for _ in range(50))
            drawn = a.fleet["units_drawn"]
        a.kill()
        time.sleep(BURST / RATE + LIFE)
        with b.resp() as client:
            until("the meter is whole", lambda: check(client, "bob", BURST)[0] == 1)
            asked = [client("WEIR.CHECK", "account", "ann")[0] for _ in range(2100)]
        lost = 2000 - spent - sum(asked)
        print("killed: drawn %d, window lost %d of 2000" % (drawn, lost))
        assert 0 <= lost <= drawn - spent - meter, (lost, drawn, spent, meter)


def test_D3_all_restart_at_once(weir):
    """A window stays what it is: nodes pay back when they end, and accounts remember."""
    rules = HOURLY % (200, "10s", "closed")
    with Redis() as redis, contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(Node(weir, url(redis), "n%d" % i, rules=rules))
                 for i in range(3)]
        joined(*nodes)
        before = sum(spend(node, 20) for node in nodes)
        assert before == 60, before
        for node in nodes:
            node.process.send_signal(signal.SIGTERM)
        for node in nodes:
            assert node.process.wait(60) == 0
            node.process.stdout.close()
            node.errors.close()
        for node in nodes:
            node.start()
        joined(*nodes)
        total = before + sum(spend(node, 200) for node in nodes)
        print("restarted: %d of 200" % total)
        assert total <= 200, total


def test_D3_all_killed_at_once_under_load(weir):
    rules = METER % "closed"
    with Redis() as redis, contextlib.ExitStack() as stack:
        nodes = [stack.enter_context(Node(weir, url(redis), "n%d" % i, rules=rules))
                 for i in range(2)]
        joined(*nodes)
        begin, total = time.monotonic(), 0
        for _ in range(3 if LONG else 1):
            loads = [Load(node).__enter__() for node in nodes]
            until("all pass", lambda: all(load.allowed for load in loads))
            for node in nodes:
                node.process.kill()
            total += sum(load.end().allowed for load in loads)
            for node in nodes:
                node.kill()
                node.start()
            back(*nodes)
        took = time.monotonic() - begin
        # an ask whose answer was lost has passed, too: not counted here
        assert total <= bound(took), (total, took)


def test_D3_node_stopped(weir):
    """SIGSTOP: when it goes on, it does not spend units whose life is over."""
    rules = METER % "closed"
    with Redis() as redis, Node(weir, url(redis), "a", rules=rules) as a, \
            Node(weir, url(redis), "b", rules=rules) as b:
        joined(a, b)
        with Load(a) as one, Load(b) as two:
            for _ in range(5 if LONG else 1):
                before = one.allowed
                until("it passes", lambda: one.allowed > before)
                a.process.send_signal(signal.SIGSTOP)
                until("it is forgotten", lambda: b.fleet["members"] == 1)
                a.process.send_signal(signal.SIGCONT)
                joined(a, b)
        took = max(one.took, two.took)
        print("stopped node: %d of %d in %.1f s" % (passed(one, two), bound(took), took))
        assert passed(one, two) <= bound(took), (one.allowed, two.allowed, took)


def test_D3_a_quiet_node_loses_no_units(weir):
    """Units of a window that nobody asks for go back before they expire."""
    rules = HOURLY % (30, "10s", "closed")
    users = ["u%d" % i for i in range(20)]
    with Redis() as redis, Node(weir, url(redis), "a", rules=rules) as a, \
            Node(weir, url(redis), "b", rules=rules) as b:
        joined(a, b)
        left = {user: 30 - spend(a, 15, user) for user in users}
        with b.resp() as client:

            def more():
                for user in users:
                    left[user] -= check(client, user)[0]
                return sum(left.values()) == 0

            until("all units were spent", more, state=lambda: str(left))


def test_D3_clock_an_hour_off(weir):
    """Only Redis's clock counts."""
    if not takes_a_clock(weir):
        return
    library = os.path.join(os.path.dirname(os.path.abspath(weir)), "tests", "shifted-clock.so")
    rules = HOURLY % (40, "10s", "closed")
    for shift in [3600, -3600]:
        with Redis() as redis, Node(weir, url(redis), "a", rules=rules) as a, \
                Node(weir, url(redis), "b", rules=rules,
                     env={"LD_PRELOAD": library, "SHIFT_SECONDS": str(shift)}) as b:
            joined(a, b)
            take_all([a, b], 40)


def test_D3_two_fleets_on_one_redis(weir):
    """Each has its own limit."""
    rules = HOURLY % (20, "10s", "closed")
    with Redis() as redis, Node(weir, url(redis), "a", "--fleet-name", "x", rules=rules) as a, \
            Node(weir, url(redis), "a", "--fleet-name", "y", rules=rules) as b:
        joined(a)
        joined(b)
        assert [spend(node, 30) for node in [a, b]] == [20, 20]


def test_D4_two_hosts_of_one_name(weir):
    """They are one member, and each would have its part: that is said, at the node and by all that
    show nodes."""
    def fleet(verb):
        said = subprocess.run([weir, "fleet", verb, "--redis", url(redis)], capture_output=True,
                              text=True, timeout=60)
        return said.returncode, "TWO HOSTS have" in said.stdout

    def nodes():
        with a.resp() as client:
            return [n["shares_name"] for n in client.json("WEIR.FLEET.NODES")["nodes"]]

    with Redis() as redis, Node(weir, url(redis), "same", rules=METER % "share") as a:
        joined(a)
        assert (fleet("nodes"), fleet("status")) == ((0, False), (0, False))
        with Node(weir, url(redis), "same", rules=METER % "share") as b:
            until("all hear of it", lambda: (fleet("nodes"), fleet("status"), nodes()) ==
                  ((1, True), (1, True), [True]))
            until("the first hears of it", lambda: "under the name same" in (a.fleet["why"] or ""))
            until("and says so", lambda: "needs a name of its own" in a.complaints())
            assert a.fleet["connected"] and b.fleet["why"] is None, (a.fleet, b.fleet)
        until("it is alone again", lambda: a.fleet["why"] is None)
        until("nobody is told any more", lambda: fleet("nodes") == (0, False))


def test_D4_the_other_host_of_a_name_is_killed(weir):
    """The first is the member again, though its beats have smaller numbers."""
    with Redis() as redis, Node(weir, url(redis), "same", rules=METER % "share") as a:
        joined(a)
        with Node(weir, url(redis), "same", rules=METER % "share") as b:
            until("the first hears of it", lambda: "under the name same" in (a.fleet["why"] or ""))
            b.kill()
            until("it is alone again", lambda: a.fleet["why"] is None, state=lambda: str(a.fleet))


def test_D3_agent_of_two_servers_killed(weir):
    """Two servers share a table, and one is the agent: killed or stopped, the other is."""
    with Redis() as redis, tempfile.TemporaryDirectory() as folder:
        options = {"rules": HOURLY % (100, "10s", "closed"), "table": os.path.join(folder, "table")}
        with Node(weir, url(redis), "host", **options) as a, \
                Node(weir, url(redis), "host", **options) as b:
            until("one is the agent", lambda: a.fleet["agent"] != b.fleet["agent"])
            for act in (signal.SIGSTOP, signal.SIGKILL):
                agent, other = (a, b) if a.fleet["agent"] else (b, a)
                assert spend(agent, 10) + spend(other, 10) == 20
                agent.process.send_signal(act)
                until("the other is", lambda: other.fleet["agent"])
                until("and draws", other.draws)
                assert spend(other, 10) == 10
                if act == signal.SIGSTOP:
                    agent.process.send_signal(signal.SIGCONT)
                    until("it is no more", lambda: not agent.fleet["agent"])
                else:
                    agent.kill()
            # what was in the table's purses is still there
            total = 60 + spend(other, 100)
            print("two on a table: %d of 100" % total)
            assert total <= 100, total


def test_D3_handover(weir):
    """SIGUSR2 under load: nothing is asked twice, and the limit holds over both."""
    with Redis() as redis, tempfile.TemporaryDirectory() as folder:
        server = Node(weir, url(redis), "host", rules=METER % "share",
                      table=os.path.join(folder, "table"))
        joined(server)
        begin, first = time.monotonic(), server.pid
        with Load(server) as load:
            until("it passes", lambda: load.allowed)
            ask_for_successor(server.pid)
            for line in server.process.stdout:  # the successor inherits it
                if line.startswith("  table"):
                    break
            assert server.process.wait(60) == 0, server.complaints()
        with server.resp() as client:
            second = client.json("WEIR.STATUS")["pid"]
        assert second != first
        try:
            back(server)
            with Load(server) as more:
                until("it passes", lambda: more.allowed > 50)
        finally:
            os.kill(second, signal.SIGTERM)
            assert os.waitpid(second, 0)[1] == 0
        took = time.monotonic() - begin
        server.dead = True
        server.stop()
        assert passed(load, more) <= bound(took), (load.allowed, more.allowed, took)


# ----------------------------------------------------------------- asks, rules


def test_D3_odd_keys(weir):
    """Different keys have different accounts, on all nodes the same."""
    rules = HOURLY % (2, "10s", "closed")
    odd = [b"a b", b"a\0b", b"a\0c", b"\r\n", b"{}", b"}{x}", b"%00", b"\xff\xfe", b":", b"a:b",
           b"\xc3\xa4", b"'\"", b"*", b"x" * 300, b"x" * 299 + b"y", b"x" * 4000, b"\n" * 300]
    with Redis() as redis, Node(weir, url(redis), "a", rules=rules) as a, \
            Node(weir, url(redis), "b", rules=rules) as b:
        joined(a, b)
        with a.resp() as one, b.resp() as two:
            for key in odd:
                passes = [check(client, key)[0] for client in (one, two, one, two)]
                assert sum(passes) == 2, (key, passes)


def test_D3_costs(weir):
    """All or nothing, and nothing that can never pass is waited for."""
    rules = HOURLY % (20, "10s", "closed")
    with Redis() as redis, Node(weir, url(redis), "a", rules=rules) as a, \
            Node(weir, url(redis), "b", rules=rules) as b:
        joined(a, b)
        with a.resp() as one, b.resp() as two:
            assert check(one, "ann", 21)[0] == 0 and check(two, "ann", 10**15)[0] == 0
            assert check(one, "ann", 7)[0] == 1 and check(two, "ann", 7)[0] == 1
            assert check(one, "ann", 7)[0] == 0 and check(two, "ann", 7)[0] == 0
            assert check(one, "ann", 0)[0] == 1
            until("all of the rest", lambda: check(two, "ann", 6)[0] == 1)
            assert check(one, "ann")[0] == 0 and check(two, "ann")[0] == 0


SEVERAL = """version: 1
rules:
  - name: one
    key: "{user}"
    limit: fixed-window 30/1h
    across: fleet
    within: 10s
    when_alone: closed
  - name: two
    key: "{team}"
    limit: fixed-window 20/1h
    across: fleet
    within: 10s
    when_alone: closed
  - name: here
    key: "{user}"
    limit: fixed-window 15/1h
"""


def test_D3_several_limits(weir):
    """A request takes from all or from none: refused by one, it costs the others nothing."""
    with Redis() as redis, Node(weir, url(redis), "a", rules=SEVERAL) as a, \
            Node(weir, url(redis), "b", rules=SEVERAL) as b:
        joined(a, b)
        with a.resp() as one, b.resp() as two:
            def passes(client, team, n):
                """This many, and not one more; some may be with the other node for a moment."""
                total = 0

                def more():
                    nonlocal total
                    total += client("WEIR.CHECK", "user", "ann", "team", team)[0]
                    return total == n

                until("%d of %s pass" % (n, team), more, state=lambda: str(total))
                for _ in range(20):
                    assert client("WEIR.CHECK", "user", "ann", "team", team)[0] == 0, (team, n)

            passes(one, "red", 15)  # here
            passes(two, "red", 5)  # two
            passes(two, "blue", 10)  # here: 15 of b; what red refused ann has


def test_D3_as_many_limits_as_a_request_can_meet(weir):
    """64 of them, all across the fleet: drawn together, all or nothing."""
    rules = "version: 1\nrules:\n" + "".join(
        (HOURLY % (7 if i == 63 else 10, "10s", "closed")).split("rules:\n")[1].replace(
            "hourly", "h%d" % i) for i in range(64))
    with Redis() as redis, Node(weir, url(redis), "a", rules=rules) as a, \
            Node(weir, url(redis), "b", rules=rules) as b:
        joined(a, b)
        take_all([a, b], 7)


def test_D3_many_keys_at_once(weir):
    """More than a node knows: the rest is decided alone, and all are answered."""
    n = 70000 if LONG else 6000
    with Redis() as redis, \
            Node(weir, url(redis), "a", rules=HOURLY % (1, "10s", "open")) as a:
        joined(a)
        with contextlib.ExitStack() as stack:
            keys = iter(range(n))
            loads = [stack.enter_context(Load(a, key=lambda: "k%d" % next(keys, 0), batch=1000,
                                              pause=0)) for _ in range(8)]
            until("all were asked", lambda: sum(load.asked for load in loads) >= n, 300)
        total = sum(load.asked for load in loads)
        dry = sum(load.reasons.get("dry", 0) for load in loads)
        print("many: %d asked, %d passed, %d alone" % (total, passed(*loads),
                                                       a.fleet["asks_alone"]))
        assert dry == 0 and passed(*loads) >= n - 1, [load.reasons for load in loads]


def flood(node, connections, each):
    """Cold keys, as fast as they can be sent; the reasons of all answers."""
    clients = [node.resp() for _ in range(connections)]
    for i, client in enumerate(clients):
        client.raw(b"".join(encode(("WEIR.CHECK", "user", "f%d-%d" % (i, k))) for k in range(each)))
    reasons = [client.read()[8] for client in clients for _ in range(each)]
    for client in clients:
        client.close()
    return reasons


def test_D5_more_asks_than_can_wait(weir):
    """One address has half of the places; rules that are open alone refuse nobody.  All asks are
    counted."""
    for alone in ("open", "closed"):
        with Redis() as redis, \
                Node(weir, url(redis), "a", rules=HOURLY % (20, "10s", alone)) as a:
            joined(a)
            redis.process.send_signal(signal.SIGSTOP)
            reasons = flood(a, 48, 100)
            redis.process.send_signal(signal.SIGCONT)
            assert set(reasons) <= ({"granted"} if alone == "open" else {"alone", "dry"}), reasons
            with a.resp() as client:
                totals = client.json("WEIR.STATUS")["totals"]
            assert totals["check_allowed"] == reasons.count("granted"), totals
            assert totals["check_refused"] == len(reasons) - reasons.count("granted"), totals


def test_D3_limit_changed_under_load(weir):
    """And the rule renamed: every ask is answered, and the new limit holds."""
    rules = METER % "closed"
    with Redis() as redis, Node(weir, url(redis), "a", rules=rules) as a, \
            Node(weir, url(redis), "b", rules=rules) as b:
        joined(a, b)
        texts = [rules, rules.replace("100/1s", "50/1s"), rules.replace("name: meter", "name: m2"),
                 rules.replace("token-bucket 100/1s", "fixed-window 100/1s"),
                 rules.replace("    across: fleet\n    within: 20ms\n    when_alone: closed\n", "")]
        with Load(a, pause=0) as one, Load(b, pause=0) as two:
            for i in range(60 if LONG else 15):
                for node in (a, b):
                    with node.resp() as client:
                        answer = client("WEIR.RULES.SET", texts[i % len(texts)])
                        assert "rror" not in str(answer), answer
                asked = one.asked
                until("asks go on", lambda: one.asked > asked + 10)


def publish(weir, redis, text):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        newest = subprocess.run([weir, "fleet", "rules", "get", "--redis", url(redis)], text=True,
                                capture_output=True).stdout.split("\n")[0]
        file.write((newest + "\n" if newest.startswith("#") else "") + text)
        file.flush()
        subprocess.run([weir, "fleet", "rules", "set", file.name, "--redis", url(redis)],
                       check=True, capture_output=True)


def test_D6_rules_published_while_half_is_cut_off(weir):
    """Those that are cut off go on with the old ones, and follow when they are back."""
    with Redis() as redis, Wire(redis.port) as wire, contextlib.ExitStack() as stack:
        publish(weir, redis, HOURLY % (20, "1s", "share"))
        near = [stack.enter_context(Node(weir, url(redis), "near%d" % i)) for i in range(2)]
        far = [stack.enter_context(Node(weir, "redis://127.0.0.1:%d" % wire.port, "far%d" % i))
               for i in range(2)]
        joined(*near, *far)
        for node in near + far:
            until("version 1", lambda: node.fleet["version"] == 1)
        wire.cut = True
        for node in far:
            until("it is cut off", lambda: node.fleet["alone"])
        publish(weir, redis, HOURLY % (40, "1s", "share"))
        for node in near:
            until("version 2", lambda: node.fleet["version"] == 2)
        assert [node.fleet["version"] for node in far] == [1, 1]
        assert sum(spend(node, 40, "bob") for node in far) == 10  # 20, and half of the nodes
        wire.cut = False
        for node in far:
            until("it follows", lambda: node.fleet["version"] == 2)
        back(*far)
        take_all(near + far, 40, "new")


# -------------------------------------------------------------------- cluster


USERS = ["u%d" % i for i in range(12)]  # of all masters


def loads_on(stack, *nodes):
    users = itertools.cycle(USERS)
    return [stack.enter_context(Load(node, key=lambda: next(users))) for node in nodes]


def all_pass(loads):
    before = [dict(load.by_key) for load in loads]
    for user in USERS:
        until("%s passes" % user, lambda: sum(
            load.by_key.get(user, 0) - old.get(user, 0) for load, old in zip(loads, before)) > 0)


def test_D5_master_killed_under_load(weir):
    """Keys of its slots are refused until its replica is the master; others go on."""
    with nodes_on_cluster(weir, METER % "closed") as (cluster, a, b):
        with contextlib.ExitStack() as stack:
            loads = loads_on(stack, a, b)
            all_pass(loads)
            cluster.masters()[1].kill()
            until("its replica took its place", lambda: len(cluster.masters()) == 3)
            back(a, b)
            all_pass(loads)
        took = max(load.took for load in loads)
        for user in USERS:  # and a burst, for the writes that the replica did not have
            assert passed(*loads, key=user) <= bound(took) + BURST, (user, took)
        print("master killed: at most %d of %d in %.1f s" % (
            max(passed(*loads, key=user) for user in USERS), bound(took) + BURST, took))


def test_D3_resharding_under_load(weir):
    with nodes_on_cluster(weir, METER % "closed") as (cluster, a, b):
        with contextlib.ExitStack() as stack:
            loads = loads_on(stack, a, b)
            all_pass(loads)
            one, two, _ = cluster.nodes[:3]
            keys = ["weir:{default/meter:%s}" % user for user in USERS]
            slots = {one.ok("CLUSTER", "KEYSLOT", key) for key in keys}
            cluster.move(sorted(slot for slot in slots if slot < 5461), one, two)
            all_pass(loads)
        took = max(load.took for load in loads)
        for user in USERS:
            assert passed(*loads, key=user) <= bound(took), (user, took)


TWO_SHARDS = """version: 1
rules:
  - { name: by-user, key: "{user}", limit: fixed-window 500/1h, across: fleet, within: 10s,
      when_alone: closed }
  - { name: by-org, key: "{org}", limit: fixed-window 150/1h, across: fleet, within: 10s,
      when_alone: closed }
"""


def test_D3_all_or_nothing_in_two_shards(weir):
    """One limit is spent, and takes nothing from the other; nor does it while its shard is away."""
    with nodes_on_cluster(weir, TWO_SHARDS) as (cluster, a, b):
        clients = [a.resp(), b.resp()]
        one = cluster.nodes[0]

        def shard(key):  # the master of its slot
            slot = one.ok("CLUSTER", "KEYSLOT", "weir:{default/%s}" % key)
            return [who[2][1] for who in one.ok("CLUSTER", "SLOTS") if who[0] <= slot <= who[1]][0]

        user = next("u%d" % i for i in itertools.count()
                    if shard("by-user:u%d" % i) != shard("by-org:acme"))

        both, total, alone = ["user", user, "org", "acme"], 0, 0

        def ask(n, words):
            answers = [client("WEIR.CHECK", *words) for _ in range(n) for client in clients]
            return sum(answer[0] for answer in answers), answers[-1][8]

        def ask_both(reasons):
            nonlocal total
            passed_now, reason = ask(10, both)
            total += passed_now
            return reason in reasons

        def user_is_spent():
            nonlocal alone
            alone += ask(10, both[:2])[0]
            return total + alone >= 500

        until("both pass", lambda: ask_both(["granted"]))
        away = next(node for node in cluster.nodes if node.port == shard("by-org:acme"))
        away.process.send_signal(signal.SIGSTOP)
        until("they are alone", lambda: ask_both(["alone"]))
        away.process.send_signal(signal.SIGCONT)
        until("by-org is spent", lambda: ask_both(["limited"]))
        print("%d of 150 for both" % total)
        assert total <= 150
        until("by-user is spent", user_is_spent, state=lambda: "%d, %d" % (total, alone))
        assert ask(10, both[:2])[0] == 0 and total + alone == 500, (total, alone)


# ------------------------------------------------------------------- networks


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True).returncode == 0


class Namespace:
    """A network of its own, and a wire from it to this one."""

    def __init__(self, number):
        self.name = "weir%d-%d" % (os.getpid(), number)
        self.link = "wv%d-%d" % (os.getpid() % 100000, number)
        self.net = "10.213.%d" % (os.getpid() % 60 * 4 + number)

    def __enter__(self):
        self.works = (
            ip("netns", "add", self.name) and
            ip("link", "add", self.link, "type", "veth", "peer", "name", "there", "netns",
               self.name) and
            ip("addr", "add", self.net + ".1/24", "dev", self.link) and
            ip("link", "set", self.link, "up") and
            ip("-n", self.name, "addr", "add", self.net + ".2/24", "dev", "there") and
            ip("-n", self.name, "link", "set", "there", "up"))
        return self

    def cut(self, state="down"):
        assert ip("link", "set", self.link, state)

    def __exit__(self, *_):
        ip("link", "del", self.link)
        ip("netns", "del", self.name)


def test_D5_networks_cut_and_rejoined(weir):
    with Namespace(0) as one, Namespace(1) as two, tempfile.TemporaryDirectory() as folder:
        if not (one.works and two.works):
            print("no network namespaces here: not tested")
            return
        with Redis(None, "--bind", "127.0.0.1", one.net + ".1", two.net + ".1",
                   "--protected-mode", "no") as redis, \
                inside(weir, one, redis, folder) as a, inside(weir, two, redis, folder) as b:
            joined(a, b)
            cut_and_rejoin(a, b, [one, two])


@contextlib.contextmanager
def inside(weir, space, redis, folder):
    """A node in that network; its clients come by a socket in the file system."""
    path = os.path.join(folder, space.name)
    program = os.path.join(folder, "weir-" + space.name)
    with open(program, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\nexec ip netns exec %s %s \"$@\"\n" % (space.name,
                                                                     os.path.abspath(weir)))
    os.chmod(program, 0o755)
    with Node(program, "redis://%s.1:%d" % (space.net, redis.port), space.name,
              rules=METER % "share", resp=path, http="") as node:
        node.resp = lambda: Resp(path)
        yield node


def cut_and_rejoin(a, b, spaces):
    """One is cut off: the limit, and its part while the other still has all of it."""
    with Load(a) as one, Load(b) as two:
        for _ in range(3 if LONG else 1):
            begin = time.monotonic()
            spaces[0].cut()
            until("it is cut off", lambda: a.fleet["alone"])
            before = one.allowed, two.allowed
            until("both go on", lambda: one.allowed > before[0] + 60 and two.allowed > before[1])
            spaces[0].cut("up")
            back(a, b)
            away = time.monotonic() - begin
            before = one.allowed
            until("it passes", lambda: one.allowed > before)
    took = max(one.took, two.took)
    most = bound(took) + (3 if LONG else 1) * BURST / 2 + RATE * away / 2
    print("cut: %d of %d in %.1f s" % (passed(one, two), most, took))
    if not LONG:
        assert passed(one, two) <= most, (one.allowed, two.allowed, took)


def test_S5_asks_beyond_a_share_are_counted(weir):
    """One client asks for more at once than may wait for units: each refusal is in the totals of
    the engine, of the rule and of the door."""
    with Redis() as redis, Node(weir, url(redis), "a", rules=HOURLY % (10, "1s", "closed")) as a:
        until("it asks accounts", lambda: a.is_ready(1))
        redis.process.send_signal(signal.SIGSTOP)
        answers, clients = [], [a.http() for _ in range(3)]
        for i, client in enumerate(clients):
            checks = [{"attributes": {"user": "%d-%d" % (i, k)}} for k in range(1000)]
            client.connection.request("POST", "/v1/check/batch", json.dumps({"checks": checks}))
        for client in clients:
            answers += json.loads(client.connection.getresponse().read())["answers"]
            client.close()
        redis.process.send_signal(signal.SIGCONT)
        with a.resp() as client:
            status = client.json("WEIR.STATUS")
        assert not any(answer["allowed"] for answer in answers)
        beyond = sum(answer["reason"] == "dry" for answer in answers)
        assert beyond == a.metric('weir_share_refused_total{pool="waits-for-units"}')
        assert status["totals"]["check_refused"] == status["checks"]["refused"] == 3000, status
        assert a.metric('weir_decisions_total{rule="hourly",outcome="refused"}') == 3000


# In every test run; with --long all.
QUICK = ["test_D5_checks_that_are_cancelled_keep_nobody_out", "test_D5_redis_stopped",
         "test_D5_redis_full", "test_D3_node_stopped",
         "test_D5_a_slow_redis_delays_nobody_beyond_within", "test_D3_two_fleets_on_one_redis",
         "test_D3_odd_keys", "test_S5_asks_beyond_a_share_are_counted"]


if __name__ == "__main__":
    if not LONG and len(sys.argv) == 2:
        sys.argv += QUICK
    run_tests(globals())
