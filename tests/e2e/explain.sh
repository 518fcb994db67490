#!/bin/sh
# explain.sh WEIR SPEND -- weir explain, weir bans and weir table, on tables that rules have worked
# on.  SPEND asks rules and bans keys: spend.c.
. "${0%/*}/harness.sh"

weir=$(program "$1")
spend=$(program "$2")
cd "$dir"

# silent PART -- what was printed last has no PART
silent() {
    if cat out err | grep -qF -- "$1"; then fail "$ran: has '$1': $(cat out err)"; else pass; fi
}

# json CODE EXPRESSION WORD... -- stdout is one JSON text, x, for which the Python expression holds
json() {
    want_code=$1 want=$2
    shift 2
    run "$@"
    if [ "$code" = "$want_code" ] && python3 - "$want" <<'PY'; then
import json, sys
x = json.load(open("out"))
sys.exit(not eval(sys.argv[1]))
PY
        pass
    else
        fail "$ran: expected $want_code '$want' got $code: $(cat out err)"
    fi
}

cat >rules.yaml <<'END'
version: 1
rules:
  - name: per-ip
    key: "{ip/32}"
    limit: [sliding-window 300/1m, sliding-log 100/5s]
  - name: login
    match: { uri: /login, method: [POST, PUT] }
    key: "{ip}:{account|nobody}"
    limit: 5/1m burst 3
    ban: { refusals: 4/1m, for: 10m }
  - { name: search, match: { uri: "/search/**" }, key: "{account}", limit: 20/s, mode: shadow }
  - name: others
    not: { ip: { list: office } }
    key: "{header.Vip}"
    limit: 7/day zone=Europe/Berlin
    cost: 2
lists:
  allow: { ip: [10.0.0.0/8] }
  deny:  { account: [mallory] }
  office: { ip: 192.0.2.0/24 }
END
at="--rules rules.yaml --now 1000000000"
later="--table table --now 1000000121"
login="ip=192.0.2.7 uri=/login method=POST"
plan="ip=198.51.100.1 header.vip=gold"

# --------------------------------------------------------------- fresh ----

answers 0 '● per-ip                   key 192.0.2.7
    sliding-window 300/1m        ███████████████████▉ 299 of 300 left, all again in 1m 2s
    sliding-log 100/5s           ███████████████████▊ 99 of 100 left, all again in 5s
● login                    key 192.0.2.7:nobody
    5/1m burst 3                 █████████████▍······ 2 of 3 left, all again in 12s
○ search                   does not apply: uri is /login, and it is for uri /search/...
○ others                   does not apply: ip is 192.0.2.7, and it is not for ip on the list office

allowed; the tightest is login: 2 of 3 left' explain $at $login
says 0 '○ login                    does not apply: method is GET, and it is for method POST or PUT' \
    explain $at ip=192.0.2.7 uri=/login method=GET
says 0 'there is no uri, and it is for uri /login' explain $at ip=192.0.2.7
says 0 "its key {header.Vip} needs header.vip, and there is none" explain $at ip=198.51.100.1
says 0 '● search                   key ann  in shadow: counts only' \
    explain $at ip=192.0.2.7 uri=/search/x account=ann
says 0 'costs 2' explain $at ip=198.51.100.1 header.vip=gold
says 0 'left out, since they do not apply: 2 of the rules, 0 of the guards' \
    explain $at --applying $login
silent '○'
says 1 'refused by login, for ever: it asks for more than can pass at once' \
    explain $at --cost 4 $login
says 0 'allowed: no rule applies' explain $at
json 0 'x["ruling"]["allowed"] and x["ruling"]["rule"] == "login"' explain $at --json $login
json 0 '[r["why"] for r in x["rules"]] == ["applies", "applies", "unmatched", "excepted"]' \
    explain $at --json $login
json 0 'x["rules"][0]["asked"] and not x["rules"][2]["asked"] and x["unused"] == []' \
    explain $at --json $login

# the day ends at midnight in Berlin: an hour and a second after, in summer two
says 0 'all again in 1s' explain --rules rules.yaml --now 2026-11-30T23:59:59+01:00 $plan
says 0 'all again in 1s' explain --rules rules.yaml --now 2026-11-30T22:59:59Z $plan
says 0 'all again in 1s' explain --rules rules.yaml --now 1796079599 $plan
says 2 "'2026-13-30T22:59:59Z' is not a time; write seconds since 1970, or 2026-11-30T23:59:59Z" \
    explain --rules rules.yaml --now 2026-13-30T22:59:59Z
says 0 'seconds since 1970' explain --help

# --------------------------------------------------------------- lists ----

answers 0 '● ip is on the allow list: let through, and no rule is asked
○ per-ip                   not asked: it would apply
○ login                    not asked: it would apply
○ search                   does not apply: uri is /login, and it is for uri /search/...
○ others                   does not apply: its key {header.Vip} needs header.vip, and there is none

allowed: ip is on the allow list' explain $at ip=10.0.0.1 uri=/login method=POST
says 1 '✗ account is on the deny list: refused, and no rule is asked' \
    explain $at ip=192.0.2.7 account=mallory
says 1 'refused: account is on the deny list' explain $at ip=10.0.0.1 account=mallory
json 1 'x["ruling"]["list"] == "deny" and not any(r["asked"] for r in x["rules"])' \
    explain $at --json ip=192.0.2.7 account=mallory
{ echo 'mode: shadow' && cat rules.yaml; } >shadow.yaml
says 0 '✗ account is on the deny list: it would be refused, but all rules are in shadow' \
    explain --rules shadow.yaml ip=192.0.2.7 account=mallory
says 0 '● per-ip                   key 192.0.2.7' \
    explain --rules shadow.yaml ip=192.0.2.7 account=mallory
json 0 'x["ruling"]["list"] == "deny" and x["rules"][0]["asked"]' \
    explain --rules shadow.yaml --json ip=192.0.2.7 account=mallory

# ------------------------------------------------- attributes for nothing ----

says 0 'no rule looks at url; did you mean uri?' explain $at ip=192.0.2.7 url=/login
says 0 'no rule looks at colour' explain $at ip=192.0.2.7 colour=red header.VIP=gold
silent header
json 0 'x["unused"] == ["url"]' explain $at --json ip=192.0.2.7 url=/login

# ------------------------------------------------- nothing for a terminal ----

escape=$(printf '\033')
says 0 'no rule looks at' \
    explain $at "ip=192.0.2.7${escape}[31m" "uri=/login" method=POST \
    "account=a${escape}]0;x$(printf '\007')" "b${escape}[2J=c"
silent "$escape"
silent "$(printf '\007')"
json 0 'x["ruling"]["allowed"]' \
    explain $at --json "ip=192.0.2.7${escape}" uri=/login method=POST \
    "account=\"${escape}$(printf '\377')" "b${escape}=c"
silent "$escape"

# ------------------------------------------------------- a table in use ----

"$spend" table rules.yaml 1000000000 3 $login >out
[ "$(cat out)" = 3 ] && pass || fail "spend: $(cat out)"
# contents -- of the table, all but the first two pages: attaching itself notes the time and takes a
# lock there
contents() {
    tail -c +8193 table | cksum
}
before=$(contents)
says 1 'refused by login (limited); free in 12s' explain $at --table table $login
says 1 '✗ login                    key 192.0.2.7:nobody' explain $at --table table $login
says 1 '0 of 3 left, refuses, free in 12s' explain $at --table table $login
says 0 'the tightest is login: 2 of 3 left' \
    explain $at --table table ip=192.0.2.8 uri=/login method=POST
json 1 'x["rules"][1]["refuses"] and x["rules"][1]["limits"][0]["retry_ms"] == 12000' \
    explain $at --json --table table $login
sed 's/burst 3/burst 4/' rules.yaml >other.yaml
says 0 'the table has it as token-bucket 5/1m burst 3: another rule file is in force there' \
    explain --rules other.yaml --now 1000000060 --table table $login
sed 's/name: login/name: logon/' rules.yaml >other.yaml
says 0 '● logon' explain --rules other.yaml --now 1000000000 --table table $login
[ "$(contents)" = "$before" ] && pass || fail "explain has written to the table"

# ---------------------------------------------------------------- bans ----

answers 0 'nobody is banned' bans --table table --now 1000000000
"$spend" table rules.yaml 1000000001 4 $login >out
"$spend" table rules.yaml 1000000001 9 ip=192.0.2.8 uri=/login method=POST "account=a b" >out
says 1 'banned for another 9m 59s' explain --rules rules.yaml --now 1000000002 --table table $login
says 1 'refused by login (banned); free in 9m 59s' \
    explain --rules rules.yaml --now 1000000002 --table table $login
is_banned='192.0.2.7:nobody                 banned 2m ago, for another 8m; strike 1'
says 0 "login                    $is_banned" bans $later
json 0 '[(b["strikes"], b["left_ms"]) for b in x["bans"]] == [(1, 480000)] * 2' bans $later --json
json 0 'all(b["rule"] == "login" for b in x["bans"])' bans $later --json
answers 0 'nobody is banned' bans $later --rule per-ip
answers 1 'not banned' bans $later --lift --rule login 192.0.2.9:nobody
answers 1 'not banned' bans $later --lift --rule per-ip 192.0.2.7:nobody
says 2 "there is no rule 'nope' in the table; known are per-ip, login" \
    bans $later --lift --rule nope 192.0.2.7:nobody
says 2 "did you mean 'login'?" bans $later --lift --rule logn 192.0.2.7:nobody
answers 0 lifted bans $later --lift --rule login 192.0.2.7:nobody
answers 1 '{"lifted":false}' bans $later --json --lift --rule login 192.0.2.7:nobody
json 0 'len(x["bans"]) == 1' bans $later --json
key=$(python3 -c 'import json; print(json.load(open("out"))["bans"][0]["key"])')
answers 0 '{"lifted":true}' bans $later --json --lift --rule login "$key"
answers 0 'nobody is banned' bans $later
says 0 'allowed; the tightest is login' explain --rules rules.yaml $later $login

# the refusals before it are forgotten too: it takes as many again
"$spend" table rules.yaml 1000000121 6 $login >out
answers 0 'nobody is banned' bans $later
"$spend" table rules.yaml 1000000121 1 $login >out
says 0 '192.0.2.7:nobody' bans $later

says 2 'no server at 127.0.0.1:1; start one: weir serve; or say where: --server' \
    bans --server 127.0.0.1:1
says 2 '--lift needs --rule NAME' bans --table table --lift x
says 2 '--lift needs one KEY' bans --table table --lift --rule login
says 2 'a KEY is only for --add and --lift' bans --table table x
says 2 'not-there' bans --table not-there
says 0 'usage: weir bans [--server ADDRESS | --table FILE]' bans --help

# --------------------------------------------------------------- table ----

says 0 '  login, limit 1                token-bucket 5/1m burst 3, changed 0 times' table table
silent '@'
silent '#'
silent 'by hand'
says 0 '  login, refusals for its ban   sliding-window 4/1m, changed 0 times' table table
says 0 '  per-ip, limit 2               sliding-log 100/5s' table table
"$spend" table rules.yaml login shadow
says 0 '  rule login: mode shadow by hand' table table
json 0 '{"login, limit 1", "login, refusals for its ban"} < {l["name"] for l in x["limiters"]}' \
    table --json table
json 0 'all(c not in l["name"] for l in x["limiters"] for c in "@#!")' table --json table
"$weir" take --table table --limit 5/1m --name a@ key >out
says 0 '  a@ ' table table

# -------------------------------------------------------------- guards ----

cat >guards.yaml <<'END'
version: 1
rules:
  - { name: per-ip, key: "{ip}", limit: 100/s }
guards:
  - name: search
    match: { uri: "/search/**" }
    concurrency: { max: 5, weights: { gold: 2, free: 1 } }
    user: "{account}"
    class: "{plan}"
    priority: 3
  - { name: extras, match: { uri: /extras }, degrade: 1 }
  - { name: watched, concurrency: 7, mode: shadow }
END
answers 0 '● per-ip                   key 192.0.2.7
    100/1s                       ███████████████████▊ 99 of 100 left, all again in 10ms
● search                   guard: 0 of 5 at work, user ann, class gold, priority 3
○ extras                   guard, does not apply: uri is /search/x, and it is for uri /extras
● watched                  guard: 0 of 7 at work  in shadow: counts only

allowed; the tightest is per-ip: 99 of 100 left
entering: allowed' \
    explain --rules guards.yaml --now 1000000000 ip=192.0.2.7 uri=/search/x account=ann plan=gold
says 0 'left out, since they do not apply: 0 of the rules, 1 of the guards' \
    explain --rules guards.yaml --applying ip=192.0.2.7 uri=/search/x
json 0 '[g["guard"] for g in x["guards"]] == ["search", "extras", "watched"]' \
    explain --json --rules guards.yaml uri=/extras
json 0 '[g["why"] for g in x["guards"]] == ["unmatched", "applies", "applies"]' \
    explain --json --rules guards.yaml uri=/extras
json 0 'x["guards"][0]["class"] == "free" and x["guards"][0]["priority"] == 3' \
    explain --json --rules guards.yaml uri=/search/a
json 0 'not x["guards"][0]["refuses"] and x["guards"][0]["limit"] == 5' \
    explain --json --rules guards.yaml uri=/search/a
json 0 'x["enter"] == {"allowed": True, "guard": None, "reason": "granted"}' \
    explain --json --rules guards.yaml uri=/extras
says 0 'guard: 0 of 7 at work' explain --rules guards.yaml --table table uri=/x
"$weir" table --json table >out
if grep -q 'watched' out; then fail 'explain has made something in the table'; else pass; fi

# --------------------------------------------------------- exit codes ----

says 2 'no server at 127.0.0.1:1; start one: weir serve; or say where: --server' \
    explain --server 127.0.0.1:1 ip=::1
says 2 "'ip' is not an attribute: write name=value, as in ip=192.0.2.7" explain $at ip
says 2 'not-there' explain --rules not-there
says 2 'not-there' explain $at --table not-there
says 2 'too short to be a table' explain $at --table rules.yaml
printf 'version: 1\nmode: of\n' >bad.yaml
says 2 "did you mean 'off'?" explain --rules bad.yaml

finish
