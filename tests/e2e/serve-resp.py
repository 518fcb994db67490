#!/usr/bin/python3
"""serve-resp.py WEIR [TEST...] -- the RESP door of `weir serve`, command by command."""
from serving import RULES, Error, Push, Server, encode, run_tests

# t in ms, quantity, reply: shared by redis-cell and throttled as their own test (max_burst 4, 1 per
# second)
GOLDEN = [
    (0, 6, [1, 5, 5, -1, 0]), (0, 1, [0, 5, 4, -1, 1]), (0, 1, [0, 5, 3, -1, 2]),
    (0, 1, [0, 5, 2, -1, 3]), (0, 1, [0, 5, 1, -1, 4]), (0, 1, [0, 5, 0, -1, 5]),
    (0, 1, [1, 5, 0, 1, 5]), (3000, 1, [0, 5, 2, -1, 3]), (3100, 1, [0, 5, 1, -1, 4]),
    (4000, 1, [0, 5, 1, -1, 4]), (8000, 1, [0, 5, 4, -1, 1]), (9500, 1, [0, 5, 4, -1, 1]),
    (9500, 0, [0, 5, 4, -1, 1]), (9500, 2, [0, 5, 2, -1, 3]), (9500, 5, [1, 5, 2, 3, 3]),
    (15000, 6, [1, 5, 5, -1, 0]),
]


def test_S1_cl_throttle_golden(weir):
    with Server(weir) as server, server.resp() as client:
        for ms, quantity, reply in GOLDEN:
            assert client("WEIR.CLOCK", ms * 1_000_000 + 10**18) == "OK"
            assert client("CL.THROTTLE", "key", 4, 1, 1, quantity) == reply, (ms, quantity)


def test_S1_cl_throttle_ten_seconds(weir):
    """Dragonfly's own cases, whose times are a second too long there."""
    steps = [(0, 6, [1, 5, 5, -1, 0]), (0, 1, [0, 5, 4, -1, 10]), (0, 1, [0, 5, 3, -1, 20]),
             (0, 1, [0, 5, 2, -1, 30]), (0, 1, [0, 5, 1, -1, 40]), (0, 1, [0, 5, 0, -1, 50]),
             (0, 1, [1, 5, 0, 10, 50]), (30, 1, [0, 5, 2, -1, 30]), (31, 1, [0, 5, 1, -1, 39]),
             (40, 1, [0, 5, 1, -1, 40]), (80, 1, [0, 5, 4, -1, 10]), (95, 1, [0, 5, 4, -1, 10]),
             (95, 0, [0, 5, 4, -1, 10]), (95, 2, [0, 5, 2, -1, 30]), (95, 5, [1, 5, 2, 30, 30])]
    with Server(weir) as server, server.resp() as client:
        for second, quantity, reply in steps:
            client("WEIR.CLOCK", second * 10**9)
            assert client("CL.THROTTLE", "key", 4, 1, 10, quantity) == reply, (second, quantity)
        assert client("CL.THROTTLE", "fast", 4, 500000, 1, 2) == [0, 5, 3, -1, 0]
        assert client("CL.THROTTLE", "user123", 15, 30, 60) == [0, 16, 15, -1, 2]


def test_S1_cl_throttle_errors(weir):
    store = "Cell error: Store error: "
    usage = store + "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
    big = 2**63 - 1
    with Server(weir) as server, server.resp() as client:
        assert client("CL.THROTTLE", "k", 4, 1) == usage
        assert client("CL.THROTTLE", "k", 4, 1, 1, 1, 1) == usage
        assert client("CL.THROTTLE", "k", "x", 1, 1) == store + "Couldn't parse as integer: x"
        assert client("CL.THROTTLE", "k", 4, 0, 1) == store + "Zero rates are not supported"
        assert client("CL.THROTTLE", "k", 4, 1, 0) == store + "Zero rates are not supported"
        for words in [(-1, 1, 1), (4, -1, 1), (4, 1, -1), (4, 1, 1, -1), (big, 1, 1), (4, 1, big),
                      (big, big, big), (4, 1, 1, "9" * 30), (2**62, 1, 1)]:
            answer = client("CL.THROTTLE", "k", *words)
            assert isinstance(answer, Error) and answer.startswith("Cell error: "), (words, answer)
        # nothing of the above was charged
        assert client("CL.THROTTLE", "k", 4, 1, 1) == [0, 5, 4, -1, 1]
        assert client("CL.THROTTLE", "k", 4, 1, 1, big) == [1, 5, 4, -1, 1]  # can never be


def test_S1_high_rates_do_not_run_free(weir):
    """A state's life rounded down to milliseconds would forget it at once."""
    with Server(weir) as server, server.resp() as client:
        client("WEIR.CLOCK", 10**18)
        for i in range(10):
            assert client("CL.THROTTLE", "k", 9, 1000000, 1) == [0, 10, 9 - i, -1, 0]
        assert client("CL.THROTTLE", "k", 9, 1000000, 1)[0] == 1


def test_S1_no_credit_for_long_rests(weir):
    with Server(weir) as server, server.resp() as client:
        client("CL.THROTTLE", "k", 99, 100, 1)
        client("WEIR.CLOCK", 990_000_000)
        granted = sum(client("CL.THROTTLE", "k", 99, 100, 1)[0] == 0 for _ in range(300))
        assert granted == 100, granted


def test_S1_pipelines_keep_their_order(weir):
    with Server(weir) as server, server.resp() as client:
        words = []
        for i in range(500):
            words.append(("CL.THROTTLE", "key:%d" % (i % 7), 4, 1, 60))
            if i % 50 == 7:
                words.append(("PING", "after %d" % i))
            if i % 50 == 9:
                words.append(("CL.THROTTLE", "k", "bad", 1, 1))
            if i % 50 == 11:
                words.append(("WEIR.CHECK", "ip", "192.0.2.1"))
        client.raw(b"".join(encode(w) for w in words))
        used = {}
        for w in words:
            answer = client.read()
            if w[0] == "PING":
                assert answer == w[1]
            elif w[2] == "bad":
                assert isinstance(answer, Error)
            elif w[0] == "WEIR.CHECK":
                assert answer[0] == 1
            else:
                used[w[1]] = used.get(w[1], 0) + 1
                assert answer[0] == (used[w[1]] > 5), (w, answer, used[w[1]])


def test_S1_byte_by_byte(weir):
    """However the bytes are cut, the answers are the same."""
    data = (encode(["CL.THROTTLE", "a" * 300, 4, 1, 1]) + b"PING\r\n"
            + encode(["ECHO", b"\x00\r\n\xff"]))
    with Server(weir) as server, server.resp() as client:
        for i in range(len(data)):
            client.raw(data[i : i + 1])
        assert client.read() == [0, 5, 4, -1, 1]
        assert client.read() == "PONG"
        assert client.read() == "\x00\r\n\ufffd"


def test_S1_what_clients_say_first(weir):
    with Server(weir) as server, server.resp() as client:
        assert client("PING") == "PONG"
        hello = client("HELLO", 3)
        assert hello["server"] == "weir" and hello["proto"] == 3 and hello["mode"] == "standalone"
        assert client("HELLO", 2)[:2] == ["server", "weir"]
        assert client("HELLO", 4).startswith("NOPROTO")
        assert client("CLIENT", "SETINFO", "LIB-NAME", "test") == "OK"
        assert client("CLIENT", "SETNAME", "me") == "OK" and client("CLIENT", "GETNAME") == "me"
        assert client("CLIENT", "ID") > 0
        assert client("SELECT", 0) == "OK" and isinstance(client("SELECT", 1), Error)
        assert "loading:0" in client("INFO") and "redis_version:7" in client("INFO", "server")
        for words in ("COMMAND",), ("COMMAND", "LIST"):
            assert client("COMMAND", "COUNT") == len(client(*words))
        docs = client("COMMAND", "DOCS", "cl.throttle")
        assert docs[0] == "CL.THROTTLE"
        info = client("COMMAND", "INFO", "cl.throttle", "nothing")
        assert info[0][:2] == ["CL.THROTTLE", -5] and info[0][3:6] == [1, 1, 1] and info[1] is None
        assert client("CONFIG", "GET", "save") == ["save", ""]
        assert client("AUTH", "x").startswith("ERR AUTH")
        assert client("nothing", "x") == Error(
            "ERR unknown command 'nothing'; WEIR.HELP lists all commands")
        assert client("weir.chek", "x") == Error(
            "ERR unknown command 'weir.chek'; did you mean 'WEIR.CHECK'? "
            "WEIR.HELP lists all commands")
        assert "did you mean 'CL.THROTTLE'?" in client("CL.THROTLE", "x")
        assert "did you mean" not in "".join(
            client(word, "x") for word in ("SETT", "WEIR.", "WEIR.XYZ", "x.CHECK"))
        assert client("TIME") == ["0", "0"]
        assert client("RESET") == "RESET"
        assert client("QUIT") == "OK"
        try:
            client("PING")
            raise AssertionError("still there after QUIT")
        except (EOFError, OSError):
            pass


def test_S1_transactions(weir):
    with Server(weir) as server, server.resp() as client:
        assert client("MULTI") == "OK"
        assert client("CL.THROTTLE", "k", 4, 1, 1) == "QUEUED"
        assert client("PING") == "QUEUED"
        assert client("CL.THROTTLE", "k", 4, 1, 1) == "QUEUED"
        assert client("EXEC") == [[0, 5, 4, -1, 1], "PONG", [0, 5, 3, -1, 2]]
        assert client("MULTI") == "OK" and isinstance(client("nonsense"), Error)
        assert client("EXEC").startswith("EXECABORT")
        assert client("MULTI") == "OK" and "arguments" in client("WEIR.TAKE", "k")
        assert client("PING") == "QUEUED" and client("EXEC").startswith("EXECABORT")
        assert client("MULTI") == "OK" and client("DISCARD") == "OK"
        assert isinstance(client("EXEC"), Error)
        # it may take long, and EXEC answers all at once
        assert client("MULTI") == "OK" and "MULTI" in client("WEIR.STATUS")
        assert client("EXEC").startswith("EXECABORT") and client.json("WEIR.STATUS")


def test_S1_take_by_any_limit(weir):
    with Server(weir) as server, server.resp() as client:
        limit = "sliding-window 3/60s"
        for left in (2, 1, 0):
            assert client("WEIR.TAKE", "ann", limit)[:3] == [1, 3, left]
        refused = client("WEIR.TAKE", "ann", limit)
        assert refused[0] == 0 and refused[3] >= 60000 and refused[3] % 1000 == 0, refused
        assert client("WEIR.PEEK", "ann", limit)[0] == 0
        assert client("WEIR.GIVE", "ann", limit, "COST", 2) == "OK"
        assert client("WEIR.TAKE", "ann", limit, "COST", 2)[:3] == [1, 3, 0]
        assert client("WEIR.FORGET", "ann", limit) == 1
        assert client("WEIR.TAKE", "ann", limit)[2] == 2
        assert client("WEIR.TAKE", "bob", "leaky-bucket 1/s queue 5", "WAIT", 5000)[5] == 0
        assert client("WEIR.TAKE", "bob", "leaky-bucket 1/s queue 5", "WAIT", 5000)[5] == 1000
        assert client("WEIR.TAKE", "bob", "10/3s", "NS")[4] == 300000000
        wrong = client("WEIR.TAKE", "bob", "10/0s")
        assert isinstance(wrong, Error) and "period" in wrong, wrong
        assert isinstance(client("WEIR.TAKE", "bob", "nonsense"), Error)
        assert isinstance(client("WEIR.TAKE", "bob", "10/s", "COST", -1), Error)
        assert isinstance(client("WEIR.TAKE", "bob", "10/s", "COST"), Error)


def test_S1_take_under_a_name(weir):
    with Server(weir) as server, server.resp() as client:
        for _ in range(4):
            client("WEIR.TAKE", "ann", "gcra 10/60s", "NAME", "api")
        # the limit changed, what was used is kept
        assert client("WEIR.TAKE", "ann", "gcra 20/60s", "NAME", "api")[1:3] == [20, 15]
        assert isinstance(client("WEIR.TAKE", "ann", "sliding-window 20/60s", "NAME", "api"), Error)


def test_S1_forget_makes_fresh(weir):
    """Not only given back: a window that has begun ends, a warm key is cold."""
    with Server(weir) as server, server.resp() as client:
        for limit in ("fixed-window 10/60s align=first", "warm-up 10/1s warmup=4s",
                      "sliding-log 10/60s", "gcra 10/60s"):
            def take(key, *costs):
                return [client("WEIR.TAKE", key, limit, "COST", cost, "WAIT", 10**6)
                        for cost in costs]

            client("WEIR.CLOCK", 10**18)
            fresh = take("new", 3, 1)
            take("old", *[1] * 8)
            client("WEIR.CLOCK", 10**18 + 20 * 10**9)
            take("old", *[1] * 8)
            assert client("WEIR.FORGET", "old", limit) == 1, limit
            again = take("old", 3, 1)
            assert again == fresh, (limit, again, fresh)
        assert client("WEIR.FORGET", "nobody", "gcra 10/60s") == 0


def test_S1_reserve_and_settle(weir):
    with Server(weir) as server, server.resp() as client:
        answer = client("WEIR.RESERVE", "ann", "100/60s", "COST", 50)
        assert answer[:3] == [1, 100, 50] and len(answer) == 7
        assert client("WEIR.SETTLE", answer[6], 20) == 1
        assert client("WEIR.PEEK", "ann", "100/60s", "COST", 0)[2] == 80
        assert client("WEIR.SETTLE", answer[6], 20) == 0  # once
        assert client("WEIR.SETTLE", "nonsense", 1) == 0
        assert "LIFETIME" in client("WEIR.RESERVE", "ann", "100/60s", "LIFETIME", 0)
        again = client("WEIR.RESERVE", "ann", "100/60s", "COST", 10, "LIFETIME", 1000)
        client("WEIR.CLOCK", 5 * 10**9)
        assert client("WEIR.SETTLE", again[6], 0) == 0  # expired: the estimate stands


def test_S1_check_by_rules(weir):
    with Server(weir, rules=RULES) as server, server.resp() as client:
        for left in (4, 3, 2, 1, 0):
            assert client("WEIR.CHECK", "ip", "192.0.2.7", "uri", "/")[:4] == [1, "per-ip", 5, left]
        refused = client("WEIR.CHECK", "ip", "192.0.2.7", "uri", "/")
        assert refused[:2] == [0, "per-ip"] and refused[4] == 2000, refused
        assert refused[7:9] == [3, "limited"], refused
        assert client("WEIR.CHECK", "ip", "192.0.2.8", "uri", "/")[0] == 1
        assert client("WEIR.CHECK", "ip", "203.0.113.9")[8] == "denied"
        assert client("WEIR.CHECK", "ip", "192.0.2.7", "account", "root")[0] == 1
        assert client("WEIR.CHECK", "color", "red")[:2] == [1, None]
        assert client("WEIR.CHECK", "COST", 3, "ip", "192.0.2.10")[3] == 2
        assert isinstance(client("WEIR.CHECK", "ip"), Error)
        assert isinstance(client("WEIR.CHECK", "COST", "x", "ip", "1"), Error)
        for late in (("COST", 3), ("uri", "/", "ID", "a"), ("WAIT",)):
            answer = client("WEIR.CHECK", *(("ATTRIBUTES",) * (len(late) > 2)), "ip", "1", *late)
            assert isinstance(answer, Error) and "options come before" in answer, (late, answer)
        assert client("WEIR.CHECK", "color", "red", "cost", "x")[0] == 1  # an attribute
        with server.resp(3) as three:
            bot = "WEIR.CHECK", "ip", "192.0.2.11", "header.user-agent", "a bot"
            answer = three(*bot)
            assert answer[0] == 1 and answer[9] is None
            assert three(*bot)[9] == "crawlers"


def test_S1_the_same_lists_in_both_protocols(weir):
    """Code that reads them by place must not find a name there, which would be true whatever was
    decided."""
    with Server(weir, rules=RULES) as server, server.resp() as two, server.resp(3) as three:
        two("WEIR.CHECK", "COST", 5, "ip", "192.0.2.7")
        two("WEIR.TAKE", "ann", "2/60s", "COST", 2)
        for words, places in [(("WEIR.CHECK", "ip", "192.0.2.7"), 10),
                              (("WEIR.CHECK", "ID", "ask-1", "ip", "192.0.2.7"), 10),
                              (("WEIR.TAKE", "ann", "2/60s"), 6),
                              (("WEIR.TAKE", "ann", "2/60s", "NS"), 6),
                              (("WEIR.PEEK", "ann", "2/60s"), 6),
                              (("WEIR.RESERVE", "ann", "2/60s"), 7),
                              (("WEIR.CHECK", "COST", 0, "color", "red"), 10),
                              (("WEIR.PEEK", "bob", "2/60s"), 6)]:
            answer = two(*words)
            assert isinstance(answer, list) and len(answer) == places, (words, answer)
            assert answer[0] == (words[-1] == "red" or words[1] == "bob"), (words, answer)
            assert three(*words) == answer, words


def test_S1_ask_ids_are_charged_once(weir):
    with Server(weir, rules=RULES) as server, server.resp() as client, server.resp() as other:
        first = client("WEIR.CHECK", "ID", "ask-1", "ip", "192.0.2.7")
        assert first[3] == 4
        assert other("WEIR.CHECK", "ID", "ask-1", "ip", "192.0.2.7") == first
        assert client("WEIR.CHECK", "ID", "ask-2", "ip", "192.0.2.7")[3] == 3
        assert isinstance(client("WEIR.CHECK", "ID", "ask-1", "ip", "192.0.2.8"), Error)
        assert isinstance(client("WEIR.CHECK", "ID", "x" * 129, "ip", "192.0.2.8"), Error)
        client("WEIR.CLOCK", 61 * 10**9)  # its lifetime is over
        assert client("WEIR.CHECK", "ID", "ask-1", "ip", "192.0.2.7")[3] == 4


def test_S1_del_forgets(weir):
    with Server(weir) as server, server.resp() as client:
        client("CL.THROTTLE", "k", 0, 1, 60)
        assert client("CL.THROTTLE", "k", 0, 1, 60)[0] == 1
        assert client("DEL", "k", "nobody") == 1
        assert client("CL.THROTTLE", "k", 0, 1, 60)[0] == 0


def test_S4_events_by_pubsub(weir):
    with Server(weir, rules=RULES) as server, server.resp() as client, \
            server.resp() as listener, server.resp(3) as three:
        assert listener("PSUBSCRIBE", "weir.events.*") == ["psubscribe", "weir.events.*", 1]
        assert three("SUBSCRIBE", "weir.events.mode") == Push(["subscribe", "weir.events.mode", 1])
        assert client.json("WEIR.MODE", "shadow", "login")
        message = listener.read()
        assert message[0] == "pmessage" and message[2] == "weir.events.mode", message
        assert '"login"' in message[3], message
        assert three.read()[:2] == ["message", "weir.events.mode"]
        assert listener("PING") == ["pong", ""]
        assert listener("PUNSUBSCRIBE") == ["punsubscribe", "weir.events.*", 0]
        assert listener("PING") == "PONG"


def test_S6_admin_over_resp(weir):
    with Server(weir, rules=RULES) as server, server.resp() as client:
        assert client.json("WEIR.STATUS")["rules"]
        assert "per-ip" in client("WEIR.RULES")
        client("WEIR.BAN", "login", "192.0.2.9", "10m")
        assert "192.0.2.9" in client("WEIR.BANS")
        assert client("WEIR.CHECK", "ip", "192.0.2.9", "uri", "/login")[8] == "banned"
        client.json("WEIR.UNBAN", "login", "192.0.2.9")
        assert client("WEIR.CHECK", "ip", "192.0.2.9", "uri", "/login")[0] == 1
        assert isinstance(client("WEIR.BAN", "nothing", "x", "10m"), Error)
        assert isinstance(client("WEIR.BAN", "login"), Error)
        help = client("WEIR.HELP")
        assert len(help) == client("COMMAND", "COUNT")
        assert isinstance(client("WEIR.RULES.SET", "version: 1\nrules:\n  - nonsense\n"), Error)
        assert client("WEIR.CHECK", "ip", "192.0.2.9")[1] == "per-ip"  # the old set stays
        all_by_ip = "  - { name: all, key: '{ip}', limit: 1/s }\n"
        client.json("WEIR.RULES.SET", "version: 1\nrules:\n" + all_by_ip)
        assert client("WEIR.CHECK", "ip", "192.0.2.9")[1] == "all"


def test_S1_bad_input_ends_the_connection_only(weir):
    bad = [b"*1000000000\r\n", b"*1\r\n$1000000000\r\n", b"*1\r\n:1\r\n", b"*-5\r\nx\r\n",
           b"*1\r\n$-1\r\n", b"*x\r\n", b"*1\r\n$1\r\nab\r\n", b"\x16\x03\x01\x02\x00\x01\x00\r\n",
           b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", b"*1\r\n$4\r\nPINGxx", b'"unfinished\r\n']
    with Server(weir) as server, server.resp() as client:
        for data in bad:
            with server.resp() as other:
                other.raw(data)
                try:
                    answer = other.read()
                    assert isinstance(answer, Error), (data, answer)
                    other.read()
                    raise AssertionError("still there after %r" % data)
                except (EOFError, OSError):
                    pass
            assert client("PING") == "PONG"


if __name__ == "__main__":
    run_tests(globals())
