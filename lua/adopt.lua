#!lua flags=allow-oom
-- adopt.lua: takes over what another of several servers holds, a part at a time.
--
-- KEYS  1 jobs  2 agenda
-- ARGV  1 process as the caller knows it  2 ballot that this server promised
--       3 'first' for the first part  4 ballot of the last step, '' while more is to come
--       5 how many values, then each with its field before it
--       then the agenda: score and job, for each
-- reply '1', or '0' where another ballot is promised
--
-- Holds: until the last part is there this server has taken no step, and counts for nothing. Its
-- histories stay: readers put those of several servers together.

local STEP = 1000

-- Calls a command with all that there is, a part at a time.
local function for_all(command, key, all)
  for first = 1, #all, STEP do
    redis.call(command, key, unpack(all, first, math.min(first + STEP - 1, #all)))
  end
end

if redis.call('HGET', KEYS[1], '#promised') ~= ARGV[2] then return '0' end
if ARGV[3] == 'first' then
  for_all('HDEL', KEYS[1], redis.call('HKEYS', KEYS[1]))
  for_all('ZREM', KEYS[2], redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '+inf'))
  redis.call('HSET', KEYS[1], '#promised', ARGV[2])
end
local values = tonumber(ARGV[5])
local last = 5 + 2 * values
for first = 6, last, 2 * STEP do
  redis.call('HSET', KEYS[1], unpack(ARGV, first, math.min(first + 2 * STEP - 1, last)))
end
for first = last + 1, #ARGV, 2 * STEP do
  redis.call('ZADD', KEYS[2], unpack(ARGV, first, math.min(first + 2 * STEP - 1, #ARGV)))
end
if ARGV[4] ~= '' then
  redis.call('HSET', KEYS[1], '#ballot', ARGV[4], '#member', process(ARGV[1]))
end
return '1'
