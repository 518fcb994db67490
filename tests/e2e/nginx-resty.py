#!/usr/bin/env python3
"""nginx-resty.py LIBRARY [TEST...] -- resty.weir in a real nginx with lua-nginx-module: the answers
of resty.limit.req, conn, count and traffic, over workers, reloads and kills.  Rates of one an hour
make no test depend on how fast it runs."""
import os
import shutil
import signal

from nginxing import Backend, Nginx, environment
from serving import run_tests, until

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOAD = """load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;"""
HTTP = """lua_package_path "{folder}/?.lua;;";
    init_by_lua_block {
        require("resty.weir").init { table = "{folder}/lua.weir", library = "{library}" }
    }"""
SAY = """location = /t { chunked_transfer_encoding off; content_by_lua_block {
    local function say(...)
        local words = {}
        for i = 1, select("#", ...) do words[i] = tostring((select(i, ...))) end
        ngx.say(table.concat(words, " "))
    end
    %s
} }"""


def resty(library, server, http=HTTP, workers=1, kills=False):
    library = os.path.abspath(library)
    nginx = Nginx(None, "", "", main=LOAD, workers=workers, kills=kills, env=environment(library))
    try:
        # Workers of root's nginx are another user, who may not be let into the source tree.
        shutil.copytree(ROOT + "/nginx/resty", nginx.path("resty"))
        fill = {"{folder}": nginx.folder, "{library}": library}
        for name, value in fill.items():
            http, server = http.replace(name, value), server.replace(name, value)
        nginx.configure(http=http, server=server)
        nginx.reload()
    except BaseException as problem:
        nginx.__exit__(type(problem), problem, None)
        raise
    return nginx


def said(library, code, http=HTTP):
    """The lines that some Lua says."""
    with resty(library, SAY % code, http) as nginx:
        answer = nginx.get("/t")
        assert answer.status == 200, nginx.complaints()
        return answer.body.decode().splitlines()


def check(library, code, *lines):
    found = said(library, code)
    assert found == list(lines), found


def test_N1_req_delays_and_rejects(library):
    code = """local lim = require("resty.weir.req").new("store", 2, 3)
        for i = 1, 5 do say(lim:incoming("a", true)) end
        say(lim:incoming("b", false))
        say(lim:incoming("b", false))
        say(lim:incoming("b", true))
        say(lim:incoming("b", false))
        say(require("resty.weir.req").new("store", 2, 3):incoming("b", true))"""
    check(library, code, "0 0", "0.5 1", "1 2", "1.5 3", "nil rejected", "0 0", "0 0", "0 0",
          "0.5 1", "0.5 1")


def test_N1_req_of_a_name_that_comes_late(library):
    """When Lua has long collected the garbage of the module's own code."""
    code = """local req, kept = require("resty.weir.req"), {}
        for _ = 1, 3 do collectgarbage() end
        for i = 1, 20000 do kept[i % 100] = "other-bytes" .. i end
        say(assert(req.new("store", 2, 3)):incoming("a", true))"""
    check(library, code, "0 0")


def test_N1_req_fractions_and_changes(library):
    code = """local lim = require("resty.weir.req").new("store", 0.5, 0.5)
        say(lim:incoming("a", true))
        say(lim:incoming("a", true))
        lim:set_burst(2)
        say(lim:incoming("a", true))
        say(lim:uncommit("a"))
        say(lim:incoming("a", false))
        lim:set_rate(0.25)
        say(lim:incoming("a", false)) -- its debt is a time"""
    check(library, code, "0 0", "nil rejected", "2 1", "true", "2 1", "2 0.5")


def test_N1_count_in_a_window(library):
    code = """local lim = require("resty.weir.count").new("store", 3, 3600)
        say(lim:incoming("a", true))
        say(lim:incoming("a", false))
        say(lim:incoming("a", true))
        say(lim:uncommit("a"))
        say(lim:incoming("a", true))
        say(lim:incoming("a", true))
        say(lim:incoming("a", true))
        say(lim:incoming("b", true))"""
    check(library, code, "0 2", "0 1", "0 1", "2", "0 1", "0 0", "nil rejected", "0 2")


def test_N1_a_count_for_each_customer(library):
    code = """local count = require "resty.weir.count"
        for limit = 1, 2000 do
            local lim, err = count.new("store", limit, 3600)
            if not lim then return say(limit, err) end
            local _, left = lim:incoming("customer " .. limit, true)
            if left ~= limit - 1 then return say(limit, left) end
        end
        say("all")"""
    check(library, code, "all")


def test_N2_conn_with_half_a_connection(library):
    code = """local lim = require("resty.weir.conn").new("store", 1.5, 1, 0.5)
        for i = 1, 3 do say(lim:incoming("a", true)) end
        say(lim:leaving("a"))"""
    check(library, code, "0 1", "0 2", "nil rejected", "1")


def test_N2_conn_counts_and_delays(library):
    code = """local lim = require("resty.weir.conn").new("store", 2, 2, 0.5)
        for i = 1, 5 do say(lim:incoming("a", true)) end
        say(lim:is_committed())
        say(lim:leaving("a", 1.5))
        say(lim:incoming("a", false))
        say(lim:is_committed())
        say(lim:incoming("a", true))
        say(lim:uncommit("a"))
        lim:set_conn(1)
        lim:set_burst(0)
        say(lim:incoming("a", true))
        say(lim:incoming("b", true))
        say(lim:leaving("c"))
        say(lim:incoming(7, true))
        say(lim:leaving("7"))
        for i = 1, 3 do lim:leaving("a") end
        say(lim:incoming("a", true))"""
    check(library, code, "0 1", "0 2", "0.5 3", "0.5 4", "nil rejected", "false", "3",
          "1 4", "false", "1 4", "3", "nil rejected", "0 1", "nil not found", "0 1", "0", "0 1")


def test_N2_a_look_takes_no_permit(library):
    """Somebody who asks meanwhile would be refused without need."""
    code = """local weir, entered = require("resty.weir"), 0
        local library = weir.library
        weir.library = setmetatable({ weir_enter_within = function(...)
            entered = entered + 1
            return library.weir_enter_within(...)
        end }, { __index = library })
        local lim = require("resty.weir.conn").new("store", 1, 1, 0.5)
        say(lim:incoming("a", false))
        say(lim:incoming("a", true))
        say(lim:incoming("a", false))
        say(lim:incoming("a", true))
        say(lim:leaving("a"))
        say(lim:leaving("a"))
        say(entered)"""
    check(library, code, "0 1", "0 1", "0.5 2", "0.5 2", "1", "0", "2")


def test_N2_keys_that_are_none(library):
    """No permit is taken, so none is lost."""
    code = """local lim = require("resty.weir.conn").new("store", 1, 0, 0.5)
        for i = 1, 3 do say(lim:incoming(nil, true)) end
        say(lim:leaving(nil))
        say(lim:incoming({}, true))
        for i = 1, 2 do say(lim:incoming("", true)) end
        say(lim:leaving(""))
        say(lim:incoming("nil", true))
        say(require("resty.weir.req").new("store", 1, 0):incoming(nil, true))
        say(require("resty.weir.req").new("store", 1, 0):incoming("", true))
        say(require("resty.weir.count").new("store", 1, 60):uncommit(true))"""
    no = "nil a key is a string or a number, not a "
    check(library, code, *["nil nil key"] * 4, no + "table", *["nil empty key"] * 3, "0 1",
          "nil nil key", "nil empty key", no + "boolean")


def test_N1_long_windows_and_low_rates(library):
    code = """local count, req = require "resty.weir.count", require "resty.weir.req"
        say(count.new("store", 1, 1234567):incoming("a", true))
        say(count.new("store", 1, 1234568):incoming("a", true))
        local lim = req.new("store", 1e-9, 0)
        say(lim:incoming("a", true))
        say(lim:incoming("a", true))"""
    check(library, code, "0 0", "0 0", "0 0", "nil rejected")


def test_N1_combine_is_all_or_nothing(library):
    code = """local req, count = require "resty.weir.req", require "resty.weir.count"
        local limiters = { req.new("a", 2, 9), req.new("b", 4, 9), count.new("c", 2, 3600) }
        local keys, states = { "x", "y", "z" }, {}
        for i = 1, 3 do
            say(require("resty.weir.traffic").combine(limiters, keys, states))
            say(unpack(states))
        end
        for i, lim in ipairs(limiters) do say(lim:incoming(keys[i], false)) end"""
    check(library, code, "0", "0 0 1", "0.5", "1 1 0", "nil rejected", "1 1 0", "1 2",
          "0.5 2", "nil rejected")


def test_N1_combine_undoes_what_it_has_done(library):
    code = """local log = {}
        local function fake(name, refuses)
            return {
                incoming = function(_, _, commit)
                    if commit then log[#log + 1] = "+" .. name end
                    if commit and refuses then return nil, "no" end
                    return 0
                end,
                uncommit = function() log[#log + 1] = "-" .. name end,
            }
        end
        say(require("resty.weir.traffic").combine({ fake "a", fake("b", true), fake "c", fake "d" },
                                                  { 1, 2, 3, 4 }))
        say(unpack(log))"""
    check(library, code, "nil no", "+d +a +b -a -d")


LIMITED = """location / { access_by_lua_block {
    local lim = require("resty.weir.req").new("store", 1 / 3600, 4)
    if not lim:incoming(ngx.var.arg_k, true) then return ngx.exit(429) end
} }"""


def test_N3_workers_and_reloads_share_the_table(library):
    with resty(library, LIMITED, workers=2) as nginx:
        found = nginx.statuses(3, "/index.html?k=a")
        assert found == [200] * 3, (found, nginx.complaints())
        for _ in range(10):
            nginx.reload()
        assert nginx.statuses(9, "/index.html?k=a") == [200] * 2 + [429] * 7
        # each configuration opens it, and an old one leaves it
        with open("/proc/%d/maps" % nginx.pid()) as file:
            starts = [line for line in file if line.endswith("/lua.weir\n")]
        with open("/proc/%d/maps" % nginx.workers()[0]) as file:
            once = [line for line in file if line.endswith("/lua.weir\n")]
        assert 0 < len(starts) <= 2 * len(once), (starts, once)


def test_N1_a_rate_of_0_is_the_lowest_there_is(library):
    """One in 30 days."""
    code = """local lim = require("resty.weir.req").new("store", 1, 1)
        lim:set_rate(0)
        for i = 1, 2 do say(lim:incoming("a", true)) end"""
    check(library, code, "0 0", "nil rejected")


def test_N3_requests_tend_the_table(library):
    code = """local weir = require("resty.weir")
        local real, tended, time = weir.library, 0, 0
        weir.library = setmetatable({ weir_table_tend = function(...)
            tended = tended + 1
            return real.weir_table_tend(...)
        end }, { __index = real })
        ngx.now = function() return time end
        local lim = require("resty.weir.req").new("store", 1, 1)
        for _, seconds in ipairs { 1e9, 1e9 + 9, 1e9 + 10, 1e9 + 11, 1e9 + 20 } do
            time = seconds
            lim:incoming("a", true)
            say(tended)
        end"""
    check(library, code, "1", "1", "2", "2", "3")


def test_N2_a_killed_worker_gives_its_permits_back(library):
    held = """location / {
        access_by_lua_block {
            local lim = require("resty.weir.conn").new("store", 2, 0, 1)
            if not lim:incoming("a", true) then return ngx.exit(429) end
            ngx.ctx.lim = lim
        }
        log_by_lua_block { if ngx.ctx.lim then ngx.ctx.lim:leaving("a") end }
        proxy_pass http://unix:{folder}/backend;
    }
    location = /look { content_by_lua_block {
        local lim = require("resty.weir.conn").new("store", 2, 0, 1)
        return ngx.exit(lim:incoming("a", false) and 204 or 429)
    } }"""
    with resty(library, held, kills=True) as nginx, Backend(nginx) as backend:
        asks = [(nginx.send(), backend.accept()) for _ in range(2)]
        assert nginx.get().status == 429
        backend.answer(asks[0][1])
        assert asks[0][0].answer().status == 200
        asks.append((until_through(nginx, backend)))  # what has ended has left
        os.kill(nginx.workers()[0], signal.SIGKILL)
        until("another worker runs", nginx.workers)
        until("a look sees it", lambda: nginx.get("/look").status == 204)
        until_through(nginx, backend)


def until_through(nginx, backend):
    """Asks until a request comes through to the backend."""
    def is_through():
        ask = nginx.send()
        until("it is decided", lambda: ask.is_answered() or backend.is_asked())
        if backend.is_asked():
            return ask, backend.accept()
        assert ask.answer().status in (429, None)
        return None
    return until("a permit is free", is_through)


def test_N3_without_a_table(library):
    code = """say(require("resty.weir.req").new("store", 1, 1))
        say(pcall(require("resty.weir").init, {}))"""
    check(library, 'say(pcall(require("resty.weir").init, {}))',
          "false resty.weir: init was called before")
    first, second = said(library, code, HTTP.split("init_by_lua_block")[0])
    assert first == "nil no table: call resty.weir's init in init_by_lua", first
    assert "init needs a table" in second, second


CUT = """location / { content_by_lua_block {
    local lim, why = require("resty.weir.conn").new("store", 1, 0, 1)
    local delay, err = before_fork:incoming("a", true)
    ngx.status = delay and 200 or err == "rejected" and 429 or 503
    ngx.say(tostring(lim ~= nil), " ", tostring(why), " ", tostring(err))
} }"""


BEFORE_FORK = 'before_fork = require("resty.weir.req").new("store", 1 / 3600, 1) }'


def test_N3_a_table_that_was_cut(library):
    """A worker dies of it, and the next one refuses; so does a reload, until it was removed."""
    for size in (0, 4096):
        with resty(library, CUT, HTTP[:-1] + BEFORE_FORK, kills=True) as nginx:
            nginx.bad = "no sanitizer likes that"
            assert nginx.statuses(3) == [200, 200, 429]
            table, before = nginx.path("lua.weir"), nginx.workers()
            os.truncate(table, size)
            nginx.get()
            until("another worker runs", lambda: nginx.workers() and nginx.workers() != before, 60)
            assert nginx.statuses(5) == [503] * 5
            assert nginx.get().body.count(b"the table was truncated") == 2
            assert nginx.logged("exited on signal") == 1, nginx.log()
            os.kill(nginx.pid(), signal.SIGHUP)
            until("it is refused", lambda: nginx.logged("init_by_lua error"), 60)
            assert nginx.get().status == 503
            os.unlink(table)
            nginx.reload()
            assert nginx.statuses(3) == [200, 200, 429]


def test_N3_names_that_are_none(library):
    code = """say(require("resty.weir.req").new("", 1, 1))
        say(require("resty.weir.count").new(("x"):rep(99), 1, 1))
        say(pcall(require("resty.weir.req").new, "store", 0, 1))"""
    first, second, third = said(library, code)
    assert first == "nil a limiter needs a name" and "too long" in second, (first, second)
    assert third.startswith("false"), third


if __name__ == "__main__":
    run_tests(globals())
