'use strict'

// One series of a metric: what was measured in each slot of 10 seconds. A counter or histogram has in a slot what was added in it. What was
// added between two points is spread evenly over the time between them, so that it does not matter how often an app sends.

const SLOT_MS = 10_000
const SLOTS_MAX = 360
const SPREAD_MAX_MS = 300_000 // a longer time between two points is not known to be even
const STATES_MAX = 32 // processes that send a series under the same name, or the times that one was started again
const DELTAS_MAX = 8 // of which it is known that they came already
const EXEMPLARS_MAX = 40

// The memory of an entry, of a series and of an exemplar, calibrated against the heap (test/viewer/metric-bounds.test.js).
const ENTRY_BYTES = 46
const SERIES_BYTES = 1000
const STATE_BYTES = 120
const EXEMPLAR_BYTES = 260

class MetricSeries {
  // Parallel lists, ascending by slot. `offsets`: how many milliseconds after its start the slot began to be measured, or when its value was.
  // `values`: a number, Buckets, or null for a histogram without observations.
  slots = []
  offsets = []
  values = []
  exemplars = [] // { atMs, value, traceId, spanId }, in order of arrival
  #states = [] // what each process sent last, the newest last: { startMs, timeMs, value, buckets }
  #forgottenMs = 0 // the latest start of the processes of which that is no longer known
  #total = 0 // of the deltas of a sum that is not monotonic

  /** @param {{ add: (slot: number, bytes: number) => void, addFixed: (bytes: number) => void }} ledger is told what memory changes */
  constructor (instrument, origin, key, attributes, ledger) {
    this.instrument = instrument
    this.origin = origin
    this.key = key
    this.attributes = attributes // Map of text to text
    this.ledger = ledger
    this.lastMs = 0 // when a point arrived
    this.newestMs = 0 // until when it was measured
    this.isDelta = false
    this.fixedBytes = 0
    let length = key.length
    for (const [name, value] of attributes) length += name.length + value.length + 60
    this.#fixed(SERIES_BYTES + 2 * length)
  }

  /**
   * @param {import('../otlp/metric').Point} point
   * @param {number} now
   * @param {number} beforeMs when the same process last sent points of this metric, 0 if it had not: a series that was not among them began later
   */
  take (point, now, beforeMs) {
    const { kind, monotonic, temporality } = this.instrument
    this.lastMs = now
    this.isDelta = temporality === 'delta'
    // A wrong clock of the sender must not hide its points.
    const shiftMs = point.timeMs > now || point.timeMs <= now - SLOTS_MAX * SLOT_MS ? now - point.timeMs : 0
    const toMs = point.timeMs + shiftMs
    for (const exemplar of point.exemplars) this.#addExemplar(exemplar, toMs)
    if (kind === 'gauge' || (kind === 'sum' && !monotonic)) return this.#takeValue(toMs, point)
    const added = this.isDelta ? this.#delta(point) : this.#cumulative(point, now, beforeMs)
    if (added === null) return
    this.#spread(added.fromMs === 0 ? 0 : added.fromMs + shiftMs, toMs, added.value)
  }

  #takeValue (toMs, point) {
    if (!this.isDelta) return this.#set(toMs, point.value)
    const added = this.#delta(point)
    if (added === null || !Number.isFinite(this.#total + added.value)) return
    this.#total += added.value
    this.#set(toMs, this.#total)
  }

  // A sender that gets no answer sends again.
  #delta ({ startMs, timeMs, value, buckets }) {
    if (this.#states.some((state) => state.startMs === startMs && state.timeMs === timeMs)) return null
    this.#push({ startMs, timeMs, value: 0, buckets: null }, DELTAS_MAX)
    return { fromMs: startMs, value: buckets ?? value }
  }

  #cumulative ({ startMs, timeMs, value, buckets }, now, beforeMs) {
    const last = this.#states.find((state) => state.startMs === startMs)
    if (last === undefined) {
      const isForgotten = startMs <= this.#forgottenMs
      this.#push({ startMs, timeMs, value, buckets }, STATES_MAX)
      const fromMs = Math.max(startMs, beforeMs)
      // What was counted before the viewer ran belongs to no slot.
      return startMs === 0 || isForgotten || timeMs - fromMs > SPREAD_MAX_MS ? null : { fromMs, value: buckets ?? value }
    }
    // The sender's clock was ahead: otherwise its points would be late for as long.
    const isSetBack = timeMs < last.timeMs && ((last.timeMs > now + SLOT_MS && timeMs <= now + SLOT_MS) || last.timeMs - timeMs > SPREAD_MAX_MS)
    if (timeMs <= last.timeMs && !isSetBack) return null // sent again, or late: a later point has it in it
    const fromMs = isSetBack ? 0 : last.timeMs
    const before = last.buckets
    const added = buckets === null ? value - last.value : buckets.since(before)
    const isReset = buckets === null ? added < 0 : added === null
    if (isSetBack && isReset && startMs !== 0) return null // late all the same: a counter that falls has another start
    if (last !== this.#states.at(-1)) this.#states.push(...this.#states.splice(this.#states.indexOf(last), 1)) // the longest silent is dropped first
    last.timeMs = timeMs
    last.value = value
    last.buckets = buckets
    this.#fixed((buckets?.bytes ?? 0) - (before?.bytes ?? 0))
    if (isSetBack && isReset) return null // how much was added is not known
    return { fromMs, value: isReset ? buckets ?? value : added }
  }

  #push (state, max) {
    this.#states.push(state)
    this.#fixed(STATE_BYTES + (state.buckets?.bytes ?? 0))
    if (this.#states.length <= max) return
    const { startMs, buckets } = this.#states.shift()
    this.#forgottenMs = Math.max(this.#forgottenMs, startMs)
    this.#fixed(-STATE_BYTES - (buckets?.bytes ?? 0))
  }

  /** @param {number} fromMs 0 if it is not known */
  #spread (fromMs, toMs, value) {
    if (!(fromMs > 0 && fromMs < toMs)) {
      const slot = Math.floor(toMs / SLOT_MS)
      this.newestMs = Math.max(this.newestMs, (slot + 1) * SLOT_MS)
      return this.#add(slot, 0, value, 1)
    }
    this.newestMs = Math.max(this.newestMs, toMs)
    fromMs = Math.max(fromMs, toMs - SPREAD_MAX_MS)
    for (let slot = Math.floor(fromMs / SLOT_MS); slot * SLOT_MS < toMs; slot++) {
      const offsetMs = Math.max(0, fromMs - slot * SLOT_MS)
      const overlapMs = Math.min(toMs - slot * SLOT_MS, SLOT_MS) - offsetMs
      this.#add(slot, offsetMs, value, overlapMs / (toMs - fromMs))
    }
  }

  #add (slot, offsetMs, value, share) {
    const at = this.#at(slot)
    this.offsets[at] = Math.min(this.offsets[at], offsetMs)
    if (typeof value === 'number') {
      this.values[at] = (this.values[at] ?? 0) + value * share
      return
    }
    if (value.count === 0) return
    const held = this.values[at]
    const before = held?.bytes ?? 0
    if (held === null) this.values[at] = value.part(share)
    else held.add(value, share)
    this.ledger.add(slot, this.values[at].bytes - before)
  }

  #set (atMs, value) {
    this.newestMs = Math.max(this.newestMs, atMs)
    const at = this.#at(Math.floor(atMs / SLOT_MS))
    const offsetMs = atMs % SLOT_MS
    if (this.values[at] !== null && offsetMs < this.offsets[at]) return // a later value of the slot came earlier
    this.offsets[at] = offsetMs
    this.values[at] = value
  }

  #at (slot) {
    const { slots } = this
    let at = slots.length
    while (at > 0 && slots[at - 1] > slot) at--
    if (slots[at - 1] === slot) return at - 1
    if (at === slots.length) {
      slots.push(slot)
      this.offsets.push(SLOT_MS)
      this.values.push(null)
    } else {
      slots.splice(at, 0, slot)
      this.offsets.splice(at, 0, SLOT_MS)
      this.values.splice(at, 0, null)
    }
    this.ledger.add(slot, ENTRY_BYTES)
    return at
  }

  // A cumulative sender sends an exemplar again and again.
  #addExemplar ({ atMs, value, traceId, spanId }, toMs) {
    const { exemplars } = this
    if (exemplars.some((each) => each.traceId === traceId && each.spanId === spanId && each.value === value)) return
    exemplars.push({ atMs: atMs === 0 || Math.abs(toMs - atMs) > SLOTS_MAX * SLOT_MS ? toMs : Math.min(atMs, toMs), value, traceId, spanId })
    if (exemplars.length > EXEMPLARS_MAX) exemplars.shift()
    else this.#fixed(EXEMPLAR_BYTES)
  }

  /** Drops what is older than a slot. @returns {number} how many entries */
  dropBefore (slot) {
    const { slots } = this
    let count = 0
    while (count < slots.length && slots[count] < slot) {
      this.ledger.add(slots[count], -this.#entryBytes(count))
      count++
    }
    if (count > 0) for (const list of [slots, this.offsets, this.values]) list.splice(0, count)
    const kept = this.exemplars.filter(({ atMs }) => atMs >= slot * SLOT_MS)
    this.#fixed((kept.length - this.exemplars.length) * EXEMPLAR_BYTES)
    this.exemplars = kept
    return count
  }

  /** Gives back all of its memory. */
  close () {
    const entries = this.dropBefore(Infinity)
    this.#fixed(-this.fixedBytes)
    return entries
  }

  #entryBytes (at) {
    const value = this.values[at]
    return ENTRY_BYTES + (value === null || typeof value === 'number' ? 0 : value.bytes)
  }

  #fixed (bytes) {
    this.fixedBytes += bytes
    this.ledger.addFixed(bytes)
  }
}

module.exports = { MetricSeries, SLOT_MS, SLOTS_MAX, SPREAD_MAX_MS }
