'use strict'

// What became of a response, asked once, when it closes. The table is facts/channels.md §3.3; what counts
// as an error is design.md D13.

const ABORTED = 'aborted'
const TERMINATED = 'response_terminated'

/** '' for a whole response, or one whose early end is the normal one; else the `error.type`. HOT */
function unfinished (response, reply) {
  // `writableFinished` alone would be wrong for inject() and for HTTP/2.
  if (response.writableEnded && (response.writableFinished || !socketGone(response))) return ''
  return brokenOff(response, reply)
}

function socketGone (response) {
  const { socket } = response
  return socket !== null && socket !== undefined && socket.destroyed === true
}

function brokenOff (response, reply) {
  // Before the response has ended, only a hijacked reply counts as sent.
  const hijacked = !response.writableEnded && reply.sent
  if (response.headersSent && (hijacked || isEventStream(response) || response.statusCode === 101)) return ''
  return clientLeft(response) ? ABORTED : TERMINATED
}

function isEventStream (response) {
  try {
    return String(response.getHeader('content-type')).startsWith('text/event-stream')
  } catch {
    return false
  }
}

/** The client's end is seen on the socket: it sent FIN, or reset. Ours is a socket destroyed without either. */
function clientLeft (response) {
  const { stream } = response
  if (stream !== undefined && stream !== null && typeof stream.rstCode === 'number') return http2ClientLeft(stream)
  const socket = response.req?.socket ?? response.socket
  if (socket === null || socket === undefined) return false
  if (response.errored) return false
  const code = socket.errored?.code
  return socket.readableEnded === true || code === 'ECONNRESET' || code === 'EPIPE' || code === 'ECONNABORTED'
}

function http2ClientLeft (stream) {
  return stream.aborted === true && !stream.errored
}

module.exports = { unfinished, ABORTED, TERMINATED }
