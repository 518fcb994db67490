#!/bin/sh
# run.sh -- builds and runs every peer, and prints what they measure: NAME<TAB>VALUE<TAB>UNIT, one figure a line.
#
#   bench/peers/run.sh OUTDIR
#
# The sources are copied to OUTDIR (made if missing), and what is fetched and built stays there; only cargo keeps its downloads in its own
# home, where a user's choice of registry lives.  A peer whose tools or packages cannot be had is named on stderr (skipped: WHO: WHY) and
# left out; that is no failure.
set -u

BUILD_SECONDS=180
RUN_SECONDS=60

[ $# -eq 1 ] || { echo "usage: $0 OUTDIR" >&2; exit 2; }
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 1
mkdir -p -- "$1" && out=$(CDPATH='' cd -- "$1" && pwd) || exit 1

# skip WHO WHY
skip() { echo "skipped: $1: $2" >&2; }

# need WHO TOOL...: are the tools here?
need() {
    who=$1
    shift
    for tool; do
        command -v "$tool" >/dev/null 2>&1 || { skip "$who" "no $tool here"; return 1; }
    done
}

# copy WHO: a fresh copy of a peer's sources, over the last one, beside what was fetched before
copy() { mkdir -p "$out/$1" && cp "$here/$1/"* "$out/$1/"; }

# build WHO COMMAND...: in OUTDIR/WHO, bounded, its talk to a log
build() {
    who=$1
    shift
    (cd "$out/$who" && timeout "$BUILD_SECONDS" "$@") >>"$out/$who.log" 2>&1 </dev/null && return 0
    if [ $? -eq 124 ]; then why="took more than $BUILD_SECONDS s"; else why=failed; fi
    skip "$who" "its build $why, see $out/$who.log"
    return 1
}

# run WHO COMMAND...: the figures, all of them or none
run() {
    who=$1
    shift
    if (cd "$out/$who" && timeout "$RUN_SECONDS" "$@") >"$out/$who.figures" 2>>"$out/$who.log" </dev/null; then
        cat "$out/$who.figures"
    else
        skip "$who" "its run failed, see $out/$who.log"
    fi
}

peer_mutex() {
    set -- ${CC:-cc} # may be several words
    need mutex "$1" || return
    mkdir -p "$out/mutex" && cp "$here/mutex.c" "$out/mutex/" || return
    build mutex "$@" -std=gnu11 -O2 -pthread -o mutex mutex.c &&
        run mutex ./mutex
}

peer_xrate() {
    need xrate go && copy xrate || return
    # Neither another toolchain than the one here nor a cache that rm -r cannot remove.
    build xrate env GOTOOLCHAIN=local GOPATH="$out/go" GOMODCACHE="$out/go/mod" GOCACHE="$out/go/cache" GOWORK=off \
        go build -buildvcs=false -modcacherw -o xrate . &&
        run xrate ./xrate
}

peer_governor() {
    need governor cargo && copy governor || return
    build governor env CARGO_TARGET_DIR="$out/governor/target" cargo build --quiet --release &&
        run governor target/release/governor-peer
}

peer_guava() {
    need guava mvn javac java && copy guava || return
    build guava mvn -q -B -Dmaven.repo.local="$out/m2" dependency:copy-dependencies &&
        build guava javac -cp 'jars/*' -d . GuavaPeer.java &&
        run guava java -cp '.:jars/*' GuavaPeer
}

command -v timeout >/dev/null 2>&1 || { skip "all peers" "no timeout here"; exit 0; }
for peer in mutex xrate governor guava; do
    rm -f "$out/$peer.log"
    "peer_$peer"
done
exit 0
