#!/usr/bin/env python3
"""nginx-wait.py MODULE [TEST...] -- requests that wait inside a real nginx: for the turn that a
rule gives them, and in the queues of guards."""
import json
import os
import re
import signal
import tempfile
import time

from nginxing import Backend, Nginx, nginx_with
from serving import run_tests, until, write

HTTP = "weir_rules rules.yaml;"
HOURLY = """version: 1
rules:
  - { name: slow, key: "{arg.k}", limit: gcra 1/1h burst 1 }
  - { name: all, key: "{arg.all}", limit: 5/1h }
"""
WAITS = """location / { weir_wait 90m; try_files /index.html =404; }
           location /now { try_files /index.html =404; }"""


def test_N4_a_rule_makes_requests_wait(module):
    rules = """version: 1
rules: [{ name: paced, key: "{arg.k}", limit: gcra 10/1s burst 1 }]
"""
    server = """location / { weir_wait 10s; try_files /index.html =404;
                             add_header Wait "$weir_wait $weir_outcome"; }"""
    with nginx_with(module, rules, HTTP, server, workers=2) as nginx:
        begun = time.monotonic()
        answers = [ask.answer() for ask in [nginx.send("/?k=a") for _ in range(6)]]
        assert [answer.status for answer in answers] == [200] * 6
        assert time.monotonic() - begun > 0.49  # nginx's timers may be a millisecond early
        waits = sorted(answer.headers["wait"] for answer in answers)
        assert waits[0] == "0.000 granted" and waits[-1] >= "0.4", waits


def test_R14_a_queue_in_which_nobody_waits_is_named(module):
    rules = """version: 1
rules:
  - { name: meter, key: "{ip}", limit: 10/1s }
  - { name: slow, key: "{ip}", limit: leaky-bucket 10/1s burst 1 queue %d }
"""
    for queue, server, named in [(5, "", True), (5, "location / { weir_wait 0; }", True),
                                 (5, "location / { weir_wait 1s; }", False), (0, "", False)]:
        with nginx_with(module, rules % queue, "weir_rules rules.yaml;", server) as nginx:
            code, said = nginx.test()
            assert code == 0, said
            assert ("slow, limit 1 has a queue, and there is no weir_wait" in said) == named, said


def test_N4_a_client_that_leaves_gives_back_its_turn(module):
    with nginx_with(module, HOURLY, HTTP, WAITS, log="info") as nginx:
        assert nginx.get("/?k=a").status == 200
        for n in range(1, 10):
            waits = nginx.send("/?k=a&all=x")
            until("it waits", lambda: nginx.logged("delaying request") == n, 60)
            assert nginx.get("/?k=a").status == 429  # there is one turn in 90 minutes
            waits.leave()
            until("it has left", lambda: nginx.logged("prematurely closed") == n, 60)
        # nothing was taken from the rule that did not make it wait either
        assert nginx.statuses(6, "/now?all=x") == [200] * 5 + [429]


def test_N4_a_wait_of_any_length(module):
    server = "location / { weir_wait 200000d; try_files /index.html =404; }"
    with nginx_with(module, HOURLY, HTTP, server, log="info") as nginx:
        assert nginx.get("/?k=a").status == 200
        waits = nginx.send("/?k=a")
        until("it waits", lambda: waits.is_answered() or nginx.logged("delaying request"), 60)
        assert not waits.is_answered()
        waits.leave()


def test_N4_a_client_that_has_left_before_it_waits(module):
    http = HTTP + "weir_req_zone $arg_z zone=z:1m rate=1r/h;"
    server = WAITS + "location /zone { weir_req zone=z burst=1; try_files /index.html =404; }"
    with nginx_with(module, HOURLY, http, server, log="info") as nginx:
        for n, path in enumerate(["/?k=a", "/zone?z=a"], 1):
            assert nginx.get(path).status == 200
            with nginx.stopped():
                nginx.send(path).leave()
            until("it has left", lambda: nginx.logged("prematurely closed") == n, 60)


QUEUE = """version: 1
rules: [{ name: hourly, key: "{arg.k}", limit: 3/1h }]
guards:
  - name: backend
    priority: "{arg.p}"
    concurrency: { max: 1, queue: 4, wait: 1h, order: priority }
"""
PROXY = """location / { proxy_pass http://unix:{folder}/backend; proxy_read_timeout 300s;
                        add_header Guard "$weir_outcome $weir_guard" always; }
           location = /status { weir_check off; weir_status; }"""


def queued(nginx, n):
    until("it waits", lambda: nginx.logged("queueing request") == n, 60)


def test_N4_guards_let_requests_wait_by_priority(module):
    with nginx_with(module, QUEUE, HTTP, PROXY, log="info") as nginx, Backend(nginx) as backend:
        first = nginx.send("/")
        connections = [backend.accept()]
        waiting = []
        for n, priority in enumerate([0, -2, 3, 3], 1):
            waiting.append(nginx.send("/?p=%d" % priority))
            queued(nginx, n)
        full = nginx.get("/")
        assert full.status == 503 and full.headers["guard"] == "full backend", full.headers
        assert not backend.is_asked()
        for ask in [first, waiting[2], waiting[3], waiting[0], waiting[1]]:
            backend.answer(connections.pop())
            assert ask.answer().status == 200
            if ask is not waiting[1]:
                connections.append(backend.accept())
        assert b'"in_flight":0' in nginx.get("/status").body


def test_N4_guards_let_requests_wait_by_weight(module):
    """Of every four turns the one who comes first has one, and the other three."""
    rules = QUEUE.replace('priority: "{arg.p}"', 'class: "{arg.c}"').replace("queue: 4", "queue: 8")
    rules = rules.replace("order: priority", "order: weighted, weights: { gold: 3, free: 1 }")
    with nginx_with(module, rules, HTTP, PROXY, log="info") as nginx, Backend(nginx) as backend:
        asks = [nginx.send("/")]
        connection, order = backend.accept(), []
        for n, name in enumerate(["free"] * 4 + ["gold"] * 4, 1):
            asks.append(nginx.send("/?c=" + name))
            queued(nginx, n)
        for _ in range(8):
            backend.answer(connection)
            connection = backend.accept()
            order.append(re.search(rb"c=(\w+)", backend.head).group(1))
        backend.answer(connection)
        assert [ask.answer().status for ask in asks] == [200] * 9
        assert order[:4].count(b"gold") == 3, order
        assert order[4:].count(b"gold") == 1, order


def test_N4_a_client_that_leaves_the_queue(module):
    with nginx_with(module, QUEUE, HTTP, PROXY, log="info") as nginx, Backend(nginx) as backend:
        first = nginx.send("/")
        connection = backend.accept()
        for n in range(1, 10):  # more than there are places and units
            ask = nginx.send("/?k=a")
            queued(nginx, n)
            ask.leave()
            until("it has left", lambda: nginx.logged("prematurely closed") == n, 60)
        last = nginx.send("/?k=a")
        queued(nginx, 10)
        backend.answer(connection)
        assert first.answer().status == 200
        backend.answer(backend.accept())
        assert last.answer().status == 200
        assert b'"in_flight":0' in nginx.get("/status").body


def test_N4_the_log_grants_nothing_to_a_client_that_left_the_queue(module):
    http = HTTP + "log_format short '$status $weir_outcome';"
    server = "access_log {folder}/access.log short;" + PROXY
    with nginx_with(module, QUEUE, http, server, log="info") as nginx, Backend(nginx) as backend:
        first = nginx.send("/")
        connection = backend.accept()
        with nginx.stopped():  # they have left before they are asked
            asks = [nginx.send("/") for _ in range(4)]
            for ask in asks:
                ask.leave()
        until("they have left", lambda: nginx.logged("prematurely closed") == 4, 60)
        backend.answer(connection)
        assert first.answer().status == 200
        with open(nginx.path("access.log")) as file:
            assert file.read().splitlines() == ["499 busy"] * 4 + ["200 granted"]


def test_N4_permits_come_from_other_workers(module):
    with nginx_with(module, QUEUE, HTTP, PROXY, log="info", workers=3) as nginx:
        with Backend(nginx) as backend:
            asks = [nginx.send("/")]
            connection = backend.accept()
            for n in range(1, 5):
                asks.append(nginx.send("/"))
                queued(nginx, n)
            for i in range(5):
                backend.answer(connection)
                if i < 4:
                    connection = backend.accept()
                    assert not backend.is_asked()
            assert [ask.answer().status for ask in asks] == [200] * 5


def test_N4_a_wait_that_is_over(module):
    rules = QUEUE.replace("wait: 1h", "wait: 300ms")
    with nginx_with(module, rules, HTTP, PROXY, log="info") as nginx, Backend(nginx) as backend:
        first = nginx.send("/")
        connection = backend.accept()
        late = nginx.get("/")
        assert late.status == 503 and late.headers["guard"] == "late backend", late.headers
        backend.answer(connection)
        assert first.answer().status == 200


def test_N4_a_worker_that_is_to_end_stays_for_its_waiters(module):
    with nginx_with(module, QUEUE, HTTP, PROXY, log="info") as nginx, Backend(nginx) as backend:
        first = nginx.send("/")
        connection = backend.accept()
        waits = nginx.send("/")
        queued(nginx, 1)
        nginx.reload()
        backend.answer(connection)
        assert first.answer().status == 200
        backend.answer(backend.accept())
        assert waits.answer().status == 200


PAGES = PROXY + """
location = /page.html { ssi on; ssi_types *; weir_check off; }
location = /mirrors { weir_check off; mirror /a; mirror /b; try_files /index.html =404; }"""
PAGE = "<!--#include virtual='/a' --><!--#include virtual='/b' --><!--#include virtual='/c' -->"


def test_N4_a_ban_after_a_wait_names_its_own_key(module):
    """Several that are refused at one moment, when a permit has come free for each."""
    rules = """version: 1
rules: [{ name: once, key: "{arg.k}", limit: 1/1h, ban: { refusals: 1/1h, for: 10m } }]
guards:
  - { name: backend, concurrency: { max: 3, queue: 9, wait: 1h } }
"""
    with nginx_with(module, rules, HTTP, PROXY, log="info") as nginx, Backend(nginx) as backend:
        asks = [nginx.send("/") for _ in range(3)]
        connections = [backend.accept() for _ in asks]
        keys = ["ann", "bob", "cleo"]
        for n in range(1, 7):
            asks.append(nginx.send("/?k=" + keys[(n - 1) // 2]))
            queued(nginx, n)
        with nginx.stopped():
            for connection in connections:
                backend.answer(connection)
        for _ in keys:
            backend.answer(backend.accept())
        assert sorted(ask.answer().status for ask in asks) == [200] * 6 + [429] * 3
        banned = re.findall('banning key "(.*?)"', nginx.log())
        assert sorted(banned) == keys, banned


def guard_of(nginx):
    return json.loads(nginx.get("/status").body)["guards"][0]


def test_N4_subrequests_wait_together(module):
    with nginx_with(module, QUEUE, HTTP, PAGES, log="info") as nginx, Backend(nginx) as backend:
        write(nginx.path("html/page.html"), PAGE)
        for n, page in enumerate(["/page.html", "/mirrors"], 1):
            first = nginx.send("/")
            connection = backend.accept()
            waits = nginx.send(page)
            queued(nginx, n)
            assert guard_of(nginx)["in_flight"] == 1 and not backend.is_asked()
            backend.answer(connection)
            assert first.answer().status == 200
            for _ in range(3 if n == 1 else 2):
                backend.answer(backend.accept())
            assert waits.answer().status == 200
            assert guard_of(nginx)["in_flight"] == 0


def test_N4_a_client_leaves_with_its_subrequests(module):
    with nginx_with(module, QUEUE, HTTP, PAGES, log="info") as nginx, Backend(nginx) as backend:
        write(nginx.path("html/page.html"), PAGE)
        first = nginx.send("/")
        connection = backend.accept()
        for n in range(1, 6):  # more than there are places
            waits = nginx.send("/page.html")
            queued(nginx, n)
            waits.leave()
            until("it has left", lambda: nginx.logged("prematurely closed") == n, 60)
        assert not backend.is_asked()
        backend.answer(connection)
        assert first.answer().status == 200
        assert guard_of(nginx)["entered"] == 1
        assert nginx.logged("exited on signal") == 0


def test_N4_subrequests_are_refused_together(module):
    rules = QUEUE.replace("queue: 4", "queue: 1").replace(", wait: 1h", "")
    with nginx_with(module, rules, HTTP, PAGES, log="info") as nginx, Backend(nginx) as backend:
        write(nginx.path("html/page.html"), PAGE)
        asks = [nginx.send("/")]
        connection = backend.accept()
        asks.append(nginx.send("/"))
        queued(nginx, 1)
        body = nginx.get("/page.html").body
        assert body.count(b"weir-full") == 3 and not backend.is_asked(), body
        backend.answer(connection)
        backend.answer(backend.accept())
        assert [ask.answer().status for ask in asks] == [200] * 2


def test_N4_units_of_a_zone_come_back_once(module):
    http = HTTP + "weir_req_zone $server_port zone=z:1m rate=sliding-log 3/1s;"
    server = PROXY.replace("/ {", "/ { weir_req zone=z;", 1) + """
        location /rest { weir_check off; weir_req zone=z; try_files /index.html =404; }"""
    with nginx_with(module, QUEUE, http, server, log="info") as nginx, Backend(nginx) as backend:
        first = nginx.send("/")
        connection = backend.accept()
        for n in range(2, 100, 2):
            waiting = [nginx.send("/") for _ in range(2)]
            queued(nginx, n)
            time.sleep(1.1)  # their window is over
            begun = time.monotonic()
            got = nginx.statuses(3, "/rest")
            for ask in waiting:
                ask.leave()
            until("they have left", lambda: nginx.logged("prematurely closed") == n, 60)
            got.append(nginx.get("/rest").status)
            if time.monotonic() - begun < 0.9:  # one window: else once more
                assert got == [200] * 3 + [429], got
                break
            time.sleep(1.1)
        backend.answer(connection)
        assert first.answer().status == 200


def test_N4_a_wait_for_a_turn_holds_no_permits(module):
    rules = """version: 1
rules: [{ name: slow, key: "{arg.k}", limit: gcra 1/1h burst 1 }]
guards:
  - { name: backend, concurrency: { max: 1 } }
"""
    server = """location / { weir_wait 90m; try_files /index.html =404; }
                location = /status { weir_check off; weir_status; }"""
    with nginx_with(module, rules, HTTP, server, log="info") as nginx:
        assert nginx.get("/?k=a").status == 200
        waits = nginx.send("/?k=a")
        until("it waits", lambda: nginx.logged("delaying request") == 1, 60)
        assert guard_of(nginx)["in_flight"] == 0
        assert nginx.statuses(2, "/") == [200] * 2
        waits.leave()
        until("it has left", lambda: nginx.logged("prematurely closed") == 1, 60)
    rules = rules.replace("gcra 1/1h", "gcra 1/1s").replace("max: 1", "max: 1, queue: 4, wait: 1h")
    server = server.replace("try_files /index.html =404",
                            "proxy_pass http://unix:{folder}/backend")
    with nginx_with(module, rules, HTTP, server, log="info") as nginx, Backend(nginx) as backend:
        asks = [nginx.send("/?k=a")]
        connection = backend.accept()
        for n, path in enumerate(["/?k=a", "/"], 1):
            asks.append(nginx.send(path))
            queued(nginx, n)
        backend.answer(connection)
        for _ in range(2):
            backend.answer(backend.accept())
        assert [ask.answer().status for ask in asks] == [200] * 3
        assert guard_of(nginx)["entered"] == 3


def test_N4_a_reload_in_one_process_leaves_no_rules(module):
    with tempfile.TemporaryDirectory() as folder:
        write(folder + "/rules.yaml", QUEUE)
        server = PROXY.replace("{folder}", folder)
        with Nginx(module, "weir_rules %s/rules.yaml;" % folder, server, log="info", workers=0,
                   main="master_process off;") as nginx, Backend(nginx, folder) as backend:
            first = nginx.send("/")
            connection = backend.accept()
            waits = nginx.send("/")
            queued(nginx, 1)
            nginx.configure(http="", server="")
            os.kill(nginx.pid(), signal.SIGHUP)
            until("it has begun", lambda: nginx.logged(": reconfiguring") == 1, 60)
            waits.leave()
            backend.answer(connection)
            assert first.answer().status == 200


if __name__ == "__main__":
    run_tests(globals())
