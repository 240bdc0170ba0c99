#!lua flags=no-writes
-- output.lua: finds what one attempt printed.
--
-- KEYS  1 history of the job  2 output of the job
-- ARGV  1 run id
-- reply the output (bytes), or nil where it isn't kept (any more)
--
-- A script, because outputs are found by run id and are long: looking in here sends one of
-- them over the wire instead of all. An output whose line is gone counts as gone; it goes with
-- an output that is written later. Changes nothing.

local STEP = 10

local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', '1')[1]
if not oldest then return nil end
local before = '+'
while true do
  local entries = redis.call('XREVRANGE', KEYS[2], before, oldest[1], 'COUNT', STEP)
  for _, entry in ipairs(entries) do
    if entry[2][2] == ARGV[1] then return entry[2][4] end
    before = '(' .. entry[1]
  end
  if #entries < STEP then return nil end
end
