"""What Redis is told to do by itself, in Lua: a command each would cost the client far more."""

# ARGV: how many numbers go to each key, 4 bytes each, and the numbers.  To cut them here is cheaper than to send each.
APPEND_EACH = """
local first = 1
for i, key in ipairs(KEYS) do
    local a, b, c, d = string.byte(ARGV[1], 4 * i - 3, 4 * i)
    local after = first + 4 * (((a * 256 + b) * 256 + c) * 256 + d)
    redis.call('APPEND', key, string.sub(ARGV[2], first, after - 1))
    first = after
end
"""

# APPEND leaves a string twice the room it needs.  BITOP makes an exact copy, here of a string by itself,
# and costs the append-only file a key's length, where SET would cost it the string.
TRIM_EACH = "for _, key in ipairs(KEYS) do redis.call('BITOP', 'OR', key, key) end"

# ARGV: for each story SADD or SREM, and its id; KEYS: its bands.
MOVE_EACH = """
local bands = 2 * #KEYS / #ARGV
for i, key in ipairs(KEYS) do
    local story = 2 * math.floor((i - 1) / bands)
    redis.call(ARGV[story + 1], key, ARGV[story + 2])
end
"""

# ARGV: the sizes of a story's groups.  Gives the place of each group whose bands have members in common, and these.
SINTER_EACH = """
local found, first, group = {}, 1, 0
while first <= #KEYS do
    local size = tonumber(ARGV[group % #ARGV + 1])
    local common = redis.call('SINTER', unpack(KEYS, first, first + size - 1))
    if #common > 0 then
        found[#found + 1] = group
        found[#found + 1] = common
    end
    first, group = first + size, group + 1
end
return found
"""
