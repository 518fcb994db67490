"""redisload.py -- shared by the tests of the client of Redis: redis-load under way, and its tally
compared with what Redis has counted.

No ask is answered later than its deadline and 10 ms, not counting the time in which the threads
concerned were ready to run and had no processor.  On a quiet machine WEIR_STRICT=1 checks exactly
that; elsewhere (a disk, a page, another guest of the host) a second is allowed, which is still less
than the servers here stand still.

Each ask increments a counter, so Redis itself knows how often it was carried out: as often as it
was answered, or up to as often as it may have been.  Writes that a failover lost are counted
apart."""
import json
import os
import subprocess
import sys

from redising import Error
KEYS = 16


def module_beside(weir):
    """None: it is not there, or redis-server cannot load it because it is under TSan."""
    path = os.path.join(os.path.dirname(weir), "redis-module", "weir.so")
    is_loadable = os.path.exists(path) and b"__tsan_init" not in open(path, "rb").read()
    return path if is_loadable else None


WEIR = os.path.join(os.path.dirname(sys.argv[1]), "..", "weir")
MODULE = module_beside(WEIR)
EXAMPLE = os.path.join(os.path.dirname(WEIR), "examples", "example-redis")
LONG = "--long" in sys.argv
sys.argv = [word for word in sys.argv if word != "--long"]
LATE_MS = 10 if os.environ.get("WEIR_STRICT") else 1000
LONG_MS = 20000  # a timeout that no busy machine reaches


class Load:
    """redis-load, running; `with` waits for its end and reads its tally."""

    def __init__(self, program, url, seconds, timeout=200, threads=4, limit=None, ids=False):
        self.ids = ids
        self.process = subprocess.Popen(
            [program, url, str(threads), str(seconds), str(timeout), str(KEYS)]
            + ([limit] if limit else []) + (["ids"] if ids else []),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def end(self):
        """Before its time.  It must be seen at work before."""
        self.process.terminate()

    def __exit__(self, kind, value, trace):
        if kind:
            self.process.kill()
        out, errors = self.process.communicate(timeout=120)
        if kind:
            return
        assert self.process.returncode == 0, errors
        self.tally = json.loads(out)
        assert self.ids or self.tally["own_late_ms"] < LATE_MS, self.tally

    def __getattr__(self, name):
        return self.tally[name]


def load(program, url, seconds=0.3, **options):
    with Load(program, url, seconds, **options) as result:
        pass
    return result


def use_up(program, url, limit, threads=4):
    """How much is granted until nothing is."""
    granted = 0
    while True:
        rest = load(program, url, timeout=LONG_MS, threads=threads, limit=limit)
        assert rest.unknown + rest.undone == 0, rest.tally
        granted += rest.granted
        if rest.refused and not rest.granted:
            return granted


def count(*servers):
    """How often the counters were incremented, wherever they are."""
    total = 0
    for i in range(KEYS):
        for server in servers:
            n = server("GET", "load:{%d}" % i)
            if n is not None and not isinstance(n, Error):
                total += int(n)
                break
    return total


def check_counted(result, total, lost=0):
    assert result.good - lost <= total <= result.good + result.unknown, (result.tally, total)


def used(url, limit):
    """Units that the accounts have used."""
    total = 0
    for i in range(KEYS):
        said, _ = weir("peek", "--redis", url, "--name", "load", "--limit", limit, "--cost", "0",
                       "--json", str(i))
        state = json.loads(said)
        total += state["limit"] - state["remaining"]
    return total


def weir(*words, **env):
    """What the command prints, and its exit code."""
    done = subprocess.run([WEIR, *words], capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, **env))
    return done.stdout + done.stderr, done.returncode


def status(*words):
    """What `weir redis status --json` says, and its exit code."""
    done = subprocess.run([WEIR, "redis", "status", "--json", "-n", "5", *words],
                          capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout) if done.stdout else done.stderr, done.returncode


def address(server):
    return "127.0.0.1:%d" % server.port


def url(server, login="", rest=""):
    return "redis://%s%s%s" % (login, address(server), rest)
