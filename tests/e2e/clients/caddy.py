#!/usr/bin/python3
"""caddy.py WEIR [TEST...] -- Caddy in front, its forward_auth asking /v1/auth: the configuration of
docs/clients.md, at work.  Where there is no Caddy it is skipped."""
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from clients.world import snippet  # noqa: E402
from serving import Proxy, Server, free_port, run_tests, write  # noqa: E402

RULES = """version: 1
rules:
  - name: login
    match: { uri: /login, method: POST }
    key: "{ip}"
    limit: 2/60s
  - name: per-ip
    key: "{ip}"
    limit: 5/10s
"""

# Before the piece in docs/clients.md, and what stands for the service behind: it says what it was
# told.
OPTIONS = "{\n    admin off\n    auto_https off\n}\n"
BACKEND = 'respond "{method} {uri} level={header.Weir-Level}"'


class Caddy(Proxy):
    """Caddy in front of a server, ready when the constructor returns."""

    def __init__(self, server):
        self.home = tempfile.TemporaryDirectory(prefix="weir-test-")
        self.port = free_port()
        shown = snippet("Caddy", "caddy").replace("127.0.0.1:8080", "127.0.0.1:%d" % self.port)
        shown = shown.replace("127.0.0.1:7380",
                              "127.0.0.1:%d"
                              % server.ports["http"]).replace("reverse_proxy 127.0.0.1:8081",
                                                              BACKEND)
        write(os.path.join(self.home.name, "Caddyfile"), OPTIONS + shown)
        home = {"HOME": self.home.name, "XDG_DATA_HOME": self.home.name,
                "XDG_CONFIG_HOME": self.home.name}
        command = ["caddy", "run", "--adapter", "caddyfile", "--config",
                   os.path.join(self.home.name, "Caddyfile")]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        text=True, env=dict(os.environ, **home))
        said = ""
        for line in self.process.stderr:
            said += line
            if "serving initial configuration" in line:
                return
        raise RuntimeError("caddy did not start: " + said)


def in_front(weir):
    return Server(weir, "--trusted-proxies", "127.0.0.1", rules=RULES)


def test_S2_caddy_refuses_with_429(weir):
    with in_front(weir) as server, Caddy(server) as caddy:
        assert [caddy("/").status for _ in range(5)] == [200] * 5
        refused = caddy("/")
        assert refused.status == 429, (refused.status, refused.headers)
        assert refused.headers["retry-after"] == "2", (refused.status, refused.headers)
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["code"] == "weir-limited"
        assert caddy("/", client="127.0.0.3").status == 200
        assert [caddy("/login", "POST", client="127.0.0.4").status
                for _ in range(3)] == [200, 200, 429]
        assert caddy("/login", client="127.0.0.4").status == 200


def test_S2_caddy_forged_headers_are_ignored(weir):
    with in_front(weir) as server, Caddy(server) as caddy:
        for i in range(7):
            forged = {"X-Forwarded-For": "198.51.100.%d" % i, "X-Real-IP": "198.51.100.%d" % i,
                      "X-Original-URI": "/free", "X-Forwarded-Uri": "/free",
                      "X-Original-URL": "/free", "X-Original-Method": "PUT",
                      "X-Forwarded-Method": "PUT", "Authorization": "Bearer x"}
            assert caddy("/", headers=forged).status == (200 if i < 5 else 429), i


def test_S3_caddy_level_header_to_the_backend(weir):
    with in_front(weir) as server, Caddy(server) as caddy:
        levels = [caddy("/page", headers={"Weir-Level": "9"}).body.decode() for _ in range(5)]
        assert levels[0] == "GET /page level=0" and levels[-1] == "GET /page level=2", levels


if __name__ == "__main__":
    if shutil.which("caddy"):
        run_tests(globals())
    print("skipped: caddy: there is none")
