'use strict'

// --save: appends what is received to a file as OTLP JSON, one request per line, in the format of the collector's file exporter.

const { createWriteStream, fchmodSync, fstatSync } = require('node:fs')
const { otlpText } = require('../views/otlp-json')

// The most that waits in memory for the disk. The portions of one request wait together, because it is read without a pause.
const BEHIND_BYTES_MAX = 64 * 1024 * 1024

const OWNER_ONLY = 0o600

function saveTo (viewer, file, say) {
  const { saved } = viewer
  const stream = ownFile(file, 'a')
  let broken = false
  saved.file = file
  stream.on('error', (error) => {
    if (!broken) say(`${file} cannot be written: ${error.message}`)
    broken = true
  })
  viewer.receiver.save = (spans, lines) => {
    if (spans.length === 0 && lines.length === 0) return
    if (broken || stream.writableLength > BEHIND_BYTES_MAX) {
      saved.failed++
      return
    }
    saved.requests++
    stream.write(`${otlpText(spans, lines)}\n`)
  }
  const close = viewer.close.bind(viewer)
  viewer.close = async () => {
    await close()
    if (!broken) await new Promise((resolve) => stream.on('error', resolve).end(resolve))
  }
}

/** Opens a file that only its owner may read, because spans may hold private data. An existing file also gets this mode. */
function ownFile (file, flags) {
  const stream = createWriteStream(file, { flags, mode: OWNER_ONLY })
  return stream.on('open', (fd) => {
    try {
      if (fstatSync(fd).isFile()) fchmodSync(fd, OWNER_ONLY)
    } catch (error) {
      stream.destroy(error)
    }
  })
}

module.exports = { saveTo, ownFile }
