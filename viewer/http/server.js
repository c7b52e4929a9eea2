'use strict'

// The viewer: a store, statistics, and an HTTP server that receives telemetry, answers the API and serves the page.

const http = require('node:http')
const { TraceStore } = require('../store/trace-store')
const { RouteStatistics } = require('../statistics/routes')
const { Exceptions } = require('../statistics/exceptions')
const { MetricStatistics } = require('../statistics/metrics')
const { Services } = require('../statistics/services')
const { BadParameter } = require('../store/parameters')
const { Malformed } = require('../otlp/proto-reader')
const { Bodies, Refused } = require('./body')
const { Receiver } = require('./receive')
const { listen } = require('./listen')
const { Events } = require('./events')
const { Api, NotFound, sendJson, sendError } = require('./api')
const { safeText } = require('../views/safe-text')
const { duration } = require('../views/text')
const { repeatText } = require('../views/repeats')
const { appReport, adviceOf } = require('./app-report')
const { hostRefusal, originRefusal, hasToken, tokenRedirect } = require('./security')

const { version } = require('../../package.json')

const SIGNALS = { '/v1/traces': 'traces', '/v1/metrics': 'metrics', '/v1/logs': 'logs' }
const APPS_MAX = 64
const NAME_MAX = 200

// Longer than exporters wait between two batches, so that they do not find their connection closed.
const KEEP_ALIVE_MS = 60_000
const REPORT_BYTES_MAX = 16_384

class Viewer {
  #servers = []
  #startedMs = Date.now()

  /**
   * @param {{ maxBytes?: number, token?: string | null, editor?: string }} [options] maxBytes: limit of the stored traces,
   *   64 MiB by default; token: required for reading if other machines can connect; editor: opens files from the page, or 'none'
   */
  constructor ({ maxBytes, token = null, editor = 'vscode' } = {}) {
    this.token = token
    this.editor = token === null && editor !== 'none' ? editor : null // files are on this machine, and a reader with a token may be on another
    this.port = this.url = null // where it listens: set by the command that opens it
    this.store = new TraceStore({ maxBytes })
    this.routes = new RouteStatistics(this.store, { onRepeats: (route, repeats) => this.say?.(`${safeText(route, NAME_MAX)} makes ${repeatText(repeats, duration)}`) })
    this.exceptions = new Exceptions(this.store)
    this.metrics = new MetricStatistics(this.store)
    this.services = new Services(this.store)
    this.bodies = new Bodies()
    this.receiver = new Receiver(this.store, this.bodies)
    this.events = new Events({ store: this.store, statistics: [this.routes, this.exceptions, this.services], stats: () => this.stats() })
    this.api = new Api(this)
    this.grpc = null // a Grpc, where it listens
    this.app = null
    this.apps = new Map()
    this.say = null // set by the command: (text) => void
    this.saved = { file: null, requests: 0, failed: 0 }
  }

  /**
   * @returns {Promise<number>} the port
   * @throws the errors of listen, mostly EADDRINUSE
   */
  async listen (port, host) {
    this.#servers = await listen(() => this.#create(), port, host)
    return this.#servers[0].address().port
  }

  /** OTLP over gRPC, on a port of its own. @returns {Promise<number>} the port. @throws the errors of listen */
  async listenGrpc (port, host) {
    const { Grpc } = require('./grpc')
    const grpc = new Grpc(this.receiver, this.bodies, () => this.port)
    const taken = await grpc.listen(port, host)
    this.grpc = grpc
    return taken
  }

  async close () {
    this.events.close()
    await Promise.all([...this.#servers.map(closed), this.grpc?.close()])
  }

  stats () {
    const { store, receiver } = this
    return {
      version,
      pid: process.pid,
      startedMs: this.#startedMs,
      nowMs: Date.now(),
      traces: store.size,
      spans: store.spans,
      bytes: store.bytes,
      maxBytes: store.maxBytes,
      received: receiver.received,
      refused: receiver.refused,
      grpc: this.grpc?.stats() ?? null,
      dropped: { spans: Object.values(store.dropped).reduce((sum, count) => sum + count, 0), reasons: store.dropped },
      lines: { held: store.lines.size, received: store.lines.received, dropped: store.lines.dropped },
      metrics: store.metrics.stats,
      duplicates: store.duplicates,
      evicted: store.evicted,
      orphans: store.orphans,
      late: store.late,
      clients: this.events.size,
      saved: this.saved,
      app: this.app,
      apps: [...this.apps.values()],
      advice: this.#advice()
    }
  }

  // Only until the first span is received.
  #advice () {
    return this.store.receivedSpans > 0 ? [] : [...this.apps.values()].map(adviceOf).filter((advice) => advice !== null)
  }

  #create () {
    const server = http.createServer((request, response) => {
      this.#route(request, response).catch((error) => this.#failed(response, error))
    })
    server.keepAliveTimeout = KEEP_ALIVE_MS
    server.on('clientError', (/** @type {NodeJS.ErrnoException} */ error, socket) => {
      if (error.code !== 'ECONNRESET' && socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n')
    })
    return server
  }

  async #route (request, response) {
    const url = parsed(request.url)
    if (url === null) return sendError(response, 400, 'invalid URL')
    const path = url.pathname
    // Telemetry may be sent to any name of this machine, for example host.docker.internal. Its senders cannot read anything.
    if (SIGNALS[path] !== undefined) return this.receiver.handle(request, response, SIGNALS[path])
    const refusal = hostRefusal(request, this)
    if (refusal !== null) return sendError(response, 403, refusal)
    if (path === '/api/whoami') return sendJson(response, { name: 'light-trace', version, pid: process.pid })
    if (path.startsWith('/api/')) {
      const refused = originRefusal(request)
      if (refused !== null) return sendError(response, 403, refused)
      if (!hasToken(request, url, this)) return sendError(response, 401, 'a token is required: it is in the URL that light-trace printed')
      if (path === '/api/app') return this.#appReport(request, response)
      return this.api.handle(request, response, url)
    }
    return this.#page(request, response, url)
  }

  #page (request, response, url) {
    const { isPage, traceOf, sendPage, FIXED_HEADERS } = require('./page')
    if (!isPage(url.pathname)) return sendError(response, 404, 'there is nothing at this address')
    if (request.method !== 'GET' && request.method !== 'HEAD') return sendError(response, 405, 'use GET', { allow: 'GET' })
    if (!hasToken(request, url, this)) {
      return response.writeHead(401, FIXED_HEADERS).end('<!doctype html><title>light-trace</title><p>This viewer requires a token. Open the URL that <code>light-trace</code> printed.')
    }
    if (this.token !== null && url.searchParams.has('token')) return response.writeHead(303, { ...FIXED_HEADERS, ...tokenRedirect(url, this.token) }).end()
    const trace = traceOf(url.pathname)
    // Only our own page gets the data. After a link on another site, the page comes without the data and requests it.
    const answersData = trace !== undefined && originRefusal(request) === null
    return sendPage(response, answersData ? () => this.api.firstRows(trace) : undefined)
  }

  // The apps that this command started report here what they lost (report-losses.js).
  async #appReport (request, response) {
    if (request.method !== 'POST' || this.app === null) return sendError(response, 404, 'there is nothing at this address')
    const body = await this.bodies.read(request)
    if (body.length > REPORT_BYTES_MAX) throw new Refused(413, 'too_large', 'the report is too large')
    const report = appReport(body)
    const before = new Set(this.#advice())
    if (this.apps.size < APPS_MAX || this.apps.has(report.pid)) this.apps.set(report.pid, report)
    for (const advice of this.#advice()) if (!before.has(advice)) this.say?.(advice)
    this.events.touch()
    response.writeHead(204).end()
  }

  #failed (response, error) {
    if (response.headersSent) return response.destroy()
    if (error instanceof NotFound) return sendError(response, 404, error.message)
    if (error instanceof BadParameter || error instanceof Malformed) return sendError(response, 400, error.message)
    if (error instanceof Refused) return sendError(response, error.status, error.message)
    process.stderr.write(`light-trace: the viewer could not answer: ${error.stack}\n`)
    sendError(response, 500, 'the viewer failed. The error is in its terminal')
  }
}

function parsed (url) {
  try {
    return new URL(url.replace(/^\/{2,}/, '/'), 'http://localhost')
  } catch {
    return null
  }
}

function closed (server) {
  return new Promise((resolve) => {
    server.close(resolve)
    server.closeAllConnections()
  })
}

module.exports = { Viewer }
