#!/usr/bin/python3
"""guards-command.py WEIR [TEST...] -- `weir run`, `weir guards` and `weir degrade`, at a server and
in a table."""
import json
import os
import select
import signal
import subprocess
import tempfile
import time

from guarding import RULES, Doors
from serving import free_port, run_tests, until

ONE_PERMIT = """version: 1
guards:
  - { name: shop, concurrency: { max: 1, queue: 10, wait: 60s } }
  - { name: bare, concurrency: 1 }
  - { name: brief, concurrency: { max: 1, queue: 10, wait: 1ms } }
  - { name: keyed, concurrency: { max: 1, key: "{account}" } }
"""


class Runs:
    """`weir run` under the guard shop, which has one permit: at a server, or in its table."""

    def __init__(self, weir, d, table=None):
        self.d, self.command = d, [weir, "run"]
        self.command += ["--table", table] if table else [
            "--server", "127.0.0.1:%d" % d.server.ports["http"]]

    def start(self, *words, guard="shop"):
        command = [*self.command, "--guard", guard, *words]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def __call__(self, *words, **more):
        process = self.start(*words, **more)
        out, complaint = process.communicate()
        return process.returncode, out + complaint

    def started(self, script="exec sleep 1000", first=":"):
        process = self.start("--", "sh", "-c", "%s; echo ready; %s" % (first, script))
        line = process.stdout.readline()
        assert line == "ready\n", (line, process.communicate(), process.returncode)
        until("it has a permit", lambda: self.d.guard("shop")["in_flight"] == 1)
        return process


def check_runs(run, d):
    assert run("--", "echo", "-n", "hello") == (0, "hello")
    assert run("echo", "-q", "--", "a", guard="bare") == (0, "-q -- a\n"), "the command's own"
    code, said = run("--json", "--", "true")
    assert code == 2 and "there is no option --json" in said, said
    assert run("--", "sh", "-c", "exit 3") == (3, "")
    assert run("--", "sh", "-c", "exit 124") == (124, "")
    assert run("--", "/nowhere/to/be/found")[0] == 127
    code, said = run("--", "/")
    assert code == 126, (code, said)
    until("all are back", lambda: d.guard("shop")["in_flight"] == 0)
    outcomes = d.guard("shop")["outcomes"]
    assert (outcomes["ok"], outcomes["error"], outcomes["timeout"]) == (1, 1, 1), outcomes
    code, said = run("--", "true", guard="shp")
    assert code == 125 and "shp" in said, said
    process = run.started()
    code, said = run("--", "true")
    assert code == 75 and "refused by guard shop: busy" in said, said
    assert run("--quiet", "--", "true") == (75, "")
    waits = run.start("--wait", "50s", "--", "echo", "at last")
    process.terminate()  # the command gets it, too
    assert process.wait() == 128 + signal.SIGTERM
    assert waits.communicate()[0] == "at last\n" and waits.returncode == 0
    process = run.started("trap 'exit 9' USR1; echo set; while :; do sleep 0.01; done")
    assert process.stdout.readline() == "set\n"
    process.send_signal(signal.SIGUSR1)
    assert process.wait() == 9


def check_run_waits(run):
    """It waits as long as it says: without a queue, longer than the guard's `wait`, for a key."""
    for guard, user in ("bare", None), ("brief", None), ("keyed", "ann"):
        words = ["--user", user] if user else []
        holds = run.start(*words, "--", "sh", "-c", "echo ready; read line", guard=guard)
        assert holds.stdout.readline() == "ready\n", guard
        code, said = run(*words, "--wait", "30ms", "--", "true", guard=guard)
        assert code == 75 and "refused by guard " + guard in said, said
        if user:
            assert run("--user", "bob", "--", "echo", "in", guard=guard) == (0, "in\n")
        waits = run.start(*words, "--wait", "50s", "--", "echo", "at last", guard=guard)
        try:
            waits.wait(timeout=0.2)
            assert False, ("it did not wait", guard, waits.communicate())
        except subprocess.TimeoutExpired:
            pass
        holds.communicate("\n")
        assert waits.communicate()[0] == "at last\n" and waits.returncode == 0, guard


def check_signals_of_runs(run):
    """The command has the signals' dispositions of the runner, whose own do not matter."""
    guarded = [*run.command, "--guard", "shop", "--"]
    for ignored in [], [signal.SIGCHLD], [signal.SIGPIPE, signal.SIGHUP]:
        for script in "exit 7", "kill -9 $$", "grep SigIgn /proc/self/status":
            plain, seen = (subprocess.run(
                [*before, "bash", "-c", script], stdout=subprocess.PIPE, text=True,
                preexec_fn=lambda: [signal.signal(n, signal.SIG_IGN) for n in ignored])
                for before in ([], guarded))
            code = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
            assert (seen.returncode, seen.stdout) == (code, plain.stdout), (ignored, seen, plain)


def check_every_run(run, d):
    check_runs(run, d)
    check_run_waits(run)
    check_signals_of_runs(run)
    process = run.started()
    process.kill()
    until("the permit is back", lambda: d.guard("shop")["in_flight"] == 0)
    assert process.communicate() == ("", ""), "the command has ended"


def test_G1_run_at_a_server(weir):
    with Doors(weir, rules=ONE_PERMIT, clock=False) as d:
        run = Runs(weir, d)
        check_every_run(run, d)
    assert run("--", "true")[0] == 125, "no server"


def test_G1_run_in_a_table(weir):
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "table")
        with Doors(weir, rules=ONE_PERMIT, clock=False, table=table) as d:
            run = Runs(weir, d, table)
            check_every_run(run, d)


def run_rules(lease):
    return ONE_PERMIT.replace("name: shop,", "name: shop, lease: %s," % lease)


def restart_by(server, number):
    server.process.send_signal(number)
    server.process.wait(timeout=60)
    server.process.stdout.close()
    server.errors.close()
    server.start()


def test_G1_run_over_a_restart(weir):
    with (tempfile.TemporaryDirectory(prefix="weir-guards-") as folder,
          Doors(weir, rules=run_rules("30s"), clock=False, table=os.path.join(folder, "table"),
                http="127.0.0.1:%d" % free_port()) as d):
        run = Runs(weir, d)
        brief = run.started("read line")
        restart_by(d.server, signal.SIGTERM)
        assert brief.communicate("\n") == ("", "") and brief.returncode == 0
        d.resp = d.server.resp()
        assert d.guard("shop")["outcomes"]["ok"] == 1, "it was not given back"
        process = run.started()
        restart_by(d.server, signal.SIGKILL)
        restart_by(d.server, signal.SIGTERM)
        d.resp = d.server.resp()
        assert d.guard("shop")["in_flight"] == 1
        process.terminate()
        assert process.communicate() == ("", "")
        assert d.guard("shop")["in_flight"] == 0


def test_G1_run_renews_whatever_signals_it_gets(weir):
    with Doors(weir, rules=run_rules("6s"), clock=False) as d:
        process = Runs(weir, d).started(first="trap '' USR1")
        for _ in range(70):  # longer than the lease
            process.send_signal(signal.SIGUSR1)
            time.sleep(0.1)
        assert d.guard("shop")["in_flight"] == 1
        process.terminate()
        assert process.communicate() == ("", "")


def test_G1_run_enters_again(weir):
    """The next server has another table: the old permit is none there."""
    with Doors(weir, rules=run_rules("300ms"), clock=False,
               http="127.0.0.1:%d" % free_port()) as d:
        process = Runs(weir, d).started()
        restart_by(d.server, signal.SIGKILL)
        d.resp = d.server.resp()
        until("it has entered again", lambda: d.guard("shop")["in_flight"] == 1)
        process.terminate()
        said = process.communicate()[1]
        assert "the permit is lost" in said and "has a permit again" in said, said
        assert d.guard("shop")["in_flight"] == 0


def test_G1_run_at_a_server_that_hangs(weir):
    """Signals reach the command, and the runner ends."""
    with Doors(weir, rules=run_rules("300ms"), clock=False) as d:
        process = Runs(weir, d).started(
            "trap 'echo got it; exit 3' TERM; while :; do sleep 0.01; done")
        d.server.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(0.5)  # a renewal is under way
            process.terminate()
            assert select.select([process.stdout], [], [], 25)[0], "the signal was not passed on"
            assert process.stdout.readline() == "got it\n"
            assert process.wait(timeout=25) == 3
        finally:
            d.server.process.send_signal(signal.SIGCONT)
        until("the permit is back", lambda: d.guard("shop")["in_flight"] == 0)
        process.communicate()


def test_S6_rows_keep_to_80_columns(weir):
    """A long name stands above its row, and what is special about a guard below."""
    rules = RULES.replace("name: search", "name: a-name-of-twenty-one")
    with Doors(weir, rules=rules.replace("max: 5", 'max: 5, key: "{ip}"')) as d:
        command(weir, d, "mode", "shadow", "--rule", "extras")
        told = command(weir, d, "guards")[1]
        lines = told.splitlines()
        assert max(map(len, lines)) <= 80 and not any(line.endswith(" ") for line in lines), told
        below = dict(zip((line.split()[0] for line in lines), lines[1:] + [""]))
        assert below["a-name-of-twenty-one"].split()[0] == "0/2", told
        assert below["extras"] == "  5 per key, shadow: 0 would have been refused", told
        rows = [line for line in lines if line.endswith("%")]
        assert len(rows) == 4 and {len(line) for line in rows} == {80}, told
        told = command(weir, d, "guards", columns=88)[1]  # names have room for 20
        rows = [line for line in told.splitlines() if line.endswith("%")]
        assert {len(line) for line in rows} == {88} and "a-name-of-twenty-one " in told, told
        assert command(weir, d, "guards", columns=87)[1] == command(weir, d, "guards")[1]


def command(weir, d, *words, columns=80):
    """What it says, and its exit code."""
    done = subprocess.run([weir, *words, "--server", "127.0.0.1:%d" % d.server.ports["http"]],
                          capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, COLUMNS=str(columns)))
    return done.returncode, done.stdout + done.stderr


def test_G4_a_breaker_whose_time_is_over_would_be_tried(weir):
    with Doors(weir) as d:
        d.open_breaker()
        assert d.guard("db")["admitted_percent"] == 0
        assert "refused by guard db: open" in command(weir, d, "explain", "uri=/db")[1]
        d.server.clock(1006)
        assert d.guard("db")["admitted_percent"] == 100
        assert "to be tried" in command(weir, d, "guards", "db")[1]
        told = command(weir, d, "explain", "uri=/db")[1]
        assert "breaker open: would be tried" in told and "refused" not in told, told
        assert d.enter("GUARD", "db")["allowed"] == 1


def test_G4_run_waits_until_a_breaker_is_tried(weir):
    for open_for, wait, code in ("300ms", "100s", 0), ("2h", "1h", 75):
        rules = RULES.replace("open_for: 5s", "open_for: " + open_for)
        with Doors(weir, rules=rules, clock=False) as d:
            d.open_breaker()
            done = subprocess.run([weir, "run", "--server",
                                   "127.0.0.1:%d" % d.server.ports["http"], "--guard", "db",
                                   "--wait", wait, "--", "true"], timeout=120)
            assert done.returncode == code, (open_for, done)


def test_G1_a_guard_without_a_rule_goes_though_people_look_at_it(weir):
    gone = RULES[:RULES.index("guards:")]
    with Doors(weir) as d:
        assert d.resp("WEIR.GUARD.FORCE", "db", "open")
        assert d.web("PUT", "/v1/rules", gone).status == 200
        for name in "db", "search", "db":
            d.guard(name)
        for second in range(1010, 1130, 10):
            d.server.clock(second)
        assert d.resp.json("WEIR.GUARDS")["guards"] == []
        assert 'guard="db"' not in d.web("GET", "/metrics").body.decode()


def test_S6_command_line(weir):
    with Doors(weir) as d:
        env = dict(os.environ, WEIR_SERVER="127.0.0.1:%d" % d.server.ports["http"])

        def run(code, *words):
            done = subprocess.run([weir, *words], env=env, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
            assert done.returncode == code, (words, done)
            return done.stdout + done.stderr

        d.open_breaker()
        d.enter("GUARD", "search")
        listed = run(0, "guards")
        assert "search" in listed and "1/2" in listed and "open for" in listed, listed
        assert max(map(len, listed.splitlines())) <= 80, listed
        assert "not in the rules" not in listed, listed
        assert not any(line.endswith(" ") for line in listed.splitlines()), listed
        one = run(0, "guards", "db")
        assert "breaker-opened: closed -> open" in one, one
        assert "entering: refused by guard db: open" in run(0, "explain", "uri=/db")
        d.enter("GUARD", "db")
        assert "refused: 1 open" in run(0, "guards", "db")
        for words in (("extras", "shadow"), ("shadow", "extras")):
            assert "weir mode shadow --rule extras" in run(2, "mode", *words)
        assert run(0, "mode", "shadow", "--rule", "extras") == "extras: shadow\n"
        assert "shadow (by hand; written: enforce)" in run(0, "mode")
        assert run(0, "mode", "as-written") == (
            "all rules: as-written (enforce)\nstill switched by hand: guard extras (shadow); "
            "--rule NAME as-written ends one\n")
        run(0, "mode", "off", "--rule", "extras")
        assert [line.split()[-1] for line in run(0, "guards", "extras").splitlines()[1:3]] == [
            "-", "off"]
        run(0, "mode", "as-written", "--rule", "extras")
        assert json.loads(run(0, "guards", "--json", "db"))["guards"][0]["guard"] == "db"
        assert "search: forced open\n" == run(0, "guards", "search", "--force", "open")
        assert run(0, "guards", "search").splitlines()[1].split()[-1] == "0%", "it lets nobody in"
        assert d.guard("search")["retry_ms"] is None
        assert "weir guards search --force open" in run(2, "guards", "force", "search", "open")
        assert "weir guards, GET /v1/guards" in run(2, "guards", "qqqqqqqqqqqqq")
        assert d.enter("GUARD", "search")["reason"] == "open"
        run(0, "guards", "search", "--force", "none")
        assert "extras: no longer forced\n" == run(0, "guards", "extras", "--force", "none")
        assert "did you mean" in run(2, "guards", "serch")
        assert "--force must be open, closed or none, not 'ajar'" in run(2, "guards", "search", "--force", "ajar")
        assert "which guard" in run(2, "guards", "--force", "open")
        assert run(0, "degrade") == "0 (auto)\n" and run(0, "degrade", "4") == (
            "4 (by hand): guards with degrade: 1 to 4 refuse\n")
        assert run(0, "degrade") == "4 (by hand)\n"
        assert run(0, "degrade", "auto").endswith("(auto)\n")
        assert "from 0 to 9, or auto" in run(2, "degrade", "11")
        run(0, "degrade", "2")
        told = run(0, "status")
        assert "4: 1 at work, 1 breaker not closed; degradation 2, by hand" in told, told
        assert "1 at work in 4" in run(0, "top", "--once", "--every", "0")
        assert "guards" in run(0, "completion", "words", "g") and "degrade" in run(0, "--help")


def test_S6_a_table(weir):
    """Looked at without a server, and nothing in it is changed."""
    with tempfile.TemporaryDirectory(prefix="weir-guards-") as folder:
        path = os.path.join(folder, "table")

        def run(code, *words):
            done = subprocess.run([weir, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True)
            assert done.returncode == code, (words, done)
            return done.stdout + done.stderr

        with Doors(weir, table=path) as d:
            d.enter("GUARD", "search")
            listed = run(0, "guards", "--table", path, "--now", "1001")
            assert "1/2" in listed and len(listed.splitlines()) == 5, listed
            assert "not in the rules" not in listed, listed
            one = json.loads(run(0, "guards", "--table", path, "--json", "--now", "2000",
                                 "search"))["guards"]
            assert [(g["guard"], g["in_flight"], g["in_rules"], g["changes"])
                    for g in one] == [("search", 1, None, [])], one
            d.resp.close()
            d.web.close()
        unknown = "the table has no guard 'serch'; did you mean 'search'?"
        assert unknown in run(2, "guards", "--table", path, "serch")
        assert "no guard 'xyz'; weir guards --table lists them" in run(2, "guards", "--table", path,
                                                                       "xyz")
        said = run(2, "guards", "--table", path, "search", "--force", "open")
        assert "start weir serve --table" in said, said
        told = run(0, "table", path)
        assert "guards     4; weir guards --table lists them" in told and "sparse" in told, told
        assert json.loads(run(0, "table", "--json", path))["guards"] == 4


if __name__ == "__main__":
    run_tests(globals())
