-- window.lua -- takes from one account (layout.h) of a window at once, or refuses: the usual ask.
--
--   KEYS[1]  the account
--   ARGV[1]  packed: cost (4 bytes), count, period (7 bytes each); where in the account the count
--            is, in digits, and the account's format (NUL behind each); the length of its head (a
--            byte), its head; then
--            of a fixed window: 1 if it starts with the first ask (a byte)
--            of a calendar window, whose period is 0: how far ahead an end may lie, ends of windows
--            (int64)
--   -> granted, and that is below 2^52: microseconds to its end * (count + 1) + units used before
--      else the account before, seconds of now, '+' or, if refused, '-', microseconds of now
--
-- Times are microseconds by this server's clock.  Whatever is not usual is answered {now, the
-- account}: the caller decides, and writes by swap.lua.
--
-- Each shape here is the cheapest for Redis: one argument, mostly of 44 bytes or less, a number as
-- the answer, digits for SETRANGE, because Redis prints numbers as floating point, and of the count
-- only the byte that changes.
local call, unpack = redis.call, struct.unpack
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local key, terms = KEYS[1], ARGV[1]
local cost, count, period, place, format, head, after = unpack('<I4I7I7ssBc0', terms)
local far = period > 0 and 2 * period + 1000000 or unpack('<i8', terms, after)
local v = call('GET', key)

if v then
  if #v ~= #head + 17 then
    return {now, v}
  end
  local under, ends, ns, used = unpack(format, v) -- ns: the upper byte; the lower is in ends
  local left = ends - now
  if under ~= head or ns ~= 0 or used < 0 or left > far or ends > 2 ^ 53
    or (left <= 0 and used > count) then
    return {now, v}
  end
  if left > 0 then
    if used + cost > count then
      return v .. t[1] .. '-' .. t[2]
    end
    local low = used % 256 + cost
    call('SETRANGE', key, place, -- its expiry stays
      low < 256 and string.char(low) or struct.pack('<i8', used + cost))
    local brief = left * (count + 1) + used
    return brief < 2 ^ 52 and brief or v .. t[1] .. '+' .. t[2]
  end
end

local ends = 0
if period > 0 then
  ends = now + period - (unpack('B', terms, after) == 1 and 0 or now % period)
elseif unpack('<i8', terms, after + 8) <= now then -- else the caller's clock is ahead by a window
  for i = after + 16, #terms, 8 do
    ends = unpack('<i8', terms, i)
    if ends > now then
      break
    end
  end
end
if ends <= now or ends > 2 ^ 53 or cost > count then
  return {now, v}
end
call('SET', key, head .. struct.pack('<I7I2i8', ends, 0, cost), 'PX',
  math.floor((ends - now) / 1000) + 2)
local brief = (ends - now) * (count + 1)
return brief < 2 ^ 52 and brief
  or head .. struct.pack('<I7I2i8', ends, 0, 0) .. t[1] .. '+' .. t[2]
