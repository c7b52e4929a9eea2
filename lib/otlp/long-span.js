'use strict'

// Spans that are longer than a chunk, or seem to be: their bytes are counted, not estimated. If they are more than one span
// may have, the longest values are cut to a common length until the span fits. Few spans come here; it may take its time.

const { attributesLength, valueLength, isCuttable, cutValue, commonLength, cutText, TEXT_OVERHEAD } = require('./value-length')
const { varintLength } = require('./proto-writer')
const { tracestateOf } = require('./details-encoder')
const { OFFSET_FLAGS } = require('./route-template')
const { SpanDetails } = require('../span/recording-span')
const { PARENT_NONE } = require('../context/trace-context')

const HEAD_BYTES = OFFSET_FLAGS + 4 + 2 // and the kind
const PARENT_BYTES = 10
const EVENT_BYTES = 5 + 9 // tag, length, time
const LINK_BYTES = 5 + 18 + 10 + 5 // tag, length, ids, flags
const STATUS_BYTES = 5 + 2 // tag, length, code
// What a counter of dropped attributes can grow by when a value is cut.
const COUNTER_GROWTH = 4
// A text, a list or a map of which nothing is left.
const EMPTY_VALUE = TEXT_OVERHEAD

/** Exactly the bytes that SpanEncoder.encodeWhole writes. */
function spanLength (span) {
  return HEAD_BYTES + TEXT_OVERHEAD + Buffer.byteLength(span.name) + attributesLength(span.allAttributes()) +
    optionalTextLength(span.exportedTracestate) + (span.parentKind === PARENT_NONE ? 0 : PARENT_BYTES) +
    counterLength(span.droppedAttributesCount) + (span.details === null ? 0 : detailsLength(span.details))
}

function detailsLength ({ events, links, droppedEvents, droppedLinks, statusCode, statusMessage }) {
  let length = counterLength(droppedEvents) + counterLength(droppedLinks)
  for (const { name, list, droppedAttributesCount } of events) {
    length += EVENT_BYTES + TEXT_OVERHEAD + Buffer.byteLength(name) + attributesLength(list) + counterLength(droppedAttributesCount)
  }
  for (const { context, list, droppedAttributesCount } of links) {
    length += LINK_BYTES + optionalTextLength(tracestateOf(context)) + attributesLength(list) + counterLength(droppedAttributesCount)
  }
  return statusCode === 0 ? length : length + STATUS_BYTES + optionalTextLength(statusMessage)
}

function optionalTextLength (text) {
  return text === '' ? 0 : TEXT_OVERHEAD + Buffer.byteLength(text)
}

function counterLength (count) {
  return count === 0 ? 0 : 1 + varintLength(count)
}

/**
 * The span with its longest values cut so that it takes at most `lengthMax` bytes. The span itself stays as it is: its
 * user may still read it.
 * @returns {CutSpan | null} null: names, keys and numbers alone are longer
 */
function cutToFit (span, length, lengthMax) {
  const cut = new CutSpan(span)
  const values = cut.cuttableValues()
  const lengths = values.map((value) => value.length)
  if (cut.statusMessage !== '') lengths.push(TEXT_OVERHEAD + Buffer.byteLength(cut.statusMessage))
  const fixed = length - lengths.reduce((sum, each) => sum + each, 0) + cut.owners.length * COUNTER_GROWTH
  const valueLengthMax = commonLength(lengths, lengthMax - fixed)
  if (valueLengthMax < EMPTY_VALUE) return null
  cut.cutValues(values, valueLengthMax)
  return cut
}

/** What the encoder reads of a span, with values of its own. */
class CutSpan {
  constructor (span) {
    for (const field of ['t0', 't1', 't2', 't3', 's0', 's1', 'p0', 'p1', 'flags', 'parentKind', 'start', 'endedAt', 'scope', 'kind', 'name', 'exportedTracestate']) this[field] = span[field]
    this.list = [...span.allAttributes()]
    this.droppedAttributesCount = span.droppedAttributesCount
    this.attributeList = null // all of them are in `list`
    this.details = span.details === null ? null : copyDetails(span.details)
    this.valueLengthMax = Infinity
  }

  allAttributes () {
    return this.list
  }

  get statusMessage () {
    return this.details === null ? '' : this.details.statusMessage
  }

  /** Whatever has attributes. */
  get owners () {
    return this.details === null ? [this] : [this, ...this.details.events, ...this.details.links]
  }

  cuttableValues () {
    const values = []
    for (const owner of this.owners) {
      const { list } = owner
      for (let i = 1; i < list.length; i += 2) if (isCuttable(list[i])) values.push({ owner, i, length: valueLength(list[i]) })
    }
    return values
  }

  /** A value that is cut counts as one that was dropped, as those do that a limit of ours has cut. */
  cutValues (values, lengthMax) {
    this.valueLengthMax = lengthMax
    for (const { owner, i, length } of values) {
      if (length <= lengthMax) continue
      owner.list[i] = cutValue(owner.list[i], lengthMax)
      owner.droppedAttributesCount++
    }
    if (this.details !== null) this.details.statusMessage = cutText(this.details.statusMessage, lengthMax - TEXT_OVERHEAD)
  }
}

function copyDetails (details) {
  return Object.assign(new SpanDetails(), details, { events: details.events.map(copyOwner), links: details.links.map(copyOwner) })
}

function copyOwner (owner) {
  return { ...owner, list: [...owner.list] }
}

module.exports = { spanLength, cutToFit }
