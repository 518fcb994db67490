#!/usr/bin/env python3
"""nginx-req.py MODULE [TEST...] -- the rate of requests in a real nginx: weir_req, and limit_req by
its own name.  A rate of one an hour makes no test depend on how fast it runs."""
import json
import os
import subprocess
import time

from nginxing import Backend, Http2, Nginx, environment, nginx_with
from serving import run_tests, until

HOURLY = "weir_req_zone $arg_k zone=one:1m rate=1r/h;"
LIMITED = "location / { weir_req zone=one burst=4 nodelay; }"


def test_N1_a_burst_then_429(module):
    with Nginx(module, HOURLY, LIMITED) as nginx:
        assert nginx.statuses(7, "/?k=a") == [200] * 5 + [429] * 2
        assert nginx.statuses(1, "/?k=b") == [200]  # another key
        assert nginx.statuses(9, "/") == [200] * 9  # no key: no limit
        refused = nginx.get("/?k=a").headers
        wait = int(refused["retry-after"])
        assert 0 < wait <= 3600, wait
        assert refused["ratelimit"] == '"one";r=0;t=%d' % wait, refused
        assert refused["ratelimit-policy"] == '"one";q=1;w=3600', refused
        assert nginx.logged(r'\[error\].* limiting requests, excess: 4\.99\d by zone "one"|'
                            r'\[error\].* limiting requests, excess: 5\.000 by zone "one"') == 3


def test_N1_a_key_is_the_text_of_its_variables(module):
    """However it is put together: by nginx, or by the module if it is a few variables."""
    keys = {"two": "$arg_a$arg_b", "twice": "$arg_a$arg_a", "map": "$arg_b$mapped",
            "nine": "$arg_a$arg_b" + "$arg_c" * 7, "text": "$arg_a-$arg_b", "plain": "plain"}
    zones = "map $arg_a $mapped { volatile; default $arg_a; '' none; }" + "".join(
        "weir_req_zone %s zone=%s:1m rate=1r/h;" % (key, name) for name, key in keys.items())
    places = "".join("location /%s { weir_req zone=%s; try_files /index.html =404; }" %
                     (name, name) for name in keys)
    with Nginx(module, zones, places) as nginx:
        for name in ["two", "nine"]:
            for query, status in [("a=x&b=yz", 200), ("a=xy&b=z", 429), ("b=xyz", 429),
                                  ("a=xyz", 429), ("a=xyz&b=z", 200), ("", 200), ("", 200),
                                  ("a=" + "x" * 2000, 200), ("b=" + "x" * 2000, 429)]:
                assert nginx.get("/%s?%s" % (name, query)).status == status, (name, query)
        assert nginx.statuses(2, "/twice?a=x") == [200, 429]
        assert nginx.statuses(1, "/twice?a=xx") == [200]
        assert nginx.statuses(2, "/map?b=x") == [200, 429]
        assert nginx.statuses(1, "/map?a=none&b=x") == [429]
        assert nginx.statuses(2, "/text?a=x") == [200, 429]
        assert nginx.statuses(1, "/text?a=x-") == [200]
        assert nginx.statuses(2, "/plain?a=x") == [200, 429]
        assert nginx.statuses(1, "/plain") == [429]


def test_N1_several_limits_all_or_nothing(module):
    zones = """weir_req_zone $arg_a zone=a:1m rate=1r/h;
               weir_req_zone $arg_b zone=b:1m rate=1r/h;"""
    both = "location / { weir_req zone=a burst=9 nodelay; weir_req zone=b nodelay; }"
    with Nginx(module, zones, both) as nginx:
        assert nginx.statuses(30, "/?a=x&b=0") == [200] + [429] * 29
        # the refusals have taken nothing from `a`
        assert [nginx.get("/?a=x&b=%d" % i).status for i in range(1, 12)] == [200] * 9 + [429] * 2
        assert nginx.get("/?b=10").status == 200  # nor has the last one from `b`


def test_N1_a_request_ahead_of_its_turn_waits(module):
    zone = "weir_req_zone $arg_k zone=one:1m rate=10r/s;"
    with Nginx(module, zone, "location / { weir_req zone=one burst=5; }", workers=2) as nginx:
        begun = time.monotonic()
        asks = [nginx.send("/?k=a") for _ in range(6)]
        assert [ask.answer().status for ask in asks] == [200] * 6
        assert time.monotonic() - begun >= 0.5


def test_N1_a_client_that_keeps_to_its_turns_is_not_refused(module):
    """Were it let in early, by nginx's timers, it would also ask again too early."""
    zone = "weir_req_zone $arg_k zone=one:1m rate=200r/s;"
    with Nginx(module, zone, "location / { weir_req zone=one burst=1; }") as nginx:
        assert nginx.statuses(150, "/?k=a") == [200] * 150


def test_N1_delay_lets_some_through_at_once(module):
    where = """location / { weir_req zone=one burst=5 delay=3; add_header Status $weir_req_status; }
    """
    with Nginx(module, HOURLY, where) as nginx:
        for _ in range(4):
            assert nginx.get("/?k=a").headers["status"] == "PASSED"
        waiting = [nginx.send("/?k=a") for _ in range(2)]
        until("they wait", lambda: nginx.logged("delaying request") == 2, 60)
        assert nginx.get("/?k=a").status == 429
        assert not any(ask.is_answered() for ask in waiting)
        for ask in waiting:
            ask.leave()


def test_N1_a_client_that_leaves_gives_back(module):
    with Nginx(module, HOURLY, "location / { weir_req zone=one burst=1; }", log="info") as nginx:
        assert nginx.get("/?k=a").status == 200
        for n in range(1, 20):
            waits = nginx.send("/?k=a")
            until("it waits", lambda: nginx.logged("delaying request") == n, 60)
            assert nginx.get("/?k=a").status == 429
            waits.leave()
            until("it has left", lambda: nginx.logged("prematurely closed") == n, 60)


def test_N1_delayed_requests_of_a_plain_rate_come_in_order(module):
    zone = "weir_req_zone $arg_k zone=one:1m rate=50r/s;"
    with Nginx(module, zone, "location / { weir_req zone=one burst=20; }") as nginx:
        asks = [nginx.send("/?k=a") for _ in range(20)]
        for ask in asks:
            assert ask.answer().status == 200
        assert nginx.logged("limiting requests") == 0


def test_N1_once_for_a_request_and_its_redirects(module):
    where = """weir_req zone=one burst=1 nodelay;
               location /missing { error_page 404 /other.html; }
               location /tries { try_files /nothing /index.html; }
               location /named { error_page 404 = @named; }
               location @named { try_files /other.html =404; }
               location /parts { ssi on; ssi_types text/plain; alias {folder}/html/parts; }"""
    with nginx_with(module, None, HOURLY, where) as nginx:
        with open(nginx.path("html/parts"), "w") as file:
            file.write("<!--# include virtual='/index.html' -->"
                       "<!--# include virtual='/other.html' -->")
        for path, status, body in [("/missing", 404, b"other.html"), ("/tries", 200, b"index.html"),
                                   ("/named", 200, b"other.html"),
                                   ("/parts", 200, b"other.html")]:
            answers = [nginx.get("%s?k=%s" % (path, path)) for _ in range(3)]
            assert [answer.status for answer in answers] == [status, status, 429], path
            assert body in answers[0].body, (path, answers[0].body)


def test_N1_dry_run_status_and_levels(module):
    where = """add_header Status $weir_req_status always;
               location / { weir_req zone=one; weir_req_dry_run on; }
               location /real { weir_req zone=one; weir_req_status 418; weir_req_log_level info;
                                error_page 418 /index.html; }
               location /free { weir_req_dry_run on; }"""
    with Nginx(module, HOURLY, where, log="info") as nginx:
        said = [nginx.get("/?k=a") for _ in range(2)]
        assert [answer.status for answer in said] == [200, 200]
        assert [answer.headers["status"] for answer in said] == ["PASSED", "REJECTED_DRY_RUN"]
        refused = nginx.get("/real?k=a")
        assert refused.status == 418 and refused.body == b"index.html", refused.body
        assert refused.headers["status"] == "REJECTED" and "retry-after" in refused.headers
        assert "status" not in nginx.get("/free?k=a").headers
        assert nginx.logged(r"\[error\].*limiting requests, dry run, ") == 1
        assert nginx.logged(r"\[info\].*limiting requests, excess") == 1


def test_N1_realip_comes_first(module):
    where = """location / { set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;
                            weir_req zone=ip; }"""
    zone = "weir_req_zone $binary_remote_addr zone=ip:1m rate=1r/h;"
    with Nginx(module, zone, where) as nginx:
        for i in range(1, 20):
            address = "192.0.2.%d" % i
            assert nginx.get("/", X_Forwarded_For=address).status == 200
            assert nginx.get("/", X_Forwarded_For=address).status == 429


def http2(port, path, n):
    """Asks n times at once, on streams of one connection; their statuses in this order."""
    with Http2(port) as connection:
        for i in range(n):
            connection.ask(2 * i + 1, path)
        return [status for _, status in sorted(connection.status() for _ in range(n))]


def test_N1_streams_of_http2_are_requests(module):
    with Nginx(module, HOURLY, LIMITED, listen=" http2") as nginx:
        assert http2(nginx.port, b"/?k=a", 8) == [200] * 5 + [429] * 3


def test_N1_streams_of_http2_wait_each_for_itself(module):
    zone = "weir_req_zone $arg_k zone=one:1m rate=50r/s;"
    where = "location / { weir_req zone=one burst=20; }"
    with Nginx(module, zone, where, listen=" http2") as nginx:
        assert http2(nginx.port, b"/?k=a", 20) == [200] * 20
        assert nginx.logged("delaying request") > 0


def test_N1_bodies_of_http2_come_while_their_streams_wait(module):
    """Before, in the middle of and after the wait, and not at all."""
    zone = "weir_req_zone $arg_k zone=one:1m rate=2r/s;"
    where = """location / { weir_req zone=one burst=20; proxy_pass http://unix:{folder}/backend;
                            client_body_in_single_buffer on; proxy_set_header Body $request_body; }
            """
    with nginx_with(module, None, zone, where, listen=" http2") as nginx, Backend(nginx) as backend:
        with Http2(nginx.port) as connection:
            with nginx.stopped():
                for stream in (1, 3, 5, 7):
                    connection.ask(stream, b"/?k=a", method=b"\x83", ends=False)
                connection.send(0, 1, 3, b"whole")
                connection.send(0, 0, 5, b"in two")
            until("they wait", lambda: nginx.logged("delaying request") == 3, 60)
            connection.leave(7)
            connection.send(0, 1, 1, b"first")
            connection.send(0, 1, 5, b" pieces")
            for stream, body in [(1, b"first"), (3, b"whole"), (5, b"in two pieces")]:
                asked = backend.accept()
                assert b"\r\nBody: %s\r\n" % body in backend.head, backend.head
                backend.answer(asked)
                assert connection.status() == (stream, 200)
        assert not backend.is_asked()


def test_N1_the_status_page_counts_what_zones_answer(module):
    zones = HOURLY + """weir_req_zone $arg_d zone=dry:1m rate=1r/h;
                        weir_req_zone $arg_f zone=fast:1m rate=100r/s;
                        weir_conn_zone $arg_k zone=conns:1m;"""
    where = LIMITED + """location /dry { weir_req zone=dry burst=1; weir_req_dry_run on;
                                         weir_conn conns 9; alias {folder}/html/; }
                         location /both { weir_req zone=fast burst=9; weir_req zone=one;
                                          alias {folder}/html/; }
                         location = /status { weir_status; }"""
    with nginx_with(module, None, zones, where, workers=2) as nginx:
        nginx.statuses(7, "/?k=a")
        nginx.reload()
        nginx.statuses(3, "/dry/?d=a&k=b")
        nginx.statuses(2, "/both/?f=a&k=c")  # `one` rejects, and `fast` is not asked
        for ask in [nginx.send("/both/?f=b") for _ in range(3)]:
            assert ask.answer().status == 200
        found = {zone.pop("name"): zone for zone in json.loads(nginx.get("/status").body)["zones"]}
        assert counts(found["one"]) == ("req", 6, 0, 3, 0, 0), found
        assert counts(found["dry"]) == ("req", 1, 0, 0, 1, 1), found
        assert counts(found["conns"]) == ("conn", 3, 0, 0, 0, 0), found
        kind, passed, delayed, *rest = counts(found["fast"])
        assert kind == "req" and passed + delayed == 4 and rest == [0, 0, 0], found
        line = b'weir_zone_requests_total{zone="one",kind="req",outcome="rejected"} 3\n'
        assert line in nginx.get("/status?format=prometheus").body


def test_N2_the_status_page_counts_connections_by_zone(module):
    """What a zone is made of is not shown."""
    zones = "weir_conn_zone $arg_k zone=conns:1m; weir_req_zone $arg_k zone=one:1m rate=9r/s;"
    where = """location /held { weir_conn conns 9; proxy_pass http://unix:{folder}/backend; }
               location = /status { weir_status; }"""
    with nginx_with(module, None, zones, where) as nginx, Backend(nginx) as backend:
        asks = [nginx.send("/held?k=%d" % i) for i in range(5)]
        connections = [backend.accept() for _ in asks]
        said = json.loads(nginx.get("/status").body)
        assert [zone.get("in_flight") for zone in said["zones"]] == [5, None], said
        assert said["guards"] == [], said
        metrics = nginx.get("/status?format=prometheus").body
        assert b'\nweir_zone_in_flight{zone="conns",kind="conn"} 5\n' in metrics, metrics
        assert b"weir_guard_in_flight{" not in metrics, metrics
        for connection in connections:
            backend.answer(connection)
        assert [ask.answer().status for ask in asks] == [200] * 5
        assert json.loads(nginx.get("/status").body)["zones"][0]["in_flight"] == 0


def counts(zone):
    return tuple(zone[name] for name in ["kind", "passed", "delayed", "rejected",
                                         "delayed_dry_run", "rejected_dry_run"])


def test_N1_any_rate_and_algorithm(module):
    zones = """weir_req_zone $arg_k zone=day:1m rate=2r/d;
               weir_req_zone $arg_k zone=bare:1m rate=1;
               weir_req_zone $arg_k zone=log:1m rate=sliding-log 3/1h;
               weir_req_zone $arg_k zone=bucket:1m rate=token-bucket 1/h burst 6;
               weir_req_zone $arg_k zone=month:1m rate=4/month;"""
    where = "".join("location = /%s { weir_req zone=%s; alias /etc/passwd; }" % (name, name)
                    for name in ["day", "bare", "log", "bucket", "month"])
    with Nginx(module, zones, where) as nginx:
        assert nginx.statuses(2, "/day?k=a") == [200, 429]
        assert nginx.statuses(5, "/log?k=a") == [200] * 3 + [429] * 2
        assert nginx.statuses(8, "/bucket?k=a") == [200] * 6 + [429] * 2
        assert nginx.statuses(6, "/month?k=a") == [200] * 4 + [429] * 2


def test_N1_one_zone_with_other_bursts(module):
    where = """location / { weir_req zone=one burst=9 nodelay; }
               location = /other.html { weir_req zone=one burst=3 nodelay; }"""
    with Nginx(module, HOURLY, where) as nginx:
        assert nginx.statuses(6, "/other.html?k=a") == [200] * 4 + [429] * 2
        assert nginx.statuses(8, "/?k=a") == [200] * 6 + [429] * 2


def test_N1_mistakes_are_named(module):
    with Nginx(module, HOURLY, LIMITED) as nginx:
        for http, server, words in [
            ("weir_req_zone $arg_k zone=one:1m rate=1r/x;", "", 'invalid rate "1r/x"'),
            ("weir_req_zone $arg_k zone=one:1m rate=0r/s;", "", 'invalid rate "0r/s"'),
            ("weir_req_zone $arg_k zone=one:1m rate=5r;", "", 'invalid rate "5r":'),
            ("weir_req_zone $arg_k zone=one:1m rate=fast;", "", 'invalid rate "fast":'),
            ("weir_req_zone $arg_k zone=one:1m rate=;", "", "needs rate=LIMIT"),
            ("weir_conn_zone $arg_k zone=one:1m;", "weir_req zone=one;",
             'zone "one": it is a zone for weir_conn, in'),
            ("weir_req_zone $arg_k zone=one:1k rate=1r/s;", "", "zone that is too small"),
            ("weir_req_zone $arg_k zone=one rate=1r/s;", "", "needs zone=NAME:SIZE"),
            ("weir_req_zone $arg_k zone=one:1m;", "", "needs rate=LIMIT"),
            ("weir_req_zone $arg_k zone=one:1m brate=1;", "", "needs rate=LIMIT"),
            (HOURLY + HOURLY, "", 'zone "one" is already bound to key "$arg_k"'),
            (HOURLY, "weir_req zone=two;", 'zone "two": there is no such zone, in'),
            (HOURLY, "weir_req zone=one burst=0;", 'invalid parameter "burst=0"'),
            (HOURLY, "weir_req zone=one brust=1;",
             'invalid parameter "brust=1": it takes zone=NAME burst=N delay=N nodelay, N from 1'),
            (HOURLY, "weir_req burst=1;", "needs zone=NAME"),
            ("weir_req_zone $arg_k zone=one:1m zone=two:1m rate=1r/s;", "",
             '"zone=one:1m" and "zone=two:1m": only one'),
            ("weir_req_zone $arg_k rate=1r/s zone=one:1m rate=2r/s;", "",
             '"rate=1r/s" and "rate=2r/s": only one'),
            (HOURLY, "weir_req zone=one zone=two;", '"zone=one" and "zone=two": only one'),
            (HOURLY, "weir_req zone=one burst=1 burst=2;", '"burst=1" and "burst=2": only one'),
            (HOURLY, "weir_req zone=one nodelay delay=2;", '"nodelay" and "delay=2": only one'),
            (HOURLY, "weir_req zone=one nodelay nodelay;", '"nodelay" and "nodelay": only one'),
            (HOURLY, "location /s { weir_status; weir_status; }", '"weir_status" directive is dup'),
            (HOURLY, "weir_req zone=one; weir_req zone=one;", '"weir_req" directive is duplicate'),
            (HOURLY, "weir_req_status 200;", "value must be between 400 and 599"),
            ("weir_req_zone $arg_k zone=w:1m rate=fixed-window 1/h;", "weir_req zone=w burst=1;",
             "burst needs a zone with a plain rate"),
        ]:
            nginx.configure(http=http, server=server)
            code, said = nginx.test()
            assert code == 1 and words in said, (http, server, said)
        nginx.configure(http=HOURLY, server=LIMITED, main="http {} weir_compat on;")
        assert "must stand before" in nginx.test()[1]
        nginx.configure(main="weir_compat on; weir_compat off;")
        assert '"weir_compat" directive is duplicate' in nginx.test()[1]
        nginx.configure(http=HOURLY.replace("weir_", "limit_"), main="weir_compat on;",
                        server="limit_req zone=one burst=1 burst=2;")
        assert '"burst=1" and "burst=2": only one' in nginx.test()[1]


def test_N1_by_the_names_of_limit_req(module):
    http = "limit_req_zone $arg_k zone=one:1m rate=1r/m;"
    server = """add_header Status $limit_req_status always;
                location / { limit_req zone=one burst=1 nodelay; limit_req_log_level warn; }"""
    with Nginx(module, http, server, main="weir_compat on;") as nginx:
        assert os.path.exists(nginx.path("nginx.weir"))  # so it is Weir that limits
        answers = [nginx.get("/?k=a") for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 503]
        assert [answer.headers["status"] for answer in answers] == ["PASSED", "PASSED", "REJECTED"]
        assert nginx.logged(r"\[warn\].*limiting requests") == 1
    with Nginx(module, http, server) as nginx:  # without the switch they are nginx's own
        assert nginx.statuses(3, "/?k=a") == [200, 200, 503]
        assert not os.path.exists(nginx.path("nginx.weir"))


def test_N1_a_test_of_the_configuration_touches_nothing(module):
    with Nginx(module, "", "") as nginx:
        nginx.configure(http=HOURLY, server=LIMITED)
        code, said = nginx.test()
        assert code == 0, said
        subprocess.run(nginx.command("-s", "reopen"), env=environment(module), check=True)
        assert not os.path.exists(nginx.path("nginx.weir"))


if __name__ == "__main__":
    run_tests(globals())
