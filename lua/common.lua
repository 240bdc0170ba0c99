-- common.lua: the shape of the ledger, for all scripts. `scripts.rs` puts this file between
-- the first line of each script (its shebang) and the rest.
--
-- The specification is src/store/rules; this says the same once more, because it has to
-- run inside the server. Every script works in three steps: `begin` reads, the script
-- decides, `finish` writes. Nothing is written before everything is decided, so a script
-- that fails has done nothing.
--
-- Keys of a namespace (spelt only in src/store/redis/keys.rs; one hash tag, so one slot):
--   :jobs     hash: a record for each job, and the fields of the group, which start with `#`
--   :leases   sorted set of the open records (running or handed over), by deadline
--   :replicas hash: what each replica last said of itself
--   :history:JOB, :output:JOB   streams: ended attempts, and what they printed
-- History keys are not in KEYS: a batch may touch 128 of them and mostly touches none. They
-- are made from the prefix in ARGV and lie in the same slot.
--
-- All scripts that judge leases have KEYS 1 and 2 and ARGV 1 to 6 in common; `begin` and `finish`
-- read them.
--
-- Times are milliseconds and tokens are below 2^53: a Lua number holds both exactly, but
-- `tostring` prints 14 digits only. Hence `text`.

local LAYOUT = 1
local STEP_BACK_TOLERATED_US = 60000000
local TOKEN_MAX = 9007199254740991
local OUTPUTS_KEPT = 100
local GROUP_FIELDS = 6
local NEW_LEDGER_GRACE_MS = 1000
local NIL_RUN_ID = '00000000-0000-0000-0000-000000000000'

local function text(number)
  return string.format('%.0f', number)
end

-- A record in one line; the holder comes last, since only it may hold a `|`:
-- scheduled_at|state|run_id|token|deadline|attempt|ttl|settled_until|on_crash|since|name/id
local RECORD = '^(%-?%d+)|([%l_]+)|([%x%-]+)|(%d+)|(%-?%d+)|(%d+)|(%d+)|(%-?%d+)|(%l+)|(%-?%d+)|(.*)$'

local function parse(job, line)
  local scheduled_at, state, run_id, token, deadline, attempt, ttl, settled_until, on_crash, since, holder =
    string.match(line, RECORD)
  if not scheduled_at then
    error({ err = 'SOLOISTRECORD the record of ' .. job .. ' has another form' })
  end
  return {
    scheduled_at = tonumber(scheduled_at), state = state, run_id = run_id,
    token = tonumber(token), deadline = tonumber(deadline), attempt = tonumber(attempt),
    ttl = tonumber(ttl), settled_until = tonumber(settled_until), on_crash = on_crash,
    since = tonumber(since), holder = holder,
  }
end

local function format(record)
  return string.format('%.0f|%s|%s|%.0f|%.0f|%.0f|%.0f|%.0f|%s|%.0f|%s',
    record.scheduled_at, record.state, record.run_id, record.token, record.deadline,
    record.attempt, record.ttl, record.settled_until, record.on_crash, record.since, record.holder)
end

-- The record with some fields changed.
local function with(record, changes)
  for field, value in pairs(record) do
    if changes[field] == nil then changes[field] = value end
  end
  return changes
end

-- Unfinished: it stands in the way of the job's next occurrence.
local function is_open(record)
  return record.state == 'running' or record.state == 'handed_over'
end

-- Which server process answers. It changes with a restart and with a failover, where what
-- was acknowledged may be lost. `known` is what the caller read when it connected, for
-- servers that do not let a script ask.
local function incarnation(known)
  local info = redis.pcall('INFO', 'server')
  return type(info) == 'string' and string.match(info, 'run_id:(%w+)') or known
end

local function read_group(values)
  local layout = tonumber(values[1] or LAYOUT)
  if layout ~= LAYOUT then
    error({ err = 'SOLOISTLAYOUT the ledger has layout ' .. tostring(values[1]) })
  end
  return {
    run = values[2] or '', token = tonumber(values[3] or 0), grace_until = tonumber(values[4] or 0),
    clock_us = tonumber(values[5] or 0), born = tonumber(values[6] or 0),
  }
end

-- Nothing is granted for `ms` from now on.
local function open_grace(group, now, ms)
  group.grace_until = math.max(group.grace_until, now + ms)
end

-- What a new incarnation of the server means: it may have lost what was acknowledged, so
-- holders get time to come back. A ledger that this server never had, and of which the caller
-- knows no grant, is most likely a first start; a shorter window is enough for holders that are
-- connected, as the birth is published and they look at once.
local function reborn(group, now, run, quarantine, floor)
  local first_start = group.run == '' and floor == 0
  open_grace(group, now, first_start and math.min(quarantine, NEW_LEDGER_GRACE_MS) or quarantine)
  group.run, group.born = run, now
end

-- Begins a call: reads the clock, the group and the records of `jobs`. A small step back of
-- the clock is waited out (time stands still), a large one opens a grace window, and so does
-- a new incarnation of the server, which also moves `born`. So does a caller that knows of a
-- grant where the ledger has none: its data were lost.
local function begin(jobs)
  local known_run, quarantine, floor = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[5])
  local time = redis.call('TIME')
  local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
  local fields = { '#layout', '#run', '#token', '#grace_until', '#clock_us', '#born' }
  for i = 1, #jobs do fields[GROUP_FIELDS + i] = jobs[i] end
  local values = redis.call('HMGET', KEYS[1], unpack(fields))
  local group = read_group(values)
  local before = with(group, {})
  if now_us < group.clock_us then
    if group.clock_us - now_us < STEP_BACK_TOLERATED_US then
      now_us = group.clock_us
    else
      group.clock_us = now_us
      group.grace_until = math.floor(now_us / 1000) + quarantine
    end
  end
  local now = math.floor(now_us / 1000)
  local run = incarnation(known_run)
  if group.run ~= run then reborn(group, now, run, quarantine, floor) end
  if group.token == 0 and floor > 0 then
    group.token = floor
    open_grace(group, now, quarantine)
  end
  local records = {}
  for i = 1, #jobs do
    local line = values[GROUP_FIELDS + i]
    records[jobs[i]] = line and parse(jobs[i], line) or nil
  end
  return {
    now = now, now_us = now_us, group = group, before = before,
    records = records, changed = {}, lines = {},
  }
end

-- What is left of a grace window.
local function grace(call)
  return math.max(call.group.grace_until - call.now, 0)
end

-- The record of a job that never ran.
local function blank(call, holder)
  return {
    scheduled_at = 0, state = 'new', run_id = NIL_RUN_ID, token = 0, deadline = 0, attempt = 0,
    ttl = 0, settled_until = call.now, on_crash = 'rerun', since = call.now, holder = holder,
  }
end

-- Inside a grace window a holder may write a record anew that the store lost, or that it has
-- only in an older form.
local function may_reassert(call, record, token)
  return grace(call) > 0 and (not record or record.token < token)
end

-- The record of a lease that its holder re-asserts.
local function rewritten(call, record, item, holder)
  local settled_until = record and record.settled_until or 0
  if item.origin == 'schedule' then settled_until = math.max(settled_until, item.due) end
  return with(blank(call, holder), {
    scheduled_at = item.due, state = 'running', run_id = item.run_id, token = item.token,
    attempt = item.attempt, on_crash = item.on_crash, settled_until = settled_until,
  })
end

-- Sets a job's record; written by `finish`.
local function set_record(call, job, record)
  call.records[job] = record
  call.changed[job] = true
end

local function replica_name(holder)
  return string.match(holder, '^(.*)/[^/]*$') or holder
end

-- The line of an attempt that ends now.
local function add_line(call, item, record, outcome, detail)
  call.lines[#call.lines + 1] = {
    job = item.job, limit = item.limit, age = item.age, run_id = record.run_id,
    output = item.output or '',
    fields = {
      'scheduled_at', text(record.scheduled_at), 'attempt', text(record.attempt),
      'run_id', record.run_id, 'token', text(record.token),
      'replica', replica_name(record.holder), 'started_at', text(record.since),
      'ended_at', text(call.now), 'outcome', outcome, 'detail', detail,
    },
  }
end

local function group_changes(call)
  local group, before, fields = call.group, call.before, {}
  for _, name in ipairs({ 'token', 'grace_until', 'clock_us', 'born' }) do
    if group[name] ~= before[name] then
      fields[#fields + 1] = '#' .. name
      fields[#fields + 1] = text(group[name])
    end
  end
  if group.run ~= before.run then
    fields[#fields + 1] = '#layout'
    fields[#fields + 1] = text(LAYOUT)
    fields[#fields + 1] = '#run'
    fields[#fields + 1] = group.run
  end
  return fields
end

local function trim_by_age(call, stream, age)
  local oldest = call.now - age
  if oldest > 0 then redis.pcall('XTRIM', stream, 'MINID', '=', text(oldest)) end
end

-- Adds a line to a history and trims it. The ids are the times of the ends, so that age is
-- trimmed by id; after a step back of the clock the newest id is ahead of it, and `*` counts
-- on from there. Answers the id, or the error in a table.
local function append_line(call, history, line)
  local id = redis.pcall('XADD', history, 'MAXLEN', '=', text(line.limit), text(call.now) .. '-*',
    unpack(line.fields))
  if type(id) == 'table' then
    id = redis.pcall('XADD', history, 'MAXLEN', '=', text(line.limit), '*', unpack(line.fields))
  end
  trim_by_age(call, history, line.age)
  return id
end

-- Keeps what the attempt of a line printed, under the id of its line. It is trimmed as the
-- lines are; output.lua shows none whose line went earlier.
local function append_output(call, output, id, line)
  local limit = math.min(line.limit, OUTPUTS_KEPT)
  local added = redis.pcall('XADD', output, 'MAXLEN', '=', text(limit), id,
    'run_id', line.run_id, 'output', line.output)
  trim_by_age(call, output, line.age)
  return added
end

-- Writes a line of the ledger. It uses pcall and answers the error, or nil: a line that can't
-- be written is told, and must not undo a lease.
local function append(call, line)
  local history, output = ARGV[3] .. line.job, ARGV[4] .. line.job
  local id = append_line(call, history, line)
  if type(id) == 'string' and line.output ~= '' then
    id = append_output(call, output, id, line)
  end
  return type(id) == 'table' and id.err or nil
end

-- Writes what was decided: the index first, because a record without its entry in there would
-- never be found overdue, while an entry without its record harms nobody. PUBLISH comes last
-- and by pcall, as whoever is forbidden to publish must not be left with half a write.
local function finish(call)
  local fields, closed, opened = group_changes(call), {}, {}
  for job in pairs(call.changed) do
    local record = call.records[job]
    fields[#fields + 1] = job
    fields[#fields + 1] = format(record)
    if is_open(record) then
      opened[#opened + 1] = text(record.deadline)
      opened[#opened + 1] = job
    elseif record.state ~= 'new' then
      closed[#closed + 1] = job
    end
  end
  if #closed > 0 then redis.call('ZREM', KEYS[2], unpack(closed)) end
  if #opened > 0 then redis.call('ZADD', KEYS[2], unpack(opened)) end
  if #fields > 0 then redis.call('HSET', KEYS[1], unpack(fields)) end
  local fault = ''
  for _, line in ipairs(call.lines) do
    fault = append(call, line) or fault
  end
  if call.before.run == '' then redis.pcall('PUBLISH', ARGV[6], 'born') end
  return fault
end
