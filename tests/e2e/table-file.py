#!/usr/bin/env python3
"""table-file.py -- what happens to a table's file, from outside: a wrong clock, a cut, its owner."""
import email.utils
import grp
import os
import struct
import subprocess
import tempfile
import time

from serving import Server, run_tests

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
            assert server.process.wait(timeout=60) == 2
            said = server.complaints()
            assert "%s was cut by another program" % table in said, said
            client.close()
            server.process.stdout.close()
            server.errors.close()
            done = run(weir, "serve", "--table", table, "--resp", "127.0.0.1:0", "--http", "")
            assert done.returncode == 2 and "too short" in done.stderr, done


def test_a_table_that_was_cut_is_refused(weir):
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "table")
        assert take(weir, table).returncode == 0
        os.truncate(table, os.path.getsize(table) - 4096)
        done = take(weir, table)
        assert done.returncode == 2 and "was the file cut?" in done.stderr, done


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


if __name__ == "__main__":
    run_tests(globals())
