-- take.lua -- takes from one account (layout.h) at once, or refuses: the usual ask.
--
--   KEYS[1]  the account        ARGV[1]  m, w or c        ARGV[2]  its head
--
--   m  a meter: the price of the ask, the capacity, parts a microsecond
--      -> what was owed before, or -1 - that if refused
--   w  a fixed window: cost, count, period, and 1 if it starts with the first ask
--   c  a calendar window: cost, count, how far ahead an end may lie, ends of windows
--      -> units used before, or -1 - that if refused; time to the window's end; c: now
--
-- Times are microseconds by this server's clock.  Whatever is not usual (another limit, a clock that
-- stepped back, promises) is answered {now, the account}: the caller decides, and writes by
-- swap.lua.  All numbers are whole and below 2^53, where Lua is exact.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local key, kind, head = KEYS[1], ARGV[1], ARGV[2]
local v = redis.call('GET', key)
local n = #head

if v and (#v ~= n + 17 or string.sub(v, 1, n) ~= head) then
  return {now, v}
end

if kind == 'm' then
  local capacity, rate = tonumber(ARGV[4]), tonumber(ARGV[5])
  local owed = 0
  if v then
    local at, ns, was = struct.unpack('<I7I2i8', v, n + 1)
    if ns ~= 0 or now < at then
      return {now, v}
    end
    owed = was - (now - at) * rate
    if owed < 0 then
      owed = 0
    end
  end
  local after = owed + ARGV[3]
  if after > capacity then
    return -1 - owed
  end
  redis.call('SET', key, head .. struct.pack('<I7I2i8', now, 0, after), 'PX',
             math.floor(after / rate / 1000) + 2)
  return owed
end

local cost, count = tonumber(ARGV[3]), tonumber(ARGV[4])
local ends, used, goes_on = nil, 0, false

if v then
  local ns
  ends, ns, used = struct.unpack('<I7I2i8', v, n + 1)
  local far = kind == 'w' and 2 * ARGV[5] + 1000000 or tonumber(ARGV[5])
  if ns ~= 0 or ends - now > far or (now >= ends and used > count) then
    return {now, v}
  end
  goes_on = now < ends
end
if not goes_on then
  used, ends = 0, nil
  if kind == 'w' then
    local period = tonumber(ARGV[5])
    ends = now + period - (ARGV[6] and 0 or now % period)
  else
    for i = 6, #ARGV do
      if tonumber(ARGV[i]) > now then
        ends = tonumber(ARGV[i])
        break
      end
    end
    if not ends then
      return {now, v}
    end
  end
end
if used + cost > count then
  return {-1 - used, ends - now, kind == 'c' and now or nil}
end
if goes_on then -- and so does its expiry
  redis.call('SETRANGE', key, n + 9, struct.pack('<i8', used + cost))
else
  redis.call('SET', key, head .. struct.pack('<I7I2i8', ends, 0, cost), 'PX',
             math.floor((ends - now) / 1000) + 2)
end
return {used, ends - now, kind == 'c' and now or nil}
