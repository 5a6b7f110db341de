-- Rates of a whole batch, in integer microseconds of the server's clock.
-- KEYS: per request its marker, then one key per scope (its theoretical arrival time, TAT)
-- ARGV: [1] number of requests; then per request: group, how long its marker is kept (ms), number of scopes, and per scope
--       emission interval (us) and burst
-- Returns three integers per request:
--   slot: 0 passed; -1 not asked, because an earlier request of its group has to wait; else when its slot comes (ms since 1970)
--   scope: number of the scope that makes it wait longest, from 1; 0 when it passed
--   used: what counts against that scope now
-- A request takes one unit of each of its scopes, or reserves one of each: TAT moves on in both cases. The marker keeps the answer,
-- so that asking again takes nothing.
-- Keys of several tenants are used in one call: one primary, no cluster.
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local key, arg = 1, 2
local blocked, answers = {}, {}
for _ = 1, tonumber(ARGV[1]) do
  local group, kept_ms, scopes = ARGV[arg], tonumber(ARGV[arg + 1]), tonumber(ARGV[arg + 2])
  local marker = KEYS[key]
  key, arg = key + 1, arg + 3
  local slot, worst, used = 0, 0, 0
  if blocked[group] then
    slot = -1
  else
    local known = redis.call('GET', marker)
    if known then
      local a, b, c = string.match(known, '^(%d+):(%d+):(%d+)$')
      slot, worst, used = tonumber(a), tonumber(b), tonumber(c)
    else
      local latest, tats = now, {}
      for s = 1, scopes do
        local interval, burst = tonumber(ARGV[arg + 2 * s - 2]), tonumber(ARGV[arg + 2 * s - 1])
        local tat = tonumber(redis.call('GET', KEYS[key + s - 1]) or '0')
        if tat < now then tat = now end
        tats[s] = tat
        local free = tat - (burst - 1) * interval
        if free > latest then
          latest, worst, used = free, s, math.ceil((tat - now) / interval)
        end
      end
      for s = 1, scopes do
        local tat = tats[s] + tonumber(ARGV[arg + 2 * s - 2])
        redis.call('SET', KEYS[key + s - 1], string.format('%.0f', tat), 'PX', math.ceil((tat - now) / 1000) + 1)
      end
      if worst > 0 then slot = math.ceil(latest / 1000) end
      local marker_ms = kept_ms + math.ceil((latest - now) / 1000)
      redis.call('SET', marker, string.format('%.0f:%d:%.0f', slot, worst, used), 'PX', string.format('%.0f', marker_ms))
    end
    if slot > 0 then blocked[group] = true end
  end
  key, arg = key + scopes, arg + 2 * scopes
  answers[#answers + 1] = slot
  answers[#answers + 1] = worst
  answers[#answers + 1] = used
end
return answers
