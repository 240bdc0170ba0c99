#!lua
-- claim.lua: gives occurrences to the caller, or says why not.
--
-- KEYS  1 jobs  2 leases
-- ARGV  1 server run id as the caller knows it  2 quarantine ms  3 history prefix
--       4 output prefix  5 token floor  6 channel  7 holder (name/id)
--       8 send_by ms, '' for none
--       then per claim 12: job, scheduled_at ms, origin (schedule|manual), run_id,
--       on_crash (rerun|skip), max_attempts, start_by ms, ttl ms,
--       token and deadline of the lease to take over ('' for none),
--       history limit, history age ms
-- reply now ms, fault of a history line or '', then per claim one of
--       {granted, token, attempt, deadline, remaining}    {early, wait}    {grace, wait}
--       {held, scheduled_at, token, deadline, ttl}        {overlap, the same}
--       {finished}  {too_late}  {closed}  {expired}
-- error SOLOISTCLOCK: the server's clock is past the year 2255
--
-- Atomic, because reading the record and granting must not come apart: two replicas that both
-- see an occurrence free would both run it.
-- Holds: one grant per (job, occurrence, attempt); a token is above the last one, the clock in
-- microseconds and the caller's floor; a lease is taken over only by naming the exact token
-- and deadline; nothing is granted in a grace window; a request that comes after its own
-- deadline does nothing. No allow-oom: a full server refuses claims before anything is done.

local FIRST, WIDTH = 9, 12
local ONLY_ASKS = -2 ^ 63
local caller = {
  holder = ARGV[7], floor = tonumber(ARGV[5]), send_by = tonumber(ARGV[8]),
}

local function read(at)
  return {
    job = ARGV[at], due = tonumber(ARGV[at + 1]), origin = ARGV[at + 2], run_id = ARGV[at + 3],
    on_crash = ARGV[at + 4], max_attempts = tonumber(ARGV[at + 5]),
    start_by = tonumber(ARGV[at + 6]), ttl = tonumber(ARGV[at + 7]),
    watched_token = tonumber(ARGV[at + 8]), watched_deadline = tonumber(ARGV[at + 9]),
    limit = tonumber(ARGV[at + 10]), age = tonumber(ARGV[at + 11]),
  }
end

local function held(code, record)
  return { code, record.scheduled_at, record.token, record.deadline, record.ttl }
end

local function reason(words)
  return '{"reason":"' .. words .. '"}'
end

-- An instant as RFC 3339 writes it. The date is worked out after Howard Hinnant's
-- `civil_from_days`, whose years begin in March.
local function rfc3339(ms)
  local floor = math.floor
  local days = floor(ms / 86400000)
  local rest = ms - days * 86400000
  local shifted = days + 719468
  local era = floor(shifted / 146097)
  local doe = shifted - era * 146097
  local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
  local march = floor((5 * doy + 2) / 153)
  local day = doy - floor((153 * march + 2) / 5) + 1
  local month = march < 10 and march + 3 or march - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  local fraction = rest % 1000 > 0 and string.gsub(string.format('.%03d', rest % 1000), '0+$', '') or ''
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d%sZ', year, month, day,
    floor(rest / 3600000), floor(rest / 60000) % 60, floor(rest / 1000) % 60, fraction)
end

local function add_lost(call, record, claim, may_not, exhausted)
  local fate = 'run again as the next attempt'
  if may_not then
    fate = 'not run again, as on_crash = \\"skip\\" says'
  elseif exhausted then
    fate = 'not run again: max_attempts is used up'
  end
  add_line(call, claim, record, 'lost',
    reason('its holder was not heard of until the lease ran out; ' .. fate))
end

-- The line of an occurrence that never started.
local function add_unstarted(call, claim, outcome, words)
  local unstarted = {
    scheduled_at = claim.due, attempt = 0, run_id = claim.run_id, token = 0,
    holder = caller.holder, since = call.now,
  }
  add_line(call, claim, unstarted, outcome, reason(words))
end

local function grant(call, record, claim, attempt)
  local group = call.group
  local token = math.max(math.max(group.token, caller.floor) + 1, call.now_us)
  if token > TOKEN_MAX then
    error({ err = 'SOLOISTCLOCK the clock of the server is past the year 2255' })
  end
  group.token = token
  group.clock_us = math.max(group.clock_us, call.now_us)
  local settled_until = record and record.settled_until or 0
  if claim.origin == 'schedule' then settled_until = math.max(settled_until, claim.due) end
  local deadline = call.now + claim.ttl
  set_record(call, claim.job, {
    scheduled_at = claim.due, state = 'running', run_id = claim.run_id, token = token,
    deadline = deadline, attempt = attempt, ttl = claim.ttl, settled_until = settled_until,
    on_crash = claim.on_crash, since = call.now, holder = caller.holder,
  })
  return { 'granted', token, attempt, deadline, claim.ttl }
end

-- The same request once more: the same answer, with what is left by now.
local function replay(call, record)
  if record.state ~= 'running' then return { 'finished' } end
  local remaining = math.max(record.deadline - call.now, 0)
  return { 'granted', record.token, record.attempt, record.deadline, remaining }
end

-- A claim to an occurrence that was granted before.
local function claim_again(call, record, claim)
  if not is_open(record) then return { 'finished' } end
  local running = record.state == 'running'
  local watched = claim.watched_token == record.token and claim.watched_deadline == record.deadline
  if running and not watched then return held('held', record) end
  if grace(call) > 0 then return { 'grace', grace(call) } end
  local exhausted = record.attempt >= claim.max_attempts
  local may_not = running and record.on_crash == 'skip'
  if running or exhausted then add_lost(call, record, claim, may_not, exhausted) end
  if may_not or exhausted then
    set_record(call, claim.job, with(record, { state = 'lost', since = call.now }))
    return { 'closed' }
  end
  return grant(call, record, claim, record.attempt + 1)
end

-- A claim to an occurrence while another one of the job is unfinished.
local function overlap(call, record, claim)
  if claim.origin == 'manual' then return held('held', record) end
  set_record(call, claim.job, with(record, { settled_until = claim.due }))
  add_unstarted(call, claim, 'skipped',
    'overlap: the occurrence of ' .. rfc3339(record.scheduled_at) .. ' is unfinished')
  return held('overlap', record)
end

-- A claim to an occurrence that nobody had yet.
local function claim_first(call, record, claim)
  if grace(call) > 0 then return { 'grace', grace(call) } end
  local once = claim.origin == 'schedule' and claim.on_crash == 'skip'
  local before_birth = claim.due <= call.group.born
  local words
  if before_birth and not record then
    words = 'the ledger began later and can\'t tell whether it ran'
  elseif before_birth and once then
    -- A server that was started anew may have forgotten a grant that it acknowledged.
    words = 'the store was restarted later and can\'t tell whether it ran'
  elseif claim.start_by == ONLY_ASKS then
    words = 'a newer occurrence fell due before it could be claimed'
  elseif call.now > claim.start_by then
    words = 'starting_deadline passed before a replica could claim it'
  else
    return grant(call, record, claim, 1)
  end
  local base = record or blank(call, caller.holder)
  local settled_until = math.max(base.settled_until, claim.due)
  set_record(call, claim.job, with(base, { settled_until = settled_until }))
  add_unstarted(call, claim, 'missed', words)
  return { 'too_late' }
end

local function decide(call, claim)
  local record = call.records[claim.job]
  local same = record and record.scheduled_at == claim.due and record.state ~= 'new'
  if same and record.run_id == claim.run_id then return replay(call, record) end
  if caller.send_by and call.now > caller.send_by then return { 'expired' } end
  if claim.due > call.now then return { 'early', claim.due - call.now } end
  if same then return claim_again(call, record, claim) end
  if record then
    local scheduled = claim.origin == 'schedule'
    if scheduled and claim.due <= record.settled_until then return { 'finished' } end
    if is_open(record) then return overlap(call, record, claim) end
  end
  return claim_first(call, record, claim)
end

local claims, jobs = {}, {}
for at = FIRST, #ARGV, WIDTH do
  claims[#claims + 1] = read(at)
  jobs[#jobs + 1] = ARGV[at]
end
local call = begin(jobs)
local answers = {}
for i, claim in ipairs(claims) do answers[i] = decide(call, claim) end
local fault = finish(call)
return { call.now, fault, unpack(answers) }
