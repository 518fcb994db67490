#!/bin/sh
# test.sh [--long] -- all tests, three times: as built for use, under ASan + UBSan, and under TSan.  Ends with "N passed, M failed".
# With --long those that take more seeds, rounds or kills, and the fuzzers.
set -eu
cd "$(dirname "$0")/.."
long=false
[ "${1:-}" = --long ] && long=true

passed=0
failed=0

# run NAME MESON-SETUP-OPTIONS... -- builds in build/test/NAME and runs the tests that $suites picks
run() {
    name=$1
    shift
    dir=build/test/$name
    [ -f "$dir/build.ninja" ] || meson setup "$dir" "$@" >/dev/null
    meson configure "$dir" -Dlong_tests=$long >/dev/null
    ninja -C "$dir" --quiet >"$dir/ninja.log" || { cat "$dir/ninja.log"; exit 1; }
    log=$dir/result.txt
    echo "== $name"
    meson test -C "$dir" --no-rebuild --print-errorlogs $suites 2>&1 | tee "$log" | grep -v '^ninja\|^$\|^Full log\|^Expected Fail\|^Unexpected\|^Skipped\|^Timeout' || true
    ok=$(sed -n 's/^Ok: *//p' "$log")
    bad=$(sed -n 's/^Fail: *//p' "$log")
    late=$(sed -n 's/^Timeout: *//p' "$log")
    passed=$((passed + ${ok:-0}))
    failed=$((failed + ${bad:-1} + ${late:-0}))
}

suites=
$long && suites='--suite long'
run plain
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
suites='--no-suite tree --no-suite packaging'
$long && suites='--suite thread --suite crash' # random walks: the short ones, in the other run, will do
run asan -Db_sanitize=address,undefined -Db_lundef=false
# A killed process says nothing to the sanitizer, and what it runs was run above.
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
suites='--suite thread --suite examples --suite unit'
$long && suites='--suite thread'
run tsan -Db_sanitize=thread -Db_lundef=false
$long && scripts/fuzz.sh 4
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
