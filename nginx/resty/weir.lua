-- weir.lua -- Weir's library in lua-nginx-module: the table, and what the limiters have in common.
--
--     init_by_lua_block { require("resty.weir").init { table = "/run/nginx-lua.weir" } }
--
-- The table stands in for lua_shared_dict: the master opens it before it forks, and all workers
-- share it, with other programs on the host too.  What a limiter calls its dict is only a name in
-- the table.
local ffi = require "ffi"

-- As in weir.h; a test compares them.
local declarations = [[
typedef int64_t weir_time;
struct weir_error {
    int column;
    char text[244];
};
struct weir_limit {
    const char *algorithm;
    int64_t count;
    weir_time period;
    int64_t burst;
    int64_t queue;
    int32_t buckets;
    bool align_first;
    bool loose;
    weir_time warmup;
    int32_t cold;
    int32_t calendar;
    char zone[40];
};
struct weir_key {
    const void *bytes;
    size_t len;
};
struct weir_ask {
    struct weir_key key;
    int64_t cost;
    weir_time wait_max;
    weir_time now;
    int8_t priority;
    uint8_t user_class;
};
struct weir_decision {
    bool allowed;
    uint8_t reason;
    uint16_t item;
    int64_t limit;
    int64_t remaining;
    weir_time wait;
    weir_time retry;
    weir_time reset;
};
struct weir_table;
struct weir_table_options {
    const char *path;
    int64_t keys;
    int64_t slab;
    int64_t limiters;
    int64_t bans;
    int64_t guards;
    bool narrow;
    unsigned mode;
    unsigned owner, group;
};
struct weir_limiter;
struct weir_guard;
enum weir_mode { WEIR_AS_WRITTEN = 0, WEIR_ENFORCE = 1, WEIR_SHADOW = 2, WEIR_OFF = 3 };
enum weir_outcome {
    WEIR_SUCCEEDED = 0,
    WEIR_FAILED = 1,
    WEIR_TIMED_OUT = 2,
    WEIR_DROPPED = 3,
    WEIR_IGNORED = 4,
};
struct weir_breaker_options {
    int32_t error_percent;
    int32_t errors;
    weir_time slow;
    int32_t slow_percent;
    weir_time window;
    int32_t calls;
    int32_t min_calls;
    weir_time open_for;
    weir_time open_max;
    int32_t jitter_percent;
    int32_t probes;
    bool above;
};
struct weir_adaptive_options {
    const char *controller;
    int64_t initial, min, max;
    weir_time target;
    int32_t percentile;
    weir_time window;
    bool rate;
};
struct weir_system_options {
    int32_t cpu_percent;
    int32_t pressure_percent;
    int32_t memory_percent;
    int32_t run_queue;
    weir_time mean_time;
    int32_t in_flight;
    int32_t rate;
};
struct weir_guard_options {
    int64_t max;
    int64_t max_per_key;
    weir_time lease;
    struct weir_breaker_options breaker;
    struct weir_adaptive_options adaptive;
    struct weir_system_options system;
    bool shed;
    struct weir_class {
        char name[16];
        int32_t weight;
    } classes[8];
    int32_t degrade;
    int32_t raises;
    enum weir_mode mode;
};
struct weir_permit {
    uint64_t word;
    uint32_t seat;
    weir_time since;
};
const char *weir_version(void);
int weir_table_create(struct weir_table **out, const struct weir_table_options *options,
                      struct weir_error *error);
void weir_table_destroy(struct weir_table *table);
bool weir_table_is_cut(const struct weir_table *table);
weir_time weir_table_now(const struct weir_table *table);
void weir_table_tend(struct weir_table *table, weir_time now);
int weir_limiter_create(struct weir_limiter **out, struct weir_table *table, const char *name,
                        const struct weir_limit *limit, struct weir_error *error);
bool weir_take(struct weir_limiter *limiter, const struct weir_ask *ask,
               struct weir_decision *decision);
bool weir_peek(struct weir_limiter *limiter, const struct weir_ask *ask,
               struct weir_decision *decision);
void weir_give(struct weir_limiter *limiter, const struct weir_ask *ask);
int weir_guard_create(struct weir_guard **out, struct weir_table *table, const char *name,
                      const struct weir_guard_options *options, struct weir_error *error);
bool weir_enter_within(struct weir_guard *guard, const struct weir_ask *ask, int64_t max,
                       struct weir_permit *permit, struct weir_decision *decision);
bool weir_exit(struct weir_guard *guard, struct weir_permit *permit, enum weir_outcome outcome,
               weir_time now);
int64_t weir_guard_key_in_flight(struct weir_guard *guard, struct weir_key key);
]]
ffi.cdef(declarations)

local VERSION = "0.1.0" -- of the library whose structs these are; a test compares it too
local NAME_MAX = 63
local LIMITERS = 4096 -- an object of `count` may have a limit of its own for each customer
local TEND_EVERY = 10 -- seconds

local _M = { library = nil, declarations = declarations }

local shared    -- the table; its end is the Lua VM's
local made = {} -- limiters and guards by name
local problem = ffi.new("struct weir_error")
local ask = ffi.new("struct weir_ask")
local decision = ffi.new("struct weir_decision")
local bytes -- of the ask's key, while C looks at them

-- If somebody cuts the table's file, a worker that touches what is missing dies.  The one that
-- follows it sees that when it first needs the table.
local CUT = "the table was truncated: stop everything that uses it, and remove it"
local looked, cut -- the process that has looked, and what it saw
local function is_cut()
    local pid = ngx.worker.pid()

    if pid ~= looked then
        looked, cut = pid, _M.library.weir_table_is_cut(shared)
    end
    return cut
end

local function leave(table)
    if not _M.library.weir_table_is_cut(table) then
        _M.library.weir_table_destroy(table)
    end
end

-- In init_by_lua, before nginx forks.  options: table, a file; keys, room for that many (65536);
-- limiters, likewise; mode of a new file (0600, and root's: workers have it from the master);
-- library, if it is not libweir.so.0 where libraries are.
function _M.init(options)
    local out, path = ffi.new("struct weir_table *[1]"), options.table
    local o = ffi.new("struct weir_table_options")

    if shared then
        error("resty.weir: init was called before", 2)
    end
    if type(path) ~= "string" or path == "" then
        error("resty.weir: init needs a table: a file, as in /run/nginx-lua.weir", 2)
    end
    _M.library = ffi.load(options.library or "libweir.so.0")
    local found = ffi.string(_M.library.weir_version())
    if found ~= VERSION then
        error("resty.weir: the library is Weir " .. found .. ", and resty/weir is of " .. VERSION, 2)
    end
    o.path, o.keys, o.mode = path, options.keys or 0, options.mode or 0
    o.limiters = options.limiters or LIMITERS
    if _M.library.weir_table_create(out, o, problem) ~= 0 then
        error("resty.weir: " .. ffi.string(problem.text), 2)
    end
    shared = ffi.gc(out[0], leave)
    return true
end

-- The table's time, which stands still as long as nginx's own does.  Now and then the worker that
-- reads it tends the table: limits, guards and permits that nobody uses any more go.
local seen, now
local tended = 0
function _M.now()
    local tick = ngx.now()

    if tick ~= seen then
        seen, now = tick, _M.library.weir_table_now(shared)
        if tick - tended >= TEND_EVERY then
            tended = tick
            _M.library.weir_table_tend(shared, now)
        end
    end
    return now
end

-- The key as a string; or nil and why not: nobody may ask.
function _M.key(key)
    local kind = type(key)

    if is_cut() then
        return nil, CUT
    end
    if key == "" then -- to a guard that is no key, and any number of them would pass
        return nil, "empty key"
    end
    if kind == "string" or kind == "number" then
        return tostring(key)
    end
    return nil, kind == "nil" and "nil key" or "a key is a string or a number, not a " .. kind
end

-- One ask at a time: the same structs again, and no garbage.  The key is a string.
function _M.ask(key, cost, wait_max)
    bytes = key
    ask.key.bytes, ask.key.len = bytes, #bytes
    ask.cost, ask.wait_max, ask.now = cost, wait_max or 0, _M.now()
    return ask, decision
end

-- Takes, or only looks.  The decision; or nil and why not.
function _M.decide(limiter, key, cost, wait_max, commit)
    local key, err = _M.key(key)

    if not key then
        return nil, err
    end
    local call = commit and _M.library.weir_take or _M.library.weir_peek

    _M.ask(key, cost, wait_max)
    if not call(limiter, ask, decision) then
        return nil, "rejected"
    end
    return decision
end

-- The one of that kind and name.  An object may be made for each request, so they are kept.
local function found(name, dict, make)
    if shared == nil then
        return nil, "no table: call resty.weir's init in init_by_lua"
    end
    if type(dict) ~= "string" or dict == "" then
        return nil, "a limiter needs a name"
    end
    if #name > NAME_MAX then
        return nil, "the name is too long: " .. name
    end
    if is_cut() then
        return nil, CUT
    end
    if not made[name] then
        local code, it = make()
        if code ~= 0 then
            return nil, name .. ": " .. ffi.string(problem.text)
        end
        made[name] = it
    end
    return made[name]
end

function _M.limiter(kind, dict, limit)
    local name = kind .. "/" .. tostring(dict)

    return found(name, dict, function()
        local out = ffi.new("struct weir_limiter *[1]")
        return _M.library.weir_limiter_create(out, shared, name, limit, problem), out[0]
    end)
end

function _M.guard(dict, options)
    local name = "conn/" .. tostring(dict)

    return found(name, dict, function()
        local out = ffi.new("struct weir_guard *[1]")
        return _M.library.weir_guard_create(out, shared, name, options, problem), out[0]
    end)
end

return _M
