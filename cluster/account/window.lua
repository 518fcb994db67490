-- window.lua -- takes from one account (layout.h) of a window at once, or refuses: the usual ask.
--
--   KEYS[1]  the account
--   ARGV     its head; packed as int64: cost, count, how far ahead an end may lie, and
--            of a fixed window: its period, and 1 if it starts with the first ask
--            of a calendar window: 0, ends of windows
--            and where in the account the count is, in two digits
--   -> packed as int64: units used before, or -1 - that if refused; the window's end; now
--
-- Times are microseconds by this server's clock.  Whatever is not usual is answered {now, the
-- account}: the caller decides, and writes by swap.lua.
--
-- A string is cheaper to answer than a list, and digits are cheaper to pass on than a number: Redis
-- prints those as floating point.
local call, pack, unpack = redis.call, struct.pack, struct.unpack
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local key, head, numbers = KEYS[1], ARGV[1], ARGV[2]
local cost, count, far = unpack('<i8i8i8', numbers)
local v = call('GET', key)

if v then
  local n = #head
  if #v ~= n + 17 or string.sub(v, 1, n) ~= head then
    return {now, v}
  end
  local ends, ns, used = unpack('<I7I2i8', v, n + 1)
  if ns ~= 0 or ends - now > far or (now >= ends and used > count) then
    return {now, v}
  end
  if now < ends then
    if used + cost > count then
      return pack('<i8i8i8', -1 - used, ends, now)
    end
    call('SETRANGE', key, string.sub(numbers, -2), pack('<i8', used + cost)) -- its expiry stays
    return pack('<i8i8i8', used, ends, now)
  end
end

local period, first = unpack('<i8i8', numbers, 25)
local ends = 0
if period > 0 then
  ends = now + period - (first == 1 and 0 or now % period)
elseif unpack('<i8', numbers, 33) <= now then -- else the caller's clock is ahead by a window, or more
  for i = 41, #numbers - 2, 8 do
    ends = unpack('<i8', numbers, i)
    if ends > now then
      break
    end
  end
end
if ends <= now or cost > count then
  return {now, v}
end
call('SET', key, head .. pack('<I7I2i8', ends, 0, cost), 'PX', math.floor((ends - now) / 1000) + 2)
return pack('<i8i8i8', 0, ends, now)
