#!/usr/bin/env python3
"""table-file.py -- what happens to a table's file, from outside: made with a wrong clock."""
import email.utils
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


if __name__ == "__main__":
    run_tests(globals())
