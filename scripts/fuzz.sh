#!/bin/sh
# fuzz.sh [SECONDS] -- every fuzzer for that long, beginning with the corpus kept in tests/fuzz/corpus, with the words of tests/fuzz/NAME.dict
# if there are any.  Findings stay in build/fuzz.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
dir=build/fuzz
[ -f $dir/build.ninja ] || CC=clang meson setup $dir -Dfuzzers=true -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
ninja -C $dir --quiet fuzzers
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
passed=0
for corpus in tests/fuzz/corpus/*; do
    name=$(basename "$corpus")
    dict=tests/fuzz/$name.dict
    [ -f "$dict" ] || dict=
    mkdir -p $dir/found/"$name" $dir/new/"$name"
    echo "== fuzz $name, $seconds s"
    if ! $dir/tests/fuzz-"$name" -max_total_time="$seconds" -timeout=10 -artifact_prefix=$dir/found/"$name"/ -print_final_stats=0 -verbosity=0 \
        ${dict:+"-dict=$dict"} $dir/new/"$name" tests/fuzz/corpus/"$name" 2>$dir/found/"$name".log; then
        tail -40 $dir/found/"$name".log
        echo "$passed passed, 1 failed"
        exit 1
    fi
    passed=$((passed + 1))
done
echo "$passed passed, 0 failed"
