"""nginxing.py -- shared by the tests of Weir inside nginx: a real nginx with the module, on a port
of its own in a folder of its own, stopped by its own pid; the smallest client; a backend that
answers when it is told to."""
import contextlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import tempfile

from serving import Running, free_port, until, write

FRAME = """{load}
{main}
daemon {daemon};
env LD_PRELOAD;
env ASAN_OPTIONS;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log {folder}/error.log {log};
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    default_type text/plain;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {http}
    server {{
        listen 127.0.0.1:{port}{listen};
        root {folder}/html;
        {server}
    }}
}}
"""


def environment(module):
    """A sanitizer's runtime must be there before nginx's own libraries."""
    env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin")
    if module is not None and b"__asan_init" in open(module, "rb").read():
        libraries = subprocess.run(["ldd", module], capture_output=True, text=True).stdout
        env["LD_PRELOAD"] = next(line.split()[2] for line in libraries.splitlines()
                                 if "libasan" in line)
        # all modules of nginx have the same few names
        env["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=1:detect_odr_violation=0"
    return env


def program(module):
    """weir, built beside the module."""
    return os.path.join(os.path.dirname(os.path.abspath(module)), "..", "weir")


class Answer:
    def __init__(self, data):
        head, _, self.body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1]) if lines[0] else None  # None: hung up
        self.headers = {name.lower(): value for name, value in
                        (line.split(": ", 1) for line in lines[1:])}


class Ask:
    """A request that was sent, on a connection of its own."""

    def __init__(self, port, path, headers):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        lines = ["GET %s HTTP/1.1" % path, "Host: test", "Connection: close"]
        lines += ["%s: %s" % header for header in headers.items()]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())

    def is_answered(self):
        return bool(select.select([self.socket], [], [], 0)[0])

    def answer(self):
        data = b""
        with contextlib.suppress(ConnectionError):
            while piece := self.socket.recv(65536):
                data += piece
        self.socket.close()
        return Answer(data)

    def leave(self):
        self.socket.close()


class Http2:
    """A connection whose streams are 1, 3, 5, ..."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.file = self.socket.makefile("rb")
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self.send(4, 0, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, kind, flags, stream, payload=b""):
        self.socket.sendall(len(payload).to_bytes(3, "big") + bytes([kind, flags])
                            + stream.to_bytes(4, "big") + payload)

    def ask(self, stream, path, method=b"\x82", ends=True):
        """In HPACK: GET (or \\x83: POST), http, path, host."""
        self.send(1, 5 if ends else 4, stream,
                  method + b"\x86\x04%c%s\x01\x04test" % (len(path), path))

    def leave(self, stream):
        self.send(3, 0, stream, b"\0\0\0\x08")

    def status(self):
        """Of the next stream that is answered, after its number."""
        while True:
            start = self.file.read(9)
            body = self.file.read(int.from_bytes(start[:3], "big"))
            if start[3] == 1:  # HEADERS begins with the status: 200 is in HPACK's own table
                return int.from_bytes(start[5:], "big"), 200 if body[0] == 0x88 else int(body[2:5])


class Nginx(Running):
    """nginx, ready when the constructor returns.  Without a module it is nginx's own."""

    def __init__(self, module, http, server, workers=1, main="", log="notice", listen="",
                 orphan=False, kills=False, env=None, connections=512, daemon=False):
        self.folder = tempfile.mkdtemp(prefix="weir-nginx-")
        os.chmod(self.folder, 0o755)  # its workers may be another user's
        os.mkdir(self.path("html"))
        for name in ["index.html", "other.html"]:
            write(self.path("html/" + name), name)
        self.module, self.orphan = module and os.path.abspath(module), orphan or daemon
        self.env = env or {}
        self.bad = "Sanitizer|runtime error" + ("" if kills else r"|\[alert\]")  # in the log
        self.settings = dict(http=http, server=server, workers=workers, main=main, log=log,
                             listen=listen, connections=connections,
                             daemon="on" if daemon else "off")
        for _ in range(20):  # another program may take the port first
            self.port = free_port()
            self.configure()
            if self.start():
                return
        raise RuntimeError("nginx did not start: " + self.complaints())

    def path(self, name):
        return os.path.join(self.folder, name)

    def configure(self, **changes):
        self.settings.update(changes)
        load = "load_module %s;" % self.module if self.module else ""
        write(self.path("nginx.conf"), FRAME.format(folder=self.folder, load=load, port=self.port,
                                                    **self.settings))

    def command(self, *words):
        return ["/usr/sbin/nginx", "-p", self.folder, "-e", self.path("error.log"), "-c",
                self.path("nginx.conf"), *words]

    def start(self):
        with open(self.path("error.log"), "w"):
            pass
        # A new binary is for a master that has lost its parent
        leave = ["sh", "-c", '"$@" & while [ ! -s nginx.pid ] && kill -0 $!; do sleep 0.01; done',
                 "sh"]
        with open(self.path("stderr"), "ab") as errors:
            leave = leave if self.orphan and self.settings["daemon"] == "off" else []
            self.process = subprocess.Popen(leave + self.command(),
                                            stderr=errors, stdout=errors, cwd=self.folder,
                                            env=dict(environment(self.module), **self.env))
        if self.orphan:
            self.process.wait(60)
            if "Address already in use" in self.complaints():
                return False
            return bool(until("its worker runs", self.workers, 60))
        until("nginx runs", lambda: self.pid() == self.process.pid or self.process.poll(), 60)
        if self.process.poll() is None:
            until("its workers run", lambda: len(self.workers()) == self.settings["workers"], 60)
            return True
        if "Address already in use" in self.complaints():
            return False
        raise RuntimeError("nginx did not start: " + self.complaints())

    def pid(self, name="nginx.pid"):
        """Of the master; None: it has not written it yet."""
        try:
            return int(open(self.path(name)).read())
        except (OSError, ValueError):
            return None

    def workers(self, master=None):
        master = master or self.pid()
        try:
            with open("/proc/%s/task/%s/children" % (master, master)) as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            return []
        return [child for child in children if is_worker(child)]

    @contextlib.contextmanager
    def stopped(self):
        """Its workers stand still: what happens meanwhile they find all at once."""
        workers = self.workers()
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        yield
        for worker in workers:
            os.kill(worker, signal.SIGCONT)

    def test(self):
        """nginx -t: its code and its words."""
        done = subprocess.run(self.command("-t"), env=environment(self.module),
                              stderr=subprocess.PIPE, text=True)
        return done.returncode, done.stderr

    def reload(self):
        """All new workers, when it returns."""
        before = set(self.workers())
        failed = self.logged(r"\[emerg\]")
        os.kill(self.pid(), signal.SIGHUP)
        until("new workers run", lambda: self.logged(r"\[emerg\]") > failed or (before.isdisjoint(
            self.workers()) and len(self.workers()) == self.settings["workers"]), 60)
        assert self.logged(r"\[emerg\]") == failed, self.complaints()

    def send(self, path="/", **headers):
        return Ask(self.port, path, {name.replace("_", "-"): value
                                     for name, value in headers.items()})

    def get(self, path="/", **headers):
        return self.send(path, **headers).answer()

    def statuses(self, n, path="/", **headers):
        return [self.get(path, **headers).status for _ in range(n)]

    def log(self):
        with open(self.path("error.log")) as file:
            return file.read()

    def logged(self, pattern):
        return len(re.findall(pattern, self.log()))

    def complaints(self):
        return self.log() + open(self.path("stderr"), errors="replace").read()

    def __exit__(self, kind, value, trace):
        if kind is not None:  # workers outlive a master that was killed
            for pid in [self.pid(), *self.workers()]:
                with contextlib.suppress(ProcessLookupError, TypeError):
                    os.kill(pid, signal.SIGKILL)
        super().__exit__(kind, value, trace)

    def end(self):
        """A sanitizer and nginx itself complain about whatever is wrong."""
        pid = self.pid()
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGQUIT)
        if self.process.wait(60) != 0 or re.search(self.bad, self.complaints()):
            raise RuntimeError("nginx ended badly: " + self.complaints())

    def stop(self):
        self.end()
        shutil.rmtree(self.folder)


def nginx_with(module, rules=None, http="", server="", **more):
    """With a rule file; {folder} in the server's part is nginx's own."""
    nginx = Nginx(module, "", "", **more)
    try:
        if rules is not None:
            write(nginx.path("rules.yaml"), rules)
        nginx.configure(http=http, server=server.replace("{folder}", nginx.folder))
        nginx.reload()
    except BaseException as problem:
        nginx.__exit__(type(problem), problem, None)
        raise
    return nginx


def is_gone(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            return ") Z " in file.read()
    except OSError:
        return True


def is_worker(pid):
    try:
        with open("/proc/%d/cmdline" % pid) as file:
            return "worker process" in file.read() and not is_shutting_down(pid)
    except OSError:
        return False


def is_shutting_down(pid):
    with open("/proc/%d/cmdline" % pid) as file:
        return "shutting down" in file.read()


class Backend:
    """Behind nginx, on a socket in its folder or another: accepts, and answers when told to.  The
    last request that it has accepted is `head`."""

    def __init__(self, nginx, folder=None):
        path = os.path.join(folder or nginx.folder, "backend")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        os.chmod(path, 0o777)
        self.socket.listen(100)
        self.socket.settimeout(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def is_asked(self):
        return bool(select.select([self.socket], [], [], 0)[0])

    def accept(self):
        """A request that has come through."""
        connection = self.socket.accept()[0]
        connection.settimeout(60)
        self.head = connection.recv(65536)
        while b"\r\n\r\n" not in self.head:
            self.head += connection.recv(65536)
        return connection

    def answer(self, connection):
        connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")
        connection.close()
