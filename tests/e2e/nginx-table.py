#!/usr/bin/env python3
"""nginx-table.py MODULE [TEST...] -- the table of a real nginx shared with other programs of the
host: weir serve, and the command line."""
import json
import os
import re
import subprocess
import zlib

from clients.world import ROOT
from nginxing import Backend, nginx_with, program
from serving import Server, run_tests, until, write

RULES = """version: 1
rules:
  - { name: hourly, key: "{arg.user}", limit: 20/1h }
  - name: login
    match: { uri: /login }
    key: "{arg.name}"
    limit: 2/1h
    ban: { refusals: 3/1h, for: 10m }
guards:
  - { name: backend, match: { uri: /slow }, concurrency: { max: 7 } }
"""
SERVER = "location / { try_files /index.html =404; }"


def shared_nginx(module, table="shared.table"):
    return nginx_with(module, RULES, "weir_rules rules.yaml;", SERVER, workers=2,
                      main="weir_table %s;" % table)


def served(module, table):
    return Server(program(module), rules=RULES, table=table, clock=False)


def interleave(nginx, client):
    granted = 0
    for _ in range(15):
        granted += nginx.get("/?user=ann").status == 200
        granted += client("WEIR.CHECK", "arg.user", "ann")[0]
    return granted


def test_N3_one_limit_with_weir_serve(module):
    with shared_nginx(module) as nginx, served(module, nginx.path("shared.table")) as server:
        with server.resp() as client:
            assert interleave(nginx, client) == 20
            assert nginx.get("/?user=ann").status == 429
            nginx.reload()
            assert nginx.get("/?user=ann").status == 429
            assert client("WEIR.CHECK", "arg.user", "ann")[0] == 0
            # a ban by one of them is everybody's
            assert nginx.statuses(5, "/login?name=x") == [200, 200, 429, 429, 429]
            assert client("WEIR.CHECK", "uri", "/login", "arg.name", "x")[8] == "banned"


def test_N3_one_zone_with_a_program_of_the_library(module):
    """By the limiter's name, as weir_limiter_next has it."""
    http = "weir_req_zone $arg_k zone=one:1m rate=token-bucket 5/1h;"
    with nginx_with(module, None, http, "location / { weir_req zone=one; }", workers=2) as nginx:
        table = nginx.path("nginx.weir")
        name = "nginx:one:%08x0" % (zlib.crc32(b"one$arg_ktoken-bucket") ^ 0xffffffff)
        assert nginx.statuses(3, "/?k=a") == [200] * 3
        took = [subprocess.run([program(module), "take", "--table", table, "--name", name, "a"],
                               capture_output=True, timeout=60).returncode for _ in range(3)]
        assert took == [0, 0, 1], took
        assert nginx.statuses(2, "/?k=a") == [429] * 2
        assert nginx.get("/?k=b").status == 200


def test_N3_by_hand_without_a_server(module):
    with shared_nginx(module) as nginx:
        def by_hand(command, *words):
            return subprocess.run([program(module), command, "--table", nginx.path("shared.table"),
                                   *words], capture_output=True, text=True, timeout=60)

        assert nginx.statuses(6, "/login?name=x") == [200, 200] + [429] * 4
        done = by_hand("reset", "--rules", nginx.path("rules.yaml"), "uri=/login", "arg.name=x")
        assert done.returncode == 0, done
        assert nginx.statuses(3, "/login?name=x") == [200, 200, 429]
        assert by_hand("mode", "shadow", "--rule", "login").returncode == 0
        assert nginx.get("/login?name=x").status == 200
        assert by_hand("mode", "as-written", "--rule", "login").returncode == 0
        assert nginx.get("/login?name=x").status == 429


def test_N4_a_log_that_can_be_replayed(module):
    """As docs/nginx.md shows it: who was refused, and by which rule; and the same again."""
    rules = """version: 1
rules:
  - { name: login, match: { uri: /login }, paths: loose, key: "{ip}", limit: 2/1h }
"""
    with open(os.path.join(ROOT, "docs/nginx.md")) as page:
        log = re.search(r"^log_format weir (.*?)^access_log \S+", page.read(), re.M | re.S).group(1)
    with nginx_with(module, rules) as nginx:
        nginx.configure(http="weir_rules rules.yaml; log_format weir " + log,
                        server="access_log weir.log weir; " + SERVER)
        nginx.reload()
        assert nginx.statuses(3, "/login?a=%22") == [200, 200, 429]
        assert nginx.get("/").status == 200
        path = nginx.path("weir.log")
        until("four lines", lambda: len(open(path).readlines()) == 4, 20)
        with open(path) as file:
            lines = [json.loads(line) for line in file]
        said = [(line["weir_rule"], line["weir_outcome"]) for line in lines]
        assert said == [("login", "granted")] * 2 + [("login", "limited"), ("", "granted")], lines
        done = subprocess.run([program(module), "replay", "--json", "--rules",
                               nginx.path("rules.yaml"), path], capture_output=True, text=True)
        assert done.returncode == 0, done
        said = json.loads(done.stdout)
        assert (said["requests"], said["sides"][0]["refused"]) == (4, 1), said


def test_N3_a_table_that_weir_serve_has_made(module):
    with Server(program(module), rules=RULES, table="made.table", clock=False) as server:
        table = os.path.abspath("made.table")
        try:
            with shared_nginx(module, table) as nginx, server.resp() as client:
                assert interleave(nginx, client) == 20
        finally:
            os.unlink(table)


def weir(module, *words):
    done = subprocess.run([program(module), *words], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_N3_the_command_line_looks_at_it(module):
    with shared_nginx(module) as nginx:
        table, rules = nginx.path("shared.table"), nginx.path("rules.yaml")
        assert nginx.statuses(20, "/?user=ann") == [200] * 20
        nginx.statuses(5, "/login?name=x")
        code, said = weir(module, "table", "--json", table)
        found = json.loads(said)
        assert code == 0 and found["keys"] >= 2 and found["bans"] == 1, said
        assert found["guards"] == 1, said
        explain = ["explain", "--rules", rules, "--table", table, "--json"]
        code, said = weir(module, *explain, "arg.user=ann")
        assert code == 1 and "limited" in said, said
        code, said = weir(module, *explain, "arg.user=bob")
        assert code == 0, said
        code, said = weir(module, *explain, "uri=/login", "arg.name=x")
        assert code == 1 and "banned" in said, said
        with served(module, table) as server:
            code, said = weir(module, "top", "--once", "--json", "--every", "0", "--server",
                              server.addresses["http"])
            assert code == 0 and '"login"' in said, said
            assert "banned" in said or "bans" in said, said


def test_N5_guards_in_an_incident(module):
    """By a server on its table, without rules: as nginx.md says."""
    server = """location / { try_files /index.html =404; }"""
    rules = RULES.replace("match: { uri: /slow }", "match: { uri: / }, degrade: 1")
    with nginx_with(module, rules, "weir_rules rules.yaml;", server) as nginx:
        table = nginx.path("nginx.weir")
        assert nginx.get("/").status == 200
        for words in (["guards", "backend", "--force", "open"], ["degrade", "1"]):
            code, said = weir(module, *words, "--table", table)
            assert code == 2 and "weir serve --table FILE, which needs no rules" in said, said
        with Server(program(module), table=table, clock=False) as by_hand, by_hand.resp() as ask:
            for on, off in (("WEIR.GUARD.FORCE", "backend", "open"),
                            ("WEIR.GUARD.FORCE", "backend", "none")), \
                    (("WEIR.DEGRADE.SET", "1"), ("WEIR.DEGRADE.SET", "0")):
                ask.json(*on)
                assert nginx.get("/").status == 503
                ask.json(*off)
                assert nginx.get("/").status == 200


def test_N5_a_guard_in_shadow(module):
    """weir guards tells how many it would have refused."""
    rules = RULES.replace("max: 7 }", "max: 1 }, mode: shadow")
    server = """location / { try_files /index.html =404; }
                location /slow { proxy_pass http://unix:{folder}/backend; }"""
    with nginx_with(module, rules, "weir_rules rules.yaml;", server) as nginx:
        with Backend(nginx) as backend:
            asks = [nginx.send("/slow") for _ in range(3)]
            for connection in [backend.accept() for _ in asks]:
                backend.answer(connection)
            assert [ask.answer().status for ask in asks] == [200] * 3
        code, said = weir(module, "guards", "--table", nginx.path("nginx.weir"))
        assert code == 0 and "\n  shadow: 2 would have been refused\n" in said, said
        assert max(map(len, said.splitlines())) <= 80, said


COUNTED = """version: 1
rules:
  - { name: hourly, key: "{arg.user}", limit: 20/1h }
  - name: login
    match: { uri: /login }
    key: "{arg.name}"
    limit: 2/1h
    ban: { refusals: 3/1h, for: 10m }
  - { name: trial, limit: 1/1h, mode: shadow }
lists:
  deny: { arg.bad: ["yes"] }
"""
FIGURES = ["allowed", "refused", "banned", "shadow_refused"]


def counted(nginx):
    said = json.loads(nginx.get("/status").body)
    return {rule["name"]: [rule[name] for name in FIGURES] for rule in said["rules"]}, (
        said["requests"])


def test_N5_counts_of_all_workers(module):
    server = SERVER + "location = /status { weir_check off; weir_status; }"
    with nginx_with(module, COUNTED, "weir_rules rules.yaml;", server, workers=3) as nginx:
        assert counted(nginx)[1]["checked"] == 0
        assert nginx.statuses(22, "/?user=ann").count(200) == 20
        assert nginx.statuses(7, "/login?name=x") == [200] * 2 + [429] * 5
        assert nginx.statuses(2, "/?bad=yes") == [403] * 2
        # a worker shows what others have shared: 100 ms after a request at the latest
        want = {"hourly": [20, 2, 0, 0], "login": [2, 5, 2, 0], "trial": [1, 0, 0, 21]}
        asked = {"checked": 31, "allowed": 22, "refused": 9, "denied": 2}

        def is_counted():
            rules, requests = counted(nginx)
            return rules == want and {name: requests[name] for name in asked} == asked
        until("all are counted", is_counted, 60)
        metrics = nginx.get("/status?format=prometheus").body.decode()
        for line in ['weir_decisions_total{rule="login",outcome="refused"} 5',
                     'weir_decisions_banned_total{rule="login"} 2',
                     'weir_checks_total{outcome="allowed"} 22',
                     'weir_checks_listed_total{list="deny"} 2']:
            assert "\n" + line + "\n" in metrics, metrics
        nginx.reload()
        assert counted(nginx)[0] == want
        assert nginx.get("/?user=bob").status == 200
        want["hourly"][0], want["trial"][3] = 21, 22
        until("it goes on", lambda: counted(nginx)[0] == want, 60)
        write(nginx.path("rules.yaml"), COUNTED.replace("limit: 20/1h", "limit: 30/1h"))
        nginx.reload()
        assert counted(nginx)[0] == want


def test_N5_limits_have_names_for_people(module):
    """The same on the status page and by `weir table`; what limits nothing is left out."""
    server = SERVER + "location = /status { weir_check off; weir_status; }"
    http = "weir_rules rules.yaml; weir_req_zone $arg_k zone=one:32k rate=1r/h;"
    with nginx_with(module, COUNTED, http, server) as nginx:
        page = json.loads(nginx.get("/status").body)["limits"]
        wanted = ["hourly, limit 1", "login, limit 1", "login, refusals for its ban",
                  "nginx zone one", "trial, limit 1"]
        assert sorted(limit["name"] for limit in page) == wanted, page
        code, said = weir(module, "table", "--json", nginx.path("nginx.weir"))
        assert code == 0 and sorted(l["name"] for l in json.loads(said)["limiters"]) == wanted, said
        code, said = weir(module, "table", nginx.path("nginx.weir"))
        assert all(name in said for name in wanted) and "@" not in said, said
        top = ["top", "--table", nginx.path("nginx.weir"), "--once", "--rules",
               nginx.path("rules.yaml")]
        for words in (top, top + ["--json"]):
            code, said = weir(module, *words)
            assert code == 0 and not set("@#!") & set(said), said


def test_N5_zones_with_long_names(module):
    """Each has figures of its own, under its whole name."""
    names = ["z" * 100 + end for end in ("a", "b")]
    http = "".join("weir_req_zone $arg_k zone=%s:32k rate=1r/h;" % name for name in names)
    server = "location = /status { weir_status; }" + "".join(
        "location /%s { weir_req zone=%s; try_files /index.html =404; }" % (name[-1], name)
        for name in names)
    with nginx_with(module, None, http, server) as nginx:
        assert nginx.statuses(2, "/a?k=1") == [200, 429] and nginx.statuses(1, "/b?k=1") == [200]
        zones = json.loads(nginx.get("/status").body)["zones"]
        assert [(zone["name"], zone["rejected"]) for zone in zones] == list(zip(names, [1, 0]))
        metrics = nginx.get("/status?format=prometheus").body.decode()
        for name, rejected in zip(names, [1, 0]):
            line = 'weir_zone_requests_total{zone="%s",kind="req",outcome="rejected"} %d'
            assert line % (name, rejected) in metrics.splitlines(), metrics


def test_N5_weir_top_on_its_table(module):
    with nginx_with(module, COUNTED, "weir_rules rules.yaml;", SERVER, workers=2) as nginx:
        assert nginx.statuses(7, "/login?name=x") == [200] * 2 + [429] * 5
        top = ["top", "--table", nginx.path("nginx.weir"), "--once", "--every", "0"]
        rules = ["--rules", nginx.path("rules.yaml")]

        def counts():
            code, said = weir(module, *top, *rules, "--json")
            assert code == 0, said
            login = json.loads(said)["modes"]["rules"][1]
            return [login[name] for name in ["rule", *FIGURES]]
        until("all are counted", lambda: counts() == ["login", 2, 5, 2, 0], 60)
        code, said = weir(module, *top, *rules)
        assert code == 0 and "2 allowed, 5 refused" in said and "bans 1" in said, said
        assert any(line.split()[:2] == ["trial", "shadow"] for line in said.splitlines()), said
        assert counts() == ["login", 2, 5, 2, 0]  # a look counts nothing
        for words, complaint in [([], "--table needs --rules FILE"),
                                 (["--rules", "/nonexistent"], "nonexistent"),
                                 (rules + ["--server", "127.0.0.1:1"], "not both")]:
            code, said = weir(module, *top, *words)
            assert code == 2 and complaint in said, said
        code, said = weir(module, "top", "--table", "/nonexistent", *rules)
        assert code == 2 and "/nonexistent" in said, said


if __name__ == "__main__":
    run_tests(globals())
