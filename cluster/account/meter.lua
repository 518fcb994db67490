-- meter.lua -- takes from one account (layout.h) of a meter at once, or refuses: the usual ask.
--
--   KEYS[1]  the account
--   ARGV[1]  packed: the price of the ask, the capacity, parts a microsecond (7 bytes each); the
--            length of its head in digits, and the account's format (NUL behind each); that length
--            (a byte), the head
--   -> what was owed before, or -1 - that if refused
--
-- A key that is asked often keeps its expiry for a while: it expires at the end of the cell after
-- the next, where cells are as long as a spent key takes to drain.  The mark in the state says that
-- this is so; then only a new cell, not every ask, sets the expiry.
--
-- Times are microseconds by this server's clock.  Whatever is not usual (another limit, a clock
-- that stepped back) is answered {now, the account}: the caller decides, and writes by swap.lua.
-- All numbers are whole and below 2^53, where Lua is exact.
local call, struct = redis.call, struct
local t = call('TIME')
local now = t[1] * 1000000 + t[2]
local key = KEYS[1]
local price, capacity, rate, place, format, head = struct.unpack('<I7I7I7ssBc0', ARGV[1])
local cell = (capacity - capacity % rate) / rate + 1 -- us in which a spent key drains
local v = call('GET', key)
local owed, since = 0, now % cell -- since: in this cell
local keeps = false

if v then
  if #v ~= #head + 17 then
    return {now, v}
  end
  local under, at, mark, was = struct.unpack(format, v) -- nanoseconds would make `at` absurd
  local passed = now - at
  if under ~= head or passed < 0 or (mark ~= 0 and mark ~= 128) then
    return {now, v}
  end
  owed = was - passed * rate
  if owed < 0 then
    owed = 0
  end
  keeps = mark ~= 0 and passed <= since
end
if owed + price > capacity then
  return owed < 2 ^ 53 and -1 - owed or {now, v}
end
local state = struct.pack('<I8Bi8', now, 128, owed + price)
if keeps then
  call('SETRANGE', key, place, state) -- digits: Redis prints a number as floating point
else
  call('SET', key, head .. state, 'PX', math.floor((2 * cell - since) / 1000) + 2)
end
return owed
