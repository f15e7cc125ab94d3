"""Lua scripts that Redis runs: one command per key would cost the client far more."""

# ARGV[1]: for each key how many numbers to append, 4 big-endian bytes each; ARGV[2]: the numbers.
# Splitting the numbers in Lua is cheaper than sending one argument per key.
APPEND_EACH = """
local first = 1
for i, key in ipairs(KEYS) do
    local a, b, c, d = string.byte(ARGV[1], 4 * i - 3, 4 * i)
    local after = first + 4 * (((a * 256 + b) * 256 + c) * 256 + d)
    redis.call('APPEND', key, string.sub(ARGV[2], first, after - 1))
    first = after
end
"""

# APPEND allocates twice the memory that a string needs.  BITOP with the string itself makes a copy of the exact size,
# and adds only the key to the append-only file, where SET would add the whole string.
TRIM_EACH = "for _, key in ipairs(KEYS) do redis.call('BITOP', 'OR', key, key) end"

# ARGV: for each story SADD or SREM, and its id; KEYS: the bands of each story.
MOVE_EACH = """
local bands = 2 * #KEYS / #ARGV
for i, key in ipairs(KEYS) do
    local story = 2 * math.floor((i - 1) / bands)
    redis.call(ARGV[story + 1], key, ARGV[story + 2])
end
"""

# ARGV: the number of bands in each of a story's groups; KEYS: the bands of each story.  Returns, for each group whose
# bands have common members, the position of the group and these members.
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
