'use strict'

// One gzip member out of several buffers, made on libuv's threads; the main thread neither compresses nor
// concatenates. The buffers must not change until `done` is called. node:zlib is loaded by who needs it.

module.exports = { gzip, gunzip }

// done(error, bytes): once, never in this turn. `bytes` has an exact allocation of its own.
function gzip (parts, level, done) {
  collect(() => require('node:zlib').createGzip({ level }), parts, Infinity, done)
}

function gunzip (bytes, bytesMax, done) {
  collect(() => require('node:zlib').createGunzip(), [bytes], bytesMax, done)
}

function collect (create, parts, bytesMax, done) {
  let stream
  try {
    stream = create()
  } catch (error) { // zlib allocates its window here, and may find no memory
    process.nextTick(done, error, null)
    return
  }
  const out = []
  let byteLength = 0
  stream.on('data', (bytes) => {
    out.push(bytes)
    byteLength += bytes.length
    if (byteLength > bytesMax) stream.destroy(new RangeError('inflates to more than was deflated'))
  })
  stream.once('error', (error) => done(error, null))
  stream.once('end', () => done(null, Buffer.concat(out, byteLength)))
  for (const bytes of parts) stream.write(bytes)
  stream.end()
}
