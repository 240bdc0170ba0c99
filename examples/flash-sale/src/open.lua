#!lua
-- open.lua: puts the stock on sale, if that was never done.
--
-- KEYS  1 sale (hash)
-- ARGV  1 stock  2 fencing token
-- reply opened  |  was, state, loaded  |  stale, highest token
--
-- Atomic, because of two who open it one has to find it open. A token that is lower than one that
-- was here belongs to somebody who lost the lease. Tokens are below 2^53: exact in Lua.

local sale = redis.call('HMGET', KEYS[1], 'state', 'loaded', 'token')
if sale[3] and tonumber(ARGV[2]) < tonumber(sale[3]) then return { 'stale', sale[3] } end

redis.call('HSET', KEYS[1], 'token', ARGV[2])
if sale[1] then return { 'was', sale[1], sale[2] } end
redis.call('HSET', KEYS[1], 'state', 'open', 'loaded', ARGV[1], 'stock', ARGV[1])
return { 'opened' }
