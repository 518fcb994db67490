# harness.sh -- shared by the tests in shell, which begin with `. "${0%/*}/harness.sh"` and end with
# `finish`.  A test runs in a folder of its own, $dir, that goes when it ends.
set -eu

test_name=${0##*/}
passed=0
failed=0
verb= # the first word of every `run`

# program PATH -- its absolute path
program() {
    [ -x "$1" ] || { echo "$test_name: there is no program $1" >&2 && return 2; }
    realpath -s "$1"
}

pass() {
    passed=$((passed + 1))
}

fail() {
    failed=$((failed + 1))
    echo "$test_name: $*" >&2
}

finish() {
    echo "$passed passed, $failed failed"
    [ "$failed" = 0 ]
    exit
}

# run_program PROGRAM WORD... -- sets $code, $out and $err, and fills the files out and err in $dir
run_program() {
    ran="${1##*/} $(shift && echo "$*")"
    code=0
    "$@" >"$dir/out" 2>"$dir/err" || code=$?
    out=$(cat "$dir/out")
    err=$(cat "$dir/err")
}

# run WORD... -- weir with these words
run() {
    run_program "$weir" ${verb:+"$verb"} "$@"
}

# check WHAT COMMAND... -- the command succeeds; its output is shown only if not
check() {
    what=$1
    shift
    if "$@" >"$dir/log" 2>&1; then
        pass
    else
        fail "$what: $*"
        cat "$dir/log" >&2
    fi
}

# is WHAT GOT EXPECTED
is() {
    if [ "$2" = "$3" ]; then pass; else fail "$1: expected '$3' got '$2'"; fi
}

# has WHAT TEXT PART
has() {
    case $2 in
    *"$3"*) pass ;;
    *) fail "$1: expected '$3' in '$2'" ;;
    esac
}

# answers CODE OUTPUT WORD... -- the whole of stdout, and nothing on stderr
answers() {
    want_code=$1 want=$2
    shift 2
    run "$@"
    if [ "$code" = "$want_code" ] && [ "$out" = "$want" ] && [ -z "$err" ]; then
        pass
    else
        fail "$ran: expected $want_code got $code $err"
        printf '%s\n' "$want" | diff - "$dir/out" >&2 || true
    fi
}

# says CODE PART WORD... -- PART is in the output, on stdout or stderr
says() {
    want_code=$1 want=$2
    shift 2
    run "$@"
    case "$code $out $err" in
    "$want_code "*"$want"*) pass ;;
    *) fail "$ran: expected $want_code '$want' got $code '$out' '$err'" ;;
    esac
}

# complains PART WORD... -- exit code 2, nothing on stdout, and PART on stderr
complains() {
    want=$1
    shift
    run "$@"
    case "$code $out $err" in
    "2  "*"$want"*) pass ;;
    *) fail "$ran: expected 2 and '$want' got $code '$out' '$err'" ;;
    esac
}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export TMPDIR="$dir" MALLOC_PERTURB_=0 # as in serving.py
unset NO_COLOR COLUMNS || true
