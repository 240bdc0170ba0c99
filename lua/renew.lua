#!lua flags=allow-oom
-- renew.lua: keeps leases for another TTL.
--
-- KEYS  1 jobs  2 leases
-- ARGV  1 server run id as the caller knows it  2 quarantine ms  3 history prefix
--       4 output prefix  5 token floor  6 channel  7 holder (name/id)
--       then per renewal 9: job, scheduled_at ms, origin, run_id, token, attempt, on_crash,
--       ttl ms, last deadline heard of ms
-- reply now ms, fault of a history line ('' here), then per renewal
--       {renewed, deadline, remaining}  {lost}
--
-- Atomic, because a lease must not change hands between the comparison and the new deadline.
-- Holds: occurrence, run id, token and state all match, or a grace window is open and the
-- ledger knows nothing newer; the deadline of one token rises strictly, even on a clock that
-- stands still. allow-oom: a server out of memory must not cost a running job its lease; the
-- record is written over in place.

local FIRST, WIDTH = 8, 9
local holder = ARGV[7]

local function read(at)
  return {
    job = ARGV[at], due = tonumber(ARGV[at + 1]), origin = ARGV[at + 2], run_id = ARGV[at + 3],
    token = tonumber(ARGV[at + 4]), attempt = tonumber(ARGV[at + 5]), on_crash = ARGV[at + 6],
    ttl = tonumber(ARGV[at + 7]), last_deadline = tonumber(ARGV[at + 8]),
  }
end

local function decide(call, renewal)
  local record = call.records[renewal.job]
  local mine = record and record.scheduled_at == renewal.due and record.run_id == renewal.run_id
    and record.token == renewal.token and record.state == 'running'
  if not mine and not may_reassert(call, record, renewal.token) then return { 'lost' } end
  local base = mine and record or rewritten(call, record, renewal, holder)
  local last = math.max(base.deadline, renewal.last_deadline)
  local deadline = math.max(call.now + renewal.ttl, last + 1)
  call.group.token = math.max(call.group.token, renewal.token)
  set_record(call, renewal.job, with(base, { deadline = deadline, ttl = renewal.ttl }))
  return { 'renewed', deadline, renewal.ttl }
end

local renewals, jobs = {}, {}
for at = FIRST, #ARGV, WIDTH do
  renewals[#renewals + 1] = read(at)
  jobs[#jobs + 1] = ARGV[at]
end
local call = begin(jobs)
local answers = {}
for i, renewal in ipairs(renewals) do answers[i] = decide(call, renewal) end
local fault = finish(call)
return { call.now, fault, unpack(answers) }
