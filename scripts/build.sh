#!/bin/sh
# build.sh DIR TARGET... -- build with ninja: on a terminal one line that counts, elsewhere a line
# for every quarter; for a failure the compiler's words, not its command line.
set -eu
dir=$1
shift
[ -t 1 ] && terminal=1 || terminal=0
{ ninja -C "$dir" "$@" 2>&1 && echo "ninja: well done"; } | awk -v terminal="$terminal" '
    function clear() { if (terminal && counted) printf "\r\033[K"; counted = 0 }
    /^ninja: well done$/ { done = 1; next }
    /^ninja: (Entering directory|no work to do)|^Cleaning\.\.\. / || command { command = 0; next }
    /^\[0\/1\] Regenerating build files/ { setup = 1; next }
    setup && /^Found ninja/ { setup = 0; held = ""; next }
    setup { held = held $0 "\n"; next }
    match($0, /^\[[0-9]+\/[0-9]+\]/) {
        split(substr($0, 2, RLENGTH - 2), n, "/")
        if (terminal) {
            printf "\r\033[K%s", substr($0, 1, 79)
            counted = 1
        } else if (n[2] > 8 && int(4 * n[1] / n[2]) > quarter) {
            quarter = int(4 * n[1] / n[2])
            print "building: " n[1] " of " n[2]
        }
        fflush()
        next
    }
    /^FAILED: / { command = 1 }
    { clear(); print; fflush() }
    END { clear(); printf "%s", held; exit !done }'
