#!/usr/bin/env python3
"""nginx-feedback.py MODULE [TEST...] -- what guards in a real nginx learn from upstreams, whatever
the client gets or does."""
import contextlib
import json
import os
import signal
import socket
import time

from nginxing import Backend, nginx_with
from serving import run_tests, until

HTTP = "weir_rules rules.yaml;"
RULES = """version: 1
guards:
  - name: backend
    match: { uri: "/**" }
    breaker: { %s, min_calls: 3, open_for: 60s }
"""
ERRORS = RULES % "errors: 3"
STATUS = "location = /status { weir_check off; weir_status; }"
PROXY = """proxy_next_upstream off; proxy_read_timeout 300s;
           location / { proxy_pass http://unix:{folder}/backend; }""" + STATUS


def guard_of(nginx):
    guard, = json.loads(nginx.get("/status").body)["guards"]
    return guard


def exchange(nginx, backend, answer, path="/"):
    """The backend's bytes, and what the client gets."""
    ask = nginx.send(path)
    connection = backend.accept()
    connection.sendall(answer)
    connection.close()
    return ask.answer()


def opens(module, server, answer, status, http=HTTP):
    """Do three such answers open the breaker, each of which the client sees with this status?"""
    with nginx_with(module, ERRORS, http, server + STATUS) as nginx, Backend(nginx) as backend:
        for _ in range(3):
            assert guard_of(nginx)["breaker"] == "closed"
            got = exchange(nginx, backend, answer)
            assert got.status == status, (got.status, got.body)
        return guard_of(nginx)["breaker"] == "open"


def test_N5_a_page_instead_of_an_error_hides_nothing(module):
    pages = """error_page 502 =200 /other.html; location = /other.html { }
               location / { proxy_pass http://unix:{folder}/backend; }"""
    assert opens(module, pages, b"", 200)
    answer = b"HTTP/1.0 500 No\r\nContent-Length: 0\r\n\r\n"
    assert opens(module, pages.replace("502", "500") + "proxy_intercept_errors on;", answer, 200)


def test_N5_a_guard_is_left_once_however_nginx_answers(module):
    """By a redirect inside, a page, from its cache, after a kill."""
    http = HTTP + "proxy_cache_path cache keys_zone=c:1m;"
    server = """location / { try_files /none /other.html; } location = /other.html { }
                location /page { error_page 502 =200 /other.html; proxy_pass http://unix:/none; }
                location /cached { proxy_cache c; proxy_cache_valid 1h;
                                   proxy_pass http://unix:{folder}/backend; }
                location /held { proxy_pass http://unix:{folder}/backend; }""" + STATUS
    rules = "version: 1\nguards: [{ name: backend, concurrency: 1 }]\n"
    with nginx_with(module, rules, http, server, kills=True) as nginx, Backend(nginx) as backend:
        answer = b"HTTP/1.0 200 Yes\r\nContent-Length: 0\r\n\r\n"
        assert exchange(nginx, backend, answer, "/cached").status == 200
        for path in ["/", "/page", "/cached"] * 2:
            assert nginx.get(path).status == 200, path
            assert guard_of(nginx)["in_flight"] == 0, path
        held = nginx.send("/held"), backend.accept()
        assert nginx.get("/").status == 503
        worker, = nginx.workers()
        os.kill(worker, signal.SIGKILL)
        until("another runs", lambda: nginx.workers() not in ([], [worker]), 60)
        assert held[0].answer().status is None
        until("it is let in", lambda: nginx.get("/").status == 200, 60)
        assert guard_of(nginx)["in_flight"] == 0


def learns(module, adaptive, answer, status):
    """Such answers lower an adaptive limit, as the status page shows it."""
    rules = """version: 1
guards: [{ name: backend, adaptive: { initial: 50, window: 10ms, %s } }]
""" % adaptive
    with nginx_with(module, rules, HTTP, PROXY) as nginx, Backend(nginx) as backend:
        assert guard_of(nginx)["limit"] == 50

        def is_lower():
            assert exchange(nginx, backend, answer).status == status
            return guard_of(nginx)["limit"] < 50
        until("it has learnt", is_lower, 60)


def test_N5_the_status_of_upstreams_lowers_an_adaptive_limit(module):
    learns(module, "controller: aimd", b"HTTP/1.0 503 No\r\nContent-Length: 0\r\n\r\n", 503)


def test_N5_the_time_of_upstreams_lowers_an_adaptive_limit(module):
    """It is never within a microsecond."""
    learns(module, "p99: 1us", b"HTTP/1.0 200 Yes\r\nContent-Length: 0\r\n\r\n", 200)


def test_N5_another_upstream_instead_hides_nothing(module):
    http = HTTP + """server { listen unix:{folder}/other; root {folder}/html; weir_check off;
                              location / { try_files /index.html =404; } }"""
    server = """error_page 502 = @other; location @other { proxy_pass http://unix:{folder}/other; }
                location / { proxy_pass http://unix:{folder}/backend; }"""
    with nginx_with(module, ERRORS, HTTP, server + STATUS) as nginx, Backend(nginx) as backend:
        nginx.configure(http=http.replace("{folder}", nginx.folder))
        nginx.reload()
        for _ in range(3):
            assert guard_of(nginx)["breaker"] == "closed"
            assert exchange(nginx, backend, b"").status == 200
        assert guard_of(nginx)["breaker"] == "open"


def test_N5_what_the_cache_still_has_hides_nothing(module):
    http = HTTP + "proxy_cache_path cache keys_zone=pages:1m;"
    server = """proxy_cache pages; proxy_cache_valid 200 1s; proxy_cache_key page;
                proxy_cache_use_stale error; proxy_next_upstream off;
                location / { proxy_pass http://unix:{folder}/backend; }""" + STATUS
    with nginx_with(module, ERRORS, http, server) as nginx, Backend(nginx) as backend:
        page = b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\npage"
        assert exchange(nginx, backend, page).body == b"page"
        for _ in range(3):
            assert guard_of(nginx)["breaker"] == "closed"
            ask = nginx.send("/")
            while ask.is_answered() or not backend.is_asked():  # it is fresh for a second
                if ask.is_answered():
                    assert ask.answer().body == b"page"
                    time.sleep(0.05)
                    ask = nginx.send("/")
            backend.accept().close()
            assert ask.answer().body == b"page"
        found = guard_of(nginx)
        assert (found["breaker"], found["failed"]) == ("open", 3), found


def renew(nginx, backend, answer):
    """The client has the old page before the backend is asked for a new one."""
    data = b""
    while b"Cache: STALE" not in data:  # it is fresh for a second
        time.sleep(0.05)
        ask, data = nginx.send("/"), b""
        while not data.endswith(b"page"):
            data += ask.socket.recv(65536)
    connection = backend.accept()
    connection.sendall(answer)
    connection.close()
    ask.answer()  # it ends when both are done


RENEWED = """location / { proxy_pass http://unix:{folder}/backend; proxy_cache pages;
                          proxy_cache_valid 200 1s; proxy_cache_key page;
                          proxy_cache_use_stale updating; proxy_cache_background_update on;
                          add_header Cache $upstream_cache_status;
                          error_page 502 %s; mirror /mirror; }
             location = /mirror { proxy_pass http://unix:/none; }""" + STATUS
PAGES = HTTP + "proxy_cache_path cache keys_zone=pages:1m;"
FAILURE = b"HTTP/1.0 500 No\r\nContent-Length: 0\r\n\r\n"


def renews(nginx, backend, answers):
    """Do these failures open the breaker?  What a mirror gets is no news of the upstream."""
    page = b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\npage"
    assert exchange(nginx, backend, page).body == b"page"
    renew(nginx, backend, page)
    assert guard_of(nginx)["failed"] == 0
    for answer in answers:
        assert guard_of(nginx)["breaker"] == "closed"
        renew(nginx, backend, answer)
    found = guard_of(nginx)
    assert (found["breaker"], found["failed"]) == ("open", 3), found


def test_N5_what_the_cache_renews_behind_its_answer_hides_nothing(module):
    server = RENEWED % "/other.html" + "location = /other.html { }"
    with nginx_with(module, ERRORS, PAGES, server) as nginx, Backend(nginx) as backend:
        renews(nginx, backend, [b"", FAILURE, FAILURE])


def test_N5_another_upstream_for_a_renewal_hides_nothing(module):
    """Wherever the rules are not asked, too."""
    other = """server { listen unix:{folder}/other; root {folder}/html; weir_check off;
                        location / { try_files /index.html =404; } }"""
    server = RENEWED % "= @other" + """
             location @other { weir_check off; proxy_pass http://unix:{folder}/other; }"""
    with nginx_with(module, ERRORS, PAGES, server) as nginx, Backend(nginx) as backend:
        nginx.configure(http=PAGES + other.replace("{folder}", nginx.folder))
        nginx.reload()
        renews(nginx, backend, [b"", b"", b""])


def test_N5_locations_have_guards_of_their_own(module):
    """And so have their upstreams: what fails behind one of them closes no other."""
    rules = "version: 1\nguards:\n" + "".join(
        "  - { name: %s, match: { service: %s }, breaker: { errors: 3, min_calls: 3 } }\n" %
        (name, name) for name in ("shop", "search"))
    server = """location / { weir_attribute service search; try_files /index.html =404; }
                location /shop { weir_attribute service shop;
                                 proxy_pass http://unix:{folder}/backend; }""" + STATUS
    with nginx_with(module, rules, HTTP, server) as nginx, Backend(nginx) as backend:
        for _ in range(3):
            assert exchange(nginx, backend, FAILURE, "/shop").status == 500
        assert nginx.get("/shop").status == 503 and not backend.is_asked()
        assert nginx.statuses(3, "/") == [200] * 3
        found = {guard["name"]: (guard["breaker"], guard["entered"], guard["failed"])
                 for guard in json.loads(nginx.get("/status").body)["guards"]}
        assert found == {"shop": ("open", 3, 3), "search": ("closed", 3, 0)}, found


def slice_of(n, body=b"abcd"):
    return (b"HTTP/1.0 206 OK\r\nETag: \"x\"\r\nContent-Length: 4\r\n"
            b"Content-Range: bytes %d-%d/8\r\n\r\n" % (4 * n, 4 * n + 3) + body)


def test_N5_a_slice_that_fails_is_an_error(module):
    """The second one; the first comes from the backend or from the cache."""
    server = """location / { proxy_pass http://unix:{folder}/backend; proxy_cache pages; slice 4;
                             proxy_set_header Range $slice_range; proxy_cache_valid 206 1h;
                             proxy_cache_key $uri$slice_range; }""" + STATUS
    with nginx_with(module, ERRORS, PAGES, server) as nginx, Backend(nginx) as backend:
        answers = [("/good", [slice_of(0), slice_of(1)]), ("/a", [slice_of(0), FAILURE]),
                   ("/a", [b""]), ("/b", [slice_of(0), slice_of(1, b"ab")])]
        for i, (path, slices) in enumerate(answers):
            found = guard_of(nginx)
            assert (found["breaker"], found["failed"]) == ("closed", max(0, i - 1)), found
            ask = nginx.send(path)
            for answer in slices:
                connection = backend.accept()
                connection.sendall(answer)
                connection.close()
            ask.answer()
        found = guard_of(nginx)
        assert (found["breaker"], found["failed"]) == ("open", 3), found


def test_N5_an_answer_that_breaks_off_is_an_error(module):
    server = "location / { proxy_pass http://unix:{folder}/backend; }"
    half = b"HTTP/1.0 200 OK\r\nContent-Length: 10\r\n\r\nhalf"
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"
    for buffering in ["", "proxy_http_version 1.1; proxy_buffering off;"]:
        assert opens(module, server + buffering, half, 200), buffering
        assert not opens(module, server + buffering, half.replace(b"10", b"4"), 200), buffering
        assert opens(module, server + buffering, chunked, 200), buffering
        assert not opens(module, server + buffering, chunked + b"0\r\n\r\n", 200), buffering


def test_N5_a_client_that_leaves_in_mid_answer_is_none(module):
    half = b"HTTP/1.0 200 OK\r\nContent-Length: 10\r\n\r\nhalf"
    server = PROXY + "proxy_buffering off;"
    with nginx_with(module, ERRORS, HTTP, server) as nginx, Backend(nginx) as backend:
        for _ in range(3):
            ask = nginx.send("/")
            connection = backend.accept()
            connection.sendall(half)
            until("it has begun", ask.is_answered, 60)
            ask.leave()
            until("it has left", lambda: guard_of(nginx)["in_flight"] == 0, 60)
            connection.close()
        found = guard_of(nginx)
        assert (found["breaker"], found["failed"]) == ("closed", 0), found


SLOW = RULES % "slow: 3s, ratio: 50%"
LARGE = b"HTTP/1.0 200 OK\r\nContent-Length: 20000000\r\n\r\n" + bytes(20000000)


def test_N5_clients_that_read_slowly_do_not_open_the_breaker(module):
    """A busy machine can be slow itself: then it is tried again."""
    assert any(stays_closed(module, reads_slowly) for _ in range(3))


def test_N5_clients_that_send_slowly_do_not_open_the_breaker(module):
    assert any(stays_closed(module, sends_slowly) for _ in range(3))


def stays_closed(module, begin):
    with nginx_with(module, SLOW, HTTP, PROXY) as nginx, Backend(nginx) as backend:
        clients = [begin(nginx, backend) for _ in range(4)]
        assert guard_of(nginx)["in_flight"] == 4
        end = time.monotonic() + 7
        while time.monotonic() < end and guard_of(nginx)["breaker"] == "closed":
            time.sleep(0.1)
        found = guard_of(nginx)
        for client in clients:
            client.close()
        until("they have left", lambda: guard_of(nginx)["in_flight"] == 0, 60)
        return found["breaker"] == "closed" and found["in_flight"] == 4


def reads_slowly(nginx, backend):
    client = nginx.send("/").socket
    connection = backend.accept()
    connection.sendall(LARGE)
    connection.close()
    return client


def sends_slowly(nginx, backend):
    client = socket.create_connection(("127.0.0.1", nginx.port), timeout=60)
    client.sendall(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\nabc")
    until("it is in", lambda: guard_of(nginx)["in_flight"] > 0, 60)
    return client


def test_N5_bodies_that_come_slowly_are_not_the_upstreams_time(module):
    """It has them as they come, and answers at once; or never, if a client does not go on."""
    rules = SLOW.replace("3s", "1s")
    server = PROXY + "proxy_request_buffering off; client_body_timeout 2s;"
    with nginx_with(module, rules, HTTP, server) as nginx, Backend(nginx) as backend:
        for rest, found in [(b"ghi", b" 200 "), (b"", b"")]:
            asks = [(sends_slowly(nginx, backend), backend.accept()) for _ in range(4)]
            for piece in (b"de", b"f"):
                time.sleep(0.7)
                for client, _ in asks:
                    client.sendall(piece)
            for client, connection in asks if rest else []:
                client.sendall(rest)
                while not connection.recv(4096).endswith(rest):
                    pass
                backend.answer(connection)
            for client, connection in asks:
                got = client.recv(4096)
                assert found in got, got
                client.close()
                connection.close()
            until("they have left", lambda: guard_of(nginx)["in_flight"] == 0, 60)
            assert guard_of(nginx)["breaker"] == "closed", rest


def test_N5_upstreams_that_hang_open_the_breaker(module):
    """Also after the time at which permits are renewed, and for requests with a body."""
    for slow, headers in [("6s", b""), ("1s", b"Content-Length: 3\r\n")]:
        rules = SLOW.replace("3s", slow)
        with nginx_with(module, rules, HTTP, PROXY) as nginx, Backend(nginx) as backend:
            clients = []
            for _ in range(4):
                client = socket.create_connection(("127.0.0.1", nginx.port), timeout=60)
                client.sendall(b"POST / HTTP/1.1\r\nHost: test\r\n" + headers + b"\r\n")
                if headers:
                    client.sendall(b"abc")
                clients.append((client, backend.accept()))
            until("it opens", lambda: guard_of(nginx)["breaker"] == "open", 60)
            for client, connection in clients:
                backend.answer(connection)
                client.close()


def test_N5_upstreams_that_do_not_read_open_the_breaker(module):
    """They get the body as it comes."""
    rules = SLOW.replace("3s", "1s")
    server = PROXY + "proxy_request_buffering off; client_max_body_size 0;"
    with nginx_with(module, rules, HTTP, server) as nginx, Backend(nginx) as backend:
        clients = []
        for _ in range(4):
            client = socket.create_connection(("127.0.0.1", nginx.port), timeout=60)
            client.sendall(b"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 90000000\r\n\r\n")
            client.setblocking(False)
            clients.append((client, backend.accept()))
        until("all is full, and it opens", lambda: fill(clients) and
              guard_of(nginx)["breaker"] == "open", 60)
        for client, connection in clients:
            client.close()
            connection.close()


def fill(clients):
    for client, _ in clients:
        with contextlib.suppress(BlockingIOError):
            while client.send(bytes(1000000)):
                pass
    return True


if __name__ == "__main__":
    run_tests(globals())
