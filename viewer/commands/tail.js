'use strict'

// npx light-trace tail: prints traces as trees in the terminal, each when no more spans of it arrive. It starts a viewer if none runs or if
// an app is named.

const { Client, addressOf } = require('./client')
const { readEvents } = require('./event-stream')
const { printTrace } = require('./terminal')
const { plural } = require('../views/safe-text')

// The spans of a trace arrive in several requests, and children mostly before their root.
const QUIET_MS = 300
const QUIET_WITHOUT_ROOT_MS = 2000
const PRINTED_MAX = 5000
const WAITING_MAX = 500

// Of the events' stream: nobody reads our output any more, or the viewer was ended without closing its connections.
const ENDS = ['ERR_STREAM_PREMATURE_CLOSE', 'ECONNRESET']

async function tail (parsed) {
  const client = new Client(parsed.options)
  if (parsed.options.url !== undefined || (parsed.program === null && await client.isThere())) return follow(client)
  const { openViewer, attend, SAY } = require('./serve')
  const viewer = await openViewer(parsed.options)
  SAY(`${viewer.url} shows the requests on a page`)
  const own = new Client({ url: new URL(addressOf(parsed.options.host, viewer.port)), token: viewer.token ?? undefined })
  const tailing = follow(own, (text) => process.stdout.write(text))
  tailing.catch(() => {}) // the stream ends with the viewer
  await attend(viewer, parsed)
}

/** Runs until the viewer ends. */
async function follow (client, print = (text) => process.stdout.write(text)) {
  const printer = new Printer(client, print)
  const response = await client.open('/api/events')
  process.stdout.on('error', () => response.destroy()) // for example with `| head`
  try {
    for await (const { event, data } of readEvents(response)) {
      if (event === 'traces') {
        for (const summary of data.traces) printer.changed(summary)
        if (data.more > 0) print(`… ${plural(data.more, 'more trace')}\n`)
      } else if (event === 'reset') print('… some traces were missed\n')
    }
  } catch (error) {
    if (!ENDS.includes(error.code)) throw error
  }
  await printer.finish()
}

class Printer {
  #client
  #print
  #waiting = new Map() // id → { timer, summary }
  #printed = new Map() // id → the number of spans and lines that it had
  #line = Promise.resolve()

  constructor (client, print) {
    this.#client = client
    this.#print = print
  }

  changed (summary) {
    const earlier = this.#waiting.get(summary.id)
    if (earlier !== undefined) clearTimeout(earlier.timer)
    else if (this.#waiting.size >= WAITING_MAX) return this.#print(`… ${summary.id} (too many at once to print)\n`)
    const timer = setTimeout(() => this.#quiet(summary), summary.root ? QUIET_MS : QUIET_WITHOUT_ROOT_MS)
    this.#waiting.set(summary.id, { timer, summary })
  }

  #quiet (summary) {
    this.#waiting.delete(summary.id)
    this.#line = this.#line.then(() => this.#show(summary)).catch(() => {}) // the trace was evicted, or the viewer has ended
  }

  async #show ({ id, spans, lines }) {
    const before = this.#printed.get(id)
    if (before?.spans === spans && before.lines === lines) return
    const text = printTrace(await this.#client.text(`/api/traces/${id}`))
    this.#print(`${text}${before === undefined ? '' : `(printed again: it had ${plural(before.spans, 'span')}${before.lines === lines ? '' : ` and ${plural(before.lines, 'log line')}`} before)\n`}\n`)
    if (this.#printed.size >= PRINTED_MAX) this.#printed.clear()
    this.#printed.set(id, { spans, lines })
  }

  async finish () {
    for (const { timer, summary } of this.#waiting.values()) {
      clearTimeout(timer)
      this.#quiet(summary)
    }
    await this.#line
  }
}

module.exports = { tail }
