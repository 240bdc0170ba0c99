#!lua
-- buy.lua: sells one item to a user, if the sale is open, there is one, and the user has none.
--
-- KEYS  1 sale (hash)  2 buyers (hash: user to order)  3 orders (stream)
-- ARGV  1 user
-- reply sold, order  |  has, order  |  sold out  |  not open
--
-- Atomic, because between the look at the stock and its change another buyer would see the same
-- item. A script is not undone where it fails half way, so that what can fail comes first: the line
-- at the top has Redis refuse the whole of it when memory is full or it is a replica.
-- The id of the entry in the stream is the id of the order.

local order = redis.call('HGET', KEYS[2], ARGV[1])
if order then return { 'has', order } end

local sale = redis.call('HMGET', KEYS[1], 'state', 'stock')
if sale[1] ~= 'open' then return { 'not open' } end
if tonumber(sale[2]) < 1 then return { 'sold out' } end

order = redis.call('XADD', KEYS[3], '*', 'user', ARGV[1])
redis.call('HINCRBY', KEYS[1], 'stock', -1)
redis.call('HSET', KEYS[2], ARGV[1], order)
return { 'sold', order }
