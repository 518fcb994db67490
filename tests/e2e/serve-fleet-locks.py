#!/usr/bin/env python3
"""serve-fleet-locks.py WEIR [TEST...] -- locks across a fleet, at a server over RESP and HTTP, on a
real redis-server: one holder, a line of waiters, clients, servers and a Redis that go away."""
import json
import os
import signal
import socket
import struct
import subprocess
import threading

from fleeting import HOURLY, Node, joined, url
from redising import Redis, until
from serving import Error, encode, run_tests

RULES = HOURLY % (5, "20ms", "share")


def test_D7_one_holder_at_a_time(weir):
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a, \
            Node(weir, url(redis), "b", rules=RULES) as b, a.resp() as here, b.resp() as there:
        joined(a, b)
        first = here.json("WEIR.LOCK", "nightly", "LIFETIME", 3600000)
        assert first["held"] and first["token"] > 0 and 0 < first["left_ms"] < 3600000, first
        other = there.json("WEIR.LOCK", "nightly")
        assert other["held"] is False and other["owner"] is None and other["token"] is None, other
        assert 0 < other["left_ms"] <= 3600000, other
        shown = subprocess.run([weir, "fleet", "lock", "nightly", "--show", "--json", "--redis",
                                url(redis)], check=True, capture_output=True, text=True).stdout
        assert json.loads(shown)["token"] == first["token"], shown
        # Renewed at another server: the owner and the token are all it takes
        again = there.json("WEIR.LOCK.RENEW", "nightly", first["owner"], first["token"])
        assert again["held"] and again["token"] == first["token"], again
        assert again["left_ms"] > 3000000, "as long as it was taken for"
        short = there.json("WEIR.LOCK.RENEW", "nightly", first["owner"], first["token"],
                           "LIFETIME", 1000)
        assert short["held"] and short["left_ms"] < 1000, short
        assert here.json("WEIR.LOCK.LOOK", "nightly")["left_ms"] > 3000000, "it ends no sooner"
        for owner, token in [("x", first["token"]), (first["owner"], first["token"] + 1)]:
            wrong = there.json("WEIR.LOCK.RENEW", "nightly", owner, token)
            assert wrong["held"] is False and wrong["owner"] is None, wrong
        assert there("WEIR.UNLOCK", "nightly", "somebody else") == "OK"
        assert there.json("WEIR.LOCK", "nightly")["held"] is False
        assert there("WEIR.UNLOCK", "nightly", first["owner"]) == "OK"
        assert here("WEIR.UNLOCK", "nightly", first["owner"]) == "OK"  # again
        lost = here.json("WEIR.LOCK.RENEW", "nightly", first["owner"], first["token"])
        assert lost["held"] is False and lost["left_ms"] == 0, lost
        second = there.json("WEIR.LOCK", "nightly")
        assert second["held"] and second["token"] > first["token"], (first, second)
        assert here.json("WEIR.LOCK", "Nightly")["held"], "another name"


def test_D7_a_lock_ends_by_itself(weir):
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a, a.resp() as resp:
        joined(a)
        resp.json("WEIR.LOCK", "short", "LIFETIME", 10)
        until("another has it", lambda: resp.json("WEIR.LOCK", "short", "LIFETIME", 10)["held"])


def test_D7_wrong_words(weir):
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a, a.resp() as resp:
        joined(a)
        for words in [["LOCK"], ["LOCK", ""], ["LOCK", "x" * 257], ["LOCK", "n", "LIFETIME", "9"],
                      ["LOCK", "n", "LIFETIME", "86400001"], ["LOCK", "n", "LIFETIME"],
                      ["LOCK", "n", "m"], ["LOCK", "n", "WAIT", "3600001"],
                      ["LOCK", "n", "WAIT", "-1"], ["LOCK", "n", "WAIT", "FOREVER"],
                      ["LOCK", "n", "WAIT"], ["LOCK", "n", "ID", "x" * 129],
                      ["UNLOCK", "n"], ["UNLOCK", "n", ""], ["UNLOCK", "n", "x" * 64],
                      ["LOCK.RENEW", "n", "o"],
                      ["LOCK.RENEW", "n", "o", "0"], ["LOCK.RENEW", "n", "o", "x"]]:
            answer = resp("WEIR." + words[0], *words[1:])
            assert isinstance(answer, Error), (words, answer)
        assert redis.client("KEYS", "weir:{lock*") == []


def in_line(weir, redis, name="nightly"):
    shown = subprocess.run([weir, "fleet", "lock", name, "--show", "--json", "--redis",
                            url(redis)], check=True, capture_output=True, text=True).stdout
    return json.loads(shown)["waiting"]


def line_is(weir, redis, n):
    until("%d wait" % n, lambda: in_line(weir, redis) == n, 60)


def unlock(client, lock, name="nightly"):
    assert client("WEIR.UNLOCK", name, lock["owner"]) == "OK"


def test_D7_waiters_in_order_at_every_door(weir):
    """RESP at one node, HTTP at another, and the command: one line."""
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a, \
            Node(weir, url(redis), "b", rules=RULES) as b, a.resp() as holder, \
            a.resp() as first, b.resp() as last:
        joined(a, b)
        lock = holder.json("WEIR.LOCK", "nightly", "LIFETIME", 3600000)
        first.send("WEIR.LOCK", "nightly", "WAIT", 3600000)
        line_is(weir, redis, 1)
        web = b.http()
        answers = []
        second = threading.Thread(target=lambda: answers.append(web(
            "POST", "/v1/fleet/locks", {"name": "nightly", "wait_ms": 3600000})))
        second.start()
        line_is(weir, redis, 2)
        third = subprocess.Popen([weir, "fleet", "lock", "nightly", "--wait", "1h", "--redis",
                                  url(redis), "--", "sh", "-c", "echo $WEIR_LOCK_TOKEN"],
                                 stdout=subprocess.PIPE, text=True)
        line_is(weir, redis, 3)
        last.send("WEIR.LOCK", "nightly", "WAIT", 3600000)
        line_is(weir, redis, 4)
        assert holder.json("WEIR.LOCK", "nightly")["waiting"] == 4
        unlock(holder, lock)
        locks = [lock, json.loads(first.read())]
        line_is(weir, redis, 3)
        unlock(holder, locks[1])
        second.join()
        assert answers[0].status == 200, answers
        locks.append(json.loads(answers[0].body))
        line_is(weir, redis, 2)
        unlock(holder, locks[2])
        locks.append({"held": True, "token": int(third.communicate()[0])})
        locks.append(json.loads(last.read()))
        assert all(lock["held"] for lock in locks), locks
        tokens = [lock["token"] for lock in locks]
        assert tokens == sorted(set(tokens)), tokens
        unlock(holder, locks[4])


def test_D7_a_redis_that_has_dropped_keys_keeps_nobody_out(weir):
    """Short of memory, it may drop any of a lock's keys: here the one that says when waiters were
    heard.  All in line are gone, have been heard by nobody, and lose their places together."""
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a, a.resp() as resp:
        joined(a)
        gone = [word for n in range(100) for word in (n, "gone%d" % n)]
        redis.client("ZADD", "weir:{lock:nightly}:line", *gone)
        lock = resp.json("WEIR.LOCK", "nightly", "WAIT", 30000)
        assert lock["held"], lock


def test_D7_a_waiter_whose_time_is_over_leaves(weir):
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a, \
            a.resp() as holder, a.resp() as waiter:
        joined(a)
        lock = holder.json("WEIR.LOCK", "nightly", "LIFETIME", 3600000)
        answer = waiter.json("WEIR.LOCK", "nightly", "WAIT", 100)
        assert answer["held"] is False and answer["owner"] is None, answer
        assert answer["waiting"] == 0 and 0 < answer["left_ms"] <= 3600000, answer
        line_is(weir, redis, 0)
        unlock(holder, lock)
        assert waiter.json("WEIR.LOCK", "nightly", "WAIT", 60000)["held"]


def test_D7_waiters_that_are_gone_never_have_it(weir):
    """Closed, half closed, and reset, with more requests behind or none; over HTTP too."""
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a, \
            a.resp() as holder:
        joined(a)
        lock = holder.json("WEIR.LOCK", "nightly", "LIFETIME", 3600000)
        waiters = [a.resp() for _ in range(9)]
        for waiter in waiters:
            waiter.send("WEIR.LOCK", "nightly", "WAIT", 3600000, "LIFETIME", 3600000)
        line_is(weir, redis, 9)
        for waiter in waiters[:3]:
            waiter.close()
        for waiter in waiters[3:6]:
            waiter.socket.shutdown(socket.SHUT_WR)
            assert json.loads(waiter.read())["held"] is False
            waiter.close()
        for waiter in waiters[6:]:
            waiter.send("ECHO", "x" * 100000)  # more than is read ahead
            waiter.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                     struct.pack("ii", 1, 0))
            waiter.close()
        line_is(weir, redis, 0)
        web = a.http()
        web.connection.request("POST", "/v1/fleet/locks", '{"name":"nightly","wait_ms":3600000}')
        line_is(weir, redis, 1)
        web.close()
        line_is(weir, redis, 0)
        unlock(holder, lock)
        assert holder.json("WEIR.LOCK", "nightly")["held"]


def test_D7_gone_clients_at_any_moment_leave_no_lock_behind(weir):
    """Each is gone at another moment of its ask; whatever was granted to them goes back long before
    it would end."""
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a:
        joined(a)
        for i in range(300):
            with a.resp() as client:
                client.send("WEIR.LOCK", "nightly", "WAIT", 3600000, "LIFETIME", 86400000,
                            "ID", "of %d" % i)
                if i % 3 == 0:
                    client.send("PING")
        line_is(weir, redis, 0)

        def ask():  # the last that were gone may still have their places
            answer = client("WEIR.LOCK", "nightly", "WAIT", 600)
            return not str(answer).startswith("ERR too many wait") and json.loads(answer)

        with a.resp() as client:
            answer = until("there is a place", ask)
            if not answer["held"]:  # told to one that was gone by then: its id has the same grant
                assert any(client.json("WEIR.LOCK", "nightly", "ID", "of %d" % i)["held"]
                           for i in range(300)), answer


def test_D7_an_answer_that_was_lost(weir):
    """The same id, at another server: the same grant."""
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a, \
            Node(weir, url(redis), "b", rules=RULES) as b, a.resp() as here, b.resp() as there:
        joined(a, b)
        first = here.json("WEIR.LOCK", "nightly", "ID", "ann-1", "LIFETIME", 1000000)
        again = there.json("WEIR.LOCK", "nightly", "ID", "ann-1", "WAIT", 5000,
                           "LIFETIME", 3600000)
        assert again["held"] and again["left_ms"] > 1000000, again
        for member in ["owner", "token"]:
            assert again[member] == first[member], (first, again)
        assert here.json("WEIR.LOCK", "nightly", "ID", "bob-1")["held"] is False
        assert here.json("WEIR.LOCK", "nightly")["held"] is False
        kept = here.json("WEIR.LOCK.RENEW", "nightly", again["owner"], again["token"])
        assert kept["held"], kept
        unlock(here, again)
        second = here.json("WEIR.LOCK", "nightly", "ID", "ann-1")
        assert second["held"] and second["token"] > first["token"], second


def test_D7_a_client_that_comes_again_keeps_what_it_is_told(weir):
    """Its first attempt, of a connection that is gone, may be given up when the second is told."""
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a, \
            Node(weir, url(redis), "b", rules=RULES) as b, b.resp() as there:
        joined(a, b)
        for i in range(30):
            with a.resp() as here:
                here.send("WEIR.LOCK", "nightly", "ID", i, "WAIT", 60000, "LIFETIME", 3600000)
            lock = there.json("WEIR.LOCK", "nightly", "ID", i, "WAIT", 60000, "LIFETIME", 3600000)
            assert lock["held"], lock
            line_is(weir, redis, 0)  # whatever the first was up to, it is over
            kept = there.json("WEIR.LOCK.RENEW", "nightly", lock["owner"], lock["token"])
            assert kept["held"], (i, kept)
            unlock(there, lock)


def test_D7_waiting_while_redis_is_away(weir):
    """Nobody loses a place, and the time of waiting is bounded all the same."""
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a, \
            a.resp() as holder, a.resp() as first, a.resp() as second, a.resp() as short:
        joined(a)
        lock = holder.json("WEIR.LOCK", "nightly", "LIFETIME", 3600000)
        first.send("WEIR.LOCK", "nightly", "WAIT", 3600000)
        line_is(weir, redis, 1)
        second.send("WEIR.LOCK", "nightly", "WAIT", 3600000)
        line_is(weir, redis, 2)
        short.send("WEIR.LOCK", "nightly", "WAIT", 3000)
        os.kill(redis.process.pid, signal.SIGSTOP)
        answer = short.read()
        assert isinstance(answer, Error) and "does not answer" in answer, answer
        os.kill(redis.process.pid, signal.SIGCONT)
        until("it is back", lambda: not isinstance(holder("WEIR.UNLOCK", "nightly", lock["owner"]),
                                                   Error), 60)
        got = json.loads(first.read())
        assert got["held"] and got["token"] > lock["token"], got
        unlock(holder, got)
        assert json.loads(second.read())["token"] > got["token"]


def test_D7_a_wait_without_any_answer_says_so(weir):
    """Its time is over before Redis has said who has the lock, and before the ask to Redis is given
    up or just after it."""
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a:
        joined(a)
        clients = [a.resp() for _ in range(120)]
        os.kill(redis.process.pid, signal.SIGSTOP)
        for i, client in enumerate(clients):
            client.send("WEIR.LOCK", "nightly", "WAIT", 100 + i)
        answers = [client.read() for client in clients]
        os.kill(redis.process.pid, signal.SIGCONT)
        for client, answer in zip(clients, answers):
            assert isinstance(answer, Error) and "does not answer" in answer, answer
            client.close()


def test_D7_a_lock_that_redis_grants_too_late_goes_back(weir):
    """The ask lies in its socket while it is stopped, and the client has been told of an error."""
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a:
        joined(a)
        clients = [a.resp() for _ in range(8)]
        assert clients[0].json("WEIR.LOCK", "another")["held"]  # Redis has the script now
        os.kill(redis.process.pid, signal.SIGSTOP)
        for i, client in enumerate(clients):
            client.send("WEIR.LOCK", "lock %d" % i, "LIFETIME", 86400000, "WAIT", i * 300)
        for client in clients:
            assert isinstance(client.read(), Error)
        until("it is known to be away", lambda: not a.fleet["connected"], 60)
        os.kill(redis.process.pid, signal.SIGCONT)
        until("it is back", lambda: a.fleet["connected"], 60)
        for i, client in enumerate(clients):
            answer = client.json("WEIR.LOCK", "lock %d" % i, "WAIT", 60000)
            assert answer["held"], (i, answer)
            client.close()


def test_D7_a_server_that_ends_tells_its_waiters(weir):
    with Redis() as redis, Node(weir, url(redis), "b", rules=RULES) as b:
        with Node(weir, url(redis), "a", rules=RULES) as a, b.resp() as holder:
            joined(a, b)
            lock = holder.json("WEIR.LOCK", "nightly", "LIFETIME", 3600000)
            waiters = [a.resp() for _ in range(5)]
            for waiter in waiters:
                waiter.send("WEIR.LOCK", "nightly", "WAIT", 3600000)
            line_is(weir, redis, 5)
            a.process.send_signal(signal.SIGTERM)
            for waiter in waiters:
                answer = waiter.read()
                assert isinstance(answer, Error) and "ending" in answer, answer
                waiter.close()
        line_is(weir, redis, 0)
        with b.resp() as holder:
            unlock(holder, lock)


def test_D7_locks_stay_when_the_server_that_granted_them_ends(weir):
    """In good order or not: the owner and the token are good at any other server."""
    with Redis() as redis, Node(weir, url(redis), "b", rules=RULES) as b, b.resp() as there:
        for end in ["stop", "kill"]:
            with Node(weir, url(redis), "a", rules=RULES) as a:
                joined(a, b)
                with a.resp() as here:
                    lock = here.json("WEIR.LOCK", end, "LIFETIME", 3600000)
                    mine = here.json("WEIR.LOCK", end + " waited", "LIFETIME", 3600000, "WAIT", 99)
                    assert lock["held"] and mine["held"], (lock, mine)
                    if end == "kill":
                        a.kill()
            for name, had in [(end, lock), (end + " waited", mine)]:
                assert there.json("WEIR.LOCK", name)["held"] is False
                kept = there.json("WEIR.LOCK.RENEW", name, had["owner"], had["token"])
                assert kept["held"] and kept["token"] == had["token"], kept
                unlock(there, had, name)
                assert there.json("WEIR.LOCK", name)["token"] > had["token"]


def test_D7_a_short_wait_is_for_the_line_and_not_for_redis(weir):
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a, a.resp() as one, \
            a.resp() as other:
        joined(a)
        redis.client("CLIENT", "PAUSE", 250)
        one.send("WEIR.LOCK", "nightly", "LIFETIME", 3600000, "WAIT", 5)
        other.send("WEIR.LOCK", "nightly", "LIFETIME", 3600000, "WAIT", 5)
        answers = [json.loads(client.read()) for client in [one, other]]
        assert sorted(answer["held"] for answer in answers) == [False, True], answers
        line_is(weir, redis, 0)


def test_D7_a_look_at_a_lock(weir):
    """Whoever looks learns nothing that would open it."""
    def look(server, name):
        answer = server.http()("GET", "/v1/fleet/locks?name=" + name)
        assert answer.status == 200, (answer.status, answer.body)
        return json.loads(answer.body)

    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a, \
            Node(weir, url(redis), "b", rules=RULES) as b, a.resp() as holder, \
            a.resp() as waiter, b.resp() as there:
        joined(a, b)
        free = {"held": False, "token": None, "left_ms": 0, "waiting": 0}
        assert look(a, "nightly") == there.json("WEIR.LOCK.LOOK", "nightly") == free
        assert redis.client("KEYS", "weir:{lock*") == []
        lock = holder.json("WEIR.LOCK", "nightly", "LIFETIME", 3600000)
        waiter.send("WEIR.LOCK", "nightly", "WAIT", 3600000)
        line_is(weir, redis, 1)
        for seen in [look(b, "nightly"), there.json("WEIR.LOCK.LOOK", "nightly")]:
            assert 0 < seen.pop("left_ms") <= 3600000, seen
            assert seen == {"held": True, "token": lock["token"], "waiting": 1}, seen
        unlock(holder, lock)
        unlock(holder, json.loads(waiter.read()))
        assert look(b, "nightly") == free
        assert a.http()("GET", "/v1/fleet/locks").status == 400
        assert isinstance(there("WEIR.LOCK.LOOK"), Error)
        os.kill(redis.process.pid, signal.SIGSTOP)
        assert a.http()("GET", "/v1/fleet/locks?name=nightly").status == 503
        os.kill(redis.process.pid, signal.SIGCONT)


def test_D7_one_address_does_not_take_all_places(weir):
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a, \
            a.resp() as holder:
        joined(a)
        lock = holder.json("WEIR.LOCK", "nightly", "LIFETIME", 3600000)
        waiters = [a.resp() for _ in range(128)]
        for waiter in waiters:
            waiter.send("WEIR.LOCK", "nightly", "WAIT", 3600000)
        line_is(weir, redis, 128)
        answer = holder("WEIR.LOCK", "nightly")
        assert isinstance(answer, Error) and "too many" in answer, answer
        with socket.create_connection(("127.0.0.1", a.ports["resp"]),
                                      source_address=("127.0.0.2", 0)) as there:
            there.sendall(encode(["WEIR.LOCK", "other"]))
            answer = there.recv(200)
            assert answer[:1] == b"$", answer
        for waiter in waiters:
            waiter.close()
        line_is(weir, redis, 0)
        unlock(holder, lock)
        assert holder.json("WEIR.LOCK", "nightly")["held"]


def test_D7_not_between_multi_and_exec(weir):
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES) as a, a.resp() as resp:
        joined(a)
        resp("MULTI")
        assert isinstance(resp("WEIR.LOCK", "nightly", "WAIT", 10), Error)
        resp("DISCARD")


if __name__ == "__main__":
    run_tests(globals())
