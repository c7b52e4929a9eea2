'use strict'

// The twin of a span that is not recorded: the same methods, the same ids outward, no work.

const { TraceContext } = require('../context/trace-context')

class UnsampledSpan extends TraceContext {
  isRecording () { return false }
  setAttribute () { return this }
  setAttributes () { return this }
  addEvent () { return this }
  addLink () { return this }
  addLinks () { return this }
  setStatus () { return this }
  updateName () { return this }
  recordException () {}
  end () {}

  // ---- what a record of a request answers, see instrument/fastify.js
  fail () {}
  close () {}
}

/** For requests without any trace: switched off, ignored, or before our hook. Its ids are all zero. */
const NO_SPAN = Object.freeze(new UnsampledSpan())

module.exports = { UnsampledSpan, NO_SPAN }
