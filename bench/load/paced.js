'use strict'

// A window of load: plain requests at a fixed rate, spread evenly, over raw sockets that stay open from one window to the
// next. The load has its core to itself, so it may spin: at each turn of its loop it sends what has become due since the last.
//
// A request's latency counts from when it was due, also where no connection was free then (no coordinated omission). How
// late the load's own turns came is in the latencies too, and is told apart: it is the instrument's, not the server's.

const { createHistogram } = require('node:perf_hooks')
const { openSockets, batchOf, lengthOf } = require('./slices')

const connectionsOf = new Map() // by port

// → { requests, latencyMs, lateMs, behind }; behind: due when the time was over, and not sent yet
module.exports = async function runPaced ({ port, rate, seconds, connections, path, headers = {}, answer }) {
  if (!connectionsOf.has(port)) connectionsOf.set(port, (await openSockets(port, connections)).map(connectionOf))
  return new Promise((resolve, reject) => {
    startWindow({ connections: connectionsOf.get(port), rate, seconds, request: batchOf({ path, headers, pipelining: 1 }).bytes, answer }, resolve, reject)
  })
}

// onAnswer, onError: of the window that is running
function connectionOf (socket) {
  const connection = { socket, dueAt: 0, answerBytes: 0, got: 0, isClosed: false, onAnswer: null, onError: null }
  socket.on('data', (chunk) => receive(connection, chunk))
  socket.on('close', () => {
    connection.isClosed = true
    connection.onError?.(new Error('the server closed a connection'))
  })
  return connection
}

function startWindow ({ connections, rate, seconds, request, answer }, resolve, reject) {
  const free = [...connections]
  const latency = microseconds()
  const late = microseconds()
  const total = Math.round(rate * seconds)
  const everyMs = 1000 / rate
  let sent = 0
  let answered = 0
  let behind = -1
  let lastTurn = 0
  if (connections.some(({ isClosed }) => isClosed)) throw new Error('the server closed a connection between two windows')
  for (const connection of connections) Object.assign(connection, { answer, onAnswer, onError })
  const startedAt = performance.now()
  setImmediate(turn)

  function turn () {
    const now = performance.now() - startedAt
    const due = Math.min(total, Math.floor(now / everyMs) + 1)
    // Of those that became due since the last turn: the others waited for a connection.
    for (let i = Math.floor(lastTurn / everyMs) + 1; i < due; i++) record(late, now - i * everyMs)
    lastTurn = now
    if (due === total && behind === -1) behind = total - sent
    while (sent < due && free.length > 0) {
      const connection = free.shift()
      connection.dueAt = startedAt + sent++ * everyMs
      connection.socket.write(request)
    }
    if (answered < total) setImmediate(turn)
    else end()
  }

  function onAnswer (connection) {
    record(latency, performance.now() - connection.dueAt)
    answered++
    free.push(connection)
  }

  function onError (error) {
    answered = total // no more turns
    reject(error)
  }

  function end () {
    for (const connection of connections) connection.onAnswer = connection.onError = null
    resolve({ requests: answered, latencyMs: percentiles(latency), lateMs: percentiles(late), behind })
  }
}

function receive (connection, chunk) {
  const { answer } = connection
  if (connection.onAnswer === null) return connection.socket.destroy(new Error('an answer that nobody asked for'))
  if (connection.answerBytes === 0) connection.answerBytes = lengthOf(chunk, answer)
  connection.got += chunk.length
  if (connection.got < connection.answerBytes) return
  if (connection.got > connection.answerBytes || !chunk.subarray(-answer.length).equals(answer)) return connection.onError(new Error(`unexpected answer: ${chunk.subarray(-200)}`))
  connection.got = 0
  connection.onAnswer(connection)
}

function microseconds () {
  return createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 })
}

function record (histogram, ms) {
  histogram.record(Math.max(1, Math.round(ms * 1000)))
}

function percentiles (histogram) {
  const of = (percent) => histogram.percentile(percent) / 1000
  return { p50: of(50), p99: of(99), p999: of(99.9), max: histogram.max / 1000 }
}
