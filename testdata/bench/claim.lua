-- KEYS: the token, the audit stream. ARGV: claimer, "1" with audit, the record.
if redis.call('HGET', KEYS[1], 'state') ~= 'PENDING' then
  return 0
end
redis.call('HSET', KEYS[1], 'state', 'CLAIMED', 'by', ARGV[1])
if ARGV[2] == '1' then
  redis.call('XADD', KEYS[2], '*', 'token', KEYS[1], 'by', ARGV[1], 'record', ARGV[3])
end
return 1
