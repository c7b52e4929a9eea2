'use strict'

// Traces as OTLP JSON, for the viewer's tests, pictures and figures: a shop with two services, and traces that no correct sender makes. The
// same seed gives the same traces, except for their times.

const KIND = { INTERNAL: 1, SERVER: 2, CLIENT: 3, PRODUCER: 4, CONSUMER: 5 }
const SCOPE = { name: 'light-trace', version: '0.1.0' }

const ROUTES = [
  { method: 'GET', route: '/products', path: () => '/products', share: 0.3, base: 4 },
  { method: 'GET', route: '/users/:id', path: (n) => `/users/${n}`, share: 0.3, base: 7 },
  { method: 'POST', route: '/orders', path: () => '/orders', share: 0.2, base: 38 },
  { method: 'GET', route: '/orders/:id/invoice', path: (n) => `/orders/${n}/invoice`, share: 0.12, base: 120 },
  { method: 'DELETE', route: '/sessions', path: () => '/sessions', share: 0.08, base: 2 }
]

const HOSTILE = {
  script: '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">',
  url: 'javascript:window.hacked=3',
  control: 'bell\u0007 null\u0000 escape\u001b[31m',
  turned: 'user\u202etxt.exe',
  surrogate: 'half \ud83d of a pair',
  lines: 'one\ntwo\r\nthree\u2028four',
  wide: '\ufdfd'.repeat(40) + 'Z\u0351\u036b\u0343\u036a'.repeat(30)
}

module.exports = { shop, request, bigTrace, deepTrace, orphans, circle, clockOff, hostile, HOSTILE, otlp, span, ids }

/** Seeded ids and random numbers. */
function ids (seed = 1) {
  let state = seed >>> 0
  const chance = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const hex = (digits) => Array.from({ length: digits }, () => Math.floor(chance() * 16).toString(16)).join('').replace(/^0/, '1')
  return { chance, trace: () => hex(32), span: () => hex(16) }
}

/**
 * Returns a span as OTLP JSON.
 * @param {object} of start and ms in milliseconds; attributes as an object; `service` chooses its resource
 */
function span ({ traceId, id, parent = '', name, kind = 'INTERNAL', start, ms, attributes = {}, error, events = [], links = [], ...rest }) {
  return {
    traceId,
    spanId: id,
    parentSpanId: parent,
    name,
    kind: KIND[kind],
    startTimeUnixNano: nano(start),
    endTimeUnixNano: nano(start + ms),
    attributes: keyValues(attributes),
    events: events.map((event) => ({ name: event.name, timeUnixNano: nano(event.at), attributes: keyValues(event.attributes ?? {}) })),
    links: links.map((link) => ({ traceId: link.traceId, spanId: link.spanId, attributes: keyValues(link.attributes ?? {}) })),
    status: error === undefined ? {} : { code: 2, message: error },
    ...rest
  }
}

function nano (ms) {
  const whole = Math.floor(ms)
  return String(BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6)))
}

function keyValues (attributes) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(value) }))
}

function valueOf (value) {
  if (typeof value === 'boolean') return { boolValue: value }
  if (Number.isInteger(value)) return { intValue: String(value) }
  if (typeof value === 'number') return { doubleValue: value }
  if (Array.isArray(value)) return { arrayValue: { values: value.map(valueOf) } }
  return { stringValue: String(value) }
}

/** Returns a body for POST /v1/traces. @param {object} byService spans by the name of their service */
function otlp (byService) {
  return {
    resourceSpans: Object.entries(byService).filter(([, spans]) => spans.length > 0).map(([service, spans]) => ({
      resource: { attributes: keyValues({ 'service.name': service, 'telemetry.sdk.name': 'light-trace', 'telemetry.sdk.language': 'nodejs', 'process.pid': 4711, 'host.name': 'laptop' }) },
      scopeSpans: [{ scope: SCOPE, spans }]
    }))
  }
}

/** Requests of a shop over the last minutes. @returns {object[]} one body per request, oldest first */
function shop ({ count = 60, seed = 7, endMs = Date.now(), everyMs = 900 } = {}) {
  const made = ids(seed)
  return Array.from({ length: count }, (_, index) => request({ made, start: endMs - (count - index) * everyMs, index }))
}

/** One request of the shop. */
function request ({ made = ids(), start = Date.now(), index = 0, route = choose(made.chance()), fail = made.chance() < 0.07, slow = made.chance() < 0.06 ? 6 : 1, traceId = made.trace() }) {
  const total = route.base * slow * (0.7 + made.chance() * 0.9)
  const number = 1 + Math.floor(made.chance() * 400)
  const status = fail ? 500 : route.route === '/users/:id' && made.chance() < 0.08 ? 404 : route.method === 'POST' ? 201 : 200
  const root = made.span()
  const stackAt = `at loadUser (/app/users.js:${12}:7)\n    at async Object.handler (/app/routes/users.js:31:18)\n    at async preHandler (/app/node_modules/fastify/lib/hooks.js:340:9)\n    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)`
  const message = `The stock of item ${number} could not be read: connection refused`
  const spans = { shop: [], stock: [] }
  const add = (service, of) => {
    const id = made.span()
    spans[service].push(span({ traceId, id, ...of, start: start + of.from, ms: of.ms }))
    return id
  }
  spans.shop.push(span({
    traceId,
    id: root,
    name: `${route.method} ${route.route}`,
    kind: 'SERVER',
    start,
    ms: total,
    error: fail ? message : undefined,
    attributes: {
      'http.request.method': route.method, 'http.route': route.route, 'url.path': route.path(number), 'url.scheme': 'http', 'http.response.status_code': status, 'server.address': '127.0.0.1', 'server.port': 3000, 'client.address': '127.0.0.1', 'user_agent.original': 'curl/8.9.1', 'network.protocol.version': '1.1', ...(fail ? { 'error.type': 'StockError' } : {}), tenant: ['acme', 'globex', 'initech'][index % 3]
    },
    events: fail ? [{ name: 'exception', at: start + total * 0.9, attributes: { 'exception.type': 'StockError', 'exception.message': message, 'exception.stacktrace': `StockError: ${message}\n    ${stackAt}` } }] : []
  }))
  const auth = add('shop', { name: 'preHandler authenticate', parent: root, from: total * 0.04, ms: total * 0.14 })
  add('shop', { name: 'GET session', kind: 'CLIENT', parent: auth, from: total * 0.06, ms: total * 0.1, attributes: { 'db.system.name': 'redis', 'db.operation.name': 'GET', 'server.address': 'redis' } })
  if (route.base < 3) return otlp(spans)
  const handler = add('shop', { name: 'handler', parent: root, from: total * 0.2, ms: total * 0.77, events: [{ name: 'cache miss', at: start + total * 0.24, attributes: { key: `item:${number}` } }] })
  add('shop', { name: 'SELECT items', kind: 'CLIENT', parent: handler, from: total * 0.23, ms: total * 0.2, attributes: { 'db.system.name': 'postgresql', 'db.collection.name': 'items', 'db.query.text': 'SELECT id, name, price FROM items WHERE id = ANY($1) ORDER BY name' } })
  if (route.base > 6) {
    const call = add('shop', { name: 'GET', kind: 'CLIENT', parent: handler, from: total * 0.44, ms: total * 0.46, error: fail ? 'connection refused' : undefined, attributes: { 'http.request.method': 'GET', 'url.full': `http://stock:3001/items/${number}`, 'server.address': 'stock', 'server.port': 3001, ...(fail ? { 'error.type': 'ECONNREFUSED' } : { 'http.response.status_code': 200 }) } })
    add('shop', { name: 'render', parent: handler, from: total * 0.5, ms: total * 0.2 })
    if (!fail) {
      const there = add('stock', { name: 'GET /items/:id', kind: 'SERVER', parent: call, from: total * 0.5, ms: total * 0.36, attributes: { 'http.request.method': 'GET', 'http.route': '/items/:id', 'url.path': `/items/${number}`, 'http.response.status_code': 200 } })
      add('stock', { name: 'SELECT stock', kind: 'CLIENT', parent: there, from: total * 0.53, ms: total * 0.28, attributes: { 'db.system.name': 'postgresql', 'db.query.text': 'SELECT count FROM stock WHERE item = $1' } })
    }
  }
  if (route.base > 30 && !fail) {
    for (let nth = 0; nth < 3; nth++) add('shop', { name: 'INSERT order_items', kind: 'CLIENT', parent: handler, from: total * (0.9 + nth * 0.02), ms: total * 0.015, attributes: { 'db.system.name': 'postgresql' } })
  }
  return otlp(spans)
}

function choose (chance) {
  let sum = 0
  return ROUTES.find(({ share }) => (sum += share) > chance) ?? ROUTES[0]
}

/** A trace of many spans: hundreds of branches, a tenth of them with a failed span. */
function bigTrace ({ spans = 10_000, seed = 3, start = Date.now() - 5000, traceId = ids(seed).trace() } = {}) {
  const made = ids(seed + 1)
  const root = made.span()
  const list = [span({ traceId, id: root, name: 'GET /report', kind: 'SERVER', start, ms: 2000, attributes: { 'http.request.method': 'GET', 'http.route': '/report', 'url.path': '/report', 'http.response.status_code': 200 } })]
  const branches = Math.ceil(spans / 50)
  for (let branch = 0; list.length < spans; branch++) {
    const from = start + branch * 1990 / branches
    const above = made.span()
    list.push(span({ traceId, id: above, parent: root, name: `page ${branch}`, start: from, ms: 1990 / branches, error: branch % 10 === 3 ? 'no such page' : undefined }))
    let parent = above
    for (let nth = 0; nth < 49 && list.length < spans; nth++) {
      const id = made.span()
      list.push(span({ traceId, id, parent: nth % 7 === 0 ? above : parent, name: nth % 3 === 0 ? 'SELECT rows' : 'format', kind: nth % 3 === 0 ? 'CLIENT' : 'INTERNAL', start: from + nth * 0.15, ms: 0.4, attributes: { 'db.system.name': 'postgresql', nth } }))
      parent = id
    }
  }
  return { traceId, root, body: otlp({ reports: list }) }
}

/** A trace in which each span has one child. */
function deepTrace ({ depth = 3000, seed = 5, start = Date.now() - 4000 } = {}) {
  const made = ids(seed)
  const traceId = made.trace()
  let parent = ''
  const list = Array.from({ length: depth }, (_, level) => {
    const id = made.span()
    const each = span({ traceId, id, parent, name: `level ${level}`, start: start + level * 0.1, ms: 1000 - level * 0.2 })
    parent = id
    return each
  })
  return { traceId, body: otlp({ deep: list }) }
}

/** Two spans whose parent arrives later. @returns {{ traceId, parentId, body, rest }} rest: the parent */
function orphans ({ seed = 11, start = Date.now() - 3000 } = {}) {
  const made = ids(seed)
  const [traceId, root, parentId] = [made.trace(), made.span(), made.span()]
  const attributes = { 'http.request.method': 'GET', 'http.route': '/slow', 'url.path': '/slow', 'http.response.status_code': 200 }
  return {
    traceId,
    parentId,
    body: otlp({
      shop: [
        span({ traceId, id: root, name: 'GET /slow', kind: 'SERVER', start, ms: 100, attributes }),
        span({ traceId, id: made.span(), parent: parentId, name: 'read one', start: start + 20, ms: 20 }),
        span({ traceId, id: made.span(), parent: parentId, name: 'read two', start: start + 45, ms: 20 })
      ]
    }),
    rest: otlp({ shop: [span({ traceId, id: parentId, parent: root, name: 'read all', start: start + 15, ms: 60 })] })
  }
}

/** Spans that are each other's parents, a span that is its own parent, and a duplicate id. */
function circle ({ seed = 13, start = Date.now() - 2500 } = {}) {
  const made = ids(seed)
  const [traceId, a, b, c, own] = [made.trace(), made.span(), made.span(), made.span(), made.span()]
  const of = (id, parent, name, from) => span({ traceId, id, parent, name, start: start + from, ms: 10 })
  return {
    traceId,
    body: otlp({ odd: [of(a, c, 'first', 0), of(b, a, 'second', 1), of(c, b, 'third', 2), of(own, own, 'its own parent', 3), of(own, a, 'the same id', 4)] })
  }
}

/** A service whose clock is three hours slow, and a span that ends before it starts. */
function clockOff ({ seed = 17, start = Date.now() - 2000 } = {}) {
  const made = ids(seed)
  const [traceId, root, call, there] = [made.trace(), made.span(), made.span(), made.span()]
  const hours = 3 * 3_600_000
  return {
    traceId,
    body: otlp({
      shop: [
        span({ traceId, id: root, name: 'GET /far', kind: 'SERVER', start, ms: 80, attributes: { 'http.request.method': 'GET', 'http.route': '/far', 'url.path': '/far', 'http.response.status_code': 200 } }),
        span({ traceId, id: call, parent: root, name: 'GET', kind: 'CLIENT', start: start + 10, ms: 60 })
      ],
      far: [
        span({ traceId, id: there, parent: call, name: 'GET /there', kind: 'SERVER', start: start - hours, ms: 40, attributes: { 'http.request.method': 'GET', 'http.route': '/there' } }),
        span({ traceId, id: made.span(), parent: there, name: 'ends before it starts', start: start - hours + 30, ms: -20 })
      ]
    })
  }
}

/** Everything that a sender may write into a string, in every place for a string. */
function hostile ({ seed = 19, start = Date.now() - 1500, longValue = 10_000_000 } = {}) {
  const made = ids(seed)
  const [traceId, root] = [made.trace(), made.span()]
  const spans = Object.entries(HOSTILE).map(([what, text], index) => span({
    traceId,
    id: made.span(),
    parent: root,
    name: `${what}: ${text}`,
    start: start + index,
    ms: 3,
    error: text,
    attributes: { [text]: text, [`href ${what}`]: HOSTILE.url, constructor: text, __proto__x: text },
    events: [{ name: text, at: start + index, attributes: { [text]: text } }, { name: 'exception', at: start + index, attributes: { 'exception.type': text, 'exception.message': text, 'exception.stacktrace': `${text}\n    at ${text}` } }],
    links: [{ traceId: 'f'.repeat(32), spanId: 'e'.repeat(16), attributes: { [text]: text } }]
  }))
  const body = otlp({
    [HOSTILE.script]: [
      span({
        traceId,
        id: root,
        name: `GET ${HOSTILE.script}`,
        kind: 'SERVER',
        start,
        ms: 40,
        error: HOSTILE.script,
        attributes: { 'http.request.method': 'GET', 'http.route': HOSTILE.script, 'url.path': `/${HOSTILE.turned}`, 'http.response.status_code': 500, long: 'x'.repeat(longValue), 'error.type': HOSTILE.script }
      }),
      ...spans
    ]
  })
  return { traceId, root, body }
}
