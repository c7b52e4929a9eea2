'use strict'

// A tunnel through an HTTP proxy (RFC 9110, 9.3.6): CONNECT, and when the proxy says 2xx everything that follows is the
// collector's. Loaded only where there is a proxy and the collector's URL has https:.

const { printable } = require('../../runtime/printable')

const HEAD_LENGTH_MAX = 16_384
const HEAD_END = '\r\n\r\n'
const STATUS_LINE = /^HTTP\/1\.\d (\d{3})[^\r\n]*/

/**
 * @param {net.Socket} socket connected to the proxy
 * @param {string} target host and port of the collector
 * @param {string} authorization '' or the value of Proxy-Authorization
 * @param {(error: Error | null) => void} done is called at most once; not where the socket is closed before
 */
function openTunnel (socket, target, authorization, done) {
  const credentials = authorization === '' ? '' : `proxy-authorization: ${authorization}\r\n`
  let head = ''
  function onData (bytes) {
    head += bytes.toString('latin1')
    const end = head.indexOf(HEAD_END)
    if (end === -1 && head.length <= HEAD_LENGTH_MAX) return
    socket.off('data', onData)
    done(refusal(head, end, target))
  }
  socket.on('data', onData)
  socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\nproxy-connection: keep-alive\r\n${credentials}\r\n`, 'latin1')
}

// In TLS the client speaks first: bytes behind the head are none of the collector's.
function refusal (head, end, target) {
  const status = STATUS_LINE.exec(head)
  if (status === null || end === -1) return tunnelError('does not answer CONNECT with HTTP/1.1')
  if (!status[1].startsWith('2')) return tunnelError(`answers '${printable(status[0], 64)}' to CONNECT ${target}${status[1] === '407' ? '; user and password belong into its URL' : ''}`)
  return head.length > end + HEAD_END.length ? tunnelError('sends more than an answer to CONNECT') : null
}

function tunnelError (what) {
  return Object.assign(new Error(`the proxy ${what}`), { code: 'ERR_PROXY_TUNNEL' })
}

module.exports = { openTunnel }
