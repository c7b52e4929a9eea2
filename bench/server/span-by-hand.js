'use strict'

// What a careful team would write with the SDK alone: two hooks, one SERVER span with the attributes that light-trace sets, and the
// context active for the request.

module.exports = spanByHand

const SPAN = Symbol('bench.span')

function spanByHand (app, { api, tracer }) {
  const { context, propagation, trace, ROOT_CONTEXT, SpanKind, SpanStatusCode } = api

  app.addHook('onRequest', (request, reply, done) => {
    const parent = propagation.extract(ROOT_CONTEXT, request.headers)
    const route = request.routeOptions.url
    const { socket } = request
    const query = request.url.indexOf('?')
    const span = tracer.startSpan(`${request.method} ${route}`, {
      kind: SpanKind.SERVER,
      attributes: {
        'http.request.method': request.method,
        'http.route': route,
        'url.path': query === -1 ? request.url : request.url.slice(0, query),
        'url.scheme': request.protocol,
        'server.address': request.hostname,
        'server.port': request.port,
        'client.address': request.ip,
        'network.peer.address': socket.remoteAddress,
        'network.peer.port': socket.remotePort,
        'network.protocol.version': request.raw.httpVersion
      }
    }, parent)
    const userAgent = request.headers['user-agent']
    if (userAgent !== undefined) span.setAttribute('user_agent.original', userAgent)
    request[SPAN] = span
    context.with(trace.setSpan(parent, span), done)
  })

  app.addHook('onResponse', (request, reply, done) => {
    const span = request[SPAN]
    span.setAttribute('http.response.status_code', reply.statusCode)
    if (reply.statusCode >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
    span.end()
    done()
  })
}
