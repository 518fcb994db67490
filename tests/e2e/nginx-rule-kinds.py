#!/usr/bin/env python3
"""nginx-rule-kinds.py MODULE [TEST...] -- every kind of rule, at a real nginx, one after another:
each way to match and to key, lists, bans, modes, each algorithm."""
import http.client
import subprocess

from nginxing import nginx_with, program
from serving import run_tests

SERVER = """set_real_ip_from 127.0.0.1; real_ip_header X-Ip; proxy_set_header Host $host;
            location / { proxy_pass http://unix:{folder}/backend; }
            add_header Rule $weir_rule always; add_header Outcome $weir_outcome always;
            add_header Shadow $weir_shadow always;"""
HTTP = """weir_rules rules.yaml; weir_attribute protocol $server_protocol;
          weir_attribute plan $plan; map $http_x_token $plan { ann-1 gold; bob-1 silver; }
          server { listen unix:{folder}/backend; weir_check off; location / { return 200 ok; } }"""


def started(module, text):
    nginx = nginx_with(module, text)
    nginx.configure(http=HTTP.replace("{folder}", nginx.folder),
                    server=SERVER.replace("{folder}", nginx.folder))
    nginx.reload()
    return nginx


def ask(nginx, words):
    """[METHOD] PATH [NAME:VALUE ...]: the status, the rule, the outcome and the shadow."""
    words = words.split()
    method = "GET" if words[0].startswith("/") else words.pop(0)
    connection = http.client.HTTPConnection("127.0.0.1", nginx.port, timeout=60)
    connection.request(method, words[0], headers=dict(word.split(":", 1) for word in words[1:]))
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return (answer.status, *(answer.headers[name] for name in ("Rule", "Outcome", "Shadow")))


# A rule's words, requests that share its one unit, and requests that it does not apply to.
KINDS = {
    "network": ("match: { ip: 192.0.2.0/24 }", ["/ X-Ip:192.0.2.1", "/ X-Ip:192.0.2.250"],
                ["/ X-Ip:192.0.3.1", "/"]),
    "network6": ("match: { ip: '2001:db8::/32' }",
                 ["/ X-Ip:2001:db8::1", "/ X-Ip:2001:db8:ffff::1"], ["/ X-Ip:2001:db9::1"]),
    "own-list": ("match: { ip: { list: office } }", ["/ X-Ip:198.51.100.7", "/ X-Ip:198.51.100.9"],
                 ["/ X-Ip:198.51.100.8"]),
    "path": ("match: { uri: /path }", ["/path", "/%70ath?x=1", "//x/../path"],
             ["/path/", "/PATH", "/path/x"]),
    "loose": ("match: { uri: /loose }, paths: loose", ["/LOOSE", "/loose/", "/loose;x=1"],
              ["/loose/x"]),
    "prefix": ("match: { uri: { prefix: /pre } }", ["/pre", "/prefix", "/pre/x"], ["/x/pre"]),
    "part": ("match: { uri: '/user/*/edit' }", ["/user/a/edit", "/user/b/edit"],
             ["/user/a/b/edit"]),
    "below": ("match: { uri: '/below/**' }", ["/below/a", "/below/a/b"], ["/below"]),
    "several": ("match: { uri: [/one, /two] }", ["/one", "/two"], ["/three"]),
    "method": ("match: { method: [DELETE, PUT] }", ["DELETE /", "PUT /"], ["POST /", "GET /"]),
    "host": ("match: { host: shop.example }", ["/ Host:shop.example", "/ Host:SHOP.example:80"],
             ["/ Host:www.shop.example"]),
    "header": ("match: { header.x-kind: '*bot*' }", ["/ X-Kind:robots", "/ x-kind:bot"],
               ["/ X-Kind:Bot", "/"]),
    "cookie": ("match: { cookie.kind: old }", ["/ Cookie:a=b;kind=old", "/ Cookie:kind=old"],
               ["/ Cookie:kind=new", "/ Cookie:akind=old"]),
    "argument": ("match: { arg.kind: 'a b' }", ["/?kind=a%20b", "/x?y&kind=a+b"],
                 ["/?kind=a", "/?Kind=a%20b"]),
    "variable": ("match: { plan: gold }", ["/ X-Token:ann-1", "/p X-Token:ann-1"],
                 ["/ X-Token:bob-1", "/"]),
    "present": ("match: { header.x-there: '*' }", ["/ X-There:1", "/ X-There:2"], ["/"]),
    "both": ("match: { uri: /both, method: POST }", ["POST /both", "POST /both?x"],
             ["/both", "POST /"]),
    "exception": ("match: { uri: /most }, not: { header.x-key: s3cret, ip: 203.0.113.0/24 }",
                  ["/most", "/most X-Key:x"], ["/most X-Key:s3cret", "/most X-Ip:203.0.113.1"]),
    "exact": ("match: { arg.exact: { exact: 'a*b' } }", ["/?exact=a*b", "/?exact=a%2ab"],
              ["/?exact=aab"]),
}


def test_N4_each_way_to_match(module):
    text = "version: 1\nlists: { office: { ip: [198.51.100.7, 198.51.100.9] } }\nrules:\n"
    text += "".join("  - { name: %s, %s, limit: 1/1h }\n" % (name, words)
                    for name, (words, _, _) in KINDS.items())
    with started(module, text) as nginx:
        for name, (_, same, others) in KINDS.items():
            for other in others * 2:
                assert ask(nginx, other) == (200, None, "granted", None), (name, other)
            assert ask(nginx, same[0])[:3] == (200, name, "granted"), name
            for one in same * 2:
                assert ask(nginx, one)[:3] == (429, name, "limited"), (name, one)


# A rule's key and, for each request, which of the keys it has.  None: the rule does not apply.
KEYS = {
    "ip": ("{ip}", {"X-Ip:192.0.2.1": 1, "X-Ip:192.0.2.2": 2, "X-Ip:2001:db8::1": 3,
                    "X-Ip:2001:db8::2": 3, "X-Ip:2001:db8:0:1::1": 4}),
    "net": ("{ip/24/48}", {"X-Ip:192.0.2.1": 1, "X-Ip:192.0.2.2": 1, "X-Ip:192.0.3.1": 2,
                           "X-Ip:2001:db8::1": 3, "X-Ip:2001:db8:0:1::1": 3}),
    "header": ("{header.x-k}", {"X-K:a": 1, "x-k:a": 1, "X-K:A": 2, "": None}),
    "default": ("{ip}:{header.x-k|none}", {"X-K:a": 1, "X-K:b": 2, "": 3, "X-Ip:192.0.2.1": 4,
                                           "X-Ip:192.0.2.1 X-K:a": 5}),
    "variable": ("{plan}", {"X-Token:ann-1": 1, "X-Token:bob-1": 2, "X-Token:eve": None}),
    "cookie": ("{cookie.s}", {"Cookie:s=1": 1, "Cookie:x=1;s=1": 1, "Cookie:s=2": 2}),
    "protocol": ("{protocol}", {"": 1, "X-K:a": 1}),
}


def test_N4_each_way_to_key(module):
    text = "version: 1\nrules:\n" + "".join(
        "  - { name: %s, match: { uri: /%s }, key: \"%s\", limit: 1/1h }\n" % (name, name, key)
        for name, (key, _) in KEYS.items())
    with started(module, text) as nginx:
        for name, (_, keys) in KEYS.items():
            seen = {None}
            for words, key in [*keys.items()] * 2:
                status, rule = ask(nginx, "/%s %s" % (name, words))[:2]
                assert status == (429 if key in seen - {None} else 200), (name, words)
                assert rule == (None if key is None else name), (name, words)
                seen.add(key)


def test_N4_lists_bans_and_modes(module):
    text = """version: 1
lists:
  deny: { ip: [192.0.2.0/28, '2001:db8::/48'], header.x-bad: ["yes"], arg.bad: ["1"] }
  allow: { ip: [192.0.2.0/24, 198.51.100.7], cookie.pass: [s3cret] }
rules:
  - name: bans
    match: { uri: /ban }
    key: "{ip}"
    limit: 1/1h
    ban: { refusals: 2/1h, for: 10m }
  - { name: shadow, match: { uri: /shadow }, limit: 1/1h, mode: shadow }
  - { name: off, match: { uri: /off }, limit: 1/1h, mode: "off" }
  - { name: costs, match: { uri: /costs }, limit: 10/1h, cost: 4 }
  - { name: priced, match: { uri: /priced }, limit: 10/1h, cost: "{arg.n}" }
  - { name: all, match: { uri: [/a, /b] }, limit: 3/1h }
  - { name: one, match: { uri: /a }, limit: [1/1h, 2/2h] }
"""
    with started(module, text) as nginx:
        for words in ("X-Ip:192.0.2.1", "X-Ip:2001:db8::1", "X-Bad:yes",
                      "X-Ip:198.51.100.7 X-Bad:yes"):
            assert ask(nginx, "/ban " + words)[::2] == (403, "denied"), words
        assert ask(nginx, "/ban?bad=1")[0] == 403
        for words in "X-Ip:192.0.2.16", "X-Ip:198.51.100.7", "Cookie:pass=s3cret":
            assert [ask(nginx, "/ban " + words)[0] for _ in range(4)] == [200] * 4, words
        assert [ask(nginx, "/ban X-Ip:192.0.3.1")[2] for _ in range(5)] == [
            "granted", "limited", "limited", "banned", "banned"]
        assert [ask(nginx, "/ban X-Ip:192.0.3.2")[2] for _ in range(2)] == ["granted", "limited"]
        assert [ask(nginx, "/shadow")[::3] for _ in range(3)] == [
            (200, None), (200, "shadow"), (200, "shadow")]
        assert [ask(nginx, "/off") for _ in range(3)] == [(200, None, "granted", None)] * 3
        assert [ask(nginx, "/costs")[0] for _ in range(3)] == [200, 200, 429]
        assert [ask(nginx, "/priced?n=%s" % n)[::2] for n in ("7", "4", "3", "11", "0")] == [
            (200, "granted"), (429, "limited"), (200, "granted"), (429, "too-big"),
            (200, "granted")]
        # a refusal by one of several rules takes nothing from the others
        assert [ask(nginx, path)[:2] for path in ("/a", "/a", "/b", "/b", "/b")] == [
            (200, "one"), (429, "one"), (200, "all"), (200, "all"), (429, "all")]
        for mode, rule, status in [("shadow", "bans", 200), ("enforce", "shadow", 429),
                                   ("shadow", None, 200), ("off", None, 200)]:
            words = [program(module), "mode", "--table", nginx.path("nginx.weir"), mode]
            subprocess.run(words + (["--rule", rule] if rule else []), check=True,
                           capture_output=True)
            path = {"bans": "/ban X-Ip:192.0.3.1", "shadow": "/shadow"}.get(rule, "/costs")
            assert ask(nginx, path)[0] == status, (mode, rule)


# What passes at once on a fresh key, where nobody can wait.
ALGORITHMS = {
    "token-bucket 3/1h": 3, "token-bucket 3/1h burst 5": 5, "gcra 3/1h": 3, "gcra 3/1h burst 1": 1,
    "leaky-bucket 3/1h": 3, "leaky-bucket 3/1h burst 2 queue 4": 2, "smooth 3/1h": 4,
    "smooth 3/1h burst 1": 2, "warm-up 3/1h": 1, "fixed-window 3/365d": 3,
    "fixed-window 3/1h align=first": 3, "3/month": 3, "3/week zone=Europe/Berlin": 3,
    "sliding-window 3/1h": 3, "sliding-window 3/1h buckets=4": 3, "sliding-log 3/1h": 3,
}


def test_N4_each_algorithm(module):
    text = "version: 1\nrules:\n" + "".join(
        "  - { name: r%d, match: { uri: /r%d }, key: \"{ip}\", limit: \"%s\" }\n" % (n, n, limit)
        for n, limit in enumerate(ALGORITHMS))
    with started(module, text) as nginx:
        for n, (limit, passes) in enumerate(ALGORITHMS.items()):
            for ip in "192.0.2.1", "192.0.2.2":
                said = [ask(nginx, "/r%d X-Ip:%s" % (n, ip))[0] for _ in range(passes + 2)]
                assert said == [200] * passes + [429] * 2, (limit, said)


if __name__ == "__main__":
    run_tests(globals())
