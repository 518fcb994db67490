-- decide.lua -- takes from several accounts (layout.h), all or nothing; gives back; draws; pays back
-- what was drawn.
--
--   KEYS     the accounts; of a draw or payment, the demand (draw-size.h); the id, if there is one
--   ARGV     take, give, draw or back; ms that the id is remembered (0: none); for each account its
--            kind, its head, and numbers, packed as int64; of a draw, the numbers in draw-size.h, the
--            life of units under a meter or 0, ms that the demand lasts; of a payment, when the units
--            were drawn, the end of that window if it is by the calendar, then the same two
--
--   m  need, parts a microsecond, whether it is split; then pairs of microseconds and parts: price
--      of the need, most that may be owed before, most after; price of a unit, capacity
--   w  need, count, period, whether it starts with the first ask
--   c  need, count, 0, how far ahead an end may lie, ends of windows
--   s  need, count, counters, width, its unit (1: us, 1000: ns), period (0: loose edge), life
--   l  need, count, period, bytes of a stamp, life
--
-- The answer for each: units granted, now, and the state before: m owed, as a pair; w and c used,
-- end; s and l used, the newest, the one that has to leave first.  Of a draw five of them, spent and
-- share, packed as int64.  Of a payment the units that count again.
--
-- Times are microseconds, life milliseconds.  What is not usual, and an id that was seen before, is
-- answered {now, a value for each key}: the caller decides, and writes by swap.lua.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local gives, draws, repays = ARGV[1] == 'give', ARGV[1] == 'draw', ARGV[1] == 'back'
local keep = tonumber(ARGV[2])
local accounts = #KEYS - ((draws or repays) and 1 or 0) - (keep > 0 and 1 or 0)
local floor, sub, pack, unpack_at = math.floor, string.sub, struct.pack, struct.unpack
local min, max = math.min, math.max

local function as_it_is()
  local values = {now}
  for i, key in ipairs(KEYS) do
    values[i + 1] = redis.call('GET', key)
  end
  return values
end

if keep > 0 and redis.call('EXISTS', KEYS[#KEYS]) == 1 then
  return as_it_is()
end

-- The demand: what all nodes have asked in this epoch and the one before; of meters, the least that
-- was owed, in epochs of a life.
local drawn, drawn_at, drawn_end, life, lasts
local demand = (draws or repays) and redis.call('GET', KEYS[2])
if demand and (#demand ~= 48 or sub(demand, 1, 2) ~= 'D\1') then
  return as_it_is()
end
local since, before, asked, life_since, least_before, least = 0, 0, 0, 0, 0, 0
if demand then
  since, before, asked, life_since, least_before, least = unpack_at('<I7i8i8I7i8i8', demand, 3)
end
if draws then
  life, lasts = unpack_at('<i8i8', ARGV[#ARGV], 73)
elseif repays then
  drawn_at, drawn_end, life, lasts = unpack_at('<i8i8i8i8', ARGV[#ARGV])
end

local function choose(left, need)
  if not draws then
    return left >= need and need or 0
  end
  local waiting, have, more, fast, ahead, epoch, refill, of_left, least_left =
    unpack_at('<i8i8i8i8i8i8i8i8i8', ARGV[#ARGV])
  before, asked = min(max(before, 0), 4194304), min(max(asked, 0), 4194304)
  local start = now - now % epoch
  if start - since >= 2 * epoch or since - now > 2 * epoch then
    since, before, asked = start, 0, 0
  elseif start > since then
    since, before, asked = start, asked, 0
  end
  asked = min(asked + more, 4194304)
  local rate = floor((before + asked) * 1000000000 / (epoch + max(0, now - since)))

  local most = max(rate, fast)
  local part = most > 0 and floor(fast * 1048576 / most) or 0
  left = min(max(left, 0), 4398046511104)
  local supply = floor((refill + of_left * left) / 1000)
  local share = floor(supply / 1048576) * part + floor(supply % 1048576 * part / 1048576)
  local wanted = waiting + ahead
  local units = max(min(waiting, max(need, floor(left / 2))), min(wanted, share - have))
  units = min(left, units)
  if units < need then
    units = left >= need and (waiting > 0 or have < 1) and need or 0
  end
  local spent = left < need
  if units < wanted then
    spent = units == 0 or (left - units) * 1000 < least_left
  end
  drawn = {spent and 1 or 0, share}
  return units
end

-- A meter owes this many us, and is about to change.
local function look(owed)
  local most, start = 2 ^ 50, now - now % life
  owed, least = min(owed, most), min(max(least, 0), most)
  if start == life_since then
    least_before, least = min(max(least_before, 0), most), min(least, owed)
  else
    life_since, least_before, least = start, least, owed
  end
end

-- Of parts owed, those that are paid back.
local function repay(owed, price, rate)
  local age = now - drawn_at
  if age < 0 or drawn_at < 0 then
    return 0
  end
  local since = drawn_at < life_since - life and 0 or min(least_before, least)
  local back = max(since * rate, age > life and 0 or price - age * rate)
  back = min(back, price, owed)
  local us = floor((back + rate - 1) / rate)
  least_before, least = max(least_before - us, 0), max(least - us, 0)
  return back
end

-- Each returns its answer, and the state to write with its life; nothing at all if it is not usual.
local kinds = {}

function kinds.m(v, at_state, numbers)
  local need, rate, split, need_q, need_r, before_q, before_r, after_q, after_r, price, capacity =
    unpack_at('<i8i8i8i8i8i8i8i8i8i8i8', numbers)
  local at, q, r = now, 0, 0
  if v then
    local ns
    if #v ~= at_state + 16 + 8 * split then
      return
    end
    if split == 1 then
      at, ns, q, r = unpack_at('<I7I2i8i8', v, at_state)
    else
      at, ns, q = unpack_at('<I7I2i8', v, at_state)
      if q > 2 ^ 53 then -- a debt from under another limit
        return
      end
      q, r = floor(q / rate), q % rate
    end
    if (ns ~= 0 and ns ~= 32768) or now < at then
      return
    end
    q = q - (now - at)
    if q < 0 then
      q, r = 0, 0
    end
  end
  local granted, answer_q, answer_r = need, q, r
  if draws or repays then
    look(q)
  end
  if repays then
    local paid = v and repay(q * rate + r, need * price, rate) or 0
    granted = floor((paid + price - 1) / price)
    r = q * rate + r - paid
    q, r = floor(r / rate), r % rate
  elseif gives then
    if q < need_q or (q == need_q and r < need_r) then
      q, r = 0, 0
    else
      q, r = q - need_q, r - need_r
    end
  elseif draws then
    granted = choose(floor((capacity - (q * rate + r)) / price), need)
    r = q * rate + r + granted * price
    q, r = floor(r / rate), r % rate
  else
    q, r = q + need_q, r + need_r
    if r >= rate then
      q, r = q + 1, r - rate
    end
    if q > after_q or (q == after_q and r > after_r) then
      granted = 0
    end
  end
  if not gives and not repays and (answer_q > before_q or (answer_q == before_q and answer_r > before_r)) then
    granted = 0
    if draws then
      drawn[1] = 1
    end
  end
  if r < 0 then
    q, r = q - 1, r + rate
  end
  local state = split == 1 and pack('<I7I2i8i8', now, 0, q, r)
    or pack('<I7I2i8', now, 0, q * rate + r)
  return {granted, now, answer_q, answer_r}, state, floor(q / 1000) + 2
end

local function window(v, at_state, need, count, far, next_end, period, first)
  local ends, used = nil, 0
  if v then
    local ns
    if #v ~= at_state + 16 then
      return
    end
    ends, ns, used = unpack_at('<I7I2i8', v, at_state)
    if ns ~= 0 or ends - now > far or used > count then
      return
    end
  end
  if not ends or now >= ends then
    used, ends = 0, next_end()
    if not ends then
      return
    end
  end
  local granted, after
  if repays then -- to their own window
    local own = period and drawn_at >= ends - period or ends == drawn_end
    granted = own and drawn_at >= 0 and drawn_at <= now and min(need, used) or 0
    after = used - granted
  else
    granted = gives and need or choose(count - used, need)
    after = gives and max(used - need, 0) or used + granted
  end
  local kept = gives and first and after == 0 and 0 or ends -- only an ask begins a window
  return {granted, now, used, ends}, pack('<I7I2i8', kept, 0, after), floor((ends - now) / 1000) + 2
end

function kinds.w(v, at_state, numbers)
  local need, count, period, first = unpack_at('<i8i8i8i8', numbers)
  return window(v, at_state, need, count, 2 * period + 1000000, function()
    return now + period - (first == 1 and 0 or now % period)
  end, period, first == 1)
end

function kinds.c(v, at_state, numbers)
  local need, count, _, far = unpack_at('<i8i8i8i8', numbers)
  return window(v, at_state, need, count, far, function()
    local ends = unpack_at('<i8', numbers, 33)
    if ends > now then -- the caller's clock is ahead by a window, or more
      return
    end
    for i = 41, #numbers, 8 do
      ends = unpack_at('<i8', numbers, i)
      if ends > now then
        return ends
      end
    end
  end)
end

function kinds.s(v, at_state, numbers)
  local need, count, ring, width, unit, period, life = unpack_at('<i8i8i8i8i8i8i8', numbers)
  local function bucket(time)
    return unit * floor(time / width) + floor(unit * (time % width) / width)
  end
  local top = bucket(now)
  local tail = period == 0 and top - ring + 2 or now >= period and bucket(now - period) or 0
  local head, live, newest, leaving, counts = top, 0, -1, -1, {}
  local format = '<' .. string.rep('I4', ring)
  if v then
    local seen, ns
    if #v ~= at_state + 16 + 4 * ring then
      return
    end
    seen, ns, head = unpack_at('<I7I2i8', v, at_state)
    if ns ~= 0 or now < seen or head > top then
      return
    end
    counts = {unpack_at(format, v, at_state + 17)}
    tail = max(tail, head - ring + 1, 0)
    for b = tail, head do
      local units = counts[b % ring + 1]
      live = live + units
      newest = units > 0 and b or newest
    end
  else
    for i = 1, ring do
      counts[i] = 0
    end
  end
  local granted = (gives and need) or (repays and 0) or choose(count - live, need)
  if repays then -- to their own bucket
    local own = bucket(max(drawn_at, 0))
    if drawn_at >= 0 and drawn_at <= now and own <= head and own > head - ring then
      granted = min(need, counts[own % ring + 1])
      counts[own % ring + 1] = counts[own % ring + 1] - granted
    end
    top = head
  elseif gives then
    local back = need
    for b = head, max(head - ring + 1, 0), -1 do
      local less = min(back, counts[b % ring + 1])
      counts[b % ring + 1] = counts[b % ring + 1] - less
      back = back - less
    end
    top = head
  elseif granted > 0 then
    for b = max(head, top - ring) + 1, top do
      counts[b % ring + 1] = 0
    end
    counts[top % ring + 1] = counts[top % ring + 1] + granted
  else
    local sum = live
    for b = tail, head do
      local units = counts[b % ring + 1]
      sum = sum - units
      leaving = units > 0 and b or leaving
      if sum <= count - need then
        break
      end
    end
  end
  local seen = (gives or repays) and v and unpack_at('<I7', v, at_state) or now
  return {granted, now, live, newest, leaving},
    pack('<I7I2i8', seen, 0, top) .. pack(format, unpack(counts)), life
end

function kinds.l(v, at_state, numbers)
  local need, count, period, size, life = unpack_at('<i8i8i8i8i8', numbers)
  local seen, newest, first, used, stamps = now, 0, 0, 0, ''
  local format, modulus = '<I' .. size, 256 ^ size
  local function low(time) -- bytes of it in nanoseconds
    return time % 2 ^ 45 * 125 % 2 ^ 45 * 8 % modulus
  end
  if v then
    local ns, more
    if #v < at_state + 25 then
      return
    end
    seen, ns, newest, more, first, used = unpack_at('<I7I2I7I2I4I4', v, at_state)
    stamps = sub(v, at_state + 26)
    if ns ~= 0 or more ~= 0 or now < seen or newest > (gives and seen or now)
      or used > count or first >= count or #stamps < min(first + used, count) * size then
      return
    end
  end
  local base = low(newest)
  local function stamp(i)
    local place = (first + i) % count
    return newest - (base - unpack_at(format, stamps, place * size + 1)) % modulus / 1000
  end
  local drop, high = 0, used
  if used > 0 and stamp(0) <= now - period then
    while drop < high do
      local middle = floor((drop + high) / 2)
      if stamp(middle) <= now - period then
        drop = middle + 1
      else
        high = middle
      end
    end
  end
  local live = used - drop
  local granted = gives and need or choose(count - live, need)
  local answer = {granted, now, live, used > 0 and stamp(used - 1) or -1, -1}
  if gives then
    used = max(used - need, 0)
    newest = used > 0 and stamp(used - 1) or 0
    stamps = first + used <= count and sub(stamps, 1, (first + used) * size) or stamps
  elseif granted > 0 then
    first, used = (first + drop) % count, live + granted
    local place = (first + live) % count
    local here = min(granted, count - place)
    local bytes = pack(format, low(now))
    stamps = sub(stamps, 1, place * size) .. string.rep(bytes, here)
      .. sub(stamps, (place + here) * size + 1)
    if here < granted then
      stamps = string.rep(bytes, granted - here) .. sub(stamps, (granted - here) * size + 1)
    end
    newest, seen = now, now
  elseif live + need > count then
    answer[5] = stamp(used + need - count - 1)
  end
  return answer, pack('<I7I2I7I2I4I4', seen, 0, newest, 0, first, used) .. stamps, life
end

local answers, states, lives, granted, receipt = {}, {}, {}, true,
  gives and 'I\2' or repays and 'I\3' or 'I\1'
for i = 1, accounts do
  local kind, head, numbers = ARGV[3 * i], ARGV[3 * i + 1], ARGV[3 * i + 2]
  local v = redis.call('GET', KEYS[i])
  if not v or sub(v, 1, #head) == head then
    answers[i], states[i], lives[i] = kinds[kind](v, #head + 1, numbers)
    if (gives and not v) or (repays and answers[i] and answers[i][1] == 0) then
      states[i] = false
    end
  end
  if not answers[i] then
    return as_it_is()
  end
  granted = granted and (repays or answers[i][1] > 0)
  receipt = receipt .. pack('<i8i8', answers[i][1], now)
end
for i = 1, accounts do
  if granted and states[i] then
    redis.call('SET', KEYS[i], ARGV[3 * i + 1] .. states[i], 'PX', lives[i])
  end
end
if draws or (repays and life > 0) then
  redis.call('SET', KEYS[2], 'D\1' .. pack('<I7i8i8I7i8i8', since, before, asked, life_since,
    least_before, least), 'PX', lasts)
end
if draws then
  receipt = receipt .. pack('<i8', drawn[1] == 1 and -1 - drawn[2] or drawn[2])
end
if granted and keep > 0 then
  redis.call('SET', KEYS[#KEYS], receipt, 'PX', keep)
end
if draws then -- one string is read faster than a list in a list
  local a = answers[1]
  return pack('<i8i8i8i8i8i8i8', a[1], a[2], a[3], a[4] or 0, a[5] or 0, drawn[1], drawn[2])
end
return answers
