#!/bin/sh
# sim.sh WEIR -- weir sim: the list, the tables, the same seed again, drawings, and errors.
. "${0%/*}/harness.sh"

weir=$(program "$1")
verb=sim
cd "$dir"

# --- the list
run
check "weir sim: the list ended with $code" test "$code" -eq 0
check "weir sim: nothing on stderr" test ! -s err
for name in overload-2x overload-10x slows-5x scales-1-to-4 bimodal slow-drift timeouts \
    retry-storm three-priorities two-tenants cold-cache; do
    check "weir sim: $name is not listed" grep -q "^$name " out
done

# --- a table, and the same again
says 0 "ten times as many" overload-10x --controller none,fixed:8,vegas
check "no row of none" grep -q "^  none " out
check "no row of fixed:8" grep -q "^  fixed:8 " out
cp out first
run overload-10x --controller none,fixed:8,vegas
check "the same seed must give the same bytes" cmp first out
run overload-10x --controller none,fixed:8,vegas --seed 2
check "another seed must give others" sh -c '! cmp -s first out'
says 0 "important" three-priorities -c fixed # groups have lines of their own

# --- for programs
says 0 "sim.overload-2x.fixed.goodput	" overload-2x -c fixed --tsv
run two-tenants -c none,fixed --json
cp out first
run two-tenants -c none,fixed --json
check "the same seed must give the same JSON" cmp first out
check "JSON that can be read, and adds up" python3 - out <<'CHECK'
import json, sys
trials = json.load(open(sys.argv[1]))
assert [t["controller"] for t in trials] == ["none", "fixed"]
ends = "ok", "failed", "timed_out", "dropped", "busy", "shed", "open"
for t in trials:
    f = t["all"]
    assert f["requests"] + f["retries"] == sum(f[k] for k in ends)
    assert f["requests"] == f["ok"] + f["lost"]
    assert sum(b["offered"] for b in t["series"]) == f["requests"] and t["permits_left"] == 0
    assert len(t["clients"]) == 2 and t["clients"][0]["class"] == "modest"
CHECK
run overload-2x -c none,fixed --svg drawing.svg
check "a drawing that can be read" \
    python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("drawing.svg")'
cp drawing.svg first
run overload-2x -c none,fixed --svg drawing.svg
check "the same drawing again" cmp first drawing.svg

# --- a file of one's own
cat >mine.yaml <<'MINE'
about: my own
length: 5s
backend: { workers: 2, work: { shape: constant, mean: 10ms } }
clients: [{ rate: 0.5x, arrival: even }]
MINE
says 0 "mine: my own" mine.yaml -c fixed:4
says 0 "100.0%" - -c fixed:4 <mine.yaml

# --- without a target
says 0 "percentile is left out" mine.yaml
says 0 "gradient2" mine.yaml
says 2 "percentile needs a target" mine.yaml -c percentile
cat >wrong.yaml <<'WRONG'
length: 1m
warmup: 2m
backend: { workers: 2, work: 20ms }
clients: [{ rate: 2x }]
WRONG
says 2 "warmup must be from 0s to 1m" wrong.yaml

# --- mistakes
says 2 "did you mean 'overload-10x'" overload-10
says 2 "weir sim lists" nothing-like-it
says 2 "there is no controller 'vegsa'; known are: none, fixed, fixed:N, " overload-2x -c vegsa
says 2 "1 to 16384" overload-2x -c fixed:x
says 2 "not both" overload-2x --json --tsv
says 2 "one scenario" --all --svg x.svg
says 2 "name no others" --all overload-2x
printf 'backend: { workers: 0 }\nclients: [{ rate: 2x }]\n' >wrong.yaml
says 2 "wrong.yaml:1:21:" wrong.yaml
says 2 "workers" wrong.yaml
printf 'lenght: 3s\n' >wrong.yaml
says 2 "did you mean 'length'" wrong.yaml
says 2 "did you mean 'length'" wrong.yaml --svg drawing.svg
check "a mistake leaves the last drawing" cmp first drawing.svg
says 2 "did you mean 'length'" wrong.yaml --svg new.svg
check "and no new one" test ! -e new.svg

finish
