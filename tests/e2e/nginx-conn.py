#!/usr/bin/env python3
"""nginx-conn.py MODULE [TEST...] -- connections in a real nginx: weir_conn, and limit_conn by its
own name."""
import os
import signal

from nginxing import Backend, Http2, Nginx, nginx_with
from serving import run_tests, until

ZONE = "weir_conn_zone $arg_k zone=c:1m;"
PROXY = "proxy_pass http://unix:{folder}/backend;"


def enter(nginx, backend, path):
    ask = nginx.send(path)
    return ask, backend.accept()


def test_N2_at_most_n_of_each_key(module):
    server = "location / { weir_conn c 2; add_header S $weir_conn_status always; %s }" % PROXY
    with nginx_with(module, None, ZONE, server, workers=2) as nginx, Backend(nginx) as backend:
        first, second = (enter(nginx, backend, "/?k=a") for _ in range(2))
        refused = nginx.get("/?k=a")
        assert refused.status == 429 and refused.headers["s"] == "REJECTED", refused.headers
        assert "retry-after" in refused.headers
        other = enter(nginx, backend, "/?k=b")
        without = [enter(nginx, backend, "/") for _ in range(4)]  # no key: no limit
        backend.answer(first[1])
        answer = first[0].answer()
        assert answer.status == 200 and answer.headers["s"] == "PASSED", answer.headers
        third = enter(nginx, backend, "/?k=a")
        assert nginx.get("/?k=a").status == 429
        for ask, connection in [second, other, third, *without]:
            backend.answer(connection)
            assert ask.answer().status == 200
        assert nginx.logged(r'\[error\].* limiting connections by zone "c"') == 2


def test_N2_a_client_that_leaves_frees_its_place(module):
    server = "location / { weir_conn c 1; %s }" % PROXY
    with nginx_with(module, None, ZONE, server) as nginx, Backend(nginx) as backend:
        for _ in range(5):
            ask, connection = enter(nginx, backend, "/?k=a")
            assert nginx.get("/?k=a").status == 429
            ask.leave()
            assert connection.recv(1) == b""  # nginx has noticed
            connection.close()


def test_N2_streams_of_http2_count(module):
    """Each for itself, as with limit_conn."""
    weirs = "location / { weir_conn c 2; weir_conn_status 503; %s }" % PROXY
    for http, server in [(ZONE, weirs), (ZONE.replace("weir", "limit"),
                                         weirs.replace("weir", "limit"))]:
        with nginx_with(module, None, http, server, listen=" http2") as nginx, \
                Backend(nginx) as backend, Http2(nginx.port) as connection:
            held = []
            for stream in (1, 3):
                connection.ask(stream, b"/?k=a")
                held.append(backend.accept())
            connection.ask(5, b"/?k=a")
            assert connection.status() == (5, 503)
            connection.leave(3)
            assert held[1].recv(1) == b""  # nginx has noticed
            connection.ask(7, b"/?k=a")
            held[1] = backend.accept()
            connection.ask(9, b"/?k=a")
            assert connection.status() == (9, 503)
            for stream, asked in zip((1, 7), held):
                backend.answer(asked)
                assert connection.status() == (stream, 200)


def test_N2_locations_with_their_own_number(module):
    server = """location / { weir_conn c 3; %s } location /few { weir_conn c 1; %s }""" % (PROXY,
                                                                                       PROXY)
    with nginx_with(module, None, ZONE, server) as nginx, Backend(nginx) as backend:
        held = [enter(nginx, backend, "/few?k=a")]
        assert nginx.get("/few?k=a").status == 429
        held += [enter(nginx, backend, "/?k=a") for _ in range(2)]
        assert nginx.get("/?k=a").status == 429  # all of one key count, wherever they are
        for ask, connection in held:
            backend.answer(connection)
            assert ask.answer().status == 200


def test_N2_several_limits_all_or_nothing(module):
    zones = "weir_conn_zone $arg_a zone=a:1m; weir_conn_zone $arg_b zone=b:1m;"
    server = "location / { weir_conn a 2; weir_conn b 1; %s }" % PROXY
    with nginx_with(module, None, zones, server) as nginx, Backend(nginx) as backend:
        held = [enter(nginx, backend, "/?a=x&b=1")]
        assert nginx.statuses(5, "/?a=x&b=1") == [429] * 5
        held.append(enter(nginx, backend, "/?a=x&b=2"))  # the refusals hold nothing
        assert nginx.get("/?a=x&b=3").status == 429
        for ask, connection in held:
            backend.answer(connection)
            assert ask.answer().status == 200


def test_N2_a_refused_connection_takes_nothing_from_the_rate(module):
    http = ZONE + "weir_req_zone $arg_k zone=r:1m rate=1r/h;"
    server = "location / { weir_req zone=r burst=1 nodelay; weir_conn c 1; %s }" % PROXY
    with nginx_with(module, None, http, server) as nginx, Backend(nginx) as backend:
        held = enter(nginx, backend, "/?k=a")
        assert nginx.statuses(5, "/?k=a") == [429] * 5
        backend.answer(held[1])
        assert held[0].answer().status == 200
        ask, connection = enter(nginx, backend, "/?k=a")
        backend.answer(connection)
        assert ask.answer().status == 200
        assert nginx.get("/?k=a").status == 429 and nginx.logged("limiting requests") == 1


def test_N2_redirects_and_dry_runs(module):
    server = """add_header S $weir_conn_status always;
                location / { weir_conn c 1; error_page 404 = @more; }
                location @more { weir_conn c 1; %s }
                location /dry { weir_conn c 1; weir_conn_dry_run on; %s }
                location /teapot { weir_conn c 1; weir_conn_status 418; weir_conn_log_level info; }
                """ % (PROXY, PROXY)
    with nginx_with(module, None, ZONE, server, log="info") as nginx, Backend(nginx) as backend:
        held = enter(nginx, backend, "/nothing?k=a")  # one permit, not two
        assert nginx.get("/teapot?k=a").status == 418
        ask, connection = enter(nginx, backend, "/dry?k=a")
        backend.answer(connection)
        assert ask.answer().headers["s"] == "REJECTED_DRY_RUN"
        backend.answer(held[1])
        assert held[0].answer().headers["s"] == "PASSED"
        assert nginx.logged(r"\[info\].*limiting connections by") == 1
        assert nginx.logged(r"\[error\].*limiting connections, dry run, by zone") == 1


def test_N2_a_page_of_a_refusal_is_limited_too(module):
    """It may be a backend: error_page is no way around its limit."""
    http = ZONE + "weir_req_zone $arg_r zone=r:1m rate=1r/h;"
    server = """location / { weir_req zone=r; error_page 429 = @more; try_files /index.html =404; }
                location @more { weir_conn c 1; %s }
                location /c { weir_conn c 1; error_page 429 = @rate; }
                location @rate { weir_req zone=r burst=1 nodelay; try_files /index.html =404; }
                """ % PROXY
    with nginx_with(module, None, http, server) as nginx, Backend(nginx) as backend:
        assert nginx.get("/?k=a&r=1").status == 200
        held = enter(nginx, backend, "/?k=a&r=1")
        refused = nginx.send("/?k=a&r=1")
        until("it is decided", lambda: refused.is_answered() or backend.is_asked(), 60)
        assert refused.is_answered() and refused.answer().status == 429
        assert nginx.statuses(3, "/c?k=a&r=1") == [200, 429, 429]
        backend.answer(held[1])
        assert held[0].answer().status == 200


def test_N2_a_page_is_limited_by_what_its_refusal_gave_back(module):
    """weir_conn refuses, and weir_req has its unit back: the page takes one of its own."""
    http = ZONE + "".join("weir_req_zone $arg_k zone=%s:1m rate=1r/h;" % name for name in "rp")
    server = """location / { weir_req zone=r burst=1 nodelay; weir_conn c 1; error_page 429 = @more;
                             %s }
                location @more { weir_req zone=p; try_files /index.html =404; }""" % PROXY
    with nginx_with(module, None, http, server) as nginx, Backend(nginx) as backend:
        held = enter(nginx, backend, "/?k=a")
        assert nginx.statuses(3, "/?k=a") == [200, 429, 429]
        backend.answer(held[1])
        assert held[0].answer().status == 200
        held = enter(nginx, backend, "/?k=a")  # the refusals took nothing of r
        backend.answer(held[1])
        assert held[0].answer().status == 200


def test_N2_parts_of_a_page_of_a_refusal_are_limited_too(module):
    http = ZONE + "weir_req_zone $arg_r zone=r:1m rate=1r/h;"
    server = """location / { weir_req zone=r; error_page 429 /page; try_files /index.html =404; }
                location = /page { ssi on; ssi_types text/plain; alias {folder}/html/page; }
                location /part { weir_conn c 1; %s }""" % PROXY
    with nginx_with(module, None, http, server) as nginx, Backend(nginx) as backend:
        with open(nginx.path("html/page"), "w") as page:
            page.write('<!--# include virtual="/part?k=a" -->')
        assert nginx.get("/?r=1").status == 200
        held = enter(nginx, backend, "/?r=1")
        other = nginx.send("/?r=1")
        until("it is decided", lambda: backend.is_asked() or nginx.logged("limiting conn"), 60)
        assert not backend.is_asked()
        backend.answer(held[1])
        assert b"ok" in held[0].answer().body and b"ok" not in other.answer().body


def kill_a_worker(module, http, limit, main="", patient=True):
    """Whether the key of a worker that was killed comes free."""
    server = "location / { %s %s }" % (limit, PROXY)
    with nginx_with(module, None, http, server, main=main, kills=True) as nginx, \
            Backend(nginx) as backend:
        ask, connection = enter(nginx, backend, "/?k=a")
        old = nginx.workers()
        os.kill(old[0], signal.SIGKILL)
        until("another worker runs", lambda: set(nginx.workers()) - set(old), 60)
        ask.leave()
        connection.close()

        def is_free():
            again = nginx.send("/?k=a")
            until("an answer, or let in", lambda: again.is_answered() or backend.is_asked(), 60)
            if again.is_answered():
                assert again.answer().status in (429, 503)
                return False
            backend.answer(backend.accept())
            return again.answer().status == 200

        try:
            until("its permit is back", is_free, 60 if patient else 3)
            free = True
        except AssertionError:
            free = False
    return free


def test_N2_a_killed_worker_leaks_nothing(module):
    assert kill_a_worker(module, ZONE, "weir_conn c 1;")


def test_N2_by_the_names_of_limit_conn(module):
    http = "limit_conn_zone $arg_k zone=c:1m;"
    assert kill_a_worker(module, http, "limit_conn c 1;", main="weir_compat on;")


def test_N2_nginx_itself_leaks(module):
    """So there is a difference to show."""
    assert not kill_a_worker(module, "limit_conn_zone $arg_k zone=c:1m;", "limit_conn c 1;",
                             patient=False)


def test_N2_mistakes_are_named(module):
    with Nginx(module, ZONE, "") as nginx:
        for server, words in [("weir_conn c 0;", "from 1 to 65535"), ("weir_conn d 1;", 'zone "d"'),
                              ("weir_conn c 65536;", "more than 16384 count as 16384"),
                              ("weir_conn c 1; weir_conn c 2;", "is duplicate"),
                              ("weir_conn c 1x;", "from 1 to 65535")]:
            nginx.configure(server=server)
            code, said = nginx.test()
            assert code == 1 and words in said, (server, said)
        nginx.configure(server="weir_conn c 20000;")
        code, said = nginx.test()
        assert code == 0 and "20000 connections are too many: 16384 are allowed" in said, said


if __name__ == "__main__":
    run_tests(globals())
