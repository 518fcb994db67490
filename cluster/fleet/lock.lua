-- lock.lua -- a lock with a lifetime and a token that only grows, and a line of waiters.
--
--   KEYS     the lock, a hash: holder, token, till and life in us, the id that was released last,
--            grace, the holder's ask, whether that came again; its line, waiters by their turn;
--            when each of them was heard last
--   ARGV     a verb, the caller's id, a lifetime in us, a token, an ask ('': none)
--              take   have it, or not
--              wait   have it, or stand in line
--              keep   renew, if the id has it under this token; a lifetime of 0: as it had
--              free   give it back, or leave the line
--              quit   the same by an attempt that nobody was told of: not if its ask came again
--              drop   the holder under this token has it no more
--              look
--   -> {1 if the id has it, token, us that are left, place in line or 0, waiters, holder}
--
-- Everything but `look` and a refused `take` may be repeated: the holder's own `take` and `wait`
-- renew, and an id that was released never gets the lock again while it is the last one.
--
-- An ask is a caller's own name for what it wants.  If its answer was lost, it comes again under
-- another id, and is told that it has the lock: as the holder that is there, under the same token.
-- From then on the first attempt cannot quit: whoever made it may not know of the second.
--
-- The token is the larger of the last token + 1 and this server's clock in us: it grows even if a
-- failover has lost the last ones, unless the clock of the new master is behind by more.
--
-- A waiter that is not heard for PLACE loses its place.  If none was heard for half of that, it may
-- be Redis that was away: then each of them keeps its place for PLACE from now on (grace).
local PLACE = 2000000
local LINE_MAX = 10000
local KEEP = 86400000 -- ms that the last token is remembered

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local lock, line, heard = KEYS[1], KEYS[2], KEYS[3]
local verb, id, life = ARGV[1], ARGV[2], tonumber(ARGV[3])
local ask = ARGV[5]
if id == '' and verb ~= 'drop' then
  verb = 'look' -- an empty id is nobody's: it must not renew what has expired
end
local h = redis.call('HMGET', lock, 'holder', 'token', 'till', 'life', 'last', 'grace', 'ask',
  'again')
local holder, token = h[1] or '', tonumber(h[2] or 0)
local till, grace = tonumber(h[3] or 0), tonumber(h[6] or 0)

local function whole(n)
  return string.format('%.0f', n)
end

local function write(...)
  redis.call('HSET', lock, ...)
  redis.call('PEXPIRE', lock, KEEP + math.ceil(math.max(till - now, 0) / 1000))
end

local function leave(who)
  redis.call('ZREM', line, who)
  redis.call('ZREM', heard, who)
end

local function hear(who)
  redis.call('ZADD', heard, whole(now), who)
  redis.call('PEXPIRE', heard, KEEP)
end

-- The clock has stepped back since, in a failover: a lifetime from now on, not from then.
if till - now > tonumber(h[4] or 0) then
  till = now + tonumber(h[4] or 0)
  if verb ~= 'look' then
    write('till', whole(till))
  end
end
if now >= till then
  holder, till = '', now
end

-- Waiters are heard from now on, if nothing says when they were: a server short of memory may have
-- dropped that key, and those who are gone would keep their places.
local function tidy_line()
  if redis.call('ZCARD', heard) < redis.call('ZCARD', line) then
    for _, who in ipairs(redis.call('ZRANGE', line, 0, -1)) do
      if not redis.call('ZRANK', heard, who) then
        hear(who)
      end
    end
  end
  local newest = tonumber(redis.call('ZREVRANGE', heard, 0, 0, 'WITHSCORES')[2])
  if not newest then
    return
  end
  if newest > now or grace > now + PLACE then
    for _, who in ipairs(redis.call('ZRANGE', line, 0, -1)) do
      hear(who)
    end
    newest, grace = now, 0
    write('grace', '0')
  end
  if newest < now - PLACE / 2 and grace <= newest then
    grace = now + PLACE
    write('grace', whole(grace))
  end
  if now >= grace then
    for _, who in ipairs(redis.call('ZRANGEBYSCORE', heard, '-inf', whole(now - PLACE))) do
      leave(who)
    end
  end
end

local function grant()
  leave(id)
  holder, till, token = id, now + life, math.max(token + 1, now)
  write('holder', id, 'token', whole(token), 'till', whole(till), 'life', whole(life), 'ask', ask,
    'again', '')
end

local function stand_in_line()
  if not redis.call('ZRANK', line, id) then
    local n = redis.call('ZCARD', line)
    if n >= LINE_MAX then
      return
    end
    local last = redis.call('ZREVRANGE', line, 0, 0, 'WITHSCORES')[2]
    redis.call('ZADD', line, tonumber(last or 0) + 1, id)
    redis.call('PEXPIRE', line, KEEP)
  end
  hear(id)
end

local function renew()
  till = math.max(till, now + life)
  write('till', whole(till), 'life', whole(till - now))
end

if verb ~= 'look' then
  tidy_line()
end
local takes = verb == 'take' or verb == 'wait'
local again = takes and holder ~= '' and holder ~= id and ask ~= '' and ask == h[7] and h[5] ~= id
if again then
  leave(id)
  renew()
  write('again', '1')
elseif takes and holder == id then
  renew()
elseif takes and h[5] ~= id then
  local first = redis.call('ZRANGE', line, 0, 0)[1] or id
  if holder == '' and first == id then
    grant()
  elseif verb == 'wait' then
    stand_in_line()
  end
elseif verb == 'keep' and holder == id and token == tonumber(ARGV[4]) then
  life = life > 0 and life or tonumber(h[4] or 0)
  renew()
elseif verb == 'free' or verb == 'quit' then
  leave(id)
  if holder == id and (verb == 'free' or h[8] ~= '1') then
    holder, till = '', now
  end
  write('holder', holder, 'till', whole(till), 'last', id)
elseif verb == 'drop' and holder ~= '' and token == tonumber(ARGV[4]) then
  write('holder', '', 'till', '0', 'last', holder)
  holder, till = '', now
end
local place = redis.call('ZRANK', line, id)
return {(again or holder == id and id ~= '') and 1 or 0, token, holder ~= '' and till - now or 0,
  place and place + 1 or 0, redis.call('ZCARD', line), holder}
