#!lua flags=allow-oom
-- read.lua: shows what a step begins with.
--
-- KEYS  1 jobs
-- ARGV  1 server run id as the caller knows it
--       2 ballot that is to be promised, '?' to promise none, '' for a server by itself
--       3... job names
-- reply clock us, run id, values: #layout, #epoch, #token, #clock_us, then each job's;
--       of several servers also: promised before, ballot of the last step, process that took it,
--       '1' where it is promised
--
-- Atomic, because the clock, the group and the records are judged together.
-- Changes no record, and does not say so to the server (no-writes): a replica may not answer,
-- because what it would show is old. allow-oom: a renewal begins with it.

-- How long somebody who was promised a ballot is left in peace to have its step taken. Whoever
-- comes meanwhile would only keep both from it.
local IN_PEACE_US = 30000

local function proposer(ballot) return string.match(ballot, '%-(.*)') end

-- Promises a ballot, where that is the highest one and nobody is about to use another. It is safe
-- never to promise. Ballots are as long as each other, so that the order of texts is theirs.
local function promise(now_us)
  local stands = standing()
  local age_us = now_us - tonumber(redis.call('HGET', KEYS[1], '#promised_us') or 0)
  local unused = stands[1] ~= '' and stands[1] ~= stands[2]
  local busy = unused and proposer(stands[1]) ~= proposer(ARGV[2])
    and age_us >= 0 and age_us < IN_PEACE_US
  stands[4] = '0'
  if ARGV[2] > stands[1] and not busy then
    redis.call('HSET', KEYS[1], '#promised', ARGV[2], '#promised_us', text(now_us))
    stands[4] = '1'
  end
  return stands
end

local jobs = {}
for i = 3, #ARGV do jobs[i - 2] = ARGV[i] end
local snap = snapshot(ARGV[1], jobs)
local reply = told(snap)
if ARGV[2] == '?' then
  reply[4] = standing()
elseif ARGV[2] ~= '' then
  reply[4] = promise(snap.now_us)
end
return reply
