"""redis-py.py -- the redis package of Python: python3-redis of Debian, and the newest one of the
registry (registry.py)."""
import json
import os
import warnings

import redis

warnings.simplefilter("error")
with open(os.environ["WEIR_WORLD"]) as page:
    WORLD = json.load(page)
STEPS = []
CAN_RESP3 = int(redis.__version__.split(".")[0]) >= 5


def client(server="plain", **options):
    return redis.Redis(host=WORLD["host"], port=WORLD["ports"][server], decode_responses=True,
                       socket_timeout=30, **options)


def refused(do, *words):
    """What the server says no with."""
    try:
        do(*words)
    except redis.RedisError as error:
        return "%s: %s" % (type(error).__name__, error)
    raise AssertionError("not refused: %r" % (words,))


def connect():
    with client() as r:
        assert r.ping()
        assert r.info("server")["redis_mode"] == "standalone"
    with client(client_name="shop", db=0) as r:
        assert r.client_getname() == "shop"


def throttle():
    with client() as r:
        for row in WORLD["golden"]:
            r.execute_command("WEIR.CLOCK", row["now_ns"])
            reply = r.execute_command("CL.THROTTLE", "golden", 4, 1, 1, row["quantity"])
            assert reply == row["reply"], (row, reply)


def check():
    with client() as r:
        for left in (4, 3, 2, 1, 0):
            assert r.execute_command("WEIR.CHECK", "ip", "192.0.2.7", "uri",
                                     "/")[:4] == [1, "per-ip", 5, left]
        answer = r.execute_command("WEIR.CHECK", "ip", "192.0.2.7", "uri", "/")
        assert answer[:2] == [0, "per-ip"] and answer[4] == 2000 and answer[8] == "limited", answer


def errors():
    with client() as r:
        assert "Zero rates" in refused(r.execute_command, "CL.THROTTLE", "k", 4, 0, 1)
        assert "unknown command" in refused(r.set, "k", 1)
        assert r.ping()


def pipeline():
    with client() as r:
        pipe = r.pipeline(transaction=False)
        for _ in range(100):
            pipe.execute_command("CL.THROTTLE", "pipeline", 4, 1, 60)
        pipe.execute_command("CL.THROTTLE", "pipeline", "x", 1, 60)
        replies = pipe.execute(raise_on_error=False)
        assert [reply[0] for reply in replies[:100]] == [0] * 5 + [1] * 95
        assert isinstance(replies[100], redis.ResponseError)


def multi():
    with client() as r:
        pipe = r.pipeline(transaction=True)
        pipe.execute_command("CL.THROTTLE", "multi", 4, 1, 60)
        pipe.ping()
        pipe.execute_command("CL.THROTTLE", "multi", 4, 1, 60)
        first, pong, second = pipe.execute()
        assert first == [0, 5, 4, -1, 60] and pong and second == [0, 5, 3, -1, 120], (first, second)


def resp3():
    for version, left in (3, 4), (2, 3):
        with client(protocol=version) as r:
            assert r.execute_command("WEIR.CHECK", "ip", "192.0.2.8")[:4] == [1, "per-ip", 5, left]
            assert r.execute_command("WEIR.TAKE", "resp3", "5/10s")[:3] == [1, 5, left]


def events():
    with client() as r, r.pubsub() as channel:
        channel.subscribe("weir.events.mode")
        assert channel.get_message(timeout=30)["type"] == "subscribe"
        r.execute_command("WEIR.MODE", "shadow", "per-ip")
        message = channel.get_message(timeout=30)
        assert message["type"] == "message" and message["channel"] == "weir.events.mode", message
        assert json.loads(message["data"])["rule"] == "per-ip", message
        channel.unsubscribe()
        assert channel.get_message(timeout=30)["type"] == "unsubscribe"


def auth():
    with client("guarded") as r:
        assert "AuthenticationError" in refused(r.ping)
    with client("guarded", password="wrong") as r:
        assert "token is not known" in refused(r.ping)
    with client("guarded", password=WORLD["check_token"]) as r:
        assert r.execute_command("WEIR.CHECK", "ip", "192.0.2.7")[0] == 1
        assert "needs the admin role" in refused(r.execute_command, "WEIR.MODE", "off", "per-ip")
    with client("guarded", username="default", password=WORLD["admin_token"]) as r:
        assert json.loads(r.execute_command("WEIR.MODE", "off", "per-ip"))


def tls():
    with client("tls", ssl=True, ssl_ca_certs=WORLD["certificate"],
                password=WORLD["check_token"]) as r:
        assert r.ping()
        assert r.execute_command("CL.THROTTLE", "tls", 4, 1, 60) == [0, 5, 4, -1, 60]
    with client("tls", ssl=True, password=WORLD["check_token"]) as r:
        # nobody has told it to trust this one
        assert "certificate verify failed" in refused(r.ping)


for step in [connect, throttle, check, errors, pipeline,
             multi] + [resp3] * CAN_RESP3 + [events, auth, tls]:
    step()
    STEPS.append(step.__name__)
print("redis-py %s: %s" % (redis.__version__, " ".join(STEPS)))
