-- window.lua -- takes from one account (layout.h) of a window at once, or refuses: the usual ask.
--
--   KEYS[1]  the account
--   ARGV     its head; packed as int64: cost, count, and
--            of a fixed window: its period, and 1 if it starts with the first ask
--            of a calendar window: 0, how far ahead an end may lie, ends of windows
--   -> units used before, or -1 - that if refused; time to the window's end; calendar: now
--
-- Times are microseconds by this server's clock.  Whatever is not usual is answered {now, the
-- account}: the caller decides, and writes by swap.lua.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local key, head, numbers = KEYS[1], ARGV[1], ARGV[2]
local cost, count, period, first = struct.unpack('<i8i8i8i8', numbers)
local v = redis.call('GET', key)
local n = #head
local used, ends = 0, 0

if v then
  local ns
  if #v ~= n + 17 or string.sub(v, 1, n) ~= head then
    return {now, v}
  end
  ends, ns, used = struct.unpack('<I7I2i8', v, n + 1)
  if ns ~= 0 or ends - now > (period > 0 and 2 * period + 1000000 or first)
    or (now >= ends and used > count) then
    return {now, v}
  end
end
if now < ends then
  if used + cost > count then
    return {-1 - used, ends - now, period == 0 and now or nil}
  end
  redis.call('SETRANGE', key, n + 9, struct.pack('<i8', used + cost)) -- its expiry stays
  return {used, ends - now, period == 0 and now or nil}
end

if period > 0 then
  ends = now + period - (first == 1 and 0 or now % period)
else
  for i = 33, #numbers, 8 do
    ends = struct.unpack('<i8', numbers, i)
    if ends > now then
      break
    end
  end
end
if ends <= now or cost > count then
  return {now, v}
end
redis.call('SET', key, head .. struct.pack('<I7I2i8', ends, 0, cost), 'PX',
           math.floor((ends - now) / 1000) + 2)
return {0, ends - now, period == 0 and now or nil}
