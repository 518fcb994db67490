#!/bin/sh
# run.sh OUTDIR [PEER...] -- builds and runs the peers, and prints their figures, one a line:
# NAME<TAB>VALUE<TAB>UNIT.
#
# Without names: the peers of a decision (mutex xrate governor guava).  Those of guards are
# sentinel, resilience4j and netflix.
#
# Sources are copied to OUTDIR (made if missing), where downloads and builds stay too; only cargo
# keeps its downloads in its own home, with the user's choice of registry.  A peer whose tools or
# packages are missing is named on stderr (skipped: WHO: WHY) and left out; that is no failure.
set -u

BUILD_SECONDS=180
RUN_SECONDS=60

[ $# -ge 1 ] || { echo "usage: $0 OUTDIR [PEER...]" >&2; exit 2; }
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 1
mkdir -p -- "$1" && out=$(CDPATH='' cd -- "$1" && pwd) || exit 1
shift
peers=${*:-mutex xrate governor guava}

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
    if (cd "$out/$who" && timeout "$RUN_SECONDS" "$@") >"$out/$who.figures" \
        2>>"$out/$who.log" </dev/null; then
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
    build xrate env GOTOOLCHAIN=local GOPATH="$out/go" GOMODCACHE="$out/go/mod" \
        GOCACHE="$out/go/cache" GOWORK=off go build -buildvcs=false -modcacherw -o xrate . &&
        run xrate ./xrate
}

peer_governor() {
    need governor cargo && copy governor || return
    build governor env CARGO_TARGET_DIR="$out/governor/target" cargo build --quiet --release &&
        run governor target/release/governor-peer
}

# java_peer WHO CLASS [OPTION...]: Maven fetches the jars of its pom, javac compiles its one source
java_peer() {
    who=$1 class=$2
    shift 2
    need "$who" mvn javac java && copy "$who" || return
    build "$who" mvn -q -B -Dmaven.repo.local="$out/m2" dependency:copy-dependencies &&
        build "$who" javac -cp 'jars/*' -d . "$class.java" &&
        run "$who" java "$@" -cp '.:jars/*' "$class"
}

peer_guava() { java_peer guava GuavaPeer; }

# Sentinel writes its logs to the home directory unless it is told where.
peer_sentinel() {
    java_peer sentinel SentinelPeer -Dcsp.sentinel.log.dir=log -Dproject.name=weir-bench
}

peer_resilience4j() { java_peer resilience4j Resilience4jPeer; }

peer_netflix() { java_peer netflix NetflixPeer; }

command -v timeout >/dev/null 2>&1 || { skip "all peers" "no timeout here"; exit 0; }
for peer in $peers; do
    rm -f "$out/$peer.log"
    "peer_$peer"
done
exit 0
