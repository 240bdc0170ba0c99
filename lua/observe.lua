#!lua flags=allow-oom
-- observe.lua: writes down that the caller lives, and shows who lives and what there is to do.
--
-- KEYS  1 jobs  2 agenda  3 replicas  4 tables
-- ARGV  1 process as the caller knows it  2 step back that is tolerated us  3 layout
--       4 replica id  5 what the replica says of itself (JSON, kept as it is)
--       6 scope (overdue|all)  7 how many records at most  8 abandoned after ms
--       9 how long a silent replica stays listed ms
-- reply clock us, process, values of the group, next instant of the agenda ms or '',
--       replicas: id, then seen_at|what it said, for each
--       digests of the tables that are kept
--       then per record {job, value}
--
-- Atomic, because the agenda, the clock and the group are judged together.
-- Holds: it changes no record; what it shows is a hint to watch, never a proof of death.
-- A ledger of another layout is left alone. allow-oom: what it writes replaces what was there.

local PREFETCH = 1000

-- Shows the records of jobs; an entry of the agenda that its record doesn't have is dropped.
-- `entries` has each job with its score.
local function show(entries, shown)
  local strays = {}
  for first = 1, #entries, 2 * PREFETCH do
    local last = math.min(first + 2 * PREFETCH - 1, #entries)
    local jobs = {}
    for i = first, last, 2 do jobs[#jobs + 1] = entries[i] end
    local values = redis.call('HMGET', KEYS[1], unpack(jobs))
    for i, job in ipairs(jobs) do
      local value = values[i]
      if value and tonumber(string.match(value, '^[^|]*')) == tonumber(entries[first + 2 * i - 1]) then
        shown[#shown + 1] = { job, value }
      else
        strays[#strays + 1] = job
      end
    end
  end
  for _, job in ipairs(strays) do redis.call('ZREM', KEYS[2], job) end
end

-- Lists the caller, takes replicas off the list that were not heard of for long, and shows
-- the others.
local function list_replica(now, retention)
  redis.call('HSET', KEYS[3], ARGV[4], text(now) .. '|' .. ARGV[5])
  local replicas, listed, gone = redis.call('HGETALL', KEYS[3]), {}, {}
  for i = 1, #replicas, 2 do
    local seen_at = tonumber(string.match(replicas[i + 1], '^(%-?%d+)|'))
    if not seen_at or seen_at < now - retention then
      gone[#gone + 1] = replicas[i]
    else
      listed[#listed + 1], listed[#listed + 2] = replicas[i], replicas[i + 1]
    end
  end
  for _, id in ipairs(gone) do redis.call('HDEL', KEYS[3], id) end
  return listed
end

-- The digests of the tables that are kept: those that a listed replica names in what it says.
local function keep_tables(listed)
  local kept = {}
  for _, digest in ipairs(redis.call('HKEYS', KEYS[4])) do
    local named = false
    for i = 2, #listed, 2 do
      named = named or string.find(listed[i], '"' .. digest .. '"', 1, true) ~= nil
    end
    if named then kept[#kept + 1] = digest else redis.call('HDEL', KEYS[4], digest) end
  end
  return kept
end

local snap = snapshot(ARGV[1], {})
local reply = told(snap)
local layout = snap.values[LAYOUT]
if layout and layout ~= ARGV[3] then return reply end
local now = time(snap, tonumber(ARGV[2]))
local from, until_ = '(' .. text(now - tonumber(ARGV[8])), '+inf'
if ARGV[6] == 'overdue' then until_ = text(now) end
local entries = redis.call('ZRANGEBYSCORE', KEYS[2], from, until_, 'WITHSCORES', 'LIMIT', '0', ARGV[7])
local next_ = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
reply[4] = next_[2] and text(tonumber(next_[2])) or ''
local listed = list_replica(now, tonumber(ARGV[9]))
reply[5], reply[6] = listed, keep_tables(listed)
show(entries, reply)
return reply
