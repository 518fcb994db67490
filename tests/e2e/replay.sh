#!/bin/sh
# replay.sh WEIR -- weir replay on logs made with known traffic: exactly the numbers that a hand
# calculation gives, by every way in and out.
. "${0%/*}/harness.sh"

weir=$(program "$1")
verb=replay
cd "$dir"

# get EXPRESSION -- of the report r in ./out; s is its first side, t its second, rule(name) a rule
# of the first, c what differs, p the first proposal
get() {
    python3 - "$1" <<'PY' 2>&1 || true
import json, sys
r = json.load(open("out"))
s, t = r["sides"][0], r["sides"][-1]
c, p = r.get("compare"), (r.get("proposals") or [None])[0]
rule = lambda name, side=s: next(x for x in side["rules"] if x["name"] == name)
print(eval(sys.argv[1]))
PY
}

# says EXPRESSION EXPECTED -- of the report of the last run
says() {
    is "$ran: $1" "$(get "$1")" "$2"
}

# ------------------------------------------------------------------ traffic ----

python3 - <<'PY'
import gzip, json

BASE = 1763193600  # 2025-11-15 08:00:00 UTC

def combined(out, at, ip, uri="/", method="GET", agent="test"):
    clock = "%02d:%02d:%02d" % (8 + at // 3600, at // 60 % 60, at % 60)
    out.write('%s - - [15/Nov/2025:%s +0000] "%s %s HTTP/1.1" 200 12 "-" "%s"\n'
              % (ip, clock, method, uri, agent))

# three clients, each every 100 ms for 10 s: 300 requests
with open("tenths.json", "w") as out:
    for i in range(100):
        for client in (1, 2, 3):
            line = {"msec": "%d.%d00" % (BASE + i // 10, i % 10),
                    "remote_addr": "192.0.2.%d" % client, "request_method": "GET",
                    "request_uri": "/page?n=%d" % i, "status": 200,
                    "who": {"name": "user%d" % (client % 2)}}
            out.write(json.dumps(line) + "\n")

# the same, but the log knows seconds only; and as two files, one of them packed, and with lines
# that are none
with open("seconds.log", "w") as out:
    for i in range(300):
        combined(out, i // 30, "192.0.2.%d" % (i % 3 + 1), "/page?n=%d" % i)
lines = open("seconds.log").readlines()
with gzip.open("first.gz", "wt") as out:
    out.writelines(lines[:150])
open("second.log", "w").writelines(lines[150:])
with gzip.open("all.gz", "wt") as out:
    out.writelines(lines)
open("bad.log", "w").writelines(lines[:3] + ["this is no request\n"] + lines[3:] + ["nor this\n"])
open("nothing.log", "w").write("no\nlog\n")
open("empty.log", "w").write("")

# client i asks i times in one second, i = 1 .. 100
with open("stairs.log", "w") as out:
    for i in range(1, 101):
        for _ in range(i):
            combined(out, 0, "10.0.0.%d" % i)

# requests that end late: the last two stand 5 s and 1 s behind their place
with open("late.log", "w") as out:
    for at in (0, 10, 5, 9):
        combined(out, at, "192.0.2.1")

# what strangers write into logs
with open("hostile.log", "w") as out:
    for i in range(8):
        combined(out, i // 4, "192.0.2.1",
                 "/<script>alert(1)</script>&amp;<img/src=x/onerror=alert(2)>",
                 agent="</title><script>alert(3)</script>")
        combined(out, i // 4, "192.0.2.2", "/\x1b[31mred\xe2\x80\xae")
PY

rules() {
    printf 'version: 1\nrules:\n'
    cat
}

rules >bucket.yaml <<'END'
  - { name: per-ip, key: "{ip}", limit: 5/1s burst 5 }
END
rules >window.yaml <<'END'
  - { name: per-ip, key: "{ip}", limit: 7/1s, algorithm: fixed-window }
  - { name: unused, key: "{ip}", match: { uri: /nowhere }, limit: 1/1h, mode: off }
END
rules >shadow.yaml <<'END'
  - { name: per-ip, key: "{ip}", limit: 5/1s burst 5, mode: shadow }
END
rules >all.yaml <<'END'
  - { name: everybody, limit: 2/1h, algorithm: fixed-window }
END
rules >wrong.yaml <<'END'
  - { name: per-ip, key: "{ip}", limt: 5/1s }
END

# ------------------------------------------------------------ hand-calculated ----

# Tenths of a second: a bucket of 5 and 5 more a second over 9.9 s lets 54 of 100 pass.
run --rules bucket.yaml --json tenths.json
is "$ran" "$code" 0
says 'r["requests"], s["allowed"], s["refused"]' '(300, 162, 138)'
says 'rule("per-ip")["applied"], rule("per-ip")["refused"], rule("per-ip")["keys"]["count"]' \
    '(300, 138, 3)'
says '[(k["key"], k["refused"], k["error"]) for k in rule("per-ip")["top"]]' \
    "[('192.0.2.1', 46, 0), ('192.0.2.2', 46, 0), ('192.0.2.3', 46, 0)]"
says 's["uris"]' "[{'uri': '/page', 'refused': 138, 'error': 0}]"
says 'r["from"], r["to"]' "('2025-11-15T08:00:00.000Z', '2025-11-15T08:00:09.900Z')"
says 'r["time"]["requests"]' '[30, 30, 30, 30, 30, 30, 30, 30, 30, 30]'
# In the first second 5 and 4 more pass (the last at 0.8 s); in each of the others 5.
says 's["refused_at"]' '[3, 15, 15, 15, 15, 15, 15, 15, 15, 15]'
says 's["reasons"]["limited"], s["levels"][3], r["clients"], s["clients_refused"]["count"]' \
    "(138, 138, {'count': 3, 'exact': True}, 3)"

# Full seconds: all of a second comes at once, so 5 of each client's 10 pass.
for log in seconds.log all.gz "first.gz second.log"; do
    run --rules bucket.yaml --json $log
    says 'r["requests"], s["refused"], r["bad_lines"], r["late"], s["refused_at"]' \
        "(300, 150, 0, 0, [15, 15, 15, 15, 15, 15, 15, 15, 15, 15])"
done
"$weir" replay --rules bucket.yaml --json - <seconds.log >out
ran="weir replay --rules bucket.yaml --json - <seconds.log"
says 's["refused"], r["logs"]' "(150, ['-'])"
"$weir" replay --rules bucket.yaml --json - <all.gz >out
says 's["refused"]' 150

# Windows of a second: 7 of 10.
run --rules window.yaml --json seconds.log
says 's["refused"], rule("unused")["mode"], rule("unused")["applied"]' "(90, 'off', 0)"

# One state for everybody.
run --rules all.yaml --json seconds.log
says 's["refused"], rule("everybody")["top"][0]["key"]' "(298, '(everybody)')"

# What is not understood is left out, and told.
run --rules bucket.yaml --json --format combined bad.log
is "$ran" "$code" 0
says 'r["requests"], r["lines"], r["bad_lines"], s["refused"]' '(300, 302, 2, 150)'
says 'r["first_bad"]["line"], r["first_bad"]["file"]' "(4, 'bad.log')"
run --rules bucket.yaml bad.log
has "$ran" "$out" "2 of 302 lines were not understood"

# Fields by a map; clients by another attribute.
run --rules bucket.yaml --json --map account=who.name --client account tenths.json
says 'r["clients"]["count"], s["refused"], r["client_attribute"]' "(2, 138, 'account')"

# Time that goes back: decided at the later time, and told if by more than a second.
run --rules window.yaml --json late.log
says 'r["late"], r["late_most_ns"], r["time"]["requests"][10]' '(1, 5000000000, 3)'

# --------------------------------------------------------------------- modes ----

run --rules shadow.yaml --json seconds.log
says 's["refused"], s["would_refuse"], rule("per-ip")["would_refuse"], rule("per-ip")["applied"]' \
    '(0, 150, 150, 300)'
run --rules shadow.yaml --enforce --json seconds.log
says 's["refused"], s["would_refuse"], rule("per-ip")["mode"]' "(150, 0, 'enforce')"

# A set in shadow whose deny list has client 1: its 100 would be refused, and so would 50 of each of
# the others.  The rules are asked all the same.
printf 'mode: shadow\nlists: { deny: { ip: [192.0.2.1] } }\n' | cat shadow.yaml - >denies.yaml
run --rules denies.yaml --json seconds.log
says 's["allowed"], s["refused"], s["would_refuse"], s["would_deny"], s["reasons"]["denied"]' \
    '(300, 0, 200, 100, 0)'
says 'rule("per-ip")["would_refuse"], rule("per-ip")["applied"]' '(150, 300)'
says 'sum(s["would_at"]), s["clients_would"]["count"]' '(200, 3)'
says 's["deny_list"]["keys"]["count"], s["deny_list"]["top"][0]["refused"], s["no_rule_applied"]' \
    '(1, 100, 0)'
run --rules denies.yaml --html page.html --svg plot.svg seconds.log
has "$ran" "$out" "deny list: clients it would have refused most"
case $(cat plot.svg) in
*"deny list"*) fail "$ran: the plot of what was refused shows a list in shadow" ;;
*) pass ;;
esac
run --rules denies.yaml --enforce --json seconds.log
says 's["refused"], s["would_refuse"], s["would_deny"], s["reasons"]["denied"]' '(200, 0, 0, 100)'

# A rule in shadow does not ban, which is told; and not when it enforces.
rules >bans.yaml <<'END'
  - name: per-ip
    key: "{ip}"
    limit: 5/1s burst 5
    mode: shadow
    ban: { refusals: 10/60s, for: 10m }
END
run -r bans.yaml seconds.log
has "$ran" "$out" "Rules in shadow do not ban"
run -r bans.yaml --enforce --json seconds.log
says 'any("do not ban" in n for n in r["notes"]), rule("per-ip")["bans"]' '(False, 3)'

# -------------------------------------------------------- what the log has not ----

# missing ATTRIBUTE RULES -- the note of the last report
missing() {
    says 'r["notes"]' "[\"No request in the log has '$1' ($2). If the log has it under another \
name: --map $1=FIELD.\"]"
}

rules >account.yaml <<'END'
  - { name: login, key: "{account}", limit: 5/1s }
  - { name: month, key: "{ip}", match: { account: "*" }, limit: 5/month }
  - { name: per-ip, key: "{ip}", limit: 5/1s }
END
run --rules account.yaml --json seconds.log
missing account 'rules login, month'
run --rules account.yaml --html page.html seconds.log
has "$ran" "$out" "No request in the log has 'account' (rules login, month)."
has "page.html" \
    "$(cat page.html)" "No request in the log has &#39;account&#39; (rules login, month)."
# The log has all that a rule looks at, and no request is as the rule says.
rules >path.yaml <<'END'
  - { name: login, match: { uri: /sign-in }, paths: loose, key: "{ip}", limit: 5/1s }
  - { name: per-ip, key: "{ip}", limit: 5/1s }
END
run --rules path.yaml --json seconds.log
says '"Applied to no request of the log: rule login." in r["notes"][0]' True
# A path that is compared loosely is the log's uri.
rules >loose.yaml <<'END'
  - { name: all, match: { uri: "/**" }, paths: loose, limit: 5/1s }
END
run --rules loose.yaml --json seconds.log
says 'r["notes"]' '[]'
echo '{"time":"2024-05-01T10:00:00Z","ip":"192.0.2.1"}' >no-uri.json
run --rules loose.yaml --json no-uri.json
missing uri 'rule all'
for log in "--map account=ip seconds.log" "--map account=ip --format combined seconds.log" \
    "--map account=who.name tenths.json"; do
    run --rules account.yaml --json $log
    says 'r["notes"], rule("month")["applied"]' '([], 300)'
done
complains "has no field 'who': of a combined log there are ip, user" \
    --rules account.yaml --map account=who seconds.log
complains "has no field 'who': of a combined log there are ip, user" \
    --rules account.yaml --map account=who --format combined seconds.log

# ------------------------------------------------------------------- compare ----

# Of each client's 10 a second: 5 pass here, 7 there.
run --rules bucket.yaml --compare window.yaml --differ differ.jsonl --json --top 3 seconds.log
is "$ran" "$code" 0
says 's["refused"], t["refused"], c["differ"]' '(150, 90, 60)'
says 'c["refused_only_here"], c["refused_only_there"], c["refused_by_another_rule"]' '(60, 0, 0)'
says 'c["pairs"]' "[{'refused_here_by': 'per-ip', 'refused_there_by': None, 'requests': 60}]"
says 'len(c["first"]), c["first"][0]["client"], c["first"][0]["method"]' "(3, '192.0.2.1', 'GET')"
# The sixth of client 1 is line 16.
is "the first line of --differ" "$(python3 -c '
import json
d = [json.loads(l) for l in open("differ.jsonl")]
print(len(d), *[d[0][k] for k in ("line", "time", "uri", "refused_here_by")])')" \
    "60 16 2025-11-15T08:00:00.000Z /page?n=15 per-ip"
run --rules bucket.yaml --compare window.yaml seconds.log
has "$ran" "$out" "60 requests: 60 refused only here, 0 only there"
run --rules bucket.yaml --compare bucket.yaml --json tenths.json
says 'c["differ"], c["pairs"]' '(0, [])'

# ------------------------------------------------------------------- propose ----

# Of 100 clients, 10 may be refused: those that ask 91 times and more.  The bucket is as large as
# its count.
for algorithm in token-bucket fixed-window sliding-window sliding-log gcra; do
    rules >stairs.yaml <<END
  - { name: a, key: "{ip}", limit: 20/1s, algorithm: $algorithm }
END
    run --rules stairs.yaml --propose 10% --json stairs.log
    says 'len(r["proposals"]), p["rule"], p["count"], p["exact"]' "(1, 'a', 90, True)"
    says 'p["keys"], p["keys_refused_as_written"], p["keys_refused_as_proposed"]' '(100, 80, 10)'
    says 's["refused"]' "$((80 * 81 / 2))"
done
run --rules stairs.yaml --propose 0 --json stairs.log
says 'p["proposed"]' 'gcra 100/1s'
run --rules stairs.yaml --propose 0.1 stairs.log
has "$ran" "$out" "gcra 20/1s → gcra 90/1s"
has "$ran" "$out" "bounds from this log, not recommendations"
# Three keys are few; and 10 is far below 1000.
rules >much.yaml <<'END'
  - { name: a, key: "{ip}", limit: 1000/1s, algorithm: fixed-window }
END
run --rules much.yaml --propose 1% --json seconds.log
says 'len(r["proposals"]), p["count"], p["few_keys"], p["far_below"]' '(1, 10, True, True)'
run --rules much.yaml --propose 1% seconds.log
has "$ran" "$out" "Proposals for a come from fewer than 20 keys"
has "$ran" "$out" "Proposals for a are below a quarter of the rule's own limit"
sed 's/1000/5/' much.yaml >little.yaml
run --rules little.yaml --propose 1% seconds.log
has "$ran" "$out" "few keys, all refused: perhaps an attack"
# What can be read only once gives a bracket.
"$weir" replay --rules stairs.yaml --propose 10% --json - <stairs.log >out
ran="--propose from standard input"
says 'p["too_small"] < 90 <= p["count"] <= 113, p["exact"]' '(True, False)'
has "$ran" "$(get 'r["notes"]')" "as exact as one reading of the log allows"

# ------------------------------------------------------------------- reports ----

run --rules bucket.yaml --compare shadow.yaml --propose 5% --html page.html --svg plot.svg \
    seconds.log
is "$ran" "$code" 0
case $out in
*"$(printf '\033')"*) fail "$ran: colours without a terminal" ;;
*) pass ;;
esac
is "standard error without a terminal" "$(printf '%s' "$err" | sed 's/[0-9.]* KiB/N KiB/')" \
    "wrote page.html, N KiB
wrote plot.svg, N KiB"

# check_page FILE -- well-formed, nothing to fetch, and only our own script
check_page() {
    python3 - "$1" <<'PY' 2>&1
import base64, hashlib, html.parser, re, sys

FETCHING = {"src", "href", "xlink:href", "srcset", "action", "data"}
VOID = {"meta", "br", "rect", "line", "path", "img", "link", "input"}
text = open(sys.argv[1], encoding="utf-8").read()

class Checker(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.scripts, self.wrong = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name in FETCHING:
                self.wrong.append("%s %s=%s" % (tag, name, value))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self.open or self.open[-1] != tag:
            self.wrong.append("</%s> closes %s at %s" % (tag, self.open[-1:], self.getpos()))
        else:
            self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)

checker = Checker()
checker.feed(text)
checker.close()
wrong = checker.wrong + ["not closed: %s" % tag for tag in checker.open]
wrong += ["fetches %s" % m for m in re.findall(r"https?://[^\s\"<]*|url\(|@import", text)]
if len(checker.scripts) != 1 or {"img", "link", "iframe", "object"} & set(checker.seen):
    wrong.append("%d scripts, %s" % (len(checker.scripts), sorted(set(checker.seen))))
else:
    digest = hashlib.sha256(checker.scripts[0].encode()).digest()
    want = "sha256-" + base64.b64encode(digest).decode()
    if "script-src '%s'" % want not in text:
        wrong.append("the policy names another script than " + want)
print("; ".join(wrong) or "right")
PY
}

# check_plot -- plot.svg is XML
check_plot() {
    check "the SVG of $ran" python3 -c '
import xml.dom.minidom
assert xml.dom.minidom.parse("plot.svg").documentElement.tagName == "svg"'
}

is "page.html" "$(check_page page.html)" "right"
check_plot
has "page.html" "$(cat page.html)" "Decided differently: 150 requests"

run --rules bucket.yaml --compare all.yaml --propose 5% --html page.html --svg plot.svg --json \
    --differ differ.jsonl hostile.log
is "$ran" "$code" 0
is "a page about a hostile log" "$(check_page page.html)" "right"
check_plot
says 's["requests"] if "requests" in s else r["requests"]' 16
is "its differences" \
    "$(python3 -c 'import json; print(len([json.loads(l) for l in open("differ.jsonl")]))' 2>&1)" 14
run --rules all.yaml hostile.log
case $out in
*"$(printf '\033')"*) fail "$ran: the log's escape sequence came through" ;;
*) pass ;;
esac

# One is one.
head -n 1 seconds.log >one.log
run --rules bucket.yaml one.log
has "$ran" "$out" "1 request of 1 client,"

# Estimates are the same in every run, whatever the rules and the log's name.
python3 - >many.log <<'PY'
for i in range(6000):
    client = "10.0.%d.%d" % divmod(i, 250)
    print(client, '- - [15/Nov/2025:08:00:00 +0000] "GET / HTTP/1.1" 200 1')
PY
run --rules bucket.yaml --json many.log
first=$(get 'r["clients"]')
has "$ran" "$first" "'exact': False"
cp many.log other.log
run --rules all.yaml --json other.log
says 'r["clients"]' "$first"

# Nothing at all is a report too.
run --rules bucket.yaml --html page.html --svg plot.svg --propose 1% empty.log
is "$ran" "$code" 0
has "$ran" "$out" "There is no request in the log"
is "an empty page" "$(check_page page.html)" "right"
run --rules bucket.yaml --json empty.log
says 'r["requests"], r["time"]["requests"]' '(0, [])'

# -------------------------------------------------------------------- Ctrl-C ----

# The pipe is opened when the handler is in place; what came before the signal is reported.
is "Ctrl-C" "$(python3 - "$weir" <<'PY' 2>&1
import json, os, signal, subprocess, sys
os.mkfifo("pipe")
weir = subprocess.Popen([sys.argv[1], "replay", "--rules", "bucket.yaml", "--json", "pipe"],
                        stdout=subprocess.PIPE)
with open("pipe", "w") as pipe:
    pipe.write(open("seconds.log").read())
    pipe.flush()
    os.kill(weir.pid, signal.SIGINT)
out = weir.communicate(timeout=60)[0]
r = json.loads(out)
print(weir.returncode, r["partial"], r["requests"] <= 300, r["notes"][0][:15])
PY
)" "0 True True This is partial"

# -------------------------------------------------------------------- errors ----

complains "which rules?" seconds.log
complains "which log?" --rules bucket.yaml
complains "nowhere.log" --rules bucket.yaml seconds.log nowhere.log
complains "nowhere.yaml" --rules nowhere.yaml seconds.log
complains "wrong.yaml:3:" --rules wrong.yaml seconds.log
complains "wrong.yaml:3:" --rules bucket.yaml --compare wrong.yaml seconds.log
complains "--propose must be a share" --rules bucket.yaml --propose 1 seconds.log
complains "--propose must be a share" --rules bucket.yaml --propose -1% seconds.log
complains "--propose must be a share" --rules bucket.yaml --propose few seconds.log
complains "--differ needs --compare" --rules bucket.yaml --differ d seconds.log
complains "no line was understood" --rules bucket.yaml --format combined nothing.log
complains "format" --rules bucket.yaml --format cobol seconds.log
complains "no/page.html" --rules bucket.yaml --html no/page.html seconds.log
complains "did you mean --compare" --rules bucket.yaml --compar window.yaml seconds.log

complains "wrong.yaml:3:" --rules wrong.yaml --html new.html seconds.log
is "a mistake leaves no new file" "$(ls new.html 2>&1 | grep -c '^new')" 0
echo old >page.html
complains "wrong.yaml:3:" --rules wrong.yaml --html page.html seconds.log
complains "no line was understood" \
    --rules bucket.yaml --format combined --html page.html nothing.log
is "a mistake leaves the last report" "$(cat page.html)" old

head -c 300 all.gz >cut.gz
run --rules bucket.yaml --json cut.gz
is "a log that was cut off: $err" "$code" 2
says 'r["partial"]' True

finish
