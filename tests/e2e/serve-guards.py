#!/usr/bin/python3
"""serve-guards.py WEIR [TEST...] -- guards at the doors of `weir serve`: enter, exit and renew over
RESP and HTTP, leases, permits by key, breakers, the degradation, their events.  Time stands still
but where it is moved."""
import os
import shutil
import signal
import subprocess
import tempfile

from guarding import BY_KEY, RULES, Doors
from serving import Error, ask_for_successor, run_tests, until


def test_L1_one_guard(weir):
    with Doors(weir) as d:
        first = d.enter("GUARD", "search")
        assert first["allowed"] == 1 and first["guard"] == "search", first
        assert first["reason"] == "granted" and first["lease_ms"] == 30000, first
        assert (first["limit"], first["remaining"]) == (2, 1) and len(first["permit"]) == 54, first
        second = d.enter("GUARD", "search")
        third = d.enter("GUARD", "search")
        assert second["allowed"] == 1, third
        assert (third["allowed"], third["reason"], third["permit"],
                third["lease_ms"]) == (0, "busy", None, -1), third
        assert d.guard("search")["in_flight"] == 2
        assert d.exit(first["permit"]) == 1 and d.exit(first["permit"]) == 0
        assert d.guard("search")["in_flight"] == 1
        assert d.enter("GUARD", "search", "COST", 2)["allowed"] == 0
        assert d.enter("GUARD", "search", "COST", 3)["reason"] == "too-big"
        assert d.exit(second["permit"], "IGNORED", "TOOK", 5) == 1
        both = d.enter("GUARD", "search", "COST", 2)
        assert both["allowed"] == 1 and d.guard("search")["in_flight"] == 2
        assert d.exit(both["permit"]) == 1
        assert d.guard("search")["in_flight"] == 0


def test_G1_by_rules_all_or_nothing(weir):
    with Doors(weir) as d:
        permits = [d.enter("ip", "192.0.2.1", "uri", "/search") for _ in range(2)]
        assert all(p["allowed"] == 1 and p["permit"] and p["rule"] == "per-ip"
                   and p["guard"] is None for p in permits), permits
        assert d.guard("search")["in_flight"] == 2 and d.guard("db")["in_flight"] == 2
        refused = d.enter("ip", "192.0.2.1", "uri", "/search")
        assert (refused["allowed"], refused["guard"], refused["reason"],
                refused["level"]) == (0, "search", "busy", 3), refused
        assert d.guard("db")["in_flight"] == 2, "a refusal has left something in another guard"
        assert d.enter("ip",
                       "192.0.2.1")["remaining"] == 0, "a refusal by a guard has charged the limit"
        assert d.exit(permits[0]["permit"]) == 1
        limited = d.enter("ip", "192.0.2.1", "uri", "/search")
        assert (limited["allowed"], limited["rule"], limited["reason"],
                limited["guard"]) == (0, "per-ip", "limited", None), limited
        assert d.guard("search")["in_flight"] == 1, "a limit's refusal has kept permits"
        assert d.guard("db")["in_flight"] == 1, "a limit's refusal has kept permits"
        none = d.enter("account", "ann")
        assert none["allowed"] == 1 and none["permit"] is None and none["lease_ms"] == -1, none
        assert d.exit(permits[1]["permit"]) == 1 and d.guard("db")["in_flight"] == 0


def test_G1_a_ban_that_enter_makes_is_told(weir):
    with Doors(weir) as d:
        for _ in range(7):
            d.enter("ip", "192.0.2.9")
        assert [e["key"] for e in d.events("ban")] == ["192.0.2.9"]
        assert d.enter("ip", "192.0.2.9")["reason"] == "banned"
        assert d.resp.json("WEIR.TOP")["top"][0]["key"] == "192.0.2.9"


def test_S1_the_same_over_http(weir):
    with Doors(weir) as d:
        ask = {"guard": "search", "priority": -3, "user": "ann", "cost": 1}
        first = d.web("POST", "/v1/enter", ask)
        assert first.status == 200 and first.headers["weir-level"] == "0", first.body
        told = first.json()
        assert told["allowed"] and told["guard"] == "search" and told["lease_ms"] == 30000, told
        assert told["limit"] == 2, told
        d.web("POST", "/v1/enter", {"attributes": {"uri": "/search"}})
        fallback = d.web("POST", "/v1/enter", {"attributes": {"uri": "/search"}})
        # a caller that looks at the status alone, or at `allowed`, must not take it for a permit
        assert (fallback.status, fallback.headers["weir-fallback"]) == (503, "search")
        assert fallback.headers["weir-allowed"] == "false"
        told_no = fallback.json()
        assert (told_no["allowed"], told_no["permit"], told_no["code"]) == (False, None,
                                                                          "weir-busy"), told_no
        assert told_no["fallback"] == {"status": 200, "type": "application/json", "body": "[]"}
        assert int(fallback.headers["retry-after"]) >= 1
        for _ in range(2):
            busy = d.web("POST", "/v1/enter", {"guard": "db", "cost": 3})
        problem = busy.json()
        assert busy.status == 503 and busy.headers["content-type"] == "application/problem+json"
        assert int(busy.headers["retry-after"]) >= 1
        assert (problem["code"], problem["guard"], problem["reason"],
                problem["permit"]) == ("weir-busy", "db", "busy", None), problem
        renewed = d.web("POST", "/v1/renew", {"permit": told["permit"]}).json()
        assert renewed["lease_ms"] == 30000
        assert d.web("POST", "/v1/exit",
                     {"permit": renewed["permit"], "outcome": "ok",
                      "took_ms": 12}).json() == {"exited": True}
        assert d.web("POST", "/v1/exit",
                     {"permit": told["permit"], "outcome": "ok"}).json() == {"exited": False}
        assert d.web("POST", "/v1/renew",
                     {"permit": told["permit"]}).json() == {"permit": None, "lease_ms": None}
        too_big = d.web("POST", "/v1/enter", {"guard": "search", "cost": 3})
        problem = too_big.json()
        assert too_big.status == 429 and "retry-after" not in too_big.headers, too_big.headers
        assert (problem["code"], problem["reason"], problem["detail"]) == (
            "weir-too-big", "too-big", "search: it never has that many permits"), problem
        limited = d.web("POST", "/v1/enter", {"attributes": {"ip": "192.0.2.5"}, "cost": 4})
        assert limited.status == 429 and limited.json()["code"] == "weir-limited"


def test_S1_wrong_asks(weir):
    with Doors(weir) as d:
        for words, text in (
            (("GUARD", "serch"), "did you mean 'search'"),
            (("GUARD", ""), "GUARD is empty"),
            (("GUARD", "shop", "CLASS", "golf"), "did you mean 'gold'"),
            (("CLASS", "gold"), "name the guard too"),
            (("PRIORITY", "8"), "-8 to 7"),
            (("PRIORITY", "x"), "-8 to 7"),
            (("COST", "-1"), "COST"),
            (("WAIT", "soon"), "WAIT"),
            (("uri",), "pairs"),
            (("uri", "/x", "PRIORITY", "5"), "options come before the attributes"),
            (("uri", "/x", "BOUND"), "options come before the attributes"),
            (("ATTRIBUTES", "uri", "/x", "WAIT", "5"), "options come before the attributes"),
        ):
            answer = d.enter(*words)
            assert isinstance(answer, Error) and text in answer, (words, answer)
        for words, text in (
            (("x", "ok"), "not a permit"),
            (("A" * 54, "ok"), "not a permit"),
            (("x", "okay"), "ok, error, timeout, dropped or ignored"),
            (("x", "ok", "TOOK", "-1"), "TOOK"),
            (("x", "ok", "TOOK"), "'TOOK' has no value; usage: WEIR.EXIT"),
        ):
            answer = d.resp("WEIR.EXIT", *words)
            assert isinstance(answer, Error) and text in answer, (words, answer)
        for body, status in (
            ({"guard": "serch"}, 404), ({"guard": "shop", "class": "golf"}, 400),
            ({"class": "gold"}, 400), ({"priority": 9}, 400),
            ({"priority": "high"}, 400), ({"gaurd": "shop"}, 400), ({"guard": ""}, 400),
            ({"cost": -1}, 400), ([], 400), ({"guard": "shop", "class": ""}, 200),
        ):
            assert d.web("POST", "/v1/enter", body).status == status, body
        for path, body in (("/v1/exit", {"permit": "x", "outcome": "ok"}),
                           ("/v1/exit", {"permit": "x"}), ("/v1/renew", {"permit": "x"}),
                           ("/v1/renew", {})):
            assert d.web("POST", path, body).status == 400, (path, body)
        assert d.resp("MULTI") == "OK" and "MULTI" in d.resp("WEIR.ENTER", "GUARD", "search")
        assert d.resp("EXEC").startswith("EXECABORT")


def test_R14_an_option_does_not_swallow_an_attribute(weir):
    """One that the rules look at: else its rule does not apply, or id makes all asks one."""
    rules = """version: 1
rules:
  - { name: by-user, key: "{user}", limit: 1/1h }
  - { name: by-id, key: "{id}", limit: 1/1h }
guards:
  - { name: db, concurrency: 5 }
"""
    with Doors(weir, rules=rules) as d:
        for words in (("WEIR.ENTER", "user", "ann"), ("WEIR.CHECK", "id", "7", "user", "ann"),
                      ("WEIR.CHECK", "COST", "1", "id", "7")):
            answer = d.resp(*words)
            assert isinstance(answer, Error) and "ATTRIBUTES" in answer, (words, answer)
        ruling = d.resp.json("WEIR.EXPLAIN", "user", "ann")["ruling"]  # has no such option
        assert ruling["rule"] == "by-user", ruling
        for allowed in (1, 0):
            assert d.resp("WEIR.CHECK", "ATTRIBUTES", "id", "7")[0] == allowed
            assert d.resp("WEIR.ENTER", "ATTRIBUTES", "user", "ann")[0] == allowed
        assert d.resp("WEIR.CHECK", "ID", "7", "user", "bob")[0] == 1
        assert d.resp("WEIR.CHECK", "cost", "1", "ATTRIBUTES", "user", "eve")[0] == 1
        assert d.resp("WEIR.ENTER", "USER", "ann", "uri", "/x")[0] == 1
        assert d.resp("WEIR.ENTER", "guard", "db", "user", "ann")[0] == 1


def test_S1_a_token_is_not_to_be_made_up(weir):
    with Doors(weir) as d, Doors(weir) as other:
        permit = d.enter("GUARD", "search")["permit"]
        assert "not of this server" in other.exit(permit)
        for i in (0, 10, 30, len(permit) - 2):
            forged = permit[:i] + ("A" if permit[i] != "A" else "B") + permit[i + 1 :]
            assert isinstance(d.exit(forged), Error), forged
        assert d.guard("search")["in_flight"] == 1 and d.exit(permit) == 1


def test_L1_a_lease_ends_by_time(weir):
    with Doors(weir) as d:
        late, renewed = d.enter("GUARD", "search")["permit"], d.enter("GUARD", "search")["permit"]
        d.server.clock(1020)
        renewed, lease = d.resp("WEIR.RENEW", renewed)
        assert lease == 30000
        d.server.clock(1035)
        assert d.guard("search")["in_flight"] == 1 and d.exit(late) == 0
        assert d.resp("WEIR.RENEW", late) is None
        d.server.clock(1036)
        assert [(e["guard"], e["count"]) for e in d.events("permits-reclaimed")] == [("search", 1)]
        assert d.exit(renewed) == 1 and d.guard("search")["in_flight"] == 0


def test_L1_a_renewal_can_be_repeated(weir):
    """The answer may have been lost: the same token renews again, and exits."""
    with Doors(weir) as d:
        token = d.enter("GUARD", "search")["permit"]
        d.server.clock(1010)
        first, _ = d.resp("WEIR.RENEW", token)
        d.server.clock(1011)
        again, lease = d.resp("WEIR.RENEW", token)
        assert lease == 30000 and again not in (token, first)
        told = d.web("POST", "/v1/renew", {"permit": token}).json()
        assert told["lease_ms"] == 30000 and told["permit"] == again, (told, again)
        d.server.clock(1012)
        assert d.exit(token) == 1 and d.exit(again) == 0 and d.guard("search")["in_flight"] == 0
        bound = d.server.resp()
        token = d.enter("GUARD", "search", "BOUND", client=bound)["permit"]
        for _ in range(2):
            d.server.clock(1020)
            bound("WEIR.RENEW", token)
        bound.close()
        until("it is given back", lambda: d.guard("search")["in_flight"] == 0)


def test_S1_permits_outlive_the_server(weir):
    """A restart on the same table, and even kill -9: clients keep their permits."""
    with (tempfile.TemporaryDirectory(prefix="weir-guards-") as folder,
          Doors(weir, table=os.path.join(folder, "table")) as d):
        permit = d.enter("GUARD", "search")["permit"]
        d.enter("GUARD", "search")
        d.server.kill()
        d.server.start()
        d.resp = d.server.resp()
        d.server.clock(1001)
        assert d.guard("search")["in_flight"] == 2, "the permits of clients went with the server"
        assert d.exit(permit) == 1 and d.guard("search")["in_flight"] == 1
        d.server.clock(1002)
        assert d.events("permits-reclaimed") == []


def test_S1_permits_outlive_a_handover(weir):
    """The old server's process ends; the permits are its clients', not its own."""
    with tempfile.TemporaryDirectory(prefix="weir-guards-") as folder:
        d = Doors(weir, table=os.path.join(folder, "table"), clock=False)
        permit = d.enter("GUARD", "search")["permit"]
        ask_for_successor(d.server.pid)
        d.server.process.wait(timeout=60)
        d.resp.close()
        d.resp = until("the successor answers", lambda: connect(d.server))
        successor = d.resp.json("WEIR.STATUS")["pid"]
        try:
            assert successor != d.server.pid
            assert d.guard("search")["in_flight"] == 1 and d.exit(permit) == 1
            assert d.guard("search")["in_flight"] == 0
        finally:
            os.kill(successor, signal.SIGTERM)
            d.resp.close()
            d.web.close()
            until("the successor ends", lambda: connect(d.server) is None)
            d.server.process.stdout.close()
            d.server.errors.close()
            shutil.rmtree(d.server.folder, ignore_errors=True)


def connect(server):
    try:
        return server.resp()
    except OSError:
        return None


def test_L1_bound_to_the_connection(weir):
    with Doors(weir) as d:
        free, bound = d.server.resp(), d.server.resp()
        d.enter("GUARD", "search", client=free)
        permit = d.enter("GUARD", "search", "BOUND", client=bound)["permit"]
        assert d.guard("search")["in_flight"] == 2
        free.close()
        bound.close()
        until("the bound one is given back", lambda: d.guard("search")["in_flight"] == 1)
        assert d.exit(permit) == 0
        assert d.guard("search")["outcomes"] == {"ok": 0, "error": 0, "timeout": 0, "dropped": 0}
        bound = d.server.resp()
        permit = d.enter("GUARD", "search", "BOUND", client=bound)["permit"]
        permit, _ = bound("WEIR.RENEW", permit)
        assert bound("WEIR.EXIT", permit, "ok") == 1
        bound("RESET")
        assert d.guard("search")["in_flight"] == 1 and d.guard("search")["outcomes"]["ok"] == 1
        bound.close()


def test_L1_a_stale_permit_unbinds_no_other(weir):
    """Its slot may be another's by now: that one is still given back when the connection closes."""
    with Doors(weir) as d:
        bound = d.server.resp()
        stale = d.enter("GUARD", "search", "BOUND", client=bound)["permit"]
        assert bound("WEIR.EXIT", stale, "ok") == 1
        for _ in range(2):
            assert d.enter("GUARD", "search", "BOUND", client=bound)["allowed"] == 1
        assert bound("WEIR.EXIT", stale, "ok") == 0 and d.guard("search")["in_flight"] == 2
        bound.close()
        until("both are given back", lambda: d.guard("search")["in_flight"] == 0)


def test_L1_permits_by_key(weir):
    with Doors(weir, rules=BY_KEY) as d:
        ann = [d.enter("ip", "192.0.2.1") for _ in range(2)]
        assert all(p["allowed"] == 1 for p in ann), ann
        no = d.enter("WAIT", "1000", "ip", "::ffff:192.0.2.1")
        assert (no["allowed"], no["reason"], no["guard"], no["limit"]) == (0, "key-busy", "site",
                                                                          2), no
        told = d.web("POST", "/v1/enter", {"attributes": {"ip": "192.0.2.1"}})
        problem = told.json()
        assert told.status == 429 and problem["code"] == "weir-key-busy", problem
        assert problem["detail"].startswith("site: this key has all of its permits out"), problem
        others = [d.enter("ip", "192.0.2.%d" % i) for i in (2, 3)] + [d.enter("account", "ann")]
        assert all(p["allowed"] == 1 for p in others), others
        assert d.enter("ip", "192.0.2.9")["reason"] == "busy", "the guard's own limit"
        assert d.exit(ann[0]["permit"]) == 1 and d.exit(ann[0]["permit"]) == 0
        named = d.enter("GUARD", "site", "USER", "somebody")  # named, its key is the user
        assert named["allowed"] == 1 and d.guard("site")["in_flight"] == 5
        assert d.exit(ann[1]["permit"]) == 1
        one = d.enter("GUARD", "site", "USER", "somebody")
        assert one["allowed"] == 1, one
        assert d.enter("GUARD", "site", "USER", "somebody")["reason"] == "key-busy"
        refused = d.guard("site")["refused"]
        assert (refused["key_busy"], refused["busy"]) == (3, 1), refused
        assert d.guard("site")["options"]["max_per_key"] == 2, d.guard("site")
        assert ["192.0.2.1", 2] in [[t["key"], t["refused"]]
                                    for t in d.resp.json("WEIR.TOP")["top"]]
        page = d.web("GET", "/metrics").body.decode().splitlines()
        assert 'weir_guard_refused_total{guard="site",reason="key-busy"} 3' in page
        for p in others + [named, one]:
            assert d.exit(p["permit"]) == 1
        assert d.guard("site")["in_flight"] == 0


def test_L1_a_named_enter_has_the_same_key(weir):
    """USER counts as the one attribute of the key does, however it is written."""
    rules = """version: 1
guards:
  - { name: by-ip, match: { uri: /ip }, concurrency: { max: 2, key: "{ip}" } }
  - { name: by-host, match: { uri: /host }, concurrency: { max: 2, key: "{host}" } }
  - { name: by-net, match: { uri: /net }, concurrency: { max: 2, key: "{ip/24|none}" } }
  - { name: by-name, match: { uri: /name }, concurrency: { max: 2, key: "{account}" } }
  - { name: by-two, match: { uri: /two }, concurrency: { max: 2, key: "{ip}:{account}" } }
"""
    same = [("by-ip", "ip", "192.0.2.71", "192.0.2.71"),
            ("by-ip", "ip", "192.0.2.72", "::ffff:192.0.2.72"),
            ("by-ip", "ip", "2001:db8::1", "2001:DB8::ffff"),
            ("by-host", "host", "shop.example", "Shop.Example:443"),
            ("by-net", "ip", "192.0.2.1", "192.0.2.2"),
            ("by-name", "account", "ann", "ann")]
    with Doors(weir, rules=rules) as d:
        for guard, name, value, user in same:
            assert d.enter("uri", "/" + guard[3:], name, value)["allowed"] == 1
            assert d.enter("GUARD", guard, "USER", user)["allowed"] == 1
            for no in (d.enter("GUARD", guard, "USER", user),
                       d.enter("uri", "/" + guard[3:], name, value)):
                assert no["reason"] == "key-busy", (guard, user, no)
            told = d.web("POST", "/v1/enter", {"guard": guard, "user": user})
            assert told.status == 429 and told.json()["code"] == "weir-key-busy", told.body
        for i in range(3):
            named = d.enter("GUARD", "by-two", "USER", "ann")
            assert named["allowed"] == (i < 2), named
        listed = [d.resp.json("WEIR.GUARDS", guard)["guards"][0]
                  for guard in ("by-host", "by-net", "by-two")]
        assert [g["keys"] for g in listed] == [[{"key": key, "in_flight": 2}] for key in (
            "shop.example", "192.0.2.0/24", "ann")], listed


def test_G1_keys_in_progress(weir):
    """The keys with most permits, by their texts; those of a permit that is renewed, too."""
    with Doors(weir, rules=BY_KEY) as d:
        ann = [d.enter("ip", "::ffff:192.0.2.1") for _ in range(2)]
        bob = d.enter("GUARD", "site", "USER", "192.0.2.2")
        for _ in range(3):  # another word each time
            bob["permit"] = d.resp("WEIR.RENEW", bob["permit"])[0]
        old = bob["permit"]
        for second in (1001, 1002):  # it did not hear the first answer
            d.server.clock(second)
            bob["permit"] = d.resp("WEIR.RENEW", old)[0]
        told = d.web("GET", "/v1/guards?guard=site").json()["guards"][0]
        assert told["keys_in_flight"] == 2 and told["keys"] == [
            {"key": "192.0.2.1", "in_flight": 2}, {"key": "192.0.2.2", "in_flight": 1}], told
        told = d.web("GET", "/v1/guards?guard=site&keys=1").json()["guards"][0]
        assert told["keys_in_flight"] == 2 and len(told["keys"]) == 1, told
        server = ["--server", "127.0.0.1:%d" % d.server.ports["http"]]
        shown = subprocess.run([weir, "guards", "site", "--keys", "5"] + server, check=True,
                               stdout=subprocess.PIPE, text=True).stdout
        assert "keys with permits: 2\n      2  192.0.2.1\n      1  192.0.2.2\n" in shown, shown
        for permit in ann:
            assert d.exit(permit["permit"]) == 1
        told = d.web("GET", "/v1/guards?guard=site").json()["guards"][0]
        assert told["keys"] == [{"key": "192.0.2.2", "in_flight": 1}], told


def test_L1_a_lease_by_key_ends_with_time_or_connection(weir):
    with Doors(weir, rules=BY_KEY) as d:
        bound = d.server.resp()
        for client in (bound, None):
            assert d.enter(*(["BOUND"] if client else []), "ip", "192.0.2.1",
                           client=client)["allowed"] == 1
        assert d.enter("ip", "192.0.2.1")["reason"] == "key-busy"
        bound.close()
        until("the bound one is given back", lambda: d.guard("site")["in_flight"] == 1)
        again = d.enter("ip", "192.0.2.1")
        assert again["allowed"] == 1 and d.enter("ip", "192.0.2.1")["reason"] == "key-busy"
        d.server.clock(1020)
        permit, _ = d.resp("WEIR.RENEW", again["permit"])
        d.server.clock(1035)
        last = d.enter("ip", "192.0.2.1")
        assert last["allowed"] == 1, "the other lease was over"
        assert d.enter("ip", "192.0.2.1")["reason"] == "key-busy"
        assert d.exit(permit) == 1 and d.exit(last["permit"]) == 1


def test_S6_explain_by_key(weir):
    with Doors(weir, rules=BY_KEY) as d:
        for _ in range(2):
            d.enter("ip", "192.0.2.1")
        told = d.resp.json("WEIR.EXPLAIN", "ip", "192.0.2.1")["guards"][0]
        assert (told["key"], told["key_in_flight"], told["max_per_key"], told["reason"],
                told["refuses"]) == ("192.0.2.1", 2, 2, "key-busy", True), told
        told = d.resp.json("WEIR.EXPLAIN", "ip", "192.0.2.2")["guards"][0]
        assert (told["key_in_flight"], told["refuses"]) == (0, False), told


# ------------------------------------------------- breaker, degradation, events


def test_G4_breaker_at_the_door(weir):
    with Doors(weir) as d:
        d.open_breaker()
        refused = d.enter("GUARD", "db")
        assert (refused["allowed"], refused["reason"],
                refused["guard"]) == (0, "open", "db"), refused
        assert 0 < refused["retry_ms"] <= 5000, refused
        web = d.web("POST", "/v1/enter", {"attributes": {"uri": "/db"}})
        assert web.status == 503 and web.json()["code"] == "weir-open", (web.headers, web.body)
        assert web.headers["retry-after"] == "5", (web.headers, web.body)
        assert d.guard("db")["breaker"] == "open" and d.guard("search")["in_flight"] == 0
        d.server.clock(1006)
        for _ in range(3):
            assert d.exit(d.enter("GUARD", "db")["permit"], "ok", "TOOK", 3) == 1
        assert d.guard("db")["breaker"] == "closed"
        d.server.clock(1007)
        told = [(e["event"], e["guard"])
                for e in d.events("breaker-opened", "breaker-half-open", "breaker-closed")]
        assert told == [("breaker-opened", "db"), ("breaker-half-open", "db"),
                        ("breaker-closed", "db")], told
        d.server.clock(1008)
        assert len(d.events("breaker-opened")) == 1, "a change is told once"


def test_G4_a_longer_window_by_reload(weir):
    """The server's clock goes on: parts of another length are never taken for the present."""
    with Doors(weir, clock=False) as d:
        for window in ("10s", "60s", "60m"):
            d.resp.json("WEIR.RULES.SET", RULES.replace("min_calls: 4", "window: " + window))
            assert d.exit(d.enter("GUARD", "db")["permit"], "error") == 1
        assert d.guard("db")["errors"] == 3


def test_G4_told_once_over_a_restart(weir):
    with (tempfile.TemporaryDirectory(prefix="weir-guards-") as folder,
          Doors(weir, table=os.path.join(folder, "table"), clock=False) as d):
        d.open_breaker()
        until("it is told", lambda: d.events("breaker-opened"))
        d.server.kill()
        d.server.start()
        d.resp = d.server.resp()
        assert d.guard("db")["breaker"] in ("open", "half-open")
        d.resp("WEIR.GUARD.FORCE", "db", "closed")
        until("news is told", lambda: d.events("guard-forced"))
        assert d.events("breaker-opened") == [], "old news is told again after a restart"


def test_G4_forced_by_hand(weir):
    with Doors(weir) as d:
        forced = d.resp.json("WEIR.GUARD.FORCE", "db", "open")
        assert forced["guard"] == "db" and forced["force"] == "open"
        assert d.enter("GUARD", "db")["reason"] == "open"
        answer = d.web("PUT", "/v1/guards", {"guard": "db", "force": "closed"})
        assert answer.status == 200 and answer.json()["force"] == "closed"
        d.open_breaker()
        assert d.enter("GUARD", "db")["allowed"] == 1
        assert d.resp.json("WEIR.GUARD.FORCE", "db", "none")["force"] == "none"
        d.server.clock(1001)
        assert [e["state"] for e in d.events("guard-forced")] == ["open", "closed", "none"]
        told = [(c["event"], c["from_state"], c["to_state"])
                for c in d.guard("db")["changes"] if c["event"] == "guard-forced"]
        assert told == [("guard-forced", "closed", "none"), ("guard-forced", "open", "closed"),
                        ("guard-forced", "none", "open")], told
        assert d.web("PUT", "/v1/guards", {"guard": "db", "force": "ajar"}).status == 400
        assert d.web("PUT", "/v1/guards", {"guard": "bd", "force": "open"}).status == 404
        assert d.web("GET", "/v1/guards?guard=bd").status == 404


def test_G5_degradation(weir):
    with Doors(weir) as d:
        assert d.resp.json("WEIR.DEGRADE") == {"degradation": 0, "by_hand": False}
        assert d.enter("GUARD", "extras")["allowed"] == 1
        assert d.resp.json("WEIR.DEGRADE.SET", "3") == {"degradation": 3, "by_hand": True}
        assert d.enter("uri", "/extras")["reason"] == "degraded"
        assert d.enter("GUARD", "search")["allowed"] == 1
        d.server.clock(1001)
        assert d.web("PUT", "/v1/degradation", {"degradation": 1}).json()["degradation"] == 1
        assert d.enter("GUARD", "extras")["allowed"] == 1
        assert d.web("PUT", "/v1/degradation", {"degradation": "auto"}).json()["by_hand"] is False
        for wrong in ("10", "-1", "full"):
            assert d.web("PUT", "/v1/degradation", {"degradation": wrong}).status == 400, wrong
        d.server.clock(1010)
        told = [(e["state"], e["text"]) for e in d.events("degradation-changed")]
        assert told[0] == ("3", "by hand") and told[-1][0] == "0", told


def test_S6_metrics(weir):
    with Doors(weir) as d:
        d.open_breaker()
        d.enter("GUARD", "db")
        d.enter("GUARD", "search")
        d.resp("WEIR.DEGRADE.SET", "2")
        page = d.web("GET", "/metrics").body.decode()
        for line in (
            'weir_guard_in_flight{guard="search"} 1', 'weir_guard_limit{guard="search"} 2',
            'weir_guard_breaker{guard="db",state="open"} 1',
            'weir_guard_refused_total{guard="db",reason="open"} 1',
            'weir_guard_exits_total{guard="db",outcome="error"} 4',
            'weir_guard_admitted_ratio{guard="db"} 0.000000',
            'weir_degradation 2', 'weir_degradation_by_hand 1',
            'weir_enters_total{outcome="allowed"} 5', 'weir_enters_total{outcome="refused"} 1',
        ):
            assert line in page.splitlines(), line
        names = [line.split(" ")[2] for line in page.splitlines() if line.startswith("# TYPE")]
        assert len(names) == len(set(names))


def test_R5_the_switch_by_hand_holds_for_guards(weir):
    with Doors(weir) as d:
        d.resp("WEIR.MODE", "off")
        assert all(d.enter("GUARD", "search")["allowed"] == 1 for _ in range(5))
        assert d.guard("search")["in_flight"] == 0
        d.resp("WEIR.MODE", "as-written")
        assert [d.enter("GUARD", "search")["allowed"] for _ in range(3)] == [1, 1, 0]


def test_R5_a_guard_is_switched_by_hand(weir):
    """By its name, as a rule is; and it is kept in the table."""
    with (tempfile.TemporaryDirectory(prefix="weir-guards-") as folder,
          Doors(weir, table=os.path.join(folder, "table")) as d):
        switched = d.resp.json("WEIR.MODE", "shadow", "search")
        assert switched == {"guard": "search", "as_written": "enforce", "by_hand": "shadow",
                            "in_force": "shadow", "refused": 0,
                            "shadow_refused": 0}, switched
        assert [d.enter("GUARD", "search")["allowed"] for _ in range(3)] == [1, 1, 1]
        assert d.guard("search")["mode"] == "shadow" and d.guard("search")["shadow_refused"] == 1
        d.server.kill()
        d.server.start()
        d.resp, d.web = d.server.resp(), d.server.http()
        d.server.clock(1001)
        modes = {m["guard"]: m["in_force"] for m in d.resp.json("WEIR.MODES")["guards"]}
        assert modes == {"search": "shadow", "shop": "enforce", "db": "enforce",
                         "extras": "enforce"}, modes
        assert d.web("PUT", "/v1/modes",
                     {"mode": "as-written", "rule": "search"}).json()["in_force"] == "enforce"
        assert d.enter("GUARD", "search")["allowed"] == 0
        assert d.events("mode")[-1]["guard"] == "search"
        unknown = d.web("PUT", "/v1/modes", {"mode": "off", "rule": "serch"})
        assert unknown.status == 404
        assert "no rule or guard 'serch'; did you mean 'search'?" in unknown.json()["detail"]
        assert d.web("POST", "/v1/bans", {"rule": "search", "key": "x", "for": "1m"}).status == 404


def test_S6_a_guard_that_left_the_rules(weir):
    with Doors(weir) as d:
        assert d.guard("extras")["in_rules"]
        rules = RULES[: RULES.index("  - name: extras")]
        assert d.resp.json("WEIR.RULES.SET", rules)["guards"] == 3
        left = d.guard("extras")
        assert not left["in_rules"] and left["mode"] == "enforce" and d.guard("db")["in_rules"]
        assert len(d.resp.json("WEIR.MODES")["guards"]) == 3


def test_S5_a_fallback_is_no_way_to_read_files(weir):
    with Doors(weir) as d:
        rules = RULES.replace('body: "[]", type: application/json', "body_file: rules.yaml")
        refused = d.web("PUT", "/v1/rules", rules)
        assert refused.status == 422, refused.body
        assert "may not take a body from a file" in refused.body.decode(), refused.body


if __name__ == "__main__":
    run_tests(globals())
