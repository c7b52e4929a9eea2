'use strict'

const STATUSES_MAX = 16

/** What many calls to the same place have in common. Made and cached by lib/outbound; RouteInfo is the same for requests. */
class CallInfo {
  #withStatus = new Map() // status -> CallInfo

  /**
   * @param {number} kind as the API counts
   * @param {string} name
   * @param {Array} attributeList flat, of checked values
   * @param {string} [origin] what the last attribute begins with: `url.full` with the URL's origin, `db.query.text` with the
   *   command; '' where calls have none. The span has the rest, as its target.
   * @param {string} [openKey] of that attribute, of fewer than 128 bytes
   */
  constructor (kind, name, attributeList, origin = '', openKey = 'url.full') {
    this.kind = kind
    this.name = name
    this.attributeList = attributeList
    this.origin = origin
    this.openKey = openKey
    this.operandRule = undefined // of a Redis command: which arguments behind `origin` may be recorded
    this.encoded = null // the encoder's bytes
    this.urlOffset = 0 // in `encoded`, of the length of the attribute `openKey`
    this.series = null // of its metrics, and whose they are: see metrics/call-metrics.js
    this.seriesOwner = null
  }

  /** The same with more attributes. */
  with (attributeList) {
    return new CallInfo(this.kind, this.name, [...this.attributeList, ...attributeList], this.origin, this.openKey)
  }

  /** The same with what a response's status says, made once for each status; null when there are too many. */
  // HOT, once per outgoing call.
  withStatus (status, attributesOf) {
    const found = this.#withStatus.get(status)
    if (found !== undefined) return found
    if (this.#withStatus.size === STATUSES_MAX) return null
    const info = this.with(attributesOf(status))
    this.#withStatus.set(status, info)
    return info
  }

  /** How many attributes a span has of them. */
  get attributeCount () {
    return this.attributeList.length / 2 + (this.origin === '' ? 0 : 1)
  }

  /** All attributes of a call, flat. */
  allAttributes (target, own) {
    const open = this.origin === '' ? [] : [this.openKey, this.origin + target]
    return [...this.attributeList, ...open, ...own]
  }
}

module.exports = { CallInfo }
