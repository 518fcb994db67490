#!/usr/bin/python3
"""serve-http.py WEIR [TEST...] -- the HTTP door of `weir serve`: every route against its
description, requests in odd pieces, events."""
import os
import socket
import subprocess

import jsonschema

from fleeting import Node, joined, url
from redising import Redis, until
from serving import SECOND, Server, run_tests

RULES = """version: 1
rules:
  - name: per-ip
    key: "{ip}"
    limit: 5/10s
  - name: login
    match: { uri: /login, method: POST }
    key: "{account|nobody}"
    limit: 2/60s
    ban: { refusals: 2/60s, for: 10m }
  - name: crawlers
    match: { header.user-agent: "*bot*" }
    key: "{ip}"
    limit: 1/60s
    mode: shadow
guards:
  - name: search
    match: { uri: /search }
    concurrency: { max: 2 }
    fallback: { body: busy }
lists:
  deny: { account: [mallory] }
  allow: { ip: [203.0.113.0/24] }
"""


# ------------------------------------------------------------------ the description


class Description:
    """openapi.json as the server gives it, and how well answers keep to it."""

    def __init__(self, server):
        self.document = server.http()("GET", "/openapi.json").json()
        self.seen = set()
        self.client = server.http()

    def resolve(self, node):
        while isinstance(node, dict) and "$ref" in node:
            at = self.document
            for part in node["$ref"][2:].split("/"):
                at = at[part.replace("~1", "/")]
            node = at
        return node

    def validate(self, value, schema):
        whole = {**schema, "components": self.document["components"]}
        jsonschema.Draft202012Validator(whole).validate(value)

    def undescribed(self, value, schema, at=""):
        """Members that are answered and not described, in any of its readings."""
        schema = self.resolve(schema)
        for either in ("anyOf", "oneOf"):
            if either in schema:
                return min((self.undescribed(value, s, at) for s in schema[either]), key=len)
        if isinstance(value, list):
            items = schema.get("items", {})
            return [name for v in value for name in self.undescribed(v, items, at + "[]")]
        known = schema.get("properties")
        if not isinstance(value, dict) or known is None:
            return []
        return [name for key, v in value.items() for name in
                (self.undescribed(v, known[key], at + "." + key) if key in known
                 else [at + "." + key])]

    def __call__(self, method, path, body=None, status=200, headers=None):
        """Asks, and checks the answer against the description of that status."""
        answer = self.client(method, path, body, headers)
        assert answer.status == status, (method, path, answer.status, answer.body)
        operation = self.document["paths"][path.split("?")[0]][method.lower()]
        self.seen.add((method.lower(), path.split("?")[0], status))
        response = self.resolve(operation["responses"][str(status)])
        kind = answer.headers.get("content-type", "").split(";")[0]
        if "content" not in response:
            assert answer.body == b"", (method, path, answer.body)
        else:
            assert kind in response["content"], (method, path, kind)
            if kind.endswith("json"):
                schema = response["content"][kind]["schema"]
                self.validate(answer.json(), schema)
                unknown = self.undescribed(answer.json(), schema)
                assert not unknown, (method, path, status, unknown)
        if isinstance(body, (dict, list)) and status < 400 and "requestBody" in operation:
            self.validate(body, operation["requestBody"]["content"]["application/json"]["schema"])
        for name in answer.headers:
            if name.startswith(("ratelimit", "weir-")) or name == "retry-after":
                described = {h.lower() for h in response.get("headers", {})}
                assert name in described, (method, path, status, name)
        return answer


def ask_every_route(ask, server):
    ann = {"uri": "/login", "method": "POST", "account": "ann"}
    ask("POST", "/v1/check",
        {"attributes": {"ip": "192.0.2.7"}, "cost": 1, "wait_ms": 0, "id": "a"})
    ask("POST", "/v1/check", {"attributes": {}})
    ask("POST", "/v1/check", {"attributes": {"ip": "192.0.2.7"}, "cost": 9}, 429)
    for status in (200, 200, 429, 429, 429):
        ask("POST", "/v1/check", {"attributes": ann}, status)
    ask("POST", "/v1/check", {"attributes": {"account": "mallory"}}, 403)
    ask("POST", "/v1/check", {"attribute": {"ip": "192.0.2.7"}}, 400)
    ask("POST", "/v1/check", None, 413, {"Content-Length": "999999999"})
    ask("POST", "/v1/check/batch",
        {"checks": [{"attributes": ann}, {}, {"id": "b"}, {"id": "b", "cost": 2}]})
    ask("POST", "/v1/check/batch", {"checks": []}, 400)
    ask("GET", "/v1/auth?account=ann")
    ask("POST", "/v1/auth?account=ann")
    ask("POST", "/v1/auth?account=mallory", None, 403)
    for status in (200, 200, 200, 200, 200, 429):
        ask("GET", "/v1/auth", None, status, {"X-Forwarded-For": "192.0.2.99"})
    ask("GET", "/v1/auth?refuse=503", None, 503, {"X-Forwarded-For": "192.0.2.99"})
    ask("GET", "/v1/auth?refuse=1", None, 400)
    ask("GET", "/v1/auth?account=ann&ip=9.9.9.9", None, 400)
    take = {"key": "k", "limit": "2/10"}
    ask("POST", "/v1/take", take)
    ask("POST", "/v1/take", dict(take, cost=3), 429)
    ask("POST", "/v1/take", dict(take, unit="ns", wait_ns=20 * SECOND))
    ask("POST", "/v1/take", dict(take, limit="nonsense"), 422)
    ask("POST", "/v1/peek", take, 429)
    ask("POST", "/v1/peek", dict(take, key="other"))
    ask("POST", "/v1/give", take)
    reserved = ask("POST", "/v1/reserve", dict(take, key="r", lifetime_ms=1000)).json()
    ask("POST", "/v1/settle", {"reservation": reserved["reservation"], "cost": 0})
    ask("POST", "/v1/settle", {"reservation": "x"}, 400)
    entered = ask("POST", "/v1/enter", {"guard": "search", "priority": -1, "user": "ann"}).json()
    ask("POST", "/v1/enter", {"attributes": {"uri": "/search"}, "wait_ms": 5})
    ask("POST", "/v1/enter", {"attributes": {"uri": "/search"}}, 503)
    ask("POST", "/v1/enter", {"guard": "search", "cost": 3}, 429)
    ask("POST", "/v1/enter", {"attributes": {"ip": "192.0.2.7"}, "cost": 9}, 429)
    ask("POST", "/v1/enter", {"attributes": {"account": "mallory"}}, 403)
    ask("POST", "/v1/enter", {"guard": "serch"}, 404)
    ask("POST", "/v1/enter", {"gaurd": "search"}, 400)
    renewed = ask("POST", "/v1/renew", {"permit": entered["permit"]}).json()
    ask("POST", "/v1/renew", {"permit": "x"}, 400)
    ask("POST", "/v1/exit", {"permit": renewed["permit"], "outcome": "ok", "took_ms": 3})
    ask("POST", "/v1/exit", {"permit": renewed["permit"], "outcome": "ok"})
    ask("POST", "/v1/exit", {"permit": renewed["permit"]}, 400)
    ask("POST", "/v1/clock", {"now_ns": 5000 * SECOND})
    ask("GET", "/v1/events/recent")
    ask("GET", "/v1/events/recent?after=x", None, 400)
    ask("GET", "/v1/events?after=x", None, 400)
    ask("GET", "/v1/status")
    ask("GET", "/v1/settings")
    ask("GET", "/v1/rules")
    ask("PUT", "/v1/rules", RULES.replace("5/10s", "6/10s"))
    ask("PUT", "/v1/rules", "version: 1\nrules:\n  - nme: x\n", 422)
    ask("POST", "/v1/rules/check", RULES)
    ask("POST", "/v1/rules/check", "version: 2", 422)
    ask("POST", "/v1/rules/reload")
    ask("POST", "/v1/bans", {"rule": "login", "key": "eve", "for": "10m"})
    ask("GET", "/v1/bans")
    ask("GET", "/v1/bans?rule=nonsense", None, 404)
    ask("DELETE", "/v1/bans?rule=login&key=eve")
    ask("DELETE", "/v1/bans?rule=login&key=eve", None, 404)
    ask("POST", "/v1/bans", {"rule": "login"}, 400)
    entries = {"list": "deny", "attribute": "ip", "entries": ["198.51.100.0/24"]}
    ask("POST", "/v1/lists", entries)
    ask("GET", "/v1/lists")
    ask("DELETE", "/v1/lists", entries)
    ask("POST", "/v1/lists", dict(entries, list="dney"), 404)
    ask("PUT", "/v1/modes", {"mode": "shadow", "rule": "login"})
    ask("PUT", "/v1/modes", {"mode": "as-written"})
    ask("GET", "/v1/modes")
    ask("PUT", "/v1/guards", {"guard": "search", "force": "open"})
    ask("PUT", "/v1/guards", {"guard": "search", "force": "none"})
    ask("PUT", "/v1/guards", {"guard": "search", "force": "half"}, 400)
    ask("PUT", "/v1/guards", {"guard": "nonsense", "force": "none"}, 404)
    ask("GET", "/v1/guards")
    ask("GET", "/v1/guards?guard=search")
    ask("GET", "/v1/guards?guard=nonsense", None, 404)
    ask("PUT", "/v1/degradation", {"degradation": 2})
    ask("PUT", "/v1/degradation", {"degradation": "auto"})
    ask("PUT", "/v1/degradation", {"degradation": "full"}, 400)
    ask("GET", "/v1/degradation")
    ask("POST", "/v1/reset", {"rule": "*", "attributes": {"ip": "192.0.2.7"}})
    ask("POST", "/v1/explain", {"attributes": {"ip": "192.0.2.7", "x": 1}})
    ask("POST", "/v1/explain", {"attributes": {"uri": "/search"}})
    ask("GET", "/v1/top")
    ask("GET", "/v1/fleet", None, 404)
    ask("GET", "/v1/fleet/nodes", None, 404)
    ask("GET", "/v1/fleet/rules", None, 404)
    ask("PUT", "/v1/fleet/rules?base=0", RULES, 404)
    ask("POST", "/v1/fleet/rules/diff", RULES, 404)
    ask("POST", "/v1/fleet/publish", {"version": 1}, 404)
    ask("GET", "/v1/fleet/history", None, 404)
    ask("POST", "/v1/fleet/rollback", {"version": 1}, 404)
    ask("POST", "/v1/fleet/locks", {"name": "nightly"}, 404)
    ask("PUT", "/v1/fleet/locks", {"name": "nightly", "owner": "x", "token": 1}, 404)
    ask("DELETE", "/v1/fleet/locks?name=nightly&owner=x", None, 404)
    for path in ("/metrics", "/healthz", "/readyz", "/openapi.json", "/v1", "/"):
        ask("GET", path)


def test_S2_every_route_keeps_to_the_description(weir):
    with Server(weir, rules=RULES) as server:
        server.clock(1000)
        ask = Description(server)
        ask_every_route(ask, server)
        missing = [
            (method, path)
            for path, operations in ask.document["paths"].items()
            for method in operations
            if (method, path, 200) not in ask.seen and path != "/v1/events"
            and not path.startswith("/v1/fleet")
        ]
        assert not missing, "never asked: %r" % missing


def probes(schema):
    """Values at the edges of a schema, and past them.  Not null, which is as good as missing, and
    no empty array for an object."""
    for part in schema.get("anyOf", [schema]):
        for bound, beyond in (("minimum", -1), ("maximum", 1)):
            if bound in part:
                yield from (part[bound], part[bound] + beyond)
    yield from ("", "x", "auto", "x" * 300)
    if schema.get("type") not in ("string", ["string", "null"]):  # some take numbers for texts
        yield from (1, 1.0, 1.5, True)


def complains(answer, name):
    """Does it say that this argument is wrong?"""
    return answer.status == 400 and answer.json()["detail"].startswith("'%s' " % name)


def is_valid(ask, value, schema):
    try:
        ask.validate(value, schema)
        return True
    except jsonschema.ValidationError:
        return False


def arguments_of(ask, operation):
    """(name, its schema, in the body?) of each."""
    for p in operation.get("parameters", []):
        if p["in"] == "query":
            yield p["name"], p["schema"], False
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content:
        for name, schema in ask.resolve(content["schema"])["properties"].items():
            yield name, schema, True


def test_S2_each_argument_is_what_the_description_says(weir):
    """One at a time: the server finds it wrong where the description does."""
    asked, differ = 0, []
    with Server(weir, rules=RULES) as server:
        ask = Description(server)
        for path, operations in ask.document["paths"].items():
            if path in ("/v1/events", "/v1/auth", "/v1/check/batch"):
                continue  # streams, takes any attribute, names the byte
            for method, operation in operations.items():
                for name, schema, in_body in arguments_of(ask, operation):
                    for value in probes(schema):
                        if in_body:
                            answer = ask.client(method.upper(), path, {name: value})
                        elif isinstance(value, (bool, float)):
                            continue
                        else:
                            query = "?%s=%s" % (name, value)
                            answer = ask.client(method.upper(), path + query)
                        asked += 1
                        if complains(answer, name) == is_valid(ask, value, schema):
                            differ.append((method, path, name, value, answer.body, schema))
        for right, times in ((True, {"unit": "ns", "wait_ns": 1}), (False, {"wait_ns": 1}),
                             (False, {"unit": "ns", "wait_ns": 1, "wait_ms": 1})):
            take = {"key": "k", "limit": "2/10", **times}
            assert is_valid(ask, take, {"$ref": "#/components/schemas/Take"}) == right, take
            assert complains(ask.client("POST", "/v1/take", take), "wait_ns") != right, take
    assert asked > 300 and not differ, "\n".join(map(str, differ))


def test_S2_routes_of_a_fleet_keep_to_the_description(weir):
    with Redis() as redis, Node(weir, url(redis), "a") as a, \
            Node(weir, url(redis), "b", rules=RULES) as b:
        joined(a, b)
        subprocess.run([weir, "fleet", "rules", "set", b.rules, "--redis", url(redis)], check=True,
                       capture_output=True)
        ask = Description(a)
        ask("POST", "/v1/fleet/rollback", {"version": 1, "note": "again"})
        ask("POST", "/v1/fleet/rollback", {"version": 9}, 404)
        ask("POST", "/v1/fleet/rollback", {}, 400)
        ask("GET", "/v1/fleet/history")
        until("one follows the rules", lambda: a.fleet["version"] == 2, 60)
        ask("GET", "/v1/fleet/nodes")
        ask("GET", "/v1/fleet")
        ask("GET", "/v1/fleet/rules?version=1")
        ask("GET", "/v1/fleet/rules?version=9", None, 404)
        ask("PUT", "/v1/fleet/rules?base=2&note=why", RULES.replace("5/10s", "4/10s"))
        ask("PUT", "/v1/fleet/rules?base=2", RULES, 409)
        ask("PUT", "/v1/fleet/rules", RULES, 400)
        ask("PUT", "/v1/fleet/rules?base=3", "version: 2", 422)
        ask("POST", "/v1/fleet/rules/diff?from=1", RULES.replace("5/10s", "6/10s"))
        ask("POST", "/v1/fleet/rules/diff", "version: 2", 422)
        ask("POST", "/v1/fleet/publish", {"version": 3})
        ask("POST", "/v1/fleet/publish", {"version": 2}, 409)
        lock = ask("POST", "/v1/fleet/locks", {"name": "nightly", "lifetime_ms": 60000}).json()
        ask("POST", "/v1/fleet/locks", {"name": "nightly", "wait_ms": 10, "id": "x"})
        mine = {"name": "nightly", "owner": lock["owner"]}
        ask("PUT", "/v1/fleet/locks", {**mine, "token": lock["token"]})
        ask("DELETE", "/v1/fleet/locks", mine)
        ask("DELETE", "/v1/fleet/locks", {"name": "nightly"}, 400)
        redis.kill()
        until("it is known to be away", lambda: not a.fleet["connected"], 60)
        for path in ("", "/nodes", "/history", "/rules"):
            ask("GET", "/v1/fleet" + path, None, 503)
        ask("PUT", "/v1/fleet/rules?base=3", RULES, 503)
        ask("POST", "/v1/fleet/rollback", {"version": 1}, 503)
        ask("POST", "/v1/fleet/locks", {"name": "nightly"}, 503)
        redis.start()


def test_S2_too_many_wrong_tokens_keep_to_the_description(weir):
    tokens = {"WEIR_CHECK_TOKEN": "c" * 16, "WEIR_ADMIN_TOKEN": "a" * 16}
    with Server(weir, "--auth-guesses", "1", rules=RULES, env=tokens) as server:
        ask = Description(server)
        wrong = {"Authorization": "Bearer x"}
        ask("POST", "/v1/check", {}, 401, wrong)
        for path, body in (("/v1/check", {}), ("/v1/enter", {"guard": "search"}),
                           ("/v1/take", {"key": "k", "limit": "2/10"}), ("/v1/auth", None)):
            ask.client = server.http()
            assert ask("POST", path, body, 429, wrong).json()["code"] == "wrong-tokens"


def test_S2_description_is_openapi(weir):
    """Every reference leads somewhere, every name is used once, schemas are schemas, and examples
    and defaults are what they say."""
    with Server(weir) as server:
        document = server.http()("GET", "/openapi.json").json()

    def walk(node):
        if isinstance(node, dict):
            if "$ref" in node:
                at = document
                for part in node["$ref"][2:].split("/"):
                    at = at[part]
            if "type" in node and not isinstance(node["type"], dict):
                whole = {**node, "components": document["components"]}
                for value in node.get("examples", []) + [node[k] for k in ["default"] if k in node]:
                    jsonschema.Draft202012Validator(whole).validate(value)
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(document)
    names = [o["operationId"] for p in document["paths"].values() for o in p.values()]
    assert len(names) == len(set(names))
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


# ------------------------------------------------------------------------ clients


def receive(client, n=None):
    """All there is until the server closes, or n bytes."""
    data = b""
    while n is None or len(data) < n:
        more = client.recv(65536)
        if not more:
            break
        data += more
    return data


def connect(server):
    client = socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=30)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def test_S2_pipelined_requests_are_answered_in_order(weir):
    """Also those that are made elsewhere: the ones behind them wait."""
    with Server(weir, rules=RULES) as server, connect(server) as client:
        one = b"".join(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path
                       for path in (b"/v1/bans", b"/healthz"))
        last = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        client.sendall(one * 50 + last)
        answers = receive(client).split(b"HTTP/1.1 200 OK\r\n")[1:]
        assert len(answers) == 101
        for i in range(0, 100, 2):
            assert b'"bans":[' in answers[i] and answers[i + 1].endswith(b"\r\n\r\nok\n"), i
        assert answers[100].endswith(b"ready\n")


def test_S2_many_pipelined_checks(weir):
    """More answers than the buffers hold at once."""
    with Server(weir, rules=RULES) as server, connect(server) as client:
        body = b'{"attributes":{"account":"a"}}'
        one = (b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
               % (len(body), body))
        n = 20000
        pid = os.fork()
        if pid == 0:
            client.sendall(one * n)
            os._exit(0)
        got = 0
        tail = b""
        while got < n:
            tail = tail[-20:] + client.recv(1 << 20)
            got += tail.count(b'"list":null}')
            tail = tail[tail.rfind(b'"list":null}') + 12 :] if b'"list":null}' in tail else tail
        os.waitpid(pid, 0)
        assert got == n


def test_S2_bytes_one_by_one(weir):
    with Server(weir, rules=RULES) as server, connect(server) as client:
        text = b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        text += b'Transfer-Encoding: chunked\r\n\r\n2\r\n{"\r\n'
        text += b'1d\r\nattributes":{"account":"ann"}\r\n1\r\n}\r\n0\r\n\r\n'
        for byte in text:
            client.sendall(bytes([byte]))
        assert receive(client).startswith(b"HTTP/1.1 200 OK\r\n")


# ------------------------------------------------------------------------- events


def read_until(client, piece):
    data = b""
    while piece not in data:
        more = client.recv(65536)
        assert more, "the stream ended: %r" % data
        data += more
    return data


def listen(server, headers=b""):
    client = connect(server)
    client.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n")
    return client


def test_S4_server_sent_events(weir):
    with Server(weir, rules=RULES) as server:
        with listen(server) as client, listen(server) as other:
            head = read_until(client, b"retry: ")
            read_until(other, b"retry: ")
            assert b"Content-Type: text/event-stream\r\n" in head
            server.http()("PUT", "/v1/modes", {"mode": "shadow", "rule": "login"})
            server.http()("POST", "/v1/bans", {"rule": "login", "key": "eve", "for": "10m"})
            for each in (client, other):
                told = read_until(each, b'"key":"eve"')
                assert b"event: mode\ndata: {" in told and b"event: ban\ndata: {" in told
        last = max(event["id"] for event in server.http()("GET", "/v1/events/recent").json())
        with listen(server, b"Last-Event-ID: %d\r\n" % (last - 1)) as client:
            told = read_until(client, b'"key":"eve"')
            assert b"event: mode" not in told and b"id: %d\nevent: ban\n" % last in told


if __name__ == "__main__":
    run_tests(globals())
