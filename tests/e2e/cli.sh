#!/bin/sh
# cli.sh WEIR VECTORS -- the weir command as people and scripts meet it: exit codes, answers,
# errors, processes side by side.
. "${0%/*}/harness.sh"

weir=$(program "$1")
vectors=$(program "$2")
cd "$dir"

# run WORD... -- the vector runner is a program of its own
run() {
    if [ "${1-}" = vectors ]; then
        shift
        run_program "$vectors" "$@"
    else
        run_program "$weir" "$@"
    fi
}

# field NAME -- of the JSON object in the file out
field() {
    python3 - "$1" 2>/dev/null <<'PY' || echo 'no JSON'
import json, sys
print(json.dumps(json.load(open("out"))[sys.argv[1]]))
PY
}

# ------------------------------------------------------------------ take ----

minute="--table t --limit 3/1m"
answers 0 'granted, 2 of 3 left' take $minute --now 100s alice
answers 0 'granted, 1 of 3 left' take $minute --now 100s alice
answers 0 'granted, 0 of 3 left' take $minute --now 100s alice
answers 1 'refused, retry in 20s' take $minute --now 100s alice
answers 1 'refused, retry in 14.8s' take $minute --now 105.2s alice
answers 0 'granted, 2 of 3 left' take $minute --now 100s bob
answers 0 'granted, 0 of 3 left' take $minute --now 120s alice
answers 1 'refused for ever: 4 is more than the 3 that can pass at once' \
    take $minute --now 100s --cost 4 bob
answers 0 '' take $minute --now 100s --quiet bob
answers 0 '' take $minute --now 100s -q bob
answers 1 '' take $minute --now 100s -q bob
answers 0 'granted, 2 of 3 left' take --now=100s --table=t --limit=3/1m -- -key
answers 0 'granted, 3 of 3 left' take $minute --now 100s --cost 0 carol
answers 0 'granted, 2 of 3 left' take $minute --now 100s 'a key with spaces, and "quotes"'
answers 0 'granted, 2 of 3 left' take $minute --now 100s ''

# Every algorithm by its name.
for algorithm in $("$weir" limits | cut -d ' ' -f 1); do
    limit=10/1s
    [ "$algorithm" != calendar ] || limit=10/day
    run take --table t --limit $limit --algorithm "$algorithm" --now 100s --wait 1h key
    is "$algorithm: code" "$code" 0
    has "$algorithm: $out" "$out" granted
done

# ------------------------------------------------------------------ JSON ----

run take --table t --limit 2/1m --name json --now 100s --json key
is 'json: code' "$code" 0
granted='"allowed":true,"reason":"granted","limit":2,"remaining":1'
is 'json: all of it' "$out" "{$granted,\"wait_ns\":0,\"retry_ns\":0,\"reset_ns\":30000000000}"
run take --table t --limit 2/1m --name json --now 100s --json --cost 2 key
is 'json: refused' "$code" 1
is 'json: allowed' "$(field allowed)" false
is 'json: reason' "$(field reason)" '"limited"'
is 'json: retry' "$(field retry_ns)" 30000000000
run take --table t --limit 2/1m --name json --now 100s --json --cost 3 key
is 'json: never' "$(field retry_ns)" null
is 'json: too big' "$(field reason)" '"too-big"'
run take --table t --limit 2/1m --name json --now 100s --json --cost 2 --wait forever key
is 'json: wait' "$(field wait_ns)" 30000000000

# --------------------------------------------------------- peek and give ----

five="--table t --limit 5/1m --name five --now 100s"
answers 0 'would be granted, leaving 4 of 5' peek $five key
answers 0 'would be granted, leaving 4 of 5' peek $five key
answers 0 'granted, 0 of 5 left' take $five --cost 5 key
answers 1 'would be refused, retry in 12s' peek $five key
answers 0 'would be granted after 12s, leaving 0 of 5' peek $five --wait 1m key
answers 1 'would be refused, retry in 12s' peek $five key
answers 0 'given back, 2 of 5 left' give $five --cost 2 key
answers 0 'granted, 1 of 5 left' take $five key
answers 0 'given back, 5 of 5 left' give $five --cost 100 key
run give $five --json key
is 'give: json' "$(field remaining)" 5
run take --table t --limit 'warm-up 5/s' --name warm --now 100s key
answers 0 'given back, none left, retry in 320ms' give --table t --name warm --now 100s key

# -------------------------------------------------------------- the wait ----

answers 0 'granted, 0 of 1 left' take --table t --limit 1/20ms slow
began=$(date +%s%N)
run take --table t --limit 1/20ms --wait 5s --json slow
ended=$(date +%s%N)
is 'wait: code' "$code" 0
check "wait: came back too early: $out" test $((ended - began)) -ge "$(field wait_ns)"
answers 0 'granted, 0 of 1 left' take --table t --limit 1/1h hour
run take --table t --limit 1/1h --wait 20ms hour
is 'a wait too short: code' "$code" 1
has 'a wait too short' "$out" 'refused, retry in'
answers 0 'granted, 0 of 1 left' take --table t --limit 1/1h --now 100s then
answers 0 'granted for use in 1h, 0 of 1 left' \
    take --table t --limit 1/1h --now 100s --wait forever then

# ------------------------------------------------------- names and change ----

answers 0 'granted, 1 of 2 left' take --table n --limit 2/1m --now 100s key
answers 0 'granted, 2 of 3 left' take --table n --limit 3/1m --now 100s key
answers 0 'granted, 0 of 2 left' take --table n --limit 2/60 --now 100s key
answers 0 'granted, 6 of 10 left' \
    take --table n --name api --limit 'fixed-window 10/1m' --now 100s --cost 4 key
answers 0 'granted, 0 of 5 left' \
    take --table n --name api --limit 'fixed-window 5/1m' --now 100s key
answers 1 'refused, retry in 20s' take --table n --name api --now 100s key
complains 'there is no limiter' take --table n --name other --now 100s key
complains 'gcra' take --table n --name api --limit 'gcra 5/1m' --now 100s key
answers 0 'granted, 9 of 10 left' \
    take --table n --name log --limit 'sliding-log 10/1m' --now 100s key
answers 0 'granted, 18 of 20 left' \
    take --table n --name log --limit 'sliding-log 20/1m' --now 100s key
answers 0 'granted, 8 of 10 left' \
    take --table n --limit 'sliding-window 10/1m' --now 100s --cost 2 key

# ------------------------------------------------------------- quotas ----

at="--table q --now 1774738800s"
berlin='100/day zone=Europe/Berlin'
answers 0 'granted, 60 of 100 left' take $at --limit 100/day --cost 40 key
answers 0 'granted, 40 of 100 left' take $at --limit "$berlin" --cost 60 key
answers 1 'refused, retry in 23h' take $at --limit "$berlin" --cost 60 key
answers 1 'refused, retry in 1h' take $at --limit 100/day --cost 61 key
complains "did you mean 'Europe/Berlin'?" take --table q --limit '100/day zone=Europe/Berlim' key
complains 'write 100/1d for 24 hours, or leave out gcra' take --table q --limit 'gcra 100/day' key
complains 'calendar counts by day, week or month' \
    take --table q --limit 100/60 --algorithm calendar key
run table q --now 1774738800s
has 'quotas: table' "$out" 'calendar 100/day zone=Europe/Berlin'

# ------------------------------------------------------------- the table ----

run table n --now 100s
is 'table: code' "$code" 0
has 'table: limiters' "$out" 'fixed-window 5/1m'
has 'table: bytes a key' "$out" '39.0 bytes a key'
run table n --now 100s --json
is 'table: keys' "$(field keys)" 5
is 'table: live' "$(field live)" 5
is 'table: evicted' "$(field evicted_early)" 0
is 'table: recovered' "$(field recovered)" 0
is 'table: path' "$(field path)" '"n"'
is 'table: limiters' "$(field limiters | grep -o '"name"' | wc -l)" 5
run table n --json --now 10000s
is 'table: live later' "$(field live)" 0
"$weir" take --table small --keys 100 --limit 1/1h --now 1s a >out
run table small --json
has 'table: --keys' "$(field slots)" 256

# -------------------------------------------------------- many processes ----

# twenty LIMIT NAME -- how many of twenty processes at once are granted; the first ones also race to
# make the table
twenty() {
    rm -f granted
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        { "$weir" take --table "$2" --limit "$1" --now 1000s -q key && echo "$i" >>granted; } &
    done
    wait
    wc -l <granted | tr -d ' '
}

is 'twenty processes, token-bucket' "$(twenty 10/1h race1)" 10
is 'twenty processes, gcra' "$(twenty 'gcra 10/1h' race2)" 10
is 'twenty processes, sliding-log' "$(twenty 'sliding-log 10/1h' race3)" 10
is 'twenty processes, fixed-window' "$(twenty 'fixed-window 10/1h' race4)" 10

# --------------------------------------------------------------- vectors ----

cat >good.vec <<'END'
# one that holds
case a
limit gcra 1/1s burst 2
at 0s take 2 -> ok remaining 0
at 0s take 1 -> no retry 1s
case b
limit sliding-log 3/1s
at 0s take 1 wait-max forever -> ok wait ~5us
END
cat >bad.vec <<'END'
case a
limit gcra 1/1s burst 2
at 0s take 1 -> ok remaining 0
at 0s take 1 -> ok remaining 0
case b
limit gcra 1/1s
at 0s take 1 -> ok
END
printf 'case a\nlimit gcra 1/1s\nat 0s grab 1 -> ok\n' >malformed.vec
answers 0 '6 passed, 0 failed' vectors --door all good.vec
run vectors --door all bad.vec
is 'vectors: code of a failure' "$code" 1
is 'vectors: every door fails alike' "$(grep -c '^bad.vec:3: expected .* got ' out)" 3
is 'vectors: last line' "$(tail -n 1 out)" '3 passed, 3 failed'
run vectors malformed.vec missing.vec good.vec
is 'vectors: code of a malformed file' "$code" 2
has 'vectors: where it is malformed' "$err" 'malformed.vec:3:7: expected take, peek, give or change'
has 'vectors: a missing file' "$err" 'missing.vec'
is 'vectors: the others are still checked' "$out" '2 passed, 0 failed'
complains 'which files' vectors
complains 'step, table, shm' vectors --door window good.vec
is 'vectors: nothing is left behind' "$(ls | grep -c weir-vectors || true)" 0

# -------------------------------------------------------- demo and lists ----

run demo
is 'demo: code' "$code" 0
is 'demo: widest line fits' "$(LC_ALL=C.UTF-8 grep -c '.\{101\}' out || true)" 0
is 'demo: no colours in a pipe' "$(grep -c "$(printf '\033')" out || true)" 0
run demo --csv
is 'demo: csv' "$(head -n 1 out)" 'algorithm,time_ms,offered,admitted,waited'
is 'demo: csv has all but one' "$(tail -n +2 out | cut -d , -f 1 | uniq)" \
    "$("$weir" limits | cut -d ' ' -f 1 | grep -v calendar)"
is 'demo: nobody is let in twice' \
    "$(python3 -c '
import csv
total = {}
for row in csv.DictReader(open("out")):
    t = total.setdefault(row["algorithm"], [0, 0, 0])
    for i, name in enumerate(("offered", "admitted", "waited")):
        t[i] += int(row[name])
right = all(o >= a >= w >= 0 and a > 0 for o, a, w in total.values())
print(right and len({t[0] for t in total.values()}) == 1)')" True
run limits
is 'limits: how many' "$(wc -l <out | tr -d ' ')" 9
run limits --json
is 'limits: json' "$(printf '%s' "$out" | python3 -m json.tool >/dev/null && echo good)" good

# ------------------------------------------------------------------ help ----

run --version
has 'version' "$out" 'weir 0.'
run --help
is 'help: code' "$code" 0
answers 0 "$("$weir" take --help)" take -h
has 'take makes a table' "$("$weir" take --help)" 'created if missing'
for command in peek give; do
    has "$command makes none" "$("$weir" "$command" --help)" 'The table file must exist'
    complains 'No such file or directory; weir take --limit TEXT creates it' \
        "$command" --table not-there --limit 3/1m key
    is "$command: none was made" "$(ls not-there 2>/dev/null)" ''
done

# a moment as people write it, and as a number
"$weir" take --table moments --limit 1/1h --now 2026-11-30T23:59:59Z key >out
answers 1 'refused, retry in 59m 59s' take --table moments --limit 1/1h --now 1796083200 key
answers 1 'refused, retry in 59m 59s' \
    take --table moments --limit 1/1h --now 2026-12-01T01:00:00+01:00 key
complains "'2026-02-30' is not a time; write seconds since 1970, or 2026-11-30T23:59:59Z" \
    take --table moments --limit 1/1h --now 2026-02-30 key

# ---------------------------------------------------------------- errors ----

complains 'see: weir --help'
complains "no command 'tkae'; did you mean 'take'?" tkae
complains "no command 'ruls'; did you mean 'rules'?" ruls
complains 'missing: get [VERSION] | set FILE |' fleet rules
complains 'missing: NAME -- COMMAND...; usage' fleet lock
complains 'missing: -- COMMAND...; usage' run --guard a
export WEIR_REDIS=redis://127.0.0.1:1
complains 'Redis does not answer' take --limit 3/1m key
export WEIR_REDIS=
complains 'where is Redis? write --redis URL, or set WEIR_REDIS' fleet history
complains '--table FILE or --redis URL is missing' take --limit 3/1m key
unset WEIR_REDIS
complains "no command 'xyzzy'; see: weir --help" xyzzy
complains "did you mean '--version'?" --verison
complains 'no option --limt; did you mean --limit?' take --limt 3/1m key
complains 'no option --wait' give $minute --wait 5s key
complains 'no option -x' take -x key
complains '--table FILE or --redis URL is missing' take --limit 3/1m key
complains '--limit TEXT is missing' take --table t key
complains 'KEY is missing' take $minute
complains 'one KEY' take $minute a b
complains '--limit is given twice' take $minute --limit 4/1m key
complains '--table needs a value' take --table
complains '--json takes no value' take --json=yes $minute key
complains '--cost must be a whole number, at least 0' take $minute --cost -1 key
complains '--cost must be a whole number, at least 1' give $minute --cost 0 key
complains '--keys must be a whole number, at least 1' take $minute --keys many key
complains "did you mean 'gcra'" take $minute --algorithm gcr key
complains '--limit says gcra and --algorithm says smooth' \
    take --table t --limit 'gcra 3/1m' --algorithm smooth key
complains '--wait: ' take $minute --wait soon key
complains '--now: ' take $minute --now 5x key
complains '--table: ' take --table no/such/place --limit 3/1m key
complains '--table: ' take --table "$dir" --limit 3/1m key
echo 'this is text, and no table at all' >text
complains 'text' take --table text --limit 3/1m key
complains 'no/such/place' table no/such/place
complains 'text' table text
complains 'missing: FILE; usage: weir table' table
complains 'takes no words' demo now
complains 'limit' take --table t --limit 'gcra 3/1m buckets=5' key
complains 'give it one with --name' \
    take --table t --limit 'leaky-bucket 1000000000/86399s burst 1000000000 queue 1000000000' key
complains 'a name has 1 to 63 bytes' take $minute --name "$(printf '%064d' 0)" key
complains 'a name has 1 to 63 bytes' take $minute --name '' key

run take --table t --limit '10/1x' key
has 'which command' "$err" 'weir take: '
is 'a caret under the column' "$(tail -n +2 err)" "$(printf '    10/1x\n        ^')"

if [ -w /dev/full ]; then
    code=0
    "$weir" limits >/dev/full 2>err || code=$?
    is 'an answer that cannot be written' "$code" 2
fi

finish
