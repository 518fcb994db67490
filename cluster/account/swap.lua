-- swap.lua -- writes accounts that were decided on elsewhere, if they are still as they were then.
--
--   KEYS     the accounts
--   ARGV     for each: its bytes before ('': there was none), after ('': it stays), and its life in
--            milliseconds
--   -> 1; 0 if one has changed, and then nothing is written
for i, key in ipairs(KEYS) do
  if (redis.call('GET', key) or '') ~= ARGV[3 * i - 2] then
    return 0
  end
end
for i, key in ipairs(KEYS) do
  if ARGV[3 * i - 1] ~= '' then
    redis.call('SET', key, ARGV[3 * i - 1], 'PX', ARGV[3 * i])
  end
end
return 1
