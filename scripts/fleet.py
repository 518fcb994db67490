#!/usr/bin/env python3
"""fleet.py WEIR [--seconds N] [--story] -- a fleet on this host, to watch and to break: a Redis,
three nodes of `weir serve` with one limit across them, and twice as many asks as it lets pass.

Draws what each node admits, twice a second.  Keys:

    1 2 3   kill that node, or start it again
    r       kill Redis, or start it again
    s       stop Redis (SIGSTOP), or let it go on
    q       end

--story presses r after 4 s and again after 8 s, for watchers without a keyboard.  All of it listens
on loopback, on ports that were free, and is stopped by its own pid.
"""
import argparse
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
import tty

LIMIT = 300
RULES = """version: 1
rules:
  - name: everybody
    key: "{service}"
    limit: token-bucket %d/1s
    across: fleet
    within: 100ms
""" % LIMIT
ASKS = 2 * LIMIT // 3  # a second, at each node
COLOURS = [32, 33, 36]
MOST = 1.25  # of the limit, that a bar can show


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Part:
    """A program of the fleet."""

    def __init__(self, command):
        self.command, self.process, self.stopped = command, None, False
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

    @property
    def runs(self):
        return self.process.poll() is None

    def toggle(self):
        if self.runs:
            self.process.kill()
            self.process.wait()
            self.stopped = False
        else:
            self.start()

    def stop_or_go_on(self):
        if self.runs:
            self.stopped = not self.stopped
            self.process.send_signal(signal.SIGSTOP if self.stopped else signal.SIGCONT)

    def end(self):
        if self.runs:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            self.process.wait()


class Load(threading.Thread):
    """Asks a node at an even rate, and counts its answers."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.allowed, self.refused = port, 0, 0

    def run(self):
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=2) as s:
                    self.ask(s)
            except OSError:
                time.sleep(0.1)

    def ask(self, s):
        command = b"*3\r\n$10\r\nWEIR.CHECK\r\n$7\r\nservice\r\n$4\r\ndemo\r\n"
        answers, due = s.makefile("rb"), time.monotonic()
        while True:
            s.sendall(command)
            if answers.readline() != b"*10\r\n":
                raise OSError("no answer")
            if answers.readline() == b":1\r\n":
                self.allowed += 1
            else:
                self.refused += 1
            self.skip(answers)
            due = max(due + 1 / ASKS, time.monotonic() - 0.1)
            time.sleep(max(0, due - time.monotonic()))

    @staticmethod
    def skip(answers):
        """The nine members behind `allowed`: a line each, two for a text."""
        for _ in range(9):
            line = answers.readline()
            if not line:
                raise OSError("closed")
            if line[:1] == b"$" and line != b"$-1\r\n":
                answers.readline()


class Fleet:
    def __init__(self):
        self.redis, self.nodes, self.loads = None, [], []

    def start(self, weir, folder):
        rules = os.path.join(folder, "rules.yaml")
        with open(rules, "w", encoding="ascii") as file:
            file.write(RULES)
        port = free_port()
        self.redis = Part(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save",
                           "", "--dir", folder])
        for i in range(3):
            resp = free_port()
            self.nodes.append(Part([
                weir, "serve", "--memory", "--threads", "1", "--rules", rules, "--http", "",
                "--resp", "127.0.0.1:%d" % resp, "--fleet", "redis://127.0.0.1:%d" % port,
                "--fleet-node", "node-%d" % (i + 1)]))
            self.loads.append(Load(resp))
            self.loads[-1].start()

    def press(self, key):
        if key in "123":
            self.nodes[int(key) - 1].toggle()
        elif key == "r":
            self.redis.toggle()
        elif key == "s":
            self.redis.stop_or_go_on()

    def end(self):
        for part in self.nodes + ([self.redis] if self.redis else []):
            part.end()


def bar(n, colour):
    """A line that wrapped would spoil the next drawing."""
    wide = min(60, (shutil.get_terminal_size().columns - 22) / MOST)  # beside name, rate and state
    cells = int(min(n / LIMIT, MOST) * wide)
    return "\033[%dm%s\033[0m" % (colour, "█" * cells)


def state_of(node, rate, redis):
    """A node that runs and admits nothing has not joined: half of its asks fit into its part."""
    if not node.runs:
        return "dead"
    if rate > 0:
        return ""
    return "no part yet" if redis == "answers" else "waits for Redis: no part yet"


def draw(fleet, rates, first):
    """Over the lines of the last time."""
    lines = ["limit %d/s across three nodes, at first a burst; %d/s asked" % (LIMIT, 3 * ASKS),
             "1 2 3 kill or start a node   r Redis   s stop Redis   q end"]
    redis = "dead" if not fleet.redis.runs else "stopped" if fleet.redis.stopped else "answers"
    for i, rate in enumerate(rates):
        state = state_of(fleet.nodes[i], rate, redis)
        lines.append("node-%d %5.0f/s %s  %s" % (i + 1, rate, bar(rate, COLOURS[i]), state))
    lines.append("all    %5.0f/s %s" % (sum(rates), bar(sum(rates), 37)))
    lines.append("limit  %5d/s %s" % (LIMIT, bar(LIMIT, 90)))
    lines.append("Redis %s" % redis)
    if not first and sys.stdout.isatty():
        sys.stdout.write("\033[%dA" % len(lines))
    for line in lines:
        sys.stdout.write(line + "\033[K\n")
    sys.stdout.flush()


def key_pressed(wait):
    if not sys.stdin.isatty():
        time.sleep(wait)
        return ""
    ready, _, _ = select.select([sys.stdin], [], [], wait)
    return os.read(sys.stdin.fileno(), 1).decode("ascii", "replace") if ready else ""


def watch(fleet, seconds, story):
    begin = last = time.monotonic()
    counts, first, told = [0] * 3, True, 0
    while not seconds or last - begin < seconds:
        key = key_pressed(0.5)
        if story and told < 2 and last - begin > 4 * (told + 1):
            key, told = "r", told + 1
        if key == "q":
            return
        fleet.press(key) if key else None
        now = time.monotonic()
        if now - last < 0.4:
            continue
        allowed = [load.allowed for load in fleet.loads]
        draw(fleet, [(a - b) / (now - last) for a, b in zip(allowed, counts)], first)
        counts, last, first = allowed, now, False


def main():
    parser = argparse.ArgumentParser(description="a fleet on this host, to watch and to break")
    parser.add_argument("weir")
    parser.add_argument("--seconds", type=float, default=0, help="end after this time")
    parser.add_argument("--story", action="store_true", help="Redis dies after 4 s, and is back "
                        "after 8 s")
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):  # the terminal is closed: end as by q
        signal.signal(number, lambda *_: sys.exit(0))
    saved = termios.tcgetattr(sys.stdin) if sys.stdin.isatty() else None
    with tempfile.TemporaryDirectory(prefix="weir-fleet-") as folder:
        fleet = Fleet()
        try:
            fleet.start(os.path.abspath(options.weir), folder)
            if saved:
                tty.setcbreak(sys.stdin)
            watch(fleet, options.seconds, options.story)
        except KeyboardInterrupt:
            pass
        finally:
            fleet.end()
            if saved:
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)


if __name__ == "__main__":
    main()
