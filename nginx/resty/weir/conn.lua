-- conn.lua -- requests in progress, as resty.limit.conn has it.
--
-- Each has a permit of a guard, which a worker that dies gives back within a second.  A permit
-- lasts an hour at most.
local ffi = require "ffi"
local weir = require "resty.weir"

local floor = math.floor

local PERMITS_MAX = 16384 -- of a guard, over all keys
local HOUR = 3600 * 1000000000LL

local _M = {}
local mt = { __index = _M }

local held = {} -- this worker's permits: dict -> key -> list

local function options()
    local o = ffi.new("struct weir_guard_options")

    o.max, o.max_per_key, o.lease = PERMITS_MAX, PERMITS_MAX, HOUR
    return o
end

function _M.new(dict_name, max, burst, default_conn_delay)
    assert(max > 0 and burst >= 0 and default_conn_delay > 0)
    local guard, err = weir.guard(dict_name, options())

    if not guard then
        return nil, err
    end
    held[dict_name] = held[dict_name] or {}
    return setmetatable({
        guard = guard,
        held = held[dict_name],
        max = max,
        burst = burst,
        unit_delay = default_conn_delay,
        committed = false,
    }, mt)
end

-- This worker's own, with one to come; for the rare case that the guard's other keys say more.
local function count_own(self, key)
    return self.held[key] and #self.held[key] + 1 or 1
end

-- The permit and how many the key has with it; or nil.
local function enter(self, key)
    local most = math.min(floor(self.max + self.burst), PERMITS_MAX)
    local permit = ffi.new("struct weir_permit")
    local ask, decision = weir.ask(key, 1)

    if most < 1 or not weir.library.weir_enter_within(self.guard, ask, most, permit, decision) then
        return nil
    end
    local keyed = decision.limit == most
    return permit, keyed and most - tonumber(decision.remaining) or count_own(self, key)
end

local function exit(self, permit)
    weir.library.weir_exit(self.guard, permit, ffi.C.WEIR_IGNORED, weir.now())
end

local function count(self, key)
    return tonumber(weir.library.weir_guard_key_in_flight(self.guard, weir.ask(key, 1).key))
end

-- How many the key would have with one more; or nil.  It takes no permit of the key: others may
-- need that.  If there seems to be none, some may be of workers that have died: to enter without a
-- key makes the guard look.
local function look(self, key)
    local most = math.min(floor(self.max + self.burst), PERMITS_MAX)
    local conn = count(self, key) + 1

    if conn > most then
        local permit = enter(self, "")
        if permit then
            exit(self, permit)
        end
        conn = count(self, key) + 1
    end
    return conn <= most and conn or nil
end

-- 0 or the delay in seconds, and the key's requests in progress; or nil, "rejected".
function _M.incoming(self, key, commit)
    local key, err = weir.key(key)

    self.committed = false
    if not key then
        return nil, err
    end
    local permit, conn
    if commit then
        permit, conn = enter(self, key)
    else
        conn = look(self, key)
    end
    if not conn then
        return nil, "rejected"
    end
    if permit then
        self.committed = true
        self.held[key] = self.held[key] or {}
        table.insert(self.held[key], permit)
    end
    if conn > self.max then
        return self.unit_delay * floor((conn - 1) / self.max), conn
    end
    return 0, conn
end

function _M.is_committed(self)
    return self.committed
end

-- Gives back one of the key's permits of this worker.
local function leave(self, key)
    local key, err = weir.key(key)
    local permits = key and self.held[key]
    local permit = permits and table.remove(permits)

    if not permit then
        return nil, err or "not found"
    end
    exit(self, permit)
    if #permits == 0 then
        self.held[key] = nil
    end
    return count(self, key)
end

-- Requests in progress after it; with its latency in seconds the next delays are nearer to that.
function _M.leaving(self, key, req_latency)
    if req_latency then
        self.unit_delay = (req_latency + self.unit_delay) / 2
    end
    return leave(self, key)
end

function _M.uncommit(self, key)
    return leave(self, key)
end

function _M.set_conn(self, conn)
    self.max = conn
end

function _M.set_burst(self, burst)
    self.burst = burst
end

return _M
