-- member-shares.lua -- the members of a fleet and their parts of every limit, lent to each other as
-- demand goes: one call for each beat.
--
--   KEYS     the fleet, a hash: sums over its members (weights, granted, lent, borrow), the moment
--            and the server of the last beat, the end of learning, the longest beat; its members,
--            id -> 'seq weight granted offer lent borrow strange'; when each one's part is free
--            again; its notes (bans-and-resets.lua)
--   ARGV     'beat' or 'leave'; the id; its sequence number, weight, the part it wants, its part in
--            force, the time between its beats in us
--   -> {offer, members, the sum of granted parts, 1 while learning, the number of the last note};
--      the offer is -1 if a later beat of the id is known
--
-- Parts are millionths.  What a member may have in force is never more than what was granted to it:
-- the larger of its part in force, as it said, and the last offer.  An offer is never more than the
-- others' grants leave, so the sum of the parts in force is at most 1.  A repeated beat is answered
-- with the same offer and changes nothing.  Nor does a 'leave' after a later beat: another process
-- of the host has taken over.
--
-- Two hosts of one name are one member, by the beats of the one with the larger sequence numbers.
-- `strange` grows by 2 with each beat of the other, up to 30, and falls by 1 with each of its own;
-- from 15 on there are two (rules-versions.lua).  When another process of the host takes over, the
-- last beats of the one before make it 4 or so.
--
-- Lending: a member that wants less than its share by weight can lend the rest, up to three
-- quarters of the share, to those that want more: as much as they want, and all of them alike.  So
-- parts add up to 1 whether much is wanted or nothing.
--
-- A part is free again when its member was not heard for 3 beats and 6 %: by then it has stopped
-- using it.  Under another server than before, after a gap of 2 beats, or if the clock stepped
-- back, grants may have been lost: for 5 beats no offer is more than a part in force, and nobody is
-- removed (learning).
local ONE = 1000000
local KEEP = 3600000 -- ms

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
local fleet, members, free = KEYS[1], KEYS[2], KEYS[3]
local id = ARGV[2]
local h = redis.call('HMGET', fleet, 'weights', 'granted', 'lent', 'borrow', 'learn', 'beat', 'last',
  'run')
local sum = {weight = tonumber(h[1] or 0), granted = tonumber(h[2] or 0),
  lent = tonumber(h[3] or 0), borrow = tonumber(h[4] or 0)}
local learn, longest, last = tonumber(h[5] or 0), tonumber(h[6] or 0), tonumber(h[7] or -1)

local function whole(n)
  return string.format('%.0f', n)
end

local function find(who)
  local text = redis.call('HGET', members, who)
  if not text then
    return nil
  end
  local n = {}
  for word in string.gmatch(text, '%-?%d+') do
    n[#n + 1] = tonumber(word)
  end
  return {seq = n[1], weight = n[2], granted = n[3], offer = n[4], lent = n[5], borrow = n[6],
    strange = n[7] or 0}
end

local function keep(m)
  redis.call('HSET', members, id, string.format('%.0f %.0f %.0f %.0f %.0f %.0f %.0f', m.seq,
    m.weight, m.granted, m.offer, m.lent, m.borrow, m.strange))
end

local function count(m, sign)
  for name, was in pairs(sum) do
    sum[name] = was + sign * m[name]
  end
end

local function remove(who)
  local m = find(who)
  if m then
    count(m, -1)
    redis.call('HDEL', members, who)
  end
  redis.call('ZREM', free, who)
end

local function free_at(beat)
  return whole(now + 3 * beat + math.floor(3 * beat / 16))
end

-- The sums are made anew: a server short of memory may have dropped a key.
local function begin_learning()
  learn = now + 5 * longest
  sum = {weight = 0, granted = 0, lent = 0, borrow = 0}
  for _, who in ipairs(redis.call('HKEYS', members)) do
    count(find(who), 1)
    redis.call('ZADD', free, free_at(longest), who)
  end
end

local function write()
  redis.call('HSET', fleet, 'weights', whole(sum.weight), 'granted', whole(sum.granted), 'lent',
    whole(sum.lent), 'borrow', whole(sum.borrow), 'learn', whole(learn), 'beat', whole(longest),
    'last', whole(now), 'run', run)
  for i = 1, 3 do
    redis.call('PEXPIRE', KEYS[i], KEEP)
  end
end

-- Whatever is in the notes' place, parts go on.
local function answer(offer)
  local note = redis.pcall('HGET', KEYS[4], 'last')
  note = type(note) == 'string' and string.match(note, '^%d+$') and tonumber(note) or 0
  return {offer, redis.call('HLEN', members), sum.granted, now < learn and 1 or 0,
    note < 9000000000000000 and note or 0}
end

-- What the member is to have, if the others leave it.
local function target(m, want)
  local share = math.floor(ONE * m.weight / (sum.weight + m.weight))
  m.lent = math.max(share - math.max(want, math.ceil(share / 4)), 0)
  m.borrow = math.max(want - share, 0)
  local lent, borrow = sum.lent + m.lent, sum.borrow + m.borrow
  if m.lent > 0 then
    return share - math.ceil(m.lent * math.min(borrow, lent) / lent)
  elseif m.borrow > 0 then
    return share + math.floor(m.borrow * math.min(borrow, lent) / borrow)
  end
  return share
end

local seq, want, force, beat = tonumber(ARGV[3]), tonumber(ARGV[5]), tonumber(ARGV[6]),
  tonumber(ARGV[7])
local m = {seq = seq, weight = tonumber(ARGV[4])}
longest = math.max(longest, beat)
if last < 0 or now < last or now - last > 2 * longest or h[8] ~= run then
  begin_learning()
end
local before = find(id)
if ARGV[1] == 'leave' then
  if before and seq >= before.seq then
    remove(id)
  end
  write()
  return answer(0)
end
if now >= learn then
  for _, who in ipairs(redis.call('ZRANGEBYSCORE', free, '-inf', whole(now))) do
    remove(who)
    if who == id then -- perhaps another host of this name, which is gone
      before = nil
    end
  end
end
if before and seq < before.seq then
  before.strange = math.min(before.strange + 2, 30)
  keep(before)
  write()
  return answer(-1)
elseif before and seq == before.seq then
  write()
  return answer(before.offer)
end
m.strange = math.max((before and before.strange or 0) - 1, 0)
if before then
  count(before, -1)
end
m.offer = math.min(target(m, want), math.max(ONE - sum.granted, 0))
if now < learn then
  m.offer = math.min(m.offer, force)
end
m.granted = math.max(force, m.offer)
count(m, 1)
keep(m)
redis.call('ZADD', free, free_at(beat), id)
write()
return answer(m.offer)
