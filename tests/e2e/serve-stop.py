#!/usr/bin/python3
"""serve-stop.py WEIR SPEND [TEST...] -- a library process on the server's table is stopped
(SIGSTOP) wherever it happens to be: the server goes on, and nothing is granted twice later.  Or the
server itself is."""
import os
import signal
import subprocess
import sys
import tempfile

from serving import Server, Told, encode, is_closed, run_tests, takes_a_clock, until

LIMIT = 200000
RULES = """version: 1
rules:
  - name: all
    key: "{ip}"
    limit: [%d/1d, sliding-window %d/1d, sliding-window %d/7d]
""" % (LIMIT + 7, LIMIT, LIMIT + 9)
MOMENT = 1000
SPEND = sys.argv.pop(2)


def spender(table, rules, times):
    return subprocess.Popen([SPEND, table, rules, str(MOMENT), str(times), "ip=192.0.2.7"],
                            stdout=subprocess.PIPE, text=True)


def use(server, resp, n):
    """All that could need what a stopped process has.  Returns how many checks passed."""
    allowed = sum(resp("WEIR.CHECK", "ip", "192.0.2.7")[0] for _ in range(20))
    for i in range(5):
        for limit, name in [(5, "n%d-%d" % (n, i)), (6 + i, "n%d-0" % n)]:
            words = ["WEIR.TAKE", "key", "sliding-window %d/1m" % limit, "NAME", name]
            assert isinstance(resp(*words), list)
    assert server.http()("GET", "/healthz").status == 200
    return allowed


def test_a_stopped_process_delays_nobody(weir):
    with tempfile.TemporaryDirectory(prefix="weir-stop-") as folder:
        table = os.path.join(folder, "table")
        with Server(weir, rules=RULES, table=table) as server, server.resp() as resp:
            server.clock(MOMENT)
            process = spender(table, server.rules, 2 * LIMIT)
            allowed, stops = 0, 0
            while process.poll() is None and stops < 40:
                process.send_signal(signal.SIGSTOP)
                allowed += use(server, resp, stops)
                process.send_signal(signal.SIGCONT)
                stops += 1
            spent, _ = process.communicate()
            while resp("WEIR.CHECK", "ip", "192.0.2.7")[0]:
                allowed += 1
            assert allowed + int(spent) == LIMIT, (allowed, spent, stops)


def test_the_server_ends_while_another_process_is_stopped(weir):
    with tempfile.TemporaryDirectory(prefix="weir-stop-") as folder:
        table = os.path.join(folder, "table")
        for _ in range(5):
            with Server(weir, rules=RULES, table=table) as server, server.resp() as resp:
                process = spender(table, server.rules, 1000 * LIMIT)
                use(server, resp, 0)
                process.send_signal(signal.SIGSTOP)
                use(server, resp, 1)
                server.process.send_signal(signal.SIGTERM)
                assert server.process.wait(timeout=60) == 0
                process.kill()
                process.communicate()


def test_a_server_that_was_stopped_takes_nobody_for_slow(weir):
    """By a clock that is told: a minute passes while it stands still.  A client that has gone on
    meanwhile is answered; another that has not is closed when the clock says so."""
    if not takes_a_clock(weir):
        return
    told, ask = Told(), encode(["ECHO", "x"])
    with Server(weir, threads=1, clock=False, env=told.env(weir)) as server, \
            server.resp() as other, server.resp() as quick, server.resp() as slow:
        for client in (quick, slow):
            client.socket.sendall(ask[:-4])
        for i in range(3):  # then the one thread has read what came before
            assert other("ECHO", i) == str(i)
        server.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, server.process.pid, os.WSTOPPED)
        quick.socket.sendall(ask[-4:])
        told.step(60000)
        server.process.send_signal(signal.SIGCONT)
        assert quick.read() == "x"
        until("the other is closed", lambda: told.step(1000) or is_closed(slow.socket, 0.1))
        assert other.json("WEIR.STATUS")["totals"]["timed_out"] == 1


if __name__ == "__main__":
    run_tests(globals())
