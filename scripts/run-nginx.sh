#!/bin/sh
# run-nginx.sh BUILD [PORT] -- nginx with the module on 127.0.0.1:PORT (7381), a backend of its own
# behind it, and examples/rules.yaml; /status shows the table.  Each port has a folder of its own.
set -eu
build=$(cd "$1" && pwd)
port=${2:-7381}
folder=$build/run-nginx
[ "$port" = 7381 ] || folder=$folder-$port
python3 -c '
import errno, socket, sys
if not (sys.argv[1].isdecimal() and 1 <= int(sys.argv[1]) <= 65535):
    sys.exit("run-nginx: port %s: a port is a number from 1 to 65535" % sys.argv[1])
probe = socket.socket()
probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
try:
    probe.bind(("127.0.0.1", int(sys.argv[1])))
    probe.listen()
except OSError as problem:
    used = problem.errno == errno.EADDRINUSE
    sys.exit("run-nginx: port %s: %s" % (sys.argv[1], "it is in use, perhaps by another make "
             "run-nginx; make run-nginx PORT=N takes another" if used else problem))' "$port"
mkdir -p "$folder/html"
chmod 755 "$folder"
[ -f "$folder/rules.yaml" ] || cp "$(dirname "$0")/../examples/rules.yaml" "$folder"
cat >"$folder/nginx.conf" <<END
load_module $build/nginx/ngx_http_weir_module.so;
daemon off;
pid $folder/nginx.pid;
error_log stderr notice;
events { worker_connections 512; }
http {
    access_log off;
    client_body_temp_path $folder/body;
    proxy_temp_path $folder/proxy;
    fastcgi_temp_path $folder/fastcgi;
    uwsgi_temp_path $folder/uwsgi;
    scgi_temp_path $folder/scgi;
    weir_rules rules.yaml;
    weir_req_zone \$binary_remote_addr zone=slow:1m rate=1r/s;
    server {
        listen 127.0.0.1:$port;
        location / {
            proxy_pass http://unix:backend;
            proxy_set_header Weir-Level \$weir_level;
        }
        location /slow {
            weir_req zone=slow burst=5;
            proxy_pass http://unix:backend;
        }
        location /status { weir_status; }
    }
    server {
        listen unix:backend;
        location / {
            weir_check off;
            return 200 "\$request_method \$request_uri, level \$http_weir_level\n";
        }
    }
}
END
cd "$folder" # the backend is beside it: workers may not be allowed to look into a home directory
rm -f backend
echo "http://127.0.0.1:$port/         limited by $folder/rules.yaml"
echo "                               (after a change: kill -HUP \$(cat $folder/nginx.pid))"
echo "http://127.0.0.1:$port/slow     one a second, five wait"
echo "http://127.0.0.1:$port/status   the table; ?format=prometheus"
echo "weir bans --table $folder/nginx.weir   who is banned (make builds weir)"
PATH=$PATH:/usr/sbin exec nginx -p "$folder" -e stderr -c "$folder/nginx.conf"
