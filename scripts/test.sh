#!/bin/sh
# test.sh [--quick | --long | NAME] -- all tests, three times: as built for use, under ASan + UBSan,
# and under TSan.  Ends with the failed tests' last lines and "N passed, M failed".
#     --quick  only those that take seconds, only as built for use, in build/
#     --long   those that take more seeds, rounds or kills; and the fuzzers
#     NAME     those with this in their name, or of this suite, as built for use, in build/
set -eu
cd "$(dirname "$0")/.."
passed=0
failed=0
what_failed=

# setup DIR MESON-SETUP-OPTIONS... -- a build from before the packages for tests came (make run's)
# looks for them again, or most tests are missing in it.
setup() {
    if [ ! -f "$1/build.ninja" ]; then
        meson setup "$@" >/dev/null
    elif [ /var/lib/dpkg/status -nt "$1/build.ninja" ]; then
        meson setup --reconfigure "$1" >/dev/null
    fi
}

# A launcher may stand before python3 (pyenv's takes ten times as long to start as python itself).
PATH=$(dirname "$(python3 -c 'import sys; print(sys.executable)')"):$PATH

# Most of the time tests wait: for leases, failovers, servers that stand still.
at_once=$((4 * $(nproc)))

# run DIR WORD... -- runs the tests that the words choose, and counts
run() {
    log=$1/result.txt
    details=$1/meson-logs/testlog.json
    rm -f "$details"
    quiet='^ninja\|^$\|^Full log\|^Expected Fail\|^Unexpected\|^Skipped\|^Timeout'
    meson test -C "$@" --num-processes $at_once --no-rebuild --print-errorlogs 2>&1 |
        tee "$log" | grep -v "$quiet" || true
    ok=$(sed -n 's/^Ok: *//p' "$log")
    bad=$(sed -n 's/^Fail: *//p' "$log")
    late=$(sed -n 's/^Timeout: *//p' "$log")
    passed=$((passed + ${ok:-0}))
    failed=$((failed + ${bad:-1} + ${late:-0}))
    what_failed=$what_failed$(tell_failures "$1" "$details")
    [ -z "${CI-}" ] || run_again "$1" "$details"
}

# run_again DIR DETAILS -- in CI, whose machine nobody looks at: a failed test with servers, clients
# and other programs in it is run once more, alone.  It stays in the list of what failed; it counts
# as passed if it passes then.  A sanitizer's report counts at once.
run_again() {
    again=$(python3 -c '
import json, os, re, sys
report = re.compile("ERROR: \\w+Sanitizer|WARNING: ThreadSanitizer|runtime error:")
for test in map(json.loads, open(sys.argv[1]) if os.path.exists(sys.argv[1]) else []):
    said = test.get("stdout", "") + test.get("stderr", "")
    if test["result"] in ("FAIL", "TIMEOUT") and "/ " in test["name"]:
        suites, name = test["name"].split(" / ")
        if "e2e" in re.split("[:+]", suites) and not report.search(said):
            print(name)' "$2")
    for name in $again; do
        if meson test -C "$1" "$name" --no-rebuild --logbase again >/dev/null; then
            what_failed="$what_failed
$1: $name: passed when it was run again, alone"
            passed=$((passed + 1)) failed=$((failed - 1))
        fi
    done
}

# tell_failures DIR DETAILS -- each failed test: its build, its name, the end of its log
tell_failures() {
    python3 -c '
import json, os, sys
build, details = sys.argv[1:]
if not os.path.exists(details):
    sys.exit("\n%s: no result:\n%s" % (build, open(build + "/result.txt").read()[-1000:]))
for test in map(json.loads, open(details)):
    if test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL"):
        print("\n%s: %s: %s" % (build, test["name"], test["result"]))
        for line in (test.get("stdout", "") + test.get("stderr", "")).splitlines()[-20:]:
            print("    " + line[:300])' "$@" 2>&1 || true
}

finish() {
    [ -z "$what_failed" ] || echo "$what_failed"
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
    exit
}

long=false
case ${1-} in
'') ;;
--long) long=true ;;
--build) long=$3 ;; # for build_ahead
--quick)
    setup build
    scripts/build.sh build meson-test-prereq
    run build --suite unit --suite vectors --suite tree --suite fuzz --suite examples --suite thread
    finish
    ;;
*)
    setup build
    chosen=$(meson introspect build --tests --targets | python3 -c '
import json, os, sys
all = json.load(sys.stdin)
files = {t["id"]: t["filename"] for t in all["targets"]}
tests = [t for t in all["tests"]
         if sys.argv[1] in t["name"] or "weir:" + sys.argv[1] in t["suite"]]
print("names=%r" % " ".join(t["name"] for t in tests))
needed = {f for t in tests for id in t["depends"] for f in files[id]}
print("programs=%r" % " ".join(os.path.relpath(f, "build") for f in sorted(needed)))' "$1")
    eval "$chosen"
    [ -n "$names" ] || {
        echo "no test has '$1' in its name, and no suite has this name; to list all of them:" \
            "meson test -C build --list"
        exit 2
    }
    echo "$1: $names"
    # shellcheck disable=SC2086 # several names
    scripts/build.sh build $programs
    # shellcheck disable=SC2086
    run build $names
    finish
    ;;
esac

# build NAME -- build/test/NAME
build() {
    # Lines are enough for the traces of stacks, and -O1 halves the time to compile; it warns of
    # variables that -O2 knows to be set.
    lighter='-Db_lundef=false -Dc_args=-g1 -Doptimization=1 -Dwerror=false'
    case $1 in
    plain) target=meson-test-prereq options= ;;
    asan) target=meson-test-prereq options="-Db_sanitize=address,undefined $lighter" ;;
    tsan) target=race-programs options="-Db_sanitize=thread $lighter" ;;
    esac
    # shellcheck disable=SC2086 # several words
    setup "build/test/$1" $options
    meson configure "build/test/$1" -Dlong_tests=$long >/dev/null
    scripts/build.sh "build/test/$1" $target
}

# build_ahead NAME -- beside the tests of another build, many of which wait: it takes what they
# leave of the processors.  A session of its own can be stopped with all that it has started.
build_ahead() {
    setsid nice -n 5 scripts/test.sh --build "$1" $long >"build/test/$1.txt" 2>&1 &
    ahead=$!
    trap 'kill -- -$ahead 2>/dev/null' EXIT
}

# await NAME -- until it is built
await() {
    echo "== $1"
    wait $ahead || {
        cat "build/test/$1.txt"
        failed=$((failed + 1))
        finish
    }
    trap - EXIT
}

if [ "${1-}" = --build ]; then
    build "$2"
    exit
fi

trap 'exit 130' INT TERM
echo "== plain"
build plain
build_ahead asan
# shellcheck disable=SC2046 # no word or two
run build/test/plain $($long && echo --suite long || true)

await asan
build_ahead tsan
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# Random walks: the short ones, in the other run, will do.
suites='--no-suite tree --no-suite packaging'
$long && suites='--suite thread --suite crash --suite sim'
# shellcheck disable=SC2086 # several words
run build/test/asan $suites

await tsan
# Where threads meet.  A killed process says nothing to the sanitizer.
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1:suppressions=$PWD/tests/tsan.supp"
suites='--suite race'
$long && suites='--suite race --no-suite unit --no-suite examples --no-suite e2e'
# shellcheck disable=SC2086
run build/test/tsan $suites
$long && { scripts/fuzz.sh --fixed || failed=$((failed + 1)); }
finish
