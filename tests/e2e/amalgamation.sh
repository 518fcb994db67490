#!/bin/sh
# amalgamation.sh SOURCE_ROOT -- the two-file library as somebody meets it who drops it into a project: cc -c weir.c, and nothing else.
set -eu

root=$(cd "$1" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0
failed=0

# check WHAT COMMAND... -- the command succeeds; what it says is shown only if not
check() {
    what=$1
    shift
    if "$@" >"$dir/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "amalgamation.sh: $what: $*" >&2
        cat "$dir/log" >&2
    fi
}

says_one_line() {
    "$root/scripts/amalgamation.py" "$1" >"$dir/said" && [ "$(wc -l <"$dir/said")" = 1 ]
}

# Nothing but weir_..., and none of the 16-byte atomics that would need another library.
exports_only_the_header() {
    nm -g --defined-only "$1" | awk '{ print $3 }' | sort >"$dir/exported"
    grep -ho 'WEIR_API.* \**weir_[a-z_]*(' "$root/include/weir.h" | sed 's/($//; s/.*[ *]//' | sort >"$dir/declared"
    diff "$dir/declared" "$dir/exported"
}

needs_no_libatomic() {
    ! nm -u "$1" | grep -E '__(sync|atomic)_'
}

check "it is made" says_one_line "$dir/a"
check "it is made" says_one_line "$dir/b"
check "the same each time" diff -r "$dir/a" "$dir/b"

for compiler in cc clang; do
    command -v "$compiler" >/dev/null || continue
    for options in "-std=gnu11 -O2" "-std=c11 -pedantic" "-O3 -fsanitize=undefined -fno-sanitize-recover=all"; do
        object=$dir/weir.o
        rm -f "$object"
        # shellcheck disable=SC2086 # options are several words
        check "$compiler $options" "$compiler" $options -Wall -Wextra -Werror -c "$dir/a/weir.c" -o "$object"
        check "$compiler $options: exports" exports_only_the_header "$object"
        check "$compiler $options: atomics" needs_no_libatomic "$object"
        for example in floor1 floor2 shared wait guard; do
            # shellcheck disable=SC2086
            check "$compiler $options: $example" "$compiler" $options -std=gnu11 -I"$dir/a" "$root/examples/$example.c" "$object" -lpthread -o "$dir/$example"
            check "$compiler $options: $example runs" "$dir/$example"
        done
    done
done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
