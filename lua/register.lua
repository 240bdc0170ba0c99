#!lua
-- register.lua: makes jobs known to the ledger; a new job has everything up to now settled.
--
-- KEYS  1 jobs  2 leases
-- ARGV  1 server run id as the caller knows it  2 quarantine ms  3 history prefix
--       4 output prefix  5 token floor  6 channel  7 holder (name/id)
--       8... job names
-- reply now ms, fault of a history line ('' here), then per job {settled_until ms, 1 if new}
--
-- Atomic, because two replicas that start together must agree on what is settled.
-- Holds: what is settled never falls (a known job is left as it is). No allow-oom: a server
-- without memory gets no new jobs.

local jobs = {}
for i = 8, #ARGV do jobs[#jobs + 1] = ARGV[i] end
local call = begin(jobs)
local answers = {}
for i, job in ipairs(jobs) do
  local record = call.records[job]
  if record then
    answers[i] = { record.settled_until, 0 }
  else
    set_record(call, job, blank(call, ARGV[7]))
    answers[i] = { call.now, 1 }
  end
end
local fault = finish(call)
return { call.now, fault, unpack(answers) }
