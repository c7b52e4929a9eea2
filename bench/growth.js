'use strict'

// npm run bench:growth: how the cost grows with the number of spans, attributes, routes and so on. Counts instructions with callgrind,
// in one process each, whose windows first go up in size and then down again; counts bytes on the heap after a collection. Every
// table should be linear or flat. Anything else is a bug in lib.
//
//   --table spans        only this table; can be repeated. The others keep their published figures
//   --publish            writes bench/results/growth.json
//   --warm-up, --requests, --node

const { execFileSync } = require('node:child_process')
const { once } = require('node:events')
const { HEADLINE_NODE } = require('./cases')
const { countProcess, startCounted, sendRequests } = require('./instructions/count')
const installValgrind = require('./instructions/valgrind')
const { batchOf, openSockets } = require('./load/slices')
const { nodeOfMajor } = require('./run/binaries')
const { runBench } = require('./run/frame')
const { describeCommit } = require('./run/machine')
const { readResults } = require('./report/results-file')
const { ask } = require('./run/ipc')
const { startTool, stop } = require('./run/processes')
const { freePort } = require('../scripts/free-port')

const ROOT = require('node:path').join(__dirname, '..')
const ROUNDS = 2 // once up, once down
const SOCKETS_AT_ONCE = 250 // below a listening server's backlog
const ROUTES = 5000
const MEMORY_WARM_UP = 20_000
const STEADY_BYTES = 2048
const POSTS = { warmUp: 30_000, requests: 5000 } // per window: enough for at least one POST of 5,000 spans
const TABLES = {
  spans: (options) => counted('spans', [1, 10, 100, 1000], options, { warmUp: 2000, requests: 100, spansAt: (n) => n + 1 }),
  attributes: (options) => counted('attributes', [0, 16, 32, 64, 96, 128, 256], options),
  routes: (options) => countedOverBare('routes', [10, 100, 1000, ROUTES], options, { routes: ROUTES, warmUp: 12 * ROUTES }),
  // V8 has finished compiling the code of a POST only after a few thousand POSTs.
  posts: async (options) => {
    const points = [1, 10, 50, 500, 5000]
    const [traced, socket, http] = [await counted('posts', points, options, POSTS), await counted('posts', points, options, { ...POSTS, poster: 'socket' }), await counted('posts', points, options, { ...POSTS, poster: 'http' })]
    return traced.map((row, i) => ({ ...row, socket: socket[i].instructions, http: http[i].instructions }))
  },
  rates: (options) => countedOverBare('rates', [10, 50, 200, 1000], options, POSTS),
  connections: (options) => heldOverBare([10, 1000, 10_000], options, 'routes', (server, n) => sendOverEach(server, '/', n)),
  open: (options) => heldOverBare([10, 1000, 10_000], options, 'held', (server, n) => sendOverEach(server, '/growth', n)),
  asked: (options) => heldOverBare([10, 100, 1000, 5000], options, 'routes', async (server, n, testCase) => {
    await ask(server, 'listen', n)
    await sendRequests(server, testCase, options, n)
  }),
  collector: (options) => each([0, 50, 2000], (delayMs) => sentTo(delayMs, options))
}

const OPTIONS = {
  numbers: { node: HEADLINE_NODE, 'warm-up': 8000, requests: 1000 },
  others: { table: { type: 'string', multiple: true, default: Object.keys(TABLES) } },
  file: 'growth',
  print: ({ tables }) => { for (const { name, rows } of tables) { console.log(name); console.table(rows) } }
}

if (require.main === module) runBench(OPTIONS, measure)

async function measure ({ node, requests, 'warm-up': warmUp }, { table }) {
  await installValgrind()
  const [load, sink] = await Promise.all([startTool('load', process.execPath), startTool('sink', process.execPath)])
  const options = { load, sink, down: await freePort(), binary: nodeOfMajor(node), root: ROOT, warmUp, requests, rounds: ROUNDS }
  const tables = await each(table, async (name) => {
    console.error(name)
    const { commit, hot } = describeCommit(ROOT)
    return { name, commit, hot, rows: await TABLES[name](options) }
  })
  const { tables: earlier = [] } = readResults('growth') ?? {}
  return {
    node: execFileSync(options.binary, ['--version'], { encoding: 'utf8' }).trim(),
    tables: Object.keys(TABLES).flatMap((name) => [...tables, ...earlier].find((table) => table.name === name) ?? [])
  }
}

// → [{ n, instructions }], per request
async function counted (work, points, options, { warmUp = options.warmUp, requests = options.requests, spansAt = () => 1, ...more } = {}) {
  const testCase = { ...caseOf({ work, isTraced: more.poster === undefined, ...more }), turns: points, warmUp, spansAt }
  const { windows } = await countProcess(testCase, { ...options, warmUp, requests: requests * ROUNDS })
  return points.map((n) => ({ n, instructions: mean(windows.filter(({ state }) => state === n).map(({ total }) => total)) }))
}

async function countedOverBare (work, points, options, more) {
  const bare = await counted(work, points, options, { ...more, isTraced: false })
  const traced = await counted(work, points, options, more)
  return traced.map(({ n, instructions }, i) => ({ n, bare: bare[i].instructions, instructions, over: instructions - bare[i].instructions }))
}

// → [{ n, bare, bytes, over }]: live bytes, on the heap and external, per unit of `n` after act(server, n, testCase)
async function heldOverBare (points, options, work, act) {
  const [bare, traced] = await each([false, true], (isTraced) => each(points, (n) => held(caseOf({ work, isTraced, routes: ROUTES }), n, options, act)))
  return points.map((n, i) => ({ n, bare: bare[i], bytes: traced[i], over: traced[i] - bare[i] }))
}

async function held (testCase, n, options, act) {
  const server = await startCounted(testCase, options, [], ['--expose-gc'])
  try {
    await sendRequests(server, { ...testCase, route: 'hello' }, options, MEMORY_WARM_UP)
    const before = await alive(server)
    await act(server, n, testCase)
    return Math.round((await alive(server) - before) / n)
  } finally {
    await stop(server)
  }
}

// Collects until nothing more is freed: V8 releases old code in steps.
async function alive (server) {
  await ask(server, 'flush')
  for (let last = Infinity; ;) {
    const { heapUsed, external } = await ask(server, 'collect')
    if (last - heapUsed < STEADY_BYTES) return heapUsed + external
    last = heapUsed
  }
}

// Sends one request over each of `n` connections and keeps them open. Any data counts as a response, even a 1xx one.
async function sendOverEach (server, path, n) {
  const { bytes } = batchOf({ path, pipelining: 1 })
  for (let left = n; left > 0; left -= SOCKETS_AT_ONCE) {
    const sockets = await openSockets(server.ready.port, Math.min(left, SOCKETS_AT_ONCE))
    await Promise.all(sockets.map((socket) => {
      socket.on('error', () => {}) // its server is stopped
      socket.write(bytes)
      return once(socket, 'data')
    }))
  }
}

// Counts the POSTs to a collector that takes `delayMs` to answer, and the spans that are lost.
async function sentTo (delayMs, options) {
  const testCase = caseOf({ work: 'routes', isTraced: true })
  const server = await startCounted(testCase, options, [])
  const requests = MEMORY_WARM_UP * 2
  try {
    await sendRequests(server, { ...testCase, route: 'hello' }, options, MEMORY_WARM_UP, 10)
    await ask(server, 'flush')
    await ask(options.sink, 'expect', { delayMs })
    const before = await ask(server, 'figures')
    await sendRequests(server, { ...testCase, route: 'hello' }, options, requests, 10)
    await ask(server, 'flush')
    const after = await ask(server, 'figures')
    const { spans, bodies } = await ask(options.sink, 'received')
    return { delayMs, requests, posts: bodies, lost: requests - spans, micros: (after.user + after.system - before.user - before.system) / requests }
  } finally {
    await stop(server)
  }
}

function caseOf ({ isTraced = true, ...options }) {
  return { name: `growth-${options.work}`, setup: 'server/setups/growth', env: { OTEL_EXPORTER_OTLP_ENDPOINT: '{sink}' }, route: 'growth', options: { ...options, isTraced }, spans: 1, delivers: isTraced, isCollected: false }
}

// Runs one at a time: two measured processes would disturb each other.
async function each (list, fn) {
  const results = []
  for (const item of list) results.push(await fn(item))
  return results
}

function mean (values) {
  return Math.round(values.reduce((sum, value) => sum + value, 0) / values.length)
}
