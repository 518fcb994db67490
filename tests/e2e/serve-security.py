#!/usr/bin/python3
"""serve-security.py WEIR [TEST...] -- roles at `weir serve`, and secrets that never get out.

That two servers spread the same keys differently (the keyed hash) cannot be seen from outside: that
other secrets make other places of the same keys is in tests/unit/hash.c."""
import base64
import http.client
import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import tempfile
import threading
import time
import warnings

from serving import Answer, Error, Server, encode, is_closed, run_tests, until, write

ADMIN, CHECK = "admin-secret-0123456789", "check-secret-0123456789"
BOTH = {"WEIR_ADMIN_TOKEN": ADMIN, "WEIR_CHECK_TOKEN": CHECK}
RULES = """version: 1
rules:
  - name: per-ip
    key: "{ip}"
    limit: 1/1d
    ban: { refusals: 100/60s, for: 10m }
"""


class Folder:
    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="weir-security-")
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path)


def refusal(weir, *options, env=None):
    """The complaint of a server that refuses to start."""
    done = subprocess.run([weir, "serve", "--memory", *options], capture_output=True, text=True,
                          timeout=60, env=dict(os.environ, **(env or {})))
    assert done.returncode == 2, done
    return done.stderr


def ask(server, method, path, token=None, body=None, basic=False, door="http", source="127.0.0.1",
        **headers):
    """One request on a connection of its own, from any address of the loopback."""
    if token:
        headers["Authorization"] = ("Basic " + base64.b64encode(b"any:" + token.encode()).decode()
                                    if basic else "Bearer " + token)
    connection = http.client.HTTPConnection("127.0.0.1", server.ports[door], timeout=60,
                                            source_address=(source, 0))
    connection.request(method, path, body=body,
                       headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = Answer(connection.getresponse())
    connection.close()
    return answer


# ------------------------------------------------------------- other hosts


def test_beyond_the_loopback_a_token_is_needed(weir):
    for doors in (["--resp", "0.0.0.0:0", "--http", ""], ["--resp", "", "--http", "0.0.0.0:0"],
                  ["--resp", "127.0.0.1:0", "--http", "*:0"]):
        said = refusal(weir, *doors)
        assert "can be reached from other hosts" in said and "WEIR_ADMIN_TOKEN" in said, said
    said = refusal(weir, "--resp", "0.0.0.0:0", "--http", "", env={"WEIR_ADMIN_TOKEN": "short"})
    assert "5 bytes" in said and "short" not in said.replace("is short", ""), said
    said = refusal(weir, "--resp", "127.0.0.1:0", "--http", "", "--webhook",
                   "http://user:url-secret@127.0.0.1:1/")
    assert "password" in said and "url-secret" not in said, said
    said = refusal(weir, "--resp", "127.0.0.1:0", "--http", "", "--admin-token", ADMIN)
    assert "everybody on this host can read command lines" in said and ADMIN not in said, said


def test_unix_sockets_are_for_their_owner(weir):
    with Folder() as folder:
        path = os.path.join(folder, "resp.sock")
        with Server(weir, resp=path):
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        with Server(weir, "--socket-mode", "0660", resp=path):
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o660


# ------------------------------------------------------------------- roles

# RESP commands that need no role: a client's first words
OPEN = {"AUTH", "CLIENT", "HELLO", "QUIT", "RESET"}
CHECKING = {"POST /v1/check", "* /v1/auth", "POST /v1/check/batch", "POST /v1/take",
            "POST /v1/peek", "POST /v1/give", "POST /v1/reserve",
            "POST /v1/settle", "POST /v1/enter", "POST /v1/exit", "POST /v1/renew", "GET /metrics"}
PUBLIC = {"GET /healthz", "GET /readyz", "GET /openapi.json", "GET /v1", "GET /"}


def denied(answer):
    return (isinstance(answer, Error) and answer.split()[0] in ("NOAUTH", "NOPERM")
            and answer.split()[0])


def test_S1_roles_over_resp(weir):
    """Every command, by its row: without a token, with the check token, with the admin token."""
    with Server(weir, env=BOTH, rules=RULES) as server, server.resp() as admin:
        assert admin("AUTH", ADMIN) == "OK"
        rows = admin("COMMAND", "LIST")
        needs_admin = {row[0] for row in admin("COMMAND") if "admin" in row[2]}
        assert {"WEIR.RULES.SET", "WEIR.BAN", "WEIR.MODE", "WEIR.LIST.ADD", "WEIR.RESET",
                "WEIR.EVENTS", "WEIR.GUARDS", "WEIR.GUARD.FORCE", "WEIR.DEGRADE",
                "WEIR.DEGRADE.SET", "SUBSCRIBE"} <= needs_admin, needs_admin
        for name in rows:
            with server.resp() as nobody:
                words = nobody(name)
                if name not in OPEN:
                    assert denied(words) == "NOAUTH", (name, words)
            with server.resp() as checker:
                assert checker("AUTH", CHECK) == "OK"
                assert denied(checker(name, "x", "y")) == ("NOPERM" if name in needs_admin
                                                           else False), name
            with server.resp() as checker:
                assert checker("AUTH", CHECK) == checker("MULTI") == "OK"
                assert (denied(checker(name, "x", "y")) == "NOPERM") == (name in needs_admin), name


def test_S1_ways_to_show_a_token_over_resp(weir):
    with Server(weir, "--auth-guesses", "0", env=BOTH) as server:
        def outcome(*words):
            with server.resp() as client:
                client(*words)
                return denied(client("WEIR.STATUS")), denied(client("CL.THROTTLE", "k", 1, 1, 1))

        may_all, may_ask, may_not = (False, False), ("NOPERM", False), ("NOAUTH", "NOAUTH")
        assert outcome("AUTH", ADMIN) == outcome("AUTH", "default",
                                                 ADMIN) == outcome("HELLO", 3, "AUTH", "default",
                                                                   ADMIN) == may_all
        assert outcome("AUTH", CHECK) == outcome("HELLO", 2, "AUTH", "any", CHECK) == may_ask
        for wrong in ("", "x", ADMIN[:-1], ADMIN + "x", ADMIN.upper(), "\0" * len(ADMIN),
                      ADMIN + "\0", "x" * 1000):
            assert outcome("AUTH", wrong) == outcome("HELLO", 3, "AUTH", "default",
                                                     wrong) == may_not, wrong
        with server.resp() as client:
            assert client("HELLO", 3).startswith("NOAUTH")
            assert client("AUTH", "no").startswith("WRONGPASS")
            assert client("AUTH", ADMIN) == "OK" and client("PING") == "PONG"
            # as in Redis: a wrong one changes nothing
            assert client("AUTH", "no").startswith("WRONGPASS") and client("PING") == "PONG"
            assert client("RESET") == "RESET" and client("PING").startswith("NOAUTH")
            assert server.resp()("AUTH", ADMIN) == "OK"


def test_S1_a_transaction_keeps_no_rights(weir):
    with Server(weir, env=BOTH) as server, server.resp() as client:
        client("AUTH", ADMIN)
        client("MULTI")
        assert client("AUTH", CHECK) == "QUEUED" and client("WEIR.CLOCK") == "QUEUED"
        answers = client("EXEC")
        assert answers[0] == "OK" and denied(answers[1]) == "NOPERM", answers


def test_S1_a_transaction_that_ends_the_connection_is_answered_whole(weir):
    with Server(weir, env=BOTH) as server, server.resp() as client:
        client("AUTH", ADMIN)
        client("MULTI")
        for _ in range(20):
            client("AUTH", "wrong")
        client("CL.THROTTLE", "k", 4, 1, 1)
        answers = client("EXEC")
        assert len(answers) == 21 and answers[0].startswith("WRONGPASS"), answers
        assert "not run" in answers[20], answers
        assert is_closed(client.socket)


def test_S1_an_admin_token_alone_leaves_asking_open(weir):
    """On the loopback: applications on the host may ask, and only the token's holder may change
    anything."""
    with Server(weir, env={"WEIR_ADMIN_TOKEN": ADMIN}) as server, server.resp() as client:
        assert client("CL.THROTTLE", "k", 4, 1, 1)[0] == 0
        assert denied(client("WEIR.MODE", "off")) == "NOPERM"
        assert ask(server, "POST", "/v1/check", body='{"attributes":{}}').status == 200
        assert ask(server, "PUT", "/v1/modes", body='{"mode":"off"}').status == 401


def test_S2_roles_over_http(weir):
    with Server(weir, "--auth-guesses", "0", env=BOTH, rules=RULES) as server:
        routes = ask(server, "GET", "/v1").json()["routes"]
        assert len(routes) > 30
        for route in routes:
            name, method = "%s %s" % (route["method"],
                                      route["path"]), route["method"].replace("*", "GET")
            if name in PUBLIC:
                assert ask(server, method, route["path"]).status == 200, name
                continue
            nobody = ask(server, method, route["path"])
            assert nobody.status == 401, (name, nobody.status)
            assert "Bearer" in nobody.headers["www-authenticate"], (name, nobody.status)
            for basic in (False, True):
                wrong = ask(server, method, route["path"], "wrong", basic=basic)
                assert wrong.status == 401, (name, wrong.status)
                checker = ask(server, method, route["path"], CHECK, basic=basic)
                assert (checker.status == 403) == (name not in CHECKING), (name, checker.status)
            if name not in ("GET /v1/events", "POST /v1/clock"):
                assert ask(server, method, route["path"], ADMIN).status not in (401, 403), name
        assert ask(server, "GET", "/v1/status", ADMIN, basic=True).status == 200
        for broken in ("Bearer", "Bearer ", "Basic", "Basic !!!!",
                       "Basic " + base64.b64encode(ADMIN.encode()).decode(), "Digest x", ADMIN,
                       "Basic " + "A" * 5000):
            assert ask(server, "GET", "/v1/status", Authorization=broken).status == 401, broken


# ----------------------------------------------------------------- secrets


def test_secrets_do_not_get_out(weir):
    hook = "webhook-secret-0123456789"
    with Folder() as folder:
        log, token_file = os.path.join(folder, "events"), os.path.join(folder, "token")
        write(token_file, ADMIN + "\n")
        os.chmod(token_file, 0o600)
        env = {"WEIR_CHECK_TOKEN": CHECK, "WEIR_WEBHOOK_TOKEN": hook}
        rules = RULES + "  - name: by-token\n    key: '{header.authorization}'\n    limit: 1/1d\n"
        options = ["--admin-token-file", token_file, "--events-log", log, "--webhook",
                   "http://127.0.0.1:1/x"]
        told = []
        with Server(weir, *options, rules=rules, env=env) as server, server.resp() as client:
            for secret in (CHECK, ADMIN, "wrong-secret"):
                client("AUTH", secret)
                ask(server, "GET", "/v1/status", secret)
                ask(server, "GET", "/v1/status", secret, basic=True)
                for _ in range(3):  # refused: the key gets among the top ones
                    told.append(ask(server, "GET", "/v1/auth", secret).body.decode())
            client("AUTH", ADMIN)
            for words in (["WEIR.SETTINGS"], ["WEIR.STATUS"], ["WEIR.TOP"], ["WEIR.EVENTS"],
                          ["WEIR.RULES"], ["INFO"], ["CLIENT", "LIST"], ["CONFIG", "GET", "*"]):
                told.append(str(client(*words)))
            assert '"admin_token":true' in told[-8], told[-8]
            told.append(ask(server, "GET", "/metrics", ADMIN).body.decode())
            told.append(str(ask(server, "GET", "/v1/status", "wrong-secret").body))
            told.append(open("/proc/%d/cmdline" % server.pid).read())
            told.append("".join(server.said))
            printed = subprocess.run(server.command + ["--print-settings"], capture_output=True,
                                     text=True, env=server.env)
            told.append(printed.stdout + printed.stderr)
            assert "admin-token: (set)" in printed.stdout
            client.json("WEIR.MODE", "off")
            until("the log has it", lambda: '"mode"' in open(log).read())
        told.append(open(log).read())
        told.append(server.stop_said)
        for text in told:
            for secret in (ADMIN, CHECK, hook, "wrong-secret",
                           base64.b64encode(b"any:" + ADMIN.encode()).decode()):
                assert secret not in text, "%s is told: %s" % (secret, text[:2000])


def test_S6_a_slip_in_the_environment_is_told(weir):
    """But not its value, and not what a cluster sets for a service that is named weir."""
    slips = {"WEIR_ADMIN_TOKN": "WEIR_ADMIN_TOKEN", "WEIR_TRUSTED_PROXY": "WEIR_TRUSTED_PROXIES"}
    others = ["WEIR_PORT", "WEIR_SERVICE_HOST", "WEIR_PORT_7379_TCP_ADDR", "WEIR_TOKEN",
              "WEIR_SERVER", "WEIR_REDIS", "WEIR_KEYS", "WEIRD_KEYSS"]
    for name, meant in [*slips.items(), *((name, None) for name in others)]:
        told = subprocess.run([weir, "serve", "--print-settings"], capture_output=True, text=True,
                              env={**os.environ, name: "65536"})
        assert told.returncode == 0, told.stderr
        warning = "'%s' in the environment sets nothing; did you mean %s?" % (name, meant)
        expected = "weir serve: warning: %s\n" % warning if meant else ""
        assert told.stderr == expected, told.stderr


# ----------------------------------------------------------------- browsers


def test_S2_pages_of_others_cannot_ask(weir):
    """Without tokens everybody on this host may do everything; a browser on this host shows pages
    that are not."""
    with Server(weir) as server:
        port = server.ports["http"]

        def status(host, path="/v1/status", **headers):
            return ask(server, "GET", path, Host=host, **headers).status

        for host in ("localhost", "localhost:%d" % port, "127.0.0.1:%d" % port, "[::1]:%d" % port,
                     "weir.localhost", "LOCALHOST"):
            assert status(host) == 200, host
        for host in ("evil.example", "evil.example:%d" % port, "localhost.evil.example",
                     "127.0.0.1.evil.example", "evil-localhost", "local", "xlocalhost"):
            assert status(host) == 403, host
            assert status(host, "/healthz") == 200  # load balancers have names of their own for it
        for origin in ("http://evil.example", "https://localhost.evil.example", "null",
                       "http://localhost:1", "file://", "http://127.0.0.1", ""):
            if origin:
                assert status("127.0.0.1:%d" % port, Origin=origin) == 403, origin
        assert status("127.0.0.1:%d" % port, Origin="http://127.0.0.1:%d" % port) == 200
        answer = ask(server, "PUT", "/v1/modes", body='{"mode":"off"}', Host="evil.example")
        assert answer.status == 403 and server.resp().json("WEIR.MODES")["in_force"] == "enforce"
    with Server(weir, env={"WEIR_ADMIN_TOKEN": ADMIN}) as server:  # a token cannot be had by a page
        assert ask(server, "GET", "/v1/status", ADMIN, Host="evil.example",
                   Origin="http://evil.example").status == 200
        assert ask(server, "POST", "/v1/check", body='{"attributes":{}}',
                   Host="evil.example").status == 403


def test_S1_http_on_the_resp_port_is_not_obeyed(weir):
    """A form that a page was made to send: its body would be commands."""
    with Server(weir) as server:
        for head in (b"POST / HTTP/1.1\r\nHost: x\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n",
                     b"post / HTTP/1.1\r\n", b"OPTIONS / HTTP/1.1\r\nHOST: x\r\n"):
            with socket.create_connection(("127.0.0.1", server.ports["resp"]),
                                          timeout=60) as client:
                client.sendall(head
                               + b"Content-Length: 40\r\n\r\nWEIR.MODE off\r\nCL.THROTTLE k 0 1 60\r\n")
                said = b""
                while True:
                    data = client.recv(65536)
                    if not data:
                        break
                    said += data
                assert b"speaks RESP" in said, said
        with server.resp() as client:
            assert client.json("WEIR.MODES")["in_force"] == "enforce"
            assert client("CL.THROTTLE", "k", 0, 1, 60)[0] == 0


# ------------------------------------------------------------------ proxies


def auth(server, source, forwarded=None, **headers):
    if forwarded:
        headers["X_Forwarded_For"] = forwarded
    return ask(server, "GET", "/v1/auth", source=source, **headers).status


def test_S2_forged_forwarding_headers(weir):
    """127.0.0.1 is the proxy, 127.0.0.2 is not.  The limit is one for each address, so who is asked
    for shows."""
    with Server(weir, "--trusted-proxies", "127.0.0.1", rules=RULES) as server:
        assert auth(server, "127.0.0.2", "192.0.2.1") == 200  # that was 127.0.0.2
        assert auth(server, "127.0.0.2", "192.0.2.2") == 429
        assert auth(server, "127.0.0.2", X_Real_IP="192.0.2.3") == 429
        assert auth(server, "127.0.0.2", Forwarded="for=192.0.2.3") == 429
        for address in ("192.0.2.1", "192.0.2.2", "192.0.2.3"):
            assert auth(server, "127.0.0.1", address) == 200, address  # nothing was charged to them
        # the left one is the client's own word
        assert auth(server, "127.0.0.1", "198.51.100.99, 192.0.2.1") == 429
        # over two proxies
        assert auth(server, "127.0.0.1", "198.51.100.99, 192.0.2.4, 127.0.0.1") == 200
        assert auth(server, "127.0.0.1", "192.0.2.4") == 429
        # no address is one client, and not the proxy
        assert auth(server, "127.0.0.1", "192.0.2.5, nonsense") == 200
        assert auth(server, "127.0.0.1", "192.0.2.6, unix:") == 429
        assert auth(server, "127.0.0.1") == 200
    with Server(weir, "--trusted-proxies", "", rules=RULES) as server:
        assert auth(server, "127.0.0.1", "192.0.2.1") == 200
        assert auth(server, "127.0.0.1", "192.0.2.2") == 429


# --------------------------------------------------------------------- TLS


def make(folder, name, *signed):
    """A key and a certificate, signed by that of another or by itself."""
    key, pem = os.path.join(folder, name + ".key"), os.path.join(folder, name + ".pem")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
               "-nodes", "-days", "2", "-subj", "/CN=" + name,
               "-keyout", key, "-out", pem]
    if signed:
        command += ["-CA", os.path.join(folder, signed[0] + ".pem"), "-CAkey",
                    os.path.join(folder, signed[0] + ".key")]
        command += ["-addext", "subjectAltName=IP:127.0.0.1", "-addext",
                    "basicConstraints=critical,CA:FALSE"]
    subprocess.run(command, check=True, capture_output=True)
    return pem, key


def context(folder, ca, certificate=None):
    made = ssl.create_default_context(cafile=os.path.join(folder, ca + ".pem"))
    if certificate:
        made.load_cert_chain(os.path.join(folder, certificate + ".pem"),
                             os.path.join(folder, certificate + ".key"))
    return made


def say_secretly(server, tls, door, data):
    """What is answered; None if the handshake failed or the server hung up."""
    try:
        with (socket.create_connection(("127.0.0.1", server.ports[door]), timeout=60) as plain,
              tls.wrap_socket(plain, server_hostname="127.0.0.1") as client):
            client.sendall(data)
            return client.recv(65536) or None
    except (ssl.SSLError, ConnectionError):
        return None


GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def tls_options(folder):
    return ["--tls-certificate", os.path.join(folder, "server.pem"), "--tls-key",
            os.path.join(folder, "server.key")]


def test_S1_tls_with_client_certificates(weir):
    with Folder() as folder:
        make(folder, "ca")
        make(folder, "server", "ca")
        make(folder, "client", "ca")
        make(folder, "stranger")
        with Server(weir, *tls_options(folder), "--tls-client-ca",
                    os.path.join(folder, "ca.pem")) as server:
            good = context(folder, "ca", "client")
            assert say_secretly(server, good, "resp", b"PING\r\n") == b"+PONG\r\n"
            assert say_secretly(server, good, "http", GET).startswith(b"HTTP/1.1 200")
            assert say_secretly(server, context(folder, "ca"), "resp", b"PING\r\n") is None
            assert say_secretly(server, context(folder, "ca", "stranger"), "http", GET) is None
            old = context(folder, "ca", "client")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they must be old
                old.minimum_version = ssl.TLSVersion.TLSv1
                old.maximum_version = ssl.TLSVersion.TLSv1_1
            assert say_secretly(server, old, "resp", b"PING\r\n") is None
            with socket.create_connection(("127.0.0.1", server.ports["resp"]), timeout=60) as plain:
                plain.sendall(b"PING\r\nPING\r\nPING\r\n")
                assert is_closed(plain)
            assert say_secretly(server, good, "resp", b"PING\r\n") == b"+PONG\r\n"
            with (socket.create_connection(("127.0.0.1", server.ports["resp"]),
                                           timeout=60) as plain,
                  good.wrap_socket(plain, server_hostname="127.0.0.1") as client):
                # more than any buffer, both ways
                client.sendall(encode(["ECHO", "x" * 300000]) * 3)
                want, got = 3 * len(b"$300000\r\n" + b"x" * 300000 + b"\r\n"), 0
                while got < want:
                    got += len(client.recv(65536))
                assert got == want


def test_S1_tls_says_all_before_the_end(weir):
    """A client that closes its side (close_notify) after a pipeline gets all answers."""
    with Folder() as folder:
        make(folder, "ca")
        make(folder, "server", "ca")
        with Server(weir, *tls_options(folder)) as server:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = context(folder, "ca").wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
            with socket.create_connection(("127.0.0.1", server.ports["resp"]),
                                          timeout=60) as client:
                shake(client, tls, incoming, outgoing)
                n = 20000
                tls.write(b"ECHO 0123456789012345678901234567890123456789\r\n" * n)
                try:
                    tls.unwrap()
                except ssl.SSLWantReadError:
                    pass
                sender = threading.Thread(target=client.sendall, args=(outgoing.read(),))
                sender.start()
                got = read_plain(client, tls, incoming)
                sender.join()
                assert got == b"$40\r\n0123456789012345678901234567890123456789\r\n" * n, len(got)


def shake(client, tls, incoming, outgoing):
    while True:
        try:
            tls.do_handshake()
            client.sendall(outgoing.read())
            return
        except ssl.SSLWantReadError:
            client.sendall(outgoing.read())
            incoming.write(client.recv(65536))


def read_plain(client, tls, incoming):
    got = []
    while True:
        data = client.recv(65536)
        if not data:
            return b"".join(got)
        incoming.write(data)
        try:
            while True:
                data = tls.read(65536)
                if not data:
                    return b"".join(got)
                got.append(data)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            return b"".join(got)


def test_S1_tls_slowloris(weir):
    """A handshake that never ends, and a record that never ends: closed after `patience`, though a
    byte comes now and then."""
    with Folder() as folder:
        make(folder, "ca")
        make(folder, "server", "ca")
        with Server(weir, *tls_options(folder), "--patience", "1s") as server:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = context(folder, "ca").wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
            with socket.create_connection(("127.0.0.1", server.ports["resp"]),
                                          timeout=60) as client:
                shake(client, tls, incoming, outgoing)
                tls.write(b"PING\r\n" + b"x" * 2000)
                assert trickles_out(client, outgoing.read()), "a record"
            tls = context(folder, "ca").wrap_bio(ssl.MemoryBIO(), outgoing,
                                                 server_hostname="127.0.0.1")
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                pass
            with socket.create_connection(("127.0.0.1", server.ports["resp"]),
                                          timeout=60) as client:
                assert trickles_out(client, outgoing.read()), "a handshake"
            assert say_secretly(server, context(folder, "ca"), "resp", b"PING\r\n") == b"+PONG\r\n"


def trickles_out(client, data):
    """Sends a byte every 50 ms, of 300 at the most; true if the server closes on the way."""
    client.settimeout(0.05)
    for i in range(min(len(data) - 1, 300)):
        try:
            client.send(data[i : i + 1])
            if not client.recv(65536):
                return True
        except TimeoutError:
            pass
        except ConnectionError:
            return True
    return False


def test_S1_tls_certificates_are_renewed(weir):
    with Folder() as folder:
        make(folder, "ca")
        make(folder, "server", "ca")
        with Server(weir, *tls_options(folder)) as server:
            first = ssl.get_server_certificate(("127.0.0.1", server.ports["resp"]))
            write(os.path.join(folder, "server.pem"), "nonsense")
            server.process.send_signal(signal.SIGHUP)
            until("it is told", lambda: "the certificate stays as it is" in server.complaints())
            assert ssl.get_server_certificate(("127.0.0.1", server.ports["resp"])) == first
            make(folder, "server", "ca")
            server.process.send_signal(signal.SIGHUP)
            until("the new one is shown",
                  lambda: ssl.get_server_certificate(("127.0.0.1", server.ports["resp"])) != first)


def expire(folder):
    """The server's certificate, as it was yesterday."""
    key, pem = os.path.join(folder, "server.key"), os.path.join(folder, "server.pem")
    old = subprocess.run(["openssl", "x509", "-in", pem, "-signkey", key, "-days", "-1"],
                         check=True, capture_output=True, text=True).stdout
    write(pem, old)


def metric(server, name):
    connection = http.client.HTTPSConnection("127.0.0.1", server.ports["http"], timeout=60,
                                             context=ssl._create_unverified_context())
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return next(float(line.split()[1]) for line in lines if line.startswith(name + " "))


def test_S1_tls_an_expired_certificate_is_told(weir):
    """When SIGHUP has read one, and at the start.  The metric tells of it beforehand."""
    with Folder() as folder:
        make(folder, "ca")
        make(folder, "server", "ca")
        told = "warning: the certificate %s/server.pem expired on " % folder
        with Server(weir, *tls_options(folder)) as server:
            assert "certificate" not in server.complaints()
            left = metric(server, "weir_tls_certificate_expires_seconds") - time.time()
            assert 47 * 3600 < left <= 48 * 3600, left
            expire(folder)
            server.process.send_signal(signal.SIGHUP)
            until("it is told", lambda: told in server.complaints())
            left = metric(server, "weir_tls_certificate_expires_seconds") - time.time()
            assert -25 * 3600 < left < -23 * 3600, left
        with Server(weir, *tls_options(folder)) as server:
            assert server.complaints().count(told) == 1, server.complaints()


if __name__ == "__main__":
    run_tests(globals())
