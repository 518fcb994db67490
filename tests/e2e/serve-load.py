#!/usr/bin/python3
"""serve-load.py WEIR [TEST...] -- many clients, and bad ones: idle, busy, slow, half closed,
reading nothing, talking nonsense.

Whatever one of them does, the others are served, and the server's memory stays where it was.  What
the server does by its own clock (patience) is waited for, with a patience of one second."""
import contextlib
import os
import resource
import select
import signal
import socket
import tempfile
import threading
from http.client import HTTPConnection

from serving import (Error, Server, encode, has_sanitizer, is_closed, memory_of, run_tests,
                     state_of, until)

IDLE, BUSY = 10000, 1000
# Else AddressSanitizer keeps freed memory.
LEAN = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"}
MIB = 1 << 20
IDLE_MOST = 4096  # bytes that a connection may take which waits
RULES = """version: 1
rules:
  - name: per-ip
    key: "{ip}"
    limit: 5/10s
"""


def room_for_files(n):
    """As many as can be had, up to n."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < n + 300:
        print("only %d files may be open: fewer connections are tried" % hard)
        n = hard - 300
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, n + 300), hard))
    return n


def connect(server, door="resp"):
    client = socket.create_connection(("127.0.0.1", server.ports[door]), timeout=60)
    return client


def serves(server):
    """A stranger is served: by both doors."""
    with server.resp() as client:
        assert client("PING") == "PONG"
        assert client("CL.THROTTLE", "stranger", 1000000, 1000, 1)[0] == 0
    http = server.http()
    assert http("GET", "/healthz").status == 200
    http.close()


def status_of(server):
    with server.resp() as client:
        return client.json("WEIR.STATUS")


def read_all(client):
    parts = []
    while True:
        data = client.recv(MIB)
        if not data:
            return b"".join(parts)
        parts.append(data)


# ------------------------------------------------------------- many of them


def test_ten_thousand_idle(weir):
    n = room_for_files(IDLE)
    with Server(weir, env=LEAN) as server:
        before = memory_of(server.pid)

        def check_memory(when):
            each = (memory_of(server.pid) - before) // n
            print("%d connections, %s: %d bytes each" % (n, when, each))
            assert each <= IDLE_MOST or has_sanitizer(weir, "asan"), each

        idle = [connect(server, "http" if i % 4 == 0 else "resp") for i in range(n)]
        for client in idle[1::1000]:
            client.sendall(b"PING\r\n")
            assert client.recv(100) == b"+PONG\r\n"
        until("all are there", lambda: status_of(server)["connections"] == n + 1)
        serves(server)
        check_memory("idle")
        with server.resp() as client:
            for _ in range(1000):
                assert client("CL.THROTTLE", "k", 100000, 1, 1)[0] == 0
        # after they have been busy once, its memory is given back
        for client in idle:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
                           if client.getpeername()[1] == server.ports["http"] else b"PING\r\n")
        for client in idle:
            assert client.recv(1000)
        check_memory("idle after a request")
        for client in idle:
            client.close()
        until("all are gone", lambda: status_of(server)["connections"] == 1)


def test_a_thousand_busy_count_exactly(weir):
    """All ask for one key at one instant, over four threads: as many get through as the limit says,
    not one more."""
    n, each, limit = room_for_files(BUSY), 40, 12345
    with Server(weir, threads=4) as server:
        clients = [connect(server) for _ in range(n)]
        data = encode(["CL.THROTTLE", "one", limit - 1, 1, 3600]) * each
        for client in clients:
            client.sendall(data)
        granted = refused = 0
        for client in clients:
            got = b""
            while (got.count(b"*5\r\n") < each or got[-2:] != b"\r\n"
                   or got[got.rindex(b"*5") :].count(b"\r\n") < 6):
                more = client.recv(65536)
                assert more
                got += more
            granted += got.count(b"*5\r\n:0\r\n")
            refused += got.count(b"*5\r\n:1\r\n")
            client.close()
        assert (granted, refused) == (limit, n * each - limit), (granted, refused)


def test_too_many_connections_are_told(weir):
    with Server(weir, "--connections-max", "20") as server, server.resp() as stays:
        assert stays("PING") == "PONG"
        clients = [connect(server, "http" if i % 2 else "resp") for i in range(19)]
        for i, client in enumerate(clients):  # all are really there, not on their way
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" if i % 2
                           else b"PING\r\n")
            assert client.recv(1000)
        for door, words in (("resp", b"-ERR max number of clients"), ("http", b"HTTP/1.1 503 ")):
            with connect(server, door) as late:
                assert read_all(late).startswith(words)
        clients.pop(0).close()
        until("there is room again", lambda: ping(server))
        for client in clients:
            client.close()
        until("all are gone", lambda: stays.json("WEIR.STATUS")["connections"] == 1)
        assert stays.json("WEIR.STATUS")["totals"]["connections_refused"] >= 2


def ping(server):
    with connect(server) as client:
        client.sendall(b"PING\r\n")
        try:
            return client.recv(100) == b"+PONG\r\n"
        except ConnectionError:
            return False


# --------------------------------------------------------------------- slow


def trickle(server, door, data):
    """A byte whenever the server is ready for one, and never the end; returns when the server has
    had enough."""
    client = connect(server, door)
    at = 0
    client.setblocking(False)
    try:
        while True:
            readable, _, _ = select.select([client], [], [], 0.05)
            if readable:
                if not client.recv(1000):
                    return at
            client.send(data[at : at + 1])
            at += 1
            if at == len(data):
                data += b"x" * 1000
    except ConnectionError:
        return at
    finally:
        client.close()


def test_slowloris(weir):
    """Requests that begin and never end, byte by byte: closed after `patience`, though something
    always comes."""
    beginnings = [
        ("resp", b"*3\r\n$11\r\nCL.THROTTLE\r\n$100000\r\n"),
        ("resp", b"CL.THROTTLE k 1 1 "),
        ("http", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: "),
        ("http", b"GET /"),
        ("http", b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{"),
        ("http",
         b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{    \r\n3000\r\n"),
    ]
    with Server(weir, "--patience", "1s") as server:
        ends = []
        threads = [threading.Thread(target=lambda b=b: ends.append(trickle(server, *b)))
                   for b in beginnings]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            serves(server)
            threads[0].join(0.1)
            for thread in threads[1:]:
                thread.join(0.01)
        assert len(ends) == len(beginnings)
        assert status_of(server)["totals"]["timed_out"] == len(beginnings)


def test_idle_are_closed_and_others_are_not(weir):
    with Server(weir, "--idle", "1s") as server:
        quiet, listener = connect(server), server.resp()
        assert listener("SUBSCRIBE", "weir.events")[0] == "subscribe"
        assert is_closed(quiet)
        assert listener("PING") == ["pong", ""]  # a subscriber may only say this
        listener.close()


def test_half_closed(weir):
    """A client that has said everything and closes its side still gets all answers, and then the
    end."""
    with Server(weir) as server:
        for n in (1, 1000, 100000):
            with connect(server) as client:
                thread = threading.Thread(target=lambda: (client.sendall(b"PING\r\n" * n),
                                                          client.shutdown(socket.SHUT_WR)))
                thread.start()
                assert read_all(client) == b"+PONG\r\n" * n
                thread.join()
        with connect(server) as client:
            client.sendall(b"PING\r\n*2\r\n$4\r\nECHO\r\n$5\r\nhal")  # the rest will never come
            client.shutdown(socket.SHUT_WR)
            assert read_all(client) == b"+PONG\r\n"
        with connect(server, "http") as client:
            request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
            client.sendall(request * 1000)
            client.shutdown(socket.SHUT_WR)
            assert read_all(client).count(b"HTTP/1.1 200 OK") == 1000
        with connect(server) as client:  # an answer that is made elsewhere
            client.sendall(b"WEIR.STATUS\r\nPING\r\n")
            client.shutdown(socket.SHUT_WR)
            got = read_all(client)
            assert got.startswith(b"$") and got.endswith(b"+PONG\r\n")
        until("all are gone", lambda: status_of(server)["connections"] == 1)


# --------------------------------------------------------- that do not read


def not_reading(server):
    return status_of(server)["totals"]["not_reading"]


def pour(server, client, data, total):
    """Sends as much as is taken, without ever reading, until the server has had enough of it;
    returns how much it was, and how much memory the server had at the most meanwhile."""
    client.setblocking(False)
    sent = most = 0
    try:
        while sent < total:
            if select.select([], [client], [], 0.05)[1]:
                sent += client.send(data)
            elif not_reading(server):
                break
            most = max(most, memory_of(server.pid))
    except ConnectionError:
        pass
    return sent, most


def check_not_reading(weir, door, data):
    with Server(weir, "--patience", "1s", env=LEAN) as server:
        serves(server)
        before = memory_of(server.pid)
        client = connect(server, door)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        sent, most = pour(server, client, data, 100 * MIB)
        grown = most - before
        serves(server)
        print("%s: took %.1f MiB of 100 from a client that does not read, and holds %.1f MiB more"
              % (door, sent / MIB, grown / MIB))
        assert sent < 50 * MIB, "it went on taking"
        assert grown < 16 * MIB, grown
        until("it is closed", lambda: not_reading(server) == 1)
        until("it is gone", lambda: status_of(server)["connections"] == 1)
        serves(server)
        client.close()


def test_a_reader_that_never_reads(weir):
    check_not_reading(weir, "resp", encode(["CL.THROTTLE", "k", 10000000, 1, 1]) * 1000)
    check_not_reading(weir, "resp", b"COMMAND\r\n" * 1000)  # short asks, long answers
    check_not_reading(weir, "http", b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)
    check_not_reading(weir, "resp", b"WEIR.STATUS\r\n" * 1000)


def switch_modes(server, client, n):
    for i in range(n):
        assert client.json("WEIR.MODE", ("shadow", "enforce")[i % 2], "per-ip")


def check_deaf(weir, listen):
    """Somebody subscribes to events and never reads: dropped when more than output-max waits
    for him."""
    with (Server(weir, "--output-max", "64k", "--patience", "1h", rules=RULES, env=LEAN) as server,
          server.resp() as client):
        deaf = listen(server)
        before = memory_of(server.pid)
        most = 0
        while not_reading(server) == 0:
            switch_modes(server, client, 1000)
            most = max(most, memory_of(server.pid) - before)
        assert most < 16 * MIB, most
        until("it is gone", lambda: status_of(server)["connections"] == 2)
        assert is_closed(deaf)
        serves(server)
        deaf.close()


def small_buffers(server, door):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(60)
    client.connect(("127.0.0.1", server.ports[door]))
    return client


def test_S4_a_subscriber_that_never_reads(weir):
    def listen(server):
        client = small_buffers(server, "resp")
        client.sendall(b"PSUBSCRIBE " + b" ".join(b"weir.events.%s" % (b"*" * i)
                                                  for i in range(1, 60)) + b"\r\n")
        client.recv(100)
        return client

    check_deaf(weir, listen)


def test_S4_an_sse_client_that_never_reads(weir):
    def listen(server):
        client = small_buffers(server, "http")
        client.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        return client

    check_deaf(weir, listen)


# ----------------------------------------------------------------- nonsense


class Nonsense(threading.Thread):
    """One client at full rate: connections that say what is no request, and such as say what cannot
    be answered."""

    KINDS = [("resp", b"*1\r\n$-7\r\n" * 100), ("resp", b"\x16\x03\x01\x02\x00\r\n" * 100),
             ("resp", b"NOTHING OF THE KIND\r\n" * 1000),
             ("resp", b"*2\r\n$11\r\nCL.THROTTLE\r\n$1\r\nk\r\n" * 1000), ("resp", b"\x00" * 70000),
             ("http", b"GARBAGE\r\n\r\n" * 100),
             ("http", b"GET / HTTP/9.9\r\n\r\n"),
             ("http",
              b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n{]}" * 1000),
             ("http",
              b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n")]

    def __init__(self, server):
        super().__init__()
        self.server, self.over, self.rounds = server, threading.Event(), 0

    def run(self):
        while not self.over.is_set():
            for door, data in self.KINDS:
                with connect(self.server, door) as client:
                    try:
                        client.sendall(data)
                        client.recv(65536)
                    except ConnectionError:
                        pass
            self.rounds += 1


def taken(client):
    """What has been taken from the key `turn`."""
    limit, left = client("CL.THROTTLE", "turn", 999999, 1000000, 1000, 0)[1:3]
    return limit - left


TAKE = encode(["CL.THROTTLE", "turn", 999999, 1000000, 1000])


def test_one_that_always_has_more_to_say_takes_turns(weir):
    """It has said a lot when another one asks, while the server stands still: its first buffer of
    asks comes first, and no more."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "resp")
        with (Server(weir, resp="127.0.0.1:0," + path, threads=1) as server,
              server.resp() as other, socket.socket(socket.AF_UNIX) as talker):
            talker.connect(path)
            talker.sendall(TAKE)
            talker.recv(1000)
            assert taken(other) == 1
            os.kill(server.pid, signal.SIGSTOP)
            until("it stands still", lambda: state_of(server.pid)[0] == "T")
            talker.setblocking(False)
            said = 0
            with contextlib.suppress(BlockingIOError):
                while True:
                    said += talker.send(TAKE * 100)
            assert said > 2 * 65536, said
            asked = ["CL.THROTTLE", "turn", 999999, 1000000, 1000, 0]
            other.raw(encode(asked))
            os.kill(server.pid, signal.SIGCONT)
            limit, left = other.read()[1:3]
            assert limit - left <= 1 + 65536 // len(TAKE) + 1, limit - left
            talker.setblocking(True)
            while taken(other) < 1 + said // len(TAKE):
                talker.recv(65536)


def test_one_whose_asks_take_long_takes_turns(weir):
    """A thousand asks of some microseconds each lie in one buffer; and what has no answer at all
    ends no turn."""
    slow = encode(["WEIR.TAKE", "k", "sliding-window 1000000/1m buckets=60000"])
    asks = (slow + TAKE) * (60000 // len(slow + TAKE))
    with Server(weir, threads=1) as server, server.resp() as other, connect(server) as talker:
        talker.sendall(slow)
        talker.recv(1000)
        os.kill(server.pid, signal.SIGSTOP)
        until("it stands still", lambda: state_of(server.pid)[0] == "T")
        talker.sendall(asks)
        other.raw(encode(["CL.THROTTLE", "turn", 999999, 1000000, 1000, 0]))
        os.kill(server.pid, signal.SIGCONT)
        limit, left = other.read()[1:3]
        assert limit - left < 60000 // len(slow + TAKE), limit - left
        until("all is answered", lambda: taken(other) == 60000 // len(slow + TAKE))
        talker.sendall(b"\r\n" * 30000 + TAKE)
        until("the rest too", lambda: taken(other) == 60000 // len(slow + TAKE) + 1)


def test_one_that_reads_as_fast_as_it_asks_takes_turns(weir):
    """A hundred bytes of COMMAND are answered with sixty thousand."""
    asks = encode(["COMMAND"]) + TAKE
    with Server(weir, threads=1) as server, server.resp() as other, connect(server) as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 * MIB)
        reader.sendall(asks)
        while taken(other) < 1:
            pass
        os.kill(server.pid, signal.SIGSTOP)
        until("it stands still", lambda: state_of(server.pid)[0] == "T")
        reader.sendall(asks * (60000 // len(asks)))
        thread = threading.Thread(target=read_all, args=(reader,))
        thread.start()
        other.raw(encode(["CL.THROTTLE", "turn", 999999, 1000000, 1000, 0]))
        os.kill(server.pid, signal.SIGCONT)
        limit, left = other.read()[1:3]
        assert limit - left <= 100, limit - left
        until("all is answered", lambda: taken(other) == 1 + 60000 // len(asks))
        reader.shutdown(socket.SHUT_WR)
        thread.join()


def scrape_without_end(server, source, stop):
    """Sixteen connections that ask for the metrics again and again."""
    asks = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20
    clients = [socket.create_connection(("127.0.0.1", server.ports["http"]), timeout=60,
                                        source_address=(source, 0)) for _ in range(16)]
    while not stop.is_set():
        for client in clients:
            client.settimeout(60)
            client.sendall(asks)
        for client in clients:
            client.settimeout(0.01)
            with contextlib.suppress(TimeoutError):
                while client.recv(MIB):
                    pass
    for client in clients:
        client.close()


def test_S5_who_scrapes_without_end_keeps_nobody_out(weir):
    """Not the operator, nor the monitor of another host."""
    with Server(weir, threads=1) as server, server.resp() as client:
        stop = threading.Event()
        floods = [threading.Thread(target=scrape_without_end, args=(server, "127.0.0.2", stop))
                  for _ in range(2)]
        for flood in floods:
            flood.start()
        http = HTTPConnection("127.0.0.1", server.ports["http"], timeout=60,
                              source_address=("127.0.0.3", 0))
        rounds, text = 0, ""
        while rounds < 100 or 'weir_share_refused_total{pool="jobs"} 0\n' in text:
            assert client.json("WEIR.STATUS")["draining"] is False
            http.request("GET", "/metrics")
            answer = http.getresponse()
            text = answer.read().decode()
            assert answer.status == 200, text
            rounds += 1
        stop.set()
        for flood in floods:
            flood.join()
        http.close()


def read_lines(client, n):
    got = b""
    while got.count(b"\r\n") < n:
        got += client.recv(MIB)
    return got


def test_a_transaction_takes_turns(weir):
    """EXEC answers all in one list, in order, whoever comes between."""
    slow = encode(["WEIR.TAKE", "k", "sliding-window 1000000/1m buckets=60000"])
    n = 60000 // len(slow + TAKE)
    kept = (slow + TAKE) * n
    with Server(weir, threads=1) as server, server.resp() as other, connect(server) as talker:
        talker.sendall(encode(["MULTI"]) + kept)
        assert read_lines(talker, 1 + 2 * n) == b"+OK\r\n" + 2 * n * b"+QUEUED\r\n"
        os.kill(server.pid, signal.SIGSTOP)
        until("it stands still", lambda: state_of(server.pid)[0] == "T")
        talker.sendall(encode(["EXEC"]) + encode(["ECHO", "behind it"]))
        other.raw(encode(["CL.THROTTLE", "turn", 999999, 1000000, 1000, 0]))
        os.kill(server.pid, signal.SIGCONT)
        limit, left = other.read()[1:3]
        assert limit - left < n, limit - left
        until("all is answered", lambda: taken(other) == n)
        got = read_lines(talker, 1 + n * (7 + 6) + 2)
        assert got.startswith(b"*%d\r\n" % (2 * n)) and got.endswith(b"\r\nbehind it\r\n"), got
        talker.sendall(encode(["MULTI"]) + 20 * encode(["COMMAND"]) + encode(["EXEC"]))
        talker.shutdown(socket.SHUT_WR)
        assert b"*20\r\n" in read_all(talker)


def test_between_two_turns_of_one_all_others_come(weir):
    """What it is answered is written in one go, and libuv tells of up to nine such writes before it
    looks at other sockets.  At least one of another's asks comes in time for the next look."""
    asks = (encode(["COMMAND"]) + TAKE) * 600
    between = []
    with Server(weir, threads=1) as server, server.resp() as other, connect(server) as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 * MIB)
        thread = threading.Thread(target=read_all, args=(reader,))
        thread.start()
        for _ in range(10):
            before = taken(other)
            reader.sendall(asks)
            until("it is served", lambda: taken(other) > before)
            last = taken(other)
            while last < before + 500:
                now = taken(other)
                between.append(now - last)
                last = now
            until("all is answered", lambda: taken(other) == before + 600)
        reader.shutdown(socket.SHUT_WR)
        thread.join()
    assert min((n for n in between if n), default=600) <= 60, between  # 256 KiB are 48


def test_nonsense_at_full_rate(weir):
    with Server(weir, rules=RULES, env=LEAN) as server, server.resp() as client:
        http = server.http()
        before = memory_of(server.pid)
        fool = Nonsense(server)
        fool.start()
        while fool.rounds < 20:
            assert fool.is_alive()
            for i in range(50):
                assert client("CL.THROTTLE", "good", 10000000, 1, 1)[0] == 0
            assert http.check(account="x").status == 200
        fool.over.set()
        fool.join()
        http.close()
        until("all are gone", lambda: status_of(server)["connections"] <= 2)
        totals = status_of(server)["totals"]
        assert totals["bad_input"] >= 6 * fool.rounds, totals
        assert memory_of(server.pid) - before < 16 * MIB


# ------------------------------------------------------------------ bounds


def say(server, door, data):
    """What is answered until the connection is closed."""
    with connect(server, door) as client:
        try:
            client.sendall(data)
        except ConnectionError:
            pass
        return read_all(client)


def test_requests_have_bounds(weir):
    head = b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\n"
    with Server(weir, "--request-max", "64k") as server:
        # too many words
        assert b"-ERR Protocol error" in say(server, "resp", b"*1025\r\n" + b"$1\r\nx\r\n" * 1025)
        assert b"-ERR Protocol error" in say(server, "resp",
                                             b"*2\r\n$4\r\nECHO\r\n$70000\r\n" + b"x" * 70000
                                             + b"\r\n")
        assert b"-ERR Protocol error" in say(server, "resp", b"x" * 200000)  # a line without an end
        assert b" 413 " in say(server, "http",
                               head + b"Content-Length: 70000\r\n\r\n" + b"x" * 70000)
        assert b" 413 " in say(server, "http",
                               head + b"Transfer-Encoding: chunked\r\n\r\n" + b"400\r\n%s\r\n"
                               % (b"x" * 1024) * 80 + b"0\r\n\r\n")
        assert b" 400 " in say(server, "http", b"nonsense\r\n\r\n" * 1000)
        # too many headers
        assert b" 431 " in say(server, "http",
                               head + b"".join(b"X-%d: y\r\n" % i for i in range(1000)) + b"\r\n")
        answer = say(server, "http", head + b"X: " + b"y" * 100000 + b"\r\n\r\n")  # too large ones
        assert b" 431 " in answer or b" 413 " in answer, answer
        answer = say(server, "http",
                     b"GET /" + b"y" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 414 " in answer or b" 413 " in answer or b" 431 " in answer, answer
        with server.resp() as client:  # an ask within them is served
            assert client("ECHO", "x" * 60000) == "x" * 60000
            assert isinstance(client(*["x"] * 1024), Error)
            assert client("PING") == "PONG"


if __name__ == "__main__":
    run_tests(globals())
