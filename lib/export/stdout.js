'use strict'

// Lines of the standard output.

const { setImmediate } = require('../runtime/timers.js')

/** Writes a line. When the reader of a pipe has gone, stdout emits an error, which would end the process: our listener is there while we write. */
function toStdout () {
  let underWay = 0
  const ignore = () => {}
  return (text) => {
    const { stdout } = process
    if (underWay++ === 0) stdout.on('error', ignore)
    stdout.write(text + '\n', () => setImmediate(() => { // the error comes after this call
      if (--underWay === 0) stdout.off('error', ignore)
    }))
  }
}

/** A name is the user's, or a caller's: it must not draw lines of its own, nor control a terminal. */
function oneLine (text) {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ')
}

module.exports = { toStdout, oneLine }
