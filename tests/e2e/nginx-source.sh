#!/bin/sh
# nginx-source.sh SOURCE_ROOT MODULE -- meson setup -Dnginx_source=FOLDER: modules for another
# nginx, from its source as its repository has it.  The stream module, one file, stands for both.
. "${0%/*}/harness.sh"

root=$(cd "$1" && pwd)
module=$(realpath "$2")

# set_up NAME FOLDER
set_up() {
    meson setup "$dir/$1" "$root" -Dnginx_source="$2"
}

has_modules() {
    ninja -C "$dir/$1" -t targets all | grep -q '^nginx/ngx_.*_weir_module.so:'
}

# Without Debian's options, and with configure in its other place.
cp -r /usr/share/nginx/src "$dir/source"
rm -f "$dir/source/conf_flags"
mv "$dir/source/configure" "$dir/source/auto/configure"

check "another source" set_up other "$dir/source"
check "its modules" has_modules other
check "a module" ninja -C "$dir/other" nginx/ngx_stream_weir_module.so
check "by its headers" grep -q "source/src/stream" "$dir/other/compile_commands.json"
if grep -q -e "-isystem /usr/share/nginx" "$dir/other/compile_commands.json"; then
    fail "Debian's headers are there too"
else
    pass
fi

# Debian's nginx is one that was built --with-compat.
nginx_loads_it() {
    cat >"$dir/nginx.conf" <<END
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
load_module $module;
load_module $dir/other/nginx/ngx_stream_weir_module.so;
pid $dir/pid; events { } stream { weir_conn_zone \$remote_addr zone=a:1m; }
END
    /usr/sbin/nginx -t -p "$dir" -e "$dir/nginx.log" -c "$dir/nginx.conf"
}
check "nginx loads it" nginx_loads_it

mkdir "$dir/empty"
check "no source" set_up none "$dir/empty"
if has_modules none; then fail "modules without a source"; else pass; fi

finish
