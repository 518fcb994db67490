#!/usr/bin/env python3
"""table-lock.py -- a table that somebody keeps locked: everybody gives up after 30 seconds."""
import fcntl
import os
import subprocess
import tempfile
import time

from serving import run_tests


def test_everybody_gives_up_waiting_for_a_lock(weir):
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "table")
        take = ["take", "--table", table, "--limit", "2/1h", "k"]
        assert subprocess.run([weir, *take], stdout=subprocess.DEVNULL, timeout=60).returncode == 0
        commands = (take, ["peek", *take[1:]], ["table", table], ["bans", "--table", table],
                    ["guards", "--table", table],
                    ["serve", "--table", table, "--resp", "127.0.0.1:0", "--http", ""])
        with open(table) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            began = time.monotonic()
            waiting = [subprocess.Popen([weir, *words], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True) for words in commands]
            for words, process in zip(commands, waiting):
                said = process.communicate(timeout=120)[1]
                assert process.returncode == 2, (words, said)
                assert "pid %d: waiting for it" % os.getpid() in said, (words, said)
                assert "gave up after 30 seconds" in said, (words, said)
            assert time.monotonic() - began >= 29


if __name__ == "__main__":
    run_tests(globals())
