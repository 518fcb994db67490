-- rules-versions.lua -- a versioned document of a fleet (its rules), and which node runs which
-- version.
--
--   KEYS[1]  one document, a hash: newest, stage (a node that runs the newest alone; '': none), all
--            (the version of all others), of each version n 't'n its text, 'm'n its time in us,
--            edit, origin, author and note, and of each edit 'e'id its version
--   KEYS[2]  the reports of nodes on this document, a hash: node -> time in us, version it runs,
--            version it refused, why
--   KEYS[3]  what every change is published on, a channel
--   KEYS[4], KEYS[5]  the fleet's members, and when each one's part is free (member-shares.lua)
--   ARGV     put   BASE EDIT AUTHOR NOTE STAGE ORIGIN TEXT BASE-EDIT   -> {1, version}
--                  only if BASE is the newest (0: there is none) and was made by BASE-EDIT ('': by
--                  any); else {0, newest}.  A text that its nodes have already, and that is no
--                  older one which comes back (ORIGIN 0), changes nothing: {1, newest}; but a
--                  stage that has refused it tries it again
--            all   BASE         the newest is for all nodes   -> {1, newest, its stage if that has
--                               not told that it runs it}; {0, newest}; {2, newest}: its stage has
--                               refused it
--            get   VERSION      0: the newest, -1: that of all
--                               -> {version, time, origin, author, note, text, edit}, or {}
--            list               -> {newest, stage, all, then of each version, the newest first:
--                               version, time, origin, author, note, bytes}
--            poll  NODE RUNS REFUSED WHY   -> {the version for this node, its edit}
--            nodes              -> {now, then of each node: node, time (0: it has never reported),
--                               runs, refused, why, weight, its part in millionths (-1: it is no
--                               member now), 1 if two hosts have this name}
--
-- A repeated put, known by its EDIT, is answered as before and changes nothing.  After a failover
-- that has lost a version, another may have its number: only number and edit together name a text.
local HISTORY = 50 -- versions that are kept
local FORGET = 86400000000 -- us after which a silent node is no longer reported
local MANY, SOON = 1000, 60000000 -- with more reports than that, after this time
local TWO = 15 -- strange beats of a member (member-shares.lua)
local SEPARATOR = '\31'

local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local doc, reports, channel = KEYS[1], KEYS[2], KEYS[3]
local verb = ARGV[1]
local h = redis.call('HMGET', doc, 'newest', 'stage', 'all')
local newest, stage, all = tonumber(h[1] or 0), h[2] or '', tonumber(h[3] or 0)

local function split(text)
  local out = {}
  for part in string.gmatch(text .. SEPARATOR, '(.-)' .. SEPARATOR) do
    out[#out + 1] = part
  end
  return out
end

local function whole(n)
  return string.format('%.0f', n)
end

-- time, edit, origin, author, note
local function about(version)
  return split(redis.call('HGET', doc, 'm' .. version) or '')
end

local function forget(version)
  local m = about(version)
  redis.call('HDEL', doc, 't' .. version, 'm' .. version, 'e' .. (m[2] or ''))
end

-- `before`: the version of all until now, which was kept however old it was.
local function publish(before)
  redis.call('HSET', doc, 'newest', newest, 'stage', stage, 'all', all)
  redis.call('PUBLISH', channel, newest)
  for _, old in ipairs({before, newest - HISTORY}) do
    if old > 0 and old <= newest - HISTORY and old ~= all then
      forget(old)
    end
  end
end

local function put(edit, author, note, staged, origin, text)
  local before = all
  newest = newest + 1
  redis.call('HSET', doc, 't' .. newest, text, 'e' .. edit, newest, 'm' .. newest,
    table.concat({whole(now), edit, origin, author, note}, SEPARATOR))
  stage = staged
  if staged == '' then
    all = newest
  end
  publish(before)
end

-- The version that the stage runs, and the one it has refused; nil: it has not told.
local function report_of_stage()
  local report = split(redis.call('HGET', reports, stage) or '')
  return tonumber(report[2]), tonumber(report[3])
end

if verb == 'put' then
  local known = redis.call('HGET', doc, 'e' .. ARGV[3])
  if known then
    return {1, tonumber(known)}
  end
  if tonumber(ARGV[2]) ~= newest or (ARGV[9] ~= '' and ARGV[9] ~= about(newest)[2]) then
    return {0, newest}
  end
  local _, refused = report_of_stage()
  if newest > 0 and ARGV[7] == '0' and (all == newest or ARGV[6] == stage and refused ~= newest)
      and redis.call('HGET', doc, 't' .. newest) == ARGV[8] then
    return {1, newest}
  end
  put(ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8])
  return {1, newest}
elseif verb == 'all' then
  if tonumber(ARGV[2]) ~= newest then
    return {0, newest}
  end
  local untried = ''
  if all ~= newest then
    local runs, refused = report_of_stage()
    if refused == newest then
      return {2, newest}
    end
    untried = runs == newest and '' or stage
    local before = all
    stage, all = '', newest
    publish(before)
  end
  return {1, newest, untried}
elseif verb == 'get' then
  local version = tonumber(ARGV[2])
  version = version == 0 and newest or version == -1 and all or version
  local text = redis.call('HGET', doc, 't' .. version)
  if not text then
    return {}
  end
  local m = about(version)
  return {version, tonumber(m[1]), tonumber(m[3]), m[4], m[5], text, m[2]}
elseif verb == 'list' then
  local out = {newest, stage, all}
  for version = newest, math.max(1, newest - HISTORY), -1 do
    local m = about(version)
    if m[2] then
      for _, value in ipairs({version, tonumber(m[1]), tonumber(m[3]), m[4], m[5],
          redis.call('HSTRLEN', doc, 't' .. version)}) do
        out[#out + 1] = value
      end
    end
  end
  return out
end

-- All reports by node, without those of nodes that have long been silent.
local function read_reports()
  local found = redis.call('HGETALL', reports)
  local most, out = #found > 2 * MANY and SOON or FORGET, {}
  for i = 1, #found, 2 do
    local r = split(found[i + 1])
    if now - (tonumber(r[1]) or 0) > most then
      redis.call('HDEL', reports, found[i])
    else
      out[#out + 1] = {found[i], r}
    end
  end
  return out
end

if verb == 'poll' then
  local new = redis.call('HSET', reports, ARGV[2],
    table.concat({whole(now), ARGV[3], ARGV[4], ARGV[5]}, SEPARATOR))
  redis.call('PEXPIRE', reports, whole(FORGET / 1000))
  if new == 1 then -- hosts may come and go all the time, each under another name
    read_reports()
  end
  local version = stage == ARGV[2] and newest or all
  return {version, about(version)[2] or ''}
end
local out, members, order = {now}, {}, {}

local function add(node, r)
  local m = members[node] or {0, -1, 0}
  members[node] = nil
  for _, value in ipairs({node, tonumber(r[1]), tonumber(r[2]) or 0, tonumber(r[3]) or 0, r[4] or '',
    m[1], m[2], m[3]}) do
    out[#out + 1] = value
  end
end

for _, node in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], '(' .. whole(now), '+inf')) do
  local weight, part, strange = string.match(redis.call('HGET', KEYS[4], node) or '',
    '^%d+ (%d+) %d+ (%d+) %d+ %d+ ?(%d*)')
  if weight then
    members[node] = {tonumber(weight), tonumber(part), (tonumber(strange) or 0) >= TWO and 1 or 0}
    order[#order + 1] = node
  end
end
for _, report in ipairs(read_reports()) do
  add(report[1], report[2])
end
for _, node in ipairs(order) do
  if members[node] then
    add(node, {0, 0, 0, ''})
  end
end
return out
