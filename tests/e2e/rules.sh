#!/bin/sh
# rules.sh WEIR SOURCE_ROOT -- weir rules check, diff and schema, over the files in tests/rules:
#     good/    are right
#     report/  are wrong; beside each, the whole of what check says (single problems: wrong.txt)
. "${0%/*}/harness.sh"

weir=$(program "$1")
root=$(cd "$2" && pwd)
rules=$root/tests/rules

# ------------------------------------------------------------------ check

cd "$rules/good"
for file in *.yaml; do
    says 0 "$file: " rules check "$file"
done
run rules check everything.yaml smallest.yaml
is "two files" "$code $out" "0 everything.yaml: 5 rules, 8 limits, 0 guards, 9 list entries
smallest.yaml: 0 rules, 0 limits, 0 guards, 0 list entries"

cd "$rules/report"
for file in *.yaml; do
    answers 1 "$(cat "${file%.yaml}.out")" rules check "$file"
done

cd "$rules"
says 1 'good/readme.yaml: 3 rules' rules check report/version.yaml good/readme.yaml
says 2 'No such file' rules check good/readme.yaml not-there.yaml
says 2 'good/readme.yaml: 3 rules' rules check not-there.yaml good/readme.yaml
says 2 'Is a directory' rules check good
says 2 'missing: FILE...; usage: weir rules check' rules check
says 2 "there is no option --jsno; did you mean --json?" rules check --jsno x
right='{"file":"good/json.yaml","problems":[],"ok":true,"rules":1,'
right=$right'"limits":1,"guards":0,"entries":1}'
problem='"line":1,"column":10,"text":"version '"'2'"' is not known; this Weir reads version: 1",'
problem=$problem'"source":"version: 2","caret":9'
version='{"file":"report/version.yaml","problems":[{'$problem'}],"ok":false}'
answers 0 "[$right]" rules check --json good/json.yaml
answers 1 "[$version,$right]" rules check --json report/version.yaml good/json.yaml
run rules check --json good/*.yaml report/*.yaml
check "--json of all files is JSON" \
    python3 -c 'import json, sys; sys.exit(len(json.load(open(sys.argv[1]))) < 10)' "$dir/out"

# what is right by the letter, and matches nothing
cat >"$dir/doubts.yaml" <<'END'
version: 1
rules:
  - { name: a, match: { method: [post, PUT] }, key: "{acount}:{ip/24}", limit: 5/1m }
  - { name: b, match: { ipp: 10.0.0.0/8, port: 80, header.x-url: a }, limit: 5/1m }
lists: { deny: { acount: ann } }
END
cd "$dir"
run rules check doubts.yaml
is "warnings are no mistakes" \
    "$code $out" "0 doubts.yaml: 2 rules, 2 limits, 0 guards, 1 list entry"
is "warnings" "$err" "doubts.yaml:3:5: warning: attribute 'acount'; did you mean account?
doubts.yaml:4:25: warning: attribute 'ipp'; did you mean ip?
doubts.yaml:4:25: warning: '10.0.0.0/8' is compared as text; only ip and names ending in .ip are addresses
doubts.yaml:5:18: warning: attribute 'acount'; did you mean account?"
cat >"$dir/one-key.yaml" <<'END'
version: 1
rules:
  - { name: a, key: "{account|nobody}", limit: 5/1m }
  - { name: b, key: "{ip}:{account|nobody}", limit: 5/1m }
  - { name: c, match: { account: "*" }, key: "{account|nobody}", limit: 3/1m }
  - { name: d, key: "{header.x-key|none}", limit: 5/1m }
  - { name: e, key: "{account}", limit: 5/1m }
END
run rules check one-key.yaml
is "a key that is one for all clients of a proxy" "$code $err" "0 one-key.yaml:3:5: warning: all \
requests without account share one key, 'nobody': behind nginx or forward auth, which give none, \
that is everybody; write {ip}:{account|nobody} to tell them apart"
run rules check "$root/examples/rules.yaml"
is "no warnings in the example" "$code $err" "0 "
cat >"$dir/foreign.yaml" <<'END'
version: 1
rules:
  - { name: a, match: { path: /x, User-Agent: "*bot*" }, key: "{remote_addr}", limit: 5/1m }
  - { name: b, match: { account: { list: vips } }, key: "{http_referer}", limit: 5/1m,
      ban: { refusals: 5/1m, for: 15 } }
  - { name: c, match: { x-team: a, Header.X-Plan: b }, key: "{client.ip}", limit: 5/1m,
      ban: { refusals: 5/1m, for: 1m } }
lists:
  denied: { ip: 192.0.2.1, account: ann }
  whitelist: { ip: 192.0.2.2 }
  office: { ip: 192.0.2.3 }
  vips: { account: ann, ip: 192.0.2.4 }
  deny: { client_ip: 192.0.2.5 }
END
run rules check foreign.yaml
is "names that others have" "$code $err" "0 foreign.yaml:3:25: warning: attribute 'path'; \
did you mean uri?
foreign.yaml:3:35: warning: attribute 'User-Agent'; did you mean header.user-agent?
foreign.yaml:3:5: warning: attribute 'remote_addr'; did you mean ip?
foreign.yaml:4:5: warning: the ban is for 15 seconds; write the unit: for: 15s, or for: 15m for \
minutes
foreign.yaml:4:5: warning: attribute 'http_referer'; did you mean header.referer?
foreign.yaml:6:25: warning: attribute 'x-team'; did you mean header.x-team?
foreign.yaml:6:36: warning: attribute 'Header.X-Plan'; did you mean header.X-Plan?
foreign.yaml:9:13: warning: no rule names the list 'denied', so it does nothing; did you mean deny?
foreign.yaml:10:16: warning: no rule names the list 'whitelist', so it does nothing; \
did you mean allow?
foreign.yaml:11:13: warning: no rule names the list 'office', so it does nothing
foreign.yaml:13:11: warning: attribute 'client_ip'; did you mean ip?"
cat >"$dir/long.yaml" <<'END'
version: 1
rules:
  - { name: a, key: "{ip}", limit: [sliding-window 5/1m buckets=8000,
      sliding-window 9/1d buckets=1000] }
  - { name: b, limit: sliding-window 5/1m buckets=8000 }
END
run rules check long.yaml
is "long windows of many keys" "$err" "long.yaml:3:5: warning: 8000 buckets are 31 KiB for each \
key, taken from other windows; write 1000 or fewer"
cat >"$dir/protect.yaml" <<'END'
version: 1
rules:
  - { name: a, match: { uri: /login }, key: "{account|nobody}", limit: 5/1m, ban: &ban {
      refusals: 5/1m, for: 1m } }
  - { name: b, match: { uri: [/x, "/Admin/**"] }, limit: 5/1m }
  - { name: c, match: { uri: /login }, paths: loose, key: "{account}", limit: 5/1m, ban: *ban }
  - { name: d, match: { uri: /login }, paths: strict, limit: 5/1m }
END
run rules check protect.yaml
shared="the key has a default, 'nobody': all requests without the attribute share it, \
and one client's refusals ban them all"
spelling="matches only as written, and other spellings of it (capitals, / or ;x at the end) \
pass by; write paths: loose, or paths: strict if that is meant"
is "rules that look like protection" "$err" "protect.yaml:3:5: warning: $shared
protect.yaml:3:25: warning: '/login' $spelling
protect.yaml:5:25: warning: '/Admin/' $spelling"
printf 'version: 1\nrules:\n  - { name: a, limit: 5/1m, across: fleet, within: 5s }\n' \
    >"$dir/across.yaml"
run rules check across.yaml
is "a rule that needs a fleet" "$code $err" "0 across.yaml:3:5: warning: while the fleet is slow to \
answer, each request is held for up to 5s; write a shorter within, after which when_alone decides
across.yaml:3:5: warning: across: fleet needs weir serve --fleet, or weir_fleet in nginx; \
elsewhere the rule counts on its host alone"
printf 'version: 1\nrules:\n  - { name: a, limit: 5/1m, keys: 100 }\n' >"$dir/keys.yaml"
run rules check keys.yaml
is "a word that does nothing" "$code $err" "0 keys.yaml:3:5: warning: keys has no effect: \
all rules share the table; leave it out, and choose the table's size with weir serve --keys"
cat >"$dir/guards.yaml" <<'END'
version: 1
guards:
  - { name: a, concurrency: { max: 5, key: "{ip}", total: 5 } }
  - { name: b, concurrency: { max: 5, key: "{ip}", total: 6 }, breaker: { slow: 60s } }
  - { name: c, concurrency: 16384, breaker: { slow: 60s }, lease: 61s }
  - { name: d, breaker: { slow: 500 } }
  - { name: e, breaker: { errors: 3 } }
  - { name: f, concurrency: 4, breaker: { errors: 3, slow: 1s, min_calls: 5 } }
  - { name: g, breaker: { errors: 3, calls: 10 } }
  - { name: h, concurrency: 8, breaker: { errors: 20, slow: 1s } }
END
run rules check guards.yaml
is "guards that do nothing" "$code $err" "0 guards.yaml:3:5: warning: the key has no effect: \
one key may have all 5 permits; write a larger total, or a smaller max
guards.yaml:4:5: warning: work never becomes slow: its permit is taken back first; \
write a lease that is longer than slow
guards.yaml:6:5: warning: slow is 500 seconds; write the unit: slow: 500s, or slow: 500ms for \
milliseconds
guards.yaml:7:5: warning: errors: 3 waits for min_calls, which is 20 unless written; write \
min_calls: 3
guards.yaml:9:5: warning: errors: 3 waits for min_calls, which is 10 unless written; write \
min_calls: 3
guards.yaml:10:5: warning: the breaker sees no hang: 8 calls can hang at once, and it waits for \
min_calls, which is 20 unless written; write min_calls: 8
guards.yaml: warning: guards and no rules: work that enters and exits is guarded (the nginx module \
does both, and so do enter and exit at the server); a check or forward auth looks at rules only"
cat >"$dir/never.yaml" <<'END'
version: 1
rules:
  - { name: a, match: { uri: /x }, not: { uri: "/**" }, limit: 5/1m }
  - { name: b, match: { uri: [/x, "/y/**"], method: [PSOT, propfind] }, not: { uri: /x },
      limit: 5/1m }
  - { name: c, match: { ip: { list: office } }, limit: 5/1m }
  - { name: d, match: { ip: [{ list: office }, 192.0.2.1] }, not: { ip: { list: office } },
      limit: 5/1m }
  - { name: e, match: { ip: [10.0.0.0/8, 2001:db8::1] }, not: { ip: [10.0.0.0/7, 2001:db8::/32] },
      limit: 5/1m }
  - { name: f, match: { ip: 10.0.0.0/8 }, not: { ip: 10.0.0.0/9 }, limit: 5/1m }
  - { name: g, match: { user: ann }, not: { user: "*" }, limit: 5/1m }
  - { name: h, match: { uri: /x, method: PUT }, not: { uri: /x }, paths: loose, limit: 5/1m }
guards:
  - { name: i, match: { method: GETT }, concurrency: 5 }
  - { name: j, match: { uri: "/x/y/**" }, not: { uri: "/x/**" }, concurrency: 5 }
lists: { office: { ip: [], user: [ann] } }
END
run rules check never.yaml
none="no request can match: all that this names is under not as well"
is "rules that match nothing" "$code $err" "0 never.yaml:3:25: warning: $none
never.yaml:4:45: warning: method 'PSOT'; did you mean POST?
never.yaml:6:25: warning: the list 'office' has no entry of ip, so no request matches until one is \
added
never.yaml:9:25: warning: $none
never.yaml:12:25: warning: $none
never.yaml:15:25: warning: method 'GETT'; did you mean GET?
never.yaml:16:25: warning: $none"
cat >"$dir/syntax.yaml" <<'END'
version: 1
rules:
  - { name: a, match: { uri: "/v[0-9]+/x" }, limit: 5/1m }
  - { name: b, match: { uri: "/users/:id/x" }, limit: 5/1m }
  - { name: c, match: { uri: "/users/{id}" }, limit: 5/1m }
  - { name: d, match: { uri: [/, /api/, "/v1/*"] }, limit: 5/1m }
  - { name: e, match: { uri: [{ exact: /api/ }, { glob: "/v/*" }, { exact: "/(b)" }] }, limit: 1/s }
  - { name: f, match: { uri: { prefix: "/api/*" } }, limit: 5/1m }
  - { name: g, match: { method: "GET, POST" }, limit: 5/1m }
  - { name: h, match: { method: "!GET" }, limit: 5/1m }
  - { name: i, match: { method: any }, limit: 5/1m }
  - { name: j, match: { header.user-agent: bot }, limit: 5/1m }
  - { name: k, match: { header.user-agent: [curl/8.0, { exact: bot }] }, limit: 5/1m }
END
run rules check syntax.yaml
stands="is compared as it stands"
part="a part such as :id, {id} or <id> $stands; write * for any one part of a path, and a list [/a, /b] \
for several paths"
is "patterns of others" "$code $err" "0 syntax.yaml:3:25: warning: '/v[0-9]+/x' is not a regular \
expression: all but * and ? $stands; write each path, as in [/a, /b], and * for any one part
syntax.yaml:4:25: warning: '/users/:id/x': $part
syntax.yaml:5:25: warning: '/users/{id}': $part
syntax.yaml:6:25: warning: '/' is the first page alone; leave out uri for all paths, or write \
{ exact: / } if that is meant
syntax.yaml:6:25: warning: '/api/' is that page alone; write \"/api/**\" for all below it, or \
{ exact: /api/ } if that is meant
syntax.yaml:6:25: warning: '/v1/*' goes one part deep; write \"/v1/**\" for all below it, or \
{ glob: \"/v1/*\" } if that is meant
syntax.yaml:8:25: warning: the * in the prefix '/api/*' $stands; write a glob
syntax.yaml:9:25: warning: no request has the method 'GET, POST'; write a list for several: \
[GET, POST]
syntax.yaml:10:25: warning: no request has the method '!GET'; for all others write not: \
{ method: GET }
syntax.yaml:11:25: warning: no request has the method 'any'; leave out method for all
syntax.yaml:12:25: warning: only a client that says nothing but 'bot' matches; write \"*bot*\" for \
all that have it in their text"
cat >"$dir/expressions.yaml" <<'END'
version: 1
rules:
  - { name: a, match: { uri: ["/users/.*", "/v/.+", "/users/<id>", "/api*"] }, limit: 5/1m }
  - { name: b, match: { header.user-agent: [".*bot.*", "curl|wget"] }, limit: 5/1m }
  - { name: c, match: { host: "(www|m).shop.example", header.x-a: "^a" }, limit: 5/1m }
  - { name: d, match: { uri: [/report-*, "/x.*", { glob: "/a*" }], host: "10.0.*" }, limit: 5/1m }
  - { name: e, match: { header.user-agent: ["curl/7.*", "*(X11; *"] }, limit: 5/1m }
END
run rules check expressions.yaml
several="all but * and ? $stands; write a list for several, and * for any text"
is "expressions of others" "$code $err" "0 expressions.yaml:3:25: warning: '/users/.*' is not a \
regular expression: all but * and ? $stands; write each path, as in [/a, /b], and * for any one part
expressions.yaml:3:25: warning: '/v/.+' is not a \
regular expression: all but * and ? $stands; write each path, as in [/a, /b], and * for any one part
expressions.yaml:3:25: warning: '/users/<id>': $part
expressions.yaml:3:25: warning: '/api*' has nothing below it: * stays within one part; write \
\"/api/**\" for that, or { glob: \"/api*\" } if that is meant
expressions.yaml:4:25: warning: '.*bot.*' is not a regular expression: $several
expressions.yaml:4:25: warning: 'curl|wget' is not a regular expression: $several
expressions.yaml:5:25: warning: '(www|m).shop.example' is not a regular expression: $several
expressions.yaml:5:55: warning: '^a' is not a regular expression: $several"
cat >"$dir/apart.yaml" <<'END'
version: 1
rules:
  - { name: a, limit: 5/1m, ban: &ban { refusals: 5/1m, for: 1m } }
  - { name: b, key: "{host}:{uri}", match: { uri: /x }, limit: 5/1m, ban: *ban }
  - { name: c, key: "{host}:{ip}", limit: 5/1m, ban: *ban }
  - { name: d, key: "{cookie.sid}:{ip}:{arg.x|-}", limit: 5/1m }
  - { name: e, match: { cookie.sid: "*" }, key: "{cookie.sid}", limit: 5/1m }
  - { name: f, match: { args.x: a, cookies.x: b }, key: "{ip}:{status}", limit: 5/1m }
lists:
  allow: { header.user-agent: [ann's agent], header.x-key: [k], uri: [/health] }
END
run rules check apart.yaml
apart="nothing in the key tells clients apart: one client's refusals ban them all; \
write key: \"{ip}\""
free="each time is never limited: each is a key of its own; leave it out of the key, or name its \
values in match"
is "clients that nothing tells apart" "$code $err" "0 apart.yaml:3:5: warning: $apart
apart.yaml:4:5: warning: $apart
apart.yaml:6:5: warning: a client that sends another cookie.sid $free
apart.yaml:6:5: warning: a client that sends another arg.x $free
apart.yaml:8:25: warning: attribute 'args.x'; did you mean arg.NAME?
apart.yaml:8:36: warning: attribute 'cookies.x'; did you mean cookie.NAME?
apart.yaml:8:5: warning: a request has no status before it is answered: this matches lines of a \
log (weir replay), and asks that give a status themselves
apart.yaml:10:12: warning: any client can send this header.user-agent, and then no rule limits it"
cat >"$dir/before.yaml" <<'END'
version: 1
rules:
  - { name: a, match: { ip: [10.1.0.0/16, 10.2.0.1] }, key: "{ip}", limit: 5/1m }
  - { name: b, match: { account: [eve, ann] }, key: "{ip}", limit: 5/1m }
  - { name: c, match: { account: eve }, key: "{ip}", limit: 4/1m }
  - { name: d, match: { ip: 0.0.0.0/0 }, key: "{ip}", limit: 5/1m }
  - { name: e, match: { scheme: HTTPS, header.content-type: application/json }, limit: 5/1m }
  - { name: f, match: { scheme: https, header.content-type: "text/*" }, limit: 5/1m }
  - { name: g, key: "{ip}", limit: 500/1m, cost: "{byte}",
      ban: { refusals: 5/1m, for: 1m, longest: 1d } }
  - { name: h, match: { uri: /health }, paths: loose, key: "{ip}", limit: 5/1m } # /HEALTH comes
lists: { allow: { ip: 10.0.0.0/8, uri: /health }, deny: { account: eve } }
END
run rules check before.yaml
comes="no request comes here: all that this names is under"
is "what lists decide, and values that are longer" "$code $err" "0 before.yaml:3:25: warning: \
$comes allow, before rules
before.yaml:5:25: warning: $comes deny, before rules
before.yaml:6:25: warning: 0.0.0.0/0 is one kind of address, and clients have the other; leave out \
ip for all
before.yaml:7:25: warning: no request has the scheme 'HTTPS'; write http or https
before.yaml:7:40: warning: only a header.content-type that is nothing but 'application/json' \
matches, and most say more; write \"*application/json*\"
before.yaml:9:5: warning: longest has no effect without escalate: each ban is as long as the last
before.yaml:9:5: warning: attribute 'byte'; did you mean bytes?"
cat >"$dir/keys.yaml" <<'END'
version: 1
mode: shadow
rules:
  - { name: a, key: "{ip}:{uri}", limit: 5/1m }
  - { name: b, match: { uri: "/**" }, key: "{ip}:{uri}", limit: 4/1m, mode: enforce }
  - { name: c, key: "{header.x-key}", limit: 5/1m, mode: "off" }
  - { name: d, match: { header.x-key: "*" }, key: "{header.x-key}:{org|none}", limit: 5/1m }
  - { name: e, not: { ip: "*" }, key: "{ip}", limit: 5/1m }
  - { name: f, not: { uri: [/x, "/**"] }, key: "{ip}", limit: 5/1m }
  - { name: g, key: "{header.x-forwarded-for|none}", limit: 5/1m }
  - { name: h, key: "{headers.x-team|none}:{header.x_team|none}:{http_x_team}", limit: 5/1m }
  - { name: i, match: { status: "401" }, key: "{ip}", limit: 5/1m }
  - { name: j, key: "{ip}", cost: 0, limit: 5/1m }
  - { name: k, key: "{ip}", algorithm: sliding-window, limit: 100/day }
  - { name: l, key: "{ip}", algorithm: sliding-window, limit: [100/day, 9/1m] }
  - { name: m, key: "{{}}{ip}", limit: 5/1m }
END
run rules check keys.yaml
is "keys that a client chooses, and rules that do nothing" "$code $err" "0 keys.yaml:4:5: warning: \
a client that sends another uri each time is never limited: each is a key of its own; leave it out \
of the key, or name its values in match
keys.yaml:5:5: warning: mode: enforce has no effect: the file says shadow, and the milder of the \
two counts
keys.yaml:6:5: warning: a request without header.x-key is not limited; write {header.x-key|none}, \
or match: { header.x-key: \"*\" } if that is meant
keys.yaml:8:5: warning: no request can match: its key needs ip, and every ip is under not
keys.yaml:9:23: warning: every request that has a path is under not
keys.yaml:10:5: warning: attribute 'header.x-forwarded-for'; did you mean ip?
keys.yaml:11:5: warning: attribute 'headers.x-team'; did you mean header.x-team?
keys.yaml:11:5: warning: attribute 'header.x_team'; did you mean header.x-team?
keys.yaml:11:5: warning: attribute 'http_x_team'; did you mean header.x-team?
keys.yaml:12:25: warning: a request has no status before it is answered: this matches lines of a \
log (weir replay), and asks that give a status themselves
keys.yaml:13:5: warning: the rule refuses nobody: with cost: 0 a request takes nothing
keys.yaml:14:5: warning: algorithm has no effect: day, week and month are calendar windows; write \
24h, 7d or 30d for another algorithm"
cat >"$dir/tighter.yaml" <<'END'
version: 1
rules:
  - { name: a, key: "{ip}", limit: [5/1m, gcra 6/1m, 7/1h] }
  - { name: b, match: { uri: /x }, key: "{ip}", limit: [100/1m, 99/1s],
      ban: { refusals: 10/1m, for: 1h } }
  - { name: c, match: { uri: /x }, key: "{account}", limit: 100/1m }
  - { name: d, match: { uri: /x }, key: "{account}", limit: sliding-window 100/1m }
  - { name: e, match: { uri: /x }, key: "{account}", limit: sliding-window 101/1m }
  - { name: f, match: { uri: /y }, key: "{account}", limit: sliding-window 101/1m }
  - { name: g, key: "{ip}", limit: 4/1m }
  - { name: h, key: "{ip}", limit: 5/1m, mode: shadow }
lists:
  allow: { ip: [0.0.0.0/0, 10.1.2.3], account: [ann, bob] }
  deny: { ip: [10.0.0.0/8, "::/0"], account: bob }
END
run rules check tighter.yaml
same="applies to the same requests, with the same key, and is as tight or tighter"
is "limits that never refuse" "$code $err" "0 tighter.yaml:3:5: warning: the limit gcra 6/1m never \
refuses: 5/1m is as tight or tighter
tighter.yaml:4:5: warning: it never refuses, and never bans: the rule 'a' $same
tighter.yaml:8:5: warning: it never refuses: the rule 'd' $same
tighter.yaml:13:12: warning: 0.0.0.0/0 is every IPv4 address: no rule limits any
tighter.yaml:13:12: warning: '10.1.2.3' is under deny as well, and deny wins
tighter.yaml:13:39: warning: 'bob' is under deny as well, and deny wins
tighter.yaml:14:11: warning: ::/0 is every IPv6 address: all are refused, for ever"
cat >"$dir/stricter.yaml" <<'END'
version: 1
rules:
  - { name: a, limit: 5/1m, key: "{ip}" }
  - { name: b, limit: 9/1m, key: "{ip}", when_full: closed }
  - { name: c, limit: 5/1m, across: fleet, when_alone: open }
  - { name: d, limit: 9/1m, across: fleet, when_alone: closed }
  - { name: e, limit: 9/1m, across: fleet, when_alone: open }
END
run rules check stricter.yaml
is "limits that refuse when the table is full or Redis away" \
    "$code $(printf '%s' "$err" | grep 'never refuses')" \
    "0 stricter.yaml:7:5: warning: it never refuses: the rule 'c' $same"
cat >"$dir/words.yaml" <<'END'
version: 1
rules:
  - { name: a, match: { uri: [/authors, "/presets/**", /footprint] }, key: "{id}", limit: 5/1m }
  - { name: b, match: { vip: "yes", zip: "1234", cost: high }, key: "{post}", limit: 5/1m }
  - { name: c, match: { uri: /totp }, limit: 5/1m }
  - { name: d, match: { uri: /authorize }, limit: 5/1m }
  - { name: e, match: { uri: /users/reset }, limit: 5/1m }
END
run rules check words.yaml
is "words that are like others" "$code $err" "0 words.yaml:5:25: warning: '/totp' $spelling
words.yaml:6:25: warning: '/authorize' $spelling
words.yaml:7:25: warning: '/users/reset' $spelling"
{
    printf 'version: 1\nrules:\n  - { name: r, limit: 9/s }\nguards:\n'
    printf '  - { name: g0, concurrency: 1, mode: "off" }\n'
    printf '  - { name: g%d, concurrency: 1 }\n' 1 2 3 4 5 6 7 8
} >"$dir/many.yaml"
run rules check many.yaml
is "as many guards as a request can enter" "$code $err" "0 "
printf '  - { name: g9, concurrency: 1, match: { uri: /x } }\n' >>"$dir/many.yaml"
printf '  - { name: g10, concurrency: 1, match: { uri: /y }, mode: shadow }\n' >>"$dir/many.yaml"
run rules check many.yaml
is "guards beside as many as a request can enter" "$code $err" "0 many.yaml:14:5: warning: \
all that it matches is refused: 8 others apply to every request, and a request enters at most 8
many.yaml:15:5: warning: no request enters it: 8 others apply to every request, and a request \
enters at most 8"
printf '  - { name: g11, concurrency: 1 }\n' >>"$dir/many.yaml"
run rules check many.yaml
is "more guards than every request can enter" "$code $out" \
    "1 many.yaml: 9 guards apply to every request, and at most 8 can: all would be refused"
{ # as many limits as can be asked, and rules that others would have to join
    printf 'version: 1\nrules:\n'
    for i in $(seq 64); do
        printf '  - { name: r%d, key: "{ip}", limit: %d/%ds burst %d }\n' "$i" 1 "$i" "$i"
    done
    printf '  - { name: other, key: "{account}", limit: 1/65s burst 65 }\n'
    printf '  - { name: shadow, key: "{ip}", limit: 1/66s burst 66, mode: shadow }\n'
} >"$dir/limits.yaml"
run rules check limits.yaml
is "as many limits as a request can be asked" "$code $err" "0 "
printf '  - { name: x, match: { uri: /x }, key: "{ip}", limit: 1/67s burst 67 }\n' >>"$dir/limits.yaml"
run rules check limits.yaml
is "one more for those of a key" "$code $err" "0 limits.yaml:69:5: warning: with the rules \
before it 65 limits apply to all of its requests, and at most 64 can be asked together: they \
would be refused"
cd "$rules"

# stdin, and a pipe that is named
printf 'version: 1\nmode: of\n' >"$dir/of.yaml"
says 1 "stdin:2:7: unknown mode 'of'; did you mean 'off'?" rules check - <"$dir/of.yaml"

# ------------------------------------------------------------------- diff

cd "$dir"
cat >old.yaml <<'END'
version: 1
rules:
  - name: login
    match: { uri: /login, method: [POST, PUT] }
    key: "{ip}"
    limit: [300/60, 100/5]
    mode: shadow
  - { name: api, key: "{ip}:{account}", limit: 5/1m }
  - { name: all, limit: 5/1m }
  - { name: old, limit: 5/1m, not: { ip: 10.0.0.0/8 } }
  - name: bots
    limit: 5/1m
    match: { org: "*", agent: "bot*" }
    ban: { refusals: 5/m, for: 10m }
lists: { deny: { account: [a, b, c, d] }, office: { ip: [10.0.0.0/8] } }
END
cat >new.yaml <<'END'
version: 1
mode: shadow
rules:
  - { name: all, limit: gcra 5/1m, cost: "{bytes}" }
  - { name: login, match: { uri: /login, method: [POST, DELETE] }, key: "{ip/24}", limit: 400/60 }
  - { name: api, key: "{ip}-{account}", limit: [5/1m, 10/h], keys: 5 }
  - { name: new, match: { uri: "/api/**" }, limit: 5/1m, key: "{ip}" }
  - name: bots
    limit: 5/1m
    match: { agent: ["bot*", curl] }
    not: { ip: 10.0.0.0/8 }
    about: robots
lists: { deny: { account: [b, c, d, e, f, g, h, i], ip: 192.0.2.1 } }
END
answers 1 "the whole file
    mode enforce -> shadow: only counts its refusals
rule all (every request)
    limit 5/1m -> gcra 5/1m: another algorithm: all keys begin fresh
    cost 1 -> {bytes}
    moved from place 3 to place 1
rule login (requests with uri /login and method POST or DELETE)
    mode shadow -> enforce: refuses from now on
    match method also DELETE: the rule is for more requests
    match method no longer PUT: the rule is for fewer requests
    key {ip} -> {ip/24}: all keys begin fresh
    limit 300/1m -> 400/1m
    limit 100/5s is gone
rule api (every request)
    key {ip}:{account} -> {ip}-{account}: keys keep their counts
    limit 10/1h is new: all keys begin fresh in it
rule new (requests with uri /api/...)
    added: 5/1m for each {ip}
rule bots (requests with agent bot... or curl, but not with ip 10.0.0.0/8)
    match org of any value is gone: the rule is for more requests
    match agent also curl: the rule is for more requests
    not ip 10.0.0.0/8 is new: the rule is for fewer requests
    ban for 10m after sliding-window 5/1m refusals, forgotten after 100m -> none: bans in force stay
    about is written anew: for people only
rule old (every request but those with ip 10.0.0.0/8)
    removed: 5/1m for all together: its bans and what its keys have used count no more
list deny
    account: 5 added (e, f, g, ...), 1 removed (a)
    ip: 1 added (192.0.2.1)
list office
    ip: 1 removed (10.0.0.0/8)" rules diff old.yaml new.yaml
answers 0 'no difference' rules diff old.yaml old.yaml
answers 0 '{"changes":[],"same":true}' rules diff --json old.yaml old.yaml
answers 0 'no difference' rules diff "$rules/good/everything.yaml" "$rules/good/everything.yaml"
says 1 '"what":"key","text":"key {ip} -> {ip/24}","effect":"all keys begin fresh"' \
    rules diff --json old.yaml new.yaml
check "diff --json is JSON" \
    python3 -c 'import json; assert not json.load(open("out"))["same"]'
cat >old-guards.yaml <<'END'
version: 1
guards:
  - { name: search, match: { uri: /search }, concurrency: 64, breaker: { errors: 50% } }
  - { name: gone, concurrency: { max: 5, queue: 10 }, mode: shadow }
  - { name: same, adaptive: weir, fallback: { body: sorry } }
END
cat >new-guards.yaml <<'END'
version: 1
guards:
  - name: search
    match: { uri: [/search, /find] }
    concurrency: { max: 128, weights: { gold: 3, free: 1 } }
    breaker: { errors: 10, slow: 500ms, calls: 100, min_calls: 20 }
    class: "{plan|free}"
    lease: 30s
    mode: off
  - { name: same, adaptive: weir, fallback: { body: sorry } }
  - name: new
    adaptive: { p99: 250ms }
    system: { cpu: 85%, mean_time: 1s }
    user: "{account}"
    shed: true
END
answers 1 "guard search (requests with uri /search or /find)
    mode enforce -> off: is not looked at any more
    match uri also /find: the guard is for more requests
    concurrency max 64 -> max 128, weights gold 3 free 1: permits that are out stay out
    breaker errors 50% -> errors 10, slow 500ms, calls 100, min_calls 20
    lease none -> 30s
    class none -> {plan|free}
guard new (every request)
    added: concurrency queue 1024, wait 1s, order priority; adaptive percentile, p99 250ms; \
shed true; system cpu 85%, mean_time 1s; user {account}
guard gone (every request)
    removed: concurrency max 5, queue 10, wait 1s, mode shadow" \
    rules diff old-guards.yaml new-guards.yaml
answers 0 'no difference' rules diff "$rules/good/guards.yaml" "$rules/good/guards.yaml"

# a queue that sheds is compared too, its defaults among the rest
cat >short-queue.yaml <<'END'
version: 1
guards: [{ name: shop, shed: true, concurrency: { max: 5, queue: 20 } }]
END
sed 's/queue: 20/queue: 1024, order: fifo/' short-queue.yaml >long-queue.yaml
answers 1 "guard shop (every request)
    concurrency max 5, queue 20, wait 1s, order priority -> max 5, queue 1024, wait 1s: permits \
that are out stay out" rules diff short-queue.yaml long-queue.yaml

# limits are paired as the engine finds them again: by algorithm and period, then by place
cat >one-limit.yaml <<'END'
version: 1
rules:
  - { name: login, key: "{ip}", limit: [5/1m, 100/1h] }
END
cat >more-limits.yaml <<'END'
version: 1
rules:
  - { name: login, key: "{ip}", limit: [2/1s, 120/1h, 5/1m] }
END
cat >other-order.yaml <<'END'
version: 1
rules:
  - { name: login, key: "{ip}", limit: [100/1h, 5/1m] }
END
answers 1 'rule login (every request)
    limit 2/1s is new: all keys begin fresh in it
    limit 100/1h -> 120/1h: keys keep their counts' rules diff one-limit.yaml more-limits.yaml
answers 0 'no difference' rules diff one-limit.yaml other-order.yaml
says 2 'version' rules diff old.yaml "$rules/report/version.yaml"
says 2 'not-there.yaml: No such file' rules diff old.yaml not-there.yaml
says 2 'missing: OLD NEW; usage: weir rules diff' rules diff old.yaml

# the same however it is written: anchors, quotes, order of keys, the default spelt out
cat >same.yaml <<'END'
lists: { "office": { ip: [ 10.0.0.0/8 ] }, deny: { account: [d, c, b, a] } }
rules:
  - { mode: shadow, limit: [300/1m, 100/5s], key: '{ip}',
      match: { method: [PUT, POST], uri: "/login" }, name: login }
  - { name: api, key: "{ip}:{account}", limit: &five 5/60, mode: enforce, cost: 1 }
  - { name: all, limit: *five }
  - { name: old, limit: *five, not: { ip: 10.0.0.0/8 } }
  - { name: bots, limit: *five, match: { org: "*", agent: { prefix: bot } },
      ban: { refusals: 5/m, for: 600, escalate: 1 } }
version: 1
mode: enforce
END
answers 0 'no difference' rules diff old.yaml same.yaml

# ----------------------------------------------------------------- schema

says 0 '"$schema":"https://json-schema.org/draft/2020-12/schema"' rules schema
says 2 'takes no words' rules schema x
says 2 'rules check' rules
says 0 'rules check' rules --help
says 2 "did you mean 'rules check'?" rules chekc
says 0 'usage: weir rules diff' rules diff --help

finish
