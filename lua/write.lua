#!lua
-- write.lua: writes what a step decided, if all that it hangs on is still what was read.
--
-- KEYS  1 jobs  2 agenda  3... histories and outputs that lines go to, for a cluster's sake
-- ARGV  1 process as the caller knows it  2 process when it was read
--       3 clock when it was read us  4 step back that is tolerated us
--       5 send_by ms, '' for none  6 layout  7 epoch that was read, '' for none
--       8 epoch that is to be, '' where it stays  9 token  10 clock mark us
--       11 history prefix  12 output prefix  13 channel  14 news, '' for none
--       15 ballot of the last step, '' for none  16 ballot of this one, '' for a server by itself
--       17 how news are published: PUBLISH, or SPUBLISH in a cluster
--       18 how many jobs the step names, then for each 4: job,
--       value that was read, '' for none, '*' where nothing hangs on it,
--       value that is to be, '' where it stays, '-' where the job is forgotten, agenda ms or '-'
--       then per line 6: job, history limit, history age ms, id ms, output (bytes, '' for
--       none), how many fields, and those, name by value
-- reply {written, fault of a history line or ''}
--       {outbid}: of several servers, where another step was taken or is promised
--       {changed, clock us, process, values}: nothing was written; the rest is read.lua's
--
-- Of several servers, none takes a step by itself: one that is asked to answers the error QUORUM.
--
-- Atomic, because between the comparison and the writing nobody may write.
-- Holds: all or nothing, lines apart, which never undo a lease; nothing is written after the
-- step's own deadline, nor on a clock that has meanwhile stepped back far. Marks of the group
-- are merged: every grant raises them, and comparing them would let one of two unrelated grants
-- fail. Runs under two shebangs: as it is, a full server refuses it before anything is done;
-- with allow-oom it frees more than it takes.

local JOBS, JOB_WIDTH, LINE_WIDTH = 18, 4, 6
local OUTPUTS_KEPT = 100
local count = tonumber(ARGV[JOBS])

local function job_at(i) return JOBS + 1 + (i - 1) * JOB_WIDTH end

local function names()
  local jobs = {}
  for i = 1, count do jobs[i] = ARGV[job_at(i)] end
  return jobs
end

-- Whether the step may be written in this group, at this time.
local function in_time(snap)
  local layout = snap.values[LAYOUT]
  local send_by = tonumber(ARGV[5])
  return snap.process == ARGV[2] and (not layout or layout == ARGV[6])
    and (snap.values[EPOCH] or '') == ARGV[7]
    and snap.now_us > tonumber(ARGV[3]) - tonumber(ARGV[4])
    and not (send_by and time(snap, tonumber(ARGV[4])) > send_by)
end

local function unchanged(snap)
  for i = 1, count do
    local read = ARGV[job_at(i) + 1]
    if read ~= '*' and (snap.values[#GROUP + i] or '') ~= read then return false end
  end
  return true
end

local function higher(value, mark)
  return text(math.max(tonumber(value or 0), tonumber(mark)))
end

local function write_group(snap)
  local fields = { '#token', higher(snap.values[TOKEN], ARGV[9]) }
  if ARGV[8] == '' then
    fields[3], fields[4] = '#clock_us', higher(snap.values[CLOCK], ARGV[10])
  else
    fields[3], fields[4] = '#clock_us', ARGV[10]
    fields[5], fields[6] = '#layout', ARGV[6]
    fields[7], fields[8] = '#epoch', ARGV[8]
  end
  redis.call('HSET', KEYS[1], unpack(fields))
end

-- The index first: a record without its entry in there would never be looked at, while an
-- entry without its record harms nobody.
local function write_records()
  local values, gone, there = {}, {}, {}
  for i = 1, count do
    local at = job_at(i)
    local job, value, agenda = ARGV[at], ARGV[at + 2], ARGV[at + 3]
    if value ~= '' and value ~= '-' then
      values[#values + 1], values[#values + 2] = job, value
      if agenda == '-' then
        gone[#gone + 1] = job
      else
        there[#there + 1], there[#there + 2] = agenda, job
      end
    end
  end
  if #gone > 0 then redis.call('ZREM', KEYS[2], unpack(gone)) end
  if #there > 0 then redis.call('ZADD', KEYS[2], unpack(there)) end
  if #values > 0 then redis.call('HSET', KEYS[1], unpack(values)) end
end

-- Forgets jobs. Their lines first: a job that still has its record is forgotten again. What the
-- lines took is freed beside the server's work.
local function forget()
  for i = 1, count do
    local job = ARGV[job_at(i)]
    if ARGV[job_at(i) + 2] == '-' then
      redis.call('UNLINK', ARGV[11] .. job, ARGV[12] .. job)
      redis.call('ZREM', KEYS[2], job)
      redis.call('HDEL', KEYS[1], job)
    end
  end
end

local function trim_by_age(stream, line)
  local oldest = line.id - line.age
  if oldest > 0 then redis.pcall('XTRIM', stream, 'MINID', '=', text(oldest)) end
end

-- Adds a line to a history and trims it. The ids are the times of the ends, so that age is
-- trimmed by id; after a step back of the clock the newest id is ahead of it, and `*` counts
-- on from there. Answers the id, or the error in a table.
local function append_line(history, line)
  local id = redis.pcall('XADD', history, 'MAXLEN', '=', line.limit, text(line.id) .. '-*',
    unpack(ARGV, line.first, line.last))
  if type(id) == 'table' then
    id = redis.pcall('XADD', history, 'MAXLEN', '=', line.limit, '*',
      unpack(ARGV, line.first, line.last))
  end
  trim_by_age(history, line)
  return id
end

-- Keeps what the attempt of a line printed, under the id of its line. It is trimmed as the
-- lines are; output.lua shows none whose line went earlier.
local function append_output(output, id, line)
  local limit = math.min(tonumber(line.limit), OUTPUTS_KEPT)
  local added = redis.pcall('XADD', output, 'MAXLEN', '=', text(limit), id, unpack(line.output))
  trim_by_age(output, line)
  return added
end

-- Writes a line of the ledger. It uses pcall and answers the error, or nil: a line that can't
-- be written is told, and must not undo a lease.
local function append(line)
  local history, output = ARGV[11] .. line.job, ARGV[12] .. line.job
  local id = append_line(history, line)
  if type(id) == 'string' and line.output[4] ~= '' then
    id = append_output(output, id, line)
  end
  return type(id) == 'table' and id.err or nil
end

local function write_lines()
  local fault, at = '', job_at(count + 1)
  while at <= #ARGV do
    local fields = tonumber(ARGV[at + 5])
    local line = {
      job = ARGV[at], limit = ARGV[at + 1], age = tonumber(ARGV[at + 2]),
      id = tonumber(ARGV[at + 3]), first = at + LINE_WIDTH, last = at + LINE_WIDTH + 2 * fields - 1,
    }
    -- The first field is the run id, by which an output is found.
    line.output = { ARGV[line.first], ARGV[line.first + 1], 'output', ARGV[at + 4] }
    fault = append(line) or fault
    at = line.last + 1
  end
  return fault
end

-- Whether a server among several may take this step: it promised to, and has taken all before it.
local function is_next()
  local stands = standing()
  return stands[1] == ARGV[16] and stands[2] == ARGV[15]
end

local snap = snapshot(ARGV[1], names())
if ARGV[16] ~= '' then
  if not (in_time(snap) and is_next()) then return { 'outbid' } end
  redis.call('HSET', KEYS[1], '#ballot', ARGV[16], '#member', snap.process)
elseif redis.call('HGET', KEYS[1], '#ballot') then
  return redis.error_reply('QUORUM this server is one of several')
elseif not (in_time(snap) and unchanged(snap)) then return { 'changed', unpack(told(snap)) } end
forget()
write_records()
write_group(snap)
local fault = write_lines()
-- Last, and by pcall: whoever is forbidden to publish must not be left with half a write.
if ARGV[14] ~= '' then redis.pcall(ARGV[17], ARGV[13], ARGV[14]) end
return { 'written', fault }
