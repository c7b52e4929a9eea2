'use strict'

// GET /api/events: sends changes as they happen. Changes are collected and sent at most 20 times a second, and 4 times under load, so that
// a load test does not overload the page.

const { filterOf } = require('../store/search')
const { Slices } = require('../store/slices')
const { summaryOf } = require('../store/summary')

const TRACES_EVERY_MS = 50
const TRACES_LOADED_EVERY_MS = 250
const LOADED_FROM = 200
const LINES_EVERY_MS = 200
const SLOW_EVERY_MS = 1000
const ALIVE_EVERY_MS = 15_000
const BATCH_MAX = 200
const CLIENTS_MAX = 64
const CHANGED_MAX = 5000

// How many spans and lines are read for an event and a page, to find what its filter lets through. The page then searches for the rest itself.
const READ_MAX = 5000
const READ_OF_A_TRACE_MAX = 1000 // so that one that grows and grows does not hide the others

// A browser that does not read, for example in a sleeping tab, gets nothing more until it reads again.
const BEHIND_BYTES_MAX = 1024 * 1024

class Events {
  #store
  #statistics
  #stats
  #clients = new Set()
  #changed = new Set()
  #overflow = 0
  #linesTimer = null
  #tracesTimer = null
  #slowTimer = null
  #aliveTimer = null
  #sentVersion = -1
  #dirty = false
  #hasMetrics = false
  #sliceMs

  /** @param {{ store, statistics: { version: number }[], stats: () => object, sliceMs?: number }} viewer */
  constructor ({ store, statistics, stats, sliceMs = undefined }) {
    this.#sliceMs = sliceMs
    this.#store = store
    this.#statistics = statistics
    this.#stats = stats
    store.on('change', (trace) => this.#change(trace))
    store.on('lines', () => this.#lines())
    store.on('metrics', () => { this.#hasMetrics = this.#dirty = true })
    store.on('evict', (trace) => this.#changed.delete(trace))
  }

  get size () { return this.#clients.size }
  /** The bytes that pages have not read yet. */
  get waitingBytes () {
    let bytes = 0
    for (const { response } of this.#clients) bytes += response.writableLength
    return bytes
  }

  get full () { return this.#clients.size >= CLIENTS_MAX }

  /** @throws BadParameter */
  open (request, response, query) {
    const client = { response, filter: filterOf(query), behind: false }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
    response.socket?.setNoDelay(true)
    this.#clients.add(client)
    write(client, 'hello', { stats: this.#stats() })
    response.on('close', () => this.#leave(client))
    this.#aliveTimer ??= setInterval(() => { for (const each of this.#clients) each.response.write(': alive\n\n') }, ALIVE_EVERY_MS).unref()
    this.#slowTimer ??= setInterval(() => this.#sendSlow(), SLOW_EVERY_MS).unref()
  }

  /** Notes that something other than a trace has changed, for example what the app lost. */
  touch () {
    this.#dirty = true
  }

  close () {
    for (const { response } of this.#clients) response.end()
    clearTimeout(this.#tracesTimer)
    clearTimeout(this.#linesTimer)
    clearInterval(this.#slowTimer)
    clearInterval(this.#aliveTimer)
  }

  #leave (client) {
    this.#clients.delete(client)
    if (this.#clients.size > 0) return
    clearInterval(this.#slowTimer)
    clearInterval(this.#aliveTimer)
    this.#slowTimer = this.#aliveTimer = null
    this.#changed.clear()
  }

  #change (trace) {
    this.#dirty = true
    if (this.#clients.size === 0) return
    this.#changed.delete(trace) // so that the newest change is last
    this.#changed.add(trace)
    if (this.#changed.size > CHANGED_MAX) {
      this.#changed.delete(this.#changed.values().next().value)
      this.#overflow++
    }
    this.#sendSoon()
  }

  #sendSoon () {
    const delay = this.#changed.size > LOADED_FROM ? TRACES_LOADED_EVERY_MS : TRACES_EVERY_MS
    this.#tracesTimer ??= setTimeout(() => this.#sendTraces(), delay).unref()
  }

  // The event has no lines in it. A page that shows lines requests them.
  #lines () {
    this.#dirty = true
    if (this.#clients.size === 0) return
    this.#linesTimer ??= setTimeout(() => {
      this.#linesTimer = null
      for (const client of this.#clients) this.#send(client, 'logs', {})
    }, LINES_EVERY_MS).unref()
  }

  async #sendTraces () {
    await this.#sendChanged()
    this.#tracesTimer = null
    if (this.#changed.size > 0) this.#sendSoon()
  }

  // Other work runs in between, because 64 pages may each search megabytes. What changes meanwhile is sent afterwards.
  async #sendChanged () {
    const slices = new Slices(this.#sliceMs)
    const changed = [...this.#changed]
    this.#changed.clear()
    const newest = changed.slice(-BATCH_MAX)
    const unsent = changed.length - newest.length + this.#overflow
    this.#overflow = 0
    for (const client of this.#clients) {
      const traces = []
      let left = READ_MAX
      let more = unsent
      for (let i = newest.length - 1; i >= 0; i--) {
        const trace = newest[i]
        if (slices.isDue) await slices.rest()
        if (trace.order < this.#store.oldest) continue
        const { matches, read } = client.filter.matchesWithin(trace, Math.min(left, READ_OF_A_TRACE_MAX))
        left -= read
        if (matches) traces.push(summaryOf(trace))
        else if (matches === undefined) more++
      }
      if (!this.#clients.has(client)) continue
      const { oldest, size: total } = this.#store
      this.#send(client, 'traces', { traces: traces.reverse().filter(({ order }) => order >= oldest), more, oldest, total })
    }
  }

  #sendSlow () {
    if (this.#dirty) {
      this.#dirty = false
      const stats = this.#stats()
      for (const client of this.#clients) this.#send(client, 'stats', stats)
    }
    if (this.#hasMetrics) {
      this.#hasMetrics = false
      for (const client of this.#clients) this.#send(client, 'metrics', {})
    }
    const version = this.#statistics.reduce((sum, each) => sum + each.version, 0)
    if (version === this.#sentVersion) return
    this.#sentVersion = version
    for (const client of this.#clients) this.#send(client, 'routes', {})
  }

  #send (client, event, data) {
    if (client.response.writableLength > BEHIND_BYTES_MAX) {
      client.behind = true
      return
    }
    if (client.behind) {
      client.behind = false
      write(client, 'reset', {})
    }
    write(client, event, data)
  }
}

function write ({ response }, event, data) {
  response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
}

module.exports = { Events }
