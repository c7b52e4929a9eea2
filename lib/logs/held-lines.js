'use strict'

// Lines below the logger's own level, which are held with their request and printed only if it fails, is slow or is kept.
//
// The level of each request's own logger is lowered, so that pino writes these lines; the tap hands them over in place of the
// destination. No other logger is touched.

const { SPAN_KEY } = require('../context/trace-context')
const { kSpan } = require('../fastify/keys')
const { STATUS_ERROR } = require('../span/recording-span')

const LINES_MAX = 64 // of a request: the last ones say how it failed
const REQUEST_CHARACTERS_MAX = 64 * 1024
const CHARACTERS_MAX = 8 * 1024 * 1024 // of all requests together

const kHeld = Symbol('light-trace.heldLines') // on a request's logger, from which its children inherit it

class HeldLines {
  #level
  #keep
  #print
  #characters = 0
  #hasFactories = false
  forgotten = 0 // lines that made room for later ones

  /**
   * @param {object} app whose requests hold lines
   * @param {string} level the least level that is held
   * @param {{ slowerThanMs: number, aborted: boolean } | null} keep what is worth printing beside failures
   * @param {(said: object) => void} print prints what `take` was given
   */
  constructor (app, level, keep, print) {
    this.#level = level
    this.#keep = keep
    this.#print = print
    // A logger that the application's factory makes may be shared by several requests.
    app.addHook('onRoute', ({ childLoggerFactory }) => { this.#hasFactories ||= childLoggerFactory !== undefined })
    app.addHook('onRequest', (request, reply, done) => {
      this.#begin(request, reply)
      done()
    })
  }

  #begin ({ log, server }, reply) {
    const isOwn = log !== server.log && !this.#hasFactories && server.childLoggerFactory.name === 'defaultChildLoggerFactory'
    if (!isOwn || !(log.levels?.values[this.#level] < log.levelVal) || log.levelVal === Infinity) return
    // What its request has said so far. isWorth: once that is over; what comes later is printed at once, or not at all.
    const held = log[kHeld] = { log, ownLevel: log.levelVal, characters: 0, lines: [], isWorth: undefined }
    log.level = this.#level
    reply.raw.once('close', () => this.#onEnd(held, reply))
  }

  /** Whether the logger would not have written it: a child with another level goes by that. */
  isBelow (level, logger) {
    const held = logger?.[kHeld]
    return held !== undefined && level < held.ownLevel && logger.levelVal === held.log.levelVal
  }

  /** Takes a line that is below. */
  take (said, logger) {
    const held = logger[kHeld]
    if (held.isWorth === true) return this.#print(said)
    if (held.isWorth === false) return
    this.#add(held, said.line.length)
    held.lines.push(said)
    while (held.lines.length > LINES_MAX || held.characters > REQUEST_CHARACTERS_MAX || this.#characters > CHARACTERS_MAX) {
      if (held.lines.length === 0) return
      this.#add(held, -held.lines.shift().line.length)
      this.forgotten++
    }
  }

  #add (held, characters) {
    held.characters += characters
    this.#characters += characters
  }

  #onEnd (held, reply) {
    held.isWorth = this.#isWorth(reply)
    this.#add(held, -held.characters)
    for (const said of held.lines.splice(0)) if (held.isWorth) this.#print(said)
  }

  #isWorth (reply) {
    if (reply.statusCode >= 500 || hasFailed(reply.raw[kSpan]) || reply.elapsedTime >= (this.#keep?.slowerThanMs ?? Infinity)) return true
    return this.#keep?.aborted === true && !reply.raw.writableFinished
  }
}

/** Whether the application says so of the request's span, whatever the answer's status is. */
function hasFailed (context) {
  try {
    return context?.getValue(SPAN_KEY)?.status?.code === STATUS_ERROR
  } catch { // a span of an SDK's, or what stands around it
    return false
  }
}

module.exports = { HeldLines }
