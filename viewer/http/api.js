'use strict'

// Everything under /api/. ../api.md describes it.

const { bodyText } = require('../otlp/json-body')
const { integer, interval, oneOf, required } = require('../store/parameters')
const { Search, filterOf, lineFilterOf } = require('../store/search')
const { Slices } = require('../store/slices')
const { startOf, summaryOf } = require('../store/summary')

const LIST_DEFAULT = 100
const LIST_MAX = 500
const SEARCH_MAX_MS = 2000
const FLAME_REQUESTS = 200
const IMPORT_IDS_MAX = 100
// More rows than a screen shows, as viewer/page/trace.mjs requests them. A large trace is shown before all of it is read.
const FIRST_ROWS = 150

const JSON_TYPE = 'application/json; charset=utf-8'
const NDJSON = 'application/x-ndjson'

const LINE_PATH = /^\/api\/logs\/(\d{1,15})$/
const TRACE_PATH = /^\/api\/traces\/([^/]+)(?:\/(rows|statistics|text|perfetto|spans|lines)(?:\/([^/]+))?)?$/

const SORTS = ['newest', 'slowest']

class NotFound extends Error {}

class Api {
  #store
  #routes
  #exceptions
  #viewer

  /** @param {import('./server').Viewer} viewer */
  constructor (viewer) {
    this.#viewer = viewer
    this.#store = viewer.store
    this.#routes = viewer.routes
    this.#exceptions = viewer.exceptions
  }

  /** @returns {Promise<void>} resolves when it has answered. @throws BadParameter, NotFound, Refused, Malformed */
  async handle (request, response, url) {
    const { pathname: path, searchParams: query } = url
    if (path === '/api/import') return this.#import(request, response)
    if (request.method !== 'GET' && request.method !== 'HEAD') return sendError(response, 405, 'use GET', { allow: 'GET' })
    switch (path) {
      case '/api/traces': return sendJson(response, await this.#list(query))
      case '/api/traces/overview': return sendJson(response, await require('../statistics/overview').overviewOf(this.#store, query))
      case '/api/routes': return sendJson(response, await this.#routesOf(query))
      case '/api/services': return sendJson(response, await this.#viewer.services.list(query))
      case '/api/routes/flame': return sendJson(response, this.#flame(query))
      case '/api/logs': return sendJson(response, await this.#logs(query))
      case '/api/compare': return sendJson(response, this.#compare(query))
      case '/api/exceptions': return sendJson(response, await this.#exceptionsOf(query))
      case '/api/metrics': return sendJson(response, this.#viewer.metrics.list())
      case '/api/metrics/data': return sendJson(response, orNotFound(await this.#viewer.metrics.data(query), 'no such metric is stored'))
      case '/api/metrics/overview': return sendJson(response, await this.#viewer.metrics.overview(query))
      case '/api/stats': return sendJson(response, this.#viewer.stats())
      case '/api/export': return this.#export(response, query)
      case '/api/events':
        if (request.method === 'HEAD') return sendError(response, 405, 'use GET', { allow: 'GET' })
        if (this.#viewer.events.full) return sendError(response, 503, 'too many pages are open')
        return this.#viewer.events.open(request, response, query)
    }
    if (LINE_PATH.test(path)) return sendJson(response, this.#line(Number(LINE_PATH.exec(path)[1]), query))
    const match = TRACE_PATH.exec(path)
    if (match === null) throw new NotFound('there is nothing at this address')
    return this.#trace(response, query, match)
  }

  #trace (response, query, /** @type {string[]} */ [, name, view, spanName]) {
    const trace = this.find(decoded(name))
    if (spanName !== undefined && view !== 'spans' && view !== 'lines') throw new NotFound('there is nothing at this address')
    switch (view) {
      case undefined: {
        const { otlpText } = require('../views/otlp-json')
        return send(response, 200, JSON_TYPE, otlpText(trace.spans, trace.lines), query.has('download') ? asFile(`trace-${trace.id}.json`) : {})
      }
      case 'rows': return sendJson(response, require('../views/rows').rowsOf(trace, integer(query, 'limit', 1, Number.MAX_SAFE_INTEGER)))
      case 'statistics': {
        const { statisticsOf, BY } = require('../views/trace-statistics')
        return sendJson(response, statisticsOf(trace, oneOf(query, 'by', BY)))
      }
      case 'perfetto': return sendJson(response, require('../views/perfetto').perfettoOf(trace), asFile(`trace-${trace.id}.perfetto.json`))
      case 'text': {
        const { textOf } = require('../views/text')
        const span = query.get('span') ?? undefined
        if (span !== undefined && trace.find(span) === undefined) throw new NotFound('this trace has no span with this id')
        return send(response, 200, 'text/plain; charset=utf-8', textOf(trace, { span, attributes: query.has('attributes') }))
      }
      case 'lines': {
        const line = trace.lines[/^l\d+$/.test(spanName ?? '') ? Number(spanName.slice(1)) : -1]
        if (line === undefined) throw new NotFound('this trace has no line with this id')
        return sendJson(response, require('../views/span-panel').linePanelOf(line, { full: query.has('full') }))
      }
      case 'spans': {
        const span = trace.find(decoded(spanName ?? '').toLowerCase())
        if (span === undefined) throw new NotFound('this trace has no span with this id')
        const { panelOf } = require('../views/span-panel')
        return sendJson(response, panelOf(trace, span, { full: query.has('full'), editor: this.#viewer.editor, isHeld: (id) => this.#store.get(id) !== undefined }))
      }
    }
  }

  /** @returns {object | null} the first rows of GET /api/traces/<name>/rows, or null if the trace is not stored */
  firstRows (name) {
    const { found } = this.#named(name.toLowerCase())
    return found === undefined ? null : require('../views/rows').rowsOf(found, FIRST_ROWS)
  }

  /** @param {string} name an id, the start of an id, last, slowest or failed */
  find (name) {
    const { found, problem } = this.#named(name.toLowerCase())
    if (found === undefined) throw new NotFound(problem ?? 'the viewer does not have this trace: it was never received, or it was dropped to make room')
    return found
  }

  #named (name) {
    if (name === 'last') return { found: this.#store.newestFirst().next().value, problem: 'no trace has been received yet' }
    if (name === 'failed') return { found: firstOf(this.#store, ({ failed }) => failed), problem: 'no trace has failed' }
    if (name === 'slowest') return { found: slowestOf(this.#store), problem: 'no trace has been received yet' }
    if (/^[0-9a-f]{32}$/.test(name)) return { found: this.#store.get(name) }
    if (!/^[0-9a-f]{8,31}$/.test(name)) return { problem: 'a trace id must be 8 to 32 hex digits, or last, slowest or failed' }
    const [found, another] = this.#store.startingWith(name, 2)
    return another === undefined ? { found } : { problem: 'more than one trace id starts with this' }
  }

  async #list (query) {
    const limit = integer(query, 'limit', 1, LIST_MAX) ?? LIST_DEFAULT
    const before = integer(query, 'before', 0, Number.MAX_SAFE_INTEGER)
    const result = { traces: [], more: false, total: this.#store.size }
    const isSlowest = oneOf(query, 'sort', SORTS) === 'slowest'
    const search = new Search(this.#store, filterOf(query), { before, maxMs: SEARCH_MAX_MS })
    for await (const trace of search) {
      result.more ||= result.traces.length === limit
      if (isSlowest) addSlow(result.traces, summaryOf(trace), limit)
      else if (result.more) break
      else result.traces.push(summaryOf(trace))
    }
    return search.stoppedBefore === null ? result : { ...result, more: true, incomplete: true, ...!isSlowest && { before: search.stoppedBefore } }
  }

  // Newest lines first.
  async #logs (query) {
    const { lineJson } = require('../views/log-lines')
    const matches = lineFilterOf(query)
    const limit = integer(query, 'limit', 1, LIST_MAX) ?? LIST_DEFAULT
    const found = []
    const result = { lines: [], more: false, total: this.#store.lines.size }
    const slices = new Slices()
    for (const line of this.#store.lines.newestFirst()) {
      if (slices.isDue) {
        if (slices.tookMs > SEARCH_MAX_MS) {
          result.incomplete = true
          break
        }
        await slices.rest()
      }
      if (!matches(line)) continue
      result.more = found.length === limit
      if (result.more) break
      found.push(line)
    }
    result.lines = found.map(lineJson)
    return result
  }

  #line (order, query) {
    const line = this.#store.lines.at(order)
    if (line === undefined) throw new NotFound('this line is not stored: it was never received, or it was evicted')
    return { order, ...require('../views/log-lines').placeOf(line), span: line.spanId || null, ...require('../views/span-panel').linePanelOf(line, { full: query.has('full') }) }
  }

  #routesOf (query) {
    const within = interval(query, Date.now())
    return within === null ? this.#routes.list() : require('../statistics/replay').routesWithin(this.#store, within, Date.now())
  }

  #exceptionsOf (query) {
    const within = interval(query, Date.now())
    return within === null ? this.#exceptions.list() : require('../statistics/replay').exceptionsWithin(this.#store, within, Date.now())
  }

  #flame (query) {
    const { flameOf } = require('../views/merge')
    const { fromMs, toMs } = interval(query, Date.now()) ?? { fromMs: -Infinity, toMs: Infinity }
    const held = this.#routes.held(required(query, 'route'), query.get('service') ?? undefined, Infinity)
    const requests = held.filter(({ trace }) => startOf(trace) >= fromMs && startOf(trace) <= toMs).slice(0, FLAME_REQUESTS)
    const root = flameOf(requests)
    if (root === null) throw new NotFound('the viewer has no request of this route')
    return { route: query.get('route'), service: root.service, requests: requests.length, root }
  }

  #compare (query) {
    const { compareRows } = require('../views/merge')
    const a = this.find(required(query, 'a'))
    const b = query.get('b') ? this.find(query.get('b')) : this.#median(a)
    return { a: summaryOf(a), b: summaryOf(b), rows: compareRows(a, b) }
  }

  #median (trace) {
    const { route, name, service } = summaryOf(trace)
    const median = this.#routes.medianOf(route ?? name, service, trace)
    if (median === undefined) throw new NotFound('the viewer has no other successful request of this route')
    return median
  }

  async #export (response, query) {
    const { otlpText } = require('../views/otlp-json')
    const search = new Search(this.#store, filterOf(query))
    let left = integer(query, 'limit', 1, Number.MAX_SAFE_INTEGER) ?? Infinity
    response.writeHead(200, { 'content-type': NDJSON, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', ...asFile('traces.jsonl') })
    for await (const trace of search) {
      if (response.destroyed || left-- === 0) break
      if (!response.write(`${otlpText(trace.spans, trace.lines)}\n`)) await released(response)
    }
    response.end()
  }

  async #import (request, response) {
    if (request.method !== 'POST') return sendError(response, 405, 'use POST', { allow: 'POST' })
    // A form on another site cannot send this type without a CORS preflight.
    if (!/^application\/(?:json|x-ndjson)\b/.test(request.headers['content-type'] ?? '')) return sendError(response, 415, 'content-type must be application/json')
    const { importText } = require('../store/import')
    const { ids, ...counts } = importText(this.#store, bodyText(await this.#viewer.bodies.read(request)))
    this.#viewer.receiver.received.imported += counts.spans
    sendJson(response, { ...counts, ids: ids.slice(0, IMPORT_IDS_MAX) })
  }
}

/** Keeps the slowest, the slowest of all first. */
function addSlow (slowest, summary, limit) {
  if (slowest.length === limit && summary.durationMs <= slowest.at(-1).durationMs) return
  const place = slowest.findIndex(({ durationMs }) => durationMs < summary.durationMs)
  slowest.splice(place === -1 ? slowest.length : place, 0, summary)
  if (slowest.length > limit) slowest.pop()
}

/** Resolves when the response takes more, or when its client is gone. */
function released (response) {
  return new Promise((resolve) => {
    const done = () => resolve(response.off('drain', done).off('close', done))
    response.on('drain', done).on('close', done)
  })
}

function orNotFound (answer, problem) {
  if (answer === null) throw new NotFound(problem)
  return answer
}

function firstOf (store, choose) {
  for (const trace of store.newestFirst()) if (choose(trace)) return trace
}

function slowestOf (store) {
  let slowest
  for (const trace of store.newestFirst()) {
    if (slowest === undefined || summaryOf(trace).durationMs > summaryOf(slowest).durationMs) slowest = trace
  }
  return slowest
}

function decoded (text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}

function asFile (name) {
  return { 'content-disposition': `attachment; filename="${name}"` }
}

function sendJson (response, value, headers) {
  send(response, 200, JSON_TYPE, JSON.stringify(value), headers)
}

function sendError (response, status, error, headers) {
  send(response, status, JSON_TYPE, JSON.stringify({ error }), headers)
}

function send (response, status, type, text, headers) {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'cross-origin-resource-policy': 'same-origin',
    ...headers
  }).end(text)
}

module.exports = { Api, NotFound, sendJson, sendError }
