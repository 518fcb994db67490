#!/bin/sh
# packages.sh GROUP... -- install the missing Debian packages of these groups (packages.txt).
set -eu
list=$(dirname "$0")/../packages.txt
command -v dpkg-query >/dev/null || exit 0 # not Debian: Meson names missing libraries
missing=
for group in "$@"; do
    for package in $(awk -v g="$group" '$1 !~ /^#/ && $2 == g { print $1 }' "$list"); do
        status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
        [ "$status" = "install ok installed" ] || missing="$missing $package"
    done
done
[ -n "$missing" ] || exit 0
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
for tool in apt-get $as_root; do
    command -v "$tool" >/dev/null || {
        echo "weir: there is no $tool here; please install:$missing" >&2
        exit 1
    }
done
echo "weir: installing$missing"
$as_root apt-get update -qq
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
