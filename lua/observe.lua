#!lua flags=allow-oom
-- observe.lua: writes down that the caller lives, and shows what there is to take over.
--
-- KEYS  1 jobs  2 leases  3 replicas
-- ARGV  1 server run id as the caller knows it  2 quarantine ms  3 history prefix
--       4 output prefix  5 token floor  6 channel  7 replica id
--       8 what the replica says of itself (JSON, kept as it is)  9 scope (overdue|all)
--       10 how many leases at most  11 abandoned after ms
--       12 how long a silent replica stays listed ms
-- reply now ms, fault of a history line ('' here), grace left ms,
--       next deadline ms or -1, then per lease {job, record}
--
-- Atomic, because the leases, the clock and the grace window are judged together.
-- Holds: it changes no lease; what it shows is a hint to watch, never a proof of death. A grace
-- window begins with whoever looks first. allow-oom: what it writes replaces what was there.

local PREFETCH = 1000

-- Whether the record in a line is open. The whole line is read where it is received: reading
-- it here would double the cost of showing it.
local function shows_open(line)
  local state = string.match(line, '^[^|]*|([^|]*)|')
  return state == 'running' or state == 'handed_over'
end

-- Shows the records of jobs; an entry of the index whose record is closed or gone is dropped.
local function show(jobs, shown)
  local strays = {}
  for first = 1, #jobs, PREFETCH do
    local last = math.min(first + PREFETCH - 1, #jobs)
    local lines = redis.call('HMGET', KEYS[1], unpack(jobs, first, last))
    for i = first, last do
      local line = lines[i - first + 1]
      if line and shows_open(line) then
        shown[#shown + 1] = { jobs[i], line }
      else
        strays[#strays + 1] = jobs[i]
      end
    end
  end
  for _, job in ipairs(strays) do redis.call('ZREM', KEYS[2], job) end
end

-- Lists the caller, and takes replicas off the list that were not heard of for long.
local function list_replica(now, retention)
  redis.call('HSET', KEYS[3], ARGV[7], text(now) .. '|' .. ARGV[8])
  local replicas, gone = redis.call('HGETALL', KEYS[3]), {}
  for i = 1, #replicas, 2 do
    local seen_at = tonumber(string.match(replicas[i + 1], '^(%-?%d+)|'))
    if not seen_at or seen_at < now - retention then gone[#gone + 1] = replicas[i] end
  end
  for _, id in ipairs(gone) do redis.call('HDEL', KEYS[3], id) end
end

local call = begin({})
local now = call.now
local from, until_ = '(' .. text(now - tonumber(ARGV[11])), '+inf'
if ARGV[9] == 'overdue' then until_ = text(now) end
local jobs = redis.call('ZRANGEBYSCORE', KEYS[2], from, until_, 'LIMIT', '0', ARGV[10])
local next_ = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
local reply = { now, '', grace(call), next_[2] and tonumber(next_[2]) or -1 }
show(jobs, reply)
reply[2] = finish(call)
list_replica(now, tonumber(ARGV[12]))
return reply
