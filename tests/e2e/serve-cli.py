#!/usr/bin/python3
"""serve-cli.py WEIR [TEST...] -- the command line against a running `weir serve`: every command
that asks one, as people and scripts meet it."""
import fcntl
import http.server
import json
import os
import pty
import re
import runpy
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import types

from serving import RULES, Error, Server, run_tests, until, write

LOGIN = "ip=192.0.2.7", "uri=/login"
VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors")


def address(server, door="http"):
    return "127.0.0.1:%d" % server.ports[door]


class Cli:
    """Runs weir with a server as its usual one."""

    def __init__(self, weir, server, token=None):
        self.weir = weir
        self.env = {k: value for k, value in os.environ.items() if not k.startswith("WEIR_")}
        self.env["WEIR_SERVER"] = server if isinstance(server, str) else address(server)
        self.env["NO_COLOR"] = "1"
        if token:
            self.env["WEIR_TOKEN"] = token

    def run(self, *words, stdin=None):
        return subprocess.run([self.weir, *words], env=self.env, input=stdin, capture_output=True,
                              text=True, timeout=60)

    def __call__(self, code, *words, stdin=None):
        """What it prints; it must end with that code."""
        done = self.run(*words, stdin=stdin)
        assert done.returncode == code, (words, done)
        said = ("rules set", "bans", "reload", "check: warning", "no rule, no guard")
        assert code == 2 or not done.stderr or any(part in done.stderr for part in said), done
        return done.stdout

    def says(self, code, text, *words):
        """This text is all it prints."""
        out = self(code, *words)
        assert out == text + "\n", (words, out)

    def has(self, code, part, *words):
        out = self(code, *words)
        assert part in out, (words, out)

    def fails(self, part, *words):
        """Wrong use, or no server: nothing on stdout, one line that says so."""
        done = self.run(*words)
        assert done.returncode == 2 and done.stdout == "", (words, done)
        assert part in done.stderr, (words, part, done)

    def json(self, code, *words):
        return json.loads(self(code, *words, "--json"))


def test_D5_rules_across_a_fleet_that_is_not_there(weir):
    rules = """version: 1
rules:
  - { name: all, limit: 5/1m, across: fleet, when_alone: closed }
  - { name: two, key: "{account}", limit: 9/1m, across: fleet }
"""
    with Server(weir, rules=rules) as server:
        cli = Cli(weir, server)
        done = cli.run("check", "ip=192.0.2.7")
        assert done.stdout == "allowed; the tightest is all: 4 of 5 left\n", done
        alone = "is across the fleet, and the server is in none: it counts on that host alone"
        assert alone in done.stderr, done
        done = cli.run("check", "ip=192.0.2.7", "account=ann")
        assert done.stderr.count("across") == 1, done
        assert "rule all and 1 more are across the fleet" in done.stderr, done
        cli.has(0, "across the fleet: this host is in no fleet, and counts alone", "explain",
                "ip=192.0.2.7")


def test_S6_check(weir):
    with Server(weir, rules=RULES) as server:
        cli = Cli(weir, server)
        cli.says(0, "allowed; the tightest is per-ip: 4 of 5 left", "check", "ip=192.0.2.7")
        cli.says(0, "allowed; the tightest is login: 1 of 2 left", "check", *LOGIN)
        for _ in range(2):  # charged once
            cli.says(0, "allowed; the tightest is login: 0 of 2 left", "check", *LOGIN, "--id", "a")
        cli.says(1, "refused by login (limited); free in 30s", "check", *LOGIN)
        cli.says(1, "refused by per-ip, for ever: it asks for more than can pass at once",
                 "check", "ip=192.0.2.8", "--cost", "6")
        cli.says(1, "refused: on the list deny", "check", "ip=203.0.113.9")
        cli.says(0, "allowed: on the list allow", "check", "account=root")
        done = cli.run("check", "tenant=x", "ip=x")
        assert done.returncode == 0 and "no rule looks at 'tenant'\n" in done.stderr, done
        assert "warning: 'x' is not an address\n" in done.stderr and "'ip'" not in done.stderr, done
        for said in "192.0.2.7:4711", "[2001:db8::7]:443":  # as the rules read it
            assert cli.run("check", "ip=" + said).stderr == ""
        for silent in "-q", "--json":
            assert cli.run("check", silent, "tenant=x").stderr == ""
        cli.says(0, "allowed: no rule applies", "check", "tenant=x")
        cli.says(0, "allowed; the tightest is per-ip: 4 of 5 left",
                 "check", "ip=192.0.2.9", "header.user-agent=a bot")
        cli.has(0, "; crawlers, in shadow, would refuse\n",
                "check", "ip=192.0.2.9", "header.User-Agent=a bot")
        assert cli(1, "check", "-q", "ip=203.0.113.9") == ""
        assert cli.json(1, "check", "ip=203.0.113.9")["code"] == "weir-denied"
        assert cli.json(0, "check", "ip=192.0.2.10")["remaining"] == 4
        cli.fails("'ip' is not an attribute: write name=value", "check", "ip")
        cli.fails("missing: NAME=VALUE...; usage: weir check", "check")
        cli.fails("there is no option --coste; did you mean --cost?",
                  "check", "--coste", "1", "ip=192.0.2.7")


def test_S6_a_check_without_rules_says_so(weir):
    """Once, and not for each attribute."""
    with Server(weir) as server:
        done = Cli(weir, server).run("check", *LOGIN)
        assert (done.returncode, done.stderr.count("\n")) == (0, 1), done
        assert "warning: the server has no rules\n" in done.stderr, done


def test_S6_explain_is_the_same_as_by_the_rule_file(weir):
    with Server(weir, rules=RULES) as server:
        cli = Cli(weir, server)
        for words in [["ip=192.0.2.7", "uri=/login"], ["ip=203.0.113.9", "url=/login"],
                      ["account=root"], ["ip=192.0.2.7", "header.User-Agent=bot"], ["uri=/"]]:
            for options in ["explain"], ["explain", "-a"]:
                here = cli.run(*options, "--rules", server.rules, "--now", "0", *words)
                there = cli.run(*options, *words)
                assert here.stdout == there.stdout, (words, here, there)
                assert here.returncode == there.returncode, (words, here, there)
        for _ in range(2):
            cli(0, "check", *LOGIN)
        cli.has(1, "0 of 2 left, refuses, free in 30s", "explain", *LOGIN)
        cli.has(0, "no rule looks at url; did you mean uri?",
                "explain", "ip=192.0.2.7", "url=/login")
        answer = cli.json(1, "explain", *LOGIN)
        assert answer["ruling"]["rule"] == "login", answer
        assert answer["rules"][2]["because"].startswith("there is no header.user-agent"), answer
        cli.fails("--cost needs --rules FILE", "explain", "--cost", "2", "ip=192.0.2.7")
        cli.fails("--table needs --rules FILE", "explain", "--table", "x", "ip=192.0.2.7")
        cli.fails("--rules or --server, not both",
                  "explain", "--rules", "x", "--server", "y", "ip=192.0.2.7")


def test_R4_bans(weir):
    with Server(weir, rules=RULES) as server:
        cli = Cli(weir, server)
        cli.says(0, "nobody is banned", "bans")
        cli.has(0, "banned 0s ago, for another 10m; strike 1\n",
                "bans", "--add", "--rule", "login", "192.0.2.9", "--for", "10m")
        said = [cli.run("check", *LOGIN).stdout for _ in range(6)]
        assert "refused by login (limited, now banned); free in 10m\n" in said, said
        server.clock(60)
        lines = sorted(cli(0, "bans").splitlines())
        assert [line.split()[1] for line in lines] == ["192.0.2.7", "192.0.2.9"], lines
        assert all("banned 1m ago, for another 9m" in line for line in lines), lines
        cli.says(1, "refused by login (banned); free in 9m", "check", "ip=192.0.2.9", "uri=/login")
        cli.says(0, "nobody is banned", "bans", "--rule", "per-ip")
        cli(0, "bans", "--add", "--rule", "login", "192.0.2.8", "--for", "10m")
        assert cli(0, "bans").split()[1] == "192.0.2.8"  # the newest first
        cli(0, "bans", "--lift", "--rule", "login", "192.0.2.8")
        assert len(cli.json(0, "bans")["bans"]) == 2
        assert cli.json(0, "bans", "--rule", "per-ip")["bans"] == []
        cli.fails("there is no rule 'a b%'", "bans", "--rule", "a b%")
        cli.says(0, "lifted", "bans", "--lift", "--rule", "login", "192.0.2.9")
        assert cli(1, "bans", "--lift", "--rule", "login", "192.0.2.9") == ""
        cli.fails("there is no rule 'nope'; known are ", "bans", "--lift", "--rule", "nope", "k")
        cli.fails("did you mean 'login'?", "bans", "--lift", "--rule", "logn", "192.0.2.9")
        assert cli(0, "check", "ip=192.0.2.9", "uri=/login").startswith("allowed")
        cli.fails("--add needs --for TIME", "bans", "--add", "--rule", "login", "192.0.2.9")
        cli.fails("there is no rule 'logn'; did you mean 'login'?",
                  "bans", "--add", "--rule", "logn", "--for", "1m", "192.0.2.9")
        cli.fails("--for must be a time such as 10m, not 'soon'",
                  "bans", "--add", "--rule", "login", "--for", "soon", "192.0.2.9")
        cli.fails("--now needs --table", "bans", "--now", "3")


def test_R4_bans_of_rules_that_are_not_in_force(weir):
    """A ban belongs to its rule's name: renamed, off or in shadow, the rule lets the key in."""
    with Server(weir, rules=RULES) as server:
        cli = Cli(weir, server)
        cli(0, "bans", "--add", "--rule", "login", "192.0.2.9", "--for", "10m")
        cli(0, "bans", "--add", "--rule", "per-ip", "192.0.2.9", "--for", "10m")
        assert "not in force" not in cli(0, "bans")
        for mode in "shadow", "off":
            cli(0, "mode", mode, "--rule", "login")
            lines = cli(0, "bans").splitlines()
            marked = [line for line in lines if "not in force" in line]
            assert len(lines) == 2 and len(marked) == 1, lines
            assert marked[0].startswith("login "), lines
            assert marked[0].endswith("; not in force: the rule's mode is " + mode), lines
        cli(0, "mode", "as-written", "--rule", "login")
        assert cli(0, "rules", "set", "-", stdin=RULES.replace("name: login", "name: sign-in"))
        lines = [line for line in cli(0, "bans").splitlines() if "not in force" in line]
        assert len(lines) == 1 and lines[0].startswith("login "), lines
        assert lines[0].endswith("; not in force: the server has no such rule"), lines
        cli(0, "rules", "set", "-", stdin="version: 1\n")
        assert cli(0, "bans").count("not in force: the server has no such rule\n") == 2
        assert cli(0, "check", "ip=192.0.2.9", "uri=/login").startswith("allowed")
        cli(0, "rules", "set", "-", stdin=RULES)  # the name is back
        assert "not in force" not in cli(0, "bans")
        cli.has(1, "(banned)", "check", "ip=192.0.2.9", "uri=/login")


def test_R3_lists(weir):
    with Server(weir, rules=RULES) as server:
        cli = Cli(weir, server)
        cli.says(0, "deny             ip               1 entry\n"
                    "allow            account          1 entry", "lists")
        cli.says(0, "2 added; deny ip now has 3",
                 "lists", "--add", "deny", "ip", "198.51.100.7", "10.0.0.0/8")
        cli.says(1, "refused: on the list deny", "check", "ip=10.1.2.3")
        assert "added    deny             ip               10.0.0.0/8" in cli(0, "lists")
        cli.says(0, "1 removed; deny ip now has 2", "lists", "--remove", "deny", "ip", "10.0.0.0/8")
        assert cli(0, "check", "ip=10.1.2.3").startswith("allowed")
        assert {entry["list"] for entry in cli.json(0, "lists")["lists"]} == {"deny", "allow"}
        cli.says(0, "ip               198.51.100.7\n"
                    "ip               203.0.113.0/24", "lists", "deny")
        assert cli.json(0, "lists", "allow")["lists"][0]["values"] == ["root"]
        cli.fails("there is no list 'dney'; did you mean 'deny'?", "lists", "dney")
        cli.fails("one list is shown at a time", "lists", "deny", "allow")
        cli.says(0, "0 removed: not on the list; deny ip now has 2",
                 "lists", "--remove", "deny", "ip", "10.0.0.0/8")
        cli.says(0, "no rule or list looked at ipp before; did you mean ip?\n"
                    "1 added; deny ipp now has 1", "lists", "--add", "deny", "ipp", "10.0.0.1")
        cli.fails("there is no list 'dny'; did you mean 'deny'?",
                  "lists", "--add", "dny", "ip", "10.0.0.1")
        cli.fails("a list, an attribute and entries are needed", "lists", "--add", "deny", "ip")
        cli.fails("--add or --remove, not both",
                  "lists", "--add", "--remove", "deny", "ip", "10.0.0.1")


def test_R5_mode(weir):
    with Server(weir, rules=RULES) as server:
        cli = Cli(weir, server)
        for _ in range(3):
            cli.run("check", *LOGIN)
        lines = cli(0, "mode").splitlines()
        assert lines[0].split() == ["all", "rules", "enforce"], lines
        assert lines[2].split() == ["login", "enforce", "2", "allowed,", "1", "refused"], lines
        cli.says(0, "login: shadow", "mode", "shadow", "--rule", "login")
        cli.has(0, "login, in shadow, would refuse\n", "check", *LOGIN)
        assert "shadow (by hand; written: enforce)" in cli(0, "mode")
        one = "\nMODE        1 rule switched by hand: weir mode\n"
        cli.has(0, one, "status")
        cli.says(0, "all rules: off", "mode", "off")
        cli.has(0, "\nMODE        off for all rules, by hand" + one, "status")
        assert cli.json(0, "status")["modes"] == {"by_hand": "off", "rules_by_hand": 1}
        assert cli(0, "check", "ip=203.0.113.9").startswith("allowed")
        cli(0, "mode", "off", "--rule", "per-ip")
        cli.says(0, "all rules: as-written (enforce)\n"
                    "still switched by hand: rule per-ip (off), rule login (shadow); "
                    "--rule NAME as-written ends one", "mode", "as-written")
        cli.says(0, "per-ip: as-written (enforce)", "mode", "as-written", "--rule", "per-ip")
        cli.says(0, "login: as-written (enforce)", "mode", "as-written", "--rule", "login")
        cli.says(0, "all rules: as-written (enforce)", "mode", "as-written")
        assert "MODE" not in cli(0, "status")
        assert cli(1, "check", "ip=203.0.113.9")
        assert cli.json(0, "mode")["in_force"] == "enforce"
        cli.fails("there is no mode 'shado'; did you mean 'shadow'?", "mode", "shado")
        cli.fails("there is no rule or guard 'logn'; did you mean 'login'?",
                  "mode", "off", "--rule", "logn")


def test_R6_rules(weir):
    with Server(weir, rules=RULES) as server:
        cli = Cli(weir, server)
        assert cli(0, "rules", "get") == RULES
        other = os.path.join(server.folder, "other.yaml")
        write(other, RULES.replace("limit: 2/60s", "limt: 2/60s").replace("5/10s", "5/10x"))
        done = cli.run("rules", "set", other)
        assert done.returncode == 1 and "nothing was changed" in done.stderr, done
        assert done.stdout == cli.run("rules", "check", other).stdout, done
        assert cli(0, "rules", "get") == RULES
        assert len(cli.json(1, "rules", "set", other)["problems"]) == 2
        new = RULES.replace("2/60s", "3/60s")
        out = cli(0, "rules", "set", "-", stdin=new)
        assert out.startswith("3 rules, 3 limits, 0 guards, 2 list entries in force; "), out
        assert out.endswith(", written to %s\n" % server.rules), out
        assert cli(0, "rules", "get") == new and open(server.rules).read() == new
        write(server.rules, RULES)
        assert cli.json(0, "rules", "reload")["rules"] == 3
        assert cli(0, "rules", "get") == RULES
        write(server.rules, "version: 1\nrulez: []\n")
        done = cli.run("rules", "reload")
        assert done.returncode == 1 and "nothing was changed" in done.stderr, done
        assert "rulez" in done.stderr, done
        assert cli(0, "rules", "get") == RULES
        assert "the last reload was refused" in cli(0, "status")
        cli.fails("No such file", "rules", "set", os.path.join(server.folder, "none"))
        cli.fails("missing: FILE", "rules", "set")


def test_R6_warnings_of_rules_in_force(weir):
    """Those of `rules check` are said at every door that puts rules in force."""
    wrong = RULES.replace("uri: /login", "path: /login").replace("  deny:", "  denied:")
    assert "path: /login" in wrong and "denied:" in wrong
    with Server(weir, rules=wrong) as server:
        cli = Cli(weir, server)
        said = cli.run("rules", "check", server.rules).stderr.splitlines()
        assert len(said) == 2 and "did you mean uri?" in said[0], said
        assert "no rule names the list 'denied'" in said[1], said
        start = server.complaints().splitlines()
        assert start == ["weir serve: " + line for line in said], start
        assert cli.run("rules", "reload").stderr.splitlines() == said
        assert server.complaints().splitlines() == start * 2
        assert cli.run("rules", "set", server.rules).stderr.splitlines() == said
        warned = cli.json(0, "status")["rules"]["warnings"]
        assert [w["line"] for w in warned] == [int(line.split(":")[1]) for line in said], warned
        write(server.rules, RULES)
        assert cli.run("rules", "reload").stderr == ""
        assert cli.json(0, "status")["rules"]["warnings"] == []
    with Server(weir) as server:
        out = Cli(weir, server)(0, "rules", "set", "-", stdin=RULES)
        assert out.endswith(", until the server ends\n"), out


def test_S6_reset(weir):
    with Server(weir, rules=RULES) as server:
        cli = Cli(weir, server)
        for _ in range(2):
            cli(0, "check", *LOGIN)
        cli(1, "check", *LOGIN)
        cli.says(0, "login: usage and bans of this request's keys forgotten",
                 "reset", "--rule", "login", *LOGIN)
        cli.says(0, "allowed; the tightest is login: 1 of 2 left", "check", *LOGIN)
        out = cli(0, "reset", *LOGIN)
        assert re.fullmatch("login, [a-z-]+: usage and bans of this request's keys forgotten\n"
                            "|[a-z-]+, login: usage and bans of this request's keys forgotten\n", out)
        assert cli.json(0, "reset", "ip=192.0.2.7")["rule"] is None
        cli.says(1, "nothing to forget: login does not apply to this request; "
                    "weir explain says why", "reset", "--rule", "login", "ip=192.0.2.7")
        assert cli.json(1, "reset", "--rule", "login", "ip=192.0.2.7")["reset"] == 0
        cli.fails("there is no rule 'x'", "reset", "--rule", "x", "ip=192.0.2.7")
        cli(0, "bans", "--add", "--rule", "login", "--for", "1h", "192.0.2.7")
        assert cli(0, "reset", "ip=192.0.2.7").endswith(
            "still banned by login, not applied to this request: name the attributes that are looked "
            "at (weir explain), or weir bans --lift\n")
        cli(0, "reset", *LOGIN)
        assert "still banned" not in cli(0, "reset", "ip=192.0.2.7")
        cli.fails("missing: NAME=VALUE...; usage: weir reset", "reset")


def test_S6_a_table_is_reset_by_its_own_rules_only(weir):
    with tempfile.TemporaryDirectory() as folder:
        table, other = os.path.join(folder, "weir.table"), os.path.join(folder, "other.yaml")
        write(other, RULES.replace('key: "{ip', 'key: "{host|x}:{ip'))
        with Server(weir, rules=RULES, table=table, clock=False) as server:
            cli, words = Cli(weir, server), ("--table", table, "--rule", "login", *LOGIN)
            for _ in range(2):
                cli(0, "check", *LOGIN)
            cli.has(1, "login does not apply to this request, or has another key in the table",
                    "reset", "--rules", other, *words)
            cli(1, "check", *LOGIN)
            cli(0, "reset", "--rules", server.rules, *words)
            cli(0, "check", *LOGIN)


def test_S6_status(weir):
    with Server(weir, rules=RULES) as server:
        cli = Cli(weir, server)
        cli(0, "check", "ip=192.0.2.7")
        cli(1, "check", "ip=203.0.113.9")
        out = cli(0, "status")
        for part in "pid %d" % server.pid, "http " + address(server), "1 allowed, 1 refused":
            assert part in out, (part, out)
        assert cli.json(0, "status")["pid"] == server.pid
        assert "no rule applied" not in out, out
        cli(0, "check", "address=192.0.2.7")
        assert "2 allowed, 1 refused; no rule applied to 1 of them: weir explain\n" in cli(0, "status")
        cli.fails("takes no words", "status", "now")
    with tempfile.TemporaryDirectory() as folder, Server(weir, table=folder + "/table") as server:
        cli = Cli(weir, server)
        table, out = cli.json(0, "status")["table"], cli(0, "status")
        assert 0 < table["bytes_on_disk"] < table["bytes"], table
        assert " on disk, " in out and " at most\n" in out, out


def test_S4_events(weir):
    with Server(weir, rules=RULES) as server:
        cli = Cli(weir, server)
        cli(0, "mode", "shadow")
        cli(0, "bans", "--add", "--rule", "login", "--for", "1m", "192.0.2.9")
        lines = cli(0, "events").splitlines()
        assert [line.split()[1] for line in lines] == ["start", "mode", "ban"], lines
        assert "rule login  key 192.0.2.9" in lines[2], lines
        events = [json.loads(line) for line in cli(0, "events", "--json").splitlines()]
        assert [event["id"] for event in events] == [1, 2, 3], events
        assert cli(0, "events", "--last", "1").splitlines() == lines[2:]
        assert cli(0, "events", "--after", "1").splitlines() == lines[1:]
        assert cli(0, "events", "--follow", "--count", "2").splitlines() == lines[:2]
        assert cli(0, "events", "--after", "3") == ""
        cli.fails("must be a whole number", "events", "--count", "0")


def follow(cli, *words):
    return subprocess.Popen([cli.weir, "events", "--follow", "--json", *words], env=cli.env,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_S4_events_follow(weir):
    """Those that happen come at once; the server dies and another takes its place: it goes on."""
    folder = tempfile.mkdtemp(prefix="weir-test-")
    path = os.path.join(folder, "http")
    server = Server(weir, rules=RULES, http=path)
    try:
        cli = Cli(weir, path)
        process = follow(cli, "--count", "4")
        assert json.loads(process.stdout.readline())["event"] == "start"
        for mode in ["shadow", "off"]:
            cli(0, "mode", mode)
            assert json.loads(process.stdout.readline())["mode"] == mode
        server.kill()
        assert "trying again" in process.stderr.readline()
        server.start()
        assert json.loads(process.stdout.readline())["event"] == "start"
        assert process.wait(timeout=60) == 0 and process.stdout.read() == ""
        process.stdout.close()
        process.stderr.close()
        server.stop()
    finally:
        if server.process.poll() is None:
            server.kill()
        if os.path.exists(path):
            os.unlink(path)
        os.rmdir(folder)


def test_S6_top(weir):
    with Server(weir, rules=RULES) as server:
        cli = Cli(weir, server)
        for _ in range(4):
            cli.run("check", *LOGIN)
        out = cli(0, "top", "--every", "0")  # no terminal: once
        assert "total 2 allowed, 2 refused" in out and " REFUSED  BANNED " in out, out
        assert "\033" not in out, out
        lines = [line.split() for line in out.splitlines()]
        assert ["login", "enforce", "-", "-", "2", "2", "0", "0"] in lines, out
        assert ["192.0.2.7", "login", "2"] in lines, out
        answer = cli.json(0, "top", "--every", "1ms")
        rates = answer["rates"]
        assert answer["status"]["pid"] == server.pid and rates["allowed"] is None, answer
        assert answer["top"]["top"][0]["refused"] == 2, answer
        assert {rule["rule"] for rule in rates["rules"]} == {"per-ip", "login", "crawlers"}
        assert "not in force" not in out, out
        cli(0, "rules", "set", "-", stdin=RULES.replace("name: login", "name: signin"))
        out = cli(0, "top", "--every", "0")
        lines = [line.split() for line in out.splitlines()]
        assert ["192.0.2.7", "login", "2", "not", "in", "force"] in lines, out
    with Server(weir, rules=RULES, clock=False) as server:  # a clock that goes: rates are known
        cli = Cli(weir, server)
        rates = cli.json(0, "top", "--every", "50ms")["rates"]
        assert rates["interval_ms"] > 0 and rates["allowed"] == 0 and rates["refused"] == 0, rates


def test_S6_top_shows_a_rule_whose_keys_are_banned(weir):
    """Refusals by a ban are refusals, in the rates and for Prometheus too; and every line fits into
    80 columns, however large the numbers are."""
    with Server(weir, rules=RULES, clock=False) as server:
        cli = Cli(weir, server)
        cli(0, "bans", "--add", "--rule", "login", "192.0.2.7", "--for", "10m")
        stop = threading.Event()

        def knock():
            with server.resp() as client:
                while not stop.wait(0.001):
                    client("WEIR.CHECK", "ip", "192.0.2.7", "uri", "/login")

        thread = threading.Thread(target=knock)
        thread.start()
        answer = cli.json(0, "top", "--every", "300ms")["rates"]
        out = cli(0, "top", "--every", "300ms")
        stop.set()
        thread.join()
        rule, = [rule for rule in answer["rules"] if rule["rule"] == "login"]
        assert rule["refused"] > 0, rule
        line, = [line.split() for line in out.splitlines() if line.startswith("login")]
        assert float(line[3]) > 0 and line[5] == line[6] != "0", out
        assert max(map(len, out.splitlines())) <= 80, out
        metrics = server.http()("GET", "/metrics").body.decode()
        refused = re.search(r'decisions_total{rule="login",outcome="refused"} (\d+)', metrics)
        banned = re.search(r'weir_decisions_banned_total{rule="login"} (\d+)', metrics)
        assert refused.group(1) == banned.group(1) != "0", metrics
        modes = server.http()("GET", "/v1/modes").json()["rules"]
        found, = [rule for rule in modes if rule["rule"] == "login"]
        assert found["refused"] == found["banned"] == int(banned.group(1)), found


def test_S6_the_start_says_what_the_table_is(weir):
    """Its use, its size on disk, who else uses it; and that --keys does not count any more."""
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "t")
        with Server(weir, "--keys", "5000", table=table) as server:
            said = server.said[-1]
            wanted = r"\(0 of \d+ slots used, [0-9.]+ [KM]iB on disk\)$"
            assert re.search(wanted, said.strip()), said
            assert server.complaints() == "", server.complaints()
            with Server(weir, "--keys", "100000", table=table) as other:
                assert "also used by pid %d)" % server.pid in other.said[-1], other.said
                assert "keys 100000 is ignored" in other.complaints(), other.complaints()
            with Server(weir, table=table) as other:  # which has not said how many
                assert other.complaints() == "", other.complaints()


def test_S6_take_says_that_a_table_is_locked(weir):
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "t")
        words = [weir, "take", "--table", table, "--limit", "3/1m", "--now", "100s", "ann"]
        assert subprocess.run(words, capture_output=True, timeout=60).returncode == 0
        with open(table) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            done = subprocess.run(words + ["--no-wait"], capture_output=True, text=True, timeout=60)
            assert done.returncode == 2 and "locked by another process, pid %d" % os.getpid() in (
                done.stderr), done
            waiting = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True)
            line = waiting.stderr.readline()
            assert "locked by another process" in line and "waiting" in line, line
        out, _ = waiting.communicate(timeout=60)
        assert waiting.returncode == 0 and out == "granted, 1 of 3 left\n", out
        with open(table) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            for command in ("table",), ("bans", "--table"), ("guards", "--table"):
                waiting = subprocess.Popen([weir, *command, table], stdout=subprocess.DEVNULL,
                                           stderr=subprocess.PIPE, text=True)
                line = waiting.stderr.readline()
                assert "pid %d: waiting" % os.getpid() in line, line
                waiting.kill()
                waiting.communicate()


def test_T1_nobody_waits_for_a_stopped_process_that_has_a_table_alone(weir):
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "t")
        words = [weir, "take", "--table", table, "--limit", "3/1m", "--now", "100s", "ann"]
        assert subprocess.run(words, capture_output=True, timeout=60).returncode == 0
        stopped = subprocess.Popen([sys.executable, "-c", """if True:
            import fcntl, os, signal, sys
            fcntl.flock(file := open(sys.argv[1]), fcntl.LOCK_EX)
            os.kill(os.getpid(), signal.SIGSTOP)""", table])
        try:
            os.waitpid(stopped.pid, os.WUNTRACED)
            for command in words, [weir, "serve", "--table", table, "--resp", "127.0.0.1:0",
                                   "--http", ""]:
                done = subprocess.run(command, capture_output=True, text=True, timeout=20)
                assert done.returncode == 2, done
                assert "pid %d, which is stopped: gave up" % stopped.pid in done.stderr, done
        finally:
            stopped.send_signal(signal.SIGCONT)
            stopped.wait()
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.stdout == "granted, 1 of 3 left\n", done


def test_S6_top_live(weir):
    """On a terminal: a screen of its own, drawn again and again; q puts it right."""
    with Server(weir, rules=RULES) as server:
        cli = Cli(weir, server)
        cli.env["TERM"] = "xterm"
        seen = watched(cli, weir, 80)
        if seen is None:
            return
        assert seen.startswith(b"\033[?1049h") and b"login" in seen, seen[:500]
        assert b"\033[31m" not in seen, seen[:500]  # NO_COLOR


def watched(cli, weir, columns):
    """What weir top writes to a terminal of this width until q is pressed; None without one."""
    try:
        terminal, inner = pty.openpty()
    except OSError as problem:
        return print("skipped: no terminal to be had here: %s" % problem)
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([weir, "top", "--every", "10ms"], env=cli.env, stdin=inner,
                               stdout=inner, stderr=inner)
    os.close(inner)
    seen = b""
    while seen.count(b"q ends") < 3:
        seen += os.read(terminal, 65536)
    os.write(terminal, b"q")
    while not seen.endswith(b"\033[?1049l"):
        seen += os.read(terminal, 65536)
    assert process.wait(timeout=60) == 0
    os.close(terminal)
    return seen


def frame_of(seen):
    frame = re.sub(r"\033\[[0-9;?]*\w", "", seen.decode().split("\033[H")[1])
    return frame.replace("\r", "").split("\n")


def test_S6_top_in_a_narrow_terminal(weir):
    """Nothing that matters is cut off: columns are narrower or left out, and long lines are two."""
    rules = RULES.replace("login", "a-long-name-for-the-login-of-all")
    with Server(weir, rules=rules) as server, server.resp() as client:
        cli = Cli(weir, server)
        cli.env["TERM"] = "xterm"
        for _ in range(9):
            client("WEIR.CHECK", "ip", "192.0.2.200", "uri", "/login", "method", "POST")
        client("WEIR.CLOCK", 10**18)
        write(server.rules, "nonsense")
        assert isinstance(client("WEIR.RULES.RELOAD"), Error)
        for columns in 50, 64, 79, 80:
            seen = watched(cli, weir, columns)
            if seen is None:
                return
            lines = frame_of(seen)
            assert max(map(len, lines)) <= columns, (columns, lines)
            text = "\n".join(lines)
            for needed in ["a-long-", "REFUSED/S", "bans 0", "connections", "192.0.2.200",
                           "the last reload was refused", "refused\n"]:
                assert needed in text, (columns, needed, text)
            assert ("SHADOW" in text) == (columns > 70), text


def test_S6_no_server(weir):
    cli = Cli(weir, "127.0.0.1:1")
    for words in [("status",), ("check", "ip=192.0.2.7"), ("bans",), ("mode",),
                  ("events", "--follow"), ("top",), ("rules", "get"), ("explain", "ip=192.0.2.7")]:
        cli.fails("no server at 127.0.0.1:1; start one: weir serve; or say where: --server", *words)
    for option in "--table", "--table=x":
        cli.fails("nginx has its lists from its rule file: write lists:", "lists", option, "x")
    for words in [("bans",), ("mode",), ("guards",), ("reset", "ip=192.0.2.7")]:
        cli.fails("say where: --server; or without one: --table FILE", *words)
    cli.fails("no server at 127.0.0.99 (port 7380); start one: weir serve",
              "status", "--server", "127.0.0.99")
    cli.fails("no server at ./none; start one", "status", "--server", "./none")
    cli.fails("'ftp:x:y' is not a server: write HOST:PORT", "status", "--server", "ftp:x:y")
    cli.env.pop("WEIR_SERVER")
    with Server(weir) as server:  # RESP is no HTTP
        cli.fails("is not an HTTP server", "status", "--server", address(server, "resp"))
        for name in "http://%s/" % address(server), "localhost:%d" % server.ports["http"]:
            cli.has(0, "pid %d" % server.pid, "status", "--server", name)


def test_S6_a_server_that_is_silent(weir):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        cli = Cli(weir, "127.0.0.1:%d" % silent.getsockname()[1])
        for time, words in ("10ms", "10ms"), ("1s", "1s"):
            cli.fails("has said nothing for %s" % words, "status", "--timeout", time)
        silent.settimeout(0)
        for _ in range(2):  # it asks once
            silent.accept()
        try:
            silent.accept()
            assert False, "asked again"
        except BlockingIOError:
            pass
        cli.fails("--timeout", "status", "--timeout", "0")


def test_S6_words_that_others_use(weir):
    Cli(weir, "127.0.0.1:1").fails("there is no command 'unban'; weir bans --lift ends a ban",
                                   "unban", "192.0.2.7")


class Other(http.server.BaseHTTPRequestHandler):
    """A server that is no Weir, and is content with everything."""
    body = b""

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    do_GET = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, *_):
        pass


def test_S6_another_server(weir):
    asks = [("status",), ("bans",), ("bans", "--add", "--rule", "r", "--for", "1m", "k"),
            ("bans", "--lift", "--rule", "r", "k"), ("top", "--once"),
            ("lists",), ("lists", "--add", "deny", "ip", "192.0.2.7"), ("events",),
            ("events", "--follow"), ("mode",), ("mode", "off"),
            ("check", "ip=192.0.2.7"), ("reset", "ip=192.0.2.7")]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        cli = Cli(weir, "127.0.0.1:%d" % other.server_address[1])
        for Other.body in (b"<html>hello</html>", b"{}", b'{"ok":true}', b""):
            for words in asks:
                cli.fails("is it a Weir server?", *words)
                if "events" not in words:
                    cli.fails("is it a Weir server?", *words, "--json")
        other.shutdown()


def test_S6_status_of_a_table_without_room(weir):
    """Keys that went early because the disk was full do not say that the table is too small."""
    status = {"version": "1", "table": {"slots": 1000, "keys": 8, "evicted_early": 5235}}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        cli = Cli(weir, "127.0.0.1:%d" % other.server_address[1])
        Other.body = json.dumps(status).encode()
        cli.has(0, "5235 keys evicted early, to make room\n", "status")
        status["table"]["no_disk"] = 7
        Other.body = json.dumps(status).encode()
        cli.has(0, "THE DISK OF THE TABLE WAS FULL: 7 times a window, log or ban found no space, "
                "5235 keys evicted early\n", "status")
        other.shutdown()


def test_S6_tokens(weir):
    tokens = {"WEIR_ADMIN_TOKEN": "an-admin-token-of-good-length-1",
              "WEIR_CHECK_TOKEN": "a-check-token-of-good-length-22"}
    with Server(weir, rules=RULES, env=tokens) as server:
        cli = Cli(weir, server)
        cli.fails("wants its admin token: set WEIR_TOKEN to it, or name a file with --token-file",
                  "status")
        cli.fails("wants a token: set WEIR_TOKEN", "check", "ip=192.0.2.7")
        cli = Cli(weir, server, tokens["WEIR_CHECK_TOKEN"])
        assert cli(0, "check", "ip=192.0.2.7").startswith("allowed")
        cli.fails("this token may only ask: the server at %s wants its admin token"
                  % address(server), "mode", "off")
        cli = Cli(weir, server, "not-a-token")
        cli.fails("does not know the token of $WEIR_TOKEN", "check", "ip=192.0.2.7")
        file = os.path.join(server.folder, "token")
        write(file, tokens["WEIR_ADMIN_TOKEN"] + "\n")
        assert cli(0, "mode", "--token-file", file)
        write(file, "two words\n")
        cli.fails("has a byte that is no visible ASCII", "mode", "--token-file", file)
        # everybody can read the command line
        cli.fails("there is no option --token", "mode", "--token", "x")


def test_S6_tls_and_unix_sockets(weir):
    folder = tempfile.mkdtemp(prefix="weir-test-")
    key, certificate, path = (os.path.join(folder, name) for name in ("key", "certificate", "http"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec",
                    "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                    "-out", certificate, "-days", "2", "-subj", "/CN=weir",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    with Server(weir, "--tls-certificate", certificate, "--tls-key", key, rules=RULES,
                http="127.0.0.1:0," + path) as server:
        cli = Cli(weir, path)
        out = cli(0, "status")  # no TLS on a unix socket
        assert "pid %d" % server.pid in out, out
        assert "http %s (TLS), http %s\n" % (address(server), path) in out, out
        assert "resp %s (TLS), " % address(server, "resp") in out, out
        https = "https://" + address(server)
        trusted = "--server", https, "--ca", certificate
        assert cli(0, "check", *trusted, "ip=192.0.2.7").startswith("allowed")
        assert len(cli(0, "events", *trusted, "-f", "-c", "1").splitlines()) == 1
        cli.fails("--ca FILE names the authorities to trust", "status", "--server", https)
        localhost = https.replace("127.0.0.1", "localhost")
        cli.fails("no TLS with https://localhost",
                  "status", "--server", localhost, "--ca", certificate)
        cli.fails("has no certificates", "status", "--server", https, "--ca", key)
        cli.fails("https://", "status", "--server", address(server))
    for name in (key, certificate):
        os.unlink(name)
    os.rmdir(folder)


def test_S6_completion(weir):
    cli = Cli(weir, "none:1")
    script = """source <("$0" completion bash) && complete -p weir
        try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _weir; echo "${COMPREPLY[*]}"; }
        try "$0" ser; try "$0" rules s; try "$0" mode ''; try "$0" serve --tls-c
        try "$0" check --tok; try "$0" completion f; try "$0" mode --rule x
        cd /; try "$0" rules check usr; try "$0" rules set --ca usr"""
    done = subprocess.run(["bash", "-c", script, os.path.abspath(weir)], env=cli.env,
                          capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [
        "complete -o filenames -F _weir weir", "serve", "schema set",
        "enforce shadow off as-written", "--tls-certificate --tls-client-ca", "--token-file",
        "fish", "", "usr", "usr"], done
    for shell, path in [("zsh", "words[2,CURRENT]"), ("fish", "commandline -ct")]:
        cli.has(0, "completion words -- ", "completion", shell)
        cli.has(0, path, "completion", shell)
    cli.has(0, "bans\tlist bans, ban a key, or lift a ban\n", "completion", "words", "--", "ba")
    cli.fails("there is no completion for 'csh'; usage: weir completion bash|zsh|fish",
              "completion", "csh")


def test_S6_help(weir):
    """Every command's help fits 80 columns and names its exit codes."""
    cli = Cli(weir, "none:1")
    assert cli(0, "help") == cli(0, "--help")
    assert cli(0, "help", "rules", "check") == cli(0, "rules", "check", "--help")
    for line in cli(0, "--help").split("commands:\n")[1].split("\n\n")[0].splitlines():
        name = line[2:16].split()
        out = cli(0, *name, "--help")
        assert out.startswith("usage: weir %s" % " ".join(name)), out
        if name != ["serve"]:
            assert "\nExit codes: 0 " in out and max(map(len, out.splitlines())) <= 80, out


def test_S1_S2_vectors_at_a_running_server(weir):
    file = os.path.join(VECTORS, "gcra.vec")
    with Server(weir) as server:
        cli = Cli(os.path.join(os.path.dirname(weir), "tests", "vectors", "weir-vectors"), "none:1")
        for door in ["resp", "http"]:
            for _ in range(2):  # names of its own: what was used before does not matter
                cli.has(0, " passed, 0 failed\n",
                        "--door", door, "--server", address(server, door), file)
        bad = os.path.join(server.folder, "bad.vec")
        write(bad, "case a\nlimit gcra 5/1m\nat 0s take 1 -> no\n")
        done = cli.run("--door", "http", "--server", address(server), bad)
        assert done.returncode == 1 and "bad.vec:3: expected no got ok" in done.stdout, done
    with Server(weir, clock=False) as server:
        cli.fails("--test-clock", "--door", "resp", "--server", address(server, "resp"), file)
    cli.fails("--server is for the doors resp and http", "--server", "x:1", file)
    cli.fails("there is no door 'grpc'", "--door", "grpc", file)


def in_session(session):
    """The processes of a session that have not ended."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(pid)
    return found


def test_D3_the_demonstration_says_why_a_node_admits_nothing(weir):
    place = os.path.join(VECTORS, "..", "..", "scripts", "fleet.py")
    demonstration = runpy.run_path(place)
    for runs, rate, redis, state in [(True, 9, "dead", ""), (False, 9, "dead", "dead"),
                                     (True, 0, "dead", "waits for Redis: no part yet"),
                                     (True, 0, "answers", "no part yet")]:
        node = types.SimpleNamespace(runs=runs)
        assert demonstration["state_of"](node, rate, redis) == state


def test_D3_the_demonstration_leaves_nothing_running(weir):
    script = os.path.join(VECTORS, "..", "..", "scripts", "fleet.py")
    for number in (signal.SIGTERM, signal.SIGHUP):
        with subprocess.Popen([script, weir], start_new_session=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as shown:
            assert shown.stdout.readline(), "it draws when all run"
            assert len(in_session(shown.pid)) > 4, in_session(shown.pid)
            shown.send_signal(number)
            shown.communicate(timeout=120)
            until("all have ended", lambda: not in_session(shown.pid))


if __name__ == "__main__":
    run_tests(globals())
