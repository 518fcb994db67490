-- KEYS[1]: the key; ARGV: burst, ms in which it drains.  The time when all is paid off.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local burst, period = tonumber(ARGV[1]), tonumber(ARGV[2]) * 1000
local interval = period / burst
local paid = tonumber(redis.call('GET', KEYS[1])) or now
if paid < now then paid = now end
local after = paid + interval
if after - now > period then
  return { 1, burst, 0, math.ceil((after - now - period) / 1000) }
end
redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000))
return { 0, burst, math.floor((period - (after - now)) / interval), 0 }
