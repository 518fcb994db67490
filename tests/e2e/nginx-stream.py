#!/usr/bin/env python3
"""nginx-stream.py MODULE [TEST...] -- limits in stream {} of a real nginx: connections and their
rate, by address."""
import json
import os
import signal
import socket
import sys

from nginxing import Backend, Nginx
from serving import run_tests, until

STREAM = "/usr/lib/nginx/modules/ngx_stream_module.so"  # libnginx-mod-stream
MAIN = """load_module %(own)s;
load_module %(stream)s;
stream {
    weir_conn_zone $remote_addr zone=conns:1m;
    weir_req_zone $remote_addr zone=rate:1m rate=1r/h;
    log_format short "$remote_addr $weir_conn_status $weir_req_status $status";
    access_log %(folder)s/stream.log short;
    set_real_ip_from unix:;
    proxy_pass unix:%(folder)s/backend;
    server { listen unix:%(folder)s/two proxy_protocol; weir_conn conns 2; %(pass)s }
    server { listen unix:%(folder)s/three proxy_protocol; weir_req zone=rate burst=2; %(pass)s }
    server { listen unix:%(folder)s/both proxy_protocol; weir_conn conns 3; weir_req zone=rate;
             %(pass)s }
    server { listen unix:%(folder)s/dry proxy_protocol; weir_conn conns 1; weir_conn_dry_run on;
             weir_conn_log_level warn; %(pass)s }
}"""


def stream_of(module):
    return os.path.join(os.path.dirname(os.path.abspath(module)), "ngx_stream_weir_module.so")


def stream_nginx(module, **more):
    nginx = Nginx(module, "", "location = /status { weir_status; }", **more)
    try:
        words = dict(own=STREAM, stream=stream_of(module), folder=nginx.folder,
                     **{"pass": "proxy_pass unix:%s/backend;" % nginx.folder})
        text = MAIN.replace("    proxy_pass unix:%(folder)s/backend;\n", "") % words
        nginx.configure(main=text)
        nginx.reload()
    except BaseException as problem:
        nginx.__exit__(type(problem), problem, None)
        raise
    return nginx


class Session:
    """A connection from an address; it is greeted by the backend, or closed."""

    def __init__(self, nginx, name, address="192.0.2.1"):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(nginx.path(name))
        self.socket.sendall(b"PROXY TCP4 %s 192.0.2.99 1000 80\r\n" % address.encode())

    def passes(self, backend):
        """Whether the backend gets it."""
        until("it is decided", lambda: backend.is_asked() or self.is_closed(), 60)
        if not backend.is_asked():
            return False
        self.other = backend.socket.accept()[0]
        return True

    def is_closed(self):
        self.socket.setblocking(False)
        try:
            return self.socket.recv(1) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    def end(self):
        self.socket.close()
        assert self.other.recv(1) == b""  # nginx has closed it
        self.other.close()


def test_N2_connections_of_streams(module):
    with stream_nginx(module) as nginx, Backend(nginx) as backend:
        first, second = Session(nginx, "two"), Session(nginx, "two")
        assert first.passes(backend) and second.passes(backend)
        assert not Session(nginx, "two").passes(backend)
        other = Session(nginx, "two", "192.0.2.2")
        assert other.passes(backend)
        for _ in range(5):
            first.end()
            first = Session(nginx, "two")
            until("its place is free", lambda: nginx.logged("limiting connections") == 1, 60)
            assert first.passes(backend)
            assert nginx.logged('limiting connections by zone "conns"') == 1
        for session in (first, second, other):
            session.end()
        until("they are logged", lambda: open(nginx.path("stream.log")).read().count("\n") == 9, 60)
        zones = json.loads(nginx.get("/status").body)["zones"]
        assert [(zone["passed"], zone["rejected"]) for zone in zones
                if zone["kind"] == "stream-conn"] == [(8, 1)], zones
        log = open(nginx.path("stream.log")).read()
        assert log.count("192.0.2.1 REJECTED - 503\n") == 1, log
        assert log.count("192.0.2.1 PASSED - 200\n") == 7, log


def test_N1_the_rate_of_streams(module):
    with stream_nginx(module, workers=2) as nginx, Backend(nginx) as backend:
        found = [Session(nginx, "three").passes(backend) for _ in range(5)]
        assert found == [True] * 3 + [False] * 2, found
        assert Session(nginx, "three", "192.0.2.2").passes(backend)
        assert nginx.logged('limiting requests by zone "rate"') == 2
        nginx.reload()
        assert not Session(nginx, "three").passes(backend)


def test_N2_a_refusal_by_the_rate_holds_no_place(module):
    with stream_nginx(module) as nginx, Backend(nginx) as backend:
        assert Session(nginx, "both").passes(backend)
        for _ in range(9):
            refused = Session(nginx, "both")
            until("it is closed", refused.is_closed, 60)
        assert nginx.logged('limiting requests by zone "rate"') == 9  # none for want of a place


def test_N2_dry_run_of_streams(module):
    with stream_nginx(module) as nginx, Backend(nginx) as backend:
        sessions = [Session(nginx, "dry") for _ in range(3)]
        assert [session.passes(backend) for session in sessions] == [True] * 3
        assert nginx.logged(r"\[warn\].*limiting connections, dry run, by zone") == 2
        for session in sessions:
            session.end()


def test_N2_a_killed_worker_leaks_no_streams(module):
    with stream_nginx(module, kills=True) as nginx, Backend(nginx) as backend:
        for _ in range(3):
            assert Session(nginx, "two").passes(backend)
            assert Session(nginx, "two").passes(backend)
            workers = nginx.workers()
            os.kill(workers[0], signal.SIGKILL)
            second = until("another runs", lambda: set(nginx.workers()) - set(workers), 60).pop()
            until("their places are free", lambda: Session(nginx, "two").passes(backend), 60)
            os.kill(second, signal.SIGKILL)
            until("another runs", lambda: set(nginx.workers()) - {workers[0], second}, 60)
            until("its place is free", lambda: is_free(nginx, backend), 60)


def test_N3_streams_without_a_table_are_refused(module):
    with stream_nginx(module, kills=True) as nginx, Backend(nginx) as backend:
        assert Session(nginx, "two").passes(backend)
        nginx.bad = "no sanitizer likes that"
        os.truncate(nginx.path("nginx.weir"), 0)
        until("its worker dies of it", Session(nginx, "two").is_closed, 60)
        until("the next one knows", lambda: nginx.logged("are refused until a reload") == 1, 60)
        assert not Session(nginx, "two").passes(backend)
        assert not Session(nginx, "three").passes(backend)
        assert Session(nginx, "dry").passes(backend)
        assert nginx.logged("exited on signal") == 1, nginx.log()
        nginx.reload()
        assert Session(nginx, "two").passes(backend)


def test_N2_by_the_names_of_limit_conn_in_streams(module):
    with stream_nginx(module) as nginx, Backend(nginx) as backend:
        main = nginx.settings["main"].replace("weir_conn", "limit_conn")
        nginx.configure(main=main.replace("stream {", "weir_compat on; stream {"))
        nginx.reload()
        zones = json.loads(nginx.get("/status").body)["zones"]  # so it is Weir that limits
        assert ("conns", "stream-conn") in [(zone["name"], zone["kind"]) for zone in zones], zones
        sessions = [Session(nginx, "two") for _ in range(2)]
        assert all(session.passes(backend) for session in sessions)
        assert not Session(nginx, "two").passes(backend)
        for session in sessions:
            session.end()
        until("they are logged", lambda: open(nginx.path("stream.log")).read().count("\n") == 3, 60)
        log = open(nginx.path("stream.log")).read()
        assert log.count(" PASSED ") == 2 and log.count(" REJECTED ") == 1, log
        nginx.configure(main=main + " weir_compat on;")
        assert 'must stand before "http" and "stream"' in nginx.test()[1]


def is_free(nginx, backend):
    """Both places."""
    sessions = [Session(nginx, "two") for _ in range(2)]
    passed = [session for session in sessions if session.passes(backend)]
    for session in passed:
        session.end()
    return len(passed) == 2


def test_N1_mistakes_in_streams(module):
    with stream_nginx(module) as nginx:
        main = nginx.settings["main"]
        for old, new, what in [("weir_conn conns 2", "weir_conn other 2", "there is no such zone"),
                               ("burst=2", "delay=2", "connections do not wait"),
                               ("weir_conn conns 2", "weir_conn conns 2; weir_conn conns 3",
                                "is duplicate")]:
            nginx.configure(main=main.replace(old, new, 1))
            code, said = nginx.test()
            assert code == 1 and what in said, said


if __name__ == "__main__":
    if not os.path.exists(STREAM):
        sys.exit(77)  # skipped
    run_tests(globals())
