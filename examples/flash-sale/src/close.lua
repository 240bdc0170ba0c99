#!lua
-- close.lua: ends the sale, and takes what was not sold out of it. Again, it tells the same again.
--
-- KEYS  1 sale (hash)
-- ARGV  1 fencing token
-- reply closed, unsold  |  unknown  |  stale, highest token
--
-- Atomic, because an item that is sold after the unsold were counted would be sold and put back.
-- The hash stays: a sale that was closed can't be opened again.

local sale = redis.call('HMGET', KEYS[1], 'state', 'stock', 'token', 'unsold')
if not sale[1] then return { 'unknown' } end
if tonumber(ARGV[1]) < tonumber(sale[3]) then return { 'stale', sale[3] } end

redis.call('HSET', KEYS[1], 'token', ARGV[1])
if sale[1] == 'closed' then return { 'closed', sale[4] } end
redis.call('HSET', KEYS[1], 'state', 'closed', 'unsold', sale[2], 'stock', '0')
return { 'closed', sale[2] }
