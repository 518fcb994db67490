#!/usr/bin/python3
"""serve-nginx.py WEIR [TEST...] -- nginx in front, its auth_request asking /v1/auth: the
configuration of docs/clients.md, at work.

nginx runs from a folder of its own, on a loopback port of its own, and is stopped by its own pid.
Clients come from several addresses of the loopback; so Weir is told that only 127.0.0.1 is a
proxy."""
import contextlib
import http.client
import json
import os
import socket
import subprocess
import tempfile

from clients.world import ROOT, snippet
from serving import Proxy, Server, free_port, run_tests, until, write

RULES = """version: 1
rules:
  - name: login
    match: { uri: /login, method: POST }
    key: "{ip}"
    limit: 2/60s
  - name: per-ip
    key: "{ip}"
    limit: 5/10s
  - name: agents
    match: { header.user-agent: "*bot*" }
    key: "{ip}"
    limit: 1/60s
lists:
  deny: { ip: [127.0.0.66] }
"""

# Around the piece in docs/clients.md.
CONFIGURATION = """daemon off;
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 128; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;

    upstream backend {{ server unix:{folder}/backend; }}
    server {{ # the service behind: it echoes
        listen unix:{folder}/backend;
        location = /forbidden {{ return 403 "its own\\n"; }}
        location = /headers {{ proxy_pass http://weir/v1/auth; }} # 400 if one comes twice
        location / {{ return 200 "$request_method $request_uri level=$http_weir_level\\n"; }}
    }}
"""

# A second server, where the client's own headers go to Weir too, but for those that nginx does not
# write itself.
ALL_HEADERS = """    server {{
        listen unix:{folder}/all-headers;
        set_real_ip_from unix:;
        real_ip_header   X-Test-Address;
        location / {{
            auth_request /weir;
            error_page   403 =429 @refused;
            proxy_pass   http://backend;
        }}
        location = /weir {{
            internal;
            proxy_pass              http://weir/v1/auth?refuse=403&door=front;
            proxy_pass_request_body off;
            proxy_set_header        Content-Length     "";
            proxy_set_header        X-Original-Method  $request_method;
            proxy_set_header        X-Original-URI     $request_uri;
            proxy_set_header        X-Original-URL     "";
            proxy_set_header        X-Forwarded-Method "";
            proxy_set_header        X-Forwarded-Uri    "";
            proxy_set_header        X-Forwarded-For    $proxy_add_x_forwarded_for;
        }}
        location @refused {{ return 429; }}
    }}
"""


def configuration(folder, front, weir):
    shown = snippet("nginx", "nginx").replace("127.0.0.1:8080",
                                              front).replace("127.0.0.1:7380", weir)
    shown = shown.replace("timeout      100ms;", "timeout      10s;")  # a busy machine is no hang
    shown = shown.replace("timeout         100ms;", "timeout         10s;")
    assert "100ms" not in shown
    shown = shown.replace("/var/log/nginx/weir.log", os.path.join(folder, "weir.log"))
    return CONFIGURATION.format(folder=folder) + shown + ALL_HEADERS.format(folder=folder) + "}\n"


class Nginx(Proxy):
    """nginx in front of a server, ready when the constructor returns."""

    def __init__(self, server, weir=None):
        self.home = tempfile.TemporaryDirectory(prefix="weir-test-")
        os.chmod(self.home.name, 0o755)  # its worker may be another user
        for _ in range(20):  # another program may take the port first
            self.port = free_port()
            weir = weir or "127.0.0.1:%d" % server.ports["http"]
            write(self.path("conf"),
                  configuration(self.home.name, "127.0.0.1:%d" % self.port, weir))
            if self.start():
                return
        raise RuntimeError("nginx did not start: " + self.complaints())

    def path(self, name):
        return os.path.join(self.home.name, name)

    def start(self):
        """It writes its pid when it listens."""
        open(self.path("error.log"), "w").close()
        self.process = subprocess.Popen(["nginx", "-p", self.home.name, "-e",
                                         self.path("error.log"), "-c", self.path("conf")],
                                        stderr=subprocess.DEVNULL,
                                        env=dict(os.environ,
                                                 PATH=os.environ["PATH"] + ":/usr/sbin"))
        while self.process.poll() is None:
            if (os.path.exists(self.path("pid"))
                and open(self.path("pid")).read().strip() == str(self.process.pid)):
                return True
        if "Address already in use" in self.complaints():
            return False
        raise RuntimeError("nginx did not start: " + self.complaints())

    def complaints(self):
        return open(self.path("error.log")).read()


class OverSocket(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=30)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(30)
        self.sock.connect(self.path)


def behind_nginx(weir, *options, **how):
    return Server(weir, "--trusted-proxies", "127.0.0.1", *options, rules=RULES, **how)


@contextlib.contextmanager
def to_be_stopped(weir):
    """A server that the test itself stops; if it does not come so far, it is killed."""
    server = behind_nginx(weir)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()


def test_S2_nginx_refuses_with_429(weir):
    with behind_nginx(weir) as server, Nginx(server) as nginx:
        for left in (4, 3, 2, 1, 0):
            answer = nginx("/")
            assert answer.status == 200, answer.headers
            assert answer.headers["ratelimit"].startswith('"per-ip";r=%d' % left), answer.headers
        refused = nginx("/")
        assert refused.status == 429, (refused.status, refused.headers)
        assert refused.headers["retry-after"] == "2", (refused.status, refused.headers)
        assert refused.headers["ratelimit"] == '"per-ip";r=0;t=2', refused.headers
        assert refused.headers["ratelimit-policy"] == '"per-ip";q=5;w=10', refused.headers
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["status"] == 429
        assert nginx("/", client="127.0.0.3").status == 200  # somebody else
        server.clock(2)
        assert nginx("/").status == 200 and nginx("/").status == 429  # Retry-After was true


def test_S2_nginx_denied_is_403(weir):
    with behind_nginx(weir) as server, Nginx(server) as nginx:
        denied = nginx("/", client="127.0.0.66")
        assert denied.status == 403 and "retry-after" not in denied.headers, denied.headers
        assert denied.json()["title"] == "Denied", denied.headers
        own = nginx("/forbidden")
        # the backend's own refusals stay as they are
        assert own.status == 403 and own.body == b"its own\n", own.body


def test_S2_nginx_logs_who_was_refused_and_why(weir):
    with behind_nginx(weir) as server, Nginx(server) as nginx:
        for _ in range(6):
            nginx("/")
        nginx("/", client="127.0.0.66")
        nginx("/forbidden", client="127.0.0.3")

        def logged():
            with open(nginx.path("weir.log")) as file:
                lines = [json.loads(line) for line in file]
            return len(lines) == 8 and lines

        lines = until("the lines are there", logged)
        told = [tuple(line[name] for name in ("remote_addr", "status", "level", "limit",
                                              "retry")) for line in lines[5:]]
        assert told == [("127.0.0.2", "429", "3", '"per-ip";r=0;t=2', "2"),
                        ("127.0.0.66", "403", "3", "", ""),
                        ("127.0.0.3", "403", "0", '"per-ip";r=4;t=2', "")], told


def test_S2_nginx_limits_per_path(weir):
    with behind_nginx(weir) as server, Nginx(server) as nginx:
        assert [nginx("/login", "POST", body=b"x" * 100_000).status
                for _ in range(3)] == [200, 200, 429]
        assert nginx("/login?again=1", "POST").status == 429  # the query is no way around it
        assert nginx("/a/../login", "POST").status == 429  # nor dots, nor escapes
        assert nginx("/%6cogin", "POST").status == nginx("//login", "POST").status == 429
        # another method, another path
        assert nginx("/login").status == 200 and nginx("/").status == 200
        assert nginx("/login", "POST", client="127.0.0.3", body=iter([b"a", b"b"]),
                     encode_chunked=True, headers={"Transfer-Encoding": "chunked"}).status == 200
        assert nginx("/", "HEAD", client="127.0.0.3").status == 200
        assert [nginx("/", client="127.0.0.4", headers={"User-Agent": "a bot"}).status
                for _ in range(2)] == [200, 429]


def test_R4_login_protection_of_the_cookbook(weir):
    """One client that guesses is stopped, however it spells the page; nobody else is."""
    with open(os.path.join(ROOT, "docs/rules.md")) as page:
        rules = page.read().split("**Login protection.**")[1].split("```yaml\n")[1].split("```")[0]
    server = Server(weir, "--trusted-proxies", "127.0.0.1", rules="version: 1\nrules:\n" + rules)
    with server, Nginx(server) as nginx:
        assert [nginx("/login", "POST").status for _ in range(6)] == [200] * 5 + [429]
        for path in ("/LOGIN", "/login/", "/login;x=1", "/login%20", "/Login//"):
            assert nginx(path, "POST").status == 429, path
        for client in range(30):
            answer = nginx("/login", "POST", client="127.0.1.%d" % client)
            assert answer.status == 200, (client, answer.status)
        last = [nginx("/login", "POST") for _ in range(20)][-1]
        assert int(last.headers["retry-after"]) > 600, last.headers  # banned
        assert nginx("/login", "POST", client="127.0.1.1").status == 200


def test_S2_nginx_forged_headers_are_ignored(weir):
    """However a client names itself, it is the one that nginx sees."""
    with behind_nginx(weir) as server, Nginx(server) as nginx:
        forged = {"X-Forwarded-For": "198.51.100.%d", "X-Real-IP": "198.51.100.%d",
                  "Forwarded": "for=198.51.100.%d", "X-Original-URI": "/free/%d",
                  "X-Forwarded-Uri": "/free/%d", "X-Original-URL": "/free/%d",
                  "X-Original-Method": "M%d", "X-Forwarded-Method": "M%d",
                  "Weir-Level": "%d", "Authorization": "Bearer %d", "Host": "host-%d.example",
                  "Origin": "https://host-%d.example"}
        answers = [nginx("/", headers={name: value % i for name, value in forged.items()})
                   for i in range(8)]
        assert [answer.status for answer in answers] == [200] * 5 + [429] * 3
        assert answers[0].body == b"GET / level=0\n", answers[0].body


def test_S2_nginx_passing_all_headers(weir):
    """With $proxy_add_x_forwarded_for what the client wrote comes first, and what nginx saw last:
    the last counts."""
    with behind_nginx(weir) as server, Nginx(server) as nginx:
        for i in range(7):
            connection = OverSocket(nginx.path("all-headers"))
            forged = {"X-Forwarded-For": "198.51.100.%d, 127.0.0.1" % i, "X-Forwarded-Uri": "/free",
                      "X-Original-URL": "/free", "Authorization": "Basic eDp5"}
            connection.request("GET", "/", headers=dict(forged, **{"X-Test-Address": "192.0.2.1"}))
            answer = connection.getresponse()
            assert answer.status == (200 if i < 5 else 429), (i, answer.status, answer.read())
            connection.close()


def test_S2_nginx_a_header_that_comes_twice(weir):
    """nginx tells Weir the first of them, and so the backend too."""
    with behind_nginx(weir) as server, Nginx(server) as nginx:
        connection = http.client.HTTPConnection("127.0.0.1", nginx.port, timeout=30)
        connection.putrequest("GET", "/headers")
        for agent in ("one", "another-bot"):
            connection.putheader("User-Agent", agent)
        connection.endheaders()
        answer = connection.getresponse()
        assert answer.status == 200, (answer.status, answer.read())
        connection.close()


def test_S2_nginx_keeps_connections(weir):
    with behind_nginx(weir) as server, Nginx(server) as nginx, server.resp() as client:
        before = client.json("WEIR.STATUS")["totals"]["connections"]
        for i in range(50):
            nginx("/", client="127.0.1.%d" % (i + 1))
        totals = client.json("WEIR.STATUS")["totals"]
        assert totals["connections"] == before + 1 and totals["http_requests"] == 50, totals


def test_S2_nginx_over_a_unix_socket(weir):
    """A unix socket is as near as the loopback, and 127.0.0.1 is a proxy."""
    with tempfile.TemporaryDirectory(prefix="weir-test-") as folder:
        path = os.path.join(folder, "http.sock")
        with behind_nginx(weir, "--socket-mode", "0666", http=path) as server:
            os.chmod(folder, 0o755)
            with Nginx(server, "unix:" + path) as nginx:
                assert [nginx("/").status for _ in range(6)] == [200] * 5 + [429]
                assert nginx("/", client="127.0.0.3").status == 200


def test_S2_nginx_goes_on_without_weir(weir):
    with to_be_stopped(weir) as server, Nginx(server) as nginx:
        assert nginx("/").status == 200
        server.stop()
        for _ in range(10):
            answer = nginx("/")
            assert answer.status == 200, (answer.status, answer.body)
            assert answer.body == b"GET / level=\n", (answer.status, answer.body)


def test_S3_level_header_to_the_backend(weir):
    with behind_nginx(weir) as server, Nginx(server) as nginx:
        levels = [nginx("/page").body.decode() for _ in range(5)]
        assert levels[0] == "GET /page level=0\n", levels
        assert [int(text[-2]) for text in levels] == sorted(int(text[-2])
                                                            for text in levels), levels
        assert levels[-1] == "GET /page level=2\n", levels
        assert nginx("/page").status == 429  # level 3 does not get there
        # and nobody can pretend
        assert nginx("/page", client="127.0.0.3",
                     headers={"Weir-Level": "3"}).body == b"GET /page level=0\n"


if __name__ == "__main__":
    run_tests(globals())
