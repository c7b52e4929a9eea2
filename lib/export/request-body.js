'use strict'

// What goes over the wire for a batch of chunks.

const { gzip } = require('./gzip')

// Two thirds of the time of the default level for a few per cent more bytes: spans repeat themselves.
const GZIP_LEVEL = 1

module.exports = { bytesOf, makeBody }

// done(parts, isGzip): in this turn where there is nothing to compress.
function makeBody (batch, prefix, isGzip, done) {
  const [{ body }] = batch
  if (body !== null) return done([body], true) // compressed: it is alone, and whole
  const parts = [prefix.head(bytesOf(batch))]
  for (const { bytes, length } of batch) parts.push(bytes.subarray(0, length))
  if (!isGzip) return done(parts, false)
  gzip(parts, GZIP_LEVEL, (error, compressed) => {
    if (error === null) done([compressed], true)
    else done(parts, false) // no memory for zlib: the collector gets it as it is
  })
}

function bytesOf (batch) {
  let bytes = 0
  for (const { length } of batch) bytes += length
  return bytes
}
