'use strict'

// Which arguments of a Redis command are keys. Only keys are recorded; any other argument may be a value, a script or a password.
// The clients' own sanitisers do not remove the arguments of EVAL, ACL SETUSER, SISMEMBER and others.
//
// The rules follow Redis' key specifications (https://redis.io/docs/latest/develop/reference/key-specs/).
// test/services compares them with COMMAND GETKEYS of a real server.

// Positions count from the command's name, which is 0. Negative ones count from the end of the arguments.
// counted: the position of the number of keys; the keys follow it, at every `step`.
const keys = (first, last, step = 1) => ({ first, last, step, counted: 0, isStream: false })
const countedAt = (counted, { first = 0, step = 1 } = {}) => ({ first, last: first, step, counted, isStream: false })
const streams = { first: 0, last: 0, step: 1, counted: 0, isStream: true }

const NO_KEYS = keys(0, 0)
const FIRST = keys(1, 1)
const BOTH = keys(1, 2)
const ALL = keys(1, -1)

const RULES = [
  [FIRST, `
    APPEND DECR DECRBY DELEX DIGEST GET GETBIT GETDEL GETEX GETRANGE GETSET INCR INCRBY INCRBYFLOAT PSETEX SET SETBIT SETEX
    SETNX SETRANGE STRLEN SUBSTR BITCOUNT BITFIELD BITFIELD_RO BITPOS DUMP EXPIRE EXPIREAT EXPIRETIME MOVE PERSIST PEXPIRE
    PEXPIREAT PEXPIRETIME PTTL RESTORE RESTORE-ASKING SORT SORT_RO TTL TYPE HDEL HEXISTS HEXPIRE HEXPIREAT HEXPIRETIME HGET
    HGETALL HGETDEL HGETEX HINCRBY HINCRBYFLOAT HKEYS HLEN HMGET HMSET HPERSIST HPEXPIRE HPEXPIREAT HPEXPIRETIME HPTTL
    HRANDFIELD HSCAN HSET HSETEX HSETNX HSTRLEN HTTL HVALS LINDEX LINSERT LLEN LPOP LPOS LPUSH LPUSHX LRANGE LREM LSET LTRIM
    RPOP RPUSH RPUSHX SADD SCARD SISMEMBER SMEMBERS SMISMEMBER SPOP SRANDMEMBER SREM SSCAN ZADD ZCARD ZCOUNT ZINCRBY ZLEXCOUNT
    ZMSCORE ZPOPMAX ZPOPMIN ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK
    ZREMRANGEBYSCORE ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE GEOADD GEODIST GEOHASH GEOPOS GEORADIUS
    GEORADIUS_RO GEORADIUSBYMEMBER GEORADIUSBYMEMBER_RO GEOSEARCH PFADD XACK XACKDEL XADD XAUTOCLAIM XCLAIM XDEL XDELEX XLEN
    XPENDING XRANGE XREVRANGE XSETID XTRIM VADD VCARD VDIM VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VRANGE VREM
    VSETATTR VSIM JSON.ARRAPPEND JSON.ARRINDEX JSON.ARRINSERT JSON.ARRLEN JSON.ARRPOP JSON.ARRTRIM JSON.CLEAR JSON.DEL
    JSON.FORGET JSON.GET JSON.MERGE JSON.NUMINCRBY JSON.NUMMULTBY JSON.OBJKEYS JSON.OBJLEN JSON.RESP JSON.SET JSON.STRAPPEND
    JSON.STRLEN JSON.TOGGLE JSON.TYPE BF.ADD BF.CARD BF.EXISTS BF.INFO BF.INSERT BF.MADD BF.MEXISTS BF.RESERVE CF.ADD CF.ADDNX
    CF.COUNT CF.DEL CF.EXISTS CF.INFO CF.INSERT CF.INSERTNX CF.MEXISTS CF.RESERVE CMS.INCRBY CMS.INFO CMS.INITBYDIM
    CMS.INITBYPROB CMS.QUERY TOPK.ADD TOPK.COUNT TOPK.INCRBY TOPK.INFO TOPK.LIST TOPK.QUERY TOPK.RESERVE TS.ADD TS.ALTER
    TS.CREATE TS.DECRBY TS.DEL TS.GET TS.INCRBY TS.INFO TS.RANGE TS.REVRANGE`],
  [BOTH, `
    BLMOVE BRPOPLPUSH COPY GEOSEARCHSTORE LCS LMOVE RENAME RENAMENX RPOPLPUSH SMOVE ZRANGESTORE TS.CREATERULE TS.DELETERULE`],
  [ALL, `
    DEL EXISTS MGET PFCOUNT PFMERGE SDIFF SDIFFSTORE SINTER SINTERSTORE SUNION SUNIONSTORE TOUCH UNLINK WATCH`],
  [keys(1, -2), 'BLPOP BRPOP BZPOPMAX BZPOPMIN JSON.MGET'],
  [keys(1, -1, 2), 'MSET MSETNX'],
  [keys(1, -1, 3), 'JSON.MSET TS.MADD'],
  [keys(2, -1), 'BITOP'],
  [keys(2, 2), 'MEMORY OBJECT XGROUP XINFO'], // after the subcommand
  [keys(3, 3), 'MIGRATE'],
  [countedAt(1), 'LMPOP SINTERCARD ZDIFF ZINTER ZINTERCARD ZMPOP ZUNION'],
  [countedAt(1, { step: 2 }), 'MSETEX'],
  [countedAt(2), 'BLMPOP BZMPOP EVAL EVAL_RO EVALSHA EVALSHA_RO FCALL FCALL_RO'],
  [countedAt(2, { first: 1 }), 'ZDIFFSTORE ZINTERSTORE ZUNIONSTORE'],
  [streams, 'XREAD XREADGROUP'],
  [NO_KEYS, `
    ACL ASKING AUTH BGREWRITEAOF BGSAVE CLIENT CLUSTER COMMAND CONFIG DBSIZE DEBUG DISCARD ECHO EXEC FAILOVER FLUSHALL FLUSHDB
    FUNCTION HELLO INFO KEYS LASTSAVE LATENCY LOLWUT MODULE MONITOR MULTI PING PSUBSCRIBE PSYNC PUBLISH PUBSUB PUNSUBSCRIBE
    QUIT RANDOMKEY READONLY READWRITE REPLICAOF RESET ROLE SAVE SCAN SCRIPT SELECT SHUTDOWN SLAVEOF SLOWLOG SPUBLISH SSUBSCRIBE
    SUBSCRIBE SUNSUBSCRIBE SWAPDB SYNC TIME UNSUBSCRIBE UNWATCH WAIT WAITAOF TS.MGET TS.MRANGE TS.MREVRANGE TS.QUERYINDEX FT.AGGREGATE FT.ALTER FT.CREATE FT.DROPINDEX FT.EXPLAIN FT.INFO FT.PROFILE FT.SEARCH`]
]

// The options of XREAD before STREAMS, each with its number of words.
const STREAM_OPTIONS = new Map([['COUNT', 2], ['BLOCK', 2], ['NOACK', 1], ['GROUP', 3], ['CLAIM', 2]])

const TEXT_MAX = 4096

const commands = new Map() // name -> rule
for (const [rule, names] of RULES) for (const name of String(names).match(/\S+/g)) commands.set(name, rule)

/**
 * A command's arguments as they are recorded after its name: its keys, and `?` for every other argument. Returns '' for a command that
 * is not in the table.
 * @param {string} name in capitals
 * @param {number} from the index of the first argument in `args`, which may begin with the name
 * @returns {string} at most `TEXT_MAX` characters, including the name's
 */
// HOT, once per recorded command of Redis. Budget: the text.
function recordedArguments (name, args, from, rule = commands.get(name)) {
  const line = rule === undefined ? '' : recorded(args, from, rule)
  return line.length + name.length > TEXT_MAX ? line.slice(0, TEXT_MAX - name.length) : line
}

function recorded (args, from, { first, last, step, counted, isStream }) {
  const count = args.length - from
  let start = first
  let end = last < 0 ? count + 1 + last : last
  if (counted !== 0) {
    const given = args[from + counted - 1]
    const number = typeof given === 'string' || typeof given === 'number' ? Number(given) : NaN
    start = counted + 1
    // If the server would reject the number, the arguments after it are not taken for keys.
    end = Number.isSafeInteger(number) && number > 0 && counted + number * step <= count ? counted + number * step : 0
  } else if (isStream) {
    start = streamsStart(args, from)
    end = start === 0 || (count - start) % 2 === 0 ? -1 : start + (count - start - 1) / 2
  }
  const other = counted === 0 ? 0 : first // a destination key before the number
  let line = ''
  for (let position = 1; position <= count && line.length < TEXT_MAX; position++) {
    const isKey = position === other || (position >= start && position <= end && (position - start) % step === 0)
    line += isKey ? keyText(args[from + position - 1]) : ' ?'
  }
  return line
}

/** The position after STREAMS, or 0 without one. Parsed as the server does, because a group may be named STREAMS too. */
function streamsStart (args, from) {
  for (let i = from; i < args.length;) {
    const word = args[i]
    if (typeof word !== 'string') return 0
    if (word.toUpperCase() === 'STREAMS') return i - from + 2
    const length = STREAM_OPTIONS.get(word.toUpperCase())
    if (length === undefined) return 0
    i += length
  }
  return 0
}

// Only strings and numbers are written: a Buffer may hold any bytes, and an object's toString may be the application's code.
function keyText (key) {
  if (typeof key === 'string') return key === '' ? " ''" : ` ${key.slice(0, TEXT_MAX)}`
  return typeof key === 'number' ? ` ${key}` : ' ?'
}

module.exports = { recordedArguments, commands }
