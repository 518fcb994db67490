-- count.lua -- a number of requests in a window, as resty.limit.count has it.  The window of a key
-- begins with its first request.
local ffi = require "ffi"
local weir = require "resty.weir"

local floor, format = math.floor, string.format

local _M = {}
local mt = { __index = _M }

function _M.new(dict_name, limit, window)
    assert(limit > 0 and window > 0)
    local kind = format("count/%d/%.15g", limit, window)
    local limiter, err = weir.limiter(kind, dict_name, ffi.new("struct weir_limit", {
        algorithm = "fixed-window",
        count = limit,
        period = floor(window * 1e9),
        align_first = true,
    }))

    if not limiter then
        return nil, err
    end
    return setmetatable({ limiter = limiter, limit = limit, window = window }, mt)
end

-- 0 and how many are left; or nil, "rejected".
function _M.incoming(self, key, commit)
    local decision, err = weir.decide(self.limiter, key, 1, 0, commit)

    if not decision then
        return nil, err
    end
    return 0, tonumber(decision.remaining)
end

-- Gives one back; how many are left.
function _M.uncommit(self, key)
    local key, err = weir.key(key)

    if not key then
        return nil, err
    end
    local ask, decision = weir.ask(key, 1)
    weir.library.weir_give(self.limiter, ask)
    ask.cost = 0
    weir.library.weir_peek(self.limiter, ask, decision)
    return tonumber(decision.remaining)
end

return _M
