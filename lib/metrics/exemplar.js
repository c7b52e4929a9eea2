'use strict'

// One measurement kept whole: its value, its time and the sampled span that it was made in. It leads from a
// bucket of a histogram to a trace. A bucket keeps the last one that it saw.

class Exemplar {
  /**
   * @param {number} value
   * @param {number} timeMs milliseconds on the monotonic clock
   * @param {TraceContext} span whose ids are copied
   */
  constructor (value, timeMs, span) {
    this.replace(value, timeMs, span)
  }

  // HOT, once per sampled request. Budget: 0 objects.
  replace (value, timeMs, span) {
    this.value = value
    this.timeMs = timeMs
    this.t0 = span.t0
    this.t1 = span.t1
    this.t2 = span.t2
    this.t3 = span.t3
    this.s0 = span.s0
    this.s1 = span.s1
  }
}

/** Keeps the measurement in `slot` of the series' exemplars. HOT, once per sampled request. */
function keepExemplar (series, slot, value, timeMs, span) {
  if ((span.s0 | span.s1) === 0) return // a request that was left out, where the filter is always_on: it has no trace
  const { exemplars } = series
  if (exemplars === null || exemplars[slot] === null) addExemplar(series, slot, value, timeMs, span)
  else exemplars[slot].replace(value, timeMs, span)
}

/** The first one in its bucket. */
function addExemplar (series, slot, value, timeMs, span) {
  series.exemplars ??= new Array(series.exemplarSlots).fill(null)
  series.exemplars[slot] = new Exemplar(value, timeMs, span)
}

module.exports = { keepExemplar }
