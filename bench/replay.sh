#!/bin/sh
# replay.sh BUILD -- a day's access log through `weir replay`: time and memory, plain and packed,
# one figure a line: name<TAB>value<TAB>unit.
#
#     replay.lines      of the log: REPLAY_LINES (10000000, 2 GB of disk); made once, kept in BUILD
#     replay.cpu        seconds of CPU
#     replay.wall       seconds by the clock on the wall
#     replay.memory     MiB at most
#     replay.gz.*       the same log packed with gzip
#
# Two rules in force, one in shadow, a deny list; 20,000 clients, and the attackers and crawlers of
# scripts/make-log.py.
set -eu
here=$(dirname "$0")
build=${1:-build}
lines=${REPLAY_LINES:-10000000}
out=$build/bench-out
log=$out/access-$lines.log
rules=$out/replay.yaml
mkdir -p "$out"

cat >"$rules" <<'RULES'
version: 1
rules:
  - name: per-ip
    key: "{ip/32}"
    limit: [120/1m, 20/1s]
  - name: login
    match: { uri: /login, method: POST }
    key: "{ip/32}"
    limit: sliding-window 10/1m
    ban: { refusals: 50/60s, for: 10m }
  - name: api
    match: { uri: "/api/**" }
    key: "{ip/24}"
    limit: gcra 30/1m burst 10
    mode: shadow
lists:
  deny: { ip: [192.0.2.0/24] }
RULES

# Whole or not at all: a log that was interrupted is made anew.
if [ ! -f "$log" ]; then
    "$here/../scripts/make-log.py" "$log.part" --lines "$lines" --late 3 >&2
    mv "$log.part" "$log"
fi
if [ ! -f "$log.gz" ]; then
    gzip -c -6 "$log" >"$log.gz.part"
    mv "$log.gz.part" "$log.gz"
fi

# run NAME LOG -- the figures of one run
run() {
    python3 - "$1" "$build/weir" replay --rules "$rules" --json "$2" <<'RUN'
import json, resource, subprocess, sys, time

name, command = sys.argv[1], sys.argv[2:]
begin = time.monotonic()
done = subprocess.run(command, stdout=subprocess.PIPE)
wall = time.monotonic() - begin
used = resource.getrusage(resource.RUSAGE_CHILDREN)
if done.returncode != 0:
    sys.exit("replay.sh: weir replay has failed")
if name == "replay":
    print("replay.lines\t%d\tlines" % json.loads(done.stdout)["lines"])
print("%s.cpu\t%.4g\ts" % (name, used.ru_utime + used.ru_stime))
print("%s.wall\t%.4g\ts" % (name, wall))
print("%s.memory\t%.4g\tMiB" % (name, used.ru_maxrss / 1024))
RUN
}

run replay "$log"
run replay.gz "$log.gz"
