'use strict'

// What many calls to the same place have in common: kind, name and most attributes. Made and cached by
// `instrument`; in `encoded` `otlp` keeps its bytes. See RouteFacts, which is the same for requests.

class CallFacts {
  /**
   * @param {number} kind as the API counts
   * @param {string} name
   * @param {Array} attributeList flat, of checked values
   */
  constructor (kind, name, attributeList) {
    this.kind = kind
    this.name = name
    this.attributeList = attributeList
    this.encoded = null
  }

  /** The same with more attributes. */
  with (attributeList) {
    return new CallFacts(this.kind, this.name, [...this.attributeList, ...attributeList])
  }
}

module.exports = { CallFacts }
