#!/usr/bin/python3
"""serve-rules-model.py WEIR [TEST...] -- rules at a server, over RESP and HTTP, alone and in
batches, beside a plain model that was written from docs/rules.md.

Random rules (conditions of every kind, exceptions, strict and loose paths, keys with defaults and
prefixes, buckets, windows and logs, costs, bans, modes, lists) and random requests, in the many
spellings that a path, an address or a host can have.  Every answer must be the model's: allowed or
not, by which rule, why, what is left, when to come back, which rule in shadow would have refused.

WEIR_SEED=n runs one round again."""
import ipaddress
import json
import os
import random
import re
from fractions import Fraction

from serving import LONG, SECOND, Error, Server, run_tests

# ------------------------------------------------------------- attributes ----


def address(text):
    def parse(text):
        if text.startswith("[") and text.endswith("]"):
            text = text[1:-1]
        try:
            found = None if "%" in text else ipaddress.ip_address(text)
        except ValueError:
            return None
        return getattr(found, "ipv4_mapped", None) or found

    port = re.fullmatch(r"(.+):\d+", text)
    return parse(text) or (parse(port[1]) if port and re.search(r"^\[|\.", port[1]) else None)


def host(text):
    text = re.sub(r":\d*$", "", text.lower())
    return text[:-1] if text.endswith(".") else text


def path_of(uri, ends="[?#]"):
    """Without scheme, host, query and fragment, as bytes."""
    return re.split(ends, re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*", "", uri))[0].encode()


def decoded(path):
    return re.sub(rb"%([0-9A-Fa-f]{2})", lambda m: bytes([int(m[1], 16)]), path)


def resolved(path):
    out, open_end = [], False
    for part in path.split(b"/"):
        open_end = part in (b"", b".", b"..")
        if part == b"..":
            out[-1:] = []
        elif not open_end:
            out.append(part)
    return b"/" + b"/".join(out) + (b"/" if out and open_end else b"")


def strict(uri):
    return b"*" if uri == "*" else resolved(decoded(path_of(uri)))[:2048]


def without_parameters(path, ends=b"/"):
    return re.sub(rb";[^" + ends + rb"]*", b"", path)


def loose(path):
    """Without the parameters, which servers find in several ways."""
    if path == b"*":
        return path
    return resolved(path.lower().replace(b"\\", b"/"))[:2049].rstrip(b" \t\0/") + b"/"


def with_empty(path):
    """.. takes back an empty part as any other."""
    parts = path.removeprefix(b"/").split(b"/")
    path = resolved(b"/".join([part or b"\x1f" for part in parts[:-1]] + parts[-1:]))[:2049]
    return re.sub(rb"[/\x1f]+", b"/", path.rstrip(b" \t\0/\x1f")) + b"/"


def as_url(uri, resolve):
    """//x/login and http:///x/login are /login on the host x; an escaped slash parts nothing."""
    path = re.sub(rb"^[^/\\:]*:(?=[/\\])", b"", re.split(b"[?#]", uri)[0])
    path = re.sub(rb"^[/\\]{2,}[^/\\]*", b"", path)
    path = re.sub(rb"(?i)%2f|%5c", b"\x1f", path)
    path = resolve(decoded(path).lower().replace(b"\\", b"/"))[:2049]
    return re.sub(rb"[/\x1f]+", b"/", path.rstrip(b" \t\0/\x1f")) + b"/"


def as_jetty(path):
    path = re.sub(rb"^[^/\\:]*:(?=[/\\])", b"", path)
    return with_empty(decoded(without_parameters(path)).lower().replace(b"\\", b"/"))


def with_dots(path):
    """As handlers have it that resolve nothing."""
    parts = decoded(path).lower().replace(b"\\", b"/").split(b"/")
    return (b"/" + b"/".join(filter(None, parts)))[:2049].rstrip(b" \t\0/") + b"/"


def with_escaped_dots(path):
    """An escaped dot is none, and an escaped slash parts nothing."""
    path = re.sub(rb"(?i)%2f|%5c", b"\x1f", re.sub(rb"(?i)%2e", b"\x1e", path))
    path = resolved(decoded(path).lower().replace(b"\\", b"/"))[:2049].replace(b"\x1e", b".")
    return re.sub(rb"[/\x1f]+", b"/", path.rstrip(b" \t\0/\x1f")) + b"/"


def rare(uri, plain, windows):
    """Readings of few paths."""
    path = uri.split("?")[0].encode()
    host = re.match(rb"//([^/]*\\[^/]*)(/.*)", path, re.S)
    return {loose(decoded(host[2])) if host else windows,
            as_url(plain, resolved) if plain[1:2] == b"\\" else windows,
            with_escaped_dots(path_of(uri, "[?]")) if b"%2e" in path.lower() else windows}


def facts(attributes):
    """The attributes as rules see them; the first of a name counts, and an empty one is none."""
    out = {}
    for name, value in attributes:
        name = name.lower() if name.startswith("header.") else name
        if value and name not in out:
            out[name] = value
    if "uri" in out:
        came, plain = path_of(out["uri"]), strict(out["uri"])
        tomcat = loose(decoded(without_parameters(came)))
        behind = loose(without_parameters(plain))
        more = path_of(out["uri"], "[?]")  # with what some take for a fragment
        windows = loose(decoded(more))
        unbound = loose(without_parameters(decoded(came), rb"/\\"))
        cut = loose(decoded(came.split(b";")[0]))
        whole = out["uri"].encode()
        url, strictly = as_url(whole, resolved), as_url(whole, with_empty)
        jetty, dots = as_jetty(came), with_dots(more)
        others = rare(out["uri"], plain, windows)
        nginx = plain.lower().removesuffix(b"/") + b"/"
        out["loose"] = tomcat if tomcat == behind == unbound == cut == jetty and \
            windows == url == strictly == dots and {windows} == others and \
            windows in (tomcat, nginx) else b"/../"
        out["exempt"] = {tomcat, behind, windows, unbound, cut, url, strictly, jetty, dots,
                         *others}
        out["readings"] = {*out["exempt"], nginx}
    for name, value in out.items():
        if name == "ip":
            out[name] = address(value) or "none"
        elif name in ("host", "uri", "method"):
            out[name] = {"host": host, "uri": strict, "method": str.upper}[name](value)
    return out


# --------------------------------------------------------------- patterns ----


def glob(pattern, path):
    """As an expression over bytes."""
    out, within = b"", b"[^/]" if path else b"."
    for piece in re.findall(r"\*+|.", pattern, re.S):
        if piece[0] == "*":
            out += (b"." if len(piece) > 1 else within) + b"*"
        else:
            out += within if piece == "?" else re.escape(piece.encode())
    return re.compile(out + rb"\Z", re.S)


def holds(pattern, name, seen, lists, is_loose):
    kind, text = pattern
    value = seen[name]
    if kind == "any":
        return True
    if name == "ip":
        networks = lists[text]["ip"] if kind == "list" else [text]
        return value != "none" and any(
            value in network for network in map(ipaddress.ip_network, networks))
    if name == "uri":
        return path_holds(kind, text, seen, lists, is_loose)
    if kind == "list":
        return value in lists[text][name]
    if kind == "prefix":
        return value.startswith(text)
    if kind == "glob":
        return bool(glob(text, False).match(value.encode()))
    return value == (text.upper() if name == "method" else text)


def path_holds(kind, text, seen, lists, is_loose):
    value = seen["uri"]
    if kind == "list":
        entries = [entry.encode() for entry in lists[text]["uri"]]
        return value in entries or (
            is_loose and any((path[:-1] or b"/") in entries for path in seen["readings"]))
    values = seen["readings"] if is_loose else {value}
    text = text.lower() if is_loose else text
    if kind == "prefix":
        return any(path.startswith(text.encode()) for path in values)
    if kind == "glob":
        values = values | {path[:-1] for path in values} if is_loose else values
        return any(glob(text, True).match(path) for path in values)
    exact = loose(decoded(without_parameters(path_of(text)))) if is_loose else text.encode()
    return exact in values


# ----------------------------------------------------------------- limits ----


class Bucket:
    def __init__(self, count, seconds, burst):
        self.text = "%d/%ds burst %d" % (count, seconds, burst)
        self.rate, self.most, self.keys = Fraction(count, seconds * SECOND), burst, {}

    def left(self, key, now):
        level, since = self.keys.get(key, (self.most, now))
        return min(Fraction(self.most), level + (now - since) * self.rate)

    def wait(self, key, cost, now):
        return max(0, -((self.left(key, now) - cost) // self.rate))

    def take(self, key, cost, now):
        self.keys[key] = self.left(key, now) - cost, now


class Window:
    def __init__(self, count, seconds):
        self.text = "fixed-window %d/%ds align=first" % (count, seconds)
        self.most, self.period, self.keys = count, seconds * SECOND, {}

    def used(self, key, now):
        used, since = self.keys.get(key, (0, now))
        return (0, now) if now >= since + self.period else (used, since)

    def left(self, key, now):
        return self.most - self.used(key, now)[0]

    def wait(self, key, cost, now):
        used, since = self.used(key, now)
        return 0 if used + cost <= self.most else since + self.period - now

    def take(self, key, cost, now):
        used, since = self.used(key, now)
        if cost:
            self.keys[key] = used + cost, since


class Log:
    def __init__(self, count, seconds):
        self.text = "sliding-log %d/%ds" % (count, seconds)
        self.most, self.period, self.keys = count, seconds * SECOND, {}

    def instants(self, key, now):
        return [at for at in self.keys.get(key, []) if at + self.period > now]

    def left(self, key, now):
        return self.most - len(self.instants(key, now))

    def wait(self, key, cost, now):
        over = cost - self.left(key, now)
        return 0 if over <= 0 else self.instants(key, now)[over - 1] + self.period - now

    def take(self, key, cost, now):
        self.keys[key] = self.instants(key, now) + [now] * cost


# ------------------------------------------------------------------ rules ----

MILDER = ["enforce", "shadow", "off"]


class Model:
    def __init__(self, rules, lists, mode):
        self.rules, self.lists, self.mode = rules, lists, mode
        self.bans, self.refusals = {}, {}

    def applies(self, rule, seen):
        def some(patterns, name, is_loose):
            return name in seen and any(
                holds(pattern, name, seen, self.lists, is_loose) for pattern in patterns)

        def is_exempt(patterns, name):
            # a loose path as each server reads it
            ways = seen["exempt"] if is_loose and name == "uri" and name in seen else ()
            return some(patterns, name, False) and all(
                any(holds(pattern, name, {**seen, "readings": {way}}, self.lists, True)
                    for pattern in patterns) for way in ways)

        is_loose = rule["paths"] == "loose"
        return all(some(p, name, is_loose) for name, p in rule["match"].items()) and not any(
            is_exempt(p, name) for name, p in rule["not"].items())

    def key(self, rule, seen):
        """None: an attribute is missing.  A default is as good as a value, but no address."""
        out = []
        for name, default, bits in rule["key"]:
            value = seen.get("loose" if name == "uri" and rule["paths"] == "loose" else name)
            if value is None and default is None:
                return None
            if name == "ip" and value is not None and value != "none":
                value = ipaddress.ip_network((value, bits[value.version == 6]), strict=False)
            default = default and (default.encode() if name == "uri" else default)
            out.append((value is None and name == "ip", default if value is None else value))
        return tuple(out)

    def cost(self, rule, seen, cost):
        units = seen.get("units", "")
        return cost * (int(units) if rule["units"] and re.fullmatch(r"\d+", units) else 1)

    def listed(self, which, seen):
        return any(name in seen and holds(("list", which), name, seen, self.lists, False)
                   for name in self.lists.get(which, {}))

    def is_banned(self, rule, key, now):
        return self.bans.get((rule["name"], key), 0) > now

    def check(self, attributes, cost, now):
        seen = facts(attributes)
        nothing = {"allowed": 1, "rules": [None], "reason": "granted"}
        if self.mode == "off":
            return nothing
        if self.listed("deny", seen):
            if self.mode == "enforce":
                return {"allowed": 0, "rules": [None], "reason": "denied"}
        elif self.listed("allow", seen):
            return nothing
        asked = {mode: [] for mode in MILDER}
        for rule in self.rules:
            key = self.key(rule, seen) if self.applies(rule, seen) else None
            if key is not None:
                mode = max(rule["mode"], self.mode, key=MILDER.index)
                asked[mode].append((rule, key, self.cost(rule, seen, cost)))
        return self.refuse(asked["enforce"], cost, now) or self.grant(asked, now)

    def refuse(self, asked, cost, now):
        for rule, key, _ in asked:
            if self.is_banned(rule, key, now):
                return {"allowed": 0, "rules": [rule["name"]], "reason": "banned",
                        "retry": self.bans[rule["name"], key] - now}
        asks = [(rule, key, units, limit) for rule, key, units in asked for limit in rule["limits"]]
        never = [ask for ask in asks if ask[2] > ask[3].most]
        later = [(limit.wait(key, units, now), rule, key) for rule, key, units, limit in asks
                 if units <= limit.most and limit.wait(key, units, now) > 0]
        if not never and not later:
            return None
        rule, key = never[0][:2] if never else later[0][1:]
        retry = None if never else max(wait for wait, _, _ in later)
        until = self.count_refusal(rule, key, now) if cost else None
        if until and retry is not None:
            retry = max(retry, until - now)
        return {"allowed": 0, "rules": [rule["name"]], "reason": "too-big" if never else "limited",
                "retry": retry}

    def count_refusal(self, rule, key, now):
        """The end of the ban, if this refusal begins one."""
        if not rule["ban"]:
            return None
        most, seconds, length = rule["ban"]
        at = self.refusals.setdefault((rule["name"], key), [])
        at[:] = [t for t in at if t + seconds * SECOND > now] + [now]
        if len(at) < most:
            return None
        at.clear()
        self.bans[rule["name"], key] = now + length * SECOND
        return now + length * SECOND

    def grant(self, asked, now):
        shadow, left = None, []
        for rule, key, units in asked["enforce"]:
            for limit in rule["limits"]:
                limit.take(key, units, now)
                left.append((limit.left(key, now) // 1, rule["name"]))
        for rule, key, units in asked["shadow"]:
            if self.is_banned(rule, key, now) or any(
                    units > limit.most or limit.wait(key, units, now) for limit in rule["limits"]):
                shadow = shadow or rule["name"]
                continue
            for limit in rule["limits"]:
                limit.take(key, units, now)
        least = min(left, default=(None, None))[0]
        return {"allowed": 1, "reason": "granted", "shadow": shadow, "remaining": least,
                "rules": [name for n, name in left if n == least] or [None]}


# ---------------------------------------------------------------- at random ----

PATHS = ["/login", "/api/v1", "/api/v1/users", "/sale/7/buy", "/", "/a b", "/x;y", "/LOGIN", "/api",
         "/static/app.css", "/\u00fcn\u00ef"]
SPELLINGS = [
    "%s", "/%s", "/zz/..%s", "%s?a=/../b", "%s#x", "http://h:1%s", "%s/", "%s//", "%s;j=1", "%s%%20",
    "%s%%00", "%s/..", "%s/x/..", "/x//..%s", "%s//..", "%s/../x", "/x/..;%s", "/x/;y/..%s",
    "%s/;x", "%s%%2e", "%s%%3f", "x%s", "%s\\..\\x", "/x;" + 2100 * "a" + "/..;%s",
    "/" + 2040 * "b" + "/..%s"]
FOLDS = [str, str, str.upper, lambda p: p.replace("/", "%2f"), lambda p: p.replace("a", "%2561"),
         lambda p: p.replace("o", "%6F"), lambda p: p.replace("/", "/./")]
VALUES = {
    "ip": ["192.0.2.7", "192.0.2.8", "::ffff:192.0.2.7", "192.0.2.7:4711", "[2001:db8::7]:443",
           "2001:db8::7", "2001:DB8:0::8", "2001:db8:0:1::7", "10.1.2.3", "10.200.0.1", "unknown",
           "fe80::1%eth0", "192.0.2.07", "[2001:db8::7]", "192.0.2", " 10.1.2.3", "203.0.113.5",
           "0:0:0:0:0:ffff:c000:0207", "192.0.2.7.", "::192.0.2.7", ""],
    "host": ["shop.example", "SHOP.example", "shop.example:443", "shop.example.", "x",
             "shop.example.:80", "www.shop.example"],
    "method": ["GET", "POST", "get", "Post", "PURGE"],
    "account": ["ann", "bob", "Ann", "a:b", "mallory", "root", "a%b", "nobody", ""],
    "plan": ["free", "gold", ""],
    "header.User-Agent": ["bot", "Mozilla bot/1", "curl", "a*b"],
    "units": ["0", "1", "2", "5", "1.5", "-4", "x", "99999999999999999999", "+3", "007"],
}
PATTERNS = {
    "uri": [("exact", "/login"), ("exact", "/Login"), ("exact", "/api/v1"), ("prefix", "/api/"),
            ("prefix", "/lo"), ("glob", "/api/*"), ("glob", "/sale/*/buy"), ("glob", "/api/v?"),
            ("glob", "/*"), ("glob", "/static/**.css"), ("glob", "/**/users"), ("exact", "/"),
            ("any", "*"), ("list", "paths")],
    "ip": [("exact", text) for text in ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "2001:db8::7",
                                        "0.0.0.0/0", "::/0"]] + [("list", "office")],
    "host": [("exact", "shop.example"), ("glob", "*.shop.example"), ("any", "*"), ("prefix", "sh")],
    "method": [("exact", "GET"), ("exact", "post"), ("glob", "P*T")],
    "account": [("exact", "ann"), ("exact", "a:b"), ("prefix", "a"), ("any", "*"), ("glob", "?ob"),
                ("list", "vips")],
    "plan": [("exact", "free"), ("exact", "gold"), ("any", "*")],
    "header.user-agent": [("glob", "*bot*"), ("exact", "a*b"), ("exact", "curl")],
}
LISTS = {"office": {"ip": ["10.0.0.0/9", "2001:db8:0:1::/64"]},
         "paths": {"uri": ["/login", "/api/v1"]}, "vips": {"account": ["ann", "root"]}}
DENY, ALLOW = {"account": ["mallory"], "ip": ["203.0.113.0/24"]}, {"account": ["root"]}


def random_limit(r):
    count, seconds = r.choice([1, 2, 3, 5, 7, 10, 100]), r.choice([1, 7, 60, 3600])
    return r.choice([lambda: Bucket(count, seconds, r.choice([count, 1, 2 * count, 3])),
                     lambda: Window(count, seconds), lambda: Log(count, seconds)])()


def random_rule(r, name):
    def conditions(chance):
        return {name: r.sample(some, r.choice([1, 1, 2])) for name, some in PATTERNS.items()
                if r.random() < chance}

    names = r.sample([*PATTERNS], r.choice([0, 1, 1, 2, 3]))
    return {"name": name, "match": conditions(r.choice([.15, .35])), "not": conditions(.08),
            "key": [(name, r.choice([None, "nobody", "none"]),
                     r.choice([(32, 64), (24, 64), (8, 32), (32, 128), (0, 0)])) for name in names],
            "limits": [random_limit(r) for _ in range(r.choice([1, 1, 2, 3]))],
            "units": r.random() < .2, "mode": r.choice(["enforce"] * 5 + ["shadow", "off"]),
            "paths": r.choice(["strict", "loose"]),
            "ban": r.choice([None, None, (2, 60, 600), (5, 10, 3600)])}


def random_model(r):
    lists = {**LISTS, **r.choice([{}, {"deny": DENY}, {"allow": ALLOW},
                                  {"deny": DENY, "allow": ALLOW}])}
    rules = [random_rule(r, "r%d" % i) for i in range(r.choice([1, 2, 3, 5, 8, 15]))]
    return Model(rules, lists, r.choice(["enforce"] * 8 + ["shadow", "off"]))


def file_of(model):
    """As a rule file; YAML takes JSON."""
    def pattern(name, kind, text):
        return text if kind == "any" or name == "ip" and kind != "list" else {kind: text}

    def part(name, default, bits):
        return "{%s%s%s}" % (name, "/%d/%d" % bits if name == "ip" else "",
                             "|" + default if default else "")

    rules = []
    for rule in model.rules:
        out = {word: rule[word] for word in ("name", "mode", "paths")}
        for word in ("match", "not"):
            if rule[word]:
                out[word] = {name: [pattern(name, *p) for p in some]
                             for name, some in rule[word].items()}
        if rule["key"]:
            out["key"] = ":".join(part(*p) for p in rule["key"])
        if rule["units"]:
            out["cost"] = "{units}"
        if rule["ban"]:
            out["ban"] = {"refusals": "sliding-log %d/%ds" % rule["ban"][:2],
                          "for": "%ds" % rule["ban"][2]}
        rules.append({**out, "limit": [limit.text for limit in rule["limits"]]})
    return json.dumps({"version": 1, "mode": model.mode, "rules": rules, "lists": model.lists},
                      ensure_ascii=False)


def random_request(r):
    uri = r.choice(FOLDS)(r.choice(SPELLINGS) % r.choice(PATHS) if r.random() < .6
                          else r.choice(PATHS))
    out = [("uri", uri)] if r.random() < .95 else []
    for name, values in VALUES.items():
        if r.random() < (.3 if name == "units" else .85):
            out.append((name, r.choice(values[:3] if r.random() < .4 else values)))
    r.shuffle(out)
    return out, r.choice([1, 1, 1, 1, 0, 2, 3])


# ------------------------------------------------------------------- playing ----


def over_resp(resp, asked):
    answers = resp.many([["WEIR.CHECK", "COST", cost, "ATTRIBUTES",
                          *(word for pair in attributes for word in pair)]
                         for attributes, cost in asked])
    names = "allowed rule limit remaining retry_ms reset_ms wait_ms level reason shadow".split()
    assert not any(isinstance(answer, Error) for answer in answers), answers
    return [{**dict(zip(names, a)), "retry_ms": None if a[4] < 0 else a[4]} for a in answers]


def over_http(http, asked):
    checks = [{"attributes": dict(attributes), "cost": cost} for attributes, cost in asked]
    if len(checks) == 1:
        return [http("POST", "/v1/check", json.dumps(checks[0])).json()]
    return http("POST", "/v1/check/batch", json.dumps({"checks": checks})).json()["answers"]


def differs(answer, wanted):
    retry = wanted.get("retry")
    return (bool(answer.get("allowed")) != bool(wanted["allowed"]) or
            answer["rule"] not in wanted["rules"] or answer["reason"] != wanted["reason"] or
            (wanted["rules"] != [None] and wanted["allowed"] and
             answer["remaining"] != wanted["remaining"]) or
            (wanted["allowed"] and answer["shadow"] != wanted.get("shadow")) or
            (not wanted["allowed"] and
             answer["retry_ms"] != (None if retry is None else -(-retry // 1_000_000))))


def play(weir, seed, requests):
    r = random.Random(seed)
    model = random_model(r)
    rules, now = file_of(model), 1_700_000_000 * SECOND
    with Server(weir, rules=rules) as server, server.resp() as resp:
        http = server.http()
        while requests > 0:
            if r.random() < .2:
                now += r.choice([1, SECOND // 10, SECOND, 7 * SECOND, 60 * SECOND, 601 * SECOND])
            assert not isinstance(resp("WEIR.CLOCK", now), Error)
            asked = [random_request(r) for _ in range(r.choice([1, 1, 12]))]
            requests -= len(asked)
            answers = r.choice([lambda: over_resp(resp, asked), lambda: over_http(http, asked)])()
            for (attributes, cost), answer in zip(asked, answers):
                wanted = model.check(attributes, cost, now)
                assert not differs(answer, wanted), "again: WEIR_SEED=%d\n%s\n%s %d\n%s\nnot %s" % (
                    seed, rules, attributes, cost, answer, wanted)
        http.close()


def test_R1_R2_R3_R4_R5_rules_as_a_model_has_them(weir):
    seed = os.environ.get("WEIR_SEED")
    for n in [int(seed)] if seed else range(1, 301 if LONG else 21):
        play(weir, n, 500)


if __name__ == "__main__":
    run_tests(globals())
