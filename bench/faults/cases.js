'use strict'

// Collector faults, by row of the fault matrix. `how` is a behaviour of test/support/fake-collector.js. `happened` checks, from the
// plugin's and the collector's counts, that the fault really occurred.

// A control that the method must detect: blocks the loop for as long as a careless exporter would.
const STALL_MS = 3
const STALL_EVERY_MS = 30

// Small enough to be full after a second, so that chunks are constantly compressed and then evicted.
const SMALL = { maxBytes: 1024 * 1024, flushDelayMs: 50 }
// The smallest buffer that has full-sized chunks.
const MIDDLE = { maxBytes: 8 * 1024 * 1024, flushDelayMs: 50 }
const ROOMY = { flushDelayMs: 50 }
// Generous, because even a healthy collector can be slow on a busy machine.
const TIMEOUT_MS = 1000
// For collectors that never answer, so that there is a timeout every slice or two.
const SHORT_TIMEOUT_MS = 200

// Buffered chunks are compressed between fills. This many fills make it drop the oldest even though they shrink to a tenth.
const FILLS = 20

const RECORDED = { sampler: 'always_off', keep: { recorder: true } }

const failed = ({ stats }) => stats.exports.failed > 0
const delivered = ({ stats }) => stats.exports.failed === 0 && stats.spans.delivered > 0
const overflowed = ({ stats, collector }) => failed({ stats }) && stats.spans.thinned > 0 && collector.compressed > 0
const refused = ({ stats }) => stats.spans.dropped.non_retryable > 0

const cases = [
  { name: 'none: bare Fastify again', isBare: true },
  { name: `none: the event loop is blocked for ${STALL_MS} ms every ${STALL_EVERY_MS} ms`, isBare: true, isStalled: true },
  { name: 'accepts everything', how: {}, happened: delivered },
  { row: 'M13', name: 'receives nothing: no request is sampled, all are recorded', how: {}, options: RECORDED, happened: ({ stats }) => stats.spans.recorded > 0 },
  { row: 'M13', name: 'receives a snapshot of the recorder in each slice', how: {}, options: RECORDED, snapshots: true, happened: delivered },
  { row: 'T01', name: 'refuses the connection, 1 MiB of buffer', isDown: true, fillsFirst: FILLS, buffer: SMALL, happened: overflowed },
  { row: 'M01', name: 'refuses the connection, 8 MiB of buffer, full', isDown: true, fillsFirst: FILLS, buffer: MIDDLE, happened: overflowed },
  { row: 'T03', name: 'comes back in each slice, to 8 MiB of spans', comesBack: true, buffer: MIDDLE, happened: ({ stats }) => failed({ stats }) && stats.spans.delivered > 0 },
  { row: 'T05', name: 'comes and goes every 100 ms', flapEveryMs: 100, buffer: SMALL, happened: failed },
  { row: 'T06', name: 'never answers', how: { hang: true }, buffer: SMALL, happened: failed },
  { row: 'T07', name: 'answers one byte every 20 ms', how: { trickle: { bytes: 1, everyMs: 20 } }, happened: ({ stats }) => stats.spans.delivered > 0 },
  { row: 'T08', name: 'resets after 20 kB', how: { resetAt: 20_000 }, buffer: SMALL, happened: failed },
  { row: 'T09', name: 'resets after the request', how: { resetAfterUpload: true }, buffer: SMALL, happened: failed },
  { row: 'T12', name: 'answers 400', how: { status: 400 }, happened: refused },
  { row: 'T12', name: 'answers 413: chunks are split', how: { status: 413 }, happened: refused },
  { row: 'T14', name: 'answers 503', how: { status: 503 }, buffer: SMALL, happened: failed },
  { row: 'T15', name: 'answers 503 with Retry-After: 0', how: { status: 503, headers: { 'retry-after': '0' } }, buffer: SMALL, happened: failed },
  { row: 'T16', name: 'redirects', how: { status: 307, headers: { location: 'http://127.0.0.1:1/' } }, happened: refused },
  { row: 'T18', name: 'rejects some', how: { partialSuccess: { rejectedSpans: 2, errorMessage: 'as requested' } }, happened: ({ stats }) => stats.spans.rejected > 0 },
  { row: 'T22', name: 'never ends its response', how: { trickle: { bytes: 1024 * 1024, everyMs: 1 } }, happened: ({ stats }) => stats.spans.delivered > 0 },
  { row: 'T23', name: 'does not speak HTTP', how: { raw: 'SSH-2.0-OpenSSH_9.9\r\n\r\n' }, buffer: SMALL, happened: failed },
  { row: 'T26', name: 'has a self-signed certificate', isTls: true, how: {}, fillsFirst: FILLS, buffer: SMALL, happened: ({ stats }) => failed({ stats }) && stats.spans.thinned > 0 },
  { row: 'T30', name: 'reads 64 KiB every 300 ms', how: { readEveryMs: 300 }, fillsFirst: FILLS, buffer: SMALL, happened: ({ stats }) => stats.spans.thinned > 0 },
  { row: 'T31', name: 'closes each connection', how: { headers: { connection: 'close' } }, happened: delivered },
  { row: 'T32', name: 'answers 503 before it reads, and closes', how: { status: 503, early: true }, buffer: SMALL, happened: failed }
]

for (const testCase of cases) testCase.trace = { registerGlobals: false, buffer: { ...(testCase.buffer ?? ROOMY), closeTimeoutMs: 200 }, exporter: { timeoutMs: testCase.how?.hang || testCase.how?.trickle ? SHORT_TIMEOUT_MS : TIMEOUT_MS }, logs: false, ...testCase.options }

module.exports = { cases, STALL_MS, STALL_EVERY_MS }
