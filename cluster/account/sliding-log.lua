-- sliding-log.lua -- takes from one account (layout.h) of a sliding log at once, or refuses: the
-- usual ask.
--
--   KEYS[1]  the account
--   ARGV     its head; packed as int64: cost, count, period, bytes of a stamp; its life in ms
--   -> packed as int64; granted: units that counted before, now
--      refused: -1 - those units, now, the newest instant, the one that has to leave first
--
-- A string instead of the usual sorted set: a tenth of its memory, and cheaper.  Times are
-- microseconds by this server's clock.  Whatever is not usual is answered {now, the account}.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local key, head = KEYS[1], ARGV[1]
local cost, count, period, size = struct.unpack('<i8i8i8i8', ARGV[2])
local v = redis.call('GET', key)
local n = #head
local first, used, stamps, newest, live = 0, 0, '', -1, 0
local format = size == 5 and '<I5' or '<I' .. size

if v then
  local seen, ns, more
  if #v < n + 26 or string.sub(v, 1, n) ~= head then
    return {now, v}
  end
  seen, ns, newest, more, first, used = struct.unpack('<I7I2I7I2I4I4', v, n + 1)
  if ns ~= 0 or more ~= 0 or now < seen or newest > now or used > count or first >= count
    or #v < n + 26 + math.min(first + used, count) * size then
    return {now, v}
  end
  live = used
end
if used > 0 then
  local modulus, from, edge = 256 ^ size, n + 27, now - period
  local base = newest % 2 ^ 45 * 125 % 2 ^ 45 * 8 % modulus -- of it in ns; its stamp may be gone
  local drop, high = 0, 1
  -- The oldest first: under a busy limit it still counts.
  while drop < high do
    local middle = math.floor((drop + high) / 2)
    local low = struct.unpack(format, v, from + (first + middle) % count * size)
    if newest - (base - low) % modulus / 1000 <= edge then
      high = high == 1 and used or high
      drop = middle + 1
    else
      high = middle
    end
  end
  live = used - drop
  if live + cost > count then
    local last = struct.unpack(format, v, from + (first + used - 1) % count * size)
    local low = struct.unpack(format, v, from + (first + used + cost - count - 1) % count * size)
    return struct.pack('<i8i8i8i8', -1 - live, now, newest - (base - last) % modulus / 1000,
                       newest - (base - low) % modulus / 1000)
  end
  first = (first + drop) % count
end
if cost > count then
  return {now, v}
end

local place = (first + live) % count
local here = math.min(cost, count - place)
local bytes = struct.pack(format, now % 2 ^ 45 * 125 % 2 ^ 45 * 8 % 256 ^ size) -- of now in ns
stamps = v and string.sub(v, n + 27, n + 26 + place * size) or ''
if cost == 1 then
  stamps = stamps .. bytes
else
  stamps = stamps .. string.rep(bytes, here)
end
if v and #v > n + 26 + (place + here) * size then
  stamps = stamps .. string.sub(v, n + 27 + (place + here) * size)
end
if here < cost then
  stamps = string.rep(bytes, cost - here) .. string.sub(stamps, (cost - here) * size + 1)
end
redis.call('SET', key, head .. struct.pack('<I7I2I7I2I4I4', now, 0, now, 0, first, live + cost)
  .. stamps, 'PX', ARGV[3])
return struct.pack('<i8i8', live, now)
