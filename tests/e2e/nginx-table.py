#!/usr/bin/env python3
"""nginx-table.py MODULE [TEST...] -- the table of a real nginx shared with other programs of the
host: weir serve, and the command line."""
import json
import os
import subprocess

from nginxing import nginx_with, program
from serving import Server, run_tests

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
        assert "backend" in said
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


if __name__ == "__main__":
    run_tests(globals())
