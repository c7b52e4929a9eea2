'use strict'

// The collector of the benches that measure latencies and throughput: while a window runs it does nothing but read bodies into
// memory that it has had from the start, and answer. It counts and checks them when it is asked, between two windows.
//
// It shares a core with the load where there are only two. Of a body of 1 MiB, ./main.js takes 1.8 ms of that core, for
// node:http, for memory of 64 KiB at a time, and for putting it together: a load that sends and measures on a schedule is late
// by as much, and its requests look slow. Here it is 0.4 ms, most of it the kernel's copy. It is not put off: a server whose
// socket is not read would send its spans in other pieces than it does to a collector.
//
// It takes OTLP protobuf with a content-length, which is what light-trace sends, and answers the outbound call of the cases that
// make one. Anything else is counted as unreadable, and makes a bench fail.

const net = require('node:net')
const { gunzipSync } = require('node:zlib')
const { answer } = require('../run/ipc')
const countSpans = require('./count-spans')
const { checkOtlp } = require('./check-samples')

// Of one request. light-trace sends 2 MiB at most.
const BODY_BYTES_MAX = 2 * 1024 * 1024
const HEAD_BYTES_MAX = 16 * 1024
// 64 MiB: what 180,000 requests leave. Beyond that it counts while the window runs.
const KEPT_MAX = 32
const SAMPLES_MAX = 12 // one of each window, the latest
const HEAD_END = '\r\n\r\n'
const ACCEPTED = Buffer.from(['HTTP/1.1 200 OK', 'content-type: application/x-protobuf', 'content-length: 0', '', ''].join('\r\n'))
const UPSTREAM = Buffer.from(['HTTP/1.1 200 OK', 'content-length: 2', '', 'ok'].join('\r\n'))

const spare = Array.from({ length: KEPT_MAX }, newMemory)
const kept = [] // { memory, from, to, isGzip } of each whole request
const samples = []
let counts = emptyCounts()

net.createServer({ pauseOnConnect: true }, takeOver).listen(0, '127.0.0.1', function () {
  process.send({ ready: true, port: this.address().port, node: process.version })
})

answer({
  // What came since the last time.
  count () {
    countKept()
    const counted = counts
    counts = emptyCounts()
    return counted
  },
  check: (expected) => checkOtlp(samples.splice(0), expected)
})

function emptyCounts () {
  return { spans: 0, bodies: 0, bytes: 0, unreadable: 0, countedEarly: 0 }
}

// node:net reads into memory of ours only where a socket is made with it.
function takeOver (accepted) {
  const handle = accepted._handle
  accepted._handle = null
  const reader = new RequestReader((response) => socket.write(response), () => socket.destroy())
  const socket = new net.Socket({ handle, onread: { buffer: () => reader.room(), callback: (bytes) => reader.read(bytes) } })
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.on('close', () => reader.close())
  socket.resume()
}

// Takes one request after the other, each into one piece of memory, head and all.
class RequestReader {
  #respond
  #onUnreadable
  #memory = takeMemory()
  #length = 0
  #bodyAt = -1 // not known yet
  #end = 0
  #isGzip = false

  constructor (respond, onUnreadable) {
    this.#respond = respond
    this.#onUnreadable = onUnreadable
  }

  room () {
    return this.#memory.subarray(this.#length)
  }

  read (bytes) {
    this.#length += bytes
    if (this.#bodyAt === -1) this.#readHead()
    if (this.#bodyAt === -1 || this.#length < this.#end) return
    if (this.#length > this.#end) return this.#fail()
    if (this.#bodyAt < this.#end) this.#keep()
    else this.#respond(UPSTREAM)
    this.#length = 0
    this.#bodyAt = -1
  }

  close () {
    spare.push(this.#memory)
  }

  #readHead () {
    const headEnd = this.#memory.subarray(0, this.#length).indexOf(HEAD_END)
    if (headEnd === -1) return
    const head = this.#memory.latin1Slice(0, headEnd).toLowerCase()
    const length = head.startsWith('get /upstream ') ? 0 : Number(/^post \S*\/v1\/traces [^]*\r\ncontent-length: *(\d+)/.exec(head)?.[1])
    this.#bodyAt = headEnd + HEAD_END.length
    this.#end = this.#bodyAt + length
    this.#isGzip = head.includes('\r\ncontent-encoding: gzip')
    if (!(this.#end <= this.#memory.length)) this.#fail()
  }

  #keep () {
    kept.push({ memory: this.#memory, from: this.#bodyAt, to: this.#end, isGzip: this.#isGzip })
    this.#memory = takeMemory()
    this.#respond(ACCEPTED)
  }

  #fail () {
    counts.unreadable++
    this.#bodyAt = -1
    this.#length = 0
    this.#onUnreadable()
  }
}

// Written to once: the pages are there.
function newMemory () {
  return Buffer.alloc(HEAD_BYTES_MAX + BODY_BYTES_MAX, 1)
}

function takeMemory () {
  if (spare.length === 0) {
    counts.countedEarly += kept.length
    countKept()
  }
  return spare.pop() ?? newMemory()
}

function countKept () {
  let lastBody = null
  for (const { memory, from, to, isGzip } of kept.splice(0)) {
    const sent = memory.subarray(from, to)
    const body = isGzip ? gunzipSync(sent) : sent
    const spans = countSpans(body)
    counts.bodies++
    counts.bytes += sent.length
    if (spans < 0) counts.unreadable++
    else {
      counts.spans += spans
      lastBody = body
    }
    spare.push(memory)
  }
  if (lastBody === null) return
  samples.push({ body: Buffer.from(lastBody) })
  if (samples.length > SAMPLES_MAX) samples.shift()
}
