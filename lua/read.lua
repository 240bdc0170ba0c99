#!lua flags=allow-oom
-- read.lua: shows what a step begins with.
--
-- KEYS  1 jobs
-- ARGV  1 process as the caller knows it
--       2 ballot that is to be promised, '?' to promise none, '' for a server by itself
--       3 how long whoever was promised it is to be left in peace, or is waited for, us
--       4 '1' where the peace outlasts the step of that ballot
--       5... job names
-- reply clock us, process, values: #layout, #epoch, #token, #clock_us, then each job's;
--       of several servers also: promised before, ballot of the last step, process that took it,
--       '1' where it is promised
--
-- Atomic, because the clock, the group and the records are judged together.
-- Changes no record, and does not say so to the server (no-writes): a replica may not answer,
-- because what it would show is old. allow-oom: a renewal begins with it.

-- How long somebody who was promised a ballot is left in peace at most, to have its step taken.
-- Whoever comes meanwhile would only keep both from it.
local LONGEST_PEACE_US = 1000000
local LASTS = 'lasts'

local function proposer(ballot) return string.match(ballot, '%-(.*)') end

-- Whether a time lies ahead, but not so far that the clock must have stepped back since.
local function is_ahead(time_us, now_us)
  local left_us = tonumber(time_us or 0) - now_us
  return left_us > 0 and left_us <= LONGEST_PEACE_US
end

-- Whose turn it is when the step that is in the making is over: of those who were sent away, the
-- first, as long as it keeps asking. Else whoever is quick would always be quicker.
local function next_in_line(now_us)
  local line = redis.call('HGET', KEYS[1], '#next') or ''
  local who, until_us = string.match(line, '(.*) (%d+)')
  return is_ahead(until_us, now_us) and who or nil
end

-- Promises a ballot, where that is the highest one and nobody is about to use another. It is safe
-- never to promise. Ballots are as long as each other, so that the order of texts is theirs.
local function promise(now_us)
  local stands = standing()
  local who = proposer(ARGV[2])
  local until_us = text(now_us + math.min(tonumber(ARGV[3]), LONGEST_PEACE_US))
  local peace = redis.call('HGET', KEYS[1], '#peace_us') or ''
  local peace_us, lasts = string.match(peace, '(%d+) ?(%a*)')
  local unused = stands[1] ~= '' and (stands[1] ~= stands[2] or lasts == LASTS)
  local busy = unused and proposer(stands[1]) ~= who and is_ahead(peace_us, now_us)
  local first = next_in_line(now_us) or who
  if ARGV[2] > stands[1] and not busy and first == who then
    peace = ARGV[4] == '1' and until_us .. ' ' .. LASTS or until_us
    redis.call('HSET', KEYS[1], '#promised', ARGV[2], '#peace_us', peace)
    redis.call('HDEL', KEYS[1], '#next')
    stands[4] = '1'
  else
    if first == who then redis.call('HSET', KEYS[1], '#next', who .. ' ' .. until_us) end
    stands[4] = '0'
  end
  return stands
end

local jobs = {}
for i = 5, #ARGV do jobs[i - 4] = ARGV[i] end
local snap = snapshot(ARGV[1], jobs)
local reply = told(snap)
if ARGV[2] == '?' then
  reply[4] = standing()
elseif ARGV[2] ~= '' then
  reply[4] = promise(snap.now_us)
end
return reply
