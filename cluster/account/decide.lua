-- decide.lua -- takes from several accounts (layout.h), all or nothing; draws; gives back.
--
--   KEYS     the accounts
--   ARGV[1]  take or give, and for each account: its kind, its head, and numbers, packed as int64:
--
--   m  need, want, parts a microsecond, whether it is split; then pairs of microseconds and parts:
--      price of the need, most that may be owed before, most after; price of a unit, capacity
--   w  need, want, count, period, whether it starts with the first ask
--   c  need, want, count, 0, how far ahead an end may lie, ends of windows
--   s  need, want, count, counters, width, its unit (1: us, 1000: ns), period (0: loose edge), life
--   l  need, want, count, period, bytes of a stamp, life
--
-- Take grants `want` units, or as many as there are, or 0 if fewer than `need`.  The answer for
-- each: units granted, now, and the state before: m owed, as a pair; w and c used, end; s and l
-- used, the newest, the one that has to leave first.
--
-- Times are microseconds, life milliseconds.  What is not usual is answered {now, account ...}: the
-- caller decides, and writes by swap.lua.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local gives = ARGV[1] == 'give'
local floor, sub, pack, unpack_at = math.floor, string.sub, struct.pack, struct.unpack

-- Each returns its answer, and the state to write with its life; nothing at all if it is not usual.
local kinds = {}

local function choose(left, need, want)
  return left >= want and want or left >= need and left or 0
end

function kinds.m(v, at_state, numbers)
  local need, want, rate, split, need_q, need_r, before_q, before_r, after_q, after_r, price,
    capacity = unpack_at('<i8i8i8i8i8i8i8i8i8i8i8i8', numbers)
  local at, q, r = now, 0, 0
  if split == 1 and need ~= want then
    return
  end
  if v then
    local ns
    if split == 1 then
      at, ns, q, r = unpack_at('<I7I2i8i8', v, at_state)
    else
      at, ns, q = unpack_at('<I7I2i8', v, at_state)
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
  local granted, answer_q, answer_r = want, q, r
  if gives then
    if q < need_q or (q == need_q and r < need_r) then
      q, r = 0, 0
    else
      q, r = q - need_q, r - need_r
    end
  elseif need ~= want then
    granted = choose(floor((capacity - (q * rate + r)) / price), need, want)
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
  if not gives and (answer_q > before_q or (answer_q == before_q and answer_r > before_r)) then
    granted = 0
  end
  if r < 0 then
    q, r = q - 1, r + rate
  end
  local state = split == 1 and pack('<I7I2i8i8', now, 0, q, r)
    or pack('<I7I2i8', now, 0, q * rate + r)
  return {granted, now, answer_q, answer_r}, state, floor(q / 1000) + 2
end

local function window(v, at_state, need, want, count, far, next_end)
  local ends, used = nil, 0
  if v then
    local ns
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
  local granted = gives and want or choose(count - used, need, want)
  local after = gives and math.max(used - want, 0) or used + granted
  return {granted, now, used, ends}, pack('<I7I2i8', ends, 0, after), floor((ends - now) / 1000) + 2
end

function kinds.w(v, at_state, numbers)
  local need, want, count, period, first = unpack_at('<i8i8i8i8i8', numbers)
  return window(v, at_state, need, want, count, 2 * period + 1000000, function()
    return now + period - (first == 1 and 0 or now % period)
  end)
end

function kinds.c(v, at_state, numbers)
  local need, want, count, _, far = unpack_at('<i8i8i8i8i8', numbers)
  return window(v, at_state, need, want, count, far, function()
    for i = 41, #numbers, 8 do
      local ends = unpack_at('<i8', numbers, i)
      if ends > now then
        return ends
      end
    end
  end)
end

function kinds.s(v, at_state, numbers)
  local need, want, count, ring, width, unit, period, life = unpack_at('<i8i8i8i8i8i8i8i8', numbers)
  local function bucket(time)
    return unit * floor(time / width) + floor(unit * (time % width) / width)
  end
  local top = bucket(now)
  local tail = period == 0 and top - ring + 2 or now >= period and bucket(now - period) or 0
  local head, live, newest, leaving, counts = top, 0, -1, -1, {}
  local format = '<' .. string.rep('I4', ring)
  if v then
    local seen, ns
    seen, ns, head = unpack_at('<I7I2i8', v, at_state)
    if ns ~= 0 or now < seen or head > top or #v ~= at_state + 16 + 4 * ring then
      return
    end
    counts = {unpack_at(format, v, at_state + 17)}
    counts[ring + 1] = nil
    tail = math.max(tail, head - ring + 1, 0)
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
  local granted = gives and want or choose(count - live, need, want)
  if gives then
    local back = want
    for b = head, math.max(head - ring + 1, 0), -1 do
      local less = math.min(back, counts[b % ring + 1])
      counts[b % ring + 1] = counts[b % ring + 1] - less
      back = back - less
    end
    top = head
  elseif granted > 0 then
    for b = math.max(head, top - ring) + 1, top do
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
  local seen = gives and v and unpack_at('<I7', v, at_state) or now
  return {granted, now, live, newest, leaving},
    pack('<I7I2i8', seen, 0, top) .. pack(format, unpack(counts)), life
end

function kinds.l(v, at_state, numbers)
  local need, want, count, period, size, life = unpack_at('<i8i8i8i8i8i8', numbers)
  local seen, newest, first, used, stamps = now, 0, 0, 0, ''
  local format, modulus = '<I' .. size, 256 ^ size
  local function low(time) -- bytes of it in nanoseconds
    return time % 2 ^ 45 * 125 % 2 ^ 45 * 8 % modulus
  end
  if v then
    local ns, more
    seen, ns, newest, more, first, used = unpack_at('<I7I2I7I2I4I4', v, at_state)
    stamps = sub(v, at_state + 26)
    if ns ~= 0 or more ~= 0 or now < seen or newest > (gives and seen or now)
      or used > count or first >= count or #stamps < math.min(first + used, count) * size then
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
  local granted = gives and want or choose(count - live, need, want)
  local answer = {granted, now, live, used > 0 and stamp(used - 1) or -1, -1}
  if gives then
    used = math.max(used - want, 0)
    newest = used > 0 and stamp(used - 1) or 0
    stamps = first + used <= count and sub(stamps, 1, (first + used) * size) or stamps
  elseif granted > 0 then
    first, used = (first + drop) % count, live + granted
    local place = (first + live) % count
    local here = math.min(granted, count - place)
    local bytes = pack(format, low(now))
    stamps = sub(stamps, 1, place * size) .. string.rep(bytes, here)
      .. sub(stamps, (place + here) * size + 1)
    if here < granted then
      stamps = string.rep(bytes, granted - here) .. sub(stamps, (granted - here) * size + 1)
    end
    newest, seen = now, now
  else
    answer[5] = stamp(used + need - count - 1)
  end
  return answer, pack('<I7I2I7I2I4I4', seen, 0, newest, 0, first, used) .. stamps, life
end

local answers, states, lives, granted = {}, {}, {}, true
for i, key in ipairs(KEYS) do
  local kind, head, numbers = ARGV[3 * i - 1], ARGV[3 * i], ARGV[3 * i + 1]
  local v = redis.call('GET', key)
  if not v or sub(v, 1, #head) == head then
    answers[i], states[i], lives[i] = kinds[kind](v, #head + 1, numbers)
    if gives and not v then
      states[i] = false
    end
  end
  if not answers[i] then
    local accounts = {now}
    for k, name in ipairs(KEYS) do
      accounts[k + 1] = redis.call('GET', name)
    end
    return accounts
  end
  granted = granted and answers[i][1] > 0
end
for i, key in ipairs(KEYS) do
  if granted and states[i] then
    redis.call('SET', key, ARGV[3 * i] .. states[i], 'PX', lives[i])
  end
end
return answers
