#!/usr/bin/python3
"""serve-doors.py WEIR [TEST...] -- clients that leave, hoard or guess, at the doors of `weir
serve`: none of them may take from the others."""
import contextlib
import json
import os
import socket
import subprocess
import tempfile

from serving import Error, Resp, Server, run_tests, until

GUARD = """version: 1
guards:
  - name: shop
    match: { uri: /shop }
    concurrency: { max: 5, queue: 20, wait: 60s }
    lease: 60s
"""


def guard(server, name="shop"):
    with server.resp() as client:
        return client.json("WEIR.GUARDS", name)["guards"][0]


def post(path, body):
    data = json.dumps(body)
    return ("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
            % (path, len(data), data)).encode()


def connect(server, door):
    return socket.create_connection(("127.0.0.1", server.ports[door]), timeout=60)


# ------------------------------------------------- waiters that have gone


def leave(client, how):
    if how == "reset":
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    if how == "half":
        client.shutdown(socket.SHUT_WR)
    else:
        client.close()


def waiters(server, n, more=b""):
    """Over HTTP and RESP, half of them each."""
    before = guard(server)["waiting"]
    asks = {"http": post("/v1/enter", {"guard": "shop", "wait_ms": 59000}),
            "resp": b"WEIR.ENTER GUARD shop WAIT 59000\r\n"}
    clients = []
    for i in range(n):
        door = "http" if i % 2 else "resp"
        clients.append(connect(server, door))
        clients[-1].sendall(asks[door] + more)
    until("they wait", lambda: guard(server)["waiting"] == before + n)
    return clients


def test_L11_a_waiter_that_has_gone_gets_no_permit(weir):
    """Ten callers hang up while they wait: they leave the queue at once, and when permits become
    free others get them."""
    for how in ("close", "reset", "half"):
        with Server(weir, rules=GUARD) as server, server.resp() as holder:
            permits = [holder("WEIR.ENTER", "GUARD", "shop")[11] for _ in range(5)]
            gone = waiters(server, 10)
            for client in gone:
                leave(client, how)
            until("nobody waits: " + how, lambda: guard(server)["waiting"] == 0)
            stays = waiters(server, 2)
            for permit in permits[:2]:
                assert holder("WEIR.EXIT", permit, "ok") == 1
            for client in stays:
                assert b"60000" in client.recv(4096)  # the lease
            assert guard(server)["in_flight"] == 5
            for client in stays + (gone if how == "half" else []):
                client.close()


def test_L11_a_client_that_can_ask_no_more_is_told(weir):
    """One that has closed only its own side is answered: cancelled, and what it sent behind."""
    with Server(weir, rules=GUARD) as server, server.resp() as holder:
        for _ in range(5):
            assert holder("WEIR.ENTER", "GUARD", "shop")[0] == 1
        over_resp, = waiters(server, 1, more=b"PING\r\n")
        over_resp.shutdown(socket.SHUT_WR)
        said = read_all(over_resp)
        assert b"cancelled" in said and said.endswith(b"+PONG\r\n"), said
        assert guard(server)["in_flight"] == 5


def read_all(client):
    said = b""
    while True:
        data = client.recv(65536)
        if not data:
            return said
        said += data


def test_L11_a_permit_given_while_the_waiter_hangs_up_comes_back(weir):
    """Exits right behind hang-ups, over and over: nothing stays in flight."""
    with Server(weir, rules=GUARD) as server, server.resp() as holder:
        for _ in range(20):
            permits = [holder("WEIR.ENTER", "GUARD", "shop")[11] for _ in range(5)]
            gone = waiters(server, 5)
            for client in gone:
                client.close()
            for permit in permits:
                holder.send("WEIR.EXIT", permit, "ok")
            for _ in permits:
                assert holder.read() == 1
            until("all is free", lambda: guard(server)["in_flight"] == 0)
            assert guard(server)["waiting"] == 0


def test_L1_http_permits_end_with_their_connection(weir):
    """`bound` over HTTP, as BOUND over RESP: also of an ask that has waited, and renewed."""
    with Server(weir, rules=GUARD) as server:
        bound, free = server.http(), server.http()
        enter = {"guard": "shop", "bound": True}
        permits = [bound("POST", "/v1/enter", enter).json()["permit"] for _ in range(3)]
        assert free("POST", "/v1/enter", {"guard": "shop", "bound": False}).json()["permit"]
        renewed = bound("POST", "/v1/renew", {"permit": permits[0]}).json()["permit"]
        given = bound("POST", "/v1/exit", {"permit": permits[1], "outcome": "ok"})
        assert given.json() == {"exited": True} and guard(server)["in_flight"] == 3
        bound.close()
        free.close()
        until("two come back", lambda: guard(server)["in_flight"] == 1)
        last = server.http()("POST", "/v1/exit", {"permit": renewed, "outcome": "ok"})
        assert last.json() == {"exited": False}
        for wrong in (1, "true", [True]):
            answer = server.http()("POST", "/v1/enter", {"guard": "shop", "bound": wrong})
            assert answer.status == 400 and "bound" in answer.json()["detail"], answer.body
        answer = server.http()("POST", "/v1/enter", enter, headers={"Connection": "close"})
        assert answer.status == 400 and "stays open" in answer.json()["detail"], answer.body


def test_L1_http_a_bound_permit_that_was_waited_for(weir):
    with Server(weir, rules=GUARD) as server, server.resp() as holder:
        permits = [holder("WEIR.ENTER", "GUARD", "shop")[11] for _ in range(5)]
        client = connect(server, "http")
        client.sendall(post("/v1/enter", {"guard": "shop", "wait_ms": 59000, "bound": True}))
        until("it waits", lambda: guard(server)["waiting"] == 1)
        assert holder("WEIR.EXIT", permits[0], "ok") == 1
        assert b"lease_ms" in client.recv(4096) and guard(server)["in_flight"] == 5
        client.close()
        until("it comes back", lambda: guard(server)["in_flight"] == 4)


# ---------------------------------------------------------- wrong tokens

TOKENS = {"WEIR_ADMIN_TOKEN": "admin-secret-0123456789",
          "WEIR_CHECK_TOKEN": "check-secret-0123456789"}


def from_address(server, door, address):
    return socket.create_connection(("127.0.0.1", server.ports[door]), timeout=60,
                                    source_address=(address, 0))


def get(token):
    return ("GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n"
            % token).encode()


def events(server, kind):
    with server.resp() as admin:
        assert admin("AUTH", TOKENS["WEIR_ADMIN_TOKEN"]) == "OK"
        return [e for e in admin.json("WEIR.EVENTS") if e["event"] == kind]


def test_S1_a_connection_has_three_guesses(weir):
    with Server(weir, env=TOKENS) as server:
        with from_address(server, "resp", "127.0.0.2") as client:
            client.sendall(b"AUTH guess\r\n" * 1000)
            said = read_all(client)
            assert said.count(b"-WRONGPASS") == 3, said[:500]
        with from_address(server, "http", "127.0.0.3") as client:
            client.sendall(get("guess") * 1000)
            said = read_all(client)
            assert said.count(b"HTTP/1.1 401") == 3 and b"Connection: close" in said, said[:500]


def test_S1_an_address_has_ten_guesses_in_a_minute(weir):
    """Then its tokens are refused unseen, at both doors, right ones too; other addresses, and those
    that have shown the right one before, go on.  It is told with the address, never with the
    token."""
    right = TOKENS["WEIR_CHECK_TOKEN"]
    with Server(weir, env=TOKENS) as server:
        known = from_address(server, "resp", "127.0.0.4")
        known.sendall(b"AUTH %s\r\n" % right.encode())
        assert known.recv(100) == b"+OK\r\n"
        judged = refused = 0
        for i in range(40):
            with from_address(server, ("resp", "http")[i % 2], "127.0.0.2") as client:
                client.sendall(get("hunter2") if i % 2 else b"AUTH hunter2\r\n")
                said = client.recv(4096)
                judged += b"not known" in said
                refused += b"too many wrong tokens" in said
        assert (judged, refused) == (10, 30)
        with from_address(server, "resp", "127.0.0.2") as client:
            client.sendall(b"AUTH %s\r\n" % right.encode())
            assert read_all(client).startswith(b"-WRONGPASS too many")
        with from_address(server, "http", "127.0.0.2") as client:
            client.sendall(get(right))
            said = read_all(client)
            assert said.startswith(b"HTTP/1.1 429") and b"Retry-After: 6\r\n" in said, said
        with from_address(server, "http", "127.0.0.3") as client:
            client.sendall(get(right))
            assert client.recv(4096).startswith(b"HTTP/1.1 200")
        for i in range(12):  # a neighbour with an old token
            with from_address(server, "resp", "127.0.0.4") as client:
                client.sendall(b"AUTH old\r\n")
                client.recv(4096)
        for door, data, good in (("resp", b"AUTH %s\r\n" % right.encode(), b"+OK"),
                                 ("http", get(right), b"HTTP/1.1 200")):
            with from_address(server, door, "127.0.0.4") as client:
                client.sendall(data)
                assert client.recv(4096).startswith(good)
        with from_address(server, "resp", "127.0.0.4") as client:  # but not with another role
            client.sendall(b"AUTH %s\r\n" % TOKENS["WEIR_ADMIN_TOKEN"].encode())
            assert client.recv(4096).startswith(b"-WRONGPASS too many")
        known.close()
        told = events(server, "auth-failed")
        assert [(e["address"], "until" in e) for e in told] == [
            ("127.0.0.2", False), ("127.0.0.2", True), ("127.0.0.4", False),
            ("127.0.0.4", True)], told
        assert sum(e["count"] for e in told) == 20, told
        with from_address(server, "http", "127.0.0.3") as client:
            client.sendall(get(right))
            assert b"weir_auth_failures_total 20\n" in read_some(client, b"process_max_fds")
        said = server.complaints()
        assert "127.0.0.2 showed a wrong token" in said and "hunter2" not in said, said


def test_S1_every_guess_counts(weir):
    """Whatever is asked for, and whether the request is finished: how it ends would tell whether
    the token was right."""
    head = "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer guess\r\n%s\r\n"
    requests = [("GET /nothing", ""), ("PUT /metrics", ""),
                ("POST /v1/check", "Content-Length: 5\r\n"),
                ("POST /v1/check", "Transfer-Encoding: chunked\r\n"),
                ("POST /v1/check", "Content-Length: 1000000\r\n"),
                ("GET /metrics", "Authorization: Bearer other\r\n")]
    with Server(weir, env=TOKENS) as server:
        for i, (line, more) in enumerate(requests):
            with from_address(server, "http", "127.0.1.%d" % (i + 1)) as client:
                client.sendall((head % (line, more)).encode())
                client.shutdown(socket.SHUT_WR)
                read_all(client)
        told = events(server, "auth-failed")
        assert [e["address"] for e in told] == [
            "127.0.1.%d" % (i + 1) for i in range(len(requests))], told
        with from_address(server, "http", "127.0.2.1") as client:
            client.sendall(get("guess") * 2)
            client.sendall((head % requests[3]).encode())
            said = read_all(client)
            assert said.count(b"HTTP/1.1 401") == 3, said


def read_some(client, until_there):
    said = b""
    while until_there not in said:
        said += client.recv(65536)
    return said


def test_S1_a_stranger_that_reads_slowly_is_closed(weir):
    """It has `patience` to show a token, however much output waits for it, and though it takes some
    of that now and then."""
    with Server(weir, "--patience", "1s", env=TOKENS) as server:
        client = connect(server, "resp")
        client.settimeout(0.02)
        until("it is closed", lambda: says_and_hears_the_end(client))
        client.close()


def says_and_hears_the_end(client):
    try:
        with contextlib.suppress(TimeoutError):
            client.send(b"PING\r\n" * 10000)
        with contextlib.suppress(TimeoutError):
            return client.recv(100000) == b""
    except ConnectionError:
        return True
    return False


def test_S1_tokens_in_plain_text_are_warned_of(weir):
    with Server(weir, env=TOKENS, resp="0.0.0.0:0", http="127.0.0.1:0") as server:
        said = server.complaints()
        assert said.count("tokens travel unencrypted to 0.0.0.0:") == 1, said
    with Server(weir, env=TOKENS) as server:
        assert "unencrypted" not in server.complaints()


# ------------------------------------------------------------------ pools


class From(Resp):
    """A client with an address of its own."""

    def __init__(self, server, address):
        self.socket = from_address(server, "resp", address)
        self.bytes = b""


def is_good(answer):
    return not isinstance(answer, Error)


def count_served(server, asks):
    """How many of the asks are answered, each from an address of its own.  By a chance of one in
    some thousands one shares the count of a client before it."""
    good = 0
    for i, ask in enumerate(asks):
        with From(server, "127.0.0.%d" % (i + 3)) as other:
            good += is_good(other(*ask))
    return good


def test_S1_reading_makes_no_limits(weir):
    """Peek, give, forget and asks of cost 0, each with a limit of its own: they answer as a fresh
    key would have it, and leave nothing in the table."""
    with Server(weir) as server, From(server, "127.0.0.2") as client:
        before = server.metric("weir_table_limiters")
        for verb in ("WEIR.PEEK", "WEIR.GIVE", "WEIR.FORGET"):
            answers = client.many([(verb, "k", "%d/1m" % n) for n in range(1, 3001)])
            assert all(map(is_good, answers)), answers[-1]
        assert client("WEIR.PEEK", "k", "7/1m", "COST", 3)[:3] == [1, 7, 4]
        assert client("WEIR.PEEK", "k", "7/1m", "COST", 8)[0] == 0
        assert client("WEIR.TAKE", "k", "8/1m", "COST", 0)[:3] == [1, 8, 8]
        assert client("WEIR.PEEK", "k", "sliding-log 9/1m", "NAME", "n")[:3] == [1, 9, 8]
        assert isinstance(client("WEIR.PEEK", "k", "nonsense"), Error)
        assert server.metric("weir_table_limiters") == before
        assert client("WEIR.TAKE", "k", "7/1m", "NAME", "n")[2] == 6
        assert client("WEIR.PEEK", "k", "9/1m", "NAME", "n")[1:3] == [7, 5]  # peek changes nothing
        assert client("WEIR.TAKE", "k", "9/1m", "NAME", "n")[1] == 9
        assert server.metric("weir_table_limiters") == before + 1


def test_S1_no_client_takes_all_limits(weir):
    """A connection gets a third, an address half, and others still get some; so after a restart."""
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "table")
        left = 300
        for turn in range(2):
            with Server(weir, "--adhoc-limits", "300", "--keys", "1000", table=table) as server:
                asks = [("WEIR.TAKE", "k", "%d/%ds" % (n, turn + 1)) for n in range(1, 301)]
                with From(server, "127.0.0.2") as client:
                    assert sum(map(is_good, client.many(asks))) == -(-left // 3)
                for _ in range(3):  # one may share the count of the first, by chance
                    with From(server, "127.0.0.2") as client:
                        assert 0 < sum(map(is_good, client.many(asks))) < 300
                        said = client("WEIR.TAKE", "k", "9999/1m")
                        assert "adhoc-limits" in said, said
                left -= -(-left // 2)
                assert server.metric("weir_table_limiters") == 300 - left
                served = count_served(server, [("WEIR.TAKE", "k", "%d/1m" % (10 * turn + n))
                                               for n in range(999, 1004)])
                assert served >= 3, served
                left -= served
                assert server.metric('weir_share_refused_total{pool="adhoc-limits"}') > 0
                with server.resp() as admin:
                    told = [e for e in admin.json("WEIR.EVENTS") if e["event"] == "share-used-up"]
                assert [(e["address"], e["text"]) for e in told] == [
                    ("127.0.0.2", "adhoc-limits")], told


def test_S1_no_client_takes_all_connections(weir):
    """An address gets nearly all of them, and others can connect; what is closed is free again."""
    with Server(weir, "--connections-max", "64") as server:
        for _ in range(2):
            clients, served = [], 0
            for _ in range(64):
                clients.append(From(server, "127.0.0.2"))
                with contextlib.suppress(OSError, EOFError):
                    served += clients[-1]("PING") == "PONG"
            with From(server, "127.0.0.3") as operator:
                assert operator("PING") == "PONG" and served == 62, served
                told = [e for e in operator.json("WEIR.EVENTS") if e["event"] == "share-used-up"]
                assert [(e["address"], e["text"]) for e in told] == [
                    ("127.0.0.2", "connections")], told
            for client in clients:
                client.close()
            until("they are gone", lambda: server.metric("weir_connections") == 1)


def test_S1_no_client_takes_all_reservations(weir):
    reserve = ("WEIR.RESERVE", "k", "1000000/1s", "LIFETIME", 3600000)
    with Server(weir, "--reservation-lifetime", "10s") as server:
        with From(server, "127.0.0.2") as client:
            answers = client.many([reserve] * 60000)
            got = [a for a in answers if is_good(a)]
            assert len(got) == 131072 // 3 + 1, len(got)
            assert server.metric('weir_share_refused_total{pool="reservations"}') > 10000
            assert client("WEIR.SETTLE", got[0][-1], 1) == 1 and is_good(client(*reserve))
            assert count_served(server, 5 * [reserve]) >= 3
            server.clock(10)  # however long they asked for
            assert client("WEIR.SETTLE", got[1][-1], 1) == 0
            assert all(map(is_good, client.many([reserve] * 1000)))


def test_S1_no_client_makes_others_ids_forgotten(weir):
    rules = "version: 1\nrules:\n  - { name: r, key: '{ip}', limit: 5/1h }\n"
    # enough that no sixteenth of them is full when a third of all is, by chance
    with Server(weir, "--ask-ids", "1600", rules=rules) as server:
        with From(server, "127.0.0.2") as client, From(server, "127.0.0.3") as other:
            ask = ("WEIR.CHECK", "ID", "mine", "ip", "192.0.2.1")
            first = other(*ask)
            client.many([("WEIR.CHECK", "ID", "id-%d" % n, "ip", "192.0.2.2") for n in range(5000)])
            assert other(*ask) == first
            assert server.metric("weir_ask_ids_replaced_total") == 0
            assert server.metric('weir_share_refused_total{pool="ask-ids"}') > 4000
            server.clock(61)  # its own are over, and it has room again
            twice = [client("WEIR.CHECK", "ID", "again", "ip", "192.0.2.9") for _ in range(2)]
            assert twice[0] == twice[1]


# ---------------------------------------------------------- too many limits


def test_R2_more_than_64_limits_at_every_door(weir):
    """None of them is left out: the request is refused, and told why."""
    rule = '  - { name: r%d, match: { all: "yes" }, key: "{ip}", limit: 100/1m }\n'
    rules = "version: 1\nrules:\n" + "".join(rule % i for i in range(70))
    rules = rules.replace('r69, match: { all: "yes" }', "r69")
    with Server(weir, rules=rules, threads=1) as server:
        http, attributes = server.http(), ["ip", "192.0.2.7", "all", "yes"]
        body = json.dumps({"attributes": dict(zip(attributes[::2], attributes[1::2]))}).encode()
        with server.resp() as client:
            assert client("WEIR.CHECK", *attributes)[:2] == [0, "r64"]
            assert client("WEIR.CHECK", *attributes)[8] == "too-many"
            assert client("WEIR.ENTER", *attributes)[8] == "too-many"
            assert client.json("WEIR.EXPLAIN", *attributes)["ruling"]["reason"] == "too-many"
            assert client("WEIR.CHECK", "ip", "192.0.2.7")[:4] == [1, "r69", 100, 99]
        for answer in (http("POST", "/v1/check", body=body), http("POST", "/v1/enter", body=body),
                       http("GET", "/v1/auth?all=yes", headers={"X-Real-IP": "192.0.2.7"})):
            assert (answer.status, answer.json()["code"]) == (503, "weir-too-many"), answer.body
        for command in ("check", "explain"):
            said = subprocess.run([weir, command, "--server", "http://127.0.0.1:%d" %
                                   server.ports["http"], "ip=192.0.2.7", "all=yes"],
                                  capture_output=True, text=True)
            assert "refused by r64: more limits apply than can be asked at once" in said.stdout, said


def test_R2_more_than_8_guards_at_every_door(weir):
    """Likewise: no guard is left out."""
    guard = '  - { name: g%d, match: { all: "yes" }, concurrency: 5 }\n'
    rules = "version: 1\nguards:\n" + "".join(guard % i for i in range(10))
    with Server(weir, rules=rules, threads=1) as server:
        http, attributes = server.http(), ["all", "yes"]
        with server.resp() as client:
            refused = client("WEIR.ENTER", *attributes)
            assert (refused[0], refused[8]) == (0, "too-many") and "g8" in refused, refused
            told = client.json("WEIR.EXPLAIN", *attributes)["enter"]
            assert told == {"allowed": False, "guard": "g8", "reason": "too-many"}, told
            assert client("WEIR.ENTER", "all", "no")[0] == 1
            assert client("WEIR.ENTER", "GUARD", "g0")[0] == 1  # nothing was entered
        answer = http("POST", "/v1/enter", body=b'{"attributes": {"all": "yes"}}')
        said = answer.json()
        assert (answer.status, said["code"], said["guard"]) == (503, "weir-too-many", "g8"), said


# ----------------------------------------------------------------- events


BANS = """version: 1
rules:
  - { name: made-up, key: "{x}", limit: 1/1h, ban: { refusals: 1/1m, for: 1h } }
"""


def test_S4_keys_that_a_client_makes_up_push_no_event_out(weir):
    """A client that gets a key banned by each two asks is told by a count, and the start stays."""
    with Server(weir, rules=BANS) as server, server.resp() as client:
        client.many([("WEIR.CHECK", "x", "key-%d" % (i // 2)) for i in range(4000)])
        server.clock(6)
        told = client.json("WEIR.EVENTS")
        bans = [e for e in told if e["event"] == "ban"]
        assert [b["key"] for b in bans[:100]] == ["key-%d" % i for i in range(100)]
        assert [(b["text"], b["count"]) for b in bans[100:]] == [("more keys", 1900)], bans[100:]
        assert [e["event"] for e in told].count("start") == 1


if __name__ == "__main__":
    run_tests(globals())
