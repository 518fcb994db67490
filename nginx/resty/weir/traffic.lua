-- traffic.lua -- several limiters at once, as resty.limit.traffic has it: all pass, or none is
-- charged.
local max = math.max

local _M = {}

local function commit(limiters, keys, states, i)
    local delay, state = limiters[i]:incoming(keys[i], true)

    if delay and states then
        states[i] = state
    end
    return delay, state
end

-- Undoes what was committed: the last one, and the first n.
local function undo(limiters, keys, n)
    for i = 1, n do
        limiters[i]:uncommit(keys[i])
    end
    limiters[#limiters]:uncommit(keys[#limiters])
end

-- The longest delay; `states` gets each limiter's second answer.  Or nil and the error of the first
-- that refuses.
function _M.combine(limiters, keys, states)
    local n, longest = #limiters, 0

    for i = 1, n - 1 do
        local delay, err = limiters[i]:incoming(keys[i], false)
        if not delay then
            return nil, err
        end
    end
    local delay, err = commit(limiters, keys, states, n)
    if not delay then
        return nil, err
    end
    longest = delay
    for i = 1, n - 1 do -- others may have come between
        delay, err = commit(limiters, keys, states, i)
        if not delay then
            undo(limiters, keys, i - 1)
            return nil, err
        end
        longest = max(longest, delay)
    end
    return longest
end

return _M
