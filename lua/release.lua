#!lua flags=allow-oom
-- release.lua: gives leases back and writes down how the attempts ended.
--
-- KEYS  1 jobs  2 leases
-- ARGV  1 server run id as the caller knows it  2 quarantine ms  3 history prefix
--       4 output prefix  5 token floor  6 channel  7 holder (name/id)
--       then per release 12: job, scheduled_at ms, origin, run_id, token, attempt, on_crash,
--       outcome, detail (JSON, kept as it is), output (bytes, '' for none),
--       history limit, history age ms
-- reply now ms, fault of a history line or '', then per release {released} or {superseded}
--
-- Atomic, because a lease that changed hands must not be given back by its former holder.
-- Holds: occurrence, run id and token match (the deadline may have passed: nobody took it), or
-- a grace window is open and the ledger knows nothing newer; sent again, it finds the work done
-- and says so. PUBLISH comes last and by pcall: whoever is forbidden to publish has still
-- released. allow-oom: it frees more than it takes, and must work when nothing else does.

local FIRST, WIDTH = 8, 12
local holder = ARGV[7]

local function read(at)
  return {
    job = ARGV[at], due = tonumber(ARGV[at + 1]), origin = ARGV[at + 2], run_id = ARGV[at + 3],
    token = tonumber(ARGV[at + 4]), attempt = tonumber(ARGV[at + 5]), on_crash = ARGV[at + 6],
    outcome = ARGV[at + 7], detail = ARGV[at + 8], output = ARGV[at + 9],
    limit = tonumber(ARGV[at + 10]), age = tonumber(ARGV[at + 11]),
  }
end

local function decide(call, release, handed_over)
  local record = call.records[release.job]
  local mine = record and record.scheduled_at == release.due and record.run_id == release.run_id
    and record.token == release.token
  if mine and record.state == release.outcome then return { 'released' } end
  local running = mine and record.state == 'running'
  if not running and not may_reassert(call, record, release.token) then return { 'superseded' } end
  local base = running and record or rewritten(call, record, release, holder)
  add_line(call, release, base, release.outcome, release.detail)
  set_record(call, release.job,
    with(base, { state = release.outcome, deadline = call.now, since = call.now }))
  call.group.token = math.max(call.group.token, release.token)
  if release.outcome == 'handed_over' then handed_over[#handed_over + 1] = release.job end
  return { 'released' }
end

local releases, jobs = {}, {}
for at = FIRST, #ARGV, WIDTH do
  releases[#releases + 1] = read(at)
  jobs[#jobs + 1] = ARGV[at]
end
local call = begin(jobs)
local answers, handed_over = {}, {}
for i, release in ipairs(releases) do answers[i] = decide(call, release, handed_over) end
local fault = finish(call)
if #handed_over > 0 then redis.pcall('PUBLISH', ARGV[6], table.concat(handed_over, ',')) end
return { call.now, fault, unpack(answers) }
