#!/bin/sh
# nginx.sh BUILD [SECONDS] -- requests a second of one nginx worker that answers an empty GIF: with
# no limit, limit_req, Weir with one limit, Weir with rules; one key, and as many as connections ask
# for.  Short rounds in turns, so that a slow moment of the machine hits all alike; the last column
# is requests for each second that the worker had a core, which a busy machine changes little.  The
# first round of many keys also touches each page of the table for the first time.
set -eu
build=$(cd "$1" && pwd)
seconds=${2:-2}
folder=$(mktemp -d -p /dev/shm)
port=17381
chmod 755 "$folder"
{
    echo "version: 1"
    echo "rules:"
    for i in $(seq 100); do
        echo "  - { name: r$i, match: { uri: /rules$((i % 34))/* }, key: '{ip}', limit: 1000000/s }"
    done
} >"$folder/rules.yaml"
cat >"$folder/conf" <<END
load_module $build/nginx/ngx_http_weir_module.so;
daemon off;
worker_processes 1;
pid $folder/nginx.pid;
error_log $folder/log crit;
events { worker_connections 512; }
http {
    access_log off;
    client_body_temp_path $folder/1; proxy_temp_path $folder/2; fastcgi_temp_path $folder/3;
    uwsgi_temp_path $folder/4; scgi_temp_path $folder/5;
    limit_req_zone \$binary_remote_addr\$arg_k zone=theirs:100m rate=1000000r/s;
    weir_req_zone \$binary_remote_addr\$arg_k zone=ours:100m rate=1000000r/s;
    weir_rules rules.yaml;
    weir_headers off;
    server {
        listen 127.0.0.1:$port;
        location /none { weir_check off; empty_gif; }
        location /limit_req { weir_check off; limit_req zone=theirs burst=1000 nodelay; empty_gif; }
        location /weir { weir_check off; weir_req zone=ours burst=1000 nodelay; empty_gif; }
        location /rules1/ { empty_gif; }
    }
}
END
cat >"$folder/keys.lua" <<'END'
local path
function init(args) path = wrk.path math.randomseed(os.time()) end
function request() return wrk.format("GET", path .. "?k=" .. math.random(1000000)) end
END
PATH=$PATH:/usr/sbin nginx -p "$folder" -e "$folder/log" -c "$folder/conf" &
nginx=$!
trap 'kill $nginx; wait $nginx; rm -rf "$folder"' EXIT
worker=
until [ -s "$folder/nginx.pid" ] && [ -n "$worker" ]; do
    sleep 0.1
    worker=$(tr -d ' ' <"/proc/$nginx/task/$nginx/children")
done
for round in 1 2 3; do
    for path in none limit_req weir rules1/; do
        for keys in one many; do
            script=
            [ $keys = one ] || script="-s $folder/keys.lua"
            read -r before _ <"/proc/$worker/schedstat"
            # shellcheck disable=SC2086 # two words, or none
            said=$(wrk -t1 -c32 -d"${seconds}s" $script "http://127.0.0.1:$port/$path")
            read -r after _ <"/proc/$worker/schedstat"
            echo "$said" | awk -v ran=$((after - before)) -v what="$round\t$path\t$keys" '
                /requests in/ { n = $1 }
                /Requests\/sec/ { printf "%s\t%d\t%d\n", what, $2, n / ran * 1e9 }'
        done
    done
done
