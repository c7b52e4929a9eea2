'use strict'

const { mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { basename, join } = require('node:path')

/** Of a socket or, on Windows, a pipe. In a directory of the system's: a path of more than 103 bytes is no socket's on macOS. */
function socketPath (t) {
  const directory = mkdtempSync(join(tmpdir(), 'light-trace-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  return process.platform === 'win32' ? `\\\\?\\pipe\\${basename(directory)}` : join(directory, 'app.sock')
}

module.exports = { socketPath }
