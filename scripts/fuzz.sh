#!/bin/sh
# fuzz.sh [SECONDS [NAME]] -- every fuzzer, or one, for that long, as many at once as there are
# cores, from its corpus in tests/fuzz/corpus and the words of tests/fuzz/NAME.dict if there are
# any.  Findings stay in build/fuzz.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
dir=build/fuzz
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

fuzz() {
    found=$dir/found/$1
    new=$dir/new/$1
    dict=tests/fuzz/$1.dict
    [ -f "$dict" ] || dict=
    mkdir -p "$found" "$new"
    echo "== fuzz $1, $seconds s"
    "$dir/tests/fuzz-$1" -max_total_time="$seconds" -timeout=60 -artifact_prefix="$found/" \
        -print_final_stats=0 -verbosity=0 ${dict:+"-dict=$dict"} "$new" "tests/fuzz/corpus/$1" \
        2>"$found.log" || {
        tail -40 "$found.log"
        echo "$1" >>$dir/failed
    }
}

if [ $# = 2 ]; then
    fuzz "$2"
    exit
fi
[ -f $dir/build.ninja ] || CC=clang meson setup $dir -Dfuzzers=true \
    -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-g1 >/dev/null
scripts/build.sh $dir fuzzers
: >$dir/failed
ls tests/fuzz/corpus | xargs -n 1 -P "$(nproc)" scripts/fuzz.sh "$seconds"
all=$(ls tests/fuzz/corpus | wc -l)
failed=$(wc -l <$dir/failed)
echo "$((all - failed)) passed, $failed failed"
[ "$failed" = 0 ]
