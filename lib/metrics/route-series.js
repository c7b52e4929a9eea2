'use strict'

// From an ended request to its series without making a string: the series hang on the route. A route of one
// method has one entry for each scheme, protocol version, status and error that it was seen with, the most
// usual ones first: most often one or two.

const SWITCHING_PROTOCOLS = 101 // a WebSocket's hours are no latency

// A route whose errors have more names than this has the rarer ones looked up by text.
const ENTRIES_PER_ROUTE_MAX = 64

// An entry's number is its status and its protocol. One that has an error, or a protocol without a number, is told by its texts:
// nothing that is looked for has this one.
const BY_TEXT = -(2 ** 31)

class Entry {
  constructor ({ httpStatus, errorType, peer }, number) {
    this.number = number
    this.httpStatus = httpStatus
    this.errorType = errorType
    this.scheme = peer.scheme
    this.protocolVersion = peer.protocolVersion
    this.series = null // once it is asked for
    this.byAttributes = null // with the user's attributes: a SeriesIndex
    this.requestSize = null // the same attributes in the metrics of body sizes
    this.responseSize = null
    this.next = null
  }
}

class RouteSeries {
  #metric

  /** @param {Metric} metric of which the series are */
  constructor (metric) {
    this.#metric = metric
  }

  /** The entry of an ended request. */
  // HOT, once per request. Budget: 0 objects, 0 strings.
  find (span) {
    const number = span.errorType === '' ? span.httpStatus + span.peer.protocol : -1
    let entry = span.route.series
    while (entry !== null && entry.number !== number) entry = entry.next
    return entry === null ? this.findByText(span, number) : entry
  }

  /** What was not found by its number: it has none, or is seen for the first time. */
  findByText (span, number) {
    if (number >= 0) return addEntry(span, number)
    let entry = span.route.series
    while (entry !== null && !isOf(entry, span)) entry = entry.next
    return entry === null ? addEntry(span, BY_TEXT) : entry
  }

  /** The series of an entry without attributes of the user's; null where such requests do not count. HOT, once per request. */
  seriesOf (entry, span) {
    const { series } = entry
    return series === null || series.isForgotten ? this.seriesAgain(entry, span) : series
  }

  seriesAgain (entry, span) {
    return isCounted(span) ? (entry.series = this.#metric.of(attributesOf(span))) : null
  }
}

function addEntry (span, number) {
  const entry = new Entry(span, number)
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

function isCounted ({ httpStatus, route }) {
  return httpStatus !== SWITCHING_PROTOCOLS && route.isMeasured
}

function isOf (entry, { httpStatus, errorType, peer }) {
  return entry.httpStatus === httpStatus && entry.errorType === errorType && entry.scheme === peer.scheme && entry.protocolVersion === peer.protocolVersion
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

module.exports = { RouteSeries, attributesOf, isCounted }
