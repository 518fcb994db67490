#!/usr/bin/python3
"""serve-live.py WEIR [TEST...] -- changes while `weir serve` runs: rules, modes, the process
itself.

What the server does by itself in real time (a look at the rule file every second, draining) is
waited for; everything else is asked for."""
import atexit
import ctypes
import http.client
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from serving import (Error, Http, Resp, Server, ask_for_successor, children_of, encode,
                     has_sanitizer, is_closed, run_tests, state_of, until, write)

RULES = """version: 1
rules:
  - name: per-ip
    key: "{ip}"
    limit: 5/10s
  - name: per-account
    key: "{account}"
    limit: %d/10s
"""
BAD = "version: 1\nrules:\n  - name: per-ip\n    key: '{ip}'\n    limit: 5/10s\n  - name: wrong\n    key: '{ip}'\n    limit: many/10s\n"

PR_SET_CHILD_SUBREAPER = 36
# successors become our children when their parent ends: their exit code is seen
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def check(client, **attributes):
    return client("WEIR.CHECK", *[word for pair in attributes.items() for word in pair])


def rules_of(client):
    return client.json("WEIR.STATUS")["rules"]


# ------------------------------------------------------------------ reloads


def check_reload(weir, reload, cause, *options):
    """Another file comes into force; a bad one does not, whole, and the old one stays; unchanged
    limits keep what was used."""
    with Server(weir, *options, rules=RULES % 5) as server, server.resp() as client:
        first = rules_of(client)
        for _ in range(3):
            assert check(client, ip="192.0.2.7", account="ann")[0] == 1
        write(server.rules, BAD)
        reload(server, client)
        now = until("the bad file is seen",
                    lambda: rules_of(client)["problem"] and rules_of(client))
        assert now["hash"] == first["hash"] and now["version"] == 1, now
        assert "rules.yaml:8:12" in now["problem"], now
        assert check(client, ip="192.0.2.7", account="ann")[2:4] == [5, 1]  # both rules, as before
        write(server.rules, RULES % 3)
        reload(server, client)
        now = until("the new file is in force",
                    lambda: rules_of(client)["version"] == 2 and rules_of(client))
        assert now["cause"] == cause and now["problem"] is None, now
        assert now["hash"] != first["hash"], now
        # four were used before
        assert check(client, ip="192.0.2.7", account="bob")[1:4] == ["per-ip", 5, 0]
        # the changed one has its new limit
        assert check(client, ip="192.0.2.8", account="bob")[1:4] == ["per-account", 3, 1]
        events = [event["event"] for event in client.json("WEIR.EVENTS")]
        assert "reload-failed" in events and "reload" in events, events


def test_R6_reload_by_signal(weir):
    check_reload(weir, lambda server, client: server.process.send_signal(signal.SIGHUP), "signal",
                 "--no-watch")


def test_R6_reload_when_the_file_changes(weir):
    check_reload(weir, lambda server, client: None, "file")


def test_R6_reload_by_api(weir):
    def reload(server, client):
        text = open(server.rules).read()
        assert isinstance(client("WEIR.RULES.RELOAD"), Error) == ("many" in text)

    check_reload(weir, reload, "api", "--no-watch")


def test_R6_reload_by_http(weir):
    def reload(server, client):
        answer = server.http()("POST", "/v1/rules/reload")
        assert answer.status == (422 if "many" in open(server.rules).read() else 200), answer.body

    check_reload(weir, reload, "api", "--no-watch")


def test_R6_states_of_unchanged_limits_survive_reloads_under_load(weir):
    """Reloads by the dozen while everybody asks, at a standing clock: the count is exact all the
    same."""
    limit, threads, each = 500, 4, 400
    rules = ("version: 1\nrules:\n  - name: same\n    key: '{ip}'\n    limit: sliding-window %d/1d\n  - name: other\n    key: '{ip}'\n    limit: fixed-window %%d/1d\n" % limit)
    granted = []

    def ask(server):
        with server.resp() as client:
            client.raw(encode(["WEIR.CHECK", "ip", "192.0.2.7"]) * each)
            granted.append(sum(client.read()[0] for _ in range(each)))

    with Server(weir, "--no-watch", rules=rules % 1000000) as server, server.resp() as client:
        askers = [threading.Thread(target=ask, args=(server,)) for _ in range(threads)]
        for asker in askers:
            asker.start()
        for i in range(24):
            write(server.rules, rules % (1000000 + i))
            client.json("WEIR.RULES.RELOAD")
        for asker in askers:
            asker.join()
        assert sum(granted) == limit, granted
        assert rules_of(client)["version"] == 25


def test_R6_a_file_that_is_gone_changes_nothing(weir):
    with Server(weir, rules=RULES % 5) as server, server.resp() as client:
        os.unlink(server.rules)
        assert isinstance(client("WEIR.RULES.RELOAD"), Error)
        assert check(client, ip="192.0.2.7")[1] == "per-ip"
        assert rules_of(client)["problem"]
        # and back: the same text is no change, but the problem is over
        write(server.rules, RULES % 5)
        client.json("WEIR.RULES.RELOAD")
        assert rules_of(client)["problem"] is None


def test_R6_a_bad_file_at_the_start_is_refused(weir):
    folder = tempfile.mkdtemp(prefix="weir-live-")
    rules = os.path.join(folder, "rules.yaml")
    write(rules, BAD)
    done = subprocess.run([weir, "serve", "--resp", "127.0.0.1:0", "--http", "", "--memory",
                           "--rules", rules], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "rules.yaml:8" in done.stderr and "many" in done.stderr, done
    shutil.rmtree(folder)


# -------------------------------------------------------------------- modes


def connections_on_all_threads(server, n):
    """The kernel spreads connections over the threads by chance: with this many of them each has
    some."""
    return [server.resp() for _ in range(n)]


def test_R5_modes_at_once_on_all_threads(weir):
    with Server(weir, rules=RULES % 5, threads=4) as server, server.resp() as admin:
        clients = connections_on_all_threads(server, 40)
        for client in clients:
            check(client, ip="192.0.2.7")
        for rule in ([], ["per-ip"]):
            for mode, allowed in (("enforce", 0), ("off", 1), ("enforce", 0), ("shadow", 1),
                                  ("as-written", 0)) * 5:
                admin.json("WEIR.MODE", mode, *rule)
                for client in clients:  # every ask after the switch sees it
                    assert check(client, ip="192.0.2.7")[0] == allowed, (mode, rule)
        for client in clients:
            client.close()


def test_R5_modes_survive_a_reload(weir):
    with Server(weir, rules=RULES % 5) as server, server.resp() as client:
        client.json("WEIR.MODE", "off", "per-ip")
        write(server.rules, RULES % 3)
        client.json("WEIR.RULES.RELOAD")
        assert client.json("WEIR.MODES")["rules"][0]["in_force"] == "off"
        for _ in range(10):
            assert check(client, ip="192.0.2.7")[0] == 1


# ------------------------------------------------------------------ the end


def refuses(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=30).close()
        return False
    # reset: it stood in the queue when that was closed
    except (ConnectionRefusedError, ConnectionResetError):
        return True


def test_sigterm_drains(weir):
    """A request that has begun is answered when its rest comes; who says nothing is closed; nobody
    new gets in; the end is a good one."""
    with Server(weir, "--drain", "30s") as server:
        half, idle = server.resp(), server.resp()
        sse = socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=30)
        half_http = socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=30)
        assert idle("PING") == "PONG"
        sse.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert sse.recv(1000).startswith(b"HTTP/1.1 200")
        command = encode(["CL.THROTTLE", "k", 4, 1, 1])
        half.raw(encode(["PING"]) + command[:20])
        half_http.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
                          b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 33\r\n\r\n{")
        assert half.read() == "PONG"
        assert half_http.recv(1000).startswith(b"HTTP/1.1 200")  # so the rest has come as well
        server.process.send_signal(signal.SIGTERM)
        assert is_closed(idle.socket) and is_closed(sse)
        until("nobody new gets in",
              lambda: refuses(server.ports["resp"]) and refuses(server.ports["http"]))
        assert server.process.poll() is None
        half.raw(command[20:])
        assert half.read() == [0, 5, 4, -1, 1]
        half_http.sendall(b'"attributes":{"ip":"192.0.2.7"}}\n')
        answer = half_http.recv(1000)
        assert answer.startswith(b"HTTP/1.1 200") and b"Connection: close" in answer, answer
        assert is_closed(half.socket) and is_closed(half_http)
        assert server.process.wait(timeout=60) == 0
        for client in (half, idle, sse, half_http):
            client.close()


def test_sigterm_waits_no_longer_than_drain(weir):
    with Server(weir, "--drain", "200ms") as server:
        with server.resp() as half:
            half.raw(encode(["PING"]) + b"*1\r\n$4\r\nPI")
            assert half.read() == "PONG"
            server.process.send_signal(signal.SIGTERM)
            assert is_closed(half.socket)
            assert server.process.wait(timeout=60) == 0


def test_a_second_sigterm_ends_at_once(weir):
    with Server(weir, "--drain", "1h") as server:
        with server.resp() as half:
            half.raw(encode(["PING"]) + b"*1\r\n$4\r\nPI")
            assert half.read() == "PONG"
            server.process.send_signal(signal.SIGTERM)
            until("it drains", lambda: refuses(server.ports["resp"]))
            server.process.send_signal(signal.SIGTERM)
            assert is_closed(half.socket)
            assert server.process.wait(timeout=60) == 0


# ------------------------------------------------------------- the handover


class Caller(threading.Thread):
    """A connection for every ask, or one that is kept as long as the server lets it; no attempt to
    connect may fail, and of the asks only those on a kept connection that was closed meanwhile."""

    def __init__(self, address, keep, door="resp"):
        super().__init__()
        self.address, self.keep, self.door, self.over = address, keep, door, False
        self.client = None
        self.allowed = self.asked = self.answered = self.closed = 0
        self.problem = None

    def run(self):
        try:
            while not self.over:
                self.once()
        except Exception as problem:
            self.problem = problem
        if self.client:
            self.client.close()

    def once(self):
        fresh = self.client is None
        if fresh:
            self.client = Resp(self.address)  # may not fail
        try:
            self.asked += 1
            answer = self.client("WEIR.CHECK", "ip", "192.0.2.7")
        except (EOFError, ConnectionError):
            if fresh:
                raise
            self.closed += 1
            answer = None
        if answer:
            self.answered += 1
            self.allowed += answer[0]
        if not answer or not self.keep:
            self.client.close()
            self.client = None


def see_progress(callers):
    seen = [c.answered for c in callers]
    until("they go on", lambda: all(c.answered > n + 20 for c, n in zip(callers, seen)))


def put_away(server, folder):
    """A server that handed over, and has ended."""
    server.process.stdout.close()
    server.errors.close()
    shutil.rmtree(folder)
    shutil.rmtree(server.folder)


def end_all(callers):
    for caller in callers:
        caller.over = True
    for caller in callers:
        caller.join()


def process_of(address):
    with Resp(address) as client:
        return client.json("WEIR.STATUS")["pid"]


def hand_over(server, address):
    """Returns the successor's process id, when the old one is gone."""
    ask_for_successor(server.pid)
    for line in server.process.stdout:  # the successor inherits it
        if line.startswith("  table"):
            break
    assert server.process.wait(timeout=60) == 0, server.complaints()
    new = process_of(address)
    assert new != server.pid
    handed = "pid %d hands over to pid %d, its successor\n" % (server.pid, new)
    assert handed in server.complaints(), server.complaints()
    successors.append(new)
    return new


successors = []


def end(pid):
    os.kill(pid, signal.SIGTERM)
    assert os.waitpid(pid, 0)[1] == 0
    successors.remove(pid)


@atexit.register
def end_the_rest():
    """After a failure: nobody is left behind."""
    for pid in successors:
        os.kill(pid, signal.SIGKILL)


def check_handover(weir, where):
    """Twice in a row, since a successor must be able to have one too.  The clock stands still at 0
    in all of them."""
    limit = 10**7
    folder = tempfile.mkdtemp(prefix="weir-live-")
    rules = ("version: 1\nrules:\n  - name: all\n    key: '{ip}'\n    limit: %d/1000d burst %d\n"
             % (limit, limit))
    options = {"resp": os.path.join(folder, "resp.sock")} if where == "unix" else {}
    server = Server(weir, table=os.path.join(folder, "table"), rules=rules, **options)
    address = options.get("resp") or ("127.0.0.1", server.ports["resp"])
    callers = [Caller(address, keep) for keep in (True, True, False, False, False)]
    try:
        for caller in callers:
            caller.start()
        until("they ask", lambda: all(c.answered > 20 for c in callers))
        first = server.pid
        second = hand_over(server, address)
        until("they go on", lambda: all(c.answered > 20 for c in callers))
        ask_for_successor(second)
        assert os.waitpid(second, 0)[1] == 0
        successors.remove(second)
        third = process_of(address)
        successors.append(third)
        assert len({first, second, third}) == 3
        see_progress(callers)
    finally:
        end_all(callers)
    for caller in callers:
        assert caller.problem is None, repr(caller.problem)
    with Resp(address) as client:
        left = client("WEIR.CHECK", "COST", 0, "ip", "192.0.2.7")[3]
    allowed, lost = sum(c.allowed for c in callers), sum(c.asked - c.answered for c in callers)
    assert limit - allowed - lost <= left <= limit - allowed, (left, allowed, lost)
    print("%s: two handovers, %d asks, %d on connections that were closed"
          % (where, sum(c.asked for c in callers), sum(c.closed for c in callers)))
    end(third)
    assert where == "tcp" or not os.path.exists(address), "the last one removes the socket"
    put_away(server, folder)


def test_handover_loses_nobody(weir):
    check_handover(weir, "tcp")


def test_handover_of_unix_sockets(weir):
    check_handover(weir, "unix")


class Pipeliner(Caller):
    """Sends many asks at once, on one connection."""

    def once(self):
        self.client = self.client or Resp(self.address)
        self.asked += 200
        try:
            self.client.raw(encode(["WEIR.CHECK", "ip", "192.0.2.7"]) * 200)
            for _ in range(200):
                self.allowed += self.client.read()[0]
                self.answered += 1
        except (EOFError, ConnectionError):
            self.closed += 1
            self.client = None


class Browser(Caller):
    """Keep-alive HTTP; if it is told that the connection ends, it makes another."""

    def once(self):
        self.client = self.client or Http(self.address[1])
        self.asked += 1
        try:
            answer = self.client.check(ip="192.0.2.7")
            self.allowed += answer.json()["allowed"]
            self.answered += 1
        except (http.client.HTTPException, ConnectionError):
            self.closed += 1
            self.client.close()
            self.client = None


def test_handover_answers_every_request(weir):
    """Five in a row, under load: connections go on in the successor, with all that their clients
    have told; every request is answered."""
    limit = 10**8
    folder = tempfile.mkdtemp(prefix="weir-live-")
    rules = ("version: 1\nrules:\n  - name: all\n    key: '{ip}'\n    limit: %d/1000d burst %d\n"
             % (limit, limit))
    server = Server(weir, table=os.path.join(folder, "table"), rules=rules)
    address, web = ("127.0.0.1", server.ports["resp"]), ("127.0.0.1", server.ports["http"])
    callers = [Caller(address, True), Caller(address, True), Pipeliner(address, True),
               Pipeliner(address, True), Browser(web, True), Browser(web, True)]
    named = Resp(address)
    named("HELLO", 3, "SETNAME", "ann")
    pids = [server.pid]
    try:
        for caller in callers:
            caller.start()
        for _ in range(5):
            see_progress(callers)
            ask_for_successor(pids[-1])
            if pids[-1] == server.pid:
                assert server.process.wait(timeout=60) == 0
            else:
                assert os.waitpid(pids[-1], 0)[1] == 0
                successors.remove(pids[-1])
            pids.append(process_of(address))
            successors.append(pids[-1])
        assert len(set(pids)) == 6, pids
        see_progress(callers)
    finally:
        end_all(callers)
    assert [c.problem for c in callers] == [None] * 6, [repr(c.problem) for c in callers]
    assert [c.closed for c in callers] == [0] * 6, [c.closed for c in callers]
    assert all(c.asked == c.answered for c in callers)
    assert named("CLIENT", "GETNAME") == "ann" and isinstance(named("HELLO"), dict)
    assert named.json("WEIR.STATUS")["pid"] == pids[-1]
    named.close()
    with Resp(address) as client:
        left = client("WEIR.CHECK", "COST", 0, "ip", "192.0.2.7")[3]
    if not has_sanitizer(weir, "tsan"):
        assert left == limit - sum(c.allowed for c in callers), left
    end(pids[-1])
    put_away(server, folder)


class Operator(Caller):
    """Changes lists, which a thread beside the loop does; the connection must outlive that too."""

    def once(self):
        self.client = self.client or Resp(self.address)
        self.asked += 1
        try:
            answer = self.client("WEIR.LIST.ADD", "deny", "account", "%x" % self.asked)
            assert not isinstance(answer, Error), answer
            self.answered += 1
        except (EOFError, ConnectionError):
            self.closed += 1
            self.client = None


def test_handover_takes_all_connections_along(weir):
    """More than the channel has room for at once, and some whose request takes a while."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    folder = tempfile.mkdtemp(prefix="weir-live-")
    server = Server(weir, table=os.path.join(folder, "table"), rules=RULES % 5)
    address = ("127.0.0.1", server.ports["resp"])
    idle = [Resp(address) for _ in range(min(hard, 4096) // 4)]
    for client in idle:
        assert client("PING") == "PONG"
    operators = [Operator(address, True) for _ in range(4)]
    try:
        for operator in operators:
            operator.start()
        see_progress(operators)
        new = hand_over(server, address)
        see_progress(operators)
    finally:
        end_all(operators)
    assert [o.closed for o in operators] == [0] * 4, [o.closed for o in operators]
    assert [o.problem for o in operators] == [None] * 4, [repr(o.problem) for o in operators]
    for client in idle:
        assert client("PING") == "PONG"
        client.close()
    end(new)
    put_away(server, folder)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Editor(threading.Thread):
    """Shuts out one address after another, and remembers those that it was told are shut out.  On
    one connection as long as that lasts: so the old server is asked while the new one is there
    already."""

    def __init__(self, address, number):
        super().__init__()
        self.address, self.number = address, number
        self.over, self.denied, self.problem = False, [], None

    def run(self):
        client = None
        try:
            for i in range(1, 60000):
                if self.over:
                    break
                entry = "10.%d.%d.%d" % (self.number, i // 250, i % 250)
                try:
                    client = client or Resp(self.address)
                    assert not isinstance(client("WEIR.LIST.ADD", "deny", "ip", entry), Error)
                    self.denied.append(entry)
                except (EOFError, ConnectionError):
                    client.close()
                    client = None
        except Exception as problem:
            self.problem = problem
        if client:
            client.close()


def test_handover_loses_no_edit_of_lists(weir):
    """A client that was shut out stays out, whichever of the two servers was told so, and is in the
    file at the end."""
    folder = tempfile.mkdtemp(prefix="weir-live-")
    server = Server(weir, table=os.path.join(folder, "table"), rules=RULES % 5)
    address = ("127.0.0.1", server.ports["resp"])
    editors = [Editor(address, number) for number in range(3)]
    try:
        for editor in editors:
            editor.start()
        until("they edit", lambda: all(len(e.denied) > 5 for e in editors))
        successor = hand_over(server, address)
        seen = [len(e.denied) for e in editors]
        until("they go on", lambda: all(len(e.denied) > n + 5 for e, n in zip(editors, seen)))
    finally:
        for editor in editors:
            editor.over = True
        for editor in editors:
            editor.join()
    for editor in editors:
        assert editor.problem is None, repr(editor.problem)
    denied = {entry for editor in editors for entry in editor.denied}
    with Resp(address) as client:
        there = {change["entry"] for change in client.json("WEIR.LISTS")["changes"]}
        assert not denied - there, "%d of %d are lost: %s" % (len(denied - there), len(denied),
                                                              sorted(denied - there)[:5])
        for entry in denied:
            assert check(client, ip=entry)[0] == 0, entry
    end(successor)
    kept = open(os.path.join(folder, "table.lists")).read()
    assert all("ip %s\n" % entry in kept for entry in denied)
    print("%d edits, none lost" % len(denied))
    put_away(server, folder)


def fill(pipe):
    other = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    try:
        while os.write(other, b"\n" * 4096):
            pass
    except BlockingIOError:
        os.close(other)


def test_handover_keeps_rules_that_the_old_one_was_sent_meanwhile(weir):
    """The old server writes them to the file when its successor has read that already, and nobody
    watches it.  The old one stands still, so that it is there for as long as the test wants: the
    successor cannot end it before, because there is no room for what it prints."""
    with Server(weir, "--no-watch", rules=RULES % 5, clock=False) as server:
        fill("/proc/self/fd/%d" % server.process.stdout.fileno())
        ask_for_successor(server.pid)
        successors.append(children_of(server.pid)[0])
        server.process.send_signal(signal.SIGSTOP)
        for line in server.process.stdout:  # the successor inherits it
            if line.startswith("  table"):
                break
        write(server.rules, RULES % 7)
        until("the successor says so", lambda: "is in force" in server.complaints())
        server.process.send_signal(signal.SIGCONT)
        assert server.process.wait(timeout=60) == 0, server.complaints()
        with server.resp() as client:
            assert client.json("WEIR.RULES")["text"] == RULES % 7
        end(successors[-1])
        server.process.returncode = 0


def test_a_drain_takes_no_answer_back(weir):
    """A client that pipelines has said more than is answered: it sees the last answer, which says
    that it is, and not a reset."""
    with Server(weir, "--no-watch", rules=RULES % 5) as server:
        address = ("127.0.0.1", server.ports["http"])
        with socket.create_connection(address, timeout=60) as client:
            get = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
            client.sendall(get)
            client.recv(4096)
            server.process.send_signal(signal.SIGSTOP)
            until("it stands still", lambda: state_of(server.pid)[0] == "T")
            said = 200000 // len(get)
            client.sendall(get * said)
            server.process.send_signal(signal.SIGTERM)
            server.process.send_signal(signal.SIGCONT)
            assert server.process.wait(timeout=60) == 0, server.complaints()
            heard = b""
            while data := client.recv(1 << 20):
                heard += data
            answers = heard.count(b" 200 OK")
            assert answers == said or heard.count(b"Connection: close\r\n") == 1, (answers, said)
        server.process.returncode = 0


def test_a_second_SIGUSR2_while_a_successor_starts_is_told(weir):
    """It is not ready as long as there is no room for what it prints; then the handover goes on."""
    with Server(weir, "--no-watch", rules=RULES % 5, clock=False) as server:
        fill("/proc/self/fd/%d" % server.process.stdout.fileno())
        ask_for_successor(server.pid)
        successors.append(children_of(server.pid)[0])
        os.kill(server.pid, signal.SIGUSR2)
        until("it is told", lambda: "pid %d, is starting" % successors[-1] in server.complaints())
        assert children_of(server.pid) == [successors[-1]]
        for line in server.process.stdout:
            if line.startswith("  table"):
                break
        assert server.process.wait(timeout=60) == 0, server.complaints()
        end(successors[-1])
        server.process.returncode = 0


def test_handover_to_a_successor_that_fails(weir):
    """The rules are wrong by now: the successor refuses to start, and the old one goes on as if
    nothing had happened."""
    with Server(weir, "--no-watch", rules=RULES % 5) as server, server.resp() as client:
        write(server.rules, BAD)
        os.kill(server.pid, signal.SIGUSR2)  # the successor may be gone before it is seen
        until("it is told", lambda: "successor" in server.complaints())
        assert client("PING") == "PONG" and check(client, ip="192.0.2.7")[1] == "per-ip"
        with server.resp() as other:
            assert other("PING") == "PONG"
        write(server.rules, RULES % 5)
        # and when they are right again it works
        new = hand_over(server, ("127.0.0.1", server.ports["resp"]))
        end(new)
        server.process.returncode = 0


def test_a_unix_socket_that_a_kill_left_behind(weir):
    """Its file is there, and nobody listens: the next server takes the place.  One that listens is
    not driven out."""
    folder = tempfile.mkdtemp(prefix="weir-live-")
    path = os.path.join(folder, "resp.sock")
    with Server(weir, resp=path) as server:
        server.kill()
        assert os.path.exists(path)
        server.start()
        with Resp(path) as client:
            assert client("PING") == "PONG"
        second = subprocess.run([weir, "serve", "--memory", "--resp", path, "--http", ""],
                                capture_output=True, text=True, timeout=60)
        assert second.returncode == 2 and "in use" in second.stderr, second
        with Resp(path) as client:
            assert client("PING") == "PONG"
    assert not os.path.exists(path)
    shutil.rmtree(folder)


# ------------------------------------------------------------------ systemd


def listening(path=None):
    sock = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
    sock.bind(path or ("127.0.0.1", 0))
    sock.listen(128)
    return sock


def activate(weir, sockets, names, env, *options):
    """As systemd does: the sockets are 3, 4, ...; LISTEN_PID is the process itself."""
    def place():
        spare = [os.dup2(sock.fileno(), 100 + i) for i, sock in enumerate(sockets)]
        for i, fd in enumerate(spare):
            os.dup2(fd, 3 + i)
            os.set_inheritable(3 + i, True)
        os.environ.update(env, LISTEN_FDS=str(len(sockets)), LISTEN_FDNAMES=names,
                          LISTEN_PID=str(os.getpid()))
        os.execv(weir, [weir, "serve", "--memory", "--test-clock", "--threads", "2", *options])

    return subprocess.Popen(["never"], executable="never", preexec_fn=place, close_fds=False,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_systemd_socket_activation_and_notify(weir):
    folder = tempfile.mkdtemp(prefix="weir-live-")
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(os.path.join(folder, "notify"))
    notify.settimeout(60)
    path = os.path.join(folder, "resp.sock")
    tcp, unix = listening(), listening(path)
    # before there is a server: it waits
    early = socket.create_connection(tcp.getsockname(), timeout=60)
    early.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    process = activate(weir, [tcp, unix], "http:resp",
                       {"NOTIFY_SOCKET": os.path.join(folder, "notify")})
    assert notify.recv(1000) == b"READY=1"
    assert early.recv(1000).startswith(b"HTTP/1.1 200")
    with Resp(path) as client:
        addresses = client.json("WEIR.STATUS")["addresses"]
        assert addresses == {"resp": [path],
                             "http": ["127.0.0.1:%d" % tcp.getsockname()[1]]}, addresses
    process.send_signal(signal.SIGTERM)
    assert notify.recv(1000) == b"STOPPING=1"
    assert process.wait(timeout=60) == 0
    assert os.path.exists(path), "systemd's socket was removed"
    # systemd holds it still: nobody is refused
    late = socket.create_connection(tcp.getsockname(), timeout=60)
    for sock in (early, late, tcp, unix, notify, process.stdout):
        sock.close()
    shutil.rmtree(folder)


def test_systemd_addresses_that_count_for_nothing_are_told(weir):
    """weir.conf names an address, and systemd's sockets are elsewhere."""
    tcp = listening()
    port = tcp.getsockname()[1]
    for http, warned in [("0.0.0.0:%d" % port, True), ("127.0.0.1:%d" % (port - 1), True),
                         ("/run/none.sock", True), ("*:%d" % port, True),
                         ("127.0.0.1:%d" % port, False), ("localhost:%d" % port, False),
                         ("127.0.0.1:7380", False), ("127.0.0.1:0", False)]:
        process = activate(weir, [tcp], "http", {}, "--resp", "127.0.0.1:0", "--http", http)
        said = ""
        while "  table " not in said:
            said += process.stdout.readline()
        told = "warning: http says %s, which counts for nothing" % http in said
        assert told == warned, (http, said)
        assert said.count("warning") == warned, said
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        process.stdout.close()
    tcp.close()


def test_systemd_a_socket_of_another_name_is_refused(weir):
    tcp = listening()
    process = activate(weir, [tcp], "ssh", {})
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 2 and "'ssh'" in said and "resp or http" in said, said
    tcp.close()


def test_handover_tells_the_supervisor(weir):
    """The successor says that it is the main process now; that the old one ends is no news for the
    supervisor."""
    folder = tempfile.mkdtemp(prefix="weir-live-")
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind(os.path.join(folder, "notify"))
    notify.settimeout(60)
    server = Server(weir, env={"NOTIFY_SOCKET": os.path.join(folder, "notify")})
    assert notify.recv(1000) == b"READY=1"
    new = hand_over(server, ("127.0.0.1", server.ports["resp"]))
    end(new)
    notify.setblocking(False)
    said = []
    try:
        while True:
            said.append(notify.recv(1000).decode())
    except BlockingIOError:
        pass
    assert said == ["READY=1", "MAINPID=%d\nREADY=1" % new, "STOPPING=1"], said
    notify.close()
    put_away(server, folder)


def test_S1_drains_with_a_single_worker(weir):
    """What waits for the threads to end must not wait where their own work is done."""
    with Server(weir, env={"UV_THREADPOOL_SIZE": "1"}) as server, server.resp() as client:
        # under way when the server is told to end
        client.raw(encode(["PING"]) + encode(["WEIR.STATUS"])[:-3])
        assert client.read() == "PONG"
        server.process.send_signal(signal.SIGTERM)
        client.raw(encode(["WEIR.STATUS"])[-3:])
        assert "version" in client.read()


NARROW = """import ctypes, sys
class Options(ctypes.Structure):
    _fields_ = [("path", ctypes.c_char_p), ("keys", ctypes.c_int64), ("slab", ctypes.c_int64),
                ("limiters", ctypes.c_int64), ("bans", ctypes.c_int64), ("guards", ctypes.c_int64),
                ("narrow", ctypes.c_bool), ("mode", ctypes.c_uint)]
made = ctypes.c_void_p()
options = Options(path=sys.argv[2].encode(), keys=100, narrow=True)
weir = ctypes.CDLL(sys.argv[1])
sys.exit(weir.weir_table_create(ctypes.byref(made), ctypes.byref(options), None))
"""


def make_narrow_table(library, path):
    """As a program does that uses the library, since the command line makes none.  A library with a
    sanitizer in it cannot be loaded into Python."""
    return (subprocess.run([sys.executable, "-c", NARROW, library, path],
                           stderr=subprocess.DEVNULL).returncode == 0)


def test_S1_a_narrow_table_is_refused(weir):
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "narrow")
        if not make_narrow_table(os.path.join(os.path.dirname(weir), "libweir.so"), table):
            print("skipped: no narrow table could be made")
            return
        done = subprocess.run([weir, "serve", "--table", table, "--resp", "127.0.0.1:0", "--http",
                               ""], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "narrow" in done.stderr, done


if __name__ == "__main__":
    run_tests(globals())
