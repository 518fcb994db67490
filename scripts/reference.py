#!/usr/bin/env python3
"""reference.py BUILD [--check] -- docs/serve-reference.md, from the server itself.

Starts BUILD/weir serve on ports of its own with a clock that stands still, asks for its rows
(WEIR.HELP, /openapi.json, /metrics, --help, --print-settings) and for some answers, and writes the
page.  A code or an event without words is an error, so nothing new stays unsaid.  With --check the
page is compared with the one in the tree: a difference is printed, and the exit code is 1.
"""
import difflib
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PAGE = os.path.join(TOP, "docs", "serve-reference.md")
CHECK_TOKEN, ADMIN_TOKEN = "reference-check-token", "reference-admin-token"

RULES = """\
version: 1
rules:
  - name: login
    match: { uri: /login }
    paths: strict
    key: "{ip/32}"
    limit: 2/1m
guards:
  - name: search
    concurrency: { max: 2 }
    match: { uri: /search }
    breaker: { errors: 50% }
lists:
  deny: { ip: [203.0.113.0/24] }
"""

# ----------------------------------------------------------------------------- texts

HEAD = """\
# weir serve: reference

Settings, commands, routes and answers in tables. [The guide](serve.md) explains them. This page is
written by `make reference` from the running server, and a test compares the two.

[Settings](#settings) · [Signals](#signals) · [Files](#files) · [RESP commands](#resp-commands) ·
[RESP replies](#resp-replies) · [HTTP routes](#http-routes) · [HTTP answers](#http-answers) ·
[Events](#events) · [Metrics](#metrics)
"""

SETTINGS = """\
A setting is `--NAME` on the command line, `WEIR_NAME` in the environment (capitals, `_` for `-`),
or a line `NAME: VALUE` in the file that `--config` names. The first of these that has it counts,
then the default. A switch is turned off by `--no-NAME`. Times are `10s`, `5m`, `1h`; sizes `64k`,
`1m`. `weir serve --print-settings` prints all of them with the place each comes from, as such a
file. An unknown flag or name is refused; a variable whose name is nearly a setting's causes a
warning.

The file is YAML, one mapping: lines begin in the first column, and a value that begins with `[`,
`*`, `-` or the like needs quotes: `resp: "[::1]:7379"`, `events-log: "-"`.
"""

SIGNALS = """\
| signal | what happens |
|---|---|
| SIGTERM, SIGINT | drain: no new connections, answer requests under way within `drain`, then end. \
A second one ends at once |
| SIGHUP | read the rule file and the certificates again, reopen the event log. An error is \
reported, and the old ones stay |
| SIGUSR2 | start the program again; it takes over the sockets, and the old one drains when the \
new one is ready |

Exit code 0 after a drain, 2 if it could not start; stderr says why. With `NOTIFY_SOCKET` set
(systemd, `Type=notify`) it reports when it is ready and when it drains. Sockets from `LISTEN_FDS`
replace those it would open; `LISTEN_FDNAMES` says `resp` or `http` for each.
"""

FILES = """\
| file | contents |
|---|---|
| the rule file (`rules`) | read at the start, on SIGHUP, and within two seconds of a change \
(`watch`). Rules set by API are written to it |
| TABLE (`table`) | usage of keys, bans, modes set by hand. Sparse: `ls` shows more than `du` |
| TABLE.rules | rules set by API, if the server was given no rule file |
| TABLE.lists | list entries added and removed by API |
| .NAME.weir-DIGITS | beside one of these: a text that was being written when the server was \
killed. Removed at the next start |

Each of the texts is replaced whole: after a crash at any moment it is the old one or the new one.
With `memory` there is no table, and state without a file lasts as long as the server.
"""

ROLES = """\
There are two roles, `check` and `admin`; admin includes check. A token gives one: `AUTH TOKEN`
(with any user name before it), or over HTTP `Authorization: Bearer TOKEN` or Basic with the token
as password. Without a token:

| set | on loopback and unix sockets | from other hosts |
|---|---|---|
| no token | admin | the server does not start |
| admin-token | check | none |
| check-token, or both | none | none |

Without a role only the commands and routes marked `-` are open.
"""

ERRORS = """\
| error begins with | when |
|---|---|
| `NOAUTH` | a token is needed, and was not shown |
| `WRONGPASS` | this token is not known |
| `NOPERM` | the admin token is needed |
| `NOPROTO` | HELLO with a version other than 2 and 3 |
| `EXECABORT` | EXEC after a command that could not be kept |
| `Cell error:` | CL.THROTTLE with arguments that make no limit, in redis-cell's words |
| `ERR` | everything else; the text says what is wrong and what would be right |

A refusal is never an error: it is an answer whose `allowed` is 0.
"""

CODES = {
    "weir-limited": (429, "a limit refused"),
    "weir-banned": (429, "the key is banned; retry_ms is until the end of the ban"),
    "weir-denied": (403, "on a deny list; no Retry-After, since time does not help"),
    "weir-alone": (503, "the fleet's Redis does not answer, and the rule is closed without it"),
    "weir-dry": (503, "the fleet had to be asked, and did not answer within the rule's time"),
    "weir-no-room": (503, "the table is full, the key is new, and the rule is closed then"),
    "weir-too-many": (503, "more limits or guards apply to the request than can be asked together"),
    "weir-open": (503, "a guard's breaker is open; Retry-After is when it will be tried"),
    "weir-busy": (503, "all permits of a guard are out; Retry-After is an estimate"),
    "weir-key-busy": (429, "all permits of this key are out; Retry-After is an estimate"),
    "weir-too-big": (429, "an ask for more permits than the guard or a key can ever have; no "
                          "Retry-After"),
    "weir-shed": (503, "a guard has too much to do, and others come first"),
    "weir-degraded": (503, "a guard is switched off by the degradation"),
    "weir-full": (503, "a guard's queue is full"),
    "weir-late": (503, "in a guard's queue the turn did not come in time, or would not"),
    "weir-cancelled": (503, "it waited in a guard's queue when the server began to end"),
    "bad-request": (400,
                    "not JSON, an unknown member or one of the wrong kind, a value out of bounds, "
                          "an ask id used for another request"),
    "unauthorized": (401, "a token is needed, or this one is not known"),
    "forbidden": (403, "the admin token is needed; or, without a token, a foreign Host or Origin"),
    "not-found": (404, "no such route, rule, list or ban"),
    "method-not-allowed": (405, "Allow says which are"),
    "conflict": (409, "somebody else was quicker: the ban was lifted meanwhile, the limit of that "
                       "name was just made"),
    "too-large": (413, "more than request-max; 414 a URI, 431 a head"),
    "expectation": (417, "an Expect other than 100-continue"),
    "unprocessable": (422, "wrong rules (`problems` has line, column and text of each mistake) or "
                           "a wrong limit"),
    "wrong-tokens": (429, "too many tokens from this address were wrong; Retry-After says when "
                          "they are looked at again"),
    "not-implemented": (501, "a transfer coding other than chunked"),
    "not-ready": (503, "it drains, there is no memory, or the fleet's Redis does not answer"),
    "version": (505, "neither HTTP/1.1 nor 1.0"),
    "internal": (500, "for example, a file could not be written; the detail says which"),
}

CELL = """\
Whole seconds, as in redis-cell: a part of a second counts as one if it holds a whole millisecond.
Weir's own commands answer in milliseconds, rounded up, so that a client that waits that long has
waited enough; with `NS` all three times are in nanoseconds.
"""

LISTS = """\
Lists, the same in RESP2 and RESP3: a client's library may choose the version, and place 0 must not
change with it. Over HTTP the members of Weir's own answers have these names. A boolean is 1 or 0,
and a number that is null over HTTP is -1.
"""

ROUTES = """\
`GET /v1` lists them, `GET /openapi.json` describes every member (OpenAPI 3.1). GET answers HEAD
too. Optional arguments are in brackets. The operator's routes take theirs from the query or from a
JSON body. An unknown member is an error. Routes marked `-` need no role.
"""

PROBLEMS = """\
`application/problem+json` (RFC 9457) with `type`, `title`, `status`, `code` and `detail`; a refusal
also has all members of an answer. The codes that begin with weir- are refusals, and no other error
has them. The status of a refusal at `/v1/auth` can be chosen: `?refuse=403`.
"""

METRICS = """\
`GET /metrics`, in Prometheus's text format. Labels never hold a client's data: `rule` has at most
1000 values, and `(others)`; `guard` has at most 256. WEIR.TOP and `GET /v1/top` list the limited
keys.
"""

OTHERS = """\
| command | reply |
|---|---|
| WEIR.GIVE | `OK` |
| WEIR.SETTLE | 1; 0 if there is no such reservation: it was settled, has expired, or is older \
than the last restart |
| WEIR.EXIT | 1; 0 if the permit was given back before, or its lease was over |
| WEIR.RENEW | a list: the permit to give back from now on, and its lease in ms; null if the lease \
was over |
| WEIR.FORGET | 1; 0 if the key had used nothing |
| DEL, UNLINK | the number of keys that had used something |
| SUBSCRIBE, PSUBSCRIBE | as Redis; messages are events, one JSON object each, on `weir.events` \
(all) and `weir.events.KIND` |
| WEIR.CLOCK | the time in nanoseconds, an integer |
| every other admin command | one bulk string: the JSON of the HTTP route, without its headers |
"""


# ----------------------------------------------------------------------------------------- a server


class Server:
    """weir serve, for as long as a `with` lasts."""

    def __init__(self, weir, *options, **tokens):
        env = {name: value for name, value in os.environ.items()
               if not name.startswith(("WEIR_", "LISTEN_", "NOTIFY_"))}
        command = [weir, "serve", "--memory", "--keys", "1000", "--threads", "1", "--resp",
                   "127.0.0.1:0", "--http", "127.0.0.1:0"]
        self.process = subprocess.Popen(command + list(options), env=dict(env, **tokens),
                                        stdout=subprocess.PIPE, text=True)
        self.ports = {}
        for line in self.process.stdout:
            found = re.match(r"  (resp|http) .*:(\d+)", line)
            if found:
                self.ports[found.group(1)] = int(found.group(2))
            if line.startswith("  table"):
                return
        sys.exit("reference.py: the server did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def resp(self, *first):
        return Resp(self.ports["resp"], first)

    def http(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["http"], timeout=30)
        connection.request(method, path, body=body)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text


class Error(str):
    pass


class Resp:
    """The smallest client, of RESP2: words in, Python values out."""

    def __init__(self, port, first):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.file = self.socket.makefile("rb")
        if first:
            self(*first)

    def __call__(self, *words):
        data = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(data)
                            + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in data))
        return self.read()

    def read(self):
        line = self.file.readline().decode().rstrip("\r\n")
        kind, rest = line[:1], line[1:]
        if kind == "$":
            return None if rest == "-1" else self.file.read(int(rest) + 2)[:-2].decode()
        if kind == "*":
            return [self.read() for _ in range(int(rest))]
        return int(rest) if kind == ":" else Error(rest) if kind == "-" else rest

    def close(self):
        self.file.close()
        self.socket.close()


# ------------------------------------------------------------------------------------------- tables


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ").strip()


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell(c) for c in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def code(text):
    return "`%s`" % text if text else ""


def sentence(text):
    return re.sub(r"(?<!\.)\.$", "", re.sub(r"\s+", " ", text).strip())


# ----------------------------------------------------------------------------------------- settings


def run(weir, *words):
    env = {"PATH": os.environ.get("PATH", ""), "HOME": "/nowhere"}
    env.update({name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")})
    return subprocess.run([weir, "serve", *words], env=env, stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def read_help(weir):
    """{name: (how it is written, help)} of every setting."""
    found = {}
    joined = re.sub(r"\n {27}", " ", run(weir, "--help"))  # long lines are wrapped
    for line in joined.splitlines():
        parts = re.match(r"      (?:--(no-)?([\w-]+)|(WEIR_\w+))( [A-Z]+)? +"
                         r"(.*?)( \[[^\[\]]*\])?$", line)
        if not parts:
            continue
        no, flag, secret, value, text, _ = parts.groups()
        name = flag or secret[5:].lower().replace("_", "-")
        shown = secret if secret else "--%s%s%s" % (no or "", name, value or "")
        found[name] = (shown, text.replace("do not ", "") if no else text)
    return found


def settings(weir):
    help_of = read_help(weir)
    out, rows, section = [], [], None
    for line in run(weir, "--print-settings").splitlines() + ["# "]:
        row = re.match(r"# ([\w-]+): (.*?) +\(default\)$", line)
        if row:
            name, value = row.groups()
            shown, text = help_of.pop(name)
            rows.append((code(name), code(shown), "" if name == "table" else code(value.strip()),
                         text))
        elif line.startswith("# "):
            if rows:
                out += ["### " + section.capitalize() + "\n",
                        table(("name", "written", "default", "what"), rows)]
            section, rows = line[2:], []
    help_of.pop("print-settings")
    assert not help_of, "settings that are in --help and not in --print-settings: %s" % help_of
    return "\n".join(["## Settings\n", SETTINGS] + out)


# ------------------------------------------------------------------------------------ RESP commands


def commands(server):
    groups = {"Deciding": [], "Operating": [], "What clients expect": []}
    client = server.resp()
    for line in sorted(client("WEIR.HELP"), key=lambda line: line.split(" ")[0]):
        use, summary = line.split(" -- ", 1)
        summary, role = re.match(r"(.*?)(?: \((admin|without a token)\))?$", summary).groups()
        role = {None: "check", "admin": "admin"}.get(role, "-")
        name, _, arguments = use.partition(" ")
        ours = name.startswith(("WEIR.", "CL.")) and name != "WEIR.HELP"
        ours = ours or name in ("DEL", "UNLINK")
        group = "Operating" if role == "admin" else "Deciding" if ours else "What clients expect"
        groups[group].append((code(name), code(arguments.strip()), role, sentence(summary)))
    client.close()
    out = ["## RESP commands\n", ROLES]
    for group, rows in groups.items():
        out += ["### " + group + "\n", table(("command", "arguments", "role", "what"), rows)]
    return "\n".join(out)


# ------------------------------------------------------------------------------------- RESP replies


def places(api, schema):
    """The members of RESP's list, in their order."""
    return {n: m for n, m in api["components"]["schemas"][schema]["properties"].items()
            if "x-weir-place" in m}


def layout(server, client, api, schema, words, path, body):
    """The table of a list's members.  A refusal takes nothing, so both doors answer the same."""
    found = places(api, schema)
    answer, named = client(*words), json.loads(server.http("POST", path, json.dumps(body))[1])
    wanted = [-1 if named.get(name) is None and name.endswith("_ms") else named.get(name)
              for name in found]
    assert answer[0] == 0 and answer == wanted, (answer, named)
    return place_table(api, found)


def place_table(api, found):
    rows = [(i, code(name), kind_of(api, m), m["description"])
            for i, (name, m) in enumerate(found.items())]
    return table(("", "name", "kind", "what"), rows)


def show(value):
    if isinstance(value, list):
        return "\n".join("%d) %s" % (i + 1, show(v)) for i, v in enumerate(value))
    if value is None:
        return "(nil)"
    return "(integer) %d" % value if isinstance(value, int) else '"%s"' % value


def transcript(client, *words):
    text = " ".join('"%s"' % w if " " in w else w for w in words)
    return "> %s\n%s" % (text, re.sub(r'"[0-9a-f]{32}"', '"(32 hexadecimal digits)"',
                                      show(client(*words))))


def replies(server, api):
    client = server.resp()
    out = ["## RESP replies\n", LISTS, "### CL.THROTTLE\n",
           place_table(api, places(api, "Throttled")), CELL, "### WEIR.CHECK\n"]
    request = {"ip": "192.0.2.1", "uri": "/login"}
    words = [word for pair in request.items() for word in pair]
    client("WEIR.CHECK", "COST", 2, *words)
    out += [layout(server, client, api, "Ruling", ("WEIR.CHECK", *words), "/v1/check",
                   {"attributes": request}), "### WEIR.ENTER\n"]
    client("WEIR.ENTER", "GUARD", "search", "COST", 2)
    out += [layout(server, client, api, "Entered", ("WEIR.ENTER", "GUARD", "search"), "/v1/enter",
                   {"guard": "search"}), "### WEIR.TAKE, WEIR.PEEK, WEIR.RESERVE\n"]
    client("WEIR.TAKE", "a", "10/1m", "COST", 10)
    out += [layout(server, client, api, "Decision", ("WEIR.RESERVE", "a", "10/1m"), "/v1/reserve",
                   {"key": "a", "limit": "10/1m"})]
    out += ["Only WEIR.RESERVE answers `reservation`.\n", "### Others\n", OTHERS,
            "### Replies as they look\n"]
    bob = ("WEIR.TAKE", "bob", "sliding-window 3/10s", "COST", "2")
    asks = [("CL.THROTTLE", "ann", "15", "30", "60"),
            ("WEIR.CHECK", "ip", "192.0.2.7", "uri", "/login"), bob, bob,
            ("WEIR.RESERVE", "cat", "1000/1h", "COST", "100", "NAME", "tokens")]
    out += ["```\n" + "\n".join(transcript(client, *ask) for ask in asks) + "\n```\n",
            "### Errors\n", ERRORS]
    client.close()
    return "\n".join(out)


# --------------------------------------------------------------------------------------------- HTTP


def routes(api):
    out = ["## HTTP routes\n", ROUTES]
    for tag in api["tags"]:
        rows = []
        for path, methods in api["paths"].items():
            for method, what in methods.items():
                if tag["name"] in what["tags"]:
                    rows.append((code(method.upper() + " " + path),
                                 what["x-weir-role"].replace("none", "-"), takes(api, what),
                                 sentence(what["summary"]),
                                 " ".join(sorted(what["responses"]))))
        out += ["### " + tag["name"].capitalize() + "\n",
                table(("route", "role", "takes", "what", "answers"), rows)]
    return "\n".join(out)


def resolve(api, schema):
    while "$ref" in schema:
        where = api
        for part in schema["$ref"].split("/")[1:]:
            where = where[part]
        schema = where
    return schema


def takes(api, what):
    """The parameters and the members of the body; those that can be left out in brackets."""
    words = ["%s" % p["name"] if p.get("required") else "[%s]" % p["name"]
             for p in what.get("parameters", [])]
    for kind, content in what.get("requestBody", {}).get("content", {}).items():
        schema = resolve(api, content["schema"])
        needed = schema.get("required", [])
        words += [name if name in needed else "[%s]" % name
                  for name in schema.get("properties", {})] or ["a rule file"]
    return " ".join(words)


def kind_of(api, schema):
    schema = resolve(api, schema)
    if "enum" in schema:
        return " ".join("null" if e is None else str(e) for e in schema["enum"])
    kinds = schema.get("type", "object")
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


def members(api, name):
    schema = resolve(api, api["components"]["schemas"][name])
    parts = [resolve(api, part) for part in schema.get("allOf", [schema])]
    rows = []
    for part in parts:
        for member, what in part.get("properties", {}).items():
            shown = member if member in part.get("required", []) else "[%s]" % member
            rows.append((code(shown), kind_of(api, what),
                         what.get("description") or resolve(api, what).get("description", "")))
    return table(("member", "kind", "what"), rows)


def http_transcript(server, body):
    answer, text = server.http("POST", "/v1/check", body)
    head = ["HTTP/1.1 %d %s" % (answer.status, answer.reason)]
    head += ["%s: %s" % h for h in answer.getheaders() if h[0] not in ("Date", "Content-Length")]
    return "```\n> POST /v1/check\n> %s\n%s\n\n%s\n```\n" % (body, "\n".join(head), text)


# Schemas that have a table of their own.
ANSWERS = {"Check": "A check", "Ruling": "The answer to a check",
           "Reserve": "A take, peek, give or reserve", "Decision": "The answer to it",
           "Enter": "Entering guards", "Entered": "The answer to it", "Exit": "Leaving guards"}


def answers(server, api):
    schemas = api["components"]["schemas"]
    known = []
    for name in "Problem", "Refusal", "GuardRefusal":
        known += schemas[name]["allOf"][0]["properties"]["code"]["enum"]
    assert set(known) == set(CODES), "codes: %s" % (set(known) ^ set(CODES))
    out = ["## HTTP answers\n", "Members in brackets may be left out, or are not always there.\n"]
    for name, title in ANSWERS.items():
        out += ["### " + title + "\n", members(api, name)]
    out += ["Only reserve takes `lifetime_ms` and `lifetime_ns`.\n", "### Headers\n"]
    out += [table(("header", "what"), [(code(n), sentence(h["description"]))
                                       for n, h in api["components"]["headers"].items()])]
    out += ["### Refusals and problems\n", PROBLEMS]
    out += [table(("code", "status", "when"),
                  [(code(c), status, when) for c, (status, when) in CODES.items()]),
            "### Checks as they look\n"]
    login = '{"attributes":{"ip":"192.0.2.8","uri":"/login"}}'
    out += [http_transcript(server, body)
            for body in (login, login, login, '{"attributes":{"ip":"203.0.113.9"}}')]
    out += ["### What the others answer\n", table(("schema", "members"), others(api))]
    return "\n".join(out)


def others(api):
    """Answers of the operator's routes, by name: which members they have."""
    rows = []
    asks = {m["operationId"][0].upper() + m["operationId"][1:]
            for path in api["paths"].values() for m in path.values()}
    for name, schema in api["components"]["schemas"].items():
        shown = [code(member) for member in schema.get("properties", {})]
        if shown and name not in ANSWERS and (
                name not in asks or "additionalProperties" not in schema):
            rows.append((name, " ".join(shown)))
    return rows


# ------------------------------------------------------------------------------- events and metrics


def events(api, metrics):
    source = open(os.path.join(TOP, "server", "serve", "events", "events.c")).read()
    rows = re.findall(r'\[WEIR__EVENT_\w+\] = \{\s*"([\w-]+)",((?:\s*"(?:[^"\\]|\\.)*")+)', source)
    found = [(name, "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))) for name, text in rows]
    counted = set(re.findall(r'weir_events_total\{event="([\w-]+)"\}', metrics))
    assert counted == {name for name, _ in found} - {"lost"}, "events: %s" % found
    out = ["## Events\n",
           "One JSON object each. The last 1024 are kept for `GET /v1/events/recent`, "
           "WEIR.EVENTS and listeners that come back.\n"]
    out += [table(("event", "what"), [(code(name), what) for name, what in found]),
            "### Members\n", members(api, "Event")]
    return "\n".join(out)


def metric_rows(metrics):
    rows = {}
    for line in metrics.splitlines():
        if line.startswith("# HELP "):
            name, text = line[7:].split(" ", 1)
            rows[name] = [name, "", set(), text]
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            rows[name][1] = kind
        else:
            sample = re.match(r"(\w+)(?:\{(.*)\})? ", line)
            name = sample.group(1)
            name = name if name in rows else re.sub(r"_(bucket|sum|count)$", "", name)
            rows[name][2] |= set(re.findall(r'(\w+)="', sample.group(2) or ""))
    return [(code(name), kind, " ".join(sorted(labels)), sentence(text))
            for name, kind, labels, text in rows.values()]


def work(server):
    """Some work that succeeds, over some seconds: else there are no times to be told."""
    resp = server.resp()
    for second in range(2 * 10**9, 2 * 10**9 + 5):
        resp("WEIR.CLOCK", second * 10**9)
        permit = resp("WEIR.ENTER", "GUARD", "search")[11]
        resp("WEIR.CLOCK", second * 10**9 + 10**6)
        resp("WEIR.EXIT", permit, "ok")


def metrics_page(metrics):
    return "\n".join(["## Metrics\n", METRICS,
                      table(("metric", "type", "labels", "what"), metric_rows(metrics))])


def page(weir):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as rules:
        rules.write(RULES)
        rules.flush()
        with Server(weir, "--test-clock", "--rules", rules.name) as server:
            api = json.loads(server.http("GET", "/openapi.json")[1])
            parts = [HEAD, settings(weir), "## Signals\n\n" + SIGNALS, "## Files\n\n" + FILES,
                     commands(server), replies(server, api), routes(api),
                     answers(server, api)]
            work(server)
            metrics = server.http("GET", "/metrics")[1]
            parts += [events(api, metrics), metrics_page(metrics)]
    return "\n".join(parts)


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    new = page(os.path.join(arguments[0], "weir") if os.path.isdir(arguments[0]) else arguments[0])
    if "--check" not in sys.argv:
        open(PAGE, "w").write(new)
        return
    old = open(PAGE).read() if os.path.exists(PAGE) else ""
    difference = list(difflib.unified_diff(old.splitlines(True), new.splitlines(True),
                                           "docs/serve-reference.md", "as the server says", n=1))
    sys.stdout.writelines(difference)
    print("1 passed, 0 failed" if not difference
          else "the page is not up to date: make reference writes it\n0 passed, 1 failed")
    sys.exit(bool(difference))


main()
