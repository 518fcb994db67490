#!/usr/bin/python3
"""serve-crash.py WEIR [KILLS [KEYS]] -- `weir serve` is killed in the middle of its work, again and
again, and starts on the same table.

The clock stands still, so a key never gets anything back: the asks let in over all lives of the
server are exactly the units its limit has lost.

    let in, as answered                      <= limit              nothing was over-admitted because
    of a kill
    left at the end                          <= limit - let in     nothing that was answered is
    forgotten
    left at the end + asked but unanswered   >= limit - let in     nothing is lost but what was
    under way when it was killed

Some limits are used up on the way and some are not, so that all three say something.  Meanwhile
somebody bans keys, switches modes, edits lists and sets rules: what was answered is there after the
kill, and of the one change under way all of it or nothing."""
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from serving import Error, Server, encode

NOW = 10**18
LARGE, SMALL = 100000, 150
ALGORITHMS = ["gcra", "fixed-window", "sliding-window", "sliding-log", "token-bucket",
              "leaky-bucket"]
ASKS_PER_LIFE = 1500
PIPELINE = 16
FLOOD, FLOOD_LIMIT = 1000, 90000000


def rule(name, limit):
    return ("  - name: %s\n    match: { uri: /%s }\n    key: '{account}'\n    limit: %s\n"
            % (name, name, limit))


def limit_of(algorithm, n):
    if algorithm in ("gcra", "token-bucket", "leaky-bucket"):
        return "%s %d/20d burst %d" % (algorithm, n, n)
    return "%s %d/20d" % (algorithm, n)


def rules_text(version):
    """The limits are always the same; what is set by API is told by a comment, and by a rule of
    that name."""
    text = "# version %d\nversion: 1\nrules:\n" % version
    for algorithm in ALGORITHMS:
        text += (rule(algorithm,
                      limit_of(algorithm, 5000 if algorithm == "sliding-log" else LARGE))
                      + rule("small-" + algorithm, limit_of(algorithm, SMALL)))
    text += rule("version-%d" % version, "1/s")
    return text + "lists:\n  deny: { account: [nobody] }\n"


class Key:
    """One key: how it is asked, and its counts."""

    def __init__(self, name, words, limit):
        self.name, self.words, self.limit = name, words, limit
        self.allowed = self.asked = self.answered = 0

    def left(self, client):
        peek = list(self.words)
        throttle = peek[0] == "CL.THROTTLE"
        peek[-1 if throttle else 2] = 0
        return client(*peek)[2 if throttle else 3]


def all_keys():
    keys = []
    for n, limit in ((LARGE, "large"), (SMALL, "small")):
        for i in range(4):
            keys.append(Key("throttle %s %d" % (limit, i),
                            ["CL.THROTTLE", "%s:%d" % (limit, i), n - 1, 1, 1000, 1], n))
    for i in range(2):
        keys.append(Key("flood %d" % i, ["CL.THROTTLE", "flood:%d" % i, FLOOD_LIMIT - 1, 1, 1, 1],
                        FLOOD_LIMIT))
    for algorithm in ALGORITHMS:
        keys.append(Key(algorithm,
                        ["WEIR.CHECK", "COST", 1, "uri", "/" + algorithm, "account", "ann"],
                        5000 if algorithm == "sliding-log" else LARGE))
        keys.append(Key("small " + algorithm,
                        ["WEIR.CHECK", "COST", 1, "uri", "/small-" + algorithm, "account", "ann"],
                        SMALL))
    return keys


def is_allowed(key, answer):
    assert not isinstance(answer, Error), (key.name, answer)
    return answer[0] == (0 if key.words[0] == "CL.THROTTLE" else 1)


class Asker(threading.Thread):
    """Asks in pipelines until the server is gone; `count` is all askers' together."""

    def __init__(self, life, keys, seed):
        super().__init__()
        self.life, self.keys, self.random = life, keys, random.Random(seed)
        self.client = life.server.resp()
        self.problem = None

    def run(self):
        try:
            while True:
                self.ask()
        except (EOFError, OSError):
            pass
        except Exception as problem:
            self.problem = problem
            self.life.enough.set()

    def ask(self):
        chosen = [self.random.choice(self.keys) for _ in range(PIPELINE)]
        with self.life.lock:
            for key in chosen:
                key.asked += 1
        self.client.raw(b"".join(encode(key.words) for key in chosen))
        for key in chosen:
            allowed = is_allowed(key, self.client.read())
            with self.life.lock:
                key.answered += 1
                key.allowed += allowed
                self.life.count += 1
                if self.life.count >= ASKS_PER_LIFE:
                    self.life.enough.set()


class HttpAsker(Asker):
    """The same by HTTP, one at a time."""

    def __init__(self, life, keys, seed):
        super().__init__(life, [key for key in keys if key.words[0] == "WEIR.CHECK"], seed)
        self.client.close()
        self.http = life.server.http()

    def run(self):
        try:
            super().run()
        finally:
            self.http.close()

    def ask(self):
        key = self.random.choice(self.keys)
        with self.life.lock:
            key.asked += 1
        try:
            answer = self.http.check(uri=key.words[4], account="ann")
        except http.client.HTTPException as problem:
            raise EOFError from problem
        assert answer.status in (200, 429), (answer.status, answer.body)
        with self.life.lock:
            key.answered += 1
            key.allowed += answer.status == 200
            self.life.count += 1


class Flooder(Asker):
    """Keeps the server busy, so that the kill comes in the middle of something: the same ask by the
    thousand, and only counted."""

    def __init__(self, life, key, seed):
        super().__init__(life, [key], seed)
        self.batch = encode(key.words) * FLOOD

    def ask(self):
        key, got = self.keys[0], b""
        key.asked += FLOOD
        self.client.raw(self.batch)
        try:
            while got.count(b"*5\r\n") < FLOOD or got[-2:] != b"\r\n":
                data = self.client.socket.recv(1 << 20)
                if not data:
                    raise EOFError
                got += data
        finally:
            allowed, refused = got.count(b"*5\r\n:0\r\n"), got.count(b"*5\r\n:1\r\n")
            key.answered += allowed + refused
            key.allowed += allowed


class Operator(threading.Thread):
    """Changes things, one after the other, and remembers the answers."""

    def __init__(self, life, kept):
        super().__init__()
        self.client, self.kept = life.server.resp(), kept
        self.problem = None

    def run(self):
        try:
            while True:
                self.change()
        except (EOFError, OSError):
            pass
        except Exception as problem:
            self.problem = problem

    def change(self):
        kept = self.kept
        n = kept["n"] = kept["n"] + 1
        what, words = [
            ("ban", ("WEIR.BAN", "gcra", "banned-%d" % n, "%dm" % (n + 1))),
            ("mode",
             ("WEIR.MODE", ["shadow", "off", "enforce"][n // 4 % 3],
              "version-%d" % kept["version"])),
            ("list", ("WEIR.LIST.ADD", "deny", "account", "denied-%d" % n)),
            ("version", ("WEIR.RULES.SET", rules_text(n))),
        ][n % 4]
        kept["under way"] = (what, n, words)
        answer = self.client(*words)
        assert not isinstance(answer, Error), (words, answer)
        if what in ("ban", "list"):
            kept[what].append(n)
        else:
            kept[what] = words[1] if what == "mode" else n
        if what == "version":
            kept["mode"] = None  # of another rule now
        kept["under way"] = None


def check_kept(client, kept):
    """All that was answered is there; the change under way is there or not, and what it is counts
    from now on."""
    what, n, words = kept["under way"] or (None, None, None)
    bans = {ban["key"] for ban in client.json("WEIR.BANS")["bans"]}
    lists = {change["entry"] for change in client.json("WEIR.LISTS")["changes"]}
    missing = {"banned-%d" % i for i in kept["ban"]} - bans, {"denied-%d" % i
                                                              for i in kept["list"]} - lists
    assert missing == (set(), set()), "lost: %r" % (missing,)
    extra = bans - {"banned-%d" % i for i in kept["ban"]}, lists - {"denied-%d" % i
                                                                    for i in kept["list"]}
    assert extra in [(set(), set()), ({"banned-%s" % n}, set()), (set(), {"denied-%s" % n})], extra
    for name, found in (("ban", extra[0]), ("list", extra[1])):
        if found:
            assert what == name
            kept[name].append(n)
    text = client.json("WEIR.RULES")["text"]
    version = int(text.split("\n")[0].split()[2])
    assert text == rules_text(version), "half a rule file: %r" % text
    assert version == kept["version"] or (what == "version" and version == n), (version, kept)
    if version != kept["version"]:
        kept["version"], kept["mode"] = version, None
    modes = {rule["rule"]: rule["by_hand"] for rule in client.json("WEIR.MODES")["rules"]}
    mode = modes["version-%d" % version]
    assert mode == kept["mode"] or (what == "mode" and mode == words[1]), (mode, kept)
    kept["mode"] = mode
    kept["under way"] = None


class Life:
    """From a start to a kill."""

    def __init__(self, server, keys, kept, seed):
        self.server, self.count = server, 0
        self.lock, self.enough = threading.Lock(), threading.Event()
        server.clock(NOW / 10**9)
        with server.resp() as client:
            check_kept(client, kept)
        floods = [key for key in keys if key.limit == FLOOD_LIMIT]
        others = [key for key in keys if key.limit != FLOOD_LIMIT]
        threads = ([Flooder(self, key, seed)
                    for key in floods] + [Asker(self, others, seed * 10 + i) for i in range(3)])
        threads += [HttpAsker(self, others, seed), Operator(self, kept)]
        for thread in threads:
            thread.start()
        self.enough.wait()
        server.kill()
        for thread in threads:
            thread.join()
            assert thread.problem is None, thread.problem


def check_file(weir, table):
    """`weir table` reads it, though nobody has closed it."""
    told = subprocess.run([weir, "table", "--json", table], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def check_sums(server, keys):
    with server.resp() as client:
        for key in keys:
            left, lost = key.left(client), key.asked - key.answered
            counts = "%s: %d left of %d, %d let in, %d under way" % (
                key.name, left, key.limit, key.allowed, lost)
            assert key.allowed <= key.limit, counts
            assert left <= key.limit - key.allowed, counts
            assert left + lost >= key.limit - key.allowed, counts


def test_kills(weir, kills):
    folder = tempfile.mkdtemp(prefix="weir-crash-")
    table, rules = os.path.join(folder, "table"), os.path.join(folder, "rules.yaml")
    with open(rules, "w") as file:
        file.write(rules_text(0))
    keys, kept = all_keys(), {"n": 0, "ban": [], "list": [], "mode": None, "version": 0,
                              "under way": None}
    server = Server(weir, "--rules", rules, "--keys", "20000", table=table)
    with server:
        for life in range(kills):
            Life(server, keys, kept, life)
            check_file(weir, table)
            server.start()
        server.clock(NOW / 10**9)
        with server.resp() as client:
            check_kept(client, kept)
            status = client.json("WEIR.STATUS")["table"]
        check_sums(server, keys)
    leftovers = [name for name in os.listdir(folder) if ".weir-" in name]
    assert not leftovers, leftovers
    print("%d kills: %d asks, %d unanswered, %d let in; %d slots put right; %d bans, %d list entries, %d changes" % (
        kills, sum(k.asked for k in keys), sum(k.asked - k.answered for k in keys),
        sum(k.allowed for k in keys), status["recovered"],
        len(kept["ban"]), len(kept["list"]), kept["n"]))
    assert sum(k.allowed == k.limit for k in keys) > 3, "no limit was used up: nothing was shown"
    shutil.rmtree(folder)


def fill(client, n):
    for first in range(0, n, 5000):
        client.raw(b"".join(b"*5\r\n$11\r\nCL.THROTTLE\r\n$10\r\nk:%08d\r\n$1\r\n9\r\n$1\r\n1\r\n$4\r\n1000\r\n" % i for i in range(first, first + 5000)))
        want, got = 5000 * len(b"*5\r\n:0\r\n:10\r\n:9\r\n:-1\r\n:1000\r\n"), 0
        while got < want:
            got += len(client.socket.recv(1 << 20))
        assert got == want


def test_ready_again(weir, n):
    """How long until a server that was killed answers again, by the number of keys; told, and not
    judged: the machine may be busy.  The table has room for all: none makes room for another."""
    folder = tempfile.mkdtemp(prefix="weir-crash-")
    with Server(weir, "--keys", str(2 * n), table=os.path.join(folder, "table")) as server:
        server.clock(NOW / 10**9)
        with server.resp() as client:
            fill(client, n)
        server.kill()
        begin = time.monotonic()
        server.start()
        with server.resp() as client:
            assert client("PING") == "PONG"
            took = time.monotonic() - begin
            client("WEIR.CLOCK", NOW)
            keys = client("DBSIZE")
            for i in (0, n // 2, n - 1):
                assert client("CL.THROTTLE", "k:%08d" % i, 9, 1,
                              1000)[2] == 8, "key %d was forgotten" % i
    print("ready %d ms after kill -9 with %d keys" % (took * 1000, keys))
    shutil.rmtree(folder)


if __name__ == "__main__":
    test_kills(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10)
    test_ready_again(sys.argv[1], int(sys.argv[3]) if len(sys.argv) > 3 else 100000)
