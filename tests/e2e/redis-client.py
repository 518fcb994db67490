#!/usr/bin/env python3
"""redis-client.py REDIS-LOAD [--long] [TEST...] -- the client of Redis against a real server, alone
and under a Sentinel: logins, TLS, killed connections, a process that stands still, a slow and torn
network, a failover."""
import contextlib
import json
import os
import random
import re
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time

from redising import VERSION, Redis, Resp, free_port, until
from redisload import EXAMPLE, LONG, LONG_MS, MODULE, Load, check_counted, count, load, \
    status, url, use_up, used, weir
from serving import run_tests


def test_D1_alone(program):
    with Redis() as r:
        for form in (url(r), url(r, rest="?protocol=2"), "redis://localhost:%d" % r.port):
            r.ok("FLUSHALL")
            result = load(program, form, timeout=LONG_MS)
            assert result.good > 20 and result.errors + result.undone + result.unknown == 0
            check_counted(result, count(r))
        r.ok("FLUSHALL")
        result = load(program, url(r, rest="/3"), timeout=LONG_MS)
        assert count(r) == 0 and result.good > 20
        r.ok("SELECT", 3)
        check_counted(result, count(r))
        assert "DB index" in load(program, url(r, rest="/99")).why


def test_D1_status(program):
    with Redis() as r:
        for rest in ("", "?protocol=2"):
            said, code = status(url(r, rest=rest))
            node, = said["nodes"]
            assert code == 0 and said["mode"] == "single", said
            version = r.info("server", "valkey_version") or r.info("server", "redis_version")
            assert node["version"] == version, said
            assert node["role"] == "master" and node["decides_by"] == "scripts", said
            assert node["pings"] == 5 and sum(node["up_to_2^i_us"]) == 5, said
            assert abs(node["clock_ahead_ns"]) < 10**9 + node["clock_margin_ns"], said
        with Redis(None, "--replicaof", "127.0.0.1 %d" % r.port) as replica:
            for rest in ("", "?protocol=2"):
                node, = status(url(replica, rest=rest))[0]["nodes"]
                assert node["role"] == "replica", (rest, node)
        r.ok("ACL", "SETUSER", "ann", "on", ">pw", "~*", "+@all", "-info")
        for rest, role in (("", "master"), ("?protocol=2", "unknown")):
            node, = status(url(r, "ann:pw@", rest=rest))[0]["nodes"]
            assert node["role"] == role, (rest, node)
        said, code = status(url(r, rest=",127.0.0.1:1"))  # nobody is there, whose role is not known
        assert code == 1 and [n["role"] for n in said["nodes"]] == ["master", "unknown"], said
    said, code = status(url(r))
    assert code == 2 and "Connection refused" in said, said


def test_D1_rights_that_are_enough(program):
    """Those that docs/redis.md names, on one's own keys."""
    with Redis() as r:
        r.ok("ACL", "SETUSER", "ann", "on", ">pw", "~weir:*", "+evalsha", "+eval", "+get", "+set",
             "+setrange", "+exists", "+del", "+time")
        for verb in ("take", "give", "peek"):
            for limit in ("10/1h", "fixed-window 10/1h", "sliding-window 10/1h",
                          "sliding-log 10/1h", "smooth 10/1h", "10/month"):
                said, code = weir(verb, "--redis", url(r, "ann:pw@"), "--limit", limit, "k")
                assert code == 0, (verb, limit, said)
        said, code = status(url(r, "ann:pw@"))
        node, = said["nodes"]
        assert code == 0 and node["version"], said


def test_D1_take_peek_give(program):
    with Redis() as r:
        def run(verb, *words):
            return weir(verb, "--redis", url(r), *words, "ann")

        for left in (2, 1, 0):
            assert run("take", "--limit", "3/1h") == ("granted, %d of 3 left\n" % left, 0)
        said, code = run("take", "--limit", "3/1h")
        assert said.startswith("refused, retry in ") and code == 1, said
        assert run("peek", "--limit", "3/1h")[1] == 1
        assert run("give", "--limit", "3/1h", "--cost", "2") == ("given back, 2 of 3 left\n", 0)
        assert run("take", "--limit", "5/1h", "--name", "n", "--cost", "4")[1] == 0
        assert run("peek", "--limit", "6/1h", "--name", "n")[0].endswith(" of 6\n")
        said, code = run("take", "--limit", "10/1s burst 1", "--wait", "10s", "--json")
        assert code == 0 and json.loads(said)["wait_ns"] == 0, said
        said, code = run("take", "--limit", "10/1s burst 1", "--wait", "10s", "--json")
        assert code == 0 and json.loads(said)["remaining"] == 0, said
        for limit in ("fixed-window 1/300ms", "sliding-log 1/300ms", "smooth 10/1s"):
            for _ in range(2):
                said, code = run("take", "--limit", limit, "--wait", "1m", "--json")
                assert code == 0 and json.loads(said)["allowed"], (limit, said)
        r.ok("RPUSH", "weir:{list:ann}", 1)
        said, code = run("take", "--limit", "3/1h", "--name", "list")
        assert code == 2 and "WRONGTYPE" in said and "answer" not in said, said
        for value in ("5", ""):  # somebody's counter
            r.ok("SET", "weir:{counter:ann}", value)
            said, code = run("take", "--limit", "3/1h", "--name", "counter")
            assert code == 2 and " holds " in said and "answer" not in said, said
        assert weir("take", "--redis", "", "--limit", "3/1h", "bob", WEIR_REDIS=url(r))[1] == 0
        assert r("EXISTS", "weir:{n:ann}", "weir:{token-bucket 3/1h:bob}") == 2
        said, code = run("take", "--limit", "sliding-log 100000/1h")
        assert code == 2 and said.startswith("weir take: --limit: in Redis a key has"), said
        assert run("take", "--limit", "3/1h", "--now", "5")[1] == 2
        assert run("take", "--limit", "3/1h", "--table", "x")[1] == 2
    said, code = run("take", "--limit", "3/1h")
    assert code == 2 and "Redis does not answer" in said, said


def test_status_says_what_decides_for_this_user(program):
    """Whatever else the user may ask: scripts decide if it may call what they call."""
    enough = "+evalsha +eval +get +set +setrange +exists +del +time"
    cases = [(enough, "scripts"), ("+get", "nothing")]
    cases += [(enough.replace("+" + word, "-" + word), "nothing")
              for word in ("evalsha", "eval", "get", "set", "setrange", "exists", "time")]
    of_module = [("+weir.take +weir.peek +weir.give", "module"), ("+@all", "module"),
                 ("+@all -weir.take", "scripts")]
    with Redis(MODULE) as r:
        for rights, decides in cases + (of_module if MODULE else []):
            r.ok("ACL", "SETUSER", "ann", "reset", "on", ">pw", "~weir:*", "+ping",
                 *rights.split())
            said, code = weir("redis", "status", "-n", "1", "--json", url(r, "ann:pw@"))
            node, = json.loads(said)["nodes"]
            assert code == 0 and node["decides_by"] == decides, (rights, node)
            assert r.ok("DBSIZE") == 0


def test_D1_example(program):
    with Redis() as r:
        said = subprocess.run([EXAMPLE, url(r)], capture_output=True, text=True, timeout=60)
        assert re.fullmatch("come in, 1 of 2 left\ncome in, 0 of 2 left\ncome back in (30|2.) s\n",
                            said.stdout), said
        assert 0 < r("TTL", "visits:{ann}") <= 61
    said = subprocess.run([EXAMPLE, url(r)], capture_output=True, text=True, timeout=60)
    assert said.stdout.count("not charged: ") == 3, said


def test_D1_unix_socket(program):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "redis.sock")
        with Redis(None, "--unixsocket", path) as r:
            check_counted(load(program, "unix://" + path, timeout=LONG_MS), count(r))
            assert count(r) > 20
        assert "No such file" in load(program, "unix://" + path).why


def test_D1_logins(program):
    with Redis() as r:
        r.ok("ACL", "SETUSER", "ann", "on", ">pa/ss", "~load:*", "+@all")
        r.ok("ACL", "SETUSER", "bob", "on", ">word", "~load:*", "+get")
        r.ok("CONFIG", "SET", "requirepass", "secret")
        for right in (url(r, ":secret@"), url(r, "ann:pa%2Fss@"),
                      url(r, "ann:pa%2Fss@", "?protocol=2")):
            assert load(program, right, timeout=LONG_MS).good > 20
        for wrong in (url(r, ":wrong@"), url(r, "ann:wrong@", "?protocol=2")):
            result = load(program, wrong)
            assert result.good == 0 and "WRONGPASS" in result.why, result.tally
        assert "NOAUTH" in load(program, url(r)).why
        result = load(program, url(r, "bob:word@"), timeout=LONG_MS)  # no EVALSHA, nor CLUSTER
        assert result.good == 0 and result.error == "NOPERM", result.tally


def test_D1_full_memory(program):
    with Redis(None, "--maxmemory", "1", "--maxmemory-policy", "noeviction") as r:
        result = load(program, url(r), timeout=LONG_MS)
        word = "OOM" if VERSION >= 7 else "ERR"  # of the script; the rest says OOM
        assert result.good == 0 and result.errors > 20 and result.error == word, result.tally


def test_D1_a_server_that_is_full(program):
    """Nothing was done, and that is known."""
    with Redis() as r:
        r.ok("CONFIG", "SET", "maxclients", 1)
        result = load(program, url(r), timeout=300)
        assert result.good == result.unknown == 0 and result.undone > 0, result.tally
        assert "as many clients" in result.why, result.tally
        r.ok("CONFIG", "SET", "maxclients", 1000)
        assert load(program, url(r), timeout=LONG_MS).good > 20


def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout",
                    os.path.join(folder, "key.pem"), "-out", os.path.join(folder, "cert.pem")],
                   check=True, capture_output=True)


def test_D1_tls(program):
    with tempfile.TemporaryDirectory() as folder:
        make_certificate(folder)
        cert, key, port = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem"), \
            free_port()
        with Redis(None, "--tls-port", str(port), "--tls-cert-file", cert, "--tls-key-file", key,
                   "--tls-ca-cert-file", cert) as r:
            base = "rediss://127.0.0.1:%d?ca=%s" % (port, cert)
            stranger = load(program, "rediss://127.0.0.1:%d" % port, 1, timeout=1000)
            assert stranger.good == 0 and "certificate" in stranger.why, stranger.tally
            assert load(program, base).good == 0  # it wants to see a certificate
            plain = load(program, base.replace(str(port), str(r.port)), 1, timeout=3000)
            assert "TLS handshake" in plain.why, plain.tally
            result = load(program, base + "&certificate=%s&key=%s" % (cert, key),
                          timeout=LONG_MS)
            assert result.good > 20 and result.unknown == 0, result.tally
            check_counted(result, count(r))


def kill_connections(r, times, pause):
    """With some calls of scripts in between, however slow they are."""
    for _ in range(times):
        r.ok("CLIENT", "KILL", "TYPE", "normal")
        if random.random() < 0.3:
            r.ok("SCRIPT", "FLUSH")
        time.sleep(pause)
        before = calls_of_scripts(r)
        until("scripts are called", lambda: calls_of_scripts(r) > before + 2)


def calls_of_scripts(r):
    told = r.info("commandstats", "cmdstat_evalsha")
    return int(re.search(r"calls=(\d+)", told).group(1)) if told else 0


def test_D1_killed_connections(program):
    """Again and again; and the scripts are forgotten now and then."""
    with Redis() as r, Load(program, url(r), 600) as result:
        kill_connections(r, 300 if LONG else 50, 0.01)
        result.end()
        result.process.wait(timeout=60)
        total = count(r)
    check_counted(result, total)
    assert result.good > 50 and result.errors == 0, result.tally


LIMIT = "gcra 1/1h burst 100000"  # 16 keys are not used up


def test_D1_a_repeat_is_charged_once(program):
    """Connections are killed between send and answer; asks without an answer are repeated under
    their ids.  What was granted is what was charged, to the unit, also where callers decide."""
    for limit in (LIMIT, "sliding-window 1000/1h buckets=300"):
        with Redis() as r:
            with Load(program, url(r), 600, limit=limit, ids=True) as result:
                kill_connections(r, 500 if LONG else 100, 0.004)
                result.end()
            assert result.granted > 50 and result.unknown + result.undone == 0, result.tally
            assert used(url(r), limit) == result.granted, (used(url(r), limit), result.tally)
    with Redis() as r:  # and through a network that is slow and torn
        with Proxy(r.port, torn=0.005) as proxy:
            there = "redis://127.0.0.1:%d" % proxy.port
            result = load(program, there, 5 if LONG else 1.5, timeout=500, threads=8, limit=LIMIT,
                          ids=True)
        assert result.granted > 5 and result.unknown + result.undone == 0, result.tally
        assert used(url(r), LIMIT) == result.granted, (used(url(r), LIMIT), result.tally)


def test_D1_typed_takes(program):
    """Of each key no more than its limit, and all of it."""
    limit = "gcra 1/1d burst 20"
    with Redis() as r:
        assert use_up(program, url(r), limit) == 16 * 20
        assert used(url(r), limit) == 16 * 20


def test_D1_stopped_and_restarted(program):
    """A process that stands still, then one that is killed and starts again."""
    with Redis(None, "--appendonly", "yes", "--appendfsync", "always") as r:
        with Load(program, url(r), 8 if LONG else 3, timeout=100) as result:
            time.sleep(0.3)
            r.process.send_signal(signal.SIGSTOP)
            time.sleep(5 if LONG else 1.3)
            r.process.send_signal(signal.SIGCONT)
            time.sleep(0.3)
            r.kill()
            time.sleep(0.2)
            r.start()
        check_counted(result, count(r))
        assert result.good > 50 and result.unknown > 0 and result.undone > 0, result.tally
        assert load(program, url(r), timeout=LONG_MS).undone == 0


class Proxy:
    """Between client and server: 50 ms of delay both ways, and bytes in pieces of any length; one
    connection in a hundred pieces is torn."""

    def __init__(self, port, delay=0.025, torn=0.01):
        self.target, self.delay, self.torn = port, delay, torn
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.dice = random.Random(1)
        self.ending = False
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        other, queue = {}, []  # queue: (when, to, bytes)
        while not self.ending:
            readable, _, _ = select.select([self.listener, *other], [], [], 0.005)
            now = time.monotonic()
            for s in readable:
                if s is self.listener:
                    a, _ = s.accept()
                    b = socket.create_connection(("127.0.0.1", self.target))
                    other.update({a: b, b: a})
                elif s in other:
                    self.take(s, other, queue, now)
            while queue and queue[0][0] <= now:
                _, to, data = queue.pop(0)
                with contextlib.suppress(OSError):
                    to.sendall(data)
        for s in [self.listener, *other]:
            s.close()

    def take(self, s, other, queue, now):
        try:
            data = s.recv(self.dice.randint(1, 400))
        except OSError:
            data = b""
        if data and self.dice.random() >= self.torn:
            queue.append((now + self.delay, other[s], data))
            return
        with contextlib.suppress(OSError):
            other[s].sendall(data[:self.dice.randint(0, len(data))])
        for end in (s, other.pop(s)):
            other.pop(end, None)
            end.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ending = True
        self.thread.join()


def test_D1_torn_tls(program):
    """Cut at any byte, of a handshake too."""
    with tempfile.TemporaryDirectory() as folder:
        make_certificate(folder)
        cert, key, port = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem"), \
            free_port()
        with Redis(None, "--tls-port", str(port), "--tls-cert-file", cert, "--tls-key-file", key,
                   "--tls-ca-cert-file", cert, "--tls-auth-clients", "no") as r:
            with Proxy(port, delay=0, torn=0.03) as proxy:
                result = load(program, "rediss://127.0.0.1:%d?ca=%s" % (proxy.port, cert),
                              10 if LONG else 1.5, timeout=2000, threads=8)
            check_counted(result, count(r))
            assert result.good > 20 and result.errors == 0, result.tally


def test_D1_slow_and_torn(program):
    with Redis() as r:
        with Proxy(r.port) as proxy:
            result = load(program, "redis://127.0.0.1:%d" % proxy.port, 10 if LONG else 1.5,
                          timeout=2000, threads=8)
        check_counted(result, count(r))
        assert result.good > 20 and result.errors == 0, result.tally


def test_D1_the_name_of_a_master(program):
    """It means another server after a failover, and connections to the old one stay."""
    with Redis() as old, Redis() as new, Proxy(old.port, delay=0, torn=0) as name:
        new.ok("REPLICAOF", "127.0.0.1", old.port)
        until("the replica has caught up",
              lambda: new.info("replication", "master_link_status") == "up")
        there = "redis://127.0.0.1:%d" % name.port
        with Load(program, there, 600, timeout=LONG_MS) as result:
            until("the old one is asked", lambda: count(old) > 20)
            name.target = new.port
            new.ok("REPLICAOF", "NO", "ONE")
            old.ok("REPLICAOF", "127.0.0.1", new.port)
            before = count(new)
            until("the new one is asked", lambda: count(new) > before + 20)
            result.end()
        assert result.errors + result.undone + result.unknown == 0, result.tally


# -------------------------------------------------------------------------------- Sentinel ----


@contextlib.contextmanager
def replicated():
    """A master, its replica and a Sentinel, whose URL it yields."""
    with Redis() as master, Redis() as replica, tempfile.TemporaryDirectory() as folder:
        replica.ok("REPLICAOF", "127.0.0.1", master.port)
        until("the replica has caught up",
              lambda: replica.info("replication", "master_link_status") == "up")
        port, path = free_port(), os.path.join(folder, "sentinel.conf")
        with open(path, "w") as file:
            file.write("port %d\nbind 127.0.0.1\nsentinel monitor mine 127.0.0.1 %d 1\n"
                       "sentinel down-after-milliseconds mine 500\n"
                       "sentinel failover-timeout mine 2000\n" % (port, master.port))
        sentinel = subprocess.Popen(["redis-server", path, "--sentinel"], cwd=folder,
                                    stdout=subprocess.DEVNULL)
        try:
            until("the Sentinel knows the replica", lambda: knows_replica(port))
            yield master, replica, "redis-sentinel://127.0.0.1:%d/mine" % port
        finally:
            sentinel.kill()
            sentinel.wait()


def knows_replica(port):
    with contextlib.suppress(EOFError, ConnectionError), Resp(("127.0.0.1", port)) as sentinel:
        told = [dict(zip(r[::2], r[1::2])) for r in sentinel("SENTINEL", "REPLICAS", "mine")]
        return [r["master-link-status"] for r in told] == ["ok"]
    return False


def anew(server, *words):
    """On a connection of its own; a Sentinel that promotes a replica ends them all."""
    while True:
        with contextlib.suppress(EOFError, ConnectionError):
            with server.connect() as client:
                return client(*words)


def test_D1_sentinel(program):
    """The master dies under load: its replica is the master, and the client finds it."""
    with replicated() as (master, replica, sentinel):
        assert load(program, sentinel, timeout=LONG_MS).good > 20
        said, code = status(sentinel)
        assert code == 0 and said["mode"] == "sentinel", said
        assert sorted(n["role"] for n in said["nodes"]) == ["master", "sentinel"], said
        assert "know no master" in load(program, sentinel + "x").why
        master.ok("FLUSHALL")
        with Load(program, sentinel, 600) as result:
            until("the replica follows", lambda: count(replica) > 100)
            master.kill()
            until("the replica was promoted", lambda: anew(replica, "ROLE")[0] == "master", 60)
            replica.client = replica.connect()  # the old one was ended
            before = count(replica)
            until("it goes on", lambda: count(replica) > before + 20)
            result.end()
        assert result.good > 50 and result.undone > 0, result.tally
        check_counted(result, count(replica), lost=result.good // 10)
        master.start()


if __name__ == "__main__":
    run_tests(globals())
