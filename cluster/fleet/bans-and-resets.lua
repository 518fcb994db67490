-- bans-and-resets.lua -- what the nodes of a fleet tell each other: bans, bans that were lifted,
-- keys that were reset.  One call tells what is new at a node, and answers what is new to it.
--
--   KEYS     the notes, a hash: name -> 'number end strikes forget base', with `begun` and `last`, the
--            first and the last number, and `run`, the server; the names by number; the names by
--            when they go
--   ARGV     begun and last, as the node last heard them; `knew`, the last number that it had heard
--            before it made the changes that it tells; how many notes it takes at once; then for
--            each note that it has: the name, how long it lasts, strikes, how long these are
--            remembered after that, and 'new', 'old' (it was told before) or 'now'
--   -> {begun, last, the last number answered here, 1 if notes were lost since, then for each note:
--      name, number, how long it lasts, strikes, how long they are remembered, base}
--
-- Times are us; spans alone come and go, so that nodes' clocks do not matter.  A name begins with b
-- for a ban (0 strikes: it was lifted) or r for a reset.
--
-- A note's base is the last number that its maker can have known: the note's own, or `knew` if it
-- was repeated.  A note that a node has changed replaces one that it knew.  One that it did not know
-- stands, but of two bans the longer one counts; 'now' replaces any.  What a node was told before it
-- repeats only if notes may have been lost: that replaces notes from before it.
--
-- Notes may have been lost if a node has heard of a later one than there is, or if this is another
-- server than the one that wrote last: it may lack the last ones, and later ones hide that.  Then
-- numbers begin anew, and nodes tell all they know before they are told anything.
--
-- Numbers are the time, or one more than the last, so they grow also after notes were lost.  Notes
-- go when they end; one that replaces another not before that would have, or a node that was cut off
-- would not hear that it ended earlier.  If there are too many, those go that would go first.
local MOST = 16384
local LARGEST = 9000000000000000 -- numbers are exact so far
local SAME = 1000000 -- ends that differ by less are one: messages take their time

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local notes, order, ends = KEYS[1], KEYS[2], KEYS[3]
local begun, heard, knew, most = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]),
  tonumber(ARGV[4])

-- 0 for a text that is no number of ours.
local function number(text)
  local n = tonumber(text or 0)
  return n and n >= 0 and n < LARGEST and math.floor(n) or 0
end

local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
local h = redis.call('HMGET', notes, 'begun', 'last', 'run')
local first, last = number(h[1]), number(h[2])
local written = false
if last > 0 and h[3] ~= run then
  last = math.max(last + 1, now)
  first = last
  written = true
end
local lost = heard > last or (begun ~= 0 and begun ~= first)

local function whole(n)
  return string.format('%.0f', n)
end

local function find(name)
  local text = redis.call('HGET', notes, name)
  local n, fin, strikes, forget, base =
    string.match(text or '', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  return n and {number = number(n), fin = number(fin), strikes = number(strikes),
    forget = number(forget), base = number(base)}
end

local function remove(name)
  redis.call('HDEL', notes, name)
  redis.call('ZREM', order, name)
  redis.call('ZREM', ends, name)
end

local function stands(note, fin, strikes, how)
  local same = (note.strikes == 0) == (strikes == 0) and math.abs(fin - note.fin) < SAME
  if how == 'old' then
    return same or note.base >= knew
  end
  return how == 'new' and note.base > knew and
    (strikes == 0 or note.strikes == 0 or fin <= note.fin + SAME)
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
    whole(forget) .. ' ' .. whole(how == 'old' and knew or last))
  redis.call('ZADD', order, whole(last), name)
  redis.call('ZADD', ends, whole(math.max(fin, number(redis.call('ZSCORE', ends, name)))), name)
  written = true
end

for _, name in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', whole(now), 'LIMIT', 0, 1000)) do
  remove(name)
end
for i = 5, #ARGV, 5 do
  tell(ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), ARGV[i + 4])
end
if written then
  local over = redis.call('ZCARD', ends) - MOST
  if over > 0 then
    for _, name in ipairs(redis.call('ZRANGE', ends, 0, over - 1)) do
      remove(name)
    end
  end
  redis.call('HSET', notes, 'begun', whole(first), 'last', whole(last), 'run', run)
  local latest = redis.call('ZREVRANGE', ends, 0, 0, 'WITHSCORES')
  for _, key in ipairs(KEYS) do
    redis.call('PEXPIRE', key, whole(math.ceil(math.max(number(latest[2]) - now, 0) / 1000) + 1000))
  end
end

if lost then
  return {first, last, 0, 1}
end
local found = redis.call('ZRANGEBYSCORE', order, '(' .. whole(heard), '+inf', 'WITHSCORES', 'LIMIT',
  0, most)
local answer = {first, last, #found == 2 * most and number(found[#found]) or last, 0}
for i = 1, #found, 2 do
  local note = find(found[i])
  if note then
    for _, value in ipairs({found[i], note.number, math.max(note.fin - now, 0), note.strikes,
      note.forget, note.base}) do
      answer[#answer + 1] = value
    end
  end
end
return answer
