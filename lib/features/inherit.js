'use strict'

// `inheritAttributes: ['tenant.id']`: copies attributes from a request's span to its child spans and its exported log records. Only
// attributes that are set when the child ends or the line is written are copied.

const { SERVER_KEYS } = require('../span/http-info.js')
const { hasKey, indexOfKey } = require('../span/attributes.js')

// On the span of an ended request, whose attributes the encoder has already taken: the attributes that later children inherit.
const kInherited = Symbol('light-trace.inherited')

class Inherit {
  #tracer
  #keys

  constructor (tracer) {
    this.#tracer = tracer
    this.#keys = tracer.settings.inheritAttributes
  }

  decided () {
    const { output, report } = this.#tracer
    if (output.sdkSpans === null) return
    this.#keys = []
    report.warn('LT_WARN_OPTION_MEANING', `inheritAttributes has no effect: ${output.reason}. Use a span processor of its SDK`, 'inheritAttributes')
  }

  /** Runs before everything else that handles an ended span: `keep`, which may hold it, and `omitAttributes`. */
  open () {
    const { pipeline } = this.#tracer
    const { ended } = pipeline
    pipeline.ended = (span) => {
      if (span.request === span) this.#remember(span)
      else this.#give(span, this.of(span.request))
      ended.call(pipeline, span)
    }
  }

  /** The attributes that a request's span passes on, as a flat list; null: none. @param {RecordedSpan | null | undefined} request */
  of (request) {
    return request ? request[kInherited] ?? this.#read(request) : null
  }

  #read (request) {
    const list = []
    for (const key of this.#keys) {
      const value = valueOf(request, key)
      if (value !== undefined) list.push(key, value)
    }
    const shown = this.#tracer.omit?.strip(list) ?? list
    return shown.length === 0 ? null : shown
  }

  #remember (request) {
    const list = this.#read(request)
    if (list !== null) request[kInherited] = list
  }

  #give (span, list) {
    if (list === null) return
    measure(span)
    for (let i = 0; i < list.length; i += 2) if (!has(span, list[i])) span.assign(list[i], list[i + 1])
  }
}

/** Records the span's metrics before it inherits: the request's `http.request.method` must not make a query count as an HTTP call. */
function measure (span) {
  span.observer?.ended(span)
  span.observer = null
}

function valueOf (request, key) {
  return find(request.attributeList ?? [], key) ?? find(SERVER_KEYS.has(key) ? request.allAttributes() : request.route?.attributeList ?? [], key)
}

function find (list, key) {
  const place = indexOfKey(list, key)
  return place === -1 ? undefined : list[place + 1]
}

function has ({ attributeList, info }, key) {
  if (attributeList !== null && hasKey(attributeList, key)) return true
  return info !== null && (hasKey(info.attributeList, key) || (info.origin !== '' && info.openKey === key))
}

module.exports = { attach: (tracer) => new Inherit(tracer) }
