#!/usr/bin/env python3
"""serve-fleet-bans.py WEIR [TEST...] -- what servers of a fleet tell each other on a real
redis-server: bans, bans that were lifted, keys that were reset."""
import json
import os
import signal
import subprocess
import tempfile

from fleeting import Node, Wire, account, back, joined, nodes_on_cluster, url
from redising import Redis, until
from serving import Error, run_tests

# Hours: no test is so slow that a unit comes back or a ban ends meanwhile.
RULES = """version: 1
rules:
  - name: login
    key: "{user}"
    limit: fixed-window 3/1h
    across: fleet
    within: 10s
    ban: { refusals: 2/1h, for: 3h, escalate: 2, forget: 1d }
  - name: quota
    key: "{account}"
    limit: fixed-window 20/1h
    across: fleet
    within: 10s
  - name: local
    match: { zone: here }
    key: "{user}"
    limit: 3/1h
"""
NOTES = "weir:{fleet:default}:notes"
HOUR = 3600 * 1000000


def node(weir, redis, name, *options, **more):
    return Node(weir, url(redis), name, *options, rules=RULES, **more)


def banned(server, rule="login"):
    with server.resp() as client:
        return {ban["key"]: ban for ban in client.json("WEIR.BANS")["bans"]
                if ban["rule"] == rule}


def all_know(key, *servers):
    for server in servers:
        until("%s knows the ban of %s" % (server.name, key), lambda: key in banned(server),
              state=lambda: str((banned(server), server.fleet)))


def none_knows(key, *servers):
    for server in servers:
        until("%s lets %s in" % (server.name, key), lambda: key not in banned(server),
              state=lambda: str((banned(server), server.fleet)))


def admin(server, *words):
    with server.resp() as client:
        answer = client(*words)
    return json.loads(answer)


def check(server, user):
    with server.resp() as client:
        return client("WEIR.CHECK", "user", user)


def strike(server, user):
    """Three pass; the second refusal bans."""
    answers = [check(server, user) for _ in range(5)]
    assert [a[0] for a in answers] == [1, 1, 1, 0, 0], answers


def told(redis):
    """Notes in Redis."""
    return redis.client("ZCARD", NOTES + ":order")


def test_D6_a_ban_that_one_node_strikes_applies_on_all(weir):
    with Redis() as redis, node(weir, redis, "a") as a, node(weir, redis, "b") as b, \
            node(weir, redis, "c") as c:
        joined(a, b, c)
        strike(a, "eve")
        all_know("eve", b, c)
        for server in [b, c]:
            answer = check(server, "eve")
            assert answer[0] == 0 and answer[8] == "banned", answer
            left = banned(server)["eve"]["left_ms"]
            assert 10000000 < left <= 10800000, left
        assert 0 < redis.client("PTTL", NOTES) <= 10801000 + 1000
        assert account(redis.client, "default/login:eve")


def test_D6_bans_by_hand_and_lifts_at_any_node(weir):
    with Redis() as redis, node(weir, redis, "a") as a, node(weir, redis, "b") as b:
        joined(a, b)
        admin(a, "WEIR.BAN", "login", "mal", "1h")
        all_know("mal", b)
        admin(b, "WEIR.BAN", "login", "mal", "2h")
        until("the end changes", lambda: banned(a)["mal"]["left_ms"] > 3600000)
        admin(a, "WEIR.BAN", "login", "mal", "10m")
        until("also to an earlier one", lambda: banned(b)["mal"]["left_ms"] <= 600000)
        admin(b, "WEIR.UNBAN", "login", "mal")
        none_knows("mal", a)
        admin(a, "WEIR.BAN", "login", "mal", "1h")
        all_know("mal", b)


def test_D6_a_ban_of_a_rule_of_one_host_stays_there(weir):
    with Redis() as redis, node(weir, redis, "a") as a, node(weir, redis, "b") as b:
        joined(a, b)
        admin(a, "WEIR.BAN", "local", "mal", "1h")
        admin(a, "WEIR.BAN", "login", "mal", "1h")
        all_know("mal", b)
        assert banned(b, "local") == {} and "mal" in banned(a, "local")


def test_D6_keys_that_are_long_are_one_key_on_all_nodes(weir):
    """Listings cut them; their end is a hash."""
    with Redis() as redis, node(weir, redis, "a") as a, node(weir, redis, "b") as b:
        joined(a, b)
        user = "u" * 300
        strike(a, user)
        until("b refuses", lambda: check(b, user)[8] == "banned", state=lambda: str(banned(b)))
        assert check(b, user + "u")[8] != "banned"


def test_D6_one_that_joins_later_or_was_cut_off_learns(weir):
    with Redis() as redis, Wire(redis.port) as wire, node(weir, redis, "a") as a:
        admin(a, "WEIR.BAN", "login", "early", "1h")
        with Node(weir, "redis://127.0.0.1:%d" % wire.port, "b", rules=RULES) as b:
            all_know("early", b)
            wire.cut = True
            until("b is alone", lambda: not b.draws())
            admin(a, "WEIR.BAN", "login", "late", "1h")
            admin(a, "WEIR.UNBAN", "login", "early")
            admin(b, "WEIR.BAN", "login", "own", "1h")
            assert set(banned(b)) == {"early", "own"}, banned(b)
            wire.cut = False
            until("b has learnt", lambda: set(banned(b)) == {"late", "own"},
                  state=lambda: str(banned(b)))
            all_know("own", a)
            assert set(banned(a)) == {"late", "own"}, banned(a)


def note(redis, key):
    """How long it lasts, in us, and strikes."""
    text = redis.client("HGET", NOTES, "blogin\0" + key)
    seconds, us = redis.client("TIME")
    _, end, strikes, _, _ = map(int, (text or "0 0 1 0 0").split())
    return end - int(seconds) * 1000000 - int(us), strikes


def test_D6_a_stopped_node_does_not_ban_again_who_was_let_in(weir):
    """It has struck, and is stopped, perhaps before it could tell; meanwhile the key is banned and
    let in by hand."""
    with Redis() as redis, node(weir, redis, "a") as a, node(weir, redis, "b") as b:
        joined(a, b)
        for i in range(10):
            key = "k%d" % i
            with a.resp() as client:
                client.json("WEIR.BAN", "login", key, "1h")
                a.process.send_signal(signal.SIGSTOP)
            admin(b, "WEIR.BAN", "login", key, "2h")
            until("b's ban is told, not a's", lambda: note(redis, key)[0] > 1.5 * HOUR)
            admin(b, "WEIR.UNBAN", "login", key)
            until("that it is lifted too", lambda: note(redis, key)[1] == 0)
            a.process.send_signal(signal.SIGCONT)
            none_knows(key, a, b)
        back(a, b)
        assert banned(a) == banned(b) == {}, (banned(a), banned(b))


def test_D6_while_redis_is_away_nodes_keep_what_they_know(weir):
    """It comes back empty: those who know the bans tell it again, and newcomers learn."""
    with Redis() as redis, node(weir, redis, "a") as a, node(weir, redis, "b") as b:
        joined(a, b)
        admin(a, "WEIR.BAN", "login", "one", "1h")
        admin(a, "WEIR.BAN", "login", "two", "1h")
        all_know("one", b)
        all_know("two", b)
        since = [banned(server)["one"]["since"] for server in [a, b]]
        redis.kill()
        for server in [a, b]:
            until("it knows", lambda: not server.fleet["connected"])
            assert check(server, "one")[8] == "banned"
        admin(b, "WEIR.UNBAN", "login", "two")
        admin(b, "WEIR.BAN", "login", "three", "1h")
        redis.start()
        until("all are told", lambda: set(banned(a)) == set(banned(b)) == {"one", "three"},
              state=lambda: str((banned(a), banned(b))))
        with node(weir, redis, "c") as c:
            until("a newcomer learns", lambda: set(banned(c)) == {"one", "three"},
                  state=lambda: str(banned(c)))
        now = [banned(server)["one"]["since"] for server in [a, b]]
        assert now == since, (since, now)


def test_D5_nobody_is_banned_because_redis_was_away(weir):
    """A share refuses what the limit might have let pass.  The only member of a fleet has the whole
    limit, and bans by it."""
    with Redis() as redis, node(weir, redis, "a") as a, node(weir, redis, "b") as b:
        joined(a, b)
        redis.kill()
        until("it knows", lambda: a.fleet["alone"])
        answers = [check(a, "ann") for _ in range(20)]
        assert answers[-1][0] == 0 and answers[-1][8] == "limited", answers
        assert banned(a) == {}, banned(a)
        redis.start()
        back(a, b)
        assert banned(a) == banned(b) == {}, (banned(a), banned(b))
    with Redis() as redis, node(weir, redis, "a") as a:
        joined(a)
        redis.kill()
        until("it knows", lambda: a.fleet["alone"])
        strike(a, "eve")
        assert set(banned(a)) == {"eve"}, banned(a)


def test_D6_a_table_on_disk_tells_what_its_server_could_not(weir):
    """A ban and a lift while Redis is away; then the server is killed."""
    with tempfile.TemporaryDirectory() as folder, Redis() as redis, node(weir, redis, "b") as b:
        with node(weir, redis, "a", table=folder + "/table") as a:
            joined(a, b)
            admin(a, "WEIR.BAN", "login", "one", "1h")
            all_know("one", b)
            redis.process.send_signal(signal.SIGSTOP)
            admin(a, "WEIR.UNBAN", "login", "one")
            admin(a, "WEIR.BAN", "login", "two", "1h")
            a.kill()
            redis.process.send_signal(signal.SIGCONT)
            a.start()
            until("b has learnt", lambda: set(banned(b)) == {"two"}, state=lambda: str(banned(b)))


def test_D6_strikes_count_over_the_fleet(weir):
    with Redis() as redis, node(weir, redis, "a") as a, node(weir, redis, "b") as b:
        joined(a, b)
        strike(a, "eve")
        all_know("eve", b)
        admin(a, "WEIR.BAN", "login", "eve", "1s")
        none_knows("eve", a, b)
        assert [check(b, "eve")[8] for _ in range(3)] == ["limited", "limited", "banned"]
        assert banned(b)["eve"]["strikes"] == 2, banned(b)
        all_know("eve", a)
        assert banned(a)["eve"]["strikes"] == 2, banned(a)


def test_D6_a_thousand_bans_and_lifts_leave_nothing_behind(weir):
    """Each has one note, which goes when the ban would have ended."""
    with Redis() as redis, node(weir, redis, "a") as a, node(weir, redis, "b") as b:
        joined(a, b)
        with a.resp() as one, b.resp() as two:
            one.many([("WEIR.BAN", "login", "k%d" % i, "1h") for i in range(1000)])
            until("b knows all", lambda: len(banned(b)) == 1000, state=lambda: str(len(banned(b))))
            two.many([("WEIR.UNBAN", "login", "k%d" % i) for i in range(1000)])
            until("all are let in", lambda: banned(a) == banned(b) == {})
        assert told(redis) == redis.client("ZCARD", NOTES + ":ends") == 1000
        for end in ["", ":order", ":ends"]:
            assert 0 < redis.client("PTTL", NOTES + end) <= 3601000


def test_D6_redis_forgets_bans_that_have_ended(weir):
    with Redis() as redis, node(weir, redis, "a") as a:
        joined(a)
        with a.resp() as client:
            client.many([("WEIR.BAN", "login", "k%d" % i, "1s") for i in range(50)])
        until("they end", lambda: banned(a) == {})
        until("nothing is left", lambda: redis.client("KEYS", NOTES + "*") == [])


def test_D6_where_nothing_happens_nothing_is_asked(weir):
    """Notes are asked for by scripts of their own: only beats go on."""
    with Redis() as redis, node(weir, redis, "a") as a, node(weir, redis, "b") as b:
        joined(a, b)
        admin(a, "WEIR.BAN", "login", "eve", "1h")
        all_know("eve", b)

        def asks():
            line = redis.info("commandstats", "cmdstat_zrevrange") or "calls=0,"
            notes = redis.info("commandstats", "cmdstat_zrangebyscore")
            beats = redis.info("commandstats", "cmdstat_hlen")
            return [int(text.split("calls=")[1].split(",")[0]) for text in (line, notes, beats)]

        until("it is quiet", lambda: is_quiet(asks))


def is_quiet(asks):
    """Each beat looks once for members that are gone, and a note's script twice at its lists."""
    _, before, beats = asks()
    until("ten beats", lambda: asks()[2] >= beats + 10)
    _, after, more = asks()
    return after - before <= more - beats + 1


def tell(redis, begun, heard, *notes, knew=None):
    """Asks the script itself; returns begun, last, heard, lost, and the notes by their names."""
    script = "../../cluster/fleet/bans-and-resets.lua"
    text = open(os.path.join(os.path.dirname(__file__), script)).read()
    words = [word for note in notes for word in note]
    answer = redis.ok("EVAL", text, 3, NOTES, NOTES + ":order", NOTES + ":ends", begun, heard,
                      heard if knew is None else knew, 256, *words)
    return answer[:4], {answer[i]: answer[i + 1:i + 6] for i in range(4, len(answer), 6)}


def test_D6_one_client_cannot_fill_redis_with_bans(weir):
    """Those that end first go; the operator's, which last longer, stay."""
    with Redis() as redis:
        tell(redis, 0, 0, ("blogin\0hand", 2 * HOUR, 1, 0, "new"))
        for part in range(170):
            tell(redis, 0, 0, *[("blogin\0%d-%d" % (part, i), HOUR, 1, 0, "new")
                                for i in range(100)])
        assert told(redis) == redis.client("ZCARD", NOTES + ":ends") == 16384
        assert redis.client("HLEN", NOTES) == 16384 + 3
        assert redis.client("HEXISTS", NOTES, "blogin\0hand") == 1
        for end in ["", ":order", ":ends"]:
            assert HOUR / 1000 < redis.client("PTTL", NOTES + end) <= 2 * HOUR / 1000 + 1000


def test_D6_a_note_that_the_node_did_not_know_stands(weir):
    with Redis() as redis:
        (begun, last, _, lost), _ = tell(redis, 0, 0, ("blogin\0x", HOUR, 1, 0, "new"))
        assert begun == last > 0 and not lost
        (_, lifted, _, _), _ = tell(redis, begun, last, ("blogin\0x", HOUR, 0, 0, "new"))
        assert lifted > last
        # One that was stopped since has struck: the lift stands, and is what it hears.
        (_, after, _, _), notes = tell(redis, begun, last, ("blogin\0x", HOUR, 2, 0, "new"))
        assert after == lifted and notes["blogin\0x"][2] == 0, notes
        # One that knows of the lift bans anew; the same once more changes nothing.
        for _ in range(2):
            (_, again, _, _), notes = tell(redis, begun, lifted, ("blogin\0x", HOUR, 2, 0, "new"))
            assert notes["blogin\0x"][2] == 2, notes
        # A lift by one that does not know of that ban; of two bans the longer one counts.
        _, notes = tell(redis, begun, lifted, ("blogin\0x", HOUR, 0, 0, "new"))
        assert notes["blogin\0x"][:1] == [again] and notes["blogin\0x"][2] == 2, notes
        _, notes = tell(redis, begun, lifted, ("blogin\0x", 2 * HOUR, 1, 0, "new"))
        assert notes["blogin\0x"][0] > again and notes["blogin\0x"][1] > HOUR, notes
        # What is repeated because notes were lost replaces only what its node knew.
        (_, end, _, lost), notes = tell(redis, 1, 1, ("blogin\0x", 9 * HOUR, 1, 0, "old"),
                                        ("blogin\0y", HOUR, 1, 0, "old"))
        assert lost == 1 and notes == {}, notes
        _, notes = tell(redis, begun, 0)
        assert notes["blogin\0x"][1] <= 2 * HOUR and "blogin\0y" in notes, notes
        assert tell(redis, begun, end)[1] == {}
        _, notes = tell(redis, begun, end, ("blogin\0x", 9 * HOUR, 1, 0, "old"))
        assert notes["blogin\0x"][1] > 8 * HOUR and notes["blogin\0x"][4] == end, notes


def quota(server, account, cost=1):
    with server.resp() as client:
        return client("WEIR.CHECK", "COST", cost, "account", account)


def explained(server, account):
    """Units in the node's purse, and in the account."""
    with server.resp() as client:
        answer = client.json("WEIR.EXPLAIN", "account", account)
    rule = [rule for rule in answer["rules"] if rule["rule"] == "quota"][0]
    assert rule["fleet"] == "purse" and answer["accounts_why"] is None, answer
    assert [x["rule"] for x in answer["accounts"]] == ["quota"], answer
    return rule["limits"][0]["remaining"], answer["accounts"][0]["remaining"]


def test_D3_explain_tells_what_the_fleet_knows_and_what_the_node_holds(weir):
    with Redis() as redis, node(weir, redis, "a") as a, node(weir, redis, "b") as b:
        joined(a, b)
        assert sum(quota(a, "ann")[0] for _ in range(5)) == 5
        until("a and b tell the same", lambda: explained(a, "ann")[1] == explained(b, "ann")[1])
        account = explained(b, "ann")[1]
        held = explained(a, "ann")[0]  # afterwards: units are paid back meanwhile
        assert 10 <= account <= account + held <= 15, (account, held)
        assert explained(b, "ann")[0] == 0
        redis.kill()
        until("it knows", lambda: not a.fleet["connected"])
        with a.resp() as client:
            answer = client.json("WEIR.EXPLAIN", "account", "ann")
        assert answer["accounts"] == [] and "does not answer" in answer["accounts_why"], answer
        redis.start()


def explain_aloud(weir, server, account):
    """What the command says, with its exit code."""
    done = subprocess.run([weir, "explain", "-s", "127.0.0.1:%d" % server.ports["http"],
                           "account=" + account], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr, done.returncode


def test_D3_the_command_explain_shows_the_account_of_a_dry_purse(weir):
    with Redis() as redis, node(weir, redis, "a") as a, node(weir, redis, "b") as b:
        joined(a, b)
        said, code = explain_aloud(weir, a, "fresh")
        assert code == 0 and "undecided: quota" in said and "refuses" not in said, (code, said)
        assert "none drawn" in said and "19 of 20 left" in said and "✗" not in said, said
        assert quota(a, "fresh")[0] == 1
        assert spend("spent", a) == 20
        said, code = explain_aloud(weir, b, "spent")
        assert code == 1 and "undecided: quota" in said and "too few" in said, (code, said)
        assert "0 of 20 left, refuses, free in" in said, said
        with b.resp() as client:
            account = client.json("WEIR.EXPLAIN", "account", "spent")["accounts"][0]
        assert account["allowed"] is False and account["retry_ms"] > 0, account


def spend(account, *servers):
    """Until all refuse; returns how many passed."""
    passed = 0
    for _ in range(3):
        for server in servers:
            passed += sum(quota(server, account)[0] for _ in range(25))
    return passed


def test_D3_a_reset_at_one_node_holds_on_all(weir):
    with Redis() as redis, node(weir, redis, "a") as a, node(weir, redis, "b") as b, \
            node(weir, redis, "c") as c:
        joined(a, b, c)
        for i in range(3):
            assert spend("ann", a, b, c) <= 20
            assert quota(b, "ann")[0] == quota(c, "ann")[0] == 0
            answer = admin(a, "WEIR.RESET", "quota", "account", "ann")
            assert answer == {"rule": "quota", "reset": 1, "rules": ["quota"],
                              "still_banned": []}, answer
            for server in [a, b, c]:
                until("%s lets it pass" % server.name, lambda: quota(server, "ann", 0)[4] <= 0 and
                      quota(server, "ann")[0] == 1)
        strike(a, "eve")
        all_know("eve", b, c)
        admin(c, "WEIR.RESET", "*", "user", "eve")
        none_knows("eve", a, b)
        for server in [a, b, c]:
            until("%s lets eve pass" % server.name, lambda: check(server, "eve")[0] == 1)
            admin(server, "WEIR.RESET", "login", "user", "eve")


def test_D3_a_reset_without_redis_says_so(weir):
    with Redis() as redis, node(weir, redis, "a") as a:
        joined(a)
        redis.kill()
        until("it knows", lambda: not a.fleet["connected"])
        with a.resp() as client:
            answer = client("WEIR.RESET", "quota", "account", "ann")
            assert isinstance(answer, Error) and "this node alone" in answer, answer
            assert client.json("WEIR.RESET", "local", "zone", "here", "user", "ann")["reset"] == 1
        answer = a.http()("POST", "/v1/reset", {"rule": "quota", "attributes": {"account": "ann"}})
        assert answer.status == 503, answer.status
        redis.start()


def test_D3_resets_leave_nothing_behind(weir):
    with Redis() as redis, node(weir, redis, "a") as a:
        joined(a)
        with a.resp() as client:
            for i in range(100):
                client("WEIR.CHECK", "account", "k%d" % (i % 10))
                client("WEIR.RESET", "quota", "account", "k%d" % (i % 10))
        assert told(redis) <= 10
        assert 0 < redis.client("PTTL", NOTES) <= 31000


def master_of_notes(cluster):
    slot = cluster.masters()[0].ok("CLUSTER", "KEYSLOT", NOTES)
    port = next(range_[2][1] for range_ in cluster.masters()[0].ok("CLUSTER", "SLOTS")
                if range_[0] <= slot <= range_[1])
    return next(node for node in cluster.masters() if node.port == port)


def strikes_in(redis):
    """Of each key, as Redis has it; 0: it was lifted."""
    notes = redis("HGETALL", NOTES)
    pairs = dict(zip(notes[::2], notes[1::2])) if isinstance(notes, list) else {}
    return {name[7:]: int(text.split()[2]) for name, text in pairs.items()
            if name.startswith("blogin")}


def test_D6_a_cluster_that_fails_over_without_its_last_writes(weir):
    """Bans, lifts and resets go on; what nodes knew holds, and Redis is told again."""
    with nodes_on_cluster(weir, RULES) as (cluster, a, b):
        for key in ["lifted", "kept"]:
            admin(a, "WEIR.BAN", "login", key, "1h")
            all_know(key, b)
        master = master_of_notes(cluster)
        replica = cluster.replica_of(master)
        until("the replica knows", lambda: replica.info("replication", "slave_repl_offset") ==
              master.info("replication", "master_repl_offset"))
        replica.process.send_signal(signal.SIGSTOP)
        master.ok("CLIENT", "KILL", "TYPE", "replica")
        admin(b, "WEIR.UNBAN", "login", "lifted")
        admin(b, "WEIR.BAN", "login", "lost", "1h")
        none_knows("lifted", a)
        all_know("lost", a)
        assert strikes_in(master) == {"lifted": 0, "kept": 1, "lost": 1}
        master.kill()
        replica.process.send_signal(signal.SIGCONT)
        until("its replica took its place", lambda: len(cluster.masters()) == 3)
        until("Redis is told again",
              lambda: strikes_in(replica) == {"lifted": 0, "kept": 1, "lost": 1},
              state=lambda: str(strikes_in(replica)))
        back(a, b)
        assert set(banned(a)) == set(banned(b)) == {"kept", "lost"}, (banned(a), banned(b))
        admin(b, "WEIR.UNBAN", "login", "kept")
        none_knows("kept", a)
        assert spend("ann", a, b) <= 20
        admin(a, "WEIR.RESET", "quota", "account", "ann")
        for server in [a, b]:
            until("%s lets it pass" % server.name, lambda: quota(server, "ann")[0] == 1)


def test_D3_limits_of_a_call_are_of_its_node(weir):
    """WEIR.TAKE, GIVE and RESERVE bring their limit along: they change no rule's account, whatever
    its name is."""
    with Redis() as redis, node(weir, redis, "a") as a, node(weir, redis, "b") as b:
        joined(a, b)
        spend("ann", a, b)
        with a.resp() as client:
            assert client("WEIR.TAKE", "ann", "20/1h", "NAME", "quota")[0] == 1
            client("WEIR.GIVE", "ann", "20/1h", "COST", 20, "NAME", "quota")
            reserved = client("WEIR.RESERVE", "ann", "20/1h", "COST", 5, "NAME", "quota")
            assert reserved[0] == 1, reserved
        assert quota(a, "ann")[0] == quota(b, "ann")[0] == 0


if __name__ == "__main__":
    run_tests(globals())
