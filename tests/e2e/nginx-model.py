#!/usr/bin/env python3
"""nginx-model.py MODULE [TEST...] -- random configurations and requests, for nginx's own limit_req
and limit_conn and, by weir_compat, for the module: the same answers, status variables and lines in
the error log.  WEIR_LONG=1: more of them.

Two nginx run beside each other and are asked the same.  For limit_req the clock is told, in steps
of 500 ms: with these rates nginx's thousandths of a request are whole, so both are exact.

Left out is where they differ on purpose: several parts of a page that are limited, and limit_req
together with limit_conn."""
import contextlib
import os
import random
import re
import socket

from nginxing import Backend, Nginx, environment, program
from serving import Told, run_tests, until

ROUNDS = 60 if os.environ.get("WEIR_LONG") == "1" else 4
LOG = "log_format all '$uri $status $limit_req_status $limit_conn_status $request_uri';"
COMMON = """access_log {folder}/access.log all; real_ip_header X-Ip; set_real_ip_from 127.0.0.1;"""
KEYS = ["$binary_remote_addr", "$arg_a", "$arg_a$arg_b", "$uri", "x$arg_a-${arg_b}y", "$maybe",
        "$remote_addr$http_x_k", "$server_name", "$host"]
MAYBE = 'map $arg_a $maybe { default ""; a0 one; a1 $arg_b; }'
RATES = ["15r/m", "30r/m", "60r/m", "1r/s", "2r/s", "3r/s", "10r/s"]
ADDRESSES = ["192.0.2.1", "192.0.2.2", "2001:db8::1"]


def environment_of(clock, module, which):
    told = clock.env(program(module))
    first = environment(which).get("LD_PRELOAD") if which else None  # of a sanitizer
    if first:
        told["LD_PRELOAD"] = first + " " + told["LD_PRELOAD"]
    return told


@contextlib.contextmanager
def pair(module, clock, http, server):
    """With the module, and without."""
    with contextlib.ExitStack() as stack:
        both = []
        for which in [module, None]:
            nginx = stack.enter_context(Nginx(
                which, "", "", main="weir_compat on;" if which else "", log="info",
                env=environment_of(clock, module, which) if clock else None))
            nginx.configure(http=LOG + MAYBE + http,
                            server=(COMMON + server).replace("{folder}", nginx.folder))
            nginx.reload()
            both.append(nginx)
        yield both


def places(draw, limits, locations):
    """Some in each of the locations, some around them."""
    around, said = (limits() if draw.random() < 0.4 else "" for _ in range(2))
    for place, body in locations:
        said += "location %s { %s %s }\n" % (place, limits() if draw.random() < 0.6 else "", body)
    pages = ["503 429 /page", "503 429 =200 /page", "503 404 @named"]
    page = "error_page %s;" % draw.choice(pages) if draw.random() < 0.5 else ""
    return around, page + said


def some(draw, most, names):
    return draw.sample(names, draw.randint(1, min(most, len(names))))


def settings(draw, kind):
    """Of refusals."""
    said = ""
    if draw.random() < 0.2:
        said += " %s_dry_run %s;" % (kind, draw.choice(["on", "off"]))
    if draw.random() < 0.3:
        said += " %s_status %d;" % (kind, draw.choice([429, 499, 503, 599]))
    if draw.random() < 0.2:
        said += " %s_log_level %s;" % (kind, draw.choice(["info", "notice", "warn"]))
    return said


def random_uri(draw, paths):
    arguments = "&".join("%s=%s%d" % (name, name, draw.randrange(3)) for name in "ab"
                         if draw.random() < 0.6)
    return draw.choice(paths) + "?" + arguments


def lines(nginx):
    """About limits."""
    found = re.findall(r"\[(\w+)\] [^*]*\*\d+ ((?:limiting|delaying)[^\"]*by zone \"\w+\")",
                       nginx.log())
    return [" ".join(each).replace(", by", " by") for each in found]


def logged(nginx):
    with open(nginx.path("access.log")) as file:
        return sorted(file)


def same_answers(ours, theirs, seed):
    ours, theirs = ours.answer(), theirs.answer()
    assert (ours.status, ours.body) == (theirs.status, theirs.body), (seed, ours.body, theirs.body)


def same_logs(ours, theirs, seed):
    assert lines(ours) == lines(theirs), (seed, lines(ours), lines(theirs))
    until("all is logged", lambda: len(logged(ours)) == len(logged(theirs)))
    assert logged(ours) == logged(theirs), seed


# ------------------------------------------------------------------ limit_req ----

REQ_PLACES = [("/", ""), ("= /other.html", ""), ("/page", "return 200 page;"),
              ("@named", "try_files /index.html =404;"), ("/rewritten", "rewrite ^ / last;"),
              ("/tried", "try_files /nothing /other.html;"), ("= /sub", "return 200;"),
              ("/auth", "auth_request /sub; try_files /index.html =404;"),
              ("/mirrored", "mirror /sub; try_files /index.html =404;"),
              ("~ \\.gif$", "empty_gif;")]
REQ_PATHS = ["/", "/index.html", "/other.html", "/rewritten", "/tried", "/auth", "/mirrored",
             "/x.gif", "/missing"]


def req_config(draw):
    zones = ["z%d" % i for i in range(draw.randint(1, 4))]
    http = "".join("limit_req_zone %s zone=%s:1m rate=%s;" % (
        draw.choice(KEYS), zone, draw.choice(RATES)) for zone in zones)

    def limits():
        said = settings(draw, "limit_req")
        for zone in some(draw, 3, zones):
            burst = draw.choice(["", " burst=1", " burst=3", " burst=8"])
            said += "limit_req zone=%s%s%s;" % (
                zone, burst, draw.choice(["", " nodelay", " delay=1", " delay=2"]))
        return said

    around, server = places(draw, limits, REQ_PLACES)
    return http + around, server


def wake(nginx):
    """Its loop sleeps by the real clock; it looks at the told one after any event."""
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", nginx.port), timeout=60) as s:
            s.sendall(b"x\r\n\r\n")
            s.recv(1000)


def delays(nginx):
    return nginx.logged("delaying request, excess")


def settle(both, waiting, seed):
    """Those that are answered by one are answered by the other."""
    for nginx in both:
        wake(nginx)
    for ours, theirs in list(waiting):
        if ours.is_answered() or theirs.is_answered():
            until("both have answered (seed %d)" % seed,
                  lambda: ours.is_answered() and theirs.is_answered())
            same_answers(ours, theirs, seed)
            waiting.remove((ours, theirs))


def decides_as_limit_req(module, seed, n):
    draw, clock, waiting = random.Random(seed), Told(), []
    with pair(module, clock, *req_config(draw)) as both:
        for _ in range(n):
            clock.step(draw.choice([0, 0, 0, 500, 500, 1000, 5000]))
            uri, headers = random_uri(draw, REQ_PATHS), {"X_Ip": draw.choice(ADDRESSES)}
            before = [delays(nginx) for nginx in both]
            asks = [nginx.send(uri, **headers) for nginx in both]
            until("it is decided", lambda: all(
                ask.is_answered() or delays(nginx) > had
                for nginx, ask, had in zip(both, asks, before)))
            waiting.append(asks := tuple(asks))
            settle(both, waiting, seed)
        while waiting:
            clock.step(500)
            settle(both, waiting, seed)
        same_logs(*both, seed)


def test_N1_decides_as_limit_req(module):
    for seed in range(ROUNDS):
        decides_as_limit_req(module, seed, 60)


def test_N1_of_two_equal_waits_the_last_is_named(module):
    """As by nginx, where the wait is one by both."""
    http = """limit_req_zone $arg_a zone=one:1m rate=1r/s;
              limit_req_zone $arg_a zone=two:1m rate=2r/s;"""
    server = "location / { limit_req zone=one burst=3 delay=1; limit_req zone=two burst=3; }"
    clock = Told()
    with pair(module, clock, http + "limit_req_dry_run on;", server) as both:
        for _ in range(3):
            for nginx in both:
                nginx.get("/?a=1")
        assert 'warn delaying request, dry run, excess: 2.000 by zone "two"' in lines(both[0])
        same_logs(*both, 0)


# ----------------------------------------------------------------- limit_conn ----

PASS = "proxy_pass http://unix:{folder}/backend;"
CONN_PLACES = [("/", PASS), ("/a", PASS), ("/rewritten", "rewrite ^ /a last;"),
               ("/tried", "try_files /nothing @named;"), ("@named", PASS),
               ("/auth", "auth_request /sub;" + PASS), ("= /sub", "return 200;"),
               ("/page", "return 200 page;")]
CONN_PATHS = ["/", "/a", "/rewritten", "/tried", "/auth"]


def conn_config(draw):
    zones = ["c%d" % i for i in range(draw.randint(1, 4))]
    http = "".join("limit_conn_zone %s zone=%s:1m;" % (draw.choice(KEYS), zone) for zone in zones)

    def limits():
        return settings(draw, "limit_conn") + "".join(
            "limit_conn %s %d;" % (zone, draw.choice([1, 2, 3, 5]))
            for zone in some(draw, 3, zones))

    around, server = places(draw, limits, CONN_PLACES)
    return http + around, server


def end(draw, backends, held):
    """Of one request that is held by both: answered, or the client or the backend leaves."""
    asks, connections = held.pop(draw.randrange(len(held)))
    how = draw.choice(["answer", "leave", "reset"])
    for backend, ask, connection in zip(backends, asks, connections):
        if how == "leave":
            ask.leave()
            assert connection.recv(1) == b""  # nginx has noticed
        elif how == "answer":
            backend.answer(connection)
        connection.close()
        if how != "leave":
            ask.answer()


def decides_as_limit_conn(module, seed, n):
    draw, held = random.Random(seed), []
    with pair(module, None, *conn_config(draw)) as both, contextlib.ExitStack() as stack:
        backends = [stack.enter_context(Backend(nginx)) for nginx in both]
        for _ in range(n):
            if held and draw.random() < 0.45:
                end(draw, backends, held)
                continue
            uri, headers = random_uri(draw, CONN_PATHS), {"X_Ip": draw.choice(ADDRESSES)}
            asks = [nginx.send(uri, **headers) for nginx in both]
            until("it is decided", lambda: all(ask.is_answered() or backend.is_asked()
                                               for ask, backend in zip(asks, backends)))
            passed = [not ask.is_answered() for ask in asks]
            assert passed[0] == passed[1], (seed, uri)
            if passed[0]:
                held.append((asks, [backend.accept() for backend in backends]))
            else:
                same_answers(*asks, seed)
        while held:
            end(draw, backends, held)
        same_logs(*both, seed)


def test_N2_decides_as_limit_conn(module):
    for seed in range(ROUNDS):
        decides_as_limit_conn(module, seed, 60)


if __name__ == "__main__":
    run_tests(globals())
