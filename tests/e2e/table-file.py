#!/usr/bin/env python3
"""table-file.py -- what happens to a table's file, from outside: a wrong clock, a cut, its owner,
upgrades and backups."""
import email.utils
import fcntl
import grp
import gzip
import json
import lzma
import os
import pwd
import random
import shutil
import struct
import subprocess
import tempfile
import time

from serving import RULES, Server, run_tests, write

DAY = 86400
CLOCK_OFFSET = 256  # docs/shm.md
REAL_AT = 368


def run(weir, *words):
    return subprocess.run([weir, *words], capture_output=True, text=True, timeout=60)


def take(weir, table, key="k", limit="2/1h", *more):
    return run(weir, "take", "--table", table, "--limit", limit, key, *more)


def shift_clock(table, seconds):
    """As if the host's clock had been wrong by this much when the table was made."""
    with open(table, "r+b") as file:
        file.seek(CLOCK_OFFSET)
        (offset,) = struct.unpack("<q", file.read(8))
        file.seek(CLOCK_OFFSET)
        file.write(struct.pack("<q", offset + seconds * 10**9))
        file.seek(REAL_AT)
        file.write(bytes(8))


def fill_slab(table, size):
    """As if there had been asks in each bucket of its windows.  The slab is at the end."""
    with open(table, "r+b") as file:
        file.seek(32)  # docs/shm.md
        (slab,) = struct.unpack("<Q", file.read(8))
        file.seek(-slab, os.SEEK_END)
        file.write(b"\1" * size)


def is_near(a, b=None):
    return abs(a - (time.time() if b is None else b)) < 20


def test_dates_are_right_although_the_table_was_made_with_a_wrong_clock(weir):
    for wrong in (-90 * DAY, 5 * 365 * DAY):
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "table")
            assert take(weir, table).returncode == 0
            shift_clock(table, wrong)
            with Server(weir, table=table, clock=False) as server:
                with server.resp() as client:
                    assert is_near(int(client("TIME")[0]))
                answer = server.http()("GET", "/v1/status")
                date = email.utils.parsedate_to_datetime(answer.headers["date"])
                assert is_near(date.timestamp())
                assert answer.json()["now"][:4] == time.strftime("%Y", time.gmtime())
            assert take(weir, table).returncode == 0  # the second of two: other limits go on


def test_a_server_whose_table_is_cut_says_so(weir):
    for idle in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "table")
            server = Server(weir, "--keys", "1000", table=table, clock=False)
            client = server.resp()
            assert client("CL.THROTTLE", "k", "5", "5", "60")[0] == 0
            os.truncate(table, 4096)
            for i in range(0 if idle else 1000):
                try:
                    client("CL.THROTTLE", "k%d" % i, "5", "5", "60")
                except (EOFError, OSError):
                    break
            server.process.wait(timeout=60)
            server.stop(expect=2)
            said = server.stop_said
            assert "%s was cut by another program" % table in said, said
            client.close()
            done = run(weir, "serve", "--table", table, "--resp", "127.0.0.1:0", "--http", "")
            assert done.returncode == 2 and "too short" in done.stderr, done


def test_a_table_that_was_cut_is_refused(weir):
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "table")
        assert take(weir, table).returncode == 0
        os.truncate(table, os.path.getsize(table) - 4096)
        done = take(weir, table)
        assert done.returncode == 2 and "was the file cut?" in done.stderr, done


def test_T4_messages_of_a_command_do_not_get_into_the_table(weir):
    """Where a standard descriptor is closed, the table must not take its number."""
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "t")
        for closed in ("2>&-", ">&-", "<&- >&- 2>&-"):
            for words in ("take --limit 2/1h k", "take --name unknown k",
                          "bans --lift --rule unknown k"):
                verb, *rest = words.split()
                line = '"$0" "$@" ' + closed
                subprocess.run(["sh", "-c", line, weir, verb, "--table", table, *rest], timeout=60,
                               capture_output=True)
                got = run(weir, "table", table)
                assert got.returncode == 0, (closed, words, got.stderr)
        got = run(weir, "peek", "--table", table, "--limit", "2/1h", "k")
        assert got.returncode == 1, got.stdout + got.stderr


def test_owner_and_group_of_a_new_table(weir):
    if os.geteuid() != 0:
        print("skipped: only root can give files away")
        return
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "table")
        with Server(weir, "--table-group", "daemon", "--table-owner", "12345", table=table):
            found = os.stat(table)
            assert found.st_uid == 12345 and found.st_gid == grp.getgrnam("daemon").gr_gid
            assert found.st_mode & 0o777 == 0o660
        other = os.path.join(folder, "other")
        assert take(weir, other, "k", "2/1h", "--group", "daemon", "--mode", "0640").returncode == 0
        found = os.stat(other)
        assert found.st_gid == grp.getgrnam("daemon").gr_gid and found.st_mode & 0o777 == 0o640
        done = take(weir, os.path.join(folder, "third"), "k", "2/1h", "--group", "no-such-group")
        assert done.returncode == 2 and "there is no group 'no-such-group'" in done.stderr, done


def test_whose_table_it_is(weir):
    """A user that may not open it reads whom to ask."""
    if os.geteuid() != 0:
        print("skipped: only root can become somebody else")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        table = os.path.join(folder, "table")
        assert take(weir, table, "k", "2/1h").returncode == 0
        copy = shutil.copy(weir, folder)
        for owner, name in (pwd.getpwnam("daemon").pw_uid, "daemon"), (12345, "12345"):
            os.chown(table, owner, owner)
            for words in ["bans", "--table", table], ["table", table]:
                done = subprocess.run([copy, *words], capture_output=True, text=True, user="nobody")
                assert done.returncode == 2 and done.stderr.endswith(
                    "Permission denied; it belongs to the user %s\n" % name), done


# ------------------------------------------------------------------------------ format 3 ----

FORMAT3 = {  # what the program that made the file says of its keys at this time
    "api": {"k%d" % i: 9 - i % 10 for i in range(60)},
    "changed": {"old": 16, "mid": 16, "new": 16, "other": 20},
    "month": {"k": 1, "other": 3},
    "fixed": {"k": 4, "other": 7},
    "smooth": {"k": 9, "other": 10},
    "window": {"k": 5},  # starts fresh
}
THEN = "2000000001s"


def old_table(folder, name="format3.gz"):
    """A file of format 3, made by the library that wrote it."""
    path = os.path.join(folder, "table")
    with gzip.open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name)) as file:
        with open(path, "wb") as out:
            out.write(file.read())
    os.chmod(path, 0o640)
    return path


def remaining(weir, table, name, key):
    done = run(weir, "peek", "--table", table, "--name", name, "--cost", "0", "--now", THEN,
               "--json", key)
    return json.loads(done.stdout)["remaining"]


def test_a_table_of_format_3_is_refused_and_the_refusal_names_the_way(weir):
    with tempfile.TemporaryDirectory() as folder:
        table = old_table(folder)
        before = open(table, "rb").read()
        serve = ("serve", "--table", table, "--resp", "127.0.0.1:0", "--http", "")
        for words in ("table", table), serve:
            done = run(weir, *words)
            assert done.returncode == 2 and "format 3" in done.stderr, done
            assert "--upgrade" in done.stderr, done
        assert open(table, "rb").read() == before


def test_a_table_of_format_3_is_upgraded(weir):
    with tempfile.TemporaryDirectory() as folder:
        table = old_table(folder)
        done = run(weir, "table", table, "--upgrade")
        assert done.returncode == 0, done
        assert "7 limiters, 68 states, 2 bans; 1 state starts fresh" in done.stdout, done
        for name, keys in FORMAT3.items():
            for key, left in keys.items():
                assert remaining(weir, table, name, key) == left, (name, key)
        done = run(weir, "peek", "--table", table, "--name", "warm", "--now", THEN, "k")
        assert done.stdout == "would be refused, retry in 16m 47s\n", done
        done = run(weir, "bans", "--table", table, "--now", THEN)
        assert done.stdout.count("for another 24h") == 2 and "203.0.113.9 " in done.stdout, done
        assert os.stat(table).st_mode & 0o777 == 0o640
        assert os.listdir(folder) == ["table"]
        with Server(weir, table=table) as server:
            server.clock(2000000000)
            with server.resp() as client:
                assert client("CL.THROTTLE", "ann", "15", "30", "60", "0")[2] == 11
        done = run(weir, "table", table, "--upgrade")
        assert done.returncode == 2 and "format 6 already" in done.stderr, done


def test_what_cannot_be_upgraded_is_refused_and_stays(weir):
    with tempfile.TemporaryDirectory() as folder:
        def expect(words):
            before = open(table, "rb").read()
            done = run(weir, "table", table, "--upgrade")
            assert done.returncode == 2 and words in done.stderr, (words, done)
            assert open(table, "rb").read() == before and os.listdir(folder) == ["table"]

        table = old_table(folder, "format3-narrow.gz")
        expect("narrow")
        for at, bytes_, words in ((8, b"\2", "only formats 3 and 5"), (24, b"\xff", "damaged"),
                                  (250, b"?", "damaged"), (0, b"X", "not a Weir table")):
            table = old_table(folder)
            with open(table, "r+b") as file:
                file.seek(at)
                file.write(bytes_)
            expect(words)
        table = old_table(folder)
        os.truncate(table, os.path.getsize(table) - 4096)
        expect("damaged")
        os.truncate(table, 100)
        expect("too short")
        table = old_table(folder)
        with open(table) as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            expect("in use")


def test_a_damaged_table_of_format_3_is_refused_or_becomes_a_table(weir):
    """Any bytes behind the header: no crash, and the outcome is a table."""
    chance = random.Random(3)
    for _ in range(60):
        with tempfile.TemporaryDirectory() as folder:
            table = old_table(folder)
            with open(table, "r+b") as file:
                for _ in range(chance.choice((1, 10, 1000))):
                    file.seek(chance.choice((256 + chance.randrange(192),
                                             8192 + chance.randrange(12000),
                                             chance.randrange(8192, os.path.getsize(table)))))
                    file.write(bytes([chance.choice((0, 1, 255, chance.randrange(256)))]))
            done = run(weir, "table", table, "--upgrade")
            assert done.returncode in (0, 2), done
            if done.returncode == 0:
                assert run(weir, "table", table).returncode == 0
                assert take(weir, table, "fresh").returncode == 0


# ------------------------------------------------------------------------------ format 5 ----

FORMAT5 = {  # as above; 60 keys of a limiter that went left slots behind
    "api": {"k%d" % i: 9 - i % 10 for i in range(60)},
    "window": {"k": 5, "other": 10},
    "log": {"k": 4, "other": 7},
    "fixed": {"k": 4, "other": 7},
}


def table_of_format_5(folder):
    """Made by the library that wrote it, which was killed with three permits of a guard out."""
    path = os.path.join(folder, "table")
    with lzma.open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "format5.xz")) as file:
        with open(path, "wb") as out:
            out.write(file.read())
    return path


def test_T3_a_table_of_format_5_is_upgraded_with_all_states(weir):
    with tempfile.TemporaryDirectory() as folder:
        table = table_of_format_5(folder)
        done = run(weir, "table", table)
        assert done.returncode == 2 and "--upgrade" in done.stderr, done
        done = run(weir, "table", table, "--upgrade")
        assert done.returncode == 0 and "4 limiters, 64 states, 3 bans\n" in done.stdout, done
        for name, keys in FORMAT5.items():
            for key, left in keys.items():
                assert remaining(weir, table, name, key) == left, (name, key)
        done = run(weir, "bans", "--table", table, "--now", THEN)
        assert done.stdout.count("for another 24h") == 3, done
        slots = lzma.open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "format5.xz"))
        left_tag = (0x3fffe).to_bytes(8, "little")
        assert slots.read().count(left_tag) >= 60 > open(table, "rb").read().count(left_tag)
        done = run(weir, "guards", "--table", table)
        assert "backend" not in done.stdout, done
        done = run(weir, "table", table, "--upgrade")
        assert done.returncode == 2 and "format 6 already" in done.stderr, done


def test_T3_an_upgrade_from_format_5_that_was_killed_is_taken_up_again(weir):
    """The format is written, its check is not."""
    with tempfile.TemporaryDirectory() as folder:
        table = table_of_format_5(folder)
        with open(table, "r+b") as file:
            file.seek(8)
            file.write(struct.pack("<I", 6))
        assert run(weir, "table", table).returncode == 2
        done = run(weir, "table", table, "--upgrade")
        assert done.returncode == 0 and "4 limiters, 64 states, 3 bans\n" in done.stdout, done
        for name, keys in FORMAT5.items():
            for key, left in keys.items():
                assert remaining(weir, table, name, key) == left, (name, key)
        assert open(table, "rb").read().count((0x3fffe).to_bytes(8, "little")) < 60


def test_T4_a_damaged_table_of_format_5_is_refused_or_becomes_a_table(weir):
    chance = random.Random(5)
    for _ in range(30):
        with tempfile.TemporaryDirectory() as folder:
            table = table_of_format_5(folder)
            size = os.path.getsize(table)
            with open(table, "r+b") as file:
                for _ in range(chance.choice((1, 10, 1000))):
                    file.seek(chance.choice((16 + chance.randrange(500),
                                             chance.randrange(6 << 20, size))))
                    file.write(bytes([chance.choice((0, 1, 255, chance.randrange(256)))]))
            before = open(table, "rb").read()
            done = run(weir, "table", table, "--upgrade")
            assert done.returncode in (0, 2), done
            if done.returncode == 0:
                assert run(weir, "table", table).returncode == 0
                assert take(weir, table, "fresh").returncode == 0
            else:
                assert open(table, "rb").read() == before, done


# ------------------------------------------------------- by hand, without a server to ask ----


def test_a_reset_and_a_mode_by_the_table_hold_in_its_server(weir):
    """As for nginx alone on its table: commands that need no server reach those who use it."""
    login = "ip=192.0.2.7", "uri=/login"
    text = """version: 1
rules:
  - name: login
    match: { uri: /login }
    key: "{ip}"
    limit: 2/1h
    ban: { refusals: 3/1h, for: 10h }
"""
    with tempfile.TemporaryDirectory() as folder:
        table, rules = os.path.join(folder, "table"), os.path.join(folder, "rules.yaml")
        write(rules, text)
        with Server(weir, "--keys", "5000", table=table, rules=text, clock=False) as server:
            http = server.http()

            def is_allowed():
                return http.check(ip="192.0.2.7", uri="/login").json()["allowed"]

            def reset(*words):
                done = run(weir, "reset", "--table", table, "--rules", rules, *words)
                return done.returncode, done.stdout + done.stderr

            for words in (), ("--rule", "login"):
                while is_allowed():
                    pass
                assert reset(*words, *login)[0] == 0
                assert is_allowed()
            while "banned" not in http.check(ip="192.0.2.7", uri="/login").json()["reason"]:
                pass
            assert reset("--rule", "login", *login)[0] == 0 and is_allowed()
            code, said = reset("--rule", "login", "ip=192.0.2.7")
            assert code == 1 and "login does not apply to this request" in said, said
            code, said = reset("--rule", "x", *login)
            assert code == 2 and "there is no rule 'x'" in said, said
            write(rules, text.replace("name: login", "name: sign-in"))
            code, said = reset("--rule", "sign-in", *login)
            assert code == 1 and "the table has no such rule" in said, said
            done = run(weir, "reset", "--table", table, *login)
            assert done.returncode == 2 and "--table needs --rules FILE" in done.stderr, done

            def mode(*words):
                done = run(weir, "mode", "--table", table, *words)
                return done.returncode, done.stdout + done.stderr

            assert mode() == (0, "all rules: as-written\n"), mode()
            while is_allowed():
                pass
            for rule in (), ("--rule", "login"):
                assert mode("shadow", *rule)[0] == 0
                assert is_allowed()
                assert ": shadow by hand\n" in mode()[1], mode()
                assert mode("as-written", *rule)[0] == 0
                assert not is_allowed()
            code, said = mode("off", "--rule", "x")
            assert code == 2 and "there is no rule or guard 'x' in the table" in said, said
            http.close()


def test_bans_of_rules_that_are_not_in_force_are_marked(weir):
    """As for nginx alone on its table: its rule file says which rules there are."""
    with tempfile.TemporaryDirectory() as folder:
        table, rules = os.path.join(folder, "table"), os.path.join(folder, "rules.yaml")
        with Server(weir, "--keys", "5000", table=table, rules=RULES, clock=False) as server:
            with server.resp() as client:
                client("WEIR.BAN", "login", "192.0.2.7", "1h")
            for name, marked in ("login", False), ("sign-in", True):
                write(rules, RULES.replace("name: login", "name: " + name))
                done = run(weir, "bans", "--table", table, "--rules", rules)
                assert done.returncode == 0 and "192.0.2.7" in done.stdout, done
                assert ("; not in force: the rules have no such rule\n" in done.stdout) == marked
            done = run(weir, "bans", "--rules", rules)
            assert done.returncode == 2 and "--rules needs --table FILE" in done.stderr, done
            done = run(weir, "bans", "--table", table, "--rules", rules, "--json")
            assert done.returncode == 2 and "only for the list in words" in done.stderr, done


# -------------------------------------------------------------------------------- backup ----


def test_a_backup_while_in_use_is_restored(weir):
    with tempfile.TemporaryDirectory() as folder:
        table, copy = os.path.join(folder, "table"), os.path.join(folder, "copy")
        with Server(weir, "--keys", "5000", table=table, rules=RULES) as server:
            with server.resp() as client:
                for i in range(300):
                    client("CL.THROTTLE", "k%d" % i, "9", "10", "3600", i % 10)
            http = server.http()
            for _ in range(6):
                http.check(ip="192.0.2.1", uri="/")
            done = run(weir, "table", table, "--backup", copy)
            assert done.returncode == 0 and done.stdout.startswith("wrote %s: " % copy), done
            done = run(weir, "table", table, "--backup", copy)
            assert done.returncode == 2 and "there already" in done.stderr, done
            http.close()
        os.remove(table)
        os.rename(copy, table)  # restored
        with Server(weir, "--keys", "5000", table=table, rules=RULES) as server:
            with server.resp() as client:
                for i in range(300):
                    assert client("CL.THROTTLE", "k%d" % i, "9", "10", "3600", "0")[2] == (
                        10 - i % 10), i
            http = server.http()
            assert not http.check(ip="192.0.2.1", uri="/").json()["allowed"]
            assert http.check(ip="192.0.2.2", uri="/").json()["allowed"]
            http.close()


LARGE = """version: 1
rules:
  - name: windows
    key: "{ip}"
    limit: sliding-window 1000/1h buckets=8000
guards:
  - name: work
    concurrency: { max: 2000 }
"""


def test_a_copy_without_disk_space_gets_it(weir):
    """Else a disk that is full later ends whoever writes where only zeros were: in a slot, or in a
    window that is nearly empty.  Windows that have their space do not hide slots that have none."""
    with tempfile.TemporaryDirectory() as folder:
        table, copy = os.path.join(folder, "table"), os.path.join(folder, "copy")
        with Server(weir, "--keys", "50000", table=table, rules=LARGE) as server:
            http = server.http()
            for i in range(200):
                http.check(ip="192.0.2.%d" % i)
            http.close()
        slab = 200 * 32768 // 512
        slots = 50000 * 32 // 512
        for written in False, True:
            if written:
                fill_slab(table, slab * 512)
            subprocess.run(["cp", "--sparse=always", table, copy], check=True)
            room = [os.stat(copy).st_blocks]
            for _ in range(2):
                assert run(weir, "table", copy).returncode == 0
                room.append(os.stat(copy).st_blocks)
            assert room[0] < slab + slots <= room[1] == room[2], (slab, slots, room)
            os.remove(copy)


WITHOUT_SPACE = """
mount -t tmpfs -o size=24m tmpfs {disk} && : >{disk}/table || exit 77
{weir} take --table {disk}/table --keys 5000000 --limit 10/1m k
echo $? $(du -k {disk}/table)
"""


def test_a_table_that_cannot_be_made_keeps_no_space(weir):
    """A file that was there stays, and others need the memory that is behind it."""
    if subprocess.run(["unshare", "-rm", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: no disk of its own can be had")
        return
    with tempfile.TemporaryDirectory() as folder:
        disk = os.path.join(folder, "disk")
        os.mkdir(disk)
        script = WITHOUT_SPACE.format(disk=disk, weir=weir)
        done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True,
                              text=True)
        if done.returncode == 77:
            print("skipped: no disk of its own can be had")
            return
        assert "No space left" in done.stderr, done
        assert done.stdout.split()[:2] == ["2", "0"], done


def test_a_backup_has_the_rules_and_lists_beside_the_table(weir):
    """Rules that came by the API and lists changed by hand are in files beside the table."""
    with tempfile.TemporaryDirectory() as folder:
        table, copy = os.path.join(folder, "table"), os.path.join(folder, "copy")
        with Server(weir, "--keys", "5000", table=table) as server, server.resp() as client:
            client("WEIR.RULES.SET", RULES)
            client("WEIR.LIST.ADD", "deny", "ip", "192.0.2.66")
            os.chmod(table + ".rules", 0o640)
            write(copy + ".lists", "somebody's")
            done = run(weir, "table", table, "--backup", copy)
            assert done.returncode == 2 and "copy.lists' is there already" in done.stderr, done
            assert sorted(os.listdir(folder))[0] == "copy.lists", os.listdir(folder)
            assert not os.path.exists(copy) and not os.path.exists(copy + ".rules")
            os.remove(copy + ".lists")
            done = run(weir, "table", table, "--backup", copy)
            assert done.returncode == 0, done
            for end in ".rules", ".lists":
                assert "wrote %s%s\n" % (copy, end) in done.stdout, done
                with open(table + end) as old, open(copy + end) as new:
                    assert old.read() == new.read()
                modes = [os.stat(name + end).st_mode for name in (table, copy)]
                assert modes[0] == modes[1], modes
        with Server(weir, "--keys", "5000", table=copy) as server, server.resp() as client:
            assert client.json("WEIR.STATUS")["rules"]["rules"] > 0
            http = server.http()
            assert http.check(ip="192.0.2.66").json()["list"] == "deny"
            http.close()


if __name__ == "__main__":
    run_tests(globals())
