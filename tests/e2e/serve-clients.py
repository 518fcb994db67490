#!/usr/bin/python3
"""serve-clients.py WEIR [TEST...] -- clients as people have them: the Redis clients of five Debian
packages, and curl.

Each library does the same things in its own language (clients/); world.py says which."""
import json
import os
import re
import subprocess
import tempfile

from clients.world import (ADMIN_TOKEN, CHECK_TOKEN, GOLDEN, HERE, ROOT, RULES, STEPS, World,
                           run_client, run_snippet)
from serving import Server, run_foreign, run_tests

RESP2 = [step for step in STEPS if step != "resp3"]


def test_S1_redis_py(weir):
    run_client(weir, ["/usr/bin/python3", "-X", "dev", os.path.join(HERE, "redis-py/redis-py.py")],
               RESP2)


def test_S1_node_redis(weir):
    run_client(weir, ["node", os.path.join(HERE, "node-redis/node-redis.js")], RESP2,
               env={"NODE_PATH": "/usr/share/nodejs"})


def test_S1_php_redis(weir):
    run_client(weir, ["php", os.path.join(HERE, "php-redis/php-redis.php")], RESP2)


def test_S1_ruby_redis(weir):
    run_client(weir, ["ruby", "-w", os.path.join(HERE, "ruby-redis/ruby-redis.rb")], RESP2)


def redis_cli(server, *words, options=(), data=None, env=None, complaints=False):
    """The output of redis-cli, without the last end of line; on demand with its complaints."""
    command = ["redis-cli", "-p", str(server.ports["resp"]), *options, *map(str, words)]
    done = run_foreign(command, input=data, env=dict(os.environ, **(env or {})))
    return (done.stdout + (done.stderr if complaints else "")).rstrip("\n")


def test_S1_redis_cli(weir):
    with Server(weir, rules=RULES) as server:
        assert redis_cli(server, "PING") == "PONG"
        for ms, quantity, reply in GOLDEN:
            redis_cli(server, "WEIR.CLOCK", 10**18 + ms * 10**6)
            assert redis_cli(server, "CL.THROTTLE", "golden", 4, 1, 1,
                             quantity).split() == [str(n) for n in reply], (ms, quantity)
        assert redis_cli(server, "WEIR.CHECK", "ip",
                         "192.0.2.7").split()[:4] == ["1", "per-ip", "5", "4"]
        assert "unknown command" in redis_cli(server, "SET", "k", 1)
        answer = json.loads(redis_cli(server, "WEIR.CHECK", "ip", "192.0.2.7",
                                      options=["-3", "--json"]))
        assert answer[:4] == [1, "per-ip", 5, 3], answer
        assert redis_cli(server, "PING", options=["-r", "3"]).split() == ["PONG"] * 3
        words = "MULTI\nCL.THROTTLE multi 4 1 60\nPING\nEXEC\n"
        assert redis_cli(server, data=words).split() == ["OK", "QUEUED", "QUEUED", "0", "5", "4",
                                                         "-1", "60", "PONG"]
        ask = "*5\r\n$11\r\nCL.THROTTLE\r\n$4\r\npipe\r\n$1\r\n4\r\n$1\r\n1\r\n$2\r\n60\r\n"
        assert redis_cli(server, options=["--pipe"],
                         data=ask * 100).endswith("errors: 0, replies: 100")
        help = redis_cli(server, data="HELP CL.THROTTLE\n")
        assert "key max_burst count period [quantity]" in help and "redis-cell" in help, help


def test_S1_redis_cli_tokens_and_tls(weir):
    with World(weir) as world:
        guarded, tls = world.servers["guarded"], world.servers["tls"]
        assert "NOAUTH" in redis_cli(guarded, "PING")
        assert "WRONGPASS" in redis_cli(guarded, "PING", env={"REDISCLI_AUTH": "wrong"},
                                        complaints=True)
        for options in (["-2"], ["-3"]):
            assert redis_cli(guarded, "PING", options=options,
                             env={"REDISCLI_AUTH": CHECK_TOKEN}) == "PONG"
        assert "needs the admin role" in redis_cli(guarded, "WEIR.MODE", "off",
                                                   env={"REDISCLI_AUTH": CHECK_TOKEN})
        assert redis_cli(guarded, "WEIR.MODE", "off", options=["--user", "default"],
                         env={"REDISCLI_AUTH": ADMIN_TOKEN}).startswith("{")
        trust = ["--tls", "--cacert", world.certificate]
        assert redis_cli(tls, "PING", options=trust, env={"REDISCLI_AUTH": CHECK_TOKEN}) == "PONG"
        distrust = ["--tls", "--cacertdir", world.certificates.name]
        said = redis_cli(tls, "PING", options=distrust, complaints=True)
        assert "certificate verify failed" in said, said


def test_S4_redis_cli_events(weir):
    with Server(weir, rules=RULES) as server:
        command = ["redis-cli", "-p", str(server.ports["resp"]), "PSUBSCRIBE", "weir.events.*"]
        listener = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert [listener.stdout.readline().strip()
                    for _ in range(3)] == ["psubscribe", "weir.events.*", "1"]
            redis_cli(server, "WEIR.MODE", "shadow", "per-ip")
            assert [listener.stdout.readline().strip()
                    for _ in range(3)] == ["pmessage", "weir.events.*", "weir.events.mode"]
            assert json.loads(listener.stdout.readline())["rule"] == "per-ip"
        finally:
            listener.kill()
            listener.wait()
            listener.stdout.close()


def test_S1_redis_benchmark(weir):
    with Server(weir, rules=RULES, clock=False) as server:
        for options, words in [
            (["-c", "20", "-P", "16", "-r", "1000"], ["CL.THROTTLE", "key:__rand_int__", 4, 1, 1]),
            (["--threads", "2"], ["WEIR.CHECK", "ip", "192.0.2.1"]),
            (["-3"], ["WEIR.TAKE", "key", "sliding-window 300/60"]),
            (["-t", "ping"], []),
        ]:
            command = ["redis-benchmark", "-p", str(server.ports["resp"]), "-n", "2000", "--csv",
                       *options, *map(str, words)]
            done = run_foreign(command)
            assert done.returncode == 0 and "rror" not in done.stdout, done
        totals = server.http()("GET", "/v1/status").json()["totals"]
        assert totals["take_allowed"] + totals["take_refused"] == 4000, totals


def test_R4_the_readme_shows_a_ban(weir):
    """The first commands of README.md print the lines below them, in that order."""
    with open(os.path.join(ROOT, "README.md")) as file:
        commands, shown = re.findall(r"^```(?:sh)?\n(.*?)^```$", file.read(), re.M | re.S)[:2]
    with open(os.path.join(ROOT, "examples/rules.yaml")) as file:
        rules = file.read()
    commands = re.sub(r"^make run.*\n", "", commands, flags=re.M).replace("build/weir", weir)
    with Server(weir, rules=rules) as server:
        env = dict(os.environ, WEIR_SERVER="127.0.0.1:%d" % server.ports["http"])
        said = run_foreign(["sh", "-c", commands], env=env).stdout
    ages = re.compile(r"banned \w+ ago")
    said = iter(ages.sub("", said).splitlines())
    for line in ages.sub("", shown).splitlines():
        assert line == "..." or line in said, line  # `in` goes on where it has found the last one


def test_docs_clients(weir):
    with tempfile.TemporaryDirectory(prefix="weir-test-") as folder:
        path = os.path.join(folder, "snippet")
        for heading, language, command in [("redis-cli", "sh", "sh"), ("curl", "sh", "sh"),
                                           ("redis-py", "python", "/usr/bin/python3"),
                                           ("PHP", "php", "php"), ("Ruby", "ruby", "ruby")]:
            run_snippet(weir, heading, language, path, [command, path])


# ----------------------------------------------------------------- curl ----


def curl(server, path, *options, data=None, base=None):
    """(status, headers, body) of the last answer."""
    base = base or "http://127.0.0.1:%d" % server.ports["http"]
    command = ["curl", "--silent", "--show-error", "--max-time", "250", "--include", *options,
               base + path]
    done = subprocess.run(command, input=data, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return split_answer(done.stdout)


def split_answer(data):
    """The last head, and its body."""
    begin = max(m.start() for m in re.finditer(rb"(?:^|\n)HTTP/1\.1 \d", data))
    head, body = data[begin:].lstrip(b"\n").split(b"\r\n\r\n", 1)
    status, *lines = head.decode().split("\r\n")
    headers = dict((name.lower(), value.strip()) for name,
                   value in (line.split(":", 1) for line in lines))
    return int(status.split()[1]), headers, body


def ask(ip):
    return json.dumps({"attributes": {"ip": ip, "uri": "/"}}).encode()


def test_S2_curl_check_and_refusal(weir):
    with Server(weir, rules=RULES) as server:
        for left in (4, 3, 2, 1, 0):
            status, headers, body = curl(server, "/v1/check", "--json", "@-", data=ask("192.0.2.7"))
            assert (status, json.loads(body)["remaining"]) == (200, left), body
            assert headers["ratelimit"].startswith('"per-ip";r=%d;t=' % left), headers
        status, headers, body = curl(server, "/v1/check", "--json", "@-", data=ask("192.0.2.7"))
        answer = json.loads(body)
        assert status == 429 and headers["content-type"] == "application/problem+json", headers
        assert headers["retry-after"] == "2" and headers["ratelimit"] == '"per-ip";r=0;t=2', headers
        assert headers["ratelimit-policy"] == '"per-ip";q=5;w=10', headers
        assert headers["weir-level"] == "3", headers
        assert answer["status"] == 429 and answer["code"] == "weir-limited", answer
        assert answer["retry_ms"] == 2000, answer
        assert headers["content-length"] == str(len(body)) and "date" in headers


def test_S2_curl_keep_alive_and_old_http(weir):
    with Server(weir, rules=RULES) as server:
        url = "http://127.0.0.1:%d/healthz" % server.ports["http"]
        done = run_foreign(["curl", "-sS", "--write-out", "%{num_connects} ", url, url, url])
        assert done.stdout == "ok\n1 ok\n0 ok\n0 ", done
        status, headers, body = curl(server, "/healthz", "--http1.0")
        assert (status, body) == (200, b"ok\n"), headers
        assert headers.get("connection", "close") == "close", headers
        done = run_foreign(["curl", "-sS", "--http1.0", "-H", "Connection: keep-alive",
                            "--write-out", "%{num_connects} ", url, url])
        assert done.stdout == "ok\n1 ok\n0 ", done
        status, headers, body = curl(server, "/v1/check", "--http1.0", "--json", "@-",
                                     data=ask("192.0.2.7"))
        assert status == 200 and json.loads(body)["allowed"], body


def test_S2_curl_head(weir):
    with Server(weir, rules=RULES) as server:
        status, headers, body = curl(server, "/healthz", "--head")
        assert (status, headers["content-length"], body) == (200, "3", b""), headers
        status, headers, body = curl(server, "/v1/auth", "--head")
        assert status == 200 and headers["ratelimit"].startswith('"per-ip";r=4'), headers
        assert body == b"", headers
        status, headers, body = curl(server, "/v1/check", "--head")
        assert status == 405 and headers["allow"] == "POST" and body == b"", headers
        assert curl(server, "/nothing", "--head")[0] == 404


def test_S2_curl_bodies_in_chunks_and_large(weir):
    with Server(weir, rules=RULES) as server:
        chunked = ["-H", "Transfer-Encoding: chunked"]
        status, _, body = curl(server, "/v1/check", *chunked, "--json", "@-", data=ask("192.0.2.7"))
        assert status == 200 and json.loads(body)["remaining"] == 4, body
        large = json.dumps({"checks": [{"attributes": {"ip": "192.0.2.%d" % (i // 10 + 10),
                                                       "pad": "x" * 900}}
                                                       for i in range(1000)]}).encode()
        for options in ([], chunked, ["-H", "Expect: 100-continue", "--expect100-timeout", "60"]):
            server.clock(len(options) * 100)
            status, _, body = curl(server, "/v1/check/batch", *options, "--json", "@-", data=large)
            answers = json.loads(body)["answers"]
            assert status == 200, (status, options)
            assert sum(answer["allowed"] for answer in answers) == 500, (status, options)
        status, _, body = curl(server, "/v1/check/batch", "--json", "@-", data=b" " * 3_000_000)
        assert status == 413 and json.loads(body)["status"] == 413, status
        assert b"(request-max)" in body, body
        assert curl(server, "/healthz")[0] == 200


def test_S2_curl_continue_is_said(weir):
    """curl asks of itself before it sends much; it would wait a minute here if it were not
    answered."""
    with Server(weir, rules=RULES) as server:
        url = "http://127.0.0.1:%d/v1/check" % server.ports["http"]
        data = json.dumps({"attributes": {"ip": "192.0.2.7", "pad": "x" * 500_000}})
        done = run_foreign(["curl", "-sSv", "-H", "Expect: 100-continue",
                            "--expect100-timeout", "400", "--json", "@-", url], input=data)
        assert "< HTTP/1.1 100 Continue" in done.stderr, done.stderr
        assert "Done waiting" not in done.stderr, done.stderr


def test_S2_curl_unix_socket(weir):
    with tempfile.TemporaryDirectory(prefix="weir-test-") as folder:
        path = os.path.join(folder, "http.sock")
        with Server(weir, rules=RULES, http=path) as server:
            assert os.stat(path).st_mode & 0o777 == 0o600
            status, _, body = curl(server, "/v1/check", "--unix-socket", path, "--json", "@-",
                                   data=ask("192.0.2.7"), base="http://localhost")
            assert status == 200 and json.loads(body)["remaining"] == 4, body
        assert not os.path.exists(path)


def test_S2_curl_tokens_and_tls(weir):
    with World(weir) as world:
        guarded, tls = world.servers["guarded"], world.servers["tls"]
        check = ["/v1/check", "--json", "@-"]
        status, headers, body = curl(guarded, *check, data=ask("192.0.2.7"))
        assert status == 401 and "Bearer" in headers["www-authenticate"], headers
        assert curl(guarded, *check, "-H", "Authorization: Bearer wrong",
                    data=ask("192.0.2.7"))[0] == 401
        assert curl(guarded, *check, "--oauth2-bearer", CHECK_TOKEN,
                    data=ask("192.0.2.7"))[0] == 200
        assert curl(guarded, *check, "--user", "me:" + CHECK_TOKEN, data=ask("192.0.2.7"))[0] == 200
        assert curl(guarded, "/v1/bans", "--oauth2-bearer", CHECK_TOKEN)[0] == 403
        assert curl(guarded, "/v1/bans", "--oauth2-bearer", ADMIN_TOKEN)[0] == 200
        base = "https://localhost:%d" % tls.ports["http"]
        trust = ["--cacert", world.certificate, "--oauth2-bearer", CHECK_TOKEN]
        status, _, body = curl(tls, *check, *trust, data=ask("192.0.2.7"), base=base)
        assert status == 200 and json.loads(body)["remaining"] == 4, body
        done = run_foreign(["curl", "-sS", base + "/healthz"])
        assert done.returncode == 60, done  # nobody has told it to trust this one
        for version in ("--tls-max", "1.2"), ("--tlsv1.3",):
            assert curl(tls, "/healthz", *trust, *version, base=base)[0] == 200


def test_S2_as_traefik_asks(weir):
    """With the headers of its documentation; the answer is given to the client as it is."""
    with Server(weir, rules=RULES) as server:
        told = {"X-Forwarded-Method": "POST", "X-Forwarded-Proto": "https",
                "X-Forwarded-Host": "shop.example", "X-Forwarded-Uri": "/cart?id=1",
                "X-Forwarded-For": "192.0.2.7", "X-Forwarded-Server": "traefik",
                "User-Agent": "a browser"}
        options = [word for name, value in told.items()
                   for word in ("-H", "%s: %s" % (name, value))]
        assert [curl(server, "/v1/auth", *options)[0] for _ in range(6)] == [200] * 5 + [429]
        status, headers, body = curl(server, "/v1/auth", *options)
        assert headers["retry-after"] == "2" and json.loads(body)["code"] == "weir-limited", headers
        status, headers, body = curl(server, "/v1/auth", *options, "-H",
                                     "X-Forwarded-For: 192.0.2.8")
        assert status == 200 and headers["weir-level"] == "0", (status, headers, body)
        assert body == b"", (status, headers, body)


if __name__ == "__main__":
    run_tests(globals())
