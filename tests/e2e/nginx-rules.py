#!/usr/bin/env python3
"""nginx-rules.py MODULE [TEST...] -- a rule file inside a real nginx: attributes, answers, bans and
lists, reloads, guards that learn from upstreams."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from clients.world import ROOT, snippet
from nginxing import Ask, Backend, environment, nginx_with
from serving import free_port, run_tests, until, write

RULES = """version: 1
rules:
  - name: login
    match: { uri: /login, method: GET }
    key: "{arg.user}"
    limit: 2/1h
    ban: { refusals: 3/1h, for: 10m }
  - name: per-client
    key: "{header.x-client}"
    limit: [5/1h, "sliding-log 100/1d"]
  - name: tenants
    key: "{tenant}"
    limit: 3/1h
lists:
  deny: { ip: [203.0.113.0/24], cookie.bad: ["yes"] }
  allow: { header.x-pass: [secret] }
"""
HTTP = "weir_rules rules.yaml; weir_attribute tenant $arg_tenant;"
SERVER = """set_real_ip_from 127.0.0.1; real_ip_header X-Real-IP;
            location / { try_files /index.html =404; }
            location /free { weir_check off; try_files /index.html =404; }
            location /quiet { weir_headers off; try_files /index.html =404; }"""


def test_N4_a_limit_by_header(module):
    with nginx_with(module, RULES, HTTP, SERVER, workers=2) as nginx:
        for left in (4, 3, 2, 1, 0):
            answer = nginx.get("/", X_Client="ann")
            assert answer.status == 200, answer.headers
            assert answer.headers["ratelimit"].startswith('"per-client";r=%d;t=' % left)
            assert answer.headers["ratelimit-policy"] == '"per-client";q=5;w=3600'
        refused = nginx.get("/", X_Client="ann")
        assert refused.status == 429 and 0 < int(refused.headers["retry-after"]) <= 720
        assert refused.headers["ratelimit"] == '"per-client";r=0;t=%s' % (
            refused.headers["retry-after"]), refused.headers
        assert refused.headers["content-type"] == "application/problem+json", refused.headers
        said = json.loads(refused.body)
        assert (said["status"], said["code"]) == (429, "weir-limited"), said
        assert said["violated-policies"] == ["per-client"], said
        assert nginx.get("/", X_Client="bob").status == 200
        assert "ratelimit" not in nginx.get("/").headers  # no rule applies
        assert nginx.statuses(9, "/free", X_Client="ann") == [200] * 9
        quiet = nginx.get("/quiet", X_Client="ann")
        assert quiet.status == 429 and "ratelimit" not in quiet.headers


def test_N4_the_readme(module):
    """Its block protects a login; a backend on a socket beside it stands in for the reader's."""
    block = snippet("nginx", "nginx", "README.md").replace("http://backend", "http://unix:backend")
    rules, server = re.search(r"(weir_rules .*?;).*?server {\n *listen [^;]*;\n(.*?)^    }$", block,
                              re.M | re.S).groups()
    backend = "server { listen unix:backend; location / { weir_check off; return 200 ok; } }"
    with open(os.path.join(ROOT, "examples/rules.yaml")) as file:
        text = file.read()
    with nginx_with(module, text, rules.replace("/path/to/examples/", "") + backend,
                    server) as nginx:
        assert [post(nginx, "/login")[0] for _ in range(5)] == [200] * 5
        refused = [headers for status, headers in (post(nginx, "/login") for _ in range(50))
                   if status == 429]  # one more passes every 12 seconds
        assert 0 < int(refused[0]["retry-after"]) <= 12, refused[0].items()
        assert int(refused[-1]["retry-after"]) > 12, refused[-1].items()  # banned


def test_N4_the_example_keeps_clients_apart(module):
    """nginx knows no account: one client's searches cost the others nothing."""
    with open(os.path.join(ROOT, "examples/rules.yaml")) as file:
        text = file.read()
    with nginx_with(module, text, "weir_rules rules.yaml;", SERVER) as nginx:
        assert 429 in nginx.statuses(15, "/search", X_Real_IP="192.0.2.1")
        assert nginx.get("/search", X_Real_IP="192.0.2.2").status == 200


def run_nginx(module, port):
    build = os.path.dirname(os.path.dirname(os.path.abspath(module)))
    return subprocess.Popen([os.path.join(ROOT, "scripts/run-nginx.sh"), build, str(port)],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=environment(module)), "%s/run-nginx-%s" % (build, port)


def test_N4_make_run_nginx_without_a_port(module):
    for port in "80x", "0", "70000":
        run, _ = run_nginx(module, port)
        said = run.communicate(timeout=60)[0]
        assert run.returncode == 1, said
        assert said == "run-nginx: port %s: a port is a number from 1 to 65535\n" % port, said


def test_N4_make_run_nginx_twice(module):
    """The second one says what is wrong, and the first goes on."""
    port = free_port()
    first, folder = run_nginx(module, port)
    try:
        until("it answers", lambda: answers(port), 60)
        second, _ = run_nginx(module, port)
        said = second.communicate(timeout=60)[0]
        assert second.returncode == 1 and "in use, perhaps by another make run-nginx" in said, said
        assert answers(port)
    finally:
        first.terminate()
        first.communicate()
        shutil.rmtree(folder, ignore_errors=True)


def answers(port):
    try:
        return Ask(port, "/free", {}).answer().status == 200
    except ConnectionError:
        return False


def post(nginx, path):
    connection = http.client.HTTPConnection("127.0.0.1", nginx.port, timeout=60)
    connection.request("POST", path, "x")
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers


def test_N4_arguments_and_what_is_given(module):
    with nginx_with(module, RULES, HTTP, SERVER) as nginx:
        assert nginx.statuses(4, "/?tenant=a") == [200] * 3 + [429]
        assert nginx.statuses(1, "/?tenant=b") == [200]
        assert nginx.statuses(3, "/login?user=x") == [200, 200, 429]
        assert nginx.get("/%6cogin?user=x").status == 429  # as a server sees it
        assert nginx.get("/login?user=y").status == 200


def test_N4_what_nginx_knows_of_a_request(module):
    """The rows of docs/nginx.md; and a variable, of a client's certificate."""
    keys = ["{host}", "{scheme}", "{user}", "{server}", "{method}", "{ip}", "{uri}", "{dn}"]
    rules = "version: 1\nrules:\n" + "".join(
        "  - { name: r%d, match: { arg.by: \"%d\" }, key: \"%s\", limit: 1/1h }\n" % (n, n, key)
        for n, key in enumerate(keys))
    http = "weir_rules rules.yaml; weir_attribute dn $ssl_client_s_dn;"
    server = """set_real_ip_from 127.0.0.1; real_ip_header X-Ip; server_name first;
        listen 127.0.0.1:{tls} ssl; ssl_certificate own.pem; ssl_certificate_key own.key;
        ssl_verify_client optional_no_ca; location / { try_files /index.html =404; } }
        server { listen 127.0.0.1:{port}; root html; server_name second;
                 set_real_ip_from 127.0.0.1; real_ip_header X-Ip;
                 location / { try_files /index.html =404; }"""
    with nginx_with(module, rules) as nginx:
        tls = free_port()
        for name in ["own", "ann", "bob"]:
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                            "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name, "-keyout",
                            nginx.path(name + ".key"), "-out", nginx.path(name + ".pem")],
                           check=True, capture_output=True)
        nginx.configure(http=http, server=server.replace("{tls}", str(tls))
                        .replace("{port}", str(nginx.port)))
        nginx.reload()

        def by(number, *curl, url=None, path="/"):
            url = url or "http://127.0.0.1:%d" % nginx.port
            said = subprocess.run(["curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", *curl,
                                   url + path + "?by=%d" % number], capture_output=True, text=True)
            return int(said.stdout)

        secure = "https://127.0.0.1:%d" % tls
        assert [by(0, "-H", "Host: " + host) for host in ["first", "FIRST", "first:80", "second"]
                ] == [200, 429, 429, 200]
        assert [by(1), by(1), by(1, url=secure), by(1, url=secure)] == [200, 429, 200, 429]
        assert [by(2, "-u", user) for user in ["ann:x", "ann:y", "bob:x"]] == [200, 429, 200]
        assert [by(2), by(2)] == [200, 200]  # nobody's
        assert [by(3, "-H", "Host: " + host) for host in ["first", "third", "second"]
                ] == [200, 429, 200]
        assert [by(4), by(4), by(4, "-I")] == [200, 429, 200]
        assert [by(5, "-H", "X-Ip: " + ip) for ip in ["192.0.2.1", "192.0.2.1", "2001:db8::1"]
                ] == [200, 429, 200]
        assert [by(6, path=path) for path in ["/a", "/%61", "/b"]] == [200, 429, 200]
        certificate = {name: ["--cert", nginx.path(name + ".pem"), "--key",
                              nginx.path(name + ".key")] for name in ["ann", "bob"]}
        assert [by(7, *certificate[name], url=secure) for name in ["ann", "ann", "bob"]
                ] == [200, 429, 200]


def test_N4_attributes_of_servers_and_locations(module):
    """By name: a location that gives one keeps the others."""
    rules = """version: 1
rules:
  - { name: checkout, match: { service: checkout }, key: "{tenant}", limit: 1/1h }
  - { name: rest, match: { service: site }, key: "{tenant}", limit: 2/1h }
"""
    server = """weir_attribute service site;
                location / { try_files /index.html =404; }
                location /buy { weir_attribute service checkout; try_files /index.html =404;
                                location /buy/two { weir_attribute tenant two;
                                                    try_files /index.html =404; } }
                location /free { weir_attribute service ""; try_files /index.html =404; }"""
    with nginx_with(module, rules, HTTP, server) as nginx:
        assert nginx.logged("which nginx does not know") == 0
        assert nginx.statuses(3, "/?tenant=a") == [200, 200, 429]
        assert nginx.statuses(2, "/buy?tenant=a") == [200, 429]
        assert nginx.statuses(2, "/buy/two?tenant=a") == [200, 429]
        assert nginx.statuses(1, "/buy?tenant=two") == [429]
        assert nginx.statuses(3, "/free?tenant=a") == [200] * 3
        nginx.configure(server="weir_attribute a 1; weir_attribute a 2;")
        assert '"weir_attribute" directive is duplicate' in nginx.test()[1]


def test_N4_lists_and_bans(module):
    with nginx_with(module, RULES, HTTP, SERVER) as nginx:
        denied = nginx.get("/", X_Real_IP="203.0.113.9")
        assert denied.status == 403 and "retry-after" not in denied.headers, denied.headers
        assert json.loads(denied.body)["code"] == "weir-denied"
        assert nginx.get("/", Cookie="bad=yes").status == 403
        assert nginx.get("/", Cookie="bad=no").status == 200
        assert nginx.statuses(9, "/", X_Client="ann", X_Pass="secret") == [200] * 9
        assert nginx.statuses(5, "/login?user=x") == [200, 200, 429, 429, 429]
        banned = nginx.get("/login?user=x")
        assert banned.status == 429 and json.loads(banned.body)["code"] == "weir-banned"
        assert int(banned.headers["retry-after"]) <= 600
        nginx.reload()
        assert json.loads(nginx.get("/login?user=x").body)["code"] == "weir-banned"


def test_N4_bans_are_logged(module):
    """Each with its rule and its key, but not more than ten a second."""
    line = r'\[%s\].*banning key "%s" for 600s, by rule "login"'
    with nginx_with(module, RULES, HTTP, SERVER) as nginx:
        nginx.statuses(5, "/login?user=x")
        assert nginx.logged(line % ("error", "x")) == 1, nginx.log()
        nginx.statuses(3, "/login?user=x")
        assert nginx.logged("banning") == 1, nginx.log()
        nginx.configure(http=HTTP + "weir_req_log_level warn;")
        nginx.reload()
        nginx.statuses(5, "/login?user=%22y")
        assert nginx.logged(line % ("warn", '"y')) == 1, nginx.log()
        for i in range(100):
            nginx.statuses(5, "/login?user=k%d" % i)
        told = nginx.logged('banning key "k')

        def all_are_told():
            nginx.statuses(5, "/login?user=%s" % time.time())  # tells of those left out before
            return told + sum(map(int, re.findall(r"banning (\d+) more keys", nginx.log()))) >= 100

        until("bans that were left out are counted", all_are_told, 60)


def test_N4_pages_and_variables(module):
    server = """error_page 429 /other.html;
                location / { try_files /index.html =404;
                             add_header What "$weir_rule $weir_outcome $weir_remaining" always;
                             add_header Level $weir_level always; }
                location = /other.html { add_header Retry-After $sent_http_retry_after; }"""
    with nginx_with(module, RULES, HTTP, server) as nginx:
        answer = nginx.get("/", X_Client="ann")
        assert answer.headers["what"] == "per-client granted 4", answer.headers
        assert answer.headers["level"] == "0", answer.headers
        assert nginx.statuses(4, "/", X_Client="ann") == [200] * 4
        refused = nginx.get("/", X_Client="ann")
        assert refused.status == 429 and refused.body == b"other.html", refused.body
        assert "retry-after" in refused.headers
        assert nginx.get("/").headers["what"] == " granted "


def test_N5_the_level_goes_to_the_upstream(module):
    server = """location / { proxy_set_header Weir-Level $weir_level;
                             proxy_pass http://unix:{folder}/backend; }"""
    with nginx_with(module, RULES, HTTP, server) as nginx, Backend(nginx) as backend:
        levels = []
        for _ in range(5):
            ask = nginx.send("/", X_Client="ann")
            backend.answer(backend.accept())
            assert ask.answer().status == 200
            levels.append(re.search(rb"\r\nWeir-Level: (\d)\r\n", backend.head).group(1))
        assert levels == [b"0", b"0", b"1", b"1", b"2"], levels


def test_N4_a_rule_in_shadow_is_named(module):
    rules = """version: 1
rules:
  - { name: trial, key: "{arg.user}", limit: 1/1h, mode: shadow }
"""
    server = """location / { add_header Shadow "<$weir_shadow> $weir_outcome" always;
                             try_files /index.html =404; }"""
    with nginx_with(module, rules, "weir_rules rules.yaml;", server) as nginx:
        assert nginx.get("/?user=ann").headers["shadow"] == "<> granted"
        assert nginx.get("/?user=ann").headers["shadow"] == "<trial> granted"
        assert nginx.get("/?user=bob").headers["shadow"] == "<> granted"


def test_N4_once_for_a_request_and_its_redirects(module):
    server = """location / { error_page 404 /index.html; try_files /nothing =404; }
                location = /index.html { }"""
    with nginx_with(module, RULES, HTTP, server) as nginx:
        assert nginx.statuses(7, "/missing", X_Client="ann") == [404] * 5 + [429] * 2


def test_N4_a_refusal_takes_nothing_from_zones(module):
    http = HTTP + "weir_req_zone $arg_k zone=r:1m rate=1r/h; weir_conn_zone $arg_k zone=c:1m;"
    server = """location / { weir_req zone=r burst=9 nodelay; weir_conn c 1;
                             try_files /index.html =404; }"""
    with nginx_with(module, RULES, http, server) as nginx:
        assert nginx.statuses(30, "/?k=a", X_Client="ann") == [200] * 5 + [429] * 25
        assert nginx.statuses(7, "/?k=a") == [200] * 5 + [429] * 2


def test_N4_connections_once_for_a_request_and_its_redirects(module):
    http = HTTP + "weir_conn_zone $arg_k zone=c:1m;"
    server = """weir_conn c 1; add_header S "$weir_conn_status $weir_outcome" always;
                location / { try_files /nothing /other.html?$args; } location = /other.html { }
                location /gone { error_page 404 /index.html; try_files /nothing =404; }"""
    with nginx_with(module, RULES, http, server) as nginx:
        for path, status in [("/?k=a", 200), ("/gone?k=a", 404)]:
            answer = nginx.get(path)
            assert answer.status == status, (path, answer.status)
            assert answer.headers["s"] == "PASSED granted", (path, answer.headers)
        assert nginx.statuses(7, "/?k=a", X_Client="ann") == [200] * 5 + [429] * 2


def test_N4_a_page_that_the_rules_lead_to_is_limited_by_connections(module):
    """They refuse, and weir_conn has its permit back: the page needs one too."""
    http = HTTP + "weir_conn_zone $arg_k zone=c:1m;"
    server = """location / { weir_conn c 9; error_page 429 = @more; try_files /index.html =404; }
                location @more { weir_conn c 1; proxy_pass http://unix:{folder}/backend; }"""
    with nginx_with(module, RULES, http, server) as nginx, Backend(nginx) as backend:
        assert nginx.statuses(5, "/?k=a", X_Client="ann") == [200] * 5
        for _ in range(2):
            held = nginx.send("/?k=a", X_Client="ann")
            connection = backend.accept()
            other = nginx.send("/?k=a", X_Client="ann")
            until("it is decided", lambda o=other: o.is_answered() or backend.is_asked(), 60)
            assert other.is_answered() and other.answer().status == 429
            backend.answer(connection)
            assert held.answer().status == 200


def test_N2_a_part_that_is_refused_frees_no_connection(module):
    """The request goes on without its part, and is in progress."""
    http = HTTP + "weir_conn_zone $arg_c zone=c:1m;"
    server = """location / { weir_conn c 1; weir_check off; mirror /part;
                             proxy_pass http://unix:{folder}/backend; }
                location /part { internal; try_files /index.html =404; }"""
    with nginx_with(module, RULES, http, server) as nginx, Backend(nginx) as backend:
        for _ in range(5):
            ask = nginx.send("/", X_Client="ann")
            backend.answer(backend.accept())
            assert ask.answer().status == 200
        first = nginx.send("/?c=a", X_Client="ann")
        connection = backend.accept()
        second = nginx.send("/?c=a", X_Client="bob")
        until("it is decided", lambda: second.is_answered() or backend.is_asked(), 60)
        assert not backend.is_asked()
        assert second.answer().status == 429
        backend.answer(connection)
        assert first.answer().status == 200


def test_N2_a_part_that_is_refused_lets_nothing_pass_unasked(module):
    """A mirror over its rate; then the request goes to a place that limits connections."""
    http = "weir_req_zone $server_port zone=r:1m rate=1r/h; weir_conn_zone $arg_c zone=c:1m;"
    server = """location / { mirror /part; proxy_pass http://unix:{folder}/backend; }
                location /part { internal; weir_req zone=r; try_files /index.html =404; }
                location /files { internal; weir_conn c 1;
                                  proxy_pass http://unix:{folder}/backend; }"""
    leads_on = (b"HTTP/1.0 200 OK\r\nX-Accel-Redirect: /files?c=a\r\n"
                b"Content-Length: 0\r\n\r\n")
    with nginx_with(module, None, http, server) as nginx, Backend(nginx) as backend:
        asks, connections = [], []
        for _ in range(3):
            asks.append(nginx.send("/"))
            connection = backend.accept()
            connection.sendall(leads_on)
            connection.close()
            until("it is decided", lambda: asks[-1].is_answered() or backend.is_asked(), 60)
            if backend.is_asked():
                connections.append(backend.accept())
        assert len(connections) == 1, len(connections)
        backend.answer(connections[0])
        assert [ask.answer().status for ask in asks] == [200, 429, 429]


def test_N4_the_page_of_a_refusal_costs_nothing(module):
    http = HTTP + "weir_req_zone $arg_r zone=r:1m rate=1r/h; weir_conn_zone $arg_c zone=c:1m;"
    server = """error_page 429 /other.html; location = /other.html { }
                location / { weir_req zone=r; try_files /index.html =404; }
                location /rest { try_files /index.html =404; }
                location /slow { weir_conn c 1; proxy_pass http://unix:{folder}/backend; }"""
    with nginx_with(module, RULES, http, server) as nginx, Backend(nginx) as backend:
        assert nginx.statuses(9, "/?r=a", X_Client="ann") == [200] + [429] * 8
        first = nginx.send("/slow?c=a", X_Client="ann")
        connection = backend.accept()
        assert nginx.statuses(9, "/slow?c=a", X_Client="ann") == [429] * 9
        backend.answer(connection)
        assert first.answer().status == 200
        assert nginx.statuses(4, "/rest", X_Client="ann") == [200] * 3 + [429]


def test_N4_names_as_they_are_written(module):
    rules = """version: 1
rules:
  - { name: arg, key: "{arg.api-key}", limit: 1/1h }
  - { name: cookie, key: "{cookie.my-id}", limit: 1/1h }
  - { name: header, key: "{header.X-My_Id}", limit: 1/1h }
"""
    with nginx_with(module, rules, "weir_rules rules.yaml; underscores_in_headers on;",
                    SERVER) as nginx:
        for path, headers in [("/?api-key=1", {}), ("/", {"Cookie": "my-id=1"}),
                              ("/", {"X_My_Id": "1"})]:
            assert nginx.statuses(2, path, **headers) == [200, 429], (path, headers)
        assert nginx.statuses(2, "/?api_key=1", Cookie="my_id=1") == [200, 200]


def test_N4_a_client_does_not_choose_which_of_two_is_limited(module):
    rules = """version: 1
rules:
  - { name: arg, key: "{arg.k}", limit: 1/1h }
  - { name: cookie, key: "{cookie.id}", limit: 1/1h }
  - { name: header, key: "{header.x-key}", limit: 1/1h }
"""
    with nginx_with(module, rules, "weir_rules rules.yaml; underscores_in_headers on;",
                    SERVER) as nginx:
        assert nginx.statuses(2, "/?k=a%20b") == [200, 429]
        for same in ["/?k=a+b", "/?%6b=%61%20b", "/?K=x&k=a+b", "/?a=1&k=a+b&k=a%20b"]:
            assert nginx.get(same).status == 429, same
        for two in ["/?k=a&k=b", "/?k=a&%6b=b"]:
            assert nginx.get(two).status == 400, two
        assert nginx.logged('"arg.k" comes twice, and the rules use it') == 2
        assert nginx.get("/?other=1&other=2&k=&k=%zz&K=%").status == 200  # one that is not empty
        assert nginx.statuses(2, Cookie="ID=9; id=1") == [200, 429]
        for same in ['id="1"', "a=b;id=1", "id= 1 ;", "id=1; id=1"]:
            assert nginx.get("/", Cookie=same).status == 429, same
        assert nginx.get("/", Cookie="id=2; id=1").status == 400
        assert nginx.statuses(2, X_Key="1") == [200, 429]
        for same in ["1\r\nX_KEY: 1", "1\t", "\t1", " 1 \t"]:
            assert nginx.get("/", X_Key=same).status == 429, same
        assert nginx.get("/", X_Key="1\r\nx_key: 2").status == 400


def test_N4_a_bad_file_is_refused_with_its_place(module):
    with nginx_with(module, RULES, HTTP, SERVER) as nginx:
        assert nginx.statuses(6, "/", X_Client="ann") == [200] * 5 + [429]
        write(nginx.path("rules.yaml"), RULES.replace("limit: 3/1h", "limit: 3/1x"))
        code, said = nginx.test()
        assert code == 1 and "rules.yaml:13:" in said, said
        assert "    limit: 3/1x\n" in said and "^" in said, said
        before = nginx.logged(r"\[emerg\] .*weir_rules:")
        os.kill(nginx.pid(), signal.SIGHUP)
        until("it is refused", lambda: nginx.logged(r"\[emerg\] .*weir_rules:") > before, 60)
        assert nginx.get("/", X_Client="ann").status == 429
        write(nginx.path("rules.yaml"), RULES.replace("5/1h", "7/1h"))
        nginx.reload()
        assert nginx.get("/", X_Client="ann").status == 429  # a bucket has the tokens it had
        assert nginx.statuses(8, "/", X_Client="bob") == [200] * 7 + [429]


def test_N4_a_pipe_is_no_rule_file(module):
    """nginx does not wait for somebody to write into it."""
    with nginx_with(module, RULES, HTTP, SERVER) as nginx:
        os.remove(nginx.path("rules.yaml"))
        os.mkfifo(nginx.path("rules.yaml"))
        code, said = nginx.test()
        assert code == 1 and "rules.yaml is not a regular file" in said, said


def test_R14_a_rule_that_never_applies_is_named(module):
    with nginx_with(module, RULES, "weir_rules rules.yaml;", SERVER) as nginx:
        code, said = nginx.test()
        assert code == 0 and 'look at "tenant", which nginx does not know' in said, said
        assert "as in {tenant|none}, all clients share that" in said, said
    with nginx_with(module, RULES.replace("tenant", "user"), "weir_rules rules.yaml;",
                    SERVER) as nginx:
        code, said = nginx.test()
        assert code == 0 and 'look at "user", which the client chooses' in said, said
        nginx.configure(http="weir_rules rules.yaml; weir_attribute user $remote_user;",
                        server=SERVER)
        code, said = nginx.test()
        assert code == 0 and "which the client chooses" not in said, said


def test_N4_workers_and_reloads_share_the_rules(module):
    with nginx_with(module, RULES.replace("5/1h", "100/1h"), HTTP, SERVER, workers=3) as nginx:
        found = []
        for _ in range(3):
            found += nginx.statuses(40, "/", X_Client="ann")
            nginx.reload()
        assert found.count(200) == 100 and found.count(429) == 20, found


GUARDS = """version: 1
guards:
  - name: backend
    match: { uri: "/**" }
    concurrency: { max: 2 }
    breaker: { errors: 3, min_calls: 3, open_for: 60s }
    fallback: { status: 503, body: "later", type: text/plain }
"""
ZONES = "weir_req_zone $arg_k zone=one:1m rate=1r/s; weir_conn_zone $arg_k zone=c:1m;"
PROXY = """proxy_read_timeout 1s; proxy_next_upstream off;
           location / { proxy_pass http://unix:{folder}/backend;
                        add_header Guard "$weir_outcome $weir_guard" always; }"""


def enter(nginx, backend, path="/"):
    ask = nginx.send(path)
    return ask, backend.accept()


def test_N5_permits_come_back_however_a_request_ends(module):
    rules = GUARDS.replace("    breaker: { errors: 3, min_calls: 3, open_for: 60s }\n", "")
    with nginx_with(module, rules, "weir_rules rules.yaml;", PROXY) as nginx:
        with Backend(nginx) as backend:
            for how in ["answer", "leave", "hang up", "time out"] * 2:
                held = [enter(nginx, backend) for _ in range(2)]
                refused = nginx.get("/")
                assert refused.status == 503 and refused.body == b"later", refused.body
                assert refused.headers["guard"] == "busy backend", refused.headers
                for ask, connection in held:
                    end_request(backend, ask, connection, how)


def end_request(backend, ask, connection, how):
    if how == "answer":
        backend.answer(connection)
        assert ask.answer().status == 200
    elif how == "leave":
        ask.leave()
        assert connection.recv(1) == b""
        connection.close()
    elif how == "hang up":
        connection.close()
        assert ask.answer().status == 502
    else:
        assert ask.answer().status == 504
        connection.close()


def test_N5_parts_of_a_request_that_are_logged_leave_no_guard(module):
    server = """log_subrequest on; location /part { weir_check off; try_files /index.html =404; }
        location / { auth_request /part; proxy_pass http://unix:{folder}/backend; }"""
    with nginx_with(module, GUARDS.replace("max: 2", "max: 1"), "weir_rules rules.yaml;",
                    server) as nginx:
        with Backend(nginx) as backend:
            ask, connection = enter(nginx, backend)
            assert nginx.get("/").status == 503
            backend.answer(connection)
            assert ask.answer().status == 200


def test_N5_clients_that_are_slow_or_leave_are_not_held_against_upstreams(module):
    """What takes long is longer than the breaker's `slow`, which is as short as it can be."""
    rules = """version: 1
guards:
  - name: backend
    match: { uri: "/**" }
    breaker: { slow: 1ms, ratio: 50%, min_calls: 3, open_for: 60s }
"""
    server = """client_body_timeout 1s; location /page { try_files /index.html =404; }
                location / { proxy_pass http://unix:{folder}/backend; }"""
    with nginx_with(module, rules, "weir_rules rules.yaml;", server) as nginx, Backend(nginx):
        for _ in range(4):
            upload = socket.create_connection(("127.0.0.1", nginx.port), timeout=60)
            upload.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc")
            time.sleep(0.01)
            upload.shutdown(socket.SHUT_WR)
            upload.recv(1)
            upload.close()
        assert nginx.statuses(5, "/page") == [200] * 5


def test_N5_a_short_lease_is_renewed(module):
    """A worker that had no processor for two thirds of it is too late: then it is tried again."""
    rules = GUARDS.replace("concurrency: { max: 2 }", "concurrency: { max: 1 }\n    lease: 4s")
    server = PROXY.replace("read_timeout 1s", "read_timeout 60s")
    assert any(is_renewed(module, rules, server) for _ in range(5))


def is_renewed(module, rules, server):
    with nginx_with(module, rules, "weir_rules rules.yaml;", server) as nginx:
        with Backend(nginx) as backend:
            held = enter(nginx, backend)
            end = time.monotonic() + 4.7  # without it, the lease is over before 5 s
            renewed = True
            while renewed and time.monotonic() < end:
                renewed = nginx.get("/").status == 503
                time.sleep(0.1)
            end_request(backend, *held, "answer")
    return renewed


def test_N5_errors_of_upstreams_open_the_breaker(module):
    rules = GUARDS.replace("max: 2", "max: 100")
    with nginx_with(module, rules, "weir_rules rules.yaml;", PROXY) as nginx:
        with Backend(nginx) as backend:
            for _ in range(5):
                ask, connection = enter(nginx, backend)
                ask.leave()  # clients that go away are no errors
                assert connection.recv(1) == b""
                connection.close()
            for _ in range(3):
                ask, connection = enter(nginx, backend)
                connection.close()
                assert ask.answer().status == 502
            begun = time.monotonic()
            refused = nginx.get("/")
            assert refused.body == b"later" and refused.headers["guard"] == "open backend"
            assert int(refused.headers["retry-after"]) > 0
            assert time.monotonic() > begun and not backend.is_asked()


def test_N5_breakers_are_logged(module):
    """Once, however many workers there are, and not again after a reload; also where there are more
    guards than a worker looks at in one go."""
    others = "".join("  - { name: g%d, match: { uri: /g%d }, concurrency: 9 }\n" % (i, i)
                     for i in range(70))
    rules = GUARDS.replace("60s", "100ms").replace("max: 2", "max: 100")
    rules = rules.replace("guards:\n", "guards:\n" + others)
    http = """weir_rules rules.yaml;
              server { listen unix:backend;
                       location / { weir_check off; if ($arg_bad) { return 500; } return 200; } }"""
    with nginx_with(module, rules, http, "location / { proxy_pass http://unix:backend; }",
                    workers=2) as nginx:
        assert nginx.statuses(3, "/?bad=1") == [500] * 3
        opens, closes = 'guard "backend": the breaker opens', 'guard "backend": the breaker closes'
        until("that it opens is logged", lambda: nginx.logged(opens), 60)
        nginx.reload()
        until("that it closes is logged", lambda: nginx.get("/") and nginx.logged(closes), 60)
        assert (nginx.logged(opens), nginx.logged(closes)) == (1, 1), nginx.log()


def test_N5_the_status_page(module):
    server = PROXY + "location = /status { weir_check off; weir_status; }"
    with nginx_with(module, GUARDS, "weir_rules rules.yaml;" + ZONES, server) as nginx:
        with Backend(nginx) as backend:
            ask, connection = enter(nginx, backend)
            page = nginx.get("/status")
            said = json.loads(page.body)
            assert page.headers["content-type"] == "application/json", page.headers
            guard, = (guard for guard in said["guards"] if guard["name"] == "backend")
            assert (guard["in_flight"], guard["limit"], guard["entered"]) == (1, 2, 1), guard
            assert guard["shadow_refused"] == 0, guard
            assert all(guard["refused_" + why] == 0 for why in [
                "open", "busy", "limited", "shed", "degraded", "full", "late", "key_busy"]), guard
            assert any(limit["limit"] == "gcra 1/1s" for limit in said["limits"]), said
            metrics = nginx.get("/status?format=prometheus")
            assert b'\nweir_guard_in_flight{guard="backend"} 1\n' in metrics.body, metrics.body
            assert b'\nweir_guard_entered_total{guard="backend"} 1\n' in metrics.body, metrics.body
            assert b'\nweir_guard_breaker{guard="backend",state="closed"} 1\n' in metrics.body
            assert metrics.headers["content-type"].startswith("text/plain")
            backend.answer(connection)
            assert ask.answer().status == 200


def test_N5_the_status_page_is_not_limited(module):
    """By rules and bans, unless it is said there; what lies inside is limited as ever."""
    server = """weir_check on;
                location / { try_files /index.html =404; }
                location /status { weir_status;
                                   location /status/inner { try_files /index.html =404; } }
                location /limited { weir_check on; weir_status; }"""
    rules = """version: 1
rules: [{ name: all, limit: 2/1h, ban: { refusals: 1/1h, for: 1h } }]
"""
    with nginx_with(module, rules, "weir_rules rules.yaml;", server) as nginx:
        assert nginx.statuses(4) == [200, 200, 429, 429]
        assert nginx.statuses(5, "/status") == [200] * 5
        assert json.loads(nginx.get("/status").body)["requests"]["checked"] == 4
        assert [nginx.get(path).status for path in ["/status/inner", "/limited"]] == [429] * 2
        refused = nginx.get("/status?format=xml")
        assert refused.status == 400 and b"prometheus" in refused.body, refused.body
        assert nginx.get("/status?format=json").status == 200


def test_S5_alerts_are_of_metrics_that_there_are(module):
    with open(os.path.join(ROOT, "docs/serve-reference.md")) as file:
        known = set(re.findall(r"^\| `(weir_\w+)` \|", file.read(), re.M))
    with open(os.path.join(ROOT, "share/prometheus/weir-alerts.yml")) as file:
        named = set(re.findall(r"\bweir_\w+", file.read()))
    assert len(named) > 5 and named <= known, named - known


def test_S5_metrics_are_those_of_weir_serve(module):
    """Names, kinds and labels: one alert serves both."""
    with open(os.path.join(ROOT, "docs/serve-reference.md")) as file:
        theirs = {name: (kind, labels.split()) for name, kind, labels in re.findall(
            r"^\| `(weir_\w+)` \| (\w+) \| ([\w ]*) \|", file.read(), re.M)}
    server = PROXY + "location = /status { weir_check off; weir_status; }"
    with nginx_with(module, RULES + GUARDS[len("version: 1\n"):], HTTP, server) as nginx:
        body = nginx.get("/status?format=prometheus").body.decode()
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", body, re.M))
    samples = re.findall(r"^(\w+)(?:{(.*)})? \d+$", body, re.M)
    helped = re.findall(r"^# HELP (\w+) \S.*\.\n# TYPE (\w+) ", body, re.M)
    assert helped == [(name, name) for name in kinds], body
    assert len(samples) + 2 * len(kinds) == len(body.splitlines()), body
    for name, labels in samples:
        assert theirs[name][0] == kinds[name], name
        assert sorted(re.findall(r'(\w+)="', labels)) == theirs[name][1], (name, labels)


if __name__ == "__main__":
    run_tests(globals())
