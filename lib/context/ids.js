'use strict'

// Trace and span ids are int32 words until they are read as text. They come from a CSPRNG, because W3C's random flag promises that the
// right-most 7 bytes of a trace id are random, and samplers decide by them. A CSPRNG is affordable only in bulk.

const { randomFillSync } = require('node:crypto')

const POOL_WORDS = 4096 // enough for about 680 requests. A larger refill would be visible in the latency of one request
// The first fill has this size, and each fill doubles it. So V8 has seen a refill before it compiles the callers.
const FIRST_FILL_WORDS = 32

// node:v8 loads seven more of Node's files. Only processes with --build-snapshot, and single executables with a snapshot, need it.
const MAY_BUILD_SNAPSHOT = process.execArgv.some((argument) => /^--.*(?:snapshot|sea)/.test(argument))
const { startupSnapshot } = MAY_BUILD_SNAPSHOT ? require('node:v8') : {}

let pool = null
let next = POOL_WORDS
let fillWords = FIRST_FILL_WORDS // how many words, at the pool's end, the next refill fills

const DIGITS = '0123456789abcdef'
const HEX_BYTES = []
// Both hex digits of a byte as one little-endian number: the first digit is in the lower half.
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

// The eight lowercase hex digits of an int32. The result is a flat string, because V8 copies results shorter than 13 characters.
function hex (word) {
  return HEX_BYTES[word >>> 24] + HEX_BYTES[(word >>> 16) & 0xff] + HEX_BYTES[(word >>> 8) & 0xff] + HEX_BYTES[word & 0xff]
}

// Writes trace id and span id into the bytes of a text that is created in one go. Joining strings would cost four times as much.
// HOT, once per outgoing call, and once per request where there is a logger. Budget: 0 objects, 0 strings.
function writeIds (view, context, traceIdAt, spanIdAt) {
  writeHex(view, context.t0, traceIdAt)
  writeHex(view, context.t1, traceIdAt + 8)
  writeHex(view, context.t2, traceIdAt + 16)
  writeHex(view, context.t3, traceIdAt + 24)
  writeHex(view, context.s0, spanIdAt)
  writeHex(view, context.s1, spanIdAt + 8)
}

// Four digits at a time, because the bounds check of a write costs more than combining two numbers.
function writeHex (view, word, at) {
  view.setUint32(at, HEX_CHARS[word >>> 24] | HEX_CHARS[(word >>> 16) & 0xff] << 16, true)
  view.setUint32(at + 4, HEX_CHARS[(word >>> 8) & 0xff] | HEX_CHARS[word & 0xff] << 16, true)
}

// Not called at load, because every process restored from a V8 startup snapshot would then repeat the ids of the process that built it.
// For the same reason, a pool that was filled while building the snapshot is discarded.
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
