"""serving.py -- shared by the tests of `weir serve`: a server on ports of its own, stopped by its
own pid, and the smallest clients.

A server is started with --test-clock unless told otherwise: time stands still until a test moves
it.  Nothing sleeps."""
import contextlib
import http.client
import itertools
import json
import mmap
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

SECOND = 1_000_000_000
LONG = "--long" in sys.argv or os.environ.get("WEIR_LONG") == "1"
# Meson has malloc fill all that it gives: of a server 60 MB that are for later.  ASan's fills too.
os.environ["MALLOC_PERTURB_"] = "0"
PATIENCE = 1200 if LONG else 240  # seconds for a test, on a busy machine and with a sanitizer

# One of everything: a plain limit, one that bans, one in shadow, lists.
RULES = """version: 1
rules:
  - name: per-ip
    key: "{ip}"
    limit: 5/10s
  - name: login
    match: { uri: /login }
    paths: strict
    key: "{ip}"
    limit: 2/60s
    ban: { refusals: 3/60s, for: 10m }
  - name: crawlers
    match: { header.user-agent: "*bot*" }
    key: "{ip}"
    limit: 1/60s
    mode: shadow
lists:
  deny: { ip: [203.0.113.0/24] }
  allow: { account: [root] }
"""


ports = itertools.count(64 * os.getpid())  # tests that run side by side try others first
claims = []  # until this process ends


def claim(port):
    """Whether it is ours from now on: nobody listens there, and no other test has claimed it."""
    claimed = socket.socket(socket.AF_UNIX)
    with socket.socket() as s, contextlib.suppress(OSError):
        claimed.bind("\0weir-tests-port-%d" % port)
        s.bind(("127.0.0.1", port))
        claims.append(claimed)
        return True
    claimed.close()
    return False


def free_port(bus=0):
    """A port for us alone, and that the kernel gives to nobody before it is used: it chooses from
    32768 on.  `bus`: the port that is so much higher is ours, too."""
    while True:
        port = 10000 + next(ports) % (22768 - bus)
        if claim(port) and (not bus or claim(port + bus)):
            return port


class Running:
    """For with: stops at the end of the block; after a failure kills, and shows the output."""

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.stop()
        else:
            self.process.kill()
            self.process.wait()
            sys.stderr.write(self.complaints())
            shutil.rmtree(self.folder, ignore_errors=True)


def state_of(pid):
    """Of a process: a letter and its parent; one that has ended and nobody has waited for is Z."""
    try:
        with open("/proc/%d/stat" % pid) as file:
            state, parent = file.read().rpartition(")")[2].split()[:2]
            return state, int(parent)
    except OSError:  # nobody knows it any more
        return "Z", 0


def children_of(pid):
    return [child for child in map(int, filter(str.isdigit, os.listdir("/proc")))
            if state_of(child)[1] == pid]


def ask_for_successor(pid):
    """By SIGUSR2; returns when there is one, or the server has ended."""
    os.kill(pid, signal.SIGUSR2)
    until("SIGUSR2 is heard", lambda: children_of(pid) or state_of(pid)[0] == "Z")


def where_threads_are(pid):
    """Of a process that hangs: for each thread its name, and the call of the kernel it is in."""
    folder = "/proc/%d/task" % pid
    lines = []
    for thread in sorted(os.listdir(folder)):
        words = []
        for name in ["comm", "wchan", "syscall"]:
            with open(os.path.join(folder, thread, name), encoding="ascii") as file:
                words.append(file.read().strip())
        lines.append("%s %s" % (thread, " ".join(words)))
    return "\n".join(lines)


class Told:
    """A clock in a file, in milliseconds, for programs that are started with env()."""

    def __init__(self):
        self.file = tempfile.NamedTemporaryFile(prefix="weir-clock-")
        self.now = 1_700_000_000_000
        self.file.write(struct.pack("q", self.now))
        self.file.flush()
        os.chmod(self.file.name, 0o644)
        self.map = mmap.mmap(self.file.fileno(), 8)

    def env(self, weir):
        library = os.path.join(os.path.dirname(os.path.abspath(weir)), "tests", "told-clock.so")
        return {"LD_PRELOAD": library, "TOLD_CLOCK": self.file.name}

    def step(self, ms):
        self.now += ms
        self.map[:] = struct.pack("q", self.now)


class Server(Running):
    """weir serve, ready when the constructor returns."""

    def __init__(self, weir, *options, rules=None, clock=True, table=None, env=None,
                 resp="127.0.0.1:0", http="127.0.0.1:0", threads=2):
        self.folder = tempfile.mkdtemp(prefix="weir-test-")
        self.weir = weir
        command = [weir, "serve", "--resp", resp, "--http", http, "--threads", str(threads)]
        command += ["--table", table] if table else ["--memory"]
        if clock:
            command.append("--test-clock")
        if rules is not None:
            self.rules = os.path.join(self.folder, "rules.yaml")
            write(self.rules, rules)
            command += ["--rules", self.rules]
        self.command = command + list(options)
        self.env = dict(os.environ, **(env or {}))
        self.start()

    def start(self):
        self.errors = open(os.path.join(self.folder, "stderr"), "ab")
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=self.errors,
                                        env=self.env, text=True)
        self.said = []
        self.ports = {}
        self.addresses = {}
        for line in self.process.stdout:
            self.said.append(line)
            found = re.match(r"  (resp|http) +(\S+)", line)
            if found:
                self.addresses[found.group(1)] = found.group(2)
                port = re.search(r":(\d+)$", found.group(2))
                if port:
                    self.ports.setdefault(found.group(1), int(port.group(1)))
            if line.startswith("  table"):
                return
        raise RuntimeError("the server did not start: " + self.complaints())

    def complaints(self):
        return open(os.path.join(self.folder, "stderr")).read()

    @property
    def pid(self):
        return self.process.pid

    def resp(self, version=2):
        client = Resp(("127.0.0.1", self.ports["resp"]))
        if version == 3:
            client("HELLO", 3)
        return client

    def http(self):
        return Http(self.ports["http"])

    def metric(self, name):
        page = self.http()("GET", "/metrics").body.decode()
        return float(re.search(r"^%s (\S+)$" % re.escape(name), page, re.M).group(1))

    def clock(self, seconds):
        with self.resp() as client:
            assert client("WEIR.CLOCK", int(seconds * SECOND)) == "OK"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.errors.close()

    def stop(self, expect=0):
        """SIGTERM: it drains, and must end well."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            threads = where_threads_are(self.process.pid)
            self.process.kill()
            self.process.wait()
            raise AssertionError("the server did not end after SIGTERM:\n" + threads)
        self.process.stdout.close()
        self.errors.close()
        said = self.stop_said = self.complaints()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert code == expect, "the server ended with %d: %s" % (code, said)
        assert "ERROR: AddressSanitizer" not in said and "runtime error" not in said, said
        assert "LeakSanitizer" not in said, said
        return said


class Error(str):
    """An error that was answered."""


class Push(list):
    """An out-of-band message of RESP3."""


class Resp:
    """The smallest client of RESP2 and 3: arguments in, Python values out."""

    def __init__(self, address):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.settimeout(120)
        self.socket.connect(address)
        self.bytes = b""

    def send(self, *words):
        self.socket.sendall(encode(words))

    def raw(self, data):
        self.socket.sendall(data)

    def __call__(self, *words):
        self.send(*words)
        return self.read()

    def many(self, commands):
        """Their answers, a thousand under way at a time."""
        answers = []
        for begin in range(0, len(commands), 1000):
            part = commands[begin:begin + 1000]
            self.raw(b"".join(encode(words) for words in part))
            answers += [self.read() for _ in part]
        return answers

    def more(self):
        data = self.socket.recv(65536)
        if not data:
            raise EOFError("the server has closed the connection")
        self.bytes += data

    def line(self):
        while b"\r\n" not in self.bytes:
            self.more()
        line, self.bytes = self.bytes.split(b"\r\n", 1)
        return line

    def read(self):
        line = self.line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return Error(rest.decode("utf-8", "replace"))
        if kind == b":":
            return int(rest)
        if kind == b"_":
            return None
        if kind == b"#":
            return rest == b"t"
        if kind in b"$=":
            return self.bulk(int(rest))
        if kind in b"*~>":
            if rest == b"-1":
                return None
            values = [self.read() for _ in range(int(rest))]
            return Push(values) if kind == b">" else values
        if kind == b"%":
            return {self.read(): self.read() for _ in range(int(rest))}
        raise ValueError("no RESP: %r" % line)

    def bulk(self, n):
        if n < 0:
            return None
        while len(self.bytes) < n + 2:
            self.more()
        data, self.bytes = self.bytes[:n], self.bytes[n + 2 :]
        return data.decode("utf-8", "replace")

    def json(self, *words):
        answer = self(*words)
        assert not isinstance(answer, Error), answer
        return json.loads(answer)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def encode(words):
    out = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(out)


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class Http:
    """Keep-alive HTTP."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)

    def __call__(self, method, path, body=None, headers=None):
        data = json.dumps(body) if isinstance(body, (dict, list)) else body
        self.connection.request(method, path, body=data, headers=headers or {})
        return Answer(self.connection.getresponse())

    def check(self, **attributes):
        return self("POST", "/v1/check", {"attributes": attributes})

    def close(self):
        self.connection.close()


class Proxy:
    """Another server in front: `process`, listening on `port`, with its files in `home`."""

    def __call__(self, path, method="GET", client="127.0.0.2", headers=None, **options):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30,
                                                source_address=(client, 0))
        try:
            connection.request(method, path, headers=headers or {}, **options)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        self.home.cleanup()


def run_foreign(command, **options):
    """A program that is not ours, to its end.  Its stderr is its own affair: a library's warning
    is no failure of Weir."""
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


def write(path, text):
    """At once: a server that looks at the file never sees half of it."""
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)


def until(what, condition, seconds=120, state=lambda: ""):
    """Waits for a condition in real time, and returns its value; or says how things are."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, "not within %d s: %s %s" % (seconds, what, state())
        time.sleep(0.01)


def has_sanitizer(weir, which):
    """Whether the program was built with it: asan or tsan."""
    with open(weir, "rb") as program:
        return b"__%s_init" % which.encode() in program.read()


def takes_a_clock(weir):
    """Whether a clock can be preloaded into the program: not beside a sanitizer."""
    if has_sanitizer(weir, "asan") or has_sanitizer(weir, "tsan"):
        print("skipped: no clock beside a sanitizer")
        return False
    return True


def memory_of(pid):
    """Bytes of the process's own memory: without the table, whose pages are shared."""
    with open("/proc/%d/status" % pid) as file:
        size = int(re.search(r"RssAnon:\s+(\d+) kB", file.read()).group(1)) * 1024
    with open("/proc/%d/maps" % pid) as file:
        shadowed = "libtsan" in file.read()  # ThreadSanitizer keeps four bytes about each
    return size // 5 if shadowed else size


def is_closed(client, seconds=60):
    """The server has closed the connection, whatever it said before.  Through a small window that
    would come in for minutes, two kilobytes every fifth of a second."""
    try:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        client.settimeout(seconds)
        while client.recv(65536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def give_up(*_):
    """A test hangs: it fails, and says where each process that it started stands."""
    found = children_of(os.getpid())
    for pid in found:  # it grows meanwhile
        found += children_of(pid)
    raise AssertionError("hangs; %s" % "\n".join(map(where_threads_are, found)))


def run_tests(names):
    """Runs every function called test_* in the order written; the arguments of the program are
    weir, --long perhaps, and names of tests.  To run none is a failure."""
    weir = sys.argv[1]
    wanted = [word for word in sys.argv[2:] if word != "--long"]
    passed = failed = 0
    signal.signal(signal.SIGALRM, give_up)
    for name, function in list(names.items()):
        if not name.startswith("test_") or (wanted and name not in wanted):
            continue
        signal.alarm(PATIENCE)
        try:
            function(weir)
            passed += 1
        except Exception as problem:
            failed += 1
            import traceback

            traceback.print_exc()
            print("FAILED %s: %s" % (name, problem))
    print("%d passed, %d failed" % (passed, failed))
    sys.exit(failed > 0 or passed == 0)
