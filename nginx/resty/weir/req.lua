-- req.lua -- the rate of requests, as resty.limit.req has it.
--
-- A key owes time: a request at 2/s costs half a second, and debt is paid off as time goes by.  A
-- request waits for the debt before it, and is rejected if that is more than `burst` requests.  So
-- one limiter of the table has all rates and bursts, and an object may change its own at any time.
local ffi = require "ffi"
local weir = require "resty.weir"

local floor, max, min = math.floor, math.max, math.min

local SECOND = 1000000000
local DEBT_MAX = 30 * 86400 * SECOND
local RATE_LEAST = SECOND / DEBT_MAX

local _M = {}
local mt = { __index = _M }

-- A unit is a nanosecond.
local limit = ffi.new("struct weir_limit", {
    count = SECOND,
    period = SECOND,
    burst = 1,
    queue = DEBT_MAX,
})

-- At most all the debt that a key can have: no rate is lower than 1 in 30 days.
local function price(self)
    return max(1, floor(SECOND / max(self.rate, RATE_LEAST) + 0.5))
end

function _M.new(dict_name, rate, burst)
    assert(rate > 0 and burst >= 0)
    limit.algorithm = "leaky-bucket" -- here it lasts as long as the function; C keeps no string alive
    local limiter, err = weir.limiter("req", dict_name, limit)

    if not limiter then
        return nil, err
    end
    return setmetatable({ limiter = limiter, rate = rate, burst = burst }, mt)
end

-- 0 or the delay in seconds, and by how many requests the key is ahead; or nil, "rejected".
function _M.incoming(self, key, commit)
    local cost = price(self)
    local wait_max = min(DEBT_MAX, floor(self.burst * cost + 0.5))
    local decision, err = weir.decide(self.limiter, key, cost, wait_max, commit)

    if not decision then
        return nil, err
    end
    local excess = floor(tonumber(decision.wait) / cost * 1000 + 0.5) / 1000
    return excess / max(self.rate, RATE_LEAST), excess
end

-- Gives the last request back.  As in resty.limit.req a key that was asked for keeps one.
function _M.uncommit(self, key)
    local key, err = weir.key(key)

    if not key then
        return nil, err
    end
    local cost = price(self)
    local ask, decision = weir.ask(key, cost, DEBT_MAX)
    local owed = 0

    if weir.library.weir_peek(self.limiter, ask, decision) then
        owed = tonumber(decision.wait)
    end
    ask.cost = max(0, min(cost, owed - cost))
    weir.library.weir_give(self.limiter, ask)
    return true
end

function _M.set_rate(self, rate)
    self.rate = rate
end

function _M.set_burst(self, burst)
    self.burst = burst
end

return _M
