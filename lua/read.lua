#!lua flags=allow-oom
-- read.lua: shows what a step begins with.
--
-- KEYS  1 jobs
-- ARGV  1 server run id as the caller knows it
--       2... job names
-- reply clock us, run id, values: #layout, #epoch, #token, #clock_us, then each job's
--
-- Atomic, because the clock, the group and the records are judged together.
-- Changes nothing, and does not say so to the server (no-writes): a replica may not answer,
-- because what it would show is old. allow-oom: a renewal begins with it.

local jobs = {}
for i = 2, #ARGV do jobs[i - 1] = ARGV[i] end
return told(snapshot(ARGV[1], jobs))
