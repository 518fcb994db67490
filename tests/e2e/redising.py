"""redising.py -- shared by the tests of Weir inside Redis: a redis-server on a port of its own,
with the module or without, stopped by its own pid.  REDIS_SERVER=PATH takes another than the
installed one: 6.2 and later will do."""
import os
import re
import shutil
import subprocess
import tempfile
import time

from serving import Error, Resp, Running, free_port, until

__all__ = ["Error", "Redis", "Resp", "VERSION", "until", "free_port"]


SERVER = os.environ.get("REDIS_SERVER", "redis-server")


def version():
    said = subprocess.run([SERVER, "--version"], capture_output=True, text=True).stdout
    return int(re.search(r"v=(\d+)", said).group(1))


VERSION = version()


def environment(module, shift, late_us):
    """A sanitizer's runtime must be there before redis-server's own libraries.  `shift`: seconds
    that its wall clock is ahead; `late_us`: by how much the server's own is ahead of its module's,
    as if it had stood still for that time."""
    env = dict(os.environ)
    if shift or late_us:
        env["LD_PRELOAD"] = os.path.join(os.path.dirname(module), "../tests/shifted-clock.so")
        env["SHIFT_SECONDS"], env["LATE_US"] = str(shift), str(late_us)
    if module and b"__asan_init" in open(module, "rb").read():
        libraries = subprocess.run(["ldd", module], capture_output=True, text=True).stdout
        asan = [line.split()[2] for line in libraries.splitlines() if "libasan" in line]
        env["LD_PRELOAD"] = asan[0] + (":" + env["LD_PRELOAD"] if shift or late_us else "")
        env["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=1"
    return env


class Redis(Running):
    """redis-server, ready when the constructor returns.  Its folder outlives a kill, so that it can
    start again with what it has saved."""

    def __init__(self, module=None, *options, clock=False, cluster=False, folder=None, shift=0,
                 late_us=0):
        self.folder = folder or tempfile.mkdtemp(prefix="weir-redis-")
        self.module, self.shift, self.late_us = module, shift, late_us
        self.port = free_port(bus=10000 if cluster else 0)
        self.command = [SERVER, "--port", str(self.port), "--bind", "127.0.0.1", "--dir",
                        self.folder, "--save", "", "--repl-diskless-sync", "yes",
                        "--repl-diskless-sync-delay", "0",
                        "--logfile", os.path.join(self.folder, "log")]
        if VERSION >= 7:
            self.command += ["--enable-debug-command", "yes", "--enable-module-command", "yes",
                             "--shutdown-timeout", "0"]
        if cluster:
            self.command += ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]
        if module:
            self.command += ["--loadmodule", os.path.abspath(module)]
            self.command += ["test-clock"] if clock else []
        self.command += list(options)
        self.start()

    def start(self):
        env = environment(self.module, self.shift, self.late_us)
        self.process = subprocess.Popen(self.command, env=env, stdout=subprocess.DEVNULL,
                                        stderr=open(os.path.join(self.folder, "stderr"), "ab"))
        until("redis-server answers", self.is_ready, 60)
        self.client = self.connect()

    def is_ready(self):
        assert self.process.poll() is None, "redis-server ended: " + self.complaints()
        try:
            with self.connect() as client:
                return client("PING") == "PONG"
        except OSError:
            return False

    def complaints(self):
        text = ""
        for name in ("log", "stderr"):
            path = os.path.join(self.folder, name)
            text += open(path).read()[-3000:] if os.path.exists(path) else ""
        return text

    def connect(self):
        return Resp(("127.0.0.1", self.port))

    def __call__(self, *words):
        return self.client(*words)

    def ok(self, *words):
        answer = self.client(*words)
        assert not isinstance(answer, Error), (words, answer)
        return answer

    def expiry(self, key):
        """When a key expires, in ms; before Redis 7 only how soon, in s."""
        if VERSION >= 7:
            return self.ok("PEXPIRETIME", key)
        return self.ok("TTL", key)

    def info(self, section, field):
        for line in self.client("INFO", section).splitlines():
            if line.startswith(field + ":"):
                return line.split(":", 1)[1]
        return None

    def kill(self):
        """As a crash would."""
        self.process.kill()
        self.process.wait()
        self.client.close()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(timeout=60)
        self.client.close()
        said = self.complaints()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert "AddressSanitizer" not in said and "runtime error" not in said, said
        assert "BUG REPORT" not in said, said


def wait_ms(ms):
    """Real time has to pass where Redis's own clock decides."""
    time.sleep(ms / 1000)
