#!/bin/bash
# configure.sh SOURCE OUT -- what nginx's headers need to know, as for Debian's nginx: a module that
# was built otherwise is not binary compatible.  SOURCE is nginx-dev's.
set -eu
source=$1
out=$(cd "$2" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$source"
. ./conf_flags # NGX_CONF_FLAGS
./configure --with-cc-opt="$(dpkg-buildflags --get CFLAGS) $(dpkg-buildflags --get CPPFLAGS)" \
    "${NGX_CONF_FLAGS[@]}" --builddir="$folder" >"$folder/said" 2>&1 || {
    tail "$folder/said" >&2
    exit 1
}
cp "$folder/ngx_auto_config.h" "$folder/ngx_auto_headers.h" "$out"
