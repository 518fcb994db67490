-- reset.lua -- deletes accounts (layout.h).
--
--   KEYS     the accounts
--   -> how many there were; an error, and all stay, if one is something else
local found = {}
for _, key in ipairs(KEYS) do
  local v = redis.call('GET', key)
  if v and string.sub(v, 1, 2) ~= 'W\1' then
    return redis.error_reply('WRONGTYPE a key holds something else than a limit\'s state')
  end
  if v then
    found[#found + 1] = key
  end
end
for _, key in ipairs(found) do
  redis.call('DEL', key)
end
return #found
