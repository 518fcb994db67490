#!/usr/bin/env python3
"""nginx-load.py MODULE [TEST...] -- a real nginx under load: workers and masters that are killed,
more keys than room, slow clients, aborted uploads, thousands of requests that wait.  WEIR_LONG=1:
more of it."""
import json
import os
import resource
import signal
import socket
import threading

from nginxing import Answer, Backend, Nginx, is_gone, nginx_with
from serving import run_tests, until

LONG = os.environ.get("WEIR_LONG") == "1"
ZONE = "weir_req_zone $arg_k zone=one:1m rate=1r/h;"
BURST = "location / { weir_req zone=one burst=%d nodelay; }"
STATUS = "location = /status { weir_check off; weir_status; }"


class Load:
    """Asks from several threads; what was granted, refused, and lost with a worker."""

    def __init__(self, nginx, n, path="/?k=a", threads=8):
        self.nginx, self.path, self.found = nginx, path, []
        self.threads = [threading.Thread(target=self.run, args=(n // threads,))
                        for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def run(self, n):
        for _ in range(n):
            try:
                self.found.append(self.nginx.get(self.path).status)
            except OSError:
                self.found.append("not connected")

    def end(self):
        for thread in self.threads:
            thread.join()
        return [self.found.count(status) for status in (200, 429, None, "not connected")]


def test_N3_kills_of_workers_add_up(module):
    n = 8000 if LONG else 1600
    with Nginx(module, ZONE, BURST % 499, workers=2, kills=True) as nginx:
        load = Load(nginx, n)
        for _ in range(12 if LONG else 4):
            workers = nginx.workers()
            os.kill(workers[0], signal.SIGKILL)
            until("another runs", lambda: set(nginx.workers()) - set(workers), 60)
        granted, refused, lost, unconnected = load.end()
        assert granted + refused + lost + unconnected == n
        # a request that died with its worker may have been granted; nothing else is missing
        assert granted <= 500 <= granted + lost, (granted, lost)
        assert nginx.get("/?k=a").status == 429


def test_N3_a_killed_master_adds_up(module):
    """Its workers go on without it; another nginx goes on with their table."""
    with Nginx(module, ZONE, BURST % 399, workers=2, kills=True) as nginx:
        load = Load(nginx, 800)
        workers = nginx.workers()
        os.kill(nginx.pid(), signal.SIGKILL)
        nginx.process.wait()
        granted, refused, lost, unconnected = load.end()
        assert (granted, refused, lost, unconnected) == (400, 400, 0, 0)
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
        until("they are gone", lambda: all(is_gone(worker) for worker in workers), 60)
        assert nginx.start()
        assert nginx.get("/?k=a").status == 429 and nginx.get("/?k=b").status == 200


def test_N3_reloads_with_rules_and_zones_add_up(module):
    rules = """version: 1
rules: [{ name: hourly, key: "{arg.r}", limit: 300/1h }]
"""
    http = "weir_rules rules.yaml;" + ZONE
    with nginx_with(module, rules, http, BURST % 499, workers=2) as nginx:
        loads = [Load(nginx, 400, "/?r=x&k=y", 4), Load(nginx, 800, "/?k=a", 4)]
        for _ in range(12 if LONG else 3):
            nginx.reload()
        found = [load.end() for load in loads]
        assert found == [[300, 100, 0, 0], [500, 300, 0, 0]], found


def test_N3_new_binaries_add_up(module):
    """USR2 and WINCH; back to the old one with HUP and QUIT; forward again, for good."""
    rules = """version: 1
rules: [{ name: hourly, key: "{arg.r}", limit: 300/1h }]
"""
    http = "weir_rules rules.yaml; weir_conn_zone $arg_c zone=conns:1m;" + ZONE
    server = BURST % 499 + """location /held { weir_conn conns 1;
                                               proxy_pass http://unix:{folder}/backend; }"""
    with nginx_with(module, rules, http, server, workers=2, daemon=True) as nginx, \
            Backend(nginx) as backend:
        old = nginx.pid()
        held = nginx.send("/held?c=x")  # until the worker that has it is the last of the old ones
        connection = backend.accept()
        loads = [Load(nginx, 160, "/?r=x&k=a")]
        new = upgrade(nginx, old)
        loads.append(Load(nginx, 160, "/?r=x&k=a"))
        os.kill(old, signal.SIGHUP)
        until("the old one's run again", lambda: len(nginx.workers(old)) == 2, 60)
        finish(new)
        until("the old one is the one", lambda: nginx.pid() == old, 60)
        loads.append(Load(nginx, 160, "/?r=x&k=a"))
        new = upgrade(nginx, old)
        assert nginx.get("/held?c=x").status == 429
        backend.answer(connection)
        assert held.answer().status == 200
        finish(old)
        found = [sum(counts) for counts in zip(*[load.end() for load in loads])]
        assert found == [300, 180, 0, 0], found
        assert nginx.statuses(201, "/?k=a") == [200] * 200 + [429]  # of 500: a refusal took nothing
        held = nginx.send("/held?c=x")
        backend.answer(backend.accept())
        assert held.answer().status == 200
        finish(new)


def upgrade(nginx, old):
    """The new master; the old one's workers end when they have answered."""
    os.kill(old, signal.SIGUSR2)
    until("a new one runs", lambda: nginx.pid() not in (None, old) and len(nginx.workers()) == 2, 60)
    os.kill(old, signal.SIGWINCH)
    until("the old one's end", lambda: not nginx.workers(old), 60)
    return nginx.pid()


def finish(master):
    os.kill(master, signal.SIGQUIT)
    until("it has ended", lambda: is_gone(master), 60)


def pipeline(nginx, paths, connection):
    """Sends requests on one connection; how many were answered with 200, and with 429."""
    lines = "".join("GET %s HTTP/1.1\r\nHost: test\r\n\r\n" % path for path in paths)
    sender = threading.Thread(target=connection.sendall, args=(lines.encode(),))
    sender.start()
    data, heads = b"", 0
    good = bad = 0
    while heads < len(paths):
        piece = connection.recv(1 << 20)
        assert piece, "closed after %d answers" % heads
        data += piece
        good += data.count(b"HTTP/1.1 200 ")
        bad += data.count(b"HTTP/1.1 429 ")
        heads = good + bad
        data = data[-12:]  # less than a head: it may go on in the next piece
    sender.join()
    return good, bad


def test_N3_ten_times_as_many_keys_as_room(module):
    n = 300000 if LONG else 100000
    http = ZONE.replace("1m", "400k") + "keepalive_requests 1000000;"
    server = """location / { weir_req zone=one; empty_gif; }""" + STATUS
    with Nginx(module, http, server) as nginx:
        size = os.path.getsize(nginx.path("nginx.weir"))
        with socket.create_connection(("127.0.0.1", nginx.port), timeout=60) as connection:
            for i in range(0, n, 10000):
                paths = ["/?k=%d" % key for key in range(i, i + 10000)]
                found = pipeline(nginx, paths, connection)
                assert found == (10000, 0), (i, found)  # nobody is refused for want of room
        table = json.loads(nginx.get("/status").body)["table"]
        assert 5000 < table["keys"] <= table["slots"] < 20000, table
        assert table["evicted_early"] >= n - table["slots"] and table["no_room"] == 0, table
        assert os.path.getsize(nginx.path("nginx.weir")) == size
        assert nginx.statuses(2, "/?k=new") == [200, 429]


def test_N2_slow_clients_and_aborted_uploads(module):
    server = """location / { weir_conn conns 5; weir_req zone=one burst=100000 nodelay;
                             proxy_pass http://unix:{folder}/backend; }""" + STATUS
    http = "weir_conn_zone $host zone=conns:1m;" + ZONE
    with nginx_with(module, None, http, server) as nginx, Backend(nginx) as backend:
        slow = []
        for _ in range(100):  # their requests are not there yet: they hold nothing
            client = socket.create_connection(("127.0.0.1", nginx.port), timeout=60)
            client.sendall(b"GET / HTTP/1.1\r\nHost: t")
            slow.append(client)
        for _ in range(40):
            uploads = [upload(nginx) for _ in range(5)]
            until("they are in", lambda: in_flight(nginx) == 5, 60)
            assert nginx.get("/").status == 429
            for client in uploads:
                client.close()
            until("they are out", lambda: in_flight(nginx) == 0, 60)
        for client in slow:
            client.close()
        ask = nginx.send("/")
        backend.answer(backend.accept())
        assert ask.answer().status == 200


def upload(nginx):
    """Half of one; nginx reads all of it before it asks the backend."""
    client = socket.create_connection(("127.0.0.1", nginx.port), timeout=60)
    client.sendall(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 2000\r\n\r\n" + b"x" * 1000)
    return client


def in_flight(nginx):
    said = json.loads(nginx.get("/status").body)
    return sum(one.get("in_flight", 0) for one in said["guards"] + said["zones"])


def asks(nginx, n, path):
    """Many clients that have asked."""
    clients = []
    for _ in range(n):
        client = socket.create_connection(("127.0.0.1", nginx.port), timeout=60)
        client.sendall(b"GET %s HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n" % path.encode())
        clients.append(client)
    return clients


def test_N4_thousands_wait_for_their_turn_and_leave(module):
    n = 10000 if LONG else 3000
    rules = """version: 1
rules: [{ name: slow, key: "{arg.k}", limit: gcra 1/1m burst 1 }]
"""
    server = """location / { weir_wait 20d; try_files /index.html =404; }
                location /now { try_files /index.html =404; }""" + STATUS
    with nginx_with(module, rules, "weir_rules rules.yaml;", server, log="info",
                    connections=11000) as nginx:
        assert nginx.get("/?k=a").status == 200
        clients = asks(nginx, n, "/?k=a")
        until("all wait", lambda: nginx.logged("delaying request") == n, 60)
        assert nginx.get("/?k=b").status == 200  # no worker is blocked
        late = nginx.get("/now?k=a")
        assert late.status == 429 and int(late.headers["retry-after"]) > n * 50, late.headers
        for client in clients:
            client.close()
        until("all have left", lambda: nginx.logged("prematurely closed") == n, 60)
        refused = nginx.get("/now?k=a")  # every turn was given back
        assert refused.status == 200 or int(refused.headers["retry-after"]) <= 60, refused.headers


def test_N4_thousands_wait_in_a_queue(module):
    n = 5000 if LONG else 1000
    rules = """version: 1
guards: [{ name: g, concurrency: { max: 10, queue: 10000, wait: 1h } }]
"""
    server = """location / { proxy_pass http://unix:{folder}/backend; proxy_read_timeout 300s; }
             """ + STATUS
    with nginx_with(module, rules, "weir_rules rules.yaml;", server, log="info",
                    connections=15000) as nginx, Backend(nginx) as backend:
        clients = asks(nginx, n, "/")
        until("all but ten wait", lambda: nginx.logged("queueing request") == n - 10, 60)
        leaving = clients[n // 2::2]
        for client in leaving:
            client.close()
        until("some have left", lambda: nginx.logged("prematurely closed") == len(leaving), 60)
        staying = [client for client in clients if client not in set(leaving)]
        for _ in staying:
            backend.answer(backend.accept())
        for client in staying:
            assert answer(client).status == 200
        assert not backend.is_asked() and in_flight(nginx) == 0


def answer(client):
    data = b""
    while piece := client.recv(65536):
        data += piece
    client.close()
    return Answer(data)


def allow_files(n):
    """A login may open 1,024 unless it asks for more; nginx inherits it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (n if most < 0 else min(n, most), most))


if __name__ == "__main__":
    allow_files(20000)
    run_tests(globals())
