// The thirty requests. Each has its own trace id, which its spans have with every tracer. The trace id of the request without a caller is
// not known in advance. It is the id that belongs to no other request.

import { once } from 'node:events'
import http from 'node:http'

export const CALLER = '00f067aa0ba902b7'
const JSON_BODY = { 'content-type': 'application/json' }

export const requests = [
  ['without a caller', { path: '/', caller: false }],
  ['with `traceparent`', { path: '/' }],
  ['a parameter', { path: '/users/7' }],
  ['a query with a token', { path: '/search?q=shoes&token=hunter2' }],
  ['`POST`', { method: 'POST', path: '/orders', headers: JSON_BODY, body: '{"count":2}' }],
  ['`HEAD`', { method: 'HEAD', path: '/users/7' }],
  ['`OPTIONS`', { method: 'OPTIONS', path: '/users/7' }],
  ['a route of two methods', { method: 'PUT', path: '/either' }],
  ['a route with a prefix and two hooks', { path: '/shop/items/3' }],
  ['a redirect', { path: '/moved' }],
  ['no route', { path: '/nothing' }],
  ['no route, own handler', { path: '/shop/nothing' }],
  ['a malformed URL', { path: '/%E0%A4%A' }],
  ['a body that is not valid', { method: 'POST', path: '/orders', headers: JSON_BODY, body: '{"count":"many"}' }],
  ['a body that is not JSON', { method: 'POST', path: '/orders', headers: JSON_BODY, body: '{' }],
  ['an error with status 404', { path: '/throws-404' }],
  ['an error', { path: '/throws' }],
  ['an error that was sent', { path: '/sends-error' }],
  ['503 without an error', { path: '/answers-503' }],
  ['a hook that fails', { path: '/hook-fails' }],
  ['a hook that answers', { path: '/hook-answers' }],
  ['an error handler that answers 422', { path: '/handled' }],
  ['a stream', { path: '/stream' }],
  ['a stream that breaks', { path: '/broken-stream' }],
  ['a client that disconnects', { path: '/never', leaves: true }],
  ['`reply.hijack`', { path: '/hijacked' }],
  ['an attribute by the API', { path: '/attribute' }],
  ['a span made with the API', { path: '/own-span' }],
  ['a log line', { path: '/log' }],
  ['a call by `fetch`', { path: '/fetch' }]
].map(([name, request], index) => ({ name, ...request, traceId: (index + 1).toString(16).padStart(32, '0') }))

/** Sends a request and reads its answer. @returns {Promise<{ status: number, body: string, headers: object }>} body: '' if it was aborted */
export async function send (origin, { method = 'GET', path, headers = {}, body, caller = true, leaves = false, traceId }) {
  const traceparent = caller ? { traceparent: `00-${traceId}-${CALLER}-01` } : {}
  const request = http.request(origin, { method, path, headers: { ...headers, ...traceparent }, agent: false })
  request.end(body)
  const [response] = await once(request, 'response')
  const pieces = []
  response.on('data', (piece) => pieces.push(piece))
  response.on('error', () => {}) // for the stream that fails, and for our own disconnect
  const closed = new Promise((resolve) => response.once('close', resolve))
  if (leaves) response.destroy()
  await closed
  return { status: response.statusCode, headers: response.headers, body: response.complete ? Buffer.concat(pieces).toString() : '' }
}
