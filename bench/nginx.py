#!/usr/bin/env python3
"""nginx.py BUILD [SECONDS [ROUNDS]] -- what limits cost in nginx: name, value, unit, by tabs.

wrk asks for an empty GIF: with no limit, limit_req, limit_conn, Weir with one limit, with 100 rules
of which 3 apply, lua-resty-limit-traffic, and Lua that asks Redis; with one key, and with a million
keys that are all known when it is measured; 1 and 2 workers.  Each short run follows one with no
limit, so that a slow moment of the machine hits both alike: `added` is the median of what the pairs
differ by, the others are plain medians.  Worker CPU per request is what a busy machine changes
least.

lua-resty-limit-traffic is no Debian package: WEIR_BENCH_RESTY names the folder that has its
resty/limit/req.lua; without it, it is left out.
"""
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "tests", "e2e"))

from nginxing import Nginx  # noqa: E402
from redising import Redis  # noqa: E402
from serving import write  # noqa: E402

MODULES = "/usr/lib/nginx/modules/"
KEYS = 1000000  # limit_req needs 128 bytes for each; and three rules apply to each
CONNECTIONS = 32
PIPELINED = 500
KEY = "$binary_remote_addr$arg_k"
ZONES = """
    limit_req_zone %(key)s zone=req:200m rate=1000000r/s;
    limit_conn_zone %(key)s zone=conn:200m;
    weir_req_zone %(key)s zone=weir_req:200m rate=1000000r/s;
    weir_conn_zone %(key)s zone=weir_conn:200m;
    weir_rules rules.yaml keys=3000000;
    weir_headers off;
""" % {"key": KEY}
PLACES = {
    "none": "weir_check off;",
    "limit_req": "weir_check off; limit_req zone=req burst=1000 nodelay;",
    "weir_req": "weir_check off; weir_req zone=weir_req burst=1000 nodelay;",
    "limit_conn": "weir_check off; limit_conn conn 1000;",
    "weir_conn": "weir_check off; weir_conn weir_conn 1000;",
    "rules": "",  # 100, of which 3 apply
}
RESTY = """weir_check off; access_by_lua_block {
    local limiter = require("resty.limit.req").new("resty", 1000000, 1000)
    local delay, err = limiter:incoming(ngx.var.binary_remote_addr .. (ngx.var.arg_k or ""), true)
    if not delay then return ngx.exit(429) end
}"""
# One bucket as usual: a hash, refilled by the time that has passed.
BUCKET = """
local b = redis.call('HMGET', KEYS[1], 'n', 't')
local now = redis.call('TIME')
now = now[1] + now[2] / 1000000
local n = math.min(1000, (tonumber(b[1]) or 1000) + (now - (tonumber(b[2]) or now)) * 1000000)
local allowed = n >= 1
if allowed then n = n - 1 end
redis.call('HSET', KEYS[1], 'n', n, 't', now)
redis.call('PEXPIRE', KEYS[1], 60000)
return allowed and 1 or 0"""
ASK_REDIS = """weir_check off; access_by_lua_block {
    local s = ngx.socket.tcp()
    s:connect("127.0.0.1", %d)
    local key = ngx.var.binary_remote_addr .. (ngx.var.arg_k or "")
    local words = "*4\\r\\n$7\\r\\nEVALSHA\\r\\n$40\\r\\n%s\\r\\n$1\\r\\n1\\r\\n$"
    s:send({words, #key, "\\r\\n", key, "\\r\\n"})
    if s:receive() ~= ":1" then return ngx.exit(429) end
    s:setkeepalive(60000, 64)
}"""
MANY = """local path
function init(args) path = wrk.path math.randomseed(os.time()) end
function request() return wrk.format("GET", path .. "?k=" .. math.random(%d)) end
""" % KEYS


def rules():
    lines = ["version: 1", "rules:"]
    for i in range(100):
        where = "/rules" if i in (11, 47, 83) else "/other%d" % i
        lines.append("  - { name: r%d, match: { uri: \"%s\" }, key: \"{ip} {arg.k|none}\", "
                     "limit: 1000000/s }" % (i, where))
    return "\n".join(lines) + "\n"


def tell(name, value, unit):
    print("nginx.%s\t%.4g\t%s" % (name, value, unit), flush=True)


def skip(what, why):
    print("skipped: %s: %s" % (what, why), file=sys.stderr)


def lua_places(redis):
    """With Debian's lua module; and lines for the rest of the configuration."""
    if not os.path.exists(MODULES + "ngx_http_lua_module.so"):
        skip("lua", "no libnginx-mod-http-lua here")
        return {}, "", ""
    sha = redis.client("SCRIPT", "LOAD", BUCKET)
    places = {"lua-redis": ASK_REDIS % (redis.port, sha)}
    folder = os.environ.get("WEIR_BENCH_RESTY")
    http = "lua_shared_dict resty 200m; lua_package_path '%s/?.lua;;';" % (folder or "")
    if folder:
        places["resty"] = RESTY
    else:
        skip("lua-resty-limit-traffic", "WEIR_BENCH_RESTY does not name its folder")
    return places, http, "".join("load_module %s%s;" % (MODULES, name) for name in
                                 ["ndk_http_module.so", "ngx_http_lua_module.so"])


def cpu_of(pids):
    """In seconds."""
    total = 0
    for pid in pids:
        with open("/proc/%d/schedstat" % pid) as file:
            total += int(file.read().split()[0])
    return total / 1e9


def ask(nginx, place, script, seconds):
    """Requests a second, and CPU of the workers for each, in microseconds."""
    workers = nginx.workers()
    before = cpu_of(workers)
    command = ["wrk", "-t1", "-c%d" % CONNECTIONS, "-d%ds" % seconds]
    url = "http://127.0.0.1:%d/%s" % (nginx.port, place)
    said = subprocess.run(command + (["-s", script] if script else []) + [url], check=True,
                          capture_output=True, text=True).stdout
    count = int(re.search(r"(\d+) requests in", said).group(1))
    if "Non-2xx" in said:
        raise RuntimeError(place + ": " + said)
    return (float(re.search(r"Requests/sec: *([\d.]+)", said).group(1)),
            1e6 * (cpu_of(workers) - before) / count)


def fill(nginx, place):
    """Each key once.  Else most keys of a short run would be new, and limit_req's tree small."""
    for first in range(1, KEYS + 1, PIPELINED):
        asks = ["GET /%s?k=%d HTTP/1.1\r\nHost: fill\r\n" % (place, first + i)
                for i in range(PIPELINED)]
        with socket.create_connection(("127.0.0.1", nginx.port), timeout=60) as s:
            s.sendall(("\r\n".join(asks) + "Connection: close\r\n\r\n").encode())
            said = b"".join(iter(lambda: s.recv(1 << 18), b""))
        if said.count(b"HTTP/1.1 200 ") != PIPELINED:
            raise RuntimeError("%s: %r" % (place, said[-300:]))


def measure(nginx, workers, places, seconds, rounds):
    found, added = {}, {}
    script = nginx.path("many.lua")
    write(script, MANY)
    for place in set(places) - {"none", "lua-redis"}:
        fill(nginx, place)
    for _ in range(rounds):
        for place in places:
            for keys, by in [("one-key", None), ("many-keys", script)]:
                none = ask(nginx, "none", by, seconds)
                run = none if place == "none" else ask(nginx, place, by, seconds)
                found.setdefault((place, keys), []).append(run)
                added.setdefault((place, keys), []).append(100 * (run[1] / none[1] - 1))
    for (place, keys), runs in found.items():
        name = "%s.%s.%d-worker%s" % (place, keys, workers, "s" if workers > 1 else "")
        tell(name + ".rate", statistics.median(run[0] for run in runs), "requests/s")
        tell(name + ".cpu", statistics.median(run[1] for run in runs), "us/request")
        if place != "none":
            tell(name + ".added", statistics.median(added[place, keys]), "percent")


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit("usage: nginx.py BUILD [SECONDS [ROUNDS]]")
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 7
    tempfile.tempdir = "/dev/shm"  # where /run is: in memory
    module = os.path.join(sys.argv[1], "nginx/ngx_http_weir_module.so")
    with Redis() as redis:
        more, http, main_ = lua_places(redis)
        places = dict(PLACES, **more)
        server = "".join("location /%s { %s empty_gif; }" % place for place in places.items())
        for workers in [1, 2]:
            with Nginx(module, "", "", workers=workers, main=main_, log="crit") as nginx:
                write(nginx.path("rules.yaml"), rules())
                nginx.configure(http=ZONES + http, server=server)
                nginx.reload()
                measure(nginx, workers, places, seconds, rounds)


if __name__ == "__main__":
    main()
