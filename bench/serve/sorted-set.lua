-- KEYS[1]: the key; ARGV: limit, window in ms.  Every admitted instant, as a sorted set.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2]) * 1000
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - window)
local n = redis.call('ZCARD', KEYS[1])
if n >= limit then return 0 end
redis.call('ZADD', KEYS[1], now, string.format('%.0f', now) .. '-' .. n)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
