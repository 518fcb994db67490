#!/usr/bin/env python3
"""fleet-rules.py REDIS-LOAD [--long] [TEST...] -- `weir fleet rules`, `history`, `rollback`,
`nodes` and `status` on a real redis-server and a real cluster, with nodes that follow; editors who
work at the same time; a master that is killed."""
import contextlib
import glob
import importlib
import json
import os
import pwd
import re
import subprocess
import sys
import tempfile
import threading

from fleeting import Agent, Node, joined
from redising import Redis, until
from redisload import EXAMPLE, WEIR, url
from serving import Server, run_tests, write

RULES_EXAMPLE = os.path.join(os.path.dirname(EXAMPLE), "example-fleet-rules")
Cluster = importlib.import_module("redis-cluster").Cluster
RULES = "version: 1\nrules:\n  - { name: per-ip, key: '{ip}', limit: %s }\n"


class Admin:
    """`weir fleet` on one Redis, with a file to edit."""

    def __init__(self, there, folder):
        self.there, self.folder = there, folder
        self.path = os.path.join(folder, "rules-%x" % id(self))

    def __call__(self, *words):
        done = subprocess.run([WEIR, "fleet", *words], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, WEIR_REDIS=self.there))
        return done.stdout, done.returncode, done.stderr

    def ok(self, *words):
        out, code, said = self(*words)
        assert code == 0, (words, code, out, said)
        return out

    def json(self, *words):
        return json.loads(self(*words, "--json")[0])

    def set(self, text, *options):
        write(self.path, text)
        return self("rules", "set", self.path, *options)


AGENT = os.path.join(os.path.dirname(sys.argv[1]), "fleet-agent")


def node(where, name, folder):
    copies = os.path.join(folder, name)
    os.makedirs(copies, exist_ok=True)
    return Agent(AGENT, where, name, copies=copies)


def runs(version, *nodes):
    for node in nodes:
        until("version %d" % version, lambda: node.info().version == version, 60,
              lambda: str(vars(node.info())))


def test_D6_versions(program):
    with Redis() as r, tempfile.TemporaryDirectory() as folder:
        admin = Admin(url(r), folder)
        assert admin("status")[:2] == ("the fleet 'default' has no rules yet, and no nodes\n", 1)
        assert admin("rules", "get")[1] == 1
        assert admin.set(RULES % "10/1s", "--note", "the\nfirst")[:2] == ("version 1\n", 0)
        got = admin.ok("rules", "get")
        head, rest = got.split("\n", 1)
        assert head.startswith("# weir fleet: rules, version 1, edit "), head
        assert rest == RULES % "10/1s", got
        out, code, said = admin.set(got.replace("10/1s", "20/1s"))
        assert (out, code) == ("version 2\n", 0), said
        out, code, said = admin.set(got.replace("10/1s", "30/1s"))
        assert code == 1 and "version 2 is there, and this change is based on 1" in said, said
        out, code, said = admin.set((RULES % "30/1s").replace("{ip}", "{remote_addr}"))
        assert code == 1 and "--base 2" in said and "did you mean ip?" in said, said
        assert admin.set(RULES % "30/1s", "--base", "2")[:2] == ("version 3\n", 0)
        same = admin.ok("rules", "get")
        assert admin.set(same)[:2] == ("unchanged, still version 3\n", 0)
        out, code, said = admin.set(RULES % "lots", "--base", "3")
        assert code == 1 and "limit" in said and out == "", (out, said)
        write(admin.path, RULES % "40/1s")
        out, code, _ = admin("rules", "diff", admin.path)
        assert code == 1 and "30/1s" in out and "40/1s" in out, out
        out, code, _ = admin("rules", "diff", "1")
        assert code == 1 and "10/1s" in out and "30/1s" in out, out
        assert admin.ok("rollback", "1", "--note", "too much") == "version 4, as version 1\n"
        assert (RULES % "10/1s") in admin.ok("rules", "get")
        out, code, said = admin("rollback")
        assert (out, code) == ("", 1) and "version 4 is as version 1, and there is no older" in said
        assert admin.ok("rollback", "3") == "version 5, as version 3\n"
        assert (RULES % "30/1s") in admin.ok("rules", "get")
        versions = admin.json("history")
        assert [v["version"] for v in versions] == [5, 4, 3, 2, 1], versions
        assert [v["origin"] for v in versions] == [3, 1, 0, 0, 0], versions
        assert versions[1]["note"] == "too much" and versions[4]["note"] == "the first", versions
        assert "<- all nodes" in admin.ok("history").splitlines()[0]
        assert admin("rules", "get", "9")[1] == 1 and admin("rollback", "9")[1] == 1
        # A failover has lost version 5, and another has its number now
        lost = admin.ok("rules", "get")
        r.ok("HSET", "weir:{fleet:default}:document:rules", "m5", "\x1f".join("17x0x"))
        out, code, said = admin.set(lost)
        assert code == 1 and "version 5 is not the one" in said, said
        r.ok("SET", "weir:{fleet:text}:document:rules", "something else")
        assert admin("rules", "get", "-f", "text")[1] == 2
    admin.there = "redis://127.0.0.1:1"
    out, code, said = admin("rules", "get")
    assert code == 2 and "does not answer" in said, said


def test_D6_a_rollback_goes_further_back(program):
    """Never to what was rolled back, nor to the same text."""
    with Redis() as r, tempfile.TemporaryDirectory() as folder, \
            node(url(r), "a", folder) as a:
        admin = Admin(url(r), folder)
        assert admin("rollback")[:2] == ("", 1)
        assert admin.set(RULES % "1/1s")[:2] == ("version 1\n", 0)
        out, code, said = admin("rollback")
        assert (out, code) == ("", 1) and "there is no version before 1 with another" in said, said
        for n, limit in enumerate(["9/1s", "2/1s", "3/1s"], 2):
            assert admin.set(RULES % limit, "--base", str(n - 1))[1] == 0
        r.ok("HSET", "weir:{fleet:default}:document:rules", "t2", RULES % "1/1s")  # as version 1
        assert admin.ok("rollback") == "version 5, as version 3\n"  # 4 was bad
        assert admin.set(RULES % "6/1s", "--base", "5")[1] == 0  # and so is 6
        assert admin.ok("rollback") == "version 7, as version 3\n"
        assert (RULES % "2/1s") in admin.ok("rules", "get")
        assert admin.ok("rollback") == "version 8, as version 2\n"
        assert (RULES % "1/1s") in admin.ok("rules", "get")
        out, code, said = admin("rollback")  # version 1 has the text of 2
        assert (out, code) == ("", 1) and "as version 2, and there is no older one" in said, said
        assert admin.ok("rollback", "7") == "version 9, as version 3\n"
        runs(9, a)
        for base in "9", "10":  # on one node: what all others run is not the one before
            assert admin.set(RULES % ("9%s/1s" % base), "--stage", "a", "--base", base)[1] == 0
        assert admin.ok("rollback") == "version 12, as version 3\n"
        assert admin("rules", "get", "99")[1] == admin("rollback", "99")[1] == 1


def test_D6_a_stage_has_to_be_there(program):
    with Redis() as r, tempfile.TemporaryDirectory() as folder:
        admin = Admin(url(r), folder)
        out, code, said = admin.set(RULES % "10/1s", "--stage", "a")
        assert code == 1 and "no node 'a' follows" in said and "nor does any" in said, said
        assert admin.set(RULES % "10/1s")[:2] == ("version 1\n", 0)
        with node(url(r), "a", folder) as a, node(url(r), "b", folder) as b:
            runs(1, a, b)
            until("both have reported", lambda: admin.json("status")["rules"]["nodes"] == 2)
            out, code, said = admin.set(RULES % "20/1s", "--base", "1", "--stage", "x")
            assert (out, code) == ("", 1) and "no node 'x' follows" in said, (out, code, said)
            assert "those that do: a, b" in said or "those that do: b, a" in said, said
            assert admin.json("status")["rules"]["newest"] == 1


def test_D6_redis_comes_back_empty(program):
    with Redis() as r, tempfile.TemporaryDirectory() as folder:
        admin = Admin(url(r), folder)
        assert "no rules yet" in admin("history")[0]
        assert admin.set(RULES % "10/1s")[:2] == ("version 1\n", 0)
        assert admin.set(RULES % "20/1s", "--base", "1")[:2] == ("version 2\n", 0)
        with node(url(r), "a", folder) as a:
            runs(2, a)
            got = admin.ok("rules", "get")
            r.ok("FLUSHALL")
            until("it has reported", lambda: admin.json("status")["rules"]["runs"] == 2)
            out, code, _ = admin("status")
            assert code == 1 and "Redis has no rules, and nodes run version 2" in out, (code, out)
            assert "weir fleet rules set FILE --base 0 brings" in out, out
            out, code, said = admin.set(got)  # whose first line names a version that is lost
            assert code == 1 and "Redis has no rules, and this change is based on version 2" in said
            assert "--base 0 puts it in force" in said, said
            for words in [("rollback",), ("rollback", "1"), ("rules", "get")]:
                out, code, said = admin(*words)
                assert code == 1 and "nodes run version 2" in said, (words, code, said)
            copy = open(os.path.join(folder, "a", "weir-fleet-default-rules")).read()
            text = copy.split("\n", 2)[2]
            assert text == RULES % "20/1s", copy
            assert admin.set(got, "--base", "0")[:2] == ("version 1\n", 0)
            runs(1, a)
            until("it runs it", lambda: admin("status")[1] == 0, state=lambda: admin("status")[0])


def test_D6_nodes_with_rules_of_their_own_are_told(program):
    with Redis() as r, tempfile.TemporaryDirectory() as folder:
        admin = Admin(url(r), folder)
        with Node(WEIR, url(r), "a", rules=RULES % "10/1s") as a:
            joined(a)
            status = admin.ok("status")
            assert "; 1 node has rules of its own (--rules)" in status, status
            assert "--fleet-name" not in status, status  # alone it shares with nobody
            with Node(WEIR, url(r), "b", rules=RULES % "10/1s") as b:
                joined(a, b)
                status = admin.ok("status")
                assert "share limits and bans by name: give each service" in status, status
                assert "a --fleet-name of its own" in status, status
            out, code, said = admin.set(RULES % "20/1s")
            assert (out, code) == ("version 1\n", 0) and "1 of the fleet's nodes has" in said, said
            status = admin.json("status")["rules"]
            assert (status["own"], status["nodes"], status["runs"]) == (1, 0, 0), status
            with Node(WEIR, url(r), "c", rules=None) as c:
                joined(c, members=2)
                until("it follows", lambda: admin.json("status")["rules"]["runs"] == 1)
                told = subprocess.run(
                    [WEIR, "status", "--server", "127.0.0.1:%d" % c.ports["http"]],
                    capture_output=True, text=True, timeout=60, check=True).stdout
                assert re.search(r"\nrules .* from the fleet since ", told), told


def test_D6_an_author_without_a_name_in_the_environment(program):
    with Redis() as r, tempfile.TemporaryDirectory() as folder:
        admin = Admin(url(r), folder)
        bare = {"WEIR_REDIS": url(r), "PATH": os.environ["PATH"]}
        for base, more in [("0", {}), ("1", {"USER": "ann"})]:
            write(admin.path, RULES % ("1%s/1s" % base))
            subprocess.run([WEIR, "fleet", "rules", "set", admin.path, "--base", base],
                           env=dict(bare, **more), check=True, timeout=60, capture_output=True)
        authors = [version["author"].split("@")[0] for version in admin.json("history")]
        assert authors == ["ann", pwd.getpwuid(os.getuid()).pw_name], authors


def edit(admin, name, times):
    """Adds a rule of its own, again and again, to what it has just got."""
    for i in range(times):
        while True:
            text = admin.ok("rules", "get")
            line = "  - { name: %s-%d, key: '{ip}', limit: 10/1s }\n" % (name, i)
            out, code, said = admin.set(text + line)
            assert code in (0, 1), (code, out, said)
            if code == 0:
                break


def test_D6_editors_never_overwrite_each_other(program):
    """Four editors, six changes each, as fast as they can: all changes are in the end there."""
    with Redis() as r, tempfile.TemporaryDirectory() as folder:
        admin = Admin(url(r), folder)
        assert admin.set(RULES % "10/1s")[1] == 0
        editors = [threading.Thread(target=edit, args=(Admin(url(r), folder), name, 6))
                   for name in "abcd"]
        for editor in editors:
            editor.start()
        for editor in editors:
            editor.join()
        text = admin.ok("rules", "get")
        assert text.startswith("# weir fleet: rules, version 25, edit "), text
        for name in "abcd":
            for i in range(6):
                assert "name: %s-%d," % (name, i) in text, text


def test_D6_history_is_bounded(program):
    with Redis() as r, tempfile.TemporaryDirectory() as folder:
        admin = Admin(url(r), folder)
        for i in range(53):
            assert admin.set(RULES % ("%d/1s" % (i + 1)), "--base", str(i))[1] == 0
        versions = [v["version"] for v in admin.json("history")]
        assert versions == list(range(53, 3, -1)), versions
        assert r("HLEN", "weir:{fleet:default}:document:rules") == 3 + 3 * 50


def test_D6_nodes_follow(program):
    """Staged on one node first, then for all; a refusal is reported, with the reason; the copy on
    the disk is good while Redis is away, and not if it is damaged."""
    with Redis() as r, tempfile.TemporaryDirectory() as folder:
        admin = Admin(url(r), folder)
        assert admin.set("one", "--base", "0")[1] == 1  # no rules
        assert admin.set(RULES % "10/1s")[1] == 0
        with node(url(r), "a", folder) as a, node(url(r), "b", folder) as b:
            runs(1, a, b)
            assert admin.set(RULES % "20/1s", "--base", "1", "--stage", "a")[:2] == (
                "version 2, for now on a\n", 0)
            runs(2, a)
            assert b.info().version == 1
            status = admin.json("status")["rules"]
            assert (status["newest"], status["all"], status["stage"]) == (2, 1, "a"), status
            assert admin("rules", "publish", "1")[1] == 1
            assert admin.ok("rules", "publish") == "version 2 is for all nodes\n"
            runs(2, b)
            until("all have reported", lambda: admin("status")[1] == 0)
            r.ok("HSET", "weir:{fleet:default}:document:rules", "t3", "# bad", "m3",
                 "\x1f".join(["1", "7", "0", "x", ""]), "newest", 3, "all", 3)
            until("both refuse", lambda: [n["refused"] for n in admin.json("nodes")] == [3, 3])
            nodes = admin.json("nodes")
            assert {n["why"] for n in nodes} == {"it is bad"}, nodes
            assert {n["runs"] for n in nodes} == {2}, nodes
            out, code, _ = admin("nodes")
            assert code == 1 and "REFUSED 3: it is bad" in out, out
            assert admin.ok("rollback", "2") == "version 4, as version 2\n"
            runs(4, a, b)
            until("no refusal is left", lambda: admin("nodes")[1] == 0)
        r.kill()
        damage(os.path.join(folder, "b"))
        with node(url(r), "a", folder) as a, node(url(r), "b", folder) as b:
            runs(4, a)
            until("Redis is away", lambda: b.info().why)
            assert b.info().version == 0


def shown(admin, node):
    """What `weir fleet nodes` says of it; None: nothing."""
    return {n["node"]: n for n in admin.json("nodes")}.get(node)


def test_D6_a_pipe_in_the_place_of_the_copy(program):
    """A node does not wait for somebody to write into it."""
    with Redis() as r, tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "a", "weir-fleet-default-rules")
        os.makedirs(os.path.dirname(copy))
        os.mkfifo(copy)
        assert Admin(url(r), folder).set(RULES % "10/1s")[1] == 0
        with node(url(r), "a", folder) as a:
            runs(1, a)
            until("there is a copy", lambda: os.path.isfile(copy), 60)


def test_D6_a_fleet_that_is_not_there(program):
    """A slip in its name: a cron job notices, and a person reads which name was asked for."""
    with Redis() as r, tempfile.TemporaryDirectory() as folder:
        admin = Admin(url(r), folder)
        assert admin.set(RULES % "10/1s")[1] == 0
        with node(url(r), "a", folder) as a:
            runs(1, a)
            until("all know", lambda: admin("status")[1] == admin("nodes")[1] == 0)
            slip = ["--fleet", "defualt"]
            assert admin("nodes", *slip)[:2] == ("the fleet 'defualt' has no nodes\n", 1)
            assert admin("nodes", *slip, "--json")[:2] == ("[]\n", 1)
            assert admin("status", *slip)[:2] == (
                "the fleet 'defualt' has no rules yet, and no nodes\n", 1)
            assert admin("history", *slip)[:2] == (
                "the fleet 'defualt' has no rules yet, or Redis has lost them: weir fleet status\n",
                1)
            assert "the fleet 'defualt' has no rules yet" in admin("rules", "get", *slip)[2]
        out, code, said = admin("nodes", "--fleet-name", "x")
        assert code == 2 and "there is no option --fleet-name; did you mean --fleet?" in said, said


def test_D6_a_weir_that_is_taken_for_a_redis(program):
    with Server(WEIR) as server, tempfile.TemporaryDirectory() as folder:
        admin = Admin("redis://127.0.0.1:%d" % server.ports["resp"], folder)
        for words in (["status"], ["nodes"], ["history"], ["lock", "x", "true"]):
            out, code, said = admin(*words)
            assert code != 0 and "Redis is a weir serve, and no Redis: ERR unknown" in said, said


def test_D6_members_are_shown_whatever_their_rules(program):
    """One follows the fleet's rules, one has its own; one ends, and one is killed."""
    with Redis() as r, tempfile.TemporaryDirectory() as folder:
        admin = Admin(url(r), folder)
        assert admin("nodes")[:2] == ("the fleet 'default' has no nodes\n", 1)
        assert admin.set(RULES % "10/1s")[1] == 0
        with Agent(AGENT, url(r), "own", rules=RULES % "10/1s") as own:
            with node(url(r), "follows", folder):
                for name in ("own", "follows"):
                    until("half is its part", lambda: (shown(admin, name) or {}).get(
                        "part") == 500000, state=lambda: str(admin.json("nodes")))
                until("it runs", lambda: shown(admin, "follows")["runs"] == 1)
                assert shown(admin, "own")["runs"] is None and shown(admin, "own")["weight"] == 1
                assert "own  rules of its own, part 50.0 % (weight 1)\n" in admin.ok("nodes")
                status = admin.json("status")["rules"]
                assert (status["nodes"], status["current"], status["silent"]) == (1, 1, 0), status
            until("it has left", lambda: shown(admin, "follows")["part"] is None)
            assert ", AWAY\n" in admin.ok("nodes")
            until("the other has all", lambda: shown(admin, "own")["part"] == 1000000)
            own.kill()
            until("it is gone", lambda: shown(admin, "own") is None)
        r.ok("HSET", "weir:{fleet:default}:reports:rules", "follows", "\x1f".join("1709"))
        r.ok("HSET", "weir:{fleet:default}:members", "own", "damaged")
        assert admin("nodes")[:2] == ("the fleet 'default' has no nodes\n", 1)


def test_D6_nodes_that_come_and_go_leave_nothing(program):
    """Each start under another name: reports go after a day, or a minute if there are many."""
    with Redis() as r, tempfile.TemporaryDirectory() as folder:
        reports = "weir:{fleet:default}:reports:rules"
        now = int(r.ok("TIME")[0]) * 1000000
        for i in range(1000):
            r.ok("HSET", reports, "dead%d" % i, "\x1f".join([str(now - 120000000), "1", "0", ""]))
        r.ok("HSET", reports, "old", "\x1f".join([str(now - 90000000000), "1", "0", ""]))
        with node(url(r), "a", folder):
            until("it has cleared up", lambda: r.ok("HLEN", reports) == 1,
                  state=lambda: r.ok("HLEN", reports))
        assert 0 < r.ok("PTTL", reports) <= 86400000


def damage(folder):
    name, = os.listdir(folder)
    with open(os.path.join(folder, name), "r+b") as file:
        file.seek(-2, os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-2, os.SEEK_END)
        file.write(bytes([byte ^ 1]))


def test_D6_master_killed(program):
    """The replica has the document, and changes go on."""
    with Cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        admin = Admin(cluster.url(), folder)
        assert admin.set(RULES % "10/1s")[1] == 0
        key = "weir:{fleet:default}:document:rules"
        said = []

        def change():
            """True if it is there: the answer to an earlier try may have been lost."""
            said.append(admin.set(RULES % "20/1s", "--base", "1"))
            return said[-1][1] == 0 or admin("rules", "get", "2")[1] == 0

        with node(cluster.url(), "a", folder) as a:
            runs(1, a)
            cluster.wait()
            master = next(n for n in cluster.masters() if n("EXISTS", key) == 1)
            master.ok("HSET", key, "test", 1)
            assert master.ok("WAIT", 1, 60000) == 1  # the replica has it all
            master.kill()
            until("its replica took its place", lambda: len(cluster.masters()) == 3, 60)
            cluster.wait()
            until("a change is made", change, 60, lambda: str(said[-1:]))
            runs(2, a)


def test_D6_example(program):
    with Redis() as r:
        said = subprocess.run([RULES_EXAMPLE, url(r)], capture_output=True, text=True, timeout=60)
        assert said.stdout == ("the first's change is the next version\n"
                               "ann's change is the next version\n"
                               "bob's change is refused: another version is there\n"
                               "ann (an older text)\nann\nthe first\n"
                               "0 of 0 nodes run their version\n"), said


def documented(user, page="fleet.md"):
    """The rights of a user, as a page of docs/ lists them."""
    docs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")
    with open(os.path.join(docs, page)) as file:
        text = file.read()
    begin = text.index("ACL SETUSER %s " % user)
    return text[begin:text.index("```", begin)].replace(">PASSWORD", ">pw").split()


@contextlib.contextmanager
def as_documented(user):
    """A Redis and the URL for that user; nothing may be denied to it."""
    with Redis() as r:
        r.ok(*documented(user))
        yield r, "redis://%s:pw@127.0.0.1:%d" % (user, r.port)
        assert r.ok("ACL", "LOG") == [], r.ok("ACL", "LOG")


def test_a_user_has_what_scripts_call(program):
    """Also what no test gets to."""
    rights = {word[1:] for word in documented("weir-node")}
    scripts = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../cluster/*/*.lua")
    for path in glob.glob(scripts):
        with open(path) as file:
            called = set(re.findall(r"\bp?call\('([A-Z]+)'", file.read()))
        assert called and {word.lower() for word in called} <= rights, (path, called)


def holds_lock(there):
    """One has it, one waits until it is released, one looks."""
    words = [WEIR, "fleet", "lock", "jobs", "--redis", there]
    for more in [], []:
        done = subprocess.run([*words, "--", "true"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
    with subprocess.Popen([*words, "--", "cat"], stdin=subprocess.PIPE) as holder:
        until("it is held", lambda: subprocess.run(
            [*words, "--release"], capture_output=True, timeout=60).returncode == 0, 60)
        done = subprocess.run([*words, "--wait", "20s", "--", "true"], capture_output=True,
                              text=True, timeout=60)
        assert done.returncode == 0, done
        done = subprocess.run([*words, "--show"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
        holder.stdin.close()


def test_a_user_for_locks(program):
    with as_documented("weir-locks") as (_, there):
        holds_lock(there)


SHARED = """version: 1
rules:
  - { name: meter, key: '{u}', limit: 5/1h, across: fleet, within: 10s,
      ban: { refusals: 3/1h, for: 1h } }
  - { name: window, key: '{w}', limit: fixed-window 5/1h, across: fleet, within: 10s }
  - { name: calendar, key: '{c}', limit: calendar 5/day, across: fleet, within: 10s }
  - { name: log, key: '{l}', limit: sliding-log 5/1h, across: fleet, within: 10s }
  - { name: buckets, key: '{b}', limit: sliding-window 5/1h, across: fleet, within: 10s }
"""


def all_run(admin, *versions):
    until("they run %s" % str(versions), lambda: sorted(
        node["runs"] for node in admin.json("nodes")) == list(versions), 10,
        lambda: str(admin.json("nodes")))


def test_a_user_for_a_node(program):
    """Members, locks, draws, notes, and the rules of the fleet."""
    with as_documented("weir-node") as (r, there), tempfile.TemporaryDirectory() as folder:
        admin = Admin(there, folder)
        holds_lock(there)
        with Node(WEIR, there, "a") as a, Node(WEIR, there, "b") as b:
            assert admin.set(SHARED)[:2] == ("version 1\n", 0)
            joined(a, b)
            all_run(admin, 1, 1)
            with a.resp() as one, b.resp() as other:
                for key in "u", "w", "c", "l", "b":
                    for _ in range(4):
                        one("WEIR.CHECK", key, "ann")
                        other("WEIR.CHECK", key, "ann")
                assert one.json("WEIR.STATUS")["fleet"]["alone"] is False
                one("WEIR.BAN", "meter", "ann", "1h")
                until("the ban is known", lambda: other.json("WEIR.BANS")["bans"] != [])
                assert one("WEIR.UNBAN", "meter", "ann") is not None
                until("it is lifted", lambda: other.json("WEIR.BANS")["bans"] == [])
                one("WEIR.RESET", "w", "ann")
            assert admin.set(SHARED.replace("5/1h", "6/1h"), "--base", "1", "--stage", "a")[1] == 0
            all_run(admin, 1, 2)
            for words in (["rules", "publish"], ["rollback"], ["rules", "get"], ["history"],
                          ["nodes"], ["status"], ["rules", "diff", "1"]):
                assert admin(*words)[1] in (0, 1), admin(*words)
                assert "NOPERM" not in admin(*words)[2]
            all_run(admin, 3, 3)
        for limit in "5/1h", "fixed-window 5/1h", "sliding-log 5/1h", "sliding-window 5/1h":
            for verb in "take", "peek", "give":
                done = subprocess.run([WEIR, verb, "--redis", there, "--limit", limit, "ann"],
                                      capture_output=True, text=True, timeout=60)
                assert done.returncode == 0 and not done.stderr, (verb, limit, done)


def test_users_on_a_cluster(program):
    with Cluster() as cluster:
        for node in cluster.nodes:
            for user in "weir-node", "weir-locks":
                node.ok(*documented(user))
        for user in "weir-node", "weir-locks":
            there = cluster.url().replace("://", "://%s:pw@" % user)
            holds_lock(there)
            assert user == "weir-locks" or Admin(there, "/tmp")("status")[1] == 1  # nobody
        for node in cluster.nodes:
            assert node.ok("ACL", "LOG") == []


if __name__ == "__main__":
    run_tests(globals())
