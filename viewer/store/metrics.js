'use strict'

// The stored metrics: an hour in slots of 10 seconds, at most 2,000 series, in a quarter of the memory. The oldest slots make room. A metric with
// more series than the others gives its own first.

const { createHash } = require('node:crypto')
const { readRequest } = require('../otlp/request')
const { readMetric } = require('../otlp/metric')
const { readScope } = require('../otlp/span-detail')
const { plain } = require('../otlp/attributes')
const { MetricSeries, SLOT_MS, SLOTS_MAX } = require('./metric-series')
const { HeldOrigins } = require('./origin')

const SHARE_OF_METRICS = 1 / 4
const SHARE_OF_SERIES = 1 / 2 // of it: for the series themselves, so that there is room for what they measured
const SPARE = 0.9 // eviction goes down to this share of the limit, so that it does not happen at every point
const SERIES_MAX = 2000
const STALE_MS = 300_000 // a series of which nothing came for this long makes room for a new one

const KEY_MAX = 200
const VALUE_MAX = 300
const IDENTITY_MAX = 500 // longer identities are hashed

const STARTS_MAX = 32 // processes of a sender: those without a `service.instance.id` are one sender

// The memory of an instrument, of one of its senders and of a process, with their texts.
const INSTRUMENT_BYTES = 1000
const SENDER_BYTES = 300
const START_BYTES = 120

class Instrument {
  constructor (key, { name, description, unit, kind, monotonic, temporality }, scope) {
    this.key = key
    this.name = name
    this.description = description
    this.unit = unit
    this.kind = kind
    this.monotonic = monotonic
    this.temporality = temporality
    this.scope = scope
    this.series = new Map() // identity → MetricSeries
    this.senders = new Map() // origin → Sender
    this.bytes = INSTRUMENT_BYTES + 2 * (2 * key.length + description.length)
  }
}

class Sender {
  series = 0
  lastMs = 0 // when it last sent
  newestMs = 0 // until when it measured
  starts = new Map() // start of a process → when it last sent, and before that

  get bytes () { return SENDER_BYTES + this.starts.size * START_BYTES }
}

class Metrics {
  #origins
  #held
  #limit
  #now
  #instruments = new Map()
  #size = 0
  #slotBytes = new Map() // slot → bytes
  #bytes = 0
  #fixedBytes = 0
  #sweptSlot = 0
  #noneStaleBefore = 0
  #largestMax = 0 // no instrument has more series
  #points = 0
  dropped = { series: 0, malformed: 0, not_finite: 0, resource_too_large: 0, evicted: 0 }

  constructor (origins, maxBytes, now) {
    this.#origins = origins
    this.#held = new HeldOrigins(origins)
    this.#limit = maxBytes * SHARE_OF_METRICS
    this.#now = now
  }

  get bytes () { return this.#bytes }
  get size () { return this.#size }
  get stats () { return { series: this.#size, points: this.#points, bytes: this.#bytes, dropped: this.dropped } }

  /** @returns {Instrument[]} */
  instruments () {
    this.#sweep(this.#now())
    return [...this.#instruments.values()]
  }

  /** When a service last sent points, and until when it measured. */
  lastOf (service) {
    const last = { lastMs: 0, newestMs: 0 }
    for (const { senders } of this.#instruments.values()) {
      for (const [origin, { lastMs, newestMs }] of senders) {
        if (origin.service !== service) continue
        last.lastMs = Math.max(last.lastMs, lastMs)
        last.newestMs = Math.max(last.newestMs, newestMs)
      }
    }
    return last
  }

  /** Takes an ExportMetricsServiceRequest. @returns {number} how many points were dropped @throws Malformed; the points before the malformed part are kept */
  receive (body) {
    const now = this.#now()
    this.#sweep(now)
    const before = this.#lost
    let from = { described: null, origin: null, scope: '' }
    readRequest(body, (described, start, end) => {
      readMetric(body, start, end, (metric) => {
        let instrument = null
        return (point) => { // nothing is read of the scope of a metric without points
          if (from.described !== described) from = this.#fromOf(described)
          if (from.origin === null) this.dropped.resource_too_large++
          else this.#take(instrument ??= this.#instrumentOf(metric, from.scope), from.origin, point, now)
        }
      })
    })
    this.#makeRoom(this.#limit)
    return this.#lost - before
  }

  #fromOf (described) {
    const origin = this.#origins.of(described)
    return { described, origin, scope: origin === null ? '' : cut(readScope(described.scope).name, KEY_MAX) }
  }

  get #lost () {
    const { series, malformed, not_finite: notFinite, resource_too_large: tooLarge } = this.dropped
    return series + malformed + notFinite + tooLarge
  }

  // The origins are counted once in the store, and here too.
  get #used () { return this.#bytes + this.#held.bytes }

  #instrumentOf (metric, scope) {
    const key = JSON.stringify([metric.name, metric.unit, metric.kind, metric.monotonic, scope])
    const known = this.#instruments.get(key)
    if (known === undefined) return new Instrument(key, metric, scope) // is stored with its first series
    known.temporality = metric.temporality
    if (metric.description !== '') known.description = metric.description
    return known
  }

  #take (instrument, origin, point, now) {
    if (point === null || instrument.name === '' || isNegative(instrument, point)) {
      this.dropped.malformed++
      return
    }
    if (point.isAbsent) return
    if (point.buckets === null && !Number.isFinite(point.value)) {
      this.dropped.not_finite++
      return
    }
    this.#points++
    if (point.timeMs === 0) point.timeMs = now
    const known = this.#instruments.get(instrument.key) ?? instrument
    const { key, attributes } = identityOf(point.attributes)
    const identity = origin.resourceKey + key
    const series = known.series.get(identity) ?? this.#open(known, origin, identity, attributes, now)
    if (series === null) {
      this.dropped.series++
      return
    }
    const sender = known.senders.get(series.origin)
    series.take(point, now, known.temporality === 'delta' ? 0 : this.#beforeOf(sender, point, now))
    sender.lastMs = now
    sender.newestMs = Math.max(sender.newestMs, series.newestMs)
    if (this.#used > this.#limit) this.#makeRoom(this.#limit)
  }

  // When the process last sent points of this metric, before those with this time. Its start tells it from others.
  #beforeOf ({ starts }, { startMs, timeMs }, now) {
    let sent = starts.get(startMs)
    if (sent === undefined) {
      if (starts.size >= STARTS_MAX) starts.delete(starts.keys().next().value)
      else this.#addFixed(START_BYTES)
      starts.set(startMs, sent = { lastMs: 0, beforeMs: 0 })
    }
    if (sent.lastMs > now + SLOT_MS && timeMs <= now + SLOT_MS) sent.lastMs = 0 // its clock was ahead
    if (timeMs > sent.lastMs) {
      sent.beforeMs = sent.lastMs
      sent.lastMs = timeMs
    }
    return timeMs === sent.lastMs ? sent.beforeMs : 0
  }

  /** @returns {MetricSeries | null} null if there is no room */
  #open (instrument, origin, identity, attributes, now) {
    if (this.#size >= SERIES_MAX && !this.#evictStale(now) && !this.#evictOfLargest(instrument)) return null
    if (this.#fixedBytes + this.#held.bytes > this.#limit * SHARE_OF_SERIES && !this.#evictOfLargest(instrument)) return null
    if (!this.#instruments.has(instrument.key)) {
      this.#instruments.set(instrument.key, instrument)
      this.#addFixed(instrument.bytes)
    }
    const series = new MetricSeries(instrument, origin, identity, attributes, this.#ledger)
    instrument.series.set(identity, series)
    this.#held.hold(origin)
    let sender = instrument.senders.get(origin)
    if (sender === undefined) {
      instrument.senders.set(origin, sender = new Sender())
      this.#addFixed(sender.bytes)
    }
    sender.series++
    this.#size++
    this.#largestMax = Math.max(this.#largestMax, instrument.series.size)
    return series
  }

  #close (series) {
    const { instrument, origin } = series
    const entries = series.close()
    instrument.series.delete(series.key)
    this.#held.release(origin)
    const sender = instrument.senders.get(origin)
    if (--sender.series === 0) {
      instrument.senders.delete(origin)
      this.#addFixed(-sender.bytes)
    }
    if (instrument.series.size === 0) {
      this.#instruments.delete(instrument.key)
      this.#addFixed(-instrument.bytes)
    }
    this.#size--
    return entries
  }

  // Nothing is stale before the time that the last search found.
  #evictStale (now) {
    if (now < this.#noneStaleBefore) return false
    let oldest = null
    for (const { series } of this.#instruments.values()) for (const each of series.values()) if (oldest === null || each.lastMs < oldest.lastMs) oldest = each
    if (oldest === null || now - oldest.lastMs < STALE_MS) {
      this.#noneStaleBefore = (oldest?.lastMs ?? now) + STALE_MS
      return false
    }
    this.dropped.evicted += this.#close(oldest)
    return true
  }

  // The largest is not searched for again by each point that found no room.
  #evictOfLargest (instrument) {
    const least = instrument.series.size + 2
    if (this.#largestMax < least) return false
    let largest = instrument
    for (const each of this.#instruments.values()) if (each.series.size > largest.series.size) largest = each
    this.#largestMax = largest.series.size
    if (largest.series.size < least) return false
    this.dropped.evicted += this.#close(largest.series.values().next().value)
    return true
  }

  // Once a slot: drops what is older than an hour.
  #sweep (now) {
    const slot = Math.floor(now / SLOT_MS)
    if (slot === this.#sweptSlot) return
    this.#sweptSlot = slot
    for (const { series } of this.#instruments.values()) {
      for (const each of series.values()) {
        each.dropBefore(slot - SLOTS_MAX + 1)
        if (each.slots.length === 0 && now - each.lastMs >= SLOTS_MAX * SLOT_MS) this.#close(each)
      }
    }
  }

  #makeRoom (limit) {
    if (this.#used <= limit) return
    let excess = this.#used - limit * SPARE
    let cutoff = -Infinity
    for (const [slot, bytes] of [...this.#slotBytes].sort(([a], [b]) => a - b)) {
      if (excess <= 0) break
      excess -= bytes
      cutoff = slot + 1
    }
    for (const { series } of this.#instruments.values()) for (const each of series.values()) this.dropped.evicted += each.dropBefore(cutoff)
    // What is left are the series themselves.
    while (this.#used > limit * SPARE && this.#size > 0) {
      const [{ series }] = this.#instruments.values()
      this.dropped.evicted += this.#close(series.values().next().value)
    }
  }

  #ledger = {
    add: (slot, bytes) => {
      this.#bytes += bytes
      const left = (this.#slotBytes.get(slot) ?? 0) + bytes
      if (left === 0) this.#slotBytes.delete(slot)
      else this.#slotBytes.set(slot, left)
    },
    addFixed: (bytes) => this.#addFixed(bytes)
  }

  #addFixed (bytes) {
    this.#bytes += bytes
    this.#fixedBytes += bytes
  }
}

function isNegative ({ kind, monotonic }, { value }) {
  return kind === 'sum' && monotonic && value < 0
}

/** @returns {{ key: string, attributes: Map<string, string> }} the key is the same for the same attributes in another order */
function identityOf (list) {
  const sorted = list.map((attribute) => ({ name: attribute.key, type: attribute.type, text: textOf(attribute) })).sort((a, b) => a.name < b.name ? -1 : 1)
  const key = JSON.stringify(sorted.map(({ name, type, text }) => [name, type, text]))
  return {
    key: key.length > IDENTITY_MAX ? hashOf(key) : key,
    attributes: new Map(sorted.map(({ name, text }) => [cut(name, KEY_MAX), cut(text, VALUE_MAX)]))
  }
}

function hashOf (text) {
  return createHash('sha256').update(text).digest('base64')
}

function textOf (attribute) {
  const value = plain(attribute)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

// A copy, because the result of slice() keeps the whole text in memory.
function cut (text, max) {
  return text.length <= max ? text : Buffer.from(text.slice(0, max)).toString()
}

module.exports = { Metrics }
