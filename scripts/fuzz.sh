#!/bin/sh
# fuzz.sh [SECONDS] -- every fuzzer for that long, from its corpus in tests/fuzz/corpus and the
# words of tests/fuzz/NAME.dict if there are any.  Findings stay in build/fuzz.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
dir=build/fuzz
[ -f $dir/build.ninja ] || CC=clang meson setup $dir -Dfuzzers=true \
    -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
scripts/build.sh $dir fuzzers
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
passed=0
for corpus in tests/fuzz/corpus/*; do
    name=$(basename "$corpus")
    found=$dir/found/$name
    new=$dir/new/$name
    dict=tests/fuzz/$name.dict
    [ -f "$dict" ] || dict=
    mkdir -p "$found" "$new"
    echo "== fuzz $name, $seconds s"
    if ! "$dir/tests/fuzz-$name" -max_total_time="$seconds" -timeout=60 -artifact_prefix="$found/" \
        -print_final_stats=0 -verbosity=0 ${dict:+"-dict=$dict"} "$new" "$corpus" \
        2>"$found.log"; then
        tail -40 "$found.log"
        echo "$passed passed, 1 failed"
        exit 1
    fi
    passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
