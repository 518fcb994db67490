-- notes.lua -- what the nodes of a fleet tell each other: bans, bans that were lifted, keys that were
-- reset.  One call tells what is new at a node, and answers what is new to it.
--
--   KEYS     the notes, a hash: name -> 'number end strikes forget', with `begun` and `last`, the
--            first and the last number; the names by number; the names by when they go
--   ARGV     begun and last, as the node last heard them; how many notes it takes at once; then for
--            each note that it has: the name, how long it lasts, strikes, how long these are
--            remembered after that, and 'new', 'old' (it was told before) or 'now'
--   -> {begun, last, the last number answered here, 1 if notes were lost since, then for each note:
--      name, number, how long it lasts, strikes, how long they are remembered}
--
-- Times are us; spans alone come and go, so that nodes' clocks do not matter.  A name begins with b
-- for a ban (0 strikes: it was lifted) or r for a reset.
--
-- A note that a node has changed replaces another that it knew.  One that it did not know stands,
-- because the node would not have written over it; but of two bans the longer one counts, and a ban
-- that was lifted at a node that has heard nothing yet, or whose notes were lost, is lifted.  What a
-- node was told before it only repeats if notes were lost: then every note that is there stands.
--
-- Numbers are the time, or one more than the last, so they grow also after notes were lost.  Notes
-- go when they end; one that replaces another not before that would have, or a node that was cut off
-- would not hear that it ended earlier.  If there are too many, those go that would go first.
local MOST = 16384
local SAME = 1000000 -- ends that differ by less are one: messages take their time

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local notes, order, ends = KEYS[1], KEYS[2], KEYS[3]
local begun, heard, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local h = redis.call('HMGET', notes, 'begun', 'last')
local first, last = tonumber(h[1] or 0), tonumber(h[2] or 0)
local lost = heard > last or (begun ~= 0 and begun ~= first)
local written = false
if lost then
  heard = 0
end

local function whole(n)
  return string.format('%.0f', n)
end

local function find(name)
  local text = redis.call('HGET', notes, name)
  local number, fin, strikes, forget = string.match(text or '', '^(%d+) (%d+) (%d+) (%d+)$')
  return number and {number = tonumber(number), fin = tonumber(fin), strikes = tonumber(strikes),
    forget = tonumber(forget)}
end

local function remove(name)
  redis.call('HDEL', notes, name)
  redis.call('ZREM', order, name)
  redis.call('ZREM', ends, name)
end

local function stands(note, fin, strikes, how)
  if how ~= 'new' then
    return how == 'old'
  end
  if strikes == 0 then
    return note.number > heard and (heard > 0 or note.strikes == 0)
  end
  return note.number > heard and (note.strikes == 0 or fin <= note.fin + SAME)
end

local function tell(name, span, strikes, forget, how)
  local fin = now + span
  local note = find(name)
  if note and stands(note, fin, strikes, how) then
    return
  end
  last = math.max(last + 1, now)
  first = first == 0 and last or first
  redis.call('HSET', notes, name, whole(last) .. ' ' .. whole(fin) .. ' ' .. whole(strikes) .. ' ' ..
    whole(forget))
  redis.call('ZADD', order, whole(last), name)
  redis.call('ZADD', ends, whole(math.max(fin, tonumber(redis.call('ZSCORE', ends, name) or 0))), name)
  written = true
end

for _, name in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', whole(now), 'LIMIT', 0, 1000)) do
  remove(name)
end
for i = 4, #ARGV, 5 do
  tell(ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), ARGV[i + 4])
end
if written then
  local over = redis.call('ZCARD', ends) - MOST
  if over > 0 then
    for _, name in ipairs(redis.call('ZRANGE', ends, 0, over - 1)) do
      remove(name)
    end
  end
  redis.call('HSET', notes, 'begun', whole(first), 'last', whole(last))
  local latest = redis.call('ZREVRANGE', ends, 0, 0, 'WITHSCORES')
  for _, key in ipairs(KEYS) do
    redis.call('PEXPIRE', key, whole(math.ceil((latest[2] - now) / 1000) + 1000))
  end
end

local found = redis.call('ZRANGEBYSCORE', order, '(' .. whole(heard), '+inf', 'WITHSCORES', 'LIMIT',
  0, most)
local answer = {first, last, #found == 2 * most and tonumber(found[#found]) or last, lost and 1 or 0}
for i = 1, #found, 2 do
  local note = find(found[i])
  if note then
    for _, value in ipairs({found[i], note.number, math.max(note.fin - now, 0), note.strikes,
      note.forget}) do
      answer[#answer + 1] = value
    end
  end
end
return answer
