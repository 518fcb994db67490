#!/usr/bin/python3
"""serve-guards.py WEIR [TEST...] -- guards at the doors of `weir serve`: enter, exit and renew over
RESP and HTTP, leases, queues, breakers, the degradation, their events, and the command
line.  Time stands still but where it is moved."""
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from serving import Error, Server, ask_for_successor, free_port, run_tests, until

RULES = """version: 1
rules:
  - name: per-ip
    match: { ip: "*" }
    key: "{ip}"
    limit: 3/10s
    ban: { refusals: 3/60s, for: 10m }
guards:
  - name: search
    match: { uri: /search }
    concurrency: { max: 2 }
    lease: 30s
    fallback: { status: 200, body: "[]", type: application/json }
  - name: shop
    match: { uri: /shop }
    concurrency: { max: 1, queue: 2, wait: 60s, order: weighted, weights: { gold: 3, free: 1 } }
    class: "{plan|free}"
  - name: db
    match: { uri: [/search, /db] }
    concurrency: { max: 3 }
    breaker: { errors: 50%, min_calls: 4, open_for: 5s, jitter: 0% }
  - name: extras
    match: { uri: /extras }
    concurrency: { max: 5 }
    degrade: 2
"""

NAMES = ["allowed", "rule", "limit", "remaining", "retry_ms", "reset_ms", "wait_ms", "level",
         "reason", "shadow", "guard", "permit", "lease_ms"]


class Doors:
    """A server with the rules, asked by RESP and by HTTP in the same words; answers as HTTP has
    them."""

    def __init__(self, weir, rules=RULES, **options):
        self.server = Server(weir, rules=rules, **options)
        if options.get("clock", True):
            self.server.clock(1000)
        self.resp = self.server.resp()
        self.web = self.server.http()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.resp.close()
        self.web.close()
        self.server.__exit__(*error)

    def enter(self, *words, client=None):
        answer = (client or self.resp)("WEIR.ENTER", *words)
        return answer if isinstance(answer, Error) else dict(zip(NAMES, answer))

    def exit(self, permit, outcome="ok", *more):
        return self.resp("WEIR.EXIT", permit, outcome, *more)

    def guard(self, name):
        return self.resp.json("WEIR.GUARDS", name)["guards"][0]

    def events(self, *kinds):
        return [e for e in self.resp.json("WEIR.EVENTS") if e["event"] in kinds]


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


BY_KEY = """version: 1
rules:
  - { name: all, limit: 1000/s }
guards:
  - name: site
    concurrency: { max: 2, key: "{ip}", total: 5, queue: 3, wait: 60s }
    lease: 30s
"""


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


# ------------------------------------------------------------------- queues


class Waiter:
    """A connection whose ask waits; something that needs no waiting is sent behind it."""

    def __init__(self, doors, *words, guard="shop"):
        self.before = doors.guard(guard)["waiting"]
        self.client = doors.server.resp()
        self.client.send("WEIR.ENTER", *words)
        self.client.send("ECHO", "behind it")
        until("it waits", lambda: doors.guard(guard)["waiting"] == self.before + 1)

    def answer(self):
        entered = dict(zip(NAMES, self.client.read()))
        assert self.client.read() == "behind it"
        self.client.close()
        return entered


def test_L11_waits_for_a_permit(weir):
    """The answer comes when somebody else gives a permit back, and what was sent behind it is
    answered behind it."""
    with Doors(weir) as d:
        permit = d.enter("GUARD", "shop")["permit"]
        first, second = Waiter(d, "GUARD", "shop", "WAIT",
                               60000), Waiter(d, "GUARD", "shop", "WAIT", 60000)
        full = d.enter("GUARD", "shop", "WAIT", 1000)
        assert (full["allowed"], full["reason"], full["guard"]) == (0, "full", "shop"), full
        assert d.enter("GUARD",
                       "shop")["reason"] == "busy", "an ask without WAIT is not queued"
        for waiter in (first, second):
            assert d.exit(permit) == 1
            entered = waiter.answer()
            assert entered["allowed"] == 1 and entered["guard"] == "shop", entered
            assert entered["lease_ms"] == 60000, entered
            assert d.guard("shop")["in_flight"] == 1
            permit = entered["permit"]
        assert d.exit(permit) == 1 and d.guard("shop")["in_flight"] == 0
        assert d.guard("shop")["waiting"] == 0
        refused = d.guard("shop")["refused"]
        assert refused == {"open": 0, "busy": 1, "limited": 0, "shed": 0, "degraded": 0, "full": 1,
                           "late": 0, "key_busy": 0}, refused
        page = d.web("GET", "/metrics").body.decode().splitlines()
        assert 'weir_guard_refused_total{guard="shop",reason="full"} 1' in page


def test_L11_nobody_overtakes(weir):
    """While one waits for two permits and one is free, no later ask takes it."""
    with Doors(weir, rules=RULES.replace("{ max: 1, queue: 2", "{ max: 2, queue: 2")) as d:
        permit = d.enter("GUARD", "shop")["permit"]
        first = Waiter(d, "GUARD", "shop", "COST", 2, "WAIT", 60000)
        for words in (("GUARD", "shop"), ("uri", "/shop")):
            refused = d.enter(*words)
            assert (refused["allowed"], refused["reason"],
                    refused["guard"]) == (0, "busy", "shop"), (words, refused)
        second = Waiter(d, "WAIT", 60000, "uri", "/shop")
        assert d.guard("shop")["in_flight"] == 1 and d.exit(permit) == 1
        both = first.answer()
        assert both["allowed"] == 1 and d.guard("shop")["in_flight"] == 2
        assert d.guard("shop")["waiting"] == 1
        assert d.exit(both["permit"]) == 1
        last = second.answer()
        assert last["allowed"] == 1 and d.enter("GUARD", "shop")["allowed"] == 1


def test_L11_one_key_does_not_take_the_queue(weir):
    """By rules and by name a key has as many waiters as it may have permits."""
    rules = BY_KEY.replace("total: 5, queue: 3", "total: 2, queue: 6")
    with Doors(weir, rules=rules) as d:
        other, permit = (d.enter("ip", "192.0.2.9")["permit"] for _ in range(2))
        waiters = [Waiter(d, "WAIT", 60000, "ip", "192.0.2.1", guard="site") for _ in range(2)]
        for words in (("WAIT", 60000, "ip", "192.0.2.1"),
                      ("GUARD", "site", "USER", "192.0.2.1", "WAIT", 60000)):
            no = d.enter(*words)
            assert (no["allowed"], no["reason"], no["limit"]) == (0, "key-busy", 2), (words, no)
        refused = d.guard("site")["refused"]
        assert (refused["key_busy"], refused["full"]) == (2, 0), refused
        assert ["192.0.2.1", 1] in [[t["key"], t["refused"]]
                                    for t in d.resp.json("WEIR.TOP")["top"]]
        waiters.append(Waiter(d, "GUARD", "site", "USER", "192.0.2.2", "WAIT", 60000,
                              guard="site"))
        for waiter in waiters:
            assert d.exit(permit) == 1
            permit = waiter.answer()["permit"]
        assert d.exit(permit) == 1 and d.guard("site")["in_flight"] == 1
        assert d.exit(other) == 1


def test_L11_a_large_ask_is_passed_now_and_then(weir):
    """Permits gather for it, but are not idle for long."""
    with Doors(weir, rules=RULES.replace("{ max: 1, queue: 2", "{ max: 10, queue: 9")) as d:
        work = d.enter("GUARD", "shop", "COST", 6)["permit"]
        large = Waiter(d, "GUARD", "shop", "COST", 8, "WAIT", 60000)
        small = Waiter(d, "WAIT", 60000, "uri", "/shop")
        d.server.clock(1000.05)
        assert d.guard("shop")["waiting"] == 2 and d.enter("GUARD", "shop")["reason"] == "busy"
        d.server.clock(1000.15)
        passed = small.answer()
        assert passed["allowed"] == 1, passed
        until("it is open", lambda: d.guard("shop")["in_flight"] == 7)
        quick = d.enter("uri", "/shop")  # cannot wait, and need not
        assert quick["allowed"] == 1 and d.guard("shop")["waiting"] == 1, quick
        d.server.clock(1000.25)
        until("it is closed", lambda: d.enter("GUARD", "shop", "COST", 3)["reason"] == "busy")
        for permit in (work, passed["permit"], quick["permit"]):
            assert d.exit(permit) == 1
        assert large.answer()["allowed"] == 1 and d.guard("shop")["in_flight"] == 8


def test_L11_a_change_of_the_queue_keeps_the_order(weir):
    """Waiters of before are before those that come later, whatever the new queue is."""
    with Doors(weir) as d:
        permit = d.enter("GUARD", "shop")["permit"]
        waiters = [Waiter(d, "GUARD", "shop", "WAIT", 60000) for _ in range(2)]
        for queue in ("queue: 4", "queue: 5"):
            d.resp.json("WEIR.RULES.SET", RULES.replace("queue: 2", queue))
            waiters.append(Waiter(d, "GUARD", "shop", "WAIT", 60000))
        for waiter in waiters:
            assert d.exit(permit) == 1
            permit = waiter.answer()["permit"]
        assert d.exit(permit) == 1 and d.guard("shop")["waiting"] == 0


def test_L11_a_waiter_whose_class_has_gone_holds_up_nobody(weir):
    with Doors(weir) as d:
        permit = d.enter("GUARD", "shop")["permit"]
        gold = Waiter(d, "GUARD", "shop", "CLASS", "gold", "WAIT", 60000)
        free = Waiter(d, "GUARD", "shop", "CLASS", "free", "WAIT", 60000)
        d.resp.json("WEIR.RULES.SET", RULES.replace("gold: 3", "silver: 3"))
        assert d.exit(permit) == 1
        told = gold.answer()
        assert (told["allowed"], told["reason"], told["permit"]) == (0, "cancelled", None), told
        assert d.exit(free.answer()["permit"]) == 1


def test_S1_who_waits_is_answered_when_the_server_ends(weir):
    with Doors(weir) as d:
        d.enter("GUARD", "shop")
        first, web = d.server.resp(), d.server.http()
        first.send("WEIR.ENTER", "GUARD", "shop", "WAIT", 60000)
        web.connection.request("POST", "/v1/enter",
                               body=json.dumps({"guard": "shop", "wait_ms": 60000}))
        until("both wait", lambda: d.guard("shop")["waiting"] == 2)
        d.server.process.send_signal(signal.SIGTERM)
        told = dict(zip(NAMES, first.read()))
        assert (told["allowed"], told["reason"], told["guard"],
                told["permit"]) == (0, "cancelled", "shop", None), told
        answer = web.connection.getresponse()
        assert answer.status == 503 and json.loads(answer.read())["code"] == "weir-cancelled"
        first.close()
        web.close()


def test_L11_weights(weir):
    """Three of gold for one of free, though the free ones came first."""
    rules = RULES.replace("queue: 2", "queue: 20")
    with Doors(weir, rules=rules) as d:
        permit = d.enter("GUARD", "shop")["permit"]
        waiters = [(name, Waiter(d, "GUARD", "shop", "CLASS", name, "WAIT", 60000))
                   for name in ["free"] * 4 + ["gold"] * 4]
        order = []
        for _ in range(8):
            assert d.exit(permit) == 1
            name, waiter = until("a turn",
                                 lambda: next((w for w in waiters if readable(w[1].client)), None))
            waiters.remove((name, waiter))
            order.append(name)
            permit = waiter.answer()["permit"]
        assert order[:4].count("gold") == 3 and order.count("free") == 4, order


def test_G7_only_the_important_wait(weir):
    """The others are refused at once, whatever they ask for."""
    rules = RULES.replace("wait: 60s, order: weighted", "wait: { 3: 60s, gold: 60s }")
    with Doors(weir, rules=rules) as d:
        permit = d.enter("GUARD", "shop")["permit"]
        refused = d.enter("GUARD", "shop", "CLASS", "free", "WAIT", 60000, "PRIORITY", 2)
        assert (refused["allowed"], refused["reason"]) == (0, "busy"), refused
        for words in (("CLASS", "free", "PRIORITY", 3), ("CLASS", "gold")):
            waiter = Waiter(d, "GUARD", "shop", "WAIT", 60000, *words)
            assert d.exit(permit) == 1
            permit = waiter.answer()["permit"]
        assert d.guard("shop")["refused"]["busy"] == 1


def readable(client):
    return bool(select.select([client.socket], [], [], 0)[0])


def test_L11_by_rules(weir):
    with Doors(weir) as d:
        permit = d.enter("uri", "/shop")["permit"]
        waiter = Waiter(d, "WAIT", 60000, "uri", "/shop", "ip", "192.0.2.1", "plan", "gold")
        assert d.exit(permit) == 1
        entered = waiter.answer()
        assert entered["allowed"] == 1 and entered["permit"], entered
        assert entered["rule"] == "per-ip", entered
        assert d.exit(entered["permit"]) == 1 and d.guard("shop")["in_flight"] == 0


def test_R5_in_shadow_nobody_waits(weir):
    """In shadow nobody waits: new asks come in, and so do the waiting ones, once."""
    with Doors(weir) as d:
        d.enter("GUARD", "shop")
        waiter = Waiter(d, "GUARD", "shop", "WAIT", 60000)
        d.resp("WEIR.MODE", "shadow")
        assert waiter.answer()["allowed"] == 1
        for words in (("GUARD", "shop", "WAIT", 60000), ("WAIT", 60000, "uri", "/shop")):
            entered = d.enter(*words)
            assert entered["allowed"] == 1 and entered["permit"], entered
        assert d.guard("shop")["in_flight"] == 4 and d.guard("shop")["waiting"] == 0
        d.resp("WEIR.MODE", "as-written")
        waiter = Waiter(d, "WAIT", 60000, "uri", "/shop")
        d.resp("WEIR.MODE", "shadow", "shop")
        assert waiter.answer()["permit"] and d.enter("GUARD", "shop", "WAIT", 60000)["permit"]
        assert d.guard("shop")["in_flight"] == 6 and d.guard("shop")["waiting"] == 0


def test_L11_too_late(weir):
    with Doors(weir) as d:
        permit = d.enter("GUARD", "shop")["permit"]
        waiter = Waiter(d, "GUARD", "shop", "WAIT", 5000)
        d.server.clock(1004)
        assert d.guard("shop")["waiting"] == 1
        d.server.clock(1006)
        late = waiter.answer()
        assert (late["allowed"], late["reason"], late["permit"]) == (0, "late", None), late
        assert d.guard("shop")["refused"]["late"] == 1 and d.guard("shop")["refused"]["busy"] == 0
        assert d.exit(permit) == 1 and d.guard("shop")["in_flight"] == 0


def test_L11_who_leaves_is_not_waited_for(weir):
    """A connection that ends while it waits: when it is seen, by an answer or at the end, nothing
    is kept."""
    with Doors(weir) as d:
        permit = d.enter("GUARD", "shop")["permit"]
        client = d.server.resp()
        client.send("WEIR.ENTER", "GUARD", "shop", "BOUND", "WAIT", 60000)
        until("it waits", lambda: d.guard("shop")["waiting"] == 1)
        client.close()
        assert d.exit(permit) == 1
        until("it is given back", lambda: d.guard("shop")["in_flight"] == 0)


def test_L11_over_http(weir):
    with Doors(weir) as d:
        permit = d.enter("GUARD", "shop")["permit"]
        answers = []
        body = {"guard": "shop", "wait_ms": 60000}
        thread = threading.Thread(target=lambda: answers.append(d.web("POST", "/v1/enter", body)))
        thread.start()
        until("it waits", lambda: d.guard("shop")["waiting"] == 1)
        assert d.exit(permit) == 1
        thread.join()
        assert answers[0].status == 200 and answers[0].json()["permit"], answers[0].body
        assert d.web("POST", "/v1/exit",
                     {"permit": answers[0].json()["permit"],
                      "outcome": "ok"}).json() == {"exited": True}


def test_L11_the_server_can_end_while_somebody_waits(weir):
    with Doors(weir, threads=2) as d:
        d.enter("GUARD", "shop")
        Waiter(d, "GUARD", "shop", "WAIT", 60000)
        d.server.process.send_signal(signal.SIGTERM)
        d.server.process.send_signal(signal.SIGTERM)


def test_L11_many_at_once(weir):
    """On all threads, with permits given back from other connections: as many come in as are let
    in, and nobody is forgotten."""
    rules = RULES.replace("max: 1, queue: 2", "max: 4, queue: 500")
    with Doors(weir, rules=rules, threads=2) as d:  # in real time a busy machine sheds
        done = []

        def work():
            with d.server.resp() as client:
                for _ in range(25):
                    entered = dict(zip(NAMES, client("WEIR.ENTER", "GUARD", "shop", "WAIT", 60000)))
                    assert entered["allowed"] == 1, entered
                    assert client("WEIR.EXIT", entered["permit"], "ok") == 1
                    done.append(1)

        threads = [threading.Thread(target=work) for _ in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(done) == 400
        guard = d.guard("shop")
        assert (guard["in_flight"], guard["waiting"], guard["outcomes"]["ok"]) == (0, 0, 400), guard


# ------------------------------------------------- breaker, degradation, events


def open_breaker(d):
    for _ in range(4):
        assert d.exit(d.enter("GUARD", "db")["permit"], "error") == 1


def test_G4_breaker_at_the_door(weir):
    with Doors(weir) as d:
        open_breaker(d)
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
        open_breaker(d)
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
        open_breaker(d)
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
        open_breaker(d)
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


# ------------------------------------------------------------ the command line


ONE_PERMIT = """version: 1
guards:
  - { name: shop, concurrency: { max: 1, queue: 10, wait: 60s } }
  - { name: bare, concurrency: 1 }
  - { name: brief, concurrency: { max: 1, queue: 10, wait: 1ms } }
  - { name: keyed, concurrency: { max: 1, key: "{account}" } }
"""


class Runs:
    """`weir run` under the guard shop, which has one permit: at a server, or in its table."""

    def __init__(self, weir, d, table=None):
        self.d, self.command = d, [weir, "run"]
        self.command += ["--table", table] if table else [
            "--server", "127.0.0.1:%d" % d.server.ports["http"]]

    def start(self, *words, guard="shop"):
        command = [*self.command, "--guard", guard, *words]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def __call__(self, *words, **more):
        process = self.start(*words, **more)
        out, complaint = process.communicate()
        return process.returncode, out + complaint

    def started(self, script="exec sleep 1000", first=":"):
        process = self.start("--", "sh", "-c", "%s; echo ready; %s" % (first, script))
        line = process.stdout.readline()
        assert line == "ready\n", (line, process.communicate(), process.returncode)
        until("it has a permit", lambda: self.d.guard("shop")["in_flight"] == 1)
        return process


def check_runs(run, d):
    assert run("--", "echo", "-n", "hello") == (0, "hello")
    assert run("echo", "-q", "--", "a", guard="bare") == (0, "-q -- a\n"), "the command's own"
    code, said = run("--json", "--", "true")
    assert code == 2 and "there is no option --json" in said, said
    assert run("--", "sh", "-c", "exit 3") == (3, "")
    assert run("--", "sh", "-c", "exit 124") == (124, "")
    assert run("--", "/nowhere/to/be/found")[0] == 127
    code, said = run("--", "/")
    assert code == 126, (code, said)
    until("all are back", lambda: d.guard("shop")["in_flight"] == 0)
    outcomes = d.guard("shop")["outcomes"]
    assert (outcomes["ok"], outcomes["error"], outcomes["timeout"]) == (1, 1, 1), outcomes
    code, said = run("--", "true", guard="shp")
    assert code == 125 and "shp" in said, said
    process = run.started()
    code, said = run("--", "true")
    assert code == 75 and "refused by guard shop: busy" in said, said
    assert run("--quiet", "--", "true") == (75, "")
    waits = run.start("--wait", "50s", "--", "echo", "at last")
    process.terminate()  # the command gets it, too
    assert process.wait() == 128 + signal.SIGTERM
    assert waits.communicate()[0] == "at last\n" and waits.returncode == 0
    process = run.started("trap 'exit 9' USR1; echo set; while :; do sleep 0.01; done")
    assert process.stdout.readline() == "set\n"
    process.send_signal(signal.SIGUSR1)
    assert process.wait() == 9


def check_run_waits(run):
    """It waits as long as it says: without a queue, longer than the guard's `wait`, for a key."""
    for guard, user in ("bare", None), ("brief", None), ("keyed", "ann"):
        words = ["--user", user] if user else []
        holds = run.start(*words, "--", "sh", "-c", "echo ready; read line", guard=guard)
        assert holds.stdout.readline() == "ready\n", guard
        code, said = run(*words, "--wait", "30ms", "--", "true", guard=guard)
        assert code == 75 and "refused by guard " + guard in said, said
        if user:
            assert run("--user", "bob", "--", "echo", "in", guard=guard) == (0, "in\n")
        waits = run.start(*words, "--wait", "50s", "--", "echo", "at last", guard=guard)
        try:
            waits.wait(timeout=0.2)
            assert False, ("it did not wait", guard, waits.communicate())
        except subprocess.TimeoutExpired:
            pass
        holds.communicate("\n")
        assert waits.communicate()[0] == "at last\n" and waits.returncode == 0, guard


def check_signals_of_runs(run):
    """The command has the signals' dispositions of the runner, whose own do not matter."""
    guarded = [*run.command, "--guard", "shop", "--"]
    for ignored in [], [signal.SIGCHLD], [signal.SIGPIPE, signal.SIGHUP]:
        for script in "exit 7", "kill -9 $$", "grep SigIgn /proc/self/status":
            plain, seen = (subprocess.run(
                [*before, "bash", "-c", script], stdout=subprocess.PIPE, text=True,
                preexec_fn=lambda: [signal.signal(n, signal.SIG_IGN) for n in ignored])
                for before in ([], guarded))
            code = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
            assert (seen.returncode, seen.stdout) == (code, plain.stdout), (ignored, seen, plain)


def check_every_run(run, d):
    check_runs(run, d)
    check_run_waits(run)
    check_signals_of_runs(run)
    process = run.started()
    process.kill()
    until("the permit is back", lambda: d.guard("shop")["in_flight"] == 0)
    assert process.communicate() == ("", ""), "the command has ended"


def test_G1_run_at_a_server(weir):
    with Doors(weir, rules=ONE_PERMIT, clock=False) as d:
        run = Runs(weir, d)
        check_every_run(run, d)
    assert run("--", "true")[0] == 125, "no server"


def test_G1_run_in_a_table(weir):
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "table")
        with Doors(weir, rules=ONE_PERMIT, clock=False, table=table) as d:
            run = Runs(weir, d, table)
            check_every_run(run, d)


def run_rules(lease):
    return ONE_PERMIT.replace("name: shop,", "name: shop, lease: %s," % lease)


def restart_by(server, number):
    server.process.send_signal(number)
    server.process.wait(timeout=60)
    server.process.stdout.close()
    server.errors.close()
    server.start()


def test_G1_run_over_a_restart(weir):
    with (tempfile.TemporaryDirectory(prefix="weir-guards-") as folder,
          Doors(weir, rules=run_rules("30s"), clock=False, table=os.path.join(folder, "table"),
                http="127.0.0.1:%d" % free_port()) as d):
        run = Runs(weir, d)
        brief = run.started("read line")
        restart_by(d.server, signal.SIGTERM)
        assert brief.communicate("\n") == ("", "") and brief.returncode == 0
        d.resp = d.server.resp()
        assert d.guard("shop")["outcomes"]["ok"] == 1, "it was not given back"
        process = run.started()
        restart_by(d.server, signal.SIGKILL)
        restart_by(d.server, signal.SIGTERM)
        d.resp = d.server.resp()
        assert d.guard("shop")["in_flight"] == 1
        process.terminate()
        assert process.communicate() == ("", "")
        assert d.guard("shop")["in_flight"] == 0


def test_G1_run_renews_whatever_signals_it_gets(weir):
    with Doors(weir, rules=run_rules("6s"), clock=False) as d:
        process = Runs(weir, d).started(first="trap '' USR1")
        for _ in range(70):  # longer than the lease
            process.send_signal(signal.SIGUSR1)
            time.sleep(0.1)
        assert d.guard("shop")["in_flight"] == 1
        process.terminate()
        assert process.communicate() == ("", "")


def test_G1_run_enters_again(weir):
    """The next server has another table: the old permit is none there."""
    with Doors(weir, rules=run_rules("300ms"), clock=False,
               http="127.0.0.1:%d" % free_port()) as d:
        process = Runs(weir, d).started()
        restart_by(d.server, signal.SIGKILL)
        d.resp = d.server.resp()
        until("it has entered again", lambda: d.guard("shop")["in_flight"] == 1)
        process.terminate()
        said = process.communicate()[1]
        assert "the permit is lost" in said and "has a permit again" in said, said
        assert d.guard("shop")["in_flight"] == 0


def test_G1_run_at_a_server_that_hangs(weir):
    """Signals reach the command, and the runner ends."""
    with Doors(weir, rules=run_rules("300ms"), clock=False) as d:
        process = Runs(weir, d).started(
            "trap 'echo got it; exit 3' TERM; while :; do sleep 0.01; done")
        d.server.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(0.5)  # a renewal is under way
            process.terminate()
            assert select.select([process.stdout], [], [], 25)[0], "the signal was not passed on"
            assert process.stdout.readline() == "got it\n"
            assert process.wait(timeout=25) == 3
        finally:
            d.server.process.send_signal(signal.SIGCONT)
        until("the permit is back", lambda: d.guard("shop")["in_flight"] == 0)
        process.communicate()


def test_S6_a_long_name_shifts_no_column(weir):
    rules = RULES.replace("name: search", "name: fifteen-letters")
    with Doors(weir, rules=rules.replace("max: 5", 'max: 5, key: "{ip}"')) as d:
        server = "127.0.0.1:%d" % d.server.ports["http"]
        told = subprocess.check_output([weir, "guards", "--server", server], text=True)
        lines = told.splitlines()
        assert len(lines) == 5 and {line.find("%") for line in lines[1:]} == {80}, lines
        assert [line for line in lines if line.endswith("%  5 per key")] == lines[-1:], lines


def command(weir, d, *words):
    """What it says, and its exit code."""
    done = subprocess.run([weir, *words, "--server", "127.0.0.1:%d" % d.server.ports["http"]],
                          capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_G4_a_breaker_whose_time_is_over_would_be_tried(weir):
    with Doors(weir) as d:
        open_breaker(d)
        assert d.guard("db")["admitted_percent"] == 0
        assert "refused by guard db: open" in command(weir, d, "explain", "uri=/db")[1]
        d.server.clock(1006)
        assert d.guard("db")["admitted_percent"] == 100
        assert "to be tried" in command(weir, d, "guards", "db")[1]
        told = command(weir, d, "explain", "uri=/db")[1]
        assert "breaker open: would be tried" in told and "refused" not in told, told
        assert d.enter("GUARD", "db")["allowed"] == 1


def test_G4_run_waits_until_a_breaker_is_tried(weir):
    for open_for, wait, code in ("300ms", "100s", 0), ("2h", "1h", 75):
        rules = RULES.replace("open_for: 5s", "open_for: " + open_for)
        with Doors(weir, rules=rules, clock=False) as d:
            open_breaker(d)
            done = subprocess.run([weir, "run", "--server",
                                   "127.0.0.1:%d" % d.server.ports["http"], "--guard", "db",
                                   "--wait", wait, "--", "true"], timeout=120)
            assert done.returncode == code, (open_for, done)


def test_G1_a_guard_without_a_rule_goes_though_people_look_at_it(weir):
    gone = RULES[:RULES.index("guards:")]
    with Doors(weir) as d:
        assert d.resp("WEIR.GUARD.FORCE", "db", "open")
        assert d.web("PUT", "/v1/rules", gone).status == 200
        for name in "db", "search", "db":
            d.guard(name)
        for second in range(1010, 1130, 10):
            d.server.clock(second)
        assert d.resp.json("WEIR.GUARDS")["guards"] == []
        assert 'guard="db"' not in d.web("GET", "/metrics").body.decode()


def test_S6_command_line(weir):
    with Doors(weir) as d:
        env = dict(os.environ, WEIR_SERVER="127.0.0.1:%d" % d.server.ports["http"])

        def run(code, *words):
            done = subprocess.run([weir, *words], env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
            assert done.returncode == code, (words, done)
            return done.stdout + done.stderr

        open_breaker(d)
        d.enter("GUARD", "search")
        listed = run(0, "guards")
        assert "search" in listed and "1/2" in listed and "open for" in listed, listed
        assert max(map(len, listed.splitlines())) <= 80, listed
        assert "not in the rules" not in listed, listed
        assert not any(line.endswith(" ") for line in listed.splitlines()), listed
        one = run(0, "guards", "db")
        assert "breaker-opened: closed -> open" in one, one
        assert "entering: refused by guard db: open" in run(0, "explain", "uri=/db")
        d.enter("GUARD", "db")
        assert "refused: 1 open" in run(0, "guards", "db")
        assert run(0, "mode", "shadow", "--rule", "extras") == "extras: shadow\n"
        assert "shadow (by hand; written: enforce)" in run(0, "mode")
        assert run(0, "mode", "as-written") == (
            "all rules: enforce\nstill switched by hand: guard extras (shadow); "
            "--rule NAME as-written ends one\n")
        run(0, "mode", "off", "--rule", "extras")
        assert run(0, "guards", "extras").splitlines()[1].split()[-2:] == ["-", "off"]
        run(0, "mode", "as-written", "--rule", "extras")
        assert json.loads(run(0, "guards", "--json", "db"))["guards"][0]["guard"] == "db"
        assert "search: forced open\n" == run(0, "guards", "search", "--force", "open")
        assert run(0, "guards", "search").splitlines()[1].split()[-1] == "0%", "it lets nobody in"
        assert d.guard("search")["retry_ms"] is None
        assert "weir guards search --force open" in run(2, "guards", "force", "search", "open")
        assert "weir guards, GET /v1/guards" in run(2, "guards", "qqqqqqqqqqqqq")
        assert d.enter("GUARD", "search")["reason"] == "open"
        run(0, "guards", "search", "--force", "none")
        assert "extras: no longer forced\n" == run(0, "guards", "extras", "--force", "none")
        assert "did you mean" in run(2, "guards", "serch")
        assert "--force must be open, closed or none, not 'ajar'" in run(2, "guards", "search", "--force", "ajar")
        assert "which guard" in run(2, "guards", "--force", "open")
        assert run(0, "degrade") == "0 (auto)\n" and run(0, "degrade", "4") == "4 (by hand)\n"
        assert run(0, "degrade") == "4 (by hand)\n"
        assert run(0, "degrade", "auto").endswith("(auto)\n")
        assert "from 0 to 9, or auto" in run(2, "degrade", "11")
        run(0, "degrade", "2")
        told = run(0, "status")
        assert "4: 1 at work, 1 breaker not closed; degradation 2, by hand" in told, told
        assert "1 at work in 4" in run(0, "top", "--once", "--every", "0")
        assert "guards" in run(0, "completion", "words", "g") and "degrade" in run(0, "--help")


def test_S6_a_table(weir):
    """Looked at without a server, and nothing in it is changed."""
    with tempfile.TemporaryDirectory(prefix="weir-guards-") as folder:
        path = os.path.join(folder, "table")

        def run(code, *words):
            done = subprocess.run([weir, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True)
            assert done.returncode == code, (words, done)
            return done.stdout + done.stderr

        with Doors(weir, table=path) as d:
            d.enter("GUARD", "search")
            listed = run(0, "guards", "--table", path, "--now", "1001")
            assert "1/2" in listed and len(listed.splitlines()) == 5, listed
            assert "not in the rules" not in listed, listed
            one = json.loads(run(0, "guards", "--table", path, "--json", "--now", "2000",
                                 "search"))["guards"]
            assert [(g["guard"], g["in_flight"], g["in_rules"], g["changes"])
                    for g in one] == [("search", 1, None, [])], one
            d.resp.close()
            d.web.close()
        assert "no guard 'serch'" in run(2, "guards", "--table", path, "serch")
        assert "without --table" in run(2, "guards", "--table", path, "search", "--force", "open")
        told = run(0, "table", path)
        assert "guards     4; weir guards --table lists them" in told and "sparse" in told, told
        assert json.loads(run(0, "table", "--json", path))["guards"] == 4


if __name__ == "__main__":
    run_tests(globals())
