'use strict'

// For npm run bench:growth: a server, traced or not, whose /growth does an amount of work that `listen` sets.

const http = require('node:http')
const net = require('node:net')
const path = require('node:path')
const bareKeptTick = require('./bare-kept-tick')
const { spaceBy = nothing } = require('../accounts')(process.env.LIGHT_TRACE_ROOT ?? path.join(__dirname, '../../..'))

const KEYS = Array.from({ length: 256 }, (_, i) => `app.key.${i}`)
const ANSWER = { hello: 'world' }
// See lib/features/accounts.js. The CPU time is read after 5 ms of work, which is every seventh request here. At 10 to 200 requests per
// second a hello world took 0.5 to 0.7 ms of work, because the CPU's caches no longer hold any of it; at a thousand it took 0.2 ms.
const SAMPLES_A_SECOND = 200
const READS_CPU_EACH = 7

// work: a key of WORK; n: the amount, which `listen` changes; routes: how many to add; poster: what to send when nothing is traced
module.exports = ({ work, isTraced, n = 1, routes = 0, poster, plugin }) => {
  const setup = isTraced ? require('./light-trace')({ plugin }) : bareKeptTick({})
  const state = { n, requests: 0, post: POSTERS[poster] }
  const turns = {} // by number of routes
  const next = () => `/route${(turns[state.n] = (turns[state.n] ?? -1) + 1) % state.n}`
  return {
    ...setup,
    fastify: { rewriteUrl: ({ url }) => work === 'routes' && url === '/growth' ? next() : url },
    async register (app) {
      await setup.register?.(app)
      if (isTraced) state.post = () => app.lightTrace.flush()
      for (let i = 0; i < routes; i++) app.get(`/route${i}`, async () => ANSWER)
      app.get('/growth', WORK[work](state))
    },
    listen (n) { state.n = n }
  }
}

const WORK = {
  routes: () => async () => ANSWER,
  spans: (state) => async ({ trace }) => {
    for (let i = 0; i < state.n; i++) trace.withSpan('a step', nothing)
    return ANSWER
  },
  attributes: (state) => async ({ trace }) => {
    for (let i = 0; i < state.n; i++) trace.span.setAttribute(KEYS[i], i)
    return ANSWER
  },
  posts: (state) => async () => {
    if (++state.requests % state.n === 0) setImmediate(state.post)
    return ANSWER
  },
  // Takes as many samples, and sends as many POSTs, as at `n` requests per second.
  rates: (state) => state.post === undefined
    ? WORK.routes()
    : async () => {
      const readsCpu = ++state.requests % READS_CPU_EACH === 0
      if (state.n <= SAMPLES_A_SECOND) spaceBy(-1, readsCpu ? -1 : 1e9)
      else if (state.requests % (state.n / SAMPLES_A_SECOND) === 0) spaceBy(1e9, -1)
      if (state.requests % state.n === 0) setImmediate(state.post)
      return ANSWER
    },
  // Never answered. The 102 tells the client that the request has arrived.
  held: () => (request, reply) => { reply.raw.writeProcessing() }
}

const POSTERS = {
  // The minimum of any client: writes head and body to a socket at once, and discards the response.
  socket () {
    socket ??= net.connect(collector()).on('data', nothing)
    socket.cork()
    socket.write(`POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${BODY.length}\r\n\r\n`, 'latin1')
    socket.write(BODY)
    socket.uncork()
  },
  http () {
    http.request({ ...collector(), method: 'POST', path: '/v1/traces', agent, headers: { 'content-length': 0 } }, (response) => response.resume()).end()
  }
}

const BODY = Buffer.alloc(5000)
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
let socket

function collector () {
  const { hostname: host, port } = new URL(process.env.OTEL_EXPORTER_OTLP_ENDPOINT)
  return { host, port: Number(port) }
}

function nothing () {}
