'use strict'

const { test } = require('tap')
const { RouteTemplates } = require('../../lib/otlp/templates')
const { RouteInfo, Place, PeerInfo } = require('../../lib/span/http-info')
const { ServerSpan } = require('../../lib/span/server-span')

const PIPELINE = { rootTracestate: 'ot=th:8', templateUrlLengthMax: 100, shown: (list) => list }

test('spans of one route, status, scheme and version share a template on any connection', async (t) => {
  const templates = new RouteTemplates()
  const route = new RouteInfo('GET', '', '/users')
  const first = templates.find(span(route))
  t.equal(templates.find(span(route)), first)
  t.equal(templates.find(span(route, { port: 2 })), first)
  const others = [{ status: 404 }, { scheme: 'https' }, { version: '2' }, { tracestate: 'ot=th:8' }, { url: '/users?page=2' }]
  const found = others.map((other) => templates.find(span(route, other)))
  t.equal(new Set([first, ...found]).size, 6)
  t.same(others.map((other) => templates.find(span(route, other))), found)
  t.equal(templates.count, 6)
})

test('a route with very many kinds of answers has thirty-two templates', async (t) => {
  const templates = new RouteTemplates()
  const route = new RouteInfo('GET', '', '/users')
  const found = Array.from({ length: 33 }, (_, i) => templates.find(span(route, { status: 400 + i })))
  t.equal(found.filter((template) => template !== null).length, 32)
  t.equal(found[32], null)
})

function span (route, { port = 1, scheme = 'http', version = '1.1', status = 200, url = '/users', tracestate = '' } = {}) {
  const peer = new PeerInfo(new Place('127.0.0.1', true, '', undefined, scheme, null, '127.0.0.1', '127.0.0.1', '', -1), port, 0, version, undefined, '127.0.0.1', undefined, '')
  const made = new ServerSpan(PIPELINE, 0, route, peer, url)
  made.httpStatus = status
  made.tracestate = tracestate
  return made
}
