'use strict'

const { mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { basename, join } = require('node:path')

/** Returns a path for a Unix socket or, on Windows, a pipe. It is in the system's temporary directory, because macOS allows at most 103 bytes for a socket's path. */
function socketPath (t) {
  const directory = mkdtempSync(join(tmpdir(), 'light-trace-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  return process.platform === 'win32' ? `\\\\?\\pipe\\${basename(directory)}` : join(directory, 'app.sock')
}

module.exports = { socketPath }
