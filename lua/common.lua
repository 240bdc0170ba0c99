-- common.lua: the shape of the ledger, for all scripts. `scripts.rs` puts this file between
-- the first line of each script (its shebang) and the rest.
--
-- What becomes of a request is decided in Rust (src/store/rules), the same for every engine.
-- The scripts keep what comes of it: `read` shows, `write` writes where nobody was faster.
--
-- Keys of a namespace (spelt only in src/store/redis/keys.rs; one hash tag, so one slot):
--   :jobs     hash: a value for each job, and the fields of the group, which start with `#`
--   :agenda   sorted set of the jobs that somebody should look at, by when
--   :replicas hash: what each replica last said of itself
--   :tables   hash: what a table says of its jobs, by its digest, opaque here
--   :history:JOB, :output:JOB   streams: ended attempts, and what they printed
--   :aside, :aside_agenda   of one of several servers: what it is to hold once it is complete
-- History keys are not in KEYS: a step may touch 128 of them and mostly touches none. They
-- are made from the prefix in ARGV and lie in the same slot.
--
-- A job's value is AGENDA|RECORD: its score in :agenda, or `-` where it has none, and a text
-- that is opaque here. Of the group, `#epoch` is as opaque; `#token` and `#clock_us` are marks
-- that only rise, but for a new epoch, which may set the clock back.
--
-- KEYS 1 is :jobs and ARGV 1 the server's process as the caller knows it, for every script that
-- looks at the group.
--
-- Times are milliseconds, or microseconds where it says so, and tokens are below 2^53: a Lua
-- number holds all of them exactly, but `tostring` prints 14 digits only. Hence `text`.

local GROUP = { '#layout', '#epoch', '#token', '#clock_us' }
local LAYOUT, EPOCH, TOKEN, CLOCK = 1, 2, 3, 4

-- Of several servers that hold one ledger together (src/store/redis/quorum): the highest ballot
-- that this one promised to follow, that of the last step that it took, and as which process.
local STANDING = { '#promised', '#ballot', '#member' }

local function text(number)
  return string.format('%.0f', number)
end

-- Which server process answers, and whose data it followed before it became a master. It changes
-- with a restart and with a failover, where what was acknowledged may be lost. `known` is what the
-- caller read when it connected (src/store/redis/server.rs does the same), for servers that do not
-- let a script ask.
local function process(known)
  local info = redis.pcall('INFO', 'server', 'replication')
  local run_id = type(info) == 'string' and string.match(info, 'run_id:(%w+)')
  local followed = run_id and string.match(info, 'master_replid2:(%w+)')
  if not run_id then return known end
  return followed and string.find(followed, '[^0]') and run_id .. '/' .. followed or run_id
end

-- What a step begins with: the clock in microseconds, the process, and the values of the group
-- and of `jobs`.
local function snapshot(known, jobs)
  local time = redis.call('TIME')
  local fields = { unpack(GROUP) }
  for i = 1, #jobs do fields[#GROUP + i] = jobs[i] end
  return {
    now_us = tonumber(time[1]) * 1000000 + tonumber(time[2]),
    process = process(known),
    values = redis.call('HMGET', KEYS[1], unpack(fields)),
  }
end

-- A snapshot as it is replied: strings, as integers of replies have other limits elsewhere.
local function told(snap)
  return { text(snap.now_us), snap.process, snap.values }
end

-- How this server stands among several.
local function standing()
  local has = redis.call('HMGET', KEYS[1], unpack(STANDING))
  return { has[1] or '', has[2] or '', has[3] or '' }
end

-- The time in milliseconds: after a step back of the clock that is smaller than `tolerated_us`
-- it stands still at the mark of the group.
local function time(snap, tolerated_us)
  local mark_us = tonumber(snap.values[CLOCK] or 0)
  local behind = mark_us - snap.now_us
  local now_us = behind > 0 and behind < tolerated_us and mark_us or snap.now_us
  return math.floor(now_us / 1000)
end
