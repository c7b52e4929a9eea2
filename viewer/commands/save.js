'use strict'

// --save: what is received is appended to a file as OTLP JSON, one request per line, as the collector's file exporter writes it.

const { createWriteStream } = require('node:fs')
const { otlpJson } = require('../views/otlp-json')

// What a slow disk may keep in memory.
const BEHIND_BYTES_MAX = 16 * 1024 * 1024

function saveTo (viewer, file, say) {
  const { saved } = viewer
  // Only its owner may read what the spans hold.
  const stream = createWriteStream(file, { flags: 'a', mode: 0o600 })
  let broken = false
  saved.file = file
  stream.on('error', (error) => {
    if (!broken) say(`${file} cannot be written: ${error.message}`)
    broken = true
  })
  viewer.receiver.save = (spans) => {
    if (spans.length === 0) return
    if (broken || stream.writableLength > BEHIND_BYTES_MAX) {
      saved.failed++
      return
    }
    saved.requests++
    stream.write(`${JSON.stringify(otlpJson(spans))}\n`)
  }
  const close = viewer.close.bind(viewer)
  viewer.close = async () => {
    await close()
    if (!broken) await new Promise((resolve) => stream.on('error', resolve).end(resolve))
  }
}

module.exports = { saveTo }
