'use strict'

// From an ended request to its series without making a string: the series hang on the route. A route of one
// method has one entry for each scheme, protocol version, status and error that it was seen with, the most
// usual ones first: most often one or two.

const { UNNUMBERED } = require('../span/http-info')

// A route whose errors have more names than this has the rarer ones looked up by text.
const ENTRIES_PER_ROUTE_MAX = 64

class Entry {
  constructor ({ httpStatus, errorType, peer }, series) {
    this.httpStatus = httpStatus
    this.errorType = errorType
    this.protocol = peer.protocol
    this.scheme = peer.scheme
    this.protocolVersion = peer.protocolVersion
    this.series = series
    this.byAttributes = null // with the user's attributes: a SeriesIndex
    this.requestSize = null // the same attributes in the metrics of body sizes
    this.responseSize = null
    this.next = null
  }
}

class RouteSeries {
  #metric
  #isLazy

  /**
   * @param {Metric} metric of which the series are
   * @param {boolean} isLazy whether an entry has a series only when it is asked for: see `seriesOf`
   */
  constructor (metric, isLazy) {
    this.#metric = metric
    this.#isLazy = isLazy
  }

  /** The entry of an ended request. */
  // HOT, once per request. Budget: 0 objects, 0 strings.
  find (span) {
    const { peer, httpStatus, errorType } = span
    let entry = span.route.series
    while (entry !== null) {
      if (entry.httpStatus === httpStatus && entry.protocol === peer.protocol && entry.errorType === errorType &&
        (entry.protocol !== UNNUMBERED || isSameProtocol(entry, peer))) return entry
      entry = entry.next
    }
    return this.#add(span)
  }

  /** The series of an entry without attributes of the user's. HOT, once per request. */
  seriesOf (entry, span) {
    const { series } = entry
    return series === null || series.isForgotten ? this.#seriesAgain(entry, span) : series
  }

  #seriesAgain (entry, span) {
    return (entry.series = this.#metric.of(attributesOf(span)))
  }

  #add (span) {
    const entry = new Entry(span, this.#isLazy ? null : this.#metric.of(attributesOf(span)))
    const { route } = span
    let last = route.series
    let count = 1
    while (last !== null && last.next !== null) {
      last = last.next
      count++
    }
    if (last === null) route.series = entry
    else if (count < ENTRIES_PER_ROUTE_MAX) last.next = entry
    return entry
  }
}

function isSameProtocol (entry, peer) {
  return entry.scheme === peer.scheme && entry.protocolVersion === peer.protocolVersion
}

/** What the conventions ask for, as a flat list. The values are the span's. */
function attributesOf ({ route, peer, httpStatus, errorType }) {
  const list = ['http.request.method', route.method, 'url.scheme', peer.scheme]
  if (httpStatus !== 0) list.push('http.response.status_code', httpStatus)
  if (route.route !== '') list.push('http.route', route.route)
  if (peer.protocolVersion !== '') list.push('network.protocol.version', peer.protocolVersion)
  if (errorType !== '') list.push('error.type', errorType)
  return list
}

module.exports = { RouteSeries, attributesOf }
