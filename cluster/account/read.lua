-- read.lua -- {now in microseconds, account ...}: to look, or to decide elsewhere.
local t = redis.call('TIME')
local answer = {t[1] * 1000000 + t[2]}
for i, key in ipairs(KEYS) do
  answer[i + 1] = redis.call('GET', key)
end
return answer
