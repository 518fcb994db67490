#!/bin/sh
# fuzz.sh [SECONDS [NAME]] -- every fuzzer, or one, for that long, as many at once as there are
# cores, from its corpus in tests/fuzz/corpus and the words of tests/fuzz/NAME.dict if there are
# any.  Findings stay in build/fuzz.
# fuzz.sh --fixed -- the same inputs each time, until the code or a corpus changes: seconds each
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
dir=build/fuzz
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

# runs NAME -- inputs in one to five seconds of CPU
runs() {
    case $1 in
    table) echo 100 ;;
    http-session | redis-run | resp-session) echo 1500 ;;
    http1 | import) echo 4000 ;;
    client | redis-reply | sim) echo 10000 ;;
    cidr | log | resp | rules | settings) echo 30000 ;;
    *) echo 200000 ;;
    esac
}

fuzz() {
    found=$dir/found/$1
    new=$dir/new/$1
    dict=tests/fuzz/$1.dict
    [ -f "$dict" ] || dict=
    how="-max_total_time=$seconds $new tests/fuzz/corpus/$1"
    fixed=
    if [ "$seconds" = --fixed ]; then
        new=$dir/fixed/$1
        rm -rf "$new"
        # By a list, for a folder's files come in the order of the file system.
        how="-seed=1 -runs=$(runs "$1") -max_total_time=60 -reload=0 -shuffle=0 $new
            -seed_inputs=$(find "tests/fuzz/corpus/$1" -type f | LC_ALL=C sort | paste -sd ,)"
        # Addresses count for the fuzzer: the program compares some.
        fixed="setarch -R"
        $fixed true 2>/dev/null || fixed= # not allowed here
    fi
    mkdir -p "$found" "$new"
    echo "== fuzz $1, $seconds"
    # shellcheck disable=SC2086 # several words
    $fixed "$dir/tests/fuzz-$1" -timeout=60 -artifact_prefix="$found/" -print_final_stats=0 \
        -verbosity=0 ${dict:+"-dict=$dict"} $how 2>"$found.log" || {
        tail -40 "$found.log"
        echo "$1" >>$dir/failed
    }
}

if [ $# = 2 ]; then
    fuzz "$2"
    exit
fi
[ -f $dir/build.ninja ] || CC=clang meson setup $dir -Dfuzzers=true \
    -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-g1 -Doptimization=1 \
    -Dwerror=false >/dev/null
scripts/build.sh $dir fuzzers
: >$dir/failed
ls tests/fuzz/corpus | xargs -n 1 -P "$(nproc)" scripts/fuzz.sh "$seconds"
all=$(ls tests/fuzz/corpus | wc -l)
failed=$(wc -l <$dir/failed)
echo "$((all - failed)) passed, $failed failed"
[ "$failed" = 0 ]
