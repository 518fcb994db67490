#!/bin/sh
# amalgamation.sh SOURCE_ROOT [--all] -- the library in one file, alone in a project:
# cc -c weir.c.  With --all under more options.
. "${0%/*}/harness.sh"

root=$(cd "$1" && pwd)

says_one_line() {
    "$root/scripts/amalgamation.py" "$1" >"$dir/said" && [ "$(wc -l <"$dir/said")" = 1 ]
}

exports_only_the_header() {
    nm -g --defined-only "$1" | awk '{ print $3 }' | sort >"$dir/exported"
    cat "$root/include/weir.h" "$root/include/weir-admin.h" "$root/include/weir-queue.h" |
        grep -ho 'WEIR_API.* \**weir_[a-z_]*(' | sed 's/($//; s/.*[ *]//' | sort >"$dir/declared"
    diff "$dir/declared" "$dir/exported"
}

# 16-byte atomics would need another library.
needs_no_libatomic() {
    ! nm -u "$1" | grep -E '__(sync|atomic)_'
}

# compile COMPILER OPTION... -- weir.c without a warning
compile() {
    check "$*" "$@" -Wall -Wextra -Werror -c "$dir/a/weir.c" -o "$dir/weir.o"
    check "$*: exports" exports_only_the_header "$dir/weir.o"
    check "$*: atomics" needs_no_libatomic "$dir/weir.o"
}

# use COMPILER OPTION... -- the examples, with the object that was compiled last
use() {
    for example in floor1 floor2 shared wait guard; do
        check "$*: $example" "$@" -std=gnu11 -I"$dir/a" "$root/examples/$example.c" "$dir/weir.o" \
            -lpthread -o "$dir/$example"
        check "$*: $example runs" "$dir/$example"
    done
}

check "it is made" says_one_line "$dir/a"
check "it is made again" says_one_line "$dir/b"
check "the same each time" diff -r "$dir/a" "$dir/b"

compile cc -std=gnu11
use cc -std=gnu11
compile clang -std=c11 -pedantic
use clang -std=c11 -pedantic
if [ "${2-}" = --all ]; then
    compile cc -std=c11 -pedantic
    for compiler in cc clang; do
        compile $compiler -std=gnu11 -O2
        use $compiler -std=gnu11 -O2
        compile $compiler -O3 -fsanitize=undefined -fno-sanitize-recover=all
        use $compiler -O3 -fsanitize=undefined -fno-sanitize-recover=all
    done
fi

finish
