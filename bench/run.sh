#!/bin/sh
# run.sh [BUILD [PART...]] -- all figures, one a line: name<TAB>value<TAB>unit.  The peers run
# beside us.
#
# Parts: decisions (with the peers), keys, rules, logs, replay, serve, redis, nginx, guard (with its
# peers, and docs/guards-figures.md); without any, all.  WEIR_BENCH_KEYS=N stops at N keys (default
# 100000000, which takes 4 GB and some minutes); REPLAY_LINES=N is the length of replay's log.
set -eu
here=$(dirname "$0")
build=${1:-build}
[ $# = 0 ] || shift
parts=${*:-decisions keys rules logs replay serve redis nginx guard}
most=${WEIR_BENCH_KEYS:-100000000}
for part in $parts; do
    case $part in
    decisions | keys | rules | logs | replay | serve | redis | nginx | guard) ;;
    *)
        echo "run.sh: there is no part '$part'; there are decisions, keys, rules, logs, replay, serve, redis, nginx and guard" >&2
        exit 2
        ;;
    esac
done
out=$build/bench-out
mkdir -p "$out"
figures=$out/figures.tsv
: >"$figures"

ask() {
    "$@" | tee -a "$figures"
}

value() {
    awk -F '\t' -v n="$1" '$1 == n { v = $2 } END { print v }' "$figures"
}

# ratio NAME OURS PEER -- how many times cheaper we are
ratio() {
    a=$(value "$2")
    b=$(value "$3")
    if [ -n "$a" ] && [ -n "$b" ]; then
        awk -v n="$1" -v a="$a" -v b="$b" 'BEGIN { printf "%s\t%.3g\ttimes\n", n, b / a }' |
            tee -a "$figures"
    fi
}

# instructions NAME N FUNCTIONS COMMAND... -- instructions of the functions in one turn of COMMAND:
# the difference between 2 N turns and N, by N
instructions() {
    name=$1 n=$2 functions=$3
    shift 3
    command -v valgrind >/dev/null || {
        echo "skipped: $name: no valgrind here" >&2
        return
    }
    toggles=
    for function in $functions; do
        toggles="$toggles --toggle-collect=$function"
    done
    count() {
        # shellcheck disable=SC2086 # several words
        valgrind --tool=callgrind --callgrind-out-file=/dev/null $toggles "$@" 2>&1 |
            sed -n 's/.*Collected : *//p'
    }
    a=$(count "$@" "$n")
    b=$(count "$@" $((2 * n)))
    awk -v m="$name" -v a="$a" -v b="$b" -v n="$n" 'BEGIN { printf "%s\t%.4g\tinstructions\n", m, (b - a) / n }' | tee -a "$figures"
}

decisions() {
    ask "$build/bench/bench-step"
    ask "$build/bench/bench-take" hot
    ask "$build/bench/bench-take" threads
    ask "$here/peers/run.sh" "$out/peers"

    for peer in guava xrate governor mutex; do
        ratio "step.cheaper-than-$peer.granted" step.gcra.granted "peer.$peer.granted"
        ratio "step.cheaper-than-$peer.refused" step.gcra.refused "peer.$peer.refused"
    done
    ratio take.hot.cheaper-than-governor-keyed take.hot.narrow peer.governor.keyed-hot

    instructions take.hot.narrow.instructions 2000 weir_take "$build/bench/bench-take" hot-loop
}

keys() {
    for size in 1000 10000 100000 1000000 10000000 100000000; do
        [ "$size" -le "$most" ] || continue
        ask "$build/bench/bench-take" keys $size narrow
        ask "$build/bench/bench-take" keys $size narrow roomy
        [ "$size" -gt 10000000 ] || ask "$build/bench/bench-take" keys $size wide
    done
    ask "$build/bench/bench-take" full
    ratio keys.narrow.1000000.roomy.cheaper-than-governor-keyed \
        keys.narrow.1000000.roomy.one-by-one peer.governor.keyed-1e6
}

rules() {
    ask "$build/bench/bench-check"
    for what in check mixed; do
        instructions "check.$what.instructions" 2000 weir_check \
            "$build/bench/bench-check" loop $what
    done
    instructions check.three_takes.instructions 2000 weir_take "$build/bench/bench-check" loop takes
    ratio check.instructions-over-takes check.three_takes.instructions check.check.instructions
    ratio check.mixed.instructions-over-check check.check.instructions check.mixed.instructions
    ask "$build/bench/bench-lists"
}

logs() {
    ask "$build/bench/bench-log"
}

replay() {
    ask "$here/replay.sh" "$build"
}

serve() {
    ask "$here/serve/run.py" "$build"
}

redis() {
    ask "$here/redis/run.py" "$build"
}

nginx() {
    ask "$here/nginx.py" "$build"
}

guard() {
    ask "$build/bench/bench-guard" one
    ask "$build/bench/bench-guard" threads
    ask "$here/peers/run.sh" "$out/peers" sentinel resilience4j netflix
    ratio guard.cheaper-than-sentinel guard.everything guard.sentinel.enter-exit
    ratio guard.cheaper-than-resilience4j guard.everything guard.resilience4j.enter-exit
    ratio guard.breaker.cheaper-than-resilience4j guard.breaker guard.resilience4j.enter-exit
    ratio guard.clock.cheaper-than-resilience4j guard.everything.clock guard.resilience4j.clock
    ratio guard.permits.cheaper-than-netflix guard.permits guard.netflix.permits
    ratio guard.clock.cheaper-than-netflix guard.everything.clock guard.netflix.clock
    ratio guard.refused.busy.cheaper-than-netflix guard.refused.busy guard.netflix.busy
    for what in busy open; do
        for peer in sentinel resilience4j; do
            ratio "guard.refused.$what.cheaper-than-$peer" "guard.refused.$what" "guard.$peer.$what"
        done
    done
    instructions guard.everything.instructions 20000 "weir_enter weir_exit" \
        "$build/bench/bench-guard" loop
    ask "$here/guard/run.py" "$build"
    ask "$here/guard/scenarios.py" "$build"
}

for part in $parts; do
    "$part"
done
