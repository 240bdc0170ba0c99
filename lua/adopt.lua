#!lua flags=allow-oom
-- adopt.lua: has one of several servers hold what another one holds, by what differs.
--
-- KEYS  1 jobs  2 agenda  3 jobs put aside  4 agenda put aside
-- ARGV  1 process as the caller knows it
--       2 'here' changes what is here; 'aside' changes what is put aside, which counts for nothing;
--         'swap' does that, and has it take the place of what is here
--       3 process when it was read
--       4 mark of what was put aside when it was read, '' for none  5 mark that it has then (aside)
--       6 ballot that this server promised  7 ballot of the last step when it was read
--       8 ballot that stands for what it holds then  9 '1' where it counts from now on
--         (6 to 9: here, swap)
--       10 history prefix  11 output prefix
--       12 how many values, then each with its field before it; then the fields that go
-- reply '1', or '0' where it is another process, or not as it was read: nothing is done
--
-- Atomic, because a server that counts must not be seen, nor left by a caller that dies, between
-- two states of the ledger.
-- Holds: what was put aside is swapped only if all of it was put there by those who knew of each
-- other's parts (the mark). A job that goes takes its lines with it.

local STEP = 1000
local HOW, VALUES = ARGV[2], 12
local last = VALUES + 2 * tonumber(ARGV[VALUES])

local function as_read()
  local now, stands = process(ARGV[1]), standing()
  if now ~= ARGV[3] then return false end
  if HOW ~= 'here' and (redis.call('HGET', KEYS[3], '#mark') or '') ~= ARGV[4] then return false end
  if HOW == 'aside' then return stands[2] == '' or stands[3] ~= now end
  return stands[1] == ARGV[6] and stands[2] == ARGV[7] and (HOW == 'here' or ARGV[4] ~= '')
end

-- The agenda is what the values say: see common.lua.
local function index(agenda, first, to)
  local there, gone = {}, {}
  for i = first, to, 2 do
    local job, at = ARGV[i], string.match(ARGV[i + 1], '^([^|]*)|')
    if at == '-' then
      gone[#gone + 1] = job
    elseif at and string.sub(job, 1, 1) ~= '#' then
      there[#there + 1], there[#there + 2] = at, job
    end
  end
  if #gone > 0 then redis.call('ZREM', agenda, unpack(gone)) end
  if #there > 0 then redis.call('ZADD', agenda, unpack(there)) end
end

local function change(jobs, agenda)
  for first = VALUES + 1, last, 2 * STEP do
    local to = math.min(first + 2 * STEP - 1, last)
    index(agenda, first, to)
    redis.call('HSET', jobs, unpack(ARGV, first, to))
  end
  for i = last + 1, #ARGV do
    redis.call('HDEL', jobs, ARGV[i])
    redis.call('ZREM', agenda, ARGV[i])
    if HOW ~= 'aside' then redis.call('UNLINK', ARGV[10] .. ARGV[i], ARGV[11] .. ARGV[i]) end
  end
end

local function swap()
  redis.call('UNLINK', KEYS[1], KEYS[2])
  redis.call('RENAME', KEYS[3], KEYS[1])
  if redis.call('ZCARD', KEYS[4]) > 0 then redis.call('RENAME', KEYS[4], KEYS[2]) end
  redis.call('HDEL', KEYS[1], '#mark')
  redis.call('HSET', KEYS[1], '#promised', ARGV[6])
end

if not as_read() then return '0' end
if HOW == 'here' then
  change(KEYS[1], KEYS[2])
  redis.call('UNLINK', KEYS[3], KEYS[4])
else
  change(KEYS[3], KEYS[4])
end
if HOW == 'aside' then
  redis.call('HSET', KEYS[3], '#mark', ARGV[5])
  return '1'
end
if HOW == 'swap' then swap() end
redis.call('HSET', KEYS[1], '#ballot', ARGV[8])
if ARGV[9] == '1' then redis.call('HSET', KEYS[1], '#member', process(ARGV[1])) end
return '1'
