'use strict'
class TraceState { constructor (t) { this.t = t } serialize () { return this.t } }
module.exports = { cleanTracestate: (v) => typeof v === 'string' ? v : '', TraceState }
