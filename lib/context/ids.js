'use strict'

// Trace and span ids are int32 words until they are read as text. They come from a CSPRNG, which is affordable only in bulk:
// W3C's random flag promises that the right-most 7 bytes of a trace id are random, and samplers decide by them.

const { randomFillSync } = require('node:crypto')

const POOL_WORDS = 4096 // for some 680 requests. A larger refill would begin to show in the latency of one request
// The first fill is this long and each one twice the one before, so that V8 has seen a refill when it compiles what calls it.
const FIRST_FILL_WORDS = 32

// node:v8 brings seven more of Node's files, for a few processes: --build-snapshot, and single executables of one.
const MAY_BUILD_SNAPSHOT = process.execArgv.some((argument) => /^--.*(?:snapshot|sea)/.test(argument))
const { startupSnapshot } = MAY_BUILD_SNAPSHOT ? require('node:v8') : {}

let pool = null
let next = POOL_WORDS
let fillWords = FIRST_FILL_WORDS // at the pool's end

const DIGITS = '0123456789abcdef'
const HEX_BYTES = []
// Both digits of a byte as one little-endian number, as memory has them: the first is the lower one.
const HEX_CHARS = new Uint16Array(256)
for (const high of DIGITS) {
  for (const low of DIGITS) {
    HEX_CHARS[HEX_BYTES.length] = low.charCodeAt(0) << 8 | high.charCodeAt(0)
    HEX_BYTES.push(high + low)
  }
}

// HOT, once per request without a parent. Budget: 0 objects, 0 strings.
function newTraceId (target) {
  do {
    if (next + 4 > POOL_WORDS) refill()
    target.t0 = pool[next]
    target.t1 = pool[next + 1]
    target.t2 = pool[next + 2]
    target.t3 = pool[next + 3]
    next += 4
  } while ((target.t0 | target.t1 | target.t2 | target.t3) === 0)
}

// HOT, once per span. Budget: 0 objects, 0 strings.
function newSpanId (target) {
  do {
    if (next + 2 > POOL_WORDS) refill()
    target.s0 = pool[next]
    target.s1 = pool[next + 1]
    next += 2
  } while ((target.s0 | target.s1) === 0)
}

// The eight lowercase hex digits of an int32. One flat string: V8 joins pieces shorter than 13 characters by copying.
function hex (word) {
  return HEX_BYTES[word >>> 24] + HEX_BYTES[(word >>> 16) & 0xff] + HEX_BYTES[(word >>> 8) & 0xff] + HEX_BYTES[word & 0xff]
}

// Trace id and span id into the memory of a text that is made at once, where joining strings would cost four times as much.
// HOT, once per outgoing call, and once per request where there is a logger. Budget: 0 objects, 0 strings.
function writeIds (view, context, traceIdAt, spanIdAt) {
  writeHex(view, context.t0, traceIdAt)
  writeHex(view, context.t1, traceIdAt + 8)
  writeHex(view, context.t2, traceIdAt + 16)
  writeHex(view, context.t3, traceIdAt + 24)
  writeHex(view, context.s0, spanIdAt)
  writeHex(view, context.s1, spanIdAt + 8)
}

// Four digits at a time: what a write checks costs more than to put two numbers together.
function writeHex (view, word, at) {
  view.setUint32(at, HEX_CHARS[word >>> 24] | HEX_CHARS[(word >>> 16) & 0xff] << 16, true)
  view.setUint32(at + 4, HEX_CHARS[(word >>> 8) & 0xff] | HEX_CHARS[word & 0xff] << 16, true)
}

// Not at load: a process restored from a V8 startup snapshot would repeat the ids of the one that built it. For the same reason
// a pool that was filled while the snapshot was built is thrown away.
function refill () {
  if (pool === null) {
    pool = new Int32Array(POOL_WORDS)
    if (startupSnapshot?.isBuildingSnapshot()) startupSnapshot.addDeserializeCallback(() => { next = POOL_WORDS })
  }
  next = POOL_WORDS - fillWords
  randomFillSync(pool, next)
  fillWords = Math.min(fillWords * 2, POOL_WORDS)
}

module.exports = { newTraceId, newSpanId, hex, writeIds }
