#!/bin/bash
# configure.sh SOURCE OUT -- what nginx's headers need to know.  Debian's nginx-dev has the options
# of its nginx.  To another one, built --with-compat, a module is compatible that was built so too.
set -eu
source=$1
out=$(cd "$2" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$source"
NGX_CONF_FLAGS=(--with-compat --with-http_ssl_module --with-http_v2_module --with-stream)
[ ! -f conf_flags ] || . ./conf_flags
configure=./configure
[ -f configure ] || configure=auto/configure
"$configure" --with-cc-opt="$(dpkg-buildflags --get CFLAGS) $(dpkg-buildflags --get CPPFLAGS)" \
    "${NGX_CONF_FLAGS[@]}" --builddir="$folder" >"$folder/said" 2>&1 || {
    tail "$folder/said" >&2
    exit 1
}
cp "$folder/ngx_auto_config.h" "$folder/ngx_auto_headers.h" "$out"
