#!/usr/bin/env python3
"""serve-fleet-operators.py WEIR [TEST...] -- what operators ask a server about its fleet, over RESP
and HTTP, on a real redis-server: nodes, the history of the rules, rollback; a Redis that is
stopped, callers that are gone, words that are wrong."""
import json
import os
import signal
import subprocess
import tempfile
import threading
import urllib.parse

from fleeting import HOURLY, Node, joined, url
from redising import Redis, until
from serving import Error, Server, run_tests

RULES = HOURLY % ("%d", "20ms", "share")


def set_rules(weir, redis, limit, *options):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(RULES % limit)
        file.flush()
        subprocess.run([weir, "fleet", "rules", "set", file.name, "--redis", url(redis), *options],
                       check=True, capture_output=True)


def runs(server, version):
    until("version %d is in force" % version, lambda: server.fleet["version"] == version, 60)


def get(server, path):
    answer = server.http()("GET", ("/v1/fleet/" + path).rstrip("/"))
    assert answer.status == 200, (answer.status, answer.body)
    return json.loads(answer.body)


def roll_back(server, body):
    answer = server.http()("POST", "/v1/fleet/rollback", body)
    return answer.status, json.loads(answer.body)


def test_D6_nodes_at_every_door(weir):
    with Redis() as redis, Node(weir, url(redis), "a") as a, \
            Node(weir, url(redis), "b", rules=RULES % 20) as b:
        joined(a, b)
        set_rules(weir, redis, 10)
        runs(a, 1)
        until("a says so", lambda: get(a, "nodes")["nodes"][0]["runs"] == 1)

        def whole():  # a host that is starved for seconds has no part for a while
            nodes = resp.json("WEIR.FLEET.NODES")["nodes"]
            return [n["part"] for n in nodes] == [500000, 500000] and nodes

        with b.resp() as resp:
            nodes = until("each has its part", whole)
        assert [n["node"] for n in nodes] == ["a", "b"], nodes
        assert [n["runs"] for n in nodes] == [1, None], nodes
        assert [n["weight"] for n in nodes] == [1, 1], nodes
        assert nodes[0]["heard_us_ago"] >= 0 and nodes[1]["heard_us_ago"] is None, nodes
        assert [(n["refused"], n["why"]) for n in nodes] == [(0, ""), (0, "")], nodes


def test_D5_status_and_metrics_tell_of_a_silent_redis(weir):
    def status(node):
        return subprocess.run([weir, "status", "--server", "127.0.0.1:%d" % node.ports["http"]],
                              check=True, capture_output=True, text=True).stdout

    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES % 20) as a:
        joined(a)
        until("it is not alone", lambda: a.metric("weir_fleet_alone") == 0)
        assert a.metric("weir_fleet_members") == 1 and a.metric("weir_fleet_part_ratio") == 1
        until("Redis answers", lambda: "fleet       default, node a, 1 member, part 100.0 %; Redis "
              "answers\n" in status(a), state=lambda: status(a))
        redis.process.send_signal(signal.SIGSTOP)
        until("it is alone", lambda: a.metric("weir_fleet_alone") == 1)
        until("Redis is silent", lambda: "REDIS DOES NOT ANSWER: " in status(a),
              state=lambda: status(a))
        until("it is logged", lambda: "Redis does not answer: " in a.complaints(), 60)
        redis.process.send_signal(signal.SIGCONT)
        until("it is back", lambda: "Redis answers again" in a.complaints(), 60, a.complaints)
        assert "has no answer" not in a.complaints(), a.complaints()  # it was just back
    with Server(weir) as server:
        assert server.metric("weir_fleet_alone") == 0
        assert "fleet" not in status(server)
    with Node(weir, "redis://127.0.0.1:1", "new", rules=RULES % 20) as new:
        until("it says what counts", lambda: "share lets nothing pass until Redis has told this "
              "node's part" in new.complaints(), 60, new.complaints)
        until("so does its status", lambda: "part not known yet: share lets nothing pass; ALONE" in
              status(new), state=lambda: status(new))


def test_D5_a_new_node_without_rules_is_not_ready(weir):
    with Redis() as redis:
        redis.kill()
        with Node(weir, url(redis), "new") as new:
            assert new.http()("GET", "/readyz").status == 503
            until("it says so", lambda: "there are no rules yet, not even a copy: everything passes"
                  in new.complaints(), 60, new.complaints)
            assert "share lets nothing pass" not in new.complaints(), new.complaints()
            said = subprocess.run([weir, "status", "--server", "127.0.0.1:%d" % new.ports["http"]],
                                  check=True, capture_output=True, text=True).stdout
            assert "none yet: everything passes" in said, said
            redis.start()
            joined(new)
            assert new.http()("GET", "/readyz").status == 503
            until("it says what is missing now", lambda: "fleet default: Redis answers, and has no "
                  "rules for this fleet" in new.complaints(), 60, new.complaints)
            assert put(new, RULES % 10, base=0)[0] == 200
            until("it is ready", lambda: new.http()("GET", "/readyz").status == 200)
            assert new.complaints().count("has no rules for this fleet") == 1, new.complaints()


def test_D5_all_tell_by_what_decisions_go_by(weir):
    """Of two servers on one table one asks Redis.  The other is as alone as that one."""
    def tells(server):
        shown = subprocess.run([weir, "status", "--server", "127.0.0.1:%d" % server.ports["http"]],
                               check=True, capture_output=True, text=True).stdout
        with server.resp() as client:
            events = [event["state"] for event in client.json("WEIR.EVENTS")
                      if event["event"] == "fleet"]
        return (server.fleet["alone"], server.metric("weir_fleet_alone"), "ALONE" in shown,
                events[-1:])

    with tempfile.TemporaryDirectory() as folder, Redis() as redis:
        shared = {"rules": RULES % 20, "table": folder + "/table"}
        with Node(weir, url(redis), "a", **shared) as a, Node(weir, url(redis), "a", **shared) as b:
            for signal_sent, state in [(None, (False, 0, False, ["connected"])),
                                       (signal.SIGSTOP, (True, 1, True, ["alone"])),
                                       (signal.SIGCONT, (False, 0, False, ["connected"]))]:
                if signal_sent:
                    redis.process.send_signal(signal_sent)
                for server in [a, b]:
                    until("it tells", lambda: tells(server) == state,
                          state=lambda: str((tells(server), server.fleet)))


def test_D6_by_hand_is_one_node(weir):
    """Whoever changes a list or a mode by hand is told that other nodes keep theirs."""
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES % 20) as a:
        note = "on this node alone; on all: weir fleet rules"
        for words, noted in [(("mode", "off"), True), (("mode", "as-written"), True),
                             (("lists", "--add", "deny", "ip", "192.0.2.9"), True),
                             (("mode",), False), (("lists",), False),
                             (("mode", "off", "--json"), False)]:
            done = subprocess.run([weir, *words, "--server", "127.0.0.1:%d" % a.ports["http"]],
                                  check=True, capture_output=True, text=True)
            assert (note in done.stdout) == noted and done.stderr == "", (words, done)


def test_D6_history_and_rollback(weir):
    with Redis() as redis, Node(weir, url(redis), "a") as a, Node(weir, url(redis), "b") as b:
        joined(a, b)
        assert get(a, "history") == {"newest": 0, "all": 0, "stage": None, "versions": []}
        assert roll_back(a, {"version": 1})[0] == 404
        set_rules(weir, redis, 10, "--note", "the first")
        set_rules(weir, redis, 11, "--base", "1", "--note", "größer \"jetzt\"")
        with b.resp() as resp:
            history = resp.json("WEIR.FLEET.HISTORY")
            assert [v["version"] for v in history["versions"]] == [2, 1], history
            assert history["versions"][0]["note"] == "größer \"jetzt\"", history
            assert (history["newest"], history["all"], history["stage"]) == (2, 2, None), history
            assert history["versions"][0]["bytes"] == len(RULES % 11), history
            answer = resp.json("WEIR.FLEET.ROLLBACK", 1, "NOTE", "too\nmuch")
            assert answer == {"version": 3, "origin": 1}, answer
        runs(a, 3)
        assert "10/1h" in json.loads(a.http()("GET", "/v1/rules").body)["text"]
        assert roll_back(a, {"version": 2, "note": "x" * 255}) == (200, {"version": 4, "origin": 2})
        assert roll_back(a, {"version": 2}) == (200, {"version": 5, "origin": 2})
        versions = get(b, "history")["versions"]
        assert [v["origin"] for v in versions] == [2, 2, 1, 0, 0], versions
        assert [v["author"] for v in versions[:3]] == ["api@a", "api@a", "api@b"], versions
        assert [v["note"] for v in versions[:3]] == ["", "x" * 255, "too much"], versions
        set_rules(weir, redis, 12, "--base", "5", "--stage", "b")
        history = get(b, "history")
        assert (history["newest"], history["all"], history["stage"]) == (6, 5, "b"), history
        runs(b, 6)
        assert roll_back(b, {"version": 5})[0] == 200  # for all of them again
        for server in [a, b]:
            runs(server, 7)


def test_D6_each_fleet_has_its_own(weir):
    with Redis() as redis, Node(weir, url(redis), "a", "--fleet-name", "blue") as a:
        joined(a)
        set_rules(weir, redis, 10)  # of the fleet "default"
        assert get(a, "history")["newest"] == 0
        set_rules(weir, redis, 10, "--fleet", "blue")
        assert get(a, "history")["newest"] == 1


def test_D6_wrong_words(weir):
    with Redis() as redis, Node(weir, url(redis), "a") as a, a.resp() as resp:
        joined(a)
        set_rules(weir, redis, 10)
        for words in [["ROLLBACK"], ["ROLLBACK", "0"], ["ROLLBACK", "-1"], ["ROLLBACK", "x"],
                      ["ROLLBACK", "1", "2"], ["ROLLBACK", "1", "NOTE"], ["NODES", "a"],
                      ["ROLLBACK", "1", "NOTE", "x" * 256], ["ROLLBACK", "1 "], ["HISTORY", "1"],
                      ["ROLLBACK", str(2**63)], ["ROLLBACK", str(2**63 - 1)]]:
            answer = resp("WEIR.FLEET." + words[0], *words[1:])
            assert isinstance(answer, Error), (words, answer)
        for body in [{}, {"version": 0}, {"version": "x"}, {"version": 1.5}, {"version": None},
                     {"version": 1, "note": "x" * 256}, {"version": 1, "more": 1}, []]:
            assert roll_back(a, body)[0] == 400, body
        assert roll_back(a, {"version": 2})[0] == 404
        assert a.http()("GET", "/v1/fleet/rollback").status == 405
        assert get(a, "history")["newest"] == 1


def test_D6_another_kind_of_key_in_redis_is_told(weir):
    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES % 5) as a, a.resp() as resp:
        joined(a)
        redis.client("SET", "weir:{fleet:default}:document:rules", "something else")
        answer = resp("WEIR.FLEET.HISTORY")
        assert isinstance(answer, Error) and "WRONGTYPE" in answer, answer
        assert roll_back(a, {"version": 1})[0] == 503


def test_D6_in_no_fleet(weir):
    with Server(weir) as server, server.resp() as resp:
        for words in [["FLEET.NODES"], ["FLEET.HISTORY"], ["FLEET.ROLLBACK", "1"], ["LOCK", "n"],
                      ["LOCK.RENEW", "n", "o", "1"], ["UNLOCK", "n", "o"], ["FLEET"],
                      ["LOCK.LOOK", "n"], ["LOCK", "n", "WAIT", "10"], ["FLEET.RULES"],
                      ["FLEET.PUBLISH", "1"],
                      ["FLEET.RULES.SET", RULES % 1, "0"], ["FLEET.RULES.DIFF", "FROM", "1"]]:
            answer = resp("WEIR." + words[0], *words[1:])
            assert isinstance(answer, Error) and "--fleet" in answer, answer
        assert server.http()("GET", "/v1/fleet/nodes").status == 404
        assert roll_back(server, {"version": 1})[0] == 404


def test_D6_operators_alone(weir):
    tokens = {"WEIR_CHECK_TOKEN": "c" * 20, "WEIR_ADMIN_TOKEN": "a" * 20}
    with Redis() as redis, Node(weir, url(redis), "a", env=tokens) as a, a.resp() as resp:
        for token, good in [("c" * 20, False), ("a" * 20, True)]:
            assert resp("AUTH", token) == "OK"
            until("it is answered", lambda: not good or not isinstance(
                resp("WEIR.FLEET.NODES"), Error), 60)
            for words in [["FLEET.NODES"], ["FLEET.HISTORY"], ["FLEET"], ["LOCK", "n" + token],
                          ["FLEET.RULES.SET", RULES % 1, "0", "ID", "once"], ["FLEET.RULES"]]:
                answer = resp("WEIR." + words[0], *words[1:])
                assert isinstance(answer, Error) != good, (token, words, answer)
            answer = resp("WEIR.FLEET.ROLLBACK", 9)
            assert ("no version 9" if good else "NOPERM") in answer, answer


def test_D3_permits_across_the_fleet_are_refused_at_every_door(weir):
    """With the reason, and what to do instead.  Nothing changes."""
    text = RULES % 5 + "guards:\n  - name: db\n    concurrency: 10\n    across: fleet\n"
    line, reason, advice = ":%d:" % text.count("\n"), "cannot be across the fleet", "give each"

    def is_told(said, *more):
        assert all(words in said for words in (reason, advice, *more)), said

    def command(*words):
        done = subprocess.run([weir, *words], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0, (words, done.stdout)
        is_told(done.stdout + done.stderr, line)

    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file, Redis() as redis, \
            Node(weir, url(redis), "a", rules=RULES % 5) as a, a.resp() as resp:
        file.write(text)
        file.flush()
        joined(a)
        command("rules", "check", file.name)
        command("serve", "--rules", file.name, "--memory", "--resp", "127.0.0.1:0", "--http",
                "127.0.0.1:0", "--fleet", url(redis))
        command("fleet", "rules", "set", file.name, "--redis", url(redis))
        for words in [["RULES.CHECK", text], ["RULES.SET", text], ["FLEET.RULES.SET", text, "0"]]:
            is_told(str(resp("WEIR." + words[0], *words[1:])))
        for method, path in [("PUT", "/v1/rules"), ("PUT", "/v1/fleet/rules?base=0")]:
            answer = a.http()(method, path, text)
            assert answer.status == 422, (path, answer.status, answer.body)
            is_told(answer.body.decode())
        with open(a.rules, "w") as rules:
            rules.write(text)
        answer = resp("WEIR.RULES.RELOAD")
        assert isinstance(answer, Error), answer
        is_told(answer)
        assert resp("WEIR.CHECK", "user", "ann")[0] == 1
        assert get(a, "history")["newest"] == 0
        # One that was published by a program that does not look
        set_rules(weir, redis, 5)
        is_told(resp("WEIR.FLEET.RULES.DIFF", "TEXT", text))
        redis.client("HSET", "weir:{fleet:default}:document:rules", "t1", text)
        with Node(weir, url(redis), "b") as b:
            until("it refuses", lambda: b.fleet["refused"] == 1)
            is_told(b.fleet["refused_why"])
            assert b.fleet["version"] == 0, b.fleet


def put(server, text, **query):
    answer = server.http()("PUT", "/v1/fleet/rules?" + urllib.parse.urlencode(query), text)
    return answer.status, json.loads(answer.body)


def test_D6_rules_got_set_and_compared(weir):
    with Redis() as redis, Node(weir, url(redis), "a") as a, Node(weir, url(redis), "b") as b, \
            b.resp() as resp:
        joined(a, b)
        none = a.http()("GET", "/v1/fleet/rules")
        assert none.status == 404 and b"no rules yet" in none.body, none.body
        status = get(a, "")
        assert status["rules"]["newest"] == 0 and status["node"] == "a", status
        answer = resp.json("WEIR.FLEET.RULES.SET", RULES % 10, 0, "NOTE", "the first")
        assert answer == {"version": 1, "origin": 0}, answer
        runs(a, 1)
        # Two editors: the second is told
        assert put(a, RULES % 11, base=1, note="more") == (200, {"version": 2, "origin": 0})
        assert put(b, RULES % 12, base=1)[0] == 409
        answer = resp("WEIR.FLEET.RULES.SET", RULES % 12, 1)
        assert isinstance(answer, Error) and "version 2 is there" in answer, answer
        newest = get(a, "rules")
        assert newest["version"] == 2 and newest["text"] == RULES % 11, newest
        assert newest["author"] == "api@a" and newest["note"] == "more", newest
        assert put(b, RULES % 12, base=2, edit=int(newest["edit"]) ^ 1)[0] == 409
        assert put(b, RULES % 12, base=2, edit=newest["edit"])[0] == 200
        # Repeated under its id: the same version
        for _ in range(2):
            assert put(b, RULES % 13, base=3, id="mine")[1]["version"] == 4
        assert get(b, "history")["newest"] == 4
        assert get(a, "rules?version=1")["text"] == RULES % 10
        # What would change, and what has
        diff = resp.json("WEIR.FLEET.RULES.DIFF", "TEXT", RULES % 20)
        assert diff["from"] == 4 and diff["same"] is False, diff
        assert [c["name"] for c in diff["changes"]] == ["hourly"], diff
        assert "13/1h" in diff["changes"][0]["text"] and "20/1h" in diff["changes"][0]["text"], diff
        diff = json.loads(a.http()("POST", "/v1/fleet/rules/diff?from=1", "").body)
        assert diff["from"] == 1 and "10/1h" in diff["changes"][0]["text"], diff
        answer = a.http()("POST", "/v1/fleet/rules/diff", RULES % 13)
        assert json.loads(answer.body) == {"from": 4, "changes": [], "same": True}, answer.body


def test_D5_a_redis_that_wants_a_password_now(weir):
    def is_up():
        try:
            redis.connect().close()
            return True
        except OSError:
            return False

    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES % 10) as a:
        assert "  fleet  default, as node a, with rules of its own (--rules)\n" in a.said, a.said
        joined(a)
        redis.kill()
        until("it is alone", lambda: "Redis does not answer" in a.complaints(), 60, a.complaints)
        said = subprocess.run([weir, "check", "-s", "127.0.0.1:%d" % a.ports["http"], "user=x"],
                              capture_output=True, text=True, timeout=60).stderr
        assert "goes by this node's share of the limit" in said, said
        redis.command += ["--requirepass", "secret"]
        redis.is_ready = is_up
        redis.start()
        until("it says why", lambda: "Redis answers with an error now: " in a.complaints(), 60,
              a.complaints)
        assert "it wants a password (NOAUTH)" in a.fleet["why"], a.fleet
        assert "multibulk" not in a.complaints(), a.complaints()
        with a.resp() as client:
            answer = client("WEIR.FLEET")
        assert "the fleet's Redis answers with an error: " in answer, answer
        for words in [("fleet", "status"), ("fleet", "lock", "x", "--show"), ("redis", "status")]:
            place = (url(redis),) if words[0] == "redis" else ("--redis", url(redis))
            said = subprocess.run([weir, *words, *place], capture_output=True, text=True,
                                  timeout=60).stderr
            assert "Redis answers with an error: " in said and "NOAUTH" in said, said


def test_D6_staged_at_the_doors(weir):
    with Redis() as redis, Node(weir, url(redis), "a") as a, Node(weir, url(redis), "b") as b, \
            a.resp() as resp:
        joined(a, b)
        assert put(a, RULES % 10, base=0)[0] == 200
        for server in [a, b]:
            runs(server, 1)
        status, body = put(a, RULES % 11, base=1, stage="x")
        assert status == 400 and "no node x follows" in str(body), (status, body)
        assert get(a, "history")["newest"] == 1
        assert put(a, RULES % 11, base=1, stage="b")[0] == 200
        runs(b, 2)
        until("both say so", lambda: resp.json("WEIR.FLEET")["rules"] == {
            "newest": 2, "all": 1, "stage": "b", "nodes": 2, "current": 2, "refused": 0,
            "silent": 0, "own": 0, "shared_names": 0, "runs": 2}, 60)
        said = subprocess.run([weir, "fleet", "status", "--json", "--redis", url(redis)],
                              check=True, capture_output=True, text=True).stdout
        assert json.loads(said)["rules"]["stage"] == "b", said
        assert isinstance(resp("WEIR.FLEET.PUBLISH", 1), Error)
        done = {"published": True, "warning": None}
        assert resp.json("WEIR.FLEET.PUBLISH", 2) == done
        assert json.loads(a.http()("POST", "/v1/fleet/publish", {"version": 2}).body) == done
        runs(a, 2)


def test_D6_a_stage_with_another_limit_does_not_open_the_old_one(weir):
    """Both nodes ask for the same key in turn.  Under another algorithm or window it has an account
    of its own; under another count, the one that it had; and limits may change places."""
    text = (RULES % 20).replace("20ms", "10s")
    fixed, log = "fixed-window 20/1h", "sliding-log 20/1h"
    changes = [(fixed, log, 40), (fixed, "token-bucket 20/1h", 40),
               (fixed, "fixed-window 10/1h", 20), (fixed, "fixed-window 10/2h", 30),
               (log, "sliding-log 10/1h", 20),
               (log, "sliding-log 10/30m", 30),
               ("[fixed-window 20/1h, fixed-window 10/2h]",
                "[fixed-window 10/2h, fixed-window 20/1h]", 10)]
    with Redis() as redis, Node(weir, url(redis), "a") as a, Node(weir, url(redis), "b") as b, \
            a.resp() as here, b.resp() as there:
        joined(a, b)
        for i, (limit, then, most) in enumerate(changes):
            old, staged = [text.replace(fixed, words) for words in (limit, then)]
            assert put(a, old, base=2 * i)[0] == 200
            assert put(a, staged, base=2 * i + 1, stage="b")[0] == 200
            runs(a, 2 * i + 1)
            runs(b, 2 * i + 2)
            passed = [client("WEIR.CHECK", "user", i)[0] for client in [here, there] * 100]
            assert sum(passed) <= most, (limit, then, sum(passed))


def test_D6_a_stage_is_there_and_has_tried_it(weir):
    """Reports are written by hand: one of a node that was killed."""
    def report(age, runs):
        now = (int(redis.ok("TIME")[0]) - age) * 1000000
        redis.ok("HSET", "weir:{fleet:default}:reports:rules", "gone",
                 "\x1f".join([str(now), str(runs), "0", ""]))

    def fleet(*words):
        return subprocess.run([weir, "fleet", "rules", *words, "--redis", url(redis)],
                              input=RULES % 11, capture_output=True, text=True, timeout=60)

    with Redis() as redis, Node(weir, url(redis), "a") as a, a.resp() as resp:
        joined(a)
        assert put(a, RULES % 10, base=0)[0] == 200
        runs(a, 1)
        report(15, 1)
        said = fleet("set", "/dev/stdin", "--base", "1", "--stage", "gone")
        assert said.returncode == 1 and said.stderr.endswith("; those that do: a\n"), said
        status, body = put(a, RULES % 11, base=1, stage="gone")
        assert status == 400 and "those that do: a" in str(body), (status, body)
        report(0, 1)
        said = fleet("set", "/dev/stdin", "--base", "1", "--stage", "gone")
        assert said.returncode == 0, said
        said = fleet("publish")
        assert said.returncode == 0 and "warning: its stage gone has not" in said.stderr, said
        assert put(a, RULES % 12, base=2, stage="gone")[0] == 200
        report(15, 3)
        said = fleet("publish")
        assert said.returncode == 0 and "warning" not in said.stderr, said
        for base, publish in [(3, lambda: a.http()("POST", "/v1/fleet/publish", {"version": 4})),
                              (4, lambda: resp("WEIR.FLEET.PUBLISH", 5))]:
            report(0, base)
            assert put(a, RULES % (10 + base), base=base, stage="gone")[0] == 200
            said = publish()
            said = json.loads(said if isinstance(said, (bytes, str)) else said.body)
            assert said["published"] and said["warning"] == (
                "its stage gone has not told that it runs version %d: no node may have tried it" %
                (base + 1)), said
            status, body = put(a, RULES % (10 + base), base=base + 1)
            assert (status, body["version"]) == (200, base + 1), (status, body)


def test_D6_a_version_that_its_stage_refused_is_not_published(weir):
    """Reports are written by hand: no node is of a version that refuses good rules."""
    def report(runs, refused):
        now = int(redis.ok("TIME")[0]) * 1000000
        redis.ok("HSET", "weir:{fleet:default}:reports:rules", "b",
                 "\x1f".join([str(now), str(runs), str(refused), "why not"]))

    with Redis() as redis, Node(weir, url(redis), "a", rules=RULES % 10) as a:
        joined(a)
        assert put(a, RULES % 10, base=0)[0] == 200
        report(1, 0)
        assert put(a, RULES % 11, base=1, stage="b")[0] == 200
        report(1, 2)
        answer = a.http()("POST", "/v1/fleet/publish", {"version": 2})
        assert answer.status == 409 and b"has refused version 2" in answer.body, answer.body
        said = subprocess.run([weir, "fleet", "rules", "publish", "--redis", url(redis)],
                              capture_output=True, text=True, timeout=60)
        assert said.returncode == 1 and "has refused version 2" in said.stderr, said
        report(2, 0)
        assert a.http()("POST", "/v1/fleet/publish", {"version": 2}).status == 200


def test_D6_wrong_rules_are_not_published(weir):
    with Redis() as redis, Node(weir, url(redis), "a") as a, a.resp() as resp:
        joined(a)
        status, body = put(a, RULES % 10 + "  - nonsense\n  - { name: x, limit: y }\n", base=0)
        assert status == 422 and len(body["problems"]) >= 2, (status, body)
        listed = "version: 1\nlists:\n  deny: { ip: { file: hosts.txt } }\n"
        assert put(a, listed, base=0)[0] == 422
        assert put(a, "", base=0)[0] == 400
        assert put(a, RULES % 10)[0] == 400  # based on what?
        assert put(a, RULES % 10, base=-1)[0] == 400
        assert put(a, RULES % 10, base=0, stage="a b")[0] == 400
        assert put(a, RULES % 10, base=0, stage="x" * 65)[0] == 400
        assert put(a, RULES % 10, base=0, more=1)[0] == 400
        large = a.http()("PUT", "/v1/fleet/rules?base=0", "# " + "x" * (2 << 20))
        assert large.status == 413, large.status
        for words in [["RULES", "0"], ["RULES", "x"], ["RULES.SET", RULES % 1],
                      ["RULES.SET", "nonsense", "0"], ["RULES.DIFF"], ["RULES.DIFF", "FROM", "0"],
                      ["RULES.DIFF", "TEXT", "nonsense"], ["PUBLISH"], ["PUBLISH", "0"],
                      ["PUBLISH", "1"], ["RULES.DIFF", "FROM", "3"]]:
            answer = resp("WEIR.FLEET." + words[0], *words[1:])
            assert isinstance(answer, Error), (words, answer)
        assert get(a, "history")["newest"] == 0


def test_D6_redis_is_stopped(weir):
    """Every call is answered, the server does everything else meanwhile, and ends; and a call that
    was perhaps carried out says so."""
    with Redis() as redis, Node(weir, url(redis), "a") as a:
        joined(a)
        set_rules(weir, redis, 10)
        runs(a, 1)
        os.kill(redis.process.pid, signal.SIGSTOP)
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(roll_back(a, {"version": 1})))
                   for _ in range(20)]
        for thread in threads:
            thread.start()
        assert a.http()("GET", "/healthz").status == 200
        with a.resp() as resp:
            assert resp("PING") == "PONG"
        for thread in threads:
            thread.join()
        assert [status for status, _ in answers] == [503] * 20, answers
        until("it is known to be away", lambda: not a.fleet["connected"], 60)
        with a.resp() as resp:
            for words in [["FLEET.NODES"], ["LOCK", "n"], ["LOCK.RENEW", "n", "o", 1],
                          ["UNLOCK", "n", "o"], ["LOCK", "n", "WAIT", 60000], ["FLEET"],
                          ["FLEET.RULES"], ["FLEET.RULES.SET", RULES % 1, 1],
                          ["FLEET.RULES.DIFF", "FROM", 1], ["FLEET.PUBLISH", 1]]:
                answer = resp("WEIR." + words[0], *words[1:])
                assert isinstance(answer, Error) and "does not answer" in answer, answer
        os.kill(redis.process.pid, signal.SIGCONT)
        until("it is back", lambda: a.http()("GET", "/v1/fleet/nodes").status == 200, 60)
        assert get(a, "history")["newest"] >= 1


def test_D6_callers_that_are_gone(weir):
    """While Redis is stopped too: nothing of theirs stays, and the server ends."""
    with Redis() as redis:
        try:
            with Node(weir, url(redis), "a", rules=RULES % 5) as a:
                joined(a)
                for round in range(3):
                    for i in range(100):
                        with a.resp() as resp:
                            resp.send("WEIR.FLEET.HISTORY")
                with a.resp() as resp:
                    until("others are answered",
                          lambda: not isinstance(resp("WEIR.FLEET.HISTORY"), Error), 60)
                os.kill(redis.process.pid, signal.SIGSTOP)
                for i in range(50):
                    with a.resp() as resp:
                        resp.send("WEIR.FLEET.ROLLBACK", 1)
                        resp.send("WEIR.LOCK", "n")
                assert a.http()("GET", "/healthz").status == 200
        finally:
            os.kill(redis.process.pid, signal.SIGCONT)


if __name__ == "__main__":
    run_tests(globals())
