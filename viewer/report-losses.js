'use strict'

// Runs in the app. Reports to the viewer what the tracer dropped or does not trace: once a second if this has changed, and when the app
// closes.

// Not node:http, because our own requests must not be traced.
const net = require('node:net')

// Taken at load, so that fake timers of a test do not affect it.
const { setInterval } = globalThis

const EVERY_MS = 1000
const TIMEOUT_MS = 1000

const viewer = viewerOf(process.env)
const apps = new Set()
let untraced = null
let untracedLibraries = []
let timer = null
let last = ''

function reportUntraced (what) {
  untraced ??= what
  if (viewer !== null) timer ??= setInterval(report, EVERY_MS).unref()
}

function reportLibraries (names) {
  untracedLibraries = names
}

function reportLosses (app) {
  if (viewer === null) return
  apps.add(app)
  timer ??= setInterval(report, EVERY_MS).unref()
  // preload.js explains when this hook runs.
  app.addHook('onClose', (closed, done) => {
    report(true)
    apps.delete(app)
    done()
  })
}

function viewerOf ({ LIGHT_TRACE_VIEWER: address = '', LIGHT_TRACE_VIEWER_TOKEN: token = undefined }) {
  try {
    const { hostname, port } = new URL(address)
    return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port), authorization: token === undefined ? '' : `authorization: Bearer ${token}\r\n` }
  } catch {
    return null
  }
}

function report (isLast = false) {
  try {
    const body = JSON.stringify(sum())
    if (body === last) return
    last = body
    post(body, isLast)
  } catch {
    // The app runs on without this report.
  }
}

/** Adds up the figures of all Fastify apps of the process. */
function sum () {
  const total = {
    pid: process.pid,
    service: process.env.OTEL_SERVICE_NAME ?? '',
    untraced: apps.size > 0 ? null : untraced,
    untracedLibraries,
    dropped: {},
    sent: 0,
    rejected: 0,
    unsampled: 0,
    queued: 0,
    lastError: null
  }
  for (const { lightTrace } of apps) {
    if (lightTrace === undefined || lightTrace === null) continue // the app has not loaded its plugins yet
    const { spans, lastError } = lightTrace.stats()
    for (const reason in spans.dropped) total.dropped[reason] = (total.dropped[reason] ?? 0) + spans.dropped[reason]
    if (spans.thinned > 0) total.dropped.thinned = (total.dropped.thinned ?? 0) + spans.thinned
    total.sent += spans.delivered + spans.handedOver
    total.rejected += spans.rejected
    total.unsampled += spans.unsampled
    total.queued += spans.queued
    total.lastError = lastError === null ? total.lastError : String(lastError.message ?? lastError)
  }
  return total
}

function post (body, isLast) {
  const { host, port, authorization } = viewer
  const socket = net.connect({ host, port })
  if (!isLast) socket.unref() // the last report may keep the process alive until its timeout
  socket.setTimeout(TIMEOUT_MS, () => socket.destroy())
  socket.on('error', () => {})
  socket.resume()
  socket.end(`POST /api/app HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n${authorization}connection: close\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}

module.exports = { reportLosses, reportUntraced, reportLibraries }
