'use strict'

// Writes lines to standard output.

const { setImmediate } = require('../runtime/timers.js')

/**
 * Returns a function that writes a line. If the reader of the pipe has gone, stdout emits an error that would end the process, so
 * we listen for it while a write is pending.
 */
function toStdout () {
  let underWay = 0
  const ignore = () => {}
  return (text) => {
    const { stdout } = process
    if (underWay++ === 0) stdout.on('error', ignore)
    stdout.write(text + '\n', () => setImmediate(() => { // the error is emitted after this callback
      if (--underWay === 0) stdout.off('error', ignore)
    }))
  }
}

/** Replaces line breaks and control characters: a name may come from a client, and must not add lines or control a terminal. */
function oneLine (text) {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, ' ')
}

module.exports = { toStdout, oneLine }
