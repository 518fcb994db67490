#!/usr/bin/env python3
"""import-nginx.py WEIR [TEST...] -- weir import nginx: the rules decide as nginx does.  A real
nginx, with its own limit_req and a clock that is told, decides a random stream of requests; a
replay of its log by the imported rules decides each of them the same way.

Steps of 250 ms make nginx's thousandths of a request whole, so both are exact.  In a dry run nginx
counts as ever and nobody waits."""
import json
import os
import random
import subprocess
import tempfile

from nginxing import Backend, Nginx, nginx_with
from serving import Told, run_tests, until, write

FIELDS = {"time": "$msec", "remote_addr": "$remote_addr", "request_uri": "$request_uri",
          "method": "$request_method", "host": "$host", "server": "$server_name",
          "header.x-api-key": "$http_x_api_key", "arg.a": "$arg_a", "arg.b": "$arg_b",
          "decided": "$limit_req_status"}
LOG = "log_format all escape=json '{%s}';" % ",".join('"%s":"%s"' % each
                                                     for each in FIELDS.items())
LOGGED = """access_log {folder}/access.log all; real_ip_header X-Ip; set_real_ip_from 127.0.0.1;
"""
EMPTY = "version: 1\n"


def told_nginx(weir, clock, http, server):
    nginx = Nginx(None, "", "", env=clock.env(weir))
    try:
        nginx.configure(http=LOG + http, server=LOGGED.format(folder=nginx.folder) + server)
        nginx.reload()
    except BaseException as problem:
        nginx.__exit__(type(problem), problem, None)
        raise
    return nginx


def imported(weir, path, code=0):
    done = subprocess.run([weir, "import", "nginx", path], capture_output=True, text=True)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def import_text(weir, text, code=0):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "nginx.conf")
        write(path, text)
        rules, said = imported(weir, path, code)
        return rules, said.replace(folder + "/", "")


def decide(weir, rules, log, folder):
    """For each line of the log, in its order: would the rules refuse it?"""
    names = {}
    for name, text in [("rules", rules), ("empty", EMPTY), ("log", log)]:
        names[name] = os.path.join(folder, name + ".replay")
        write(names[name], text)
    differ = os.path.join(folder, "differ")
    subprocess.run([weir, "replay", "--rules", names["rules"], "--compare", names["empty"],
                    "--differ", differ, "--enforce", "--wait-max", "1h", names["log"]],
                   check=True, capture_output=True)
    with open(differ) as file:
        refused = {json.loads(line)["line"] for line in file}
    return [n + 1 in refused for n in range(len(log.splitlines()))]


def stream(seed, n):
    """Requests: milliseconds since the one before, path, headers."""
    draw = random.Random(seed)
    for _ in range(n):
        step = draw.choice([0, 0, 0, 250, 500, 1000, 4000])
        path = draw.choice(["/", "/api/x", "/api/v2/x", "/api/free", "/pic.png", "/other.html"])
        arguments = "&".join("%s=%s%d" % (name, name, draw.randrange(3)) for name in "ab"
                             if draw.random() < 0.5)
        headers = {"X-Ip": draw.choice(["192.0.2.1", "192.0.2.2", "10.9.9.9", "10.1.0.7"])}
        if draw.random() < 0.3:
            headers["X-Api-Key"] = draw.choice(["ann", "bob"])
        yield step, path + ("?" + arguments if arguments else ""), headers


def compare(weir, http, server, n=500, seed=1, code=0):
    """nginx's decisions and the rules'."""
    clock = Told()
    with told_nginx(weir, clock, http, server) as nginx:
        for step, path, headers in stream(seed, n):
            clock.step(step)
            nginx.get(path, **headers)
        log = until("all is logged", lambda: read_log(nginx, n))
        rules, _ = imported(weir, nginx.path("nginx.conf"), code)
        ours = decide(weir, rules, log, nginx.folder)
    theirs = [json.loads(line)["decided"].startswith("REJECTED") for line in log.splitlines()]
    wrong = [(line, mine) for line, mine, other in zip(log.splitlines(), ours, theirs)
             if mine != other]
    assert not wrong, (len(wrong), wrong[0], rules)
    assert 0 < sum(theirs) < n, sum(theirs)


def read_log(nginx, n):
    with open(nginx.path("access.log")) as file:
        text = file.read()
    return text if text.count("\n") == n else None


def test_N1_one_limit_decides_as_nginx(weir):
    for seed, rest in enumerate(["", "burst=3 nodelay", "burst=3", "burst=5 delay=2"]):
        compare(weir, "limit_req_zone $binary_remote_addr zone=one:1m rate=7r/m;",
                "location / { limit_req zone=one %s; limit_req_dry_run on; }" % rest, 150, seed)


def test_N1_rejections_decide_as_nginx(weir):
    """Not a dry run: what is rejected never reaches its place."""
    compare(weir, "limit_req_zone $binary_remote_addr zone=one:1m rate=30r/m;",
            "location / { limit_req zone=one burst=2 nodelay; }", 200)


def test_N1_maps_and_geos_decide_as_nginx(weir):
    http = """geo $free { default 0; 10.0.0.0/8 1; 10.1.0.0/16 0; }
        map $free $who { 0 $binary_remote_addr; 1 ""; }
        map $http_x_api_key $user { default $http_x_api_key; "" $binary_remote_addr; }
        limit_req_zone $who zone=who:1m rate=7r/m;
        limit_req_zone $user zone=user:1m rate=1r/s;
        limit_req_zone $arg_a$arg_b zone=args:1m rate=30r/m;"""
    server = """location / { limit_req zone=who burst=4 nodelay; }
        location /api/ { limit_req zone=user burst=2 nodelay; limit_req zone=args nodelay; }"""
    compare(weir, http, server, 500, code=1)  # the names of $arg_ ignore case


def test_N1_places_decide_as_nginx(weir):
    http = """limit_req_zone $binary_remote_addr zone=all:1m rate=7r/m;
        limit_req_zone $binary_remote_addr zone=api:1m rate=30r/m;
        limit_req_zone $uri zone=pics:1m rate=1r/s;
        limit_req zone=all burst=2 nodelay;"""
    server = """location /api/ { limit_req zone=api burst=1 nodelay; }
        location = /api/free { return 204; }
        location ~ \\.(jpg|png)$ { limit_req zone=pics nodelay; }"""
    compare(weir, http, server, 500)


def test_N2_connections_decide_as_nginx(weir):
    """nginx's own limit_conn, and the module with the imported guards: the same are refused."""
    module = os.path.join(os.path.dirname(os.path.abspath(weir)), "nginx",
                          "ngx_http_weir_module.so")
    zones = "limit_conn_zone $arg_a zone=a:1m; limit_conn_zone $server_name zone=all:1m;"
    where = """server_name test; location / { limit_conn a 2; limit_conn all 3;
                                              proxy_pass http://unix:{folder}/backend; }"""
    asked = ["/?a=1", "/?a=1", "/?a=1", "/?a=2", "/?a=3", "/", "/?a=1"]
    with nginx_with(None, http=zones, server=where) as nginx, Backend(nginx) as backend:
        theirs = hold(nginx, backend, asked)
        rules, _ = imported(weir, nginx.path("nginx.conf"), 1)  # $arg_a is $arg_A
    http = "weir_rules {folder}/rules.yaml;"
    where = "server_name test; location / { proxy_pass http://unix:{folder}/backend; }"
    with nginx_with(module, rules, server=where) as nginx, Backend(nginx) as backend:
        nginx.configure(http=http.replace("{folder}", nginx.folder))
        nginx.reload()
        assert hold(nginx, backend, asked) == theirs
    assert theirs == [True, True, False, True, False, False, False], theirs


def hold(nginx, backend, paths):
    """Of requests that are all held: which come through to the backend?"""
    through, held = [], []
    for path in paths:
        ask = nginx.send(path)
        until("it is decided", lambda: ask.is_answered() or backend.is_asked())
        through.append(not ask.is_answered())
        if through[-1]:
            held.append((ask, backend.accept()))
        else:
            assert ask.answer().status >= 429
    for ask, connection in held:
        backend.answer(connection)
        assert ask.answer().status == 200
    return through


def test_N1_what_differs_is_named(weir):
    text = """events {}
http {
    map $http_x_plan $who { default $binary_remote_addr; gold ""; }
    limit_req_zone $who zone=one:1m rate=1r/s;
    limit_req_zone $jwt_claim_sub zone=sub:1m rate=1r/s;
    server {
        location /a { limit_req zone=one burst=5; }
        location /b { limit_req zone=one burst=9; }
        location ~ ^/c[0-9]+$ { limit_req zone=one; }
        location /d { limit_req zone=sub; limit_req_status 444; }
        location /e { limit_req zone=none; }
        location /f { rewrite ^ /a last; }
    }
}
"""
    rules, said = import_text(weir, text, 1)
    for line, what in [(3, "upper and lower case"), (8, "counts one and one.2 together"),
                       (9, "as if the location were not there"), (11, "no zone none"),
                       (12, "rewritten")]:
        assert any(each.startswith("nginx.conf:%d: differs: " % line) and what in each
                   for each in said.splitlines()), (line, what, said)
        assert what in rules
    assert "nginx.conf:10: limit_req_status 444" in said
    assert "weir_attribute jwt_claim_sub $jwt_claim_sub;" in said


def test_N1_a_key_that_cannot_be_read_is_named(weir):
    """It must not become a limit of all clients together."""
    for key in ["$" + "a" * 60, "$http_x" + "_y" * 30, "${open", "$remote_addr$"]:
        text = """http { limit_req_zone %s zone=one:1m rate=1r/s;
server { location / { limit_req zone=one; } } }""" % key
        rules, said = import_text(weir, text, 1)
        assert "differs: rules cannot express the key %s" % key in said, said
        assert "limit:" not in rules, rules


ONE = "zone=a:1m rate=1r/s"


def test_N1_of_two_options_the_last_counts(weir):
    """In nginx; Weir's own directives refuse such a line."""
    def rules_of(zone, use):
        text = "http { limit_req_zone $uri %s; server { listen 80; limit_req %s; } }" % (zone, use)
        return [line for line in import_text(weir, text)[0].splitlines() if "#" not in line]

    for twice, once in [("zone=a burst=2 burst=7", "zone=a burst=7"),
                        ("zone=a nodelay delay=3", "zone=a delay=3"),
                        ("burst=7 zone=x zone=a", "zone=a burst=7"),
                        ("zone=a delay=3 nodelay", "zone=a nodelay")]:
        assert rules_of(ONE, twice) == rules_of(ONE, once), twice
    assert rules_of("zone=x:1m " + ONE, "zone=a") == rules_of(ONE, "zone=a")


def test_N1_names_of_several_servers(weir):
    """A name with a star is before a regular expression, and the first of those before others."""
    text = """events {}
http {
    limit_req_zone $remote_addr zone=one:1m rate=1r/s;
    server { listen 80; server_name %s; limit_req zone=one; }
    server { listen 80; server_name %s; }
}
"""
    for mine, other, lost in [("*.example.org", "~^www\\.", True), ("~^api\\.", "~^api\\.v1", True),
                              ("www.*", "~^www\\.", True),
                              ("*.a.org", "~^www\\.a\\.org$", True),
                              ("*.org", "~\\.a\\.org$", True), ("~^www", "www.a.org", False),
                              ("*.a.org", "~\\.b\\.org$", False),
                              ("~^api\\.", "*.org", False), ("~^api\\.", "~^www\\.", False)]:
        _, said = import_text(weir, text % (mine, other), int(lost))
        assert ("the name " in said and "is another server's too" in said) == lost, (mine, said)
    default = text.replace("server_name %s; }", "server_name c; } server { listen 80; %s }")
    for nameless in ['"" a', '""']:
        limited = "server_name %s; limit_req zone=one;" % nameless
        _, said = import_text(weir, default % ("c", limited), 1)
        assert "nginx.conf:5: differs: rules cannot tell requests without a Host" in said, said
    import_text(weir, text % ('"" a', "b"))  # the default one has them anyway
    import_text(weir, text % ("a", '""'))


def test_N1_a_place_within_one_without_regular_expressions(weir):
    """/s/p/a.php is the regular expression's, /s/a.php is not."""
    text = """events {}
http {
    limit_req_zone $remote_addr zone=one:1m rate=1r/s;
    server {
        location ^~ /s/ { }
        location %s { }
        location ~ \\.php$ { limit_req zone=one; }
    }
}
"""
    for inner, lost in [("/s/p/", True), ("^~ /s/p/", False), ("= /s/p/", False), ("/p/", False)]:
        _, said = import_text(weir, text % inner, int(lost))
        assert ("nginx.conf:6: differs: requests of /s/p/" in said) == lost, (inner, said)


def test_N1_a_request_without_a_key_is_asked_elsewhere(weir):
    """nginx goes on from / to /index.html, and asks there what it could not ask before."""
    text = """http { limit_req_zone %s zone=one:1m rate=1r/s;
limit_req_zone $remote_addr zone=two:1m rate=1r/s;
server { listen 80; server_name a; location = / { limit_req zone=one; } limit_req zone=%s; } }"""
    for key, lost in [("$cookie_c", True), ("$cookie_c$uri", False), ("-$cookie_c", False),
                      ("$server_name", False), ("$remote_addr", False), ("$remote_user", True)]:
        for zone in ["one", "two"]:
            code = int((lost and zone == "two") or "cookie" in key)
            _, said = import_text(weir, text % (key, zone), code)
            told = "nginx.conf:3: differs: nginx may limit the index index.html" in said
            assert told == (lost and zone == "two"), (key, zone, said)


def test_N1_slashes_that_nginx_keeps(weir):
    text = """http { limit_req_zone $uri zone=one:1m rate=1r/s;
server { listen 80; limit_req zone=one;
merge_slashes %s; } }"""
    import_text(weir, text % "on")
    _, said = import_text(weir, text % "off", 1)
    assert "nginx.conf:3: differs: rules take // for /" in said, said


def test_N1_places_for_nginx_itself(weir):
    """X-Accel-Redirect, a part of a page or an error lead there, and no URI."""
    for line, what in [("location /files/ { internal; limit_req zone=one; }", "only nginx itself"),
                       ("location @b { limit_req zone=one; }", "only nginx itself"),
                       ("location / { add_after_body /x; } location /x { limit_req zone=one; }",
                        "this add_after_body leads to"),
                       ("ssi on; location /x { limit_req zone=one; }", "this ssi leads to")]:
        text = """http { limit_req_zone $remote_addr zone=one:1m rate=1r/s;
server { listen 80; %s } }"""
        _, said = import_text(weir, text % line, 1)
        assert "nginx.conf:2: differs: " in said and what in said, (line, said)
        import_text(weir, text % line.replace("limit_req ", "#").replace("zone=one;", "\n"))


def test_N1_a_file_without_limits(weir):
    """Nothing is wrong with any of its lines."""
    rules, said = import_text(weir, "events {}\nhttp { server { location / { } } }\n")
    assert said == "nginx.conf: no limit_req and no limit_conn: there is nothing to import\n", said
    assert "version: 1\n" in rules


def test_N1_what_is_no_configuration_is_refused(weir):
    for text, why in [("http {", "expected }"), ("}", "a } without its {"), ("a", "expected ;"),
                      ("events {}", "no http block"), ('a "b', "a quote is not closed"),
                      ("a \0;", "NUL byte"), ("a {" * 100, "too deep"),
                      ("include nginx.conf;", "includes itself"),
                      ("include nowhere.conf;", "No such file")]:
        _, said = import_text(weir, text, 2)
        assert why in said, (text, said)


def test_N1_included_files(weir):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "conf.d"))
        write(os.path.join(folder, "nginx.conf"), "http { include conf.d/*.conf; include none/*; }")
        write(os.path.join(folder, "conf.d/a.conf"),
              "limit_req_zone $remote_addr zone=one:1m rate=2r/s;")
        write(os.path.join(folder, "conf.d/b.conf"), "\n\nserver { limit_req zone=one; }")
        rules, said = imported(weir, os.path.join(folder, "nginx.conf"))
    assert "limit: leaky-bucket 2/1s burst 1 queue 0" in rules, rules
    assert "conf.d/b.conf:3: limit_req zone=one" in rules, rules
    assert said == ""


if __name__ == "__main__":
    run_tests(globals())
