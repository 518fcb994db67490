#!/usr/bin/env python3
"""serve-fleet.py WEIR [TEST...] -- servers of a fleet on a real redis-server: one limit for all of
them at every door, the fleet's rules, a Redis that goes away and comes back."""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

from fleeting import Node, account, back, joined, url
from redising import Redis, until
from serving import (Error, Server, Told, encode, has_sanitizer, is_closed, run_tests,
                     takes_a_clock)

# Hours: no test is so slow that a unit comes back meanwhile.
RULES = """version: 1
rules:
  - name: hourly
    key: "{user}"
    limit: fixed-window 20/1h
    across: fleet
    within: 10s
    when_alone: share
"""


def node(weir, redis, *options, **more):
    return Node(weir, url(redis), None, *options, **more)


def check(client, user, *options):
    return client("WEIR.CHECK", *options, "user", user)


def test_D3_one_limit_at_every_door_of_two_servers(weir):
    with Redis() as redis, node(weir, redis, rules=RULES) as a, node(weir, redis, rules=RULES) as b:
        joined(a, b)
        with a.resp() as resp:
            http, allowed = b.http(), 0
            for i in range(15):
                allowed += check(resp, "ann")[0]
                answer = http("POST", "/v1/check", {"attributes": {"user": "ann"}})
                allowed += json.loads(answer.body)["allowed"]
            assert allowed == 20, allowed
            assert check(resp, "ann")[8] == "limited"
            assert check(resp, "bob")[0] == 1


def test_D3_a_check_tells_what_is_left(weir):
    """In the whole limit, if the account was asked; in memory a node knows what it has drawn."""
    rules = RULES.replace("20/1h", "100000/1h")
    with Redis() as redis, node(weir, redis, rules=rules) as a, node(weir, redis, rules=rules) as b:
        joined(a, b)

        def says(user):
            return subprocess.run([weir, "check", "user=" + user, "--server",
                                   "127.0.0.1:%d" % a.ports["http"]],
                                  capture_output=True, text=True, check=True).stdout

        with b.resp() as resp:
            assert check(resp, "ann")[2:4] == [100000, 99999]
        assert says("ann") == "allowed; the tightest is hourly: 99998 of 100000 left\n"
        until("units are drawn ahead", lambda: "drawn for this node" in says("ann"))
        answer = a.http()("POST", "/v1/check", {"attributes": {"user": "bob"}})
        answer = json.loads(answer.body)
        assert answer["remaining"] == 99999 and "drawn" not in answer, answer
        until("they are of one node", lambda: json.loads(a.http()("POST", "/v1/check", {
            "attributes": {"user": "bob"}}).body).get("drawn"))


def test_D3_an_answer_of_the_account_tells_when_all_is_back(weir):
    """And a refusal by the account what is left there: less would pass."""
    rules = RULES.replace("fixed-window 20/1h", "token-bucket 10/1h")
    with Redis() as redis, node(weir, redis, rules=rules) as a:
        joined(a)
        http = a.http()

        def ask(cost):
            answer = http("POST", "/v1/check", {"attributes": {"user": "ann"}, "cost": cost})
            said = answer.json()
            assert "drawn" not in said, said
            unit = 360  # seconds
            assert 0 <= said["remaining"] <= 10, said
            units_lacking = -(-said["reset_ms"] // (unit * 1000))
            assert units_lacking == 10 - said["remaining"], said
            return said, answer.headers["ratelimit"]

        said, header = ask(1)
        assert (said["allowed"], said["remaining"]) == (True, 9), said
        assert re.fullmatch(r'"hourly";r=9;t=3\d\d', header), header
        said, _ = ask(2)
        assert (said["allowed"], said["remaining"]) == (True, 7), said
        said, _ = ask(10)
        assert (said["reason"], said["remaining"]) == ("limited", 7), said
        said, _ = ask(7)
        assert (said["allowed"], said["remaining"]) == (True, 0), said


def test_R2_the_account_that_refused_is_named(weir):
    """Also if it has some left, so that its purse stays open; and it counts towards that ban."""
    rule = ("  - { name: %s, key: '{%s}', limit: fixed-window %d/1h, across: fleet, within: 10s, "
            "ban: { refusals: 3/1h, for: 1h } }\n")
    rules = "version: 1\nrules:\n" + rule % ("wide", "user", 1000) + rule % ("tight", "team", 5)
    with Redis() as redis, node(weir, redis, rules=rules) as a, a.resp() as resp:
        joined(a)

        def ask(*who):
            return resp("WEIR.CHECK", "COST", 3, *who)

        both = ("user", "ann", "team", "red")
        assert ask(*both)[0] == 1
        for _ in range(3):
            answer = ask(*both)
            assert answer[1:3] == ["tight", 5] and answer[8] == "limited", answer
            assert answer[4] > 0, answer
        answer = ask(*both)
        assert (answer[1], answer[8]) == ("tight", "banned"), answer
        assert ask("user", "ann")[0] == 1


def test_D3_what_is_left_is_never_told_by_an_old_answer(weir):
    """A check waits for one account and takes from the purse of another, whose account has been
    emptied by another node since it was last asked."""
    rules = RULES.replace("20/1h", "1000/1h").replace("hourly", "team").replace("user", "team")
    rules += rules[rules.index("  - name"):].replace("team", "user")
    with Redis() as redis, node(weir, redis, rules=rules) as a, node(weir, redis, rules=rules) as b:
        joined(a, b)

        def ask(http, team, user):
            body = {"attributes": {"team": team, "user": team + user}}
            return json.loads(http("POST", "/v1/check", body).body)

        def drain(team):
            """The answers by what one node had drawn, once the other has emptied the account."""
            until("units are drawn ahead",
                  lambda: ask(http, team, "ann")["remaining"] in range(5, 500))
            with b.resp() as resp:
                resp.many([("WEIR.CHECK", "team", team, "user", team + "bob")] * 1000)
            answers = [ask(http, team, "new-0")]
            while answers[-1]["allowed"]:
                answers.append(ask(http, team, "new-%d" % len(answers)))
            assert answers[-1]["rule"] == "team", answers[-1]
            return answers[:-1]

        http = a.http()
        # What was drawn goes back soon: on a busy machine before the other node is done.
        told = next(filter(None, (drain("team-%d" % i) for i in range(20))), [])
        assert told, "no units were drawn ahead"
        for left, answer in enumerate(reversed(told)):
            assert answer["rule"] != "team" or answer["remaining"] <= left, (left, answer)


def test_D3_answers_keep_their_order_while_some_wait(weir):
    """Each key is new, so that each check waits for its account; other commands stand between."""
    with Redis() as redis, node(weir, redis, rules=RULES) as a:
        joined(a)
        with a.resp() as resp:
            commands = []
            for i in range(300):
                commands.append(("WEIR.CHECK", "user", "u%d" % (i % 150)))
                if i % 7 == 0:
                    commands.append(("ECHO", "e%d" % i))
                if i % 11 == 0:
                    commands.append(("CL.THROTTLE", "t%d" % i, 15, 30, 60))
                if i % 13 == 0:
                    commands.append(("WEIR.CHECK", "COST", 0, "user", "u%d" % i))
                if i % 17 == 0:
                    commands.append(("NONSENSE", i))
            answers = resp.many(commands)
            for words, answer in zip(commands, answers):
                if words[0] == "ECHO":
                    assert answer == words[1], (words, answer)
                elif words[0] == "CL.THROTTLE":
                    assert answer[:3] == [0, 16, 15], (words, answer)
                elif words[0] == "NONSENSE":
                    assert isinstance(answer, Error), (words, answer)
                else:
                    assert answer[0] == 1 and answer[1] == "hourly", (words, answer)


def test_D3_a_client_may_go_on_or_end_while_its_check_waits(weir):
    """What it sends meanwhile is answered in its order, also if it has closed its side then.  One
    that closes it with nothing behind its check is taken for gone, and told so if it is not."""
    def send(client, n):
        for _ in range(n):
            client.raw(encode(("ECHO", "x")))
        client.socket.shutdown(socket.SHUT_WR)

    with Redis() as redis, node(weir, redis, rules=RULES) as a:
        joined(a)
        for n in [0, 1, 300, 20000]:
            with a.resp() as resp:
                redis.client("CLIENT", "PAUSE", 100)
                resp.send("WEIR.CHECK", "user", "waits%d" % n)
                sender = threading.Thread(target=send, args=(resp, n))
                sender.start()
                answer = resp.read()
                assert answer[0] == (n > 0), answer
                assert answer[8] == ("granted" if n else "cancelled"), answer
                assert [resp.read() for _ in range(n)] == ["x"] * n, n
                sender.join()
                assert is_closed(resp.socket), n


def test_D3_a_batch_and_forward_auth_wait_too(weir):
    with Redis() as redis, node(weir, redis, rules=RULES) as a:
        joined(a)
        http = a.http()
        checks = [{"attributes": {"user": "u%d" % (i % 40)}} for i in range(100)]
        answers = json.loads(http("POST", "/v1/check/batch", {"checks": checks}).body)["answers"]
        assert [x["allowed"] for x in answers] == [True] * 100, answers
        assert http("GET", "/v1/auth?user=zoe").status == 200
        assert http("GET", "/healthz").status == 200


def test_D3_an_ask_id_is_charged_once(weir):
    with Redis() as redis, node(weir, redis, rules=RULES) as a:
        joined(a)
        with a.resp() as resp:
            for i in range(40):
                answer = check(resp, "ann", "ID", "ask-%d" % (i // 2))
                assert answer[0] == 1, (i, answer)
            assert check(resp, "ann")[0] == 0


def test_D3_a_retry_of_an_ask_that_waits_is_not_charged(weir):
    """Redis stands still, so that the first waits while the others come.  If another thread was
    faster, or it took so long that they were decided alone, it is tried again."""
    for i in range(20):
        with Redis() as redis, node(weir, redis, rules=RULES) as a:
            joined(a)
            with a.resp() as one, a.resp() as two:
                redis.process.send_signal(signal.SIGSTOP)
                one.send("WEIR.CHECK", "ID", "same", "user", "ann")
                retries = [check(two, "ann", "ID", "same") for _ in range(3)]
                redis.process.send_signal(signal.SIGCONT)
                first = one.read()
                retries.append(check(two, "ann", "ID", "same"))
                left = sum(check(one, "ann")[0] for _ in range(20))
                alone = a.fleet["asks_alone"] > 0
        if not alone and first[0] == 1 and is_dry(retries[0]) and retries[3][0] == 1:
            assert left == 19, (left, retries)
            return
    raise AssertionError("no retry came while the first ask waited")


def is_dry(answer):
    return answer[0] == 0 and answer[8] == "dry" and answer[4] > 0


def test_D3_a_client_that_closes_while_its_check_waits_is_not_charged(weir):
    """Redis stands still meanwhile.  The one thread has read their ends when it answers another."""
    rules = RULES.replace("share", "closed")
    with Redis() as redis, node(weir, redis, rules=rules, threads=1) as a, a.resp() as resp:
        joined(a)
        redis.process.send_signal(signal.SIGSTOP)
        for _ in range(5):
            with a.resp() as gone:
                gone.send("WEIR.CHECK", "user", "ann")
            with a.resp() as gone:
                gone.send("WEIR.ENTER", "ATTRIBUTES", "user", "ann")
            with socket.create_connection(("127.0.0.1", a.ports["http"])) as gone:
                body = b'{"attributes":{"user":"ann"}}'
                gone.sendall(b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\n"
                             b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        for i in range(10):
            assert resp("ECHO", i) == str(i)
        redis.process.send_signal(signal.SIGCONT)
        back(a)
        assert sum(check(resp, "ann")[0] for _ in range(30)) == 20


def test_S5_a_check_that_is_cancelled_is_refused_once(weir):
    """By its client, which ends its side and still reads.  The engine and the door count alike."""
    with Redis() as redis, node(weir, redis, rules=RULES, threads=1) as a, a.resp() as resp:
        joined(a)
        redis.process.send_signal(signal.SIGSTOP)
        for n, verb in enumerate(["WEIR.CHECK", "WEIR.ENTER"], 1):
            with a.resp() as ends:
                ends.send(verb, "ATTRIBUTES", "user", "ann")
                ends.socket.shutdown(socket.SHUT_WR)
                assert ends.read()[8] == "cancelled"
            status = resp.json("WEIR.STATUS")
            refused = [status["totals"][what] for what in ("check_refused", "enter_refused")]
            assert status["checks"]["refused"] == sum(refused) == n, (verb, status)
        redis.process.send_signal(signal.SIGCONT)


def test_D3_a_client_that_has_gone_harms_nobody(weir):
    with Redis() as redis, node(weir, redis, rules=RULES) as a:
        joined(a)
        for i in range(50):
            with a.resp() as gone:
                gone.send("WEIR.CHECK", "user", "gone%d" % i)
        with a.resp() as resp:
            answer = check(resp, "ann")
            assert answer[0] == 1, (answer, a.fleet)


GUARDED = RULES.replace("{user}", "{account}") + """guards:
  - name: work
    concurrency: { max: 2, queue: 10, wait: 60s }
"""


def test_D3_enter_waits_for_units_and_for_permits(weir):
    """A permit that was given while units were missing is not kept."""
    with Redis() as redis, node(weir, redis, rules=GUARDED) as a:
        joined(a)
        with a.resp() as one, a.resp() as two, a.resp() as three:
            first = one("WEIR.ENTER", "account", "ann")
            second = two("WEIR.ENTER", "account", "bob")
            assert first[0] == 1 and second[0] == 1, (first, second)
            three.send("WEIR.ENTER", "WAIT", "60000", "account", "cid")
            until("it waits", lambda: one.json("WEIR.GUARDS")["guards"][0]["waiting"] == 1, 60)
            assert one("WEIR.EXIT", first[11], "ok") == 1
            third = three.read()
            assert third[0] == 1, third
            assert one("WEIR.EXIT", second[11], "ok") == 1
            assert one("WEIR.EXIT", third[11], "ok") == 1
            for i in range(19):
                entered = one("WEIR.ENTER", "account", "ann")
                assert entered[0] == 1 and one("WEIR.EXIT", entered[11], "ok") == 1, (i, entered)
            refused = one("WEIR.ENTER", "account", "ann")
            assert refused[0] == 0 and refused[8] == "limited", refused
            assert one.json("WEIR.GUARDS")["guards"][0]["in_flight"] == 0


def test_L11_an_enter_whose_time_has_gone_into_units_is_late(weir):
    """They come, and all permits are out: it would have waited.  One that would not is busy."""
    with Redis() as redis, node(weir, redis, rules=GUARDED, threads=1) as a:
        joined(a)
        with a.resp() as one, a.resp() as waits, a.resp() as does_not:
            os.kill(redis.process.pid, signal.SIGSTOP)
            waits.send("WEIR.ENTER", "WAIT", "1", "account", "ann")
            does_not.send("WEIR.ENTER", "account", "bob")
            sent = time.monotonic()
            for _ in range(2):
                assert one("WEIR.ENTER", "user", "no rule is for it")[0] == 1
            until("its time is over", lambda: time.monotonic() > sent + 0.01, 60)
            os.kill(redis.process.pid, signal.SIGCONT)
            assert (waits.read()[8], does_not.read()[8]) == ("late", "busy")
            assert one.json("WEIR.GUARDS")["guards"][0]["refused"]["late"] == 1


def test_G7_an_enter_that_waits_for_units_is_asked_once_whether_it_is_shed(weir):
    """A twentieth is let in.  All are the first of their accounts, and wait for units."""
    rules = GUARDED.replace("concurrency: { max: 2, queue: 10, wait: 60s }",
                            "system: { in_flight: 1 }\n    lease: 1h")
    with Redis() as redis, node(weir, redis, rules=rules) as a, a.resp() as resp:
        joined(a)
        held = resp("WEIR.ENTER", "GUARD", "work")
        assert held[0] == 1, held

        def share_let_in():
            resp("WEIR.ENTER", "GUARD", "work")
            return resp.json("WEIR.GUARDS")["guards"][0]["admitted_percent"]

        until("nearly all are shed", lambda: share_let_in() <= 6, 60)
        entered = [resp("WEIR.ENTER", "account", "u%d" % i) for i in range(100)]
        assert sum(e[0] for e in entered) >= 3, [e[8] for e in entered]


def test_D3_an_enter_whose_client_has_gone_meanwhile_keeps_no_permit(weir):
    """It waits for units; when they come, the only permit is for the next."""
    rules = GUARDED.replace("max: 2", "max: 1")
    for how in [lambda client: None, lambda client: client.send("PING")]:
        with Redis() as redis, node(weir, redis, rules=rules) as a, a.resp() as resp:
            joined(a)
            os.kill(redis.process.pid, signal.SIGSTOP)
            with a.resp() as gone:
                gone.send("WEIR.ENTER", "account", "ann")
                how(gone)
            os.kill(redis.process.pid, signal.SIGCONT)
            entered = resp("WEIR.ENTER", "WAIT", "20000", "account", "ann")
            assert entered[0] == 1, entered


def test_D3_a_client_that_went_on_and_has_gone_leaves_the_queue(weir):
    """Its enter waits for units, and goes on in the queue: the permits were taken meanwhile.  One
    thread takes what came first; if the permits were taken before, all wait in the queue."""
    with Redis() as redis, node(weir, redis, rules=GUARDED, threads=1) as a:
        joined(a)
        with a.resp() as one, a.resp() as first, a.resp() as gone:
            def waiting():
                return one.json("WEIR.GUARDS")["guards"][0]["waiting"]

            os.kill(redis.process.pid, signal.SIGSTOP)
            gone.send("WEIR.ENTER", "WAIT", "60000", "account", "ann")
            gone.send("PING")
            for _ in range(2):
                assert one("WEIR.ENTER", "user", "no rule is for it")[0] == 1
            first.send("WEIR.ENTER", "WAIT", "60000", "user", "ann")
            until("one waits", lambda: waiting() >= 1, 60)
            os.kill(redis.process.pid, signal.SIGCONT)
            until("both wait", lambda: waiting() == 2, 60)
            gone.socket.close()
            until("it has left", lambda: waiting() == 1, 20)


def test_D3_between_multi_and_exec_a_dry_purse_refuses(weir):
    """And that is the last word: it counts, and an id asks anew."""
    with Redis() as redis, node(weir, redis, rules=RULES) as a:
        joined(a)
        with a.resp() as resp:
            for n, options in enumerate([(), ("ID", "x")], 1):
                resp("MULTI")
                check(resp, "new%d" % n, *options)
                (answer,) = resp("EXEC")
                assert answer[0] == 0 and answer[8] == "dry", answer
                status = resp.json("WEIR.STATUS")
                assert status["checks"]["refused"] == status["totals"]["check_refused"] == n, status
                assert check(resp, "new%d" % n, *options)[0] == 1


def test_D5_each_goes_by_its_share_while_redis_is_away(weir):
    with Redis() as redis, node(weir, redis, rules=RULES) as a, node(weir, redis, rules=RULES) as b:
        joined(a, b)
        redis.kill()
        for server in [a, b]:
            until("it knows", lambda: not server.fleet["connected"], 60)
            with server.resp() as resp:
                allowed = sum(check(resp, "ann")[0] for _ in range(20))
                assert allowed == 10, allowed
        redis.start()
        for server in [a, b]:
            until("it is back", lambda: server.fleet["connected"], 60)
        with a.resp() as resp:
            until("the account is asked again", lambda: check(resp, "new")[0] == 1 and
                  account(redis.client, "default/hourly:new"), 60)


def test_D5_new_nodes_do_not_pass_the_limit_once_each(weir):
    """They start while Redis is away, and know nothing of each other.  When it is there, the limit
    is one."""
    with Redis() as redis, contextlib.ExitStack() as stack:
        redis.kill()
        told = ["--fleet-nodes", "4"]
        nodes = [stack.enter_context(node(weir, redis, *words, rules=RULES))
                 for words in ([], [], told, told)]
        clients = [stack.enter_context(each.resp()) for each in nodes]
        for each in nodes:
            until("it is alone", lambda: each.fleet["alone"], 60)
        allowed = [sum(check(client, "ann")[0] for _ in range(20)) for client in clients]
        assert allowed == [0, 0, 5, 5], allowed
        assert check(clients[0], "ann")[8] == "alone", check(clients[0], "ann")
        assert [each.fleet["part"] for each in nodes] == [0, 0, 250000, 250000]
        redis.start()
        for each in nodes:
            until("it is back", each.draws, 60)
        allowed = sum(check(client, "bob")[0] for client in clients for _ in range(20))
        assert allowed == 20, allowed


def test_D5_a_guess_is_no_part_that_was_told(weir):
    """A node that starts again in the same outage goes by what its operator says now, until Redis
    has told it a part."""
    with tempfile.TemporaryDirectory() as folder, Redis() as redis:
        def begins_with(nodes):
            with node(weir, redis, *nodes, rules=RULES, table=folder + "/table") as a:
                until("it is alone", lambda: a.fleet["alone"], 60)
                return a.fleet["part"]

        redis.kill()
        assert [begins_with(["--fleet-nodes", n]) for n in ("4", "1", "8")] == \
            [250000, 1000000, 125000]
        assert begins_with([]) == 0
        redis.start()
        with node(weir, redis, "--fleet-nodes", "1", rules=RULES, table=folder + "/table") as a:
            until("it is told its part", lambda: a.is_ready(1) and not a.fleet["learning"], 60)
        redis.kill()
        assert begins_with(["--fleet-nodes", "8"]) == 1000000


def test_D5_a_table_knows_its_part_for_a_week(weir):
    """Also if that is the whole.  By a clock that is told: six days after, and eight."""
    if not takes_a_clock(weir):
        return
    told = Told()
    with tempfile.TemporaryDirectory() as folder, Redis() as redis:
        table, copy = folder + "/table", folder + "/copy"
        with node(weir, redis, rules=RULES, table=table, env=told.env(weir)) as a:
            until("it has its part", lambda: told.step(10) or a.is_ready(1))
        redis.kill()
        for days, passes in [(6, 20), (2, 0)]:
            told.step(days * 86400 * 1000)
            subprocess.run(["cp", "--sparse=always", table, copy], check=True)  # it is mostly holes
            with node(weir, redis, rules=RULES, table=copy, env=told.env(weir)) as a, \
                    a.resp() as resp:
                until("it is alone", lambda: told.step(10) or a.fleet["alone"])
                allowed = sum(check(resp, "ann")[0] for _ in range(30))
                assert allowed == passes, (days, allowed)
                a.kill()  # its clock stands still, and it would wait for Redis


def test_D3_a_node_that_stood_still_owes_what_passed_meanwhile(weir):
    """Its clock jumps, as after a stop: the first asks find that nobody has filled purses for long,
    and pass by the share, before the agent has noticed.  The account is charged all the same."""
    if not takes_a_clock(weir):
        return
    told, passed = Told(), 0
    with Redis() as redis, \
            node(weir, redis, rules=RULES, threads=1, env=told.env(weir)) as a, a.resp() as resp:
        until("it has its part", lambda: told.step(10) or a.is_ready(1))
        passed += check(resp, "ann")[0]
        for _ in range(5):
            told.step(2000)
            passed += check(resp, "ann")[0] + check(resp, "ann")[0]
            until("it draws", lambda: told.step(10) or a.draws())
        passed += sum(check(resp, "ann")[0] for _ in range(30))
    assert passed == 20, passed


@contextlib.contextmanager
def two_on_a_table(weir, redis):
    """The host's agent, and the server that stands by."""
    with tempfile.TemporaryDirectory() as folder:
        on_table = {"rules": RULES, "table": folder + "/table"}
        with node(weir, redis, **on_table) as a, node(weir, redis, **on_table) as b:
            until("one has its part", lambda: a.is_ready(1) or b.is_ready(1), 60)
            yield (a, b) if a.fleet["agent"] else (b, a)


def goes_alone_and_back(redis, server, client, passed, alone):
    """20 have passed in the end, however many of them while it was alone."""
    redis.process.send_signal(signal.SIGSTOP)
    until("it is alone", lambda: server.fleet["alone"])
    now = sum(check(client, "ann")[0] for _ in range(alone))
    assert now == alone, now
    redis.process.send_signal(signal.SIGCONT)
    until("purses are asked", lambda: not server.fleet["alone"])
    passed += now + sum(check(client, "ann")[0] for _ in range(30))
    assert passed == 20, passed


def test_D5_a_server_that_stands_by_owes_what_passed_alone(weir):
    """The host's agent does not know its keys."""
    with Redis() as redis, two_on_a_table(weir, redis) as (_, other), other.resp() as resp:
        assert check(resp, "ann")[0] == 1
        goes_alone_and_back(redis, other, resp, 1, 5)


def test_D5_processes_of_a_host_owe_what_passed_alone_and_no_more(weir):
    """Both know the key.  The share began with what was left in the account: what the agent charged
    it with for that has not passed, whoever charges the account."""
    with Redis() as redis, two_on_a_table(weir, redis) as (agent, other), agent.resp() as one, \
            other.resp() as two:
        passed = sum(check(client, "ann")[0] for client in [two, one] for _ in range(5))
        assert passed == 10, passed
        goes_alone_and_back(redis, other, two, passed, 2)


def test_D5_a_window_is_charged_with_as_much_as_it_has(weir):
    """Both have passed their shares.  The first draws again before the second has charged its own,
    which is more than is left then, and becomes less while it charges."""
    def left():
        with a.resp() as client:
            return client.json("WEIR.EXPLAIN", "user", "ann")["accounts"][0]["remaining"]

    with Redis() as redis, node(weir, redis, rules=RULES) as a, node(weir, redis, rules=RULES) as b:
        joined(a, b)
        redis.process.send_signal(signal.SIGSTOP)
        with a.resp() as one, b.resp() as two:
            for server, client in [(a, one), (b, two)]:
                until("it is alone", lambda: server.fleet["alone"])
                assert sum(check(client, "ann")[0] for _ in range(20)) == 10
            redis.process.send_signal(signal.SIGCONT)
            back(a, b)
            for client in [one, two]:
                check(client, "ann")
            until("all is charged", lambda: left() == 0, state=lambda: "%d are left" % left())


def test_D5_a_node_that_restarts_while_it_is_alone_owes_no_more(weir):
    """The share began with what was left; the process that knew that is gone."""
    with tempfile.TemporaryDirectory() as folder, Redis() as redis, \
            node(weir, redis, rules=RULES, table=folder + "/table") as a:
        joined(a)

        def passes(n):
            with a.resp() as resp:
                return sum(check(resp, "ann")[0] for _ in range(n))

        passed = passes(6)
        redis.process.send_signal(signal.SIGSTOP)
        until("it is alone", lambda: a.fleet["alone"])
        passed += passes(3)
        a.kill()
        a.start()
        until("it is alone", lambda: a.fleet["alone"])
        passed += passes(2)
        assert passed == 11, passed
        redis.process.send_signal(signal.SIGCONT)
        until("it draws", lambda: a.draws() and a.fleet["members"] > 0)
        passed += passes(30)
        assert passed == 20, passed


def test_D5_nobody_is_refused_because_redis_was_not_asked_yet(weir):
    """A node has just started, and Redis is slow: its first ask waits as any other."""
    if not takes_a_clock(weir):
        return
    told, rules = Told(), RULES.replace("share", "closed")
    with Redis() as redis:
        redis.process.send_signal(signal.SIGSTOP)
        with node(weir, redis, rules=rules, threads=1, env=told.env(weir)) as a, a.resp() as resp:
            resp.send("WEIR.CHECK", "user", "ann")
            resp.send("ECHO", "last")
            redis.process.send_signal(signal.SIGCONT)
            answer = resp.read()
            assert answer[0] == 1, answer


def test_D4_a_guess_follows_those_that_have_come(weir):
    """Redis learns, for ever: it grants nobody a part.  New nodes go by their number until then."""
    def is_one_of(n, *nodes):
        redis.client("HSET", "weir:{fleet:default}", "learn", "9000000000000000")
        return [each.fleet["part"] for each in nodes] == [1000000 // n] * len(nodes)

    with Redis() as redis, node(weir, redis, rules=RULES) as a:
        until("it is the only one", lambda: is_one_of(1, a))
        with node(weir, redis, rules=RULES) as b:
            until("there are two", lambda: is_one_of(2, a, b), state=lambda: str(a.fleet))


def test_D5_a_table_that_was_in_a_fleet_counts_alone_without(weir):
    rules = RULES.replace("share", "closed")
    with tempfile.TemporaryDirectory() as folder:
        table = folder + "/table"
        with Redis() as redis, node(weir, redis, rules=rules, table=table) as a:
            joined(a)
        with Server(weir, "--fleet-node", "a", rules=rules, table=table, clock=False) as a, \
                a.resp() as resp:
            assert "this server is in none" in a.complaints(), a.complaints()
            assert "fleet-node is set, and fleet" in a.complaints(), a.complaints()
            allowed = sum(check(resp, "ann")[0] for _ in range(30))
            assert allowed == 20, allowed


def test_R14_a_number_of_nodes_without_a_fleet_does_nothing(weir):
    with Server(weir, "--fleet-nodes", "4", rules=RULES) as a:
        assert "fleet-nodes is set, and fleet" in a.complaints(), a.complaints()


def test_D3_a_server_that_stands_by_is_not_alone(weir):
    with tempfile.TemporaryDirectory() as folder, Redis() as redis:
        table = folder + "/table"
        with node(weir, redis, rules=RULES, table=table) as a, \
                node(weir, redis, rules=RULES, table=table) as b:
            until("one has its part", lambda: a.is_ready(1) or b.is_ready(1), 60)
            agent, other = (a, b) if a.fleet["agent"] else (b, a)
            until("the other is not alone", lambda: other.fleet["connected"], 60)
            agent.kill()
            until("it takes over", lambda: other.fleet["agent"] and other.is_ready(1), 60)
            agent.start()


def test_D3_a_rule_may_get_another_key(weir):
    """The limit stays the same, and so do its accounts; the table's purses do not."""
    with Redis() as redis, node(weir, redis, rules=RULES) as a:
        joined(a)
        with a.resp() as resp:
            for attribute in ["user", "team", "user"]:
                resp("WEIR.RULES.SET", RULES.replace("user", attribute))
                assert resp("WEIR.CHECK", attribute, "ann")[0] == 1, attribute


def test_D3_fleets_have_accounts_of_their_own(weir):
    with Redis() as redis, node(weir, redis, "--fleet-name", "blue", rules=RULES) as a:
        joined(a)
        with a.resp() as resp:
            assert check(resp, "ann")[0] == 1
        assert account(redis.client, "blue/hourly:ann")
        assert not account(redis.client, "default/hourly:ann")


def test_D6_rules_of_the_fleet_reach_every_server(weir):
    with Redis() as redis, node(weir, redis) as a, node(weir, redis) as b, \
            tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(RULES)
        file.flush()
        subprocess.run([weir, "fleet", "rules", "set", file.name, "--redis", url(redis)],
                       check=True, capture_output=True)
        for server in [a, b]:
            until("they are in force", lambda: server.fleet["version"] == 1, 60)
            with server.resp() as client:
                assert client.json("WEIR.STATUS")["rules"]["cause"] == "fleet"
                answer = client("WEIR.RULES.SET", "version: 1\nrules: []\n")
                assert "weir fleet rules set" in answer, answer


def test_D6_lists_and_modes_of_the_fleets_rules_hold_on_every_server(weir):
    text = '''version: 1
lists: { deny: { ip: [ 192.0.2.9 ] } }
rules:
  - { name: one, key: "{ip}", limit: 1/1h, mode: %s }
'''
    with Redis() as redis, node(weir, redis) as a, node(weir, redis) as b, \
            tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        for version, mode in (1, "shadow"), (2, "enforce"):
            file.truncate(0)
            file.seek(0)
            file.write(text % mode)
            file.flush()
            subprocess.run([weir, "fleet", "rules", "set", file.name, "--base", str(version - 1),
                            "--redis", url(redis)], check=True, capture_output=True)
            for server in [a, b]:
                until("it is in force", lambda: server.fleet["version"] == version, 60)
                with server.resp() as client:
                    assert client("WEIR.CHECK", "ip", "192.0.2.9")[8] == "denied"
                    passed = [client("WEIR.CHECK", "ip", "192.0.2.1")[0] for _ in range(3)]
                    assert passed == ([1, 1, 1] if mode == "shadow" else [0, 0, 0]), passed


def test_the_password_is_shown_nowhere(weir):
    with Redis() as redis:
        redis.client("CONFIG", "SET", "requirepass", "s3cr3t")
        there = "redis://:s3cr3t@127.0.0.1:%d" % redis.port
        with Node(weir, None, rules=RULES, env={"WEIR_FLEET": there}) as a:
            joined(a)
            with a.resp() as client:
                assert "s3cr3t" not in client("WEIR.SETTINGS")
                assert "s3cr3t" not in client("WEIR.STATUS")
            assert "s3cr3t" not in "".join(a.said) + a.complaints()


def test_D3_enters_that_wait_have_a_share_of_the_places(weir):
    """4,096 asks wait at once, half of them from one address: the next is refused at once, be it a
    check or an enter.  Each place comes back."""
    if has_sanitizer(weir, "tsan"):
        print("skipped: too slow to fill the places before Redis is known to be away")
        return
    bodies = [json.dumps({"checks": [{"attributes": {"user": "%d-%d" % (n, i)}}
                                     for i in range(1000)]}) for n in range(3)]

    def crowd():
        """Whether an enter was refused while the address had its share of the places: that is until
        Redis is known to be away, half a second."""
        http, refused = a.http(), a.metric(full)
        threads = [threading.Thread(target=a.http(), args=("POST", "/v1/check/batch", body))
                   for body in bodies]
        os.kill(redis.process.pid, signal.SIGSTOP)
        try:
            for thread in threads:
                thread.start()
            while a.metric(full) == refused and not a.fleet["alone"]:
                pass
            answer = http("POST", "/v1/enter", {"attributes": {"user": "eve"}})
        finally:
            os.kill(redis.process.pid, signal.SIGCONT)
        for thread in threads:
            thread.join()
        until("it draws again", a.draws, 60)
        return json.loads(answer.body).get("reason") == "dry"

    full = 'weir_share_refused_total{pool="waits-for-units"}'
    with Redis() as redis, node(weir, redis, rules=RULES.replace("share", "closed")) as a:
        joined(a)
        until("an enter is refused", crowd, 120)
        with a.resp() as resp:
            for i in range(2100):  # the node may have taken Redis for silent once more
                words = ("WEIR.ENTER", "ATTRIBUTES", "user", "u%d" % i)
                until("an enter finds a place", lambda ask=words: resp(*ask)[0] == 1, 60,
                      lambda ask=words: (resp(*ask), a.fleet))


if __name__ == "__main__":
    run_tests(globals())
