#!/bin/sh
# install.sh SOURCE_ROOT BUILD -- make install leaves enough to build against (header, pkg-config
# file, both libraries, command) and to run (units, and rules to begin with).
. "${0%/*}/harness.sh"

root=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)

# A sanitizer's library needs a sanitizer's program; there is nothing to learn from that here.
if nm -D "$build/libweir.so" | grep -qE '__(asan|tsan|msan)_init'; then
    echo "install.sh: skipped, $build has sanitizers"
    echo "0 passed, 0 failed"
    exit 77
fi

# make install builds the target `product` alone.
product_is_whole() {
    {
        ninja -C "$build" -t query product | sed 's/^[ |]*//'
        ninja -C "$build" -t inputs product
    } >"$dir/inputs"
    meson introspect "$build" --targets | python3 -c '
import json, os, sys
build, made = os.path.realpath(sys.argv[1]), open(sys.argv[2]).read().split("\n")
files = [f for t in json.load(sys.stdin) if t["installed"] for f in t["filename"]]
missing = [f for f in files if os.path.relpath(f, build) not in made]
sys.exit("not in product: %s" % missing if missing or not files else 0)' "$build" "$dir/inputs"
}

check "product has all that is installed" product_is_whole
check "install" env DESTDIR="$dir/root" meson install -C "$build" --no-rebuild --quiet
pc=$(find "$dir/root" -name weir.pc)
check "one pkg-config file" test -f "$pc"
[ "$failed" = 0 ] || finish

# As if $dir/root were /: pkg-config is told that the prefix lies there.
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
prefix=$dir/root$(pkg-config --variable=prefix weir)
config() {
    pkg-config --define-variable=prefix="$prefix" "$@" weir
}
libdir=$(config --variable=libdir)
version=$(sed -n 's/^#define WEIR_VERSION  *"\(.*\)"/\1/p' "$root/include/weir.h")

needs() { # needs PROGRAM -- the Weir libraries that it loads
    readelf -d "$1" | sed -n 's/.*NEEDED.*\[\(libweir.*\)\]/\1/p'
}

check "version" test "$(config --modversion)" = "$version"
check "command" test "$("$prefix/bin/weir" --version)" = "weir $version"
units=$prefix/lib/systemd/system
start="${prefix#"$dir/root"}/bin/weir serve --config /etc/weir/weir.conf"
check "unit" grep -qx "ExecStart=$start" "$units/weir.service"
check "sockets" test -f "$units/weir.socket" -a -f "$units/weir-http.socket"
check "rules to begin with" cmp "$root/examples/rules.yaml" "$prefix/share/doc/weir/rules.yaml"
check "module for Redis" test -f "$libdir/redis/modules/weir.so"
check "Lua for nginx" test -f "$prefix/share/lua/5.1/resty/weir.lua" -a \
    -f "$prefix/share/lua/5.1/resty/weir/req.lua"
check "header" cmp "$root/include/weir.h" "$prefix/include/weir.h"

# The module for nginx, as Debian's are: modules-enabled links to what is in modules-available.
nginx_loads_it() {
    available=$prefix/share/nginx/modules-available
    : >"$dir/nginx.conf"
    # shellcheck disable=SC2016 # nginx's variable
    limits='weir_req_zone $remote_addr zone=a:1m rate=1r/s;'
    for kind in http stream; do
        theirs=/usr/lib/nginx/modules/ngx_stream_module.so
        if [ $kind = stream ] && [ -f $theirs ]; then
            echo "load_module $theirs;" >>"$dir/nginx.conf"
        elif [ $kind = stream ]; then
            continue
        fi
        sed "s#load_module #&$dir/root#" "$available/mod-$kind-weir.conf" >>"$dir/nginx.conf"
        blocks="${blocks-} $kind { $limits }"
    done
    echo "pid $dir/pid; events { } $blocks" >>"$dir/nginx.conf"
    /usr/sbin/nginx -t -p "$dir" -e "$dir/nginx.log" -c "$dir/nginx.conf"
}
check "module for nginx" nginx_loads_it

# A client of Redis: a library of its own, with a pkg-config file of its own.
redis_config() {
    pkg-config --define-variable=prefix="$prefix" "$@" weir-redis
}
# shellcheck disable=SC2046 # several words
check "redis" cc -Wall -Wextra -Werror "$root/examples/redis.c" \
    $(redis_config --cflags --libs) -o "$dir/redis"
check "it needs its .so" test "$(needs "$dir/redis" | grep redis)" = libweir-redis.so.0
check "it runs" env LD_LIBRARY_PATH="$libdir" "$dir/redis"
check "fleet" cc -Wall -Wextra -Werror "$root/examples/fleet.c" $(redis_config --cflags --libs) \
    -lweir -o "$dir/fleet"
check "fleet runs" env LD_LIBRARY_PATH="$libdir" "$dir/fleet"

echo '#include <weir.h>' >"$dir/only.c"
cp "$dir/only.c" "$dir/only.cc"
# shellcheck disable=SC2046 # several words
check "header alone, C" cc -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only $(config --cflags) "$dir/only.c"
if command -v c++ >/dev/null; then
    # shellcheck disable=SC2046
    check "header alone, C++" c++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only \
        $(config --cflags) "$dir/only.cc"
fi

# shellcheck disable=SC2046
check "with the .so" cc -Wall -Wextra -Werror "$root/examples/floor2.c" \
    $(config --cflags --libs) -o "$dir/shared"
check "it needs the .so" test "$(needs "$dir/shared")" = libweir.so.0
check "it runs" env LD_LIBRARY_PATH="$libdir" "$dir/shared"

# shellcheck disable=SC2046
check "with the .a" cc -Wall -Wextra -Werror "$root/examples/floor2.c" $(config --cflags) \
    "$libdir/libweir.a" $(config --static --libs-only-other) -o "$dir/static"
check "it needs no .so" test -z "$(needs "$dir/static")"
check "it runs" "$dir/static"

# A prefix other than the last build's, with a small project in place of ours: it builds at once.
mkdir "$dir/small"
cd "$dir/small"
ln -s "$root/scripts" scripts
cat >meson.build <<'END'
project('small')
made = custom_target(output: 'made', command: ['touch', '@OUTPUT@'], install: true,
  install_dir: get_option('datadir'))
alias_target('product', made)
END
check "setup" meson setup --prefix=/one build
check "build" make -f "$root/Makefile"
check "install to PREFIX" make -f "$root/Makefile" PREFIX=/two DESTDIR="$dir/other" install
check "nothing goes to the old prefix" test -f "$dir/other/two/share/made" -a ! -e "$dir/other/one"

finish
