-- load.lua -- what a server's clients see, for wrk:  wrk ... -s load.lua URL -- SECONDS_BEFORE SECONDS PAUSE_MS
--
-- A client asks, waits for the answer, pauses PAUSE_MS on average (0: not at all, it asks again at once) and asks again.  The path of a request is
-- the time it is sent; the server gives it back in X-Sent, so each answer tells how long it took.  Only answers from SECONDS_BEFORE on count, for
-- SECONDS.  A 200 is good if it comes within a second: nobody waits longer for it.
--
-- Prints one line:  weir GOOD LATE REFUSED OTHER P50_MS P99_MS   (the times are of all 200s)
local ffi = require("ffi")
ffi.cdef [[
typedef struct { long s, ns; } weir_time;
int clock_gettime(int, weir_time *);
]]
local at = ffi.new("weir_time")
local function now()
    ffi.C.clock_gettime(1, at)
    return tonumber(at.s) + tonumber(at.ns) / 1e9
end

local threads = {}

function setup(thread)
    table.insert(threads, thread)
end

function init(args)
    local before, seconds = tonumber(args[1]), tonumber(args[2])
    pause = tonumber(args[3])
    from = now() + before
    to = from + seconds
    good, late, refused, other = 0, 0, 0, 0
    times = {} -- of 200s: how many took each number of tenths of a millisecond
    math.randomseed(1)
    if pause > 0 then
        delay = function() -- wrk asks whether there is one after this
            return math.random(0, 2 * pause)
        end
    end
end

function request()
    return wrk.format("GET", string.format("/%.6f", now()))
end

local function count(took)
    if took <= 1 then
        good = good + 1
    else
        late = late + 1
    end
    local tenth = math.floor(took * 1e4)
    times[tenth] = (times[tenth] or 0) + 1
end

function response(status, headers)
    local t = now()
    if t < from or t >= to then
        return
    end
    if status == 200 then
        count(t - tonumber(string.sub(headers["X-Sent"], 2)))
    elseif status == 503 then
        refused = refused + 1
    else
        other = other + 1
    end
end

local function percentile(sorted, counts, all, share)
    local seen = 0
    for _, tenth in ipairs(sorted) do
        seen = seen + counts[tenth]
        if seen >= all * share then
            return tenth / 10
        end
    end
    return 0
end

function done()
    local sum = { good = 0, late = 0, refused = 0, other = 0 }
    local counts, sorted = {}, {}
    for _, thread in ipairs(threads) do
        for name in pairs(sum) do
            sum[name] = sum[name] + thread:get(name)
        end
        for tenth, n in pairs(thread:get("times")) do
            counts[tenth] = (counts[tenth] or 0) + n
        end
    end
    for tenth in pairs(counts) do
        table.insert(sorted, tenth)
    end
    table.sort(sorted)
    local all = sum.good + sum.late
    print(string.format("weir %d %d %d %d %.1f %.1f", sum.good, sum.late, sum.refused, sum.other,
        percentile(sorted, counts, all, 0.5), percentile(sorted, counts, all, 0.99)))
end
