'use strict'

// A record has the same content as the line that pino printed. What redaction, serializers and formatters removed is not in the record
// either.
// Feature: logs

const { inspect } = require('node:util')
const { test } = require('tap')
const pino = require('pino')
const { loggingApp } = require('../support/logging-app')
const { randomFrom } = require('../support/random')

const KNOWN = ['level', 'time', 'pid', 'hostname', 'msg', 'trace_id', 'span_id', 'trace_flags']

/** Returns the expected attributes of a record, from its line without an error. */
function attributesIn (line) {
  return Object.fromEntries(Object.entries(JSON.parse(line)).filter(([key]) => !KNOWN.includes(key)))
}

test('random values of all kinds arrive', async (t) => {
  const { app, lines, exported } = await loggingApp(t)
  const random = randomFrom(11)
  const one = (...list) => list[Math.floor(random() * list.length)]
  const texts = ['', 'plain', 'quo"te', 'back\\slash', 'line\nbreak', '\0', 'umlaut \xe4', 'euro \u20ac', 'pile \ud83d\ude00', 'half \ud83d', '\ud83d', '\\"', '"\\', 'x'.repeat(47), 'y'.repeat(100), 'z\u2028', '{"a":1}', '\x7f', 'w'.repeat(48) + '\\', '\u{10ffff}'.repeat(30)]
  const numbers = [0, -0, 1, -1, 127, 128, 1.5, -2.25, 1e21, 1e-7, 2 ** 53, 2 ** 53 - 1, -(2 ** 53), 999999999999999, 1e15, NaN, Infinity, 123456.789e300]
  const value = (depth) => {
    const kind = depth > 3 ? Math.floor(random() * 4) : Math.floor(random() * 6)
    if (kind === 0) return one(...texts)
    if (kind === 1) return one(...numbers)
    if (kind === 2) return one(true, false, null)
    if (kind === 3) return one(undefined, new Date(0), () => {}, Symbol('s'), Buffer.from('ab'), new Map([[1, 2]]))
    if (kind === 4) return Array.from({ length: random() * 4 }, () => value(depth + 1))
    return Object.fromEntries(Array.from({ length: random() * 5 }, (_, i) => [`${one('k', 'key ', '\u20ac', 'a"b', 'a\\')}${i}`, value(depth + 1)]))
  }
  for (let n = 0; n < 2000; n++) {
    const fields = Object.fromEntries(Array.from({ length: random() * 8 }, (_, i) => [`${one('f', 'field', 'level', 'pid', 'time', 'hostname', 'trace_id', 'err', 'ms')}${i}`, value(0)]))
    const message = one(...texts)
    if (n % 7 === 0) app.log.info(fields)
    else if (n % 2 === 0) app.log.info(fields, message)
    else app.log.info({ ...fields, n }, '%s %d %j', message, n, fields.f1)
  }
  const records = await exported()
  t.equal(records.length, 2000)
  records.forEach(({ body, attributes, droppedAttributesCount }, i) => {
    const { msg } = JSON.parse(lines[i])
    const expected = attributesIn(lines[i])
    // Numbers that are not exact become text, and text is well-formed.
    const readable = JSON.parse(JSON.stringify(expected), (_, value) => typeof value === 'string' ? value.toWellFormed() : typeof value === 'number' && Number.isInteger(value) && Math.abs(value) >= 1e15 ? `${value}` : value)
    const found = JSON.parse(JSON.stringify(attributes, (_, value) => typeof value === 'number' && Number.isInteger(value) && Math.abs(value) >= 1e15 ? `${value}` : value))
    if (JSON.stringify(found) !== JSON.stringify(readable)) t.same(found, readable, lines[i])
    if (body !== msg?.toWellFormed()) t.equal(body, msg, lines[i])
    if (droppedAttributesCount !== 0) t.equal(droppedAttributesCount, 0)
  })
})

test('a record has time, severity, scope and resource', async (t) => {
  const { app, exported } = await loggingApp(t, { logger: { customLevels: { notice: 35, loud: 90, quiet: 5 }, level: 'quiet' }, trace: { serviceName: 'shop' } })
  const before = BigInt(Date.now() - 1) * 1_000_000n
  for (const level of ['trace', 'debug', 'info', 'notice', 'warn', 'error', 'fatal', 'loud', 'quiet']) app.log[level](level)
  const after = BigInt(Date.now() + 1) * 1_000_000n
  const records = (await exported()).filter(({ body }) => !body.startsWith('light-trace'))
  t.same(records.map(({ severityText, severityNumber }) => [severityText, severityNumber]), [
    ['trace', 1], ['debug', 5], ['info', 9], ['notice', 11], ['warn', 13], ['error', 17], ['fatal', 21], ['loud', 24], ['quiet', 1]
  ])
  for (const { time, observedTime, scope, scopeVersion, resource } of records) {
    t.ok(time >= before && time <= after)
    t.equal(observedTime, time)
    t.equal(scope, 'pino')
    t.equal(scopeVersion, pino.version)
    t.equal(resource['service.name'], 'shop')
  }
})

test('an error is an exception as in the conventions', async (t) => {
  const { app, exported } = await loggingApp(t)
  const error = Object.assign(new TypeError('no', { cause: new Error('why') }), { code: 'E_NO', statusCode: 409 })
  app.log.error(error)
  app.log.error({ err: error, order: 7 }, 'not placed')
  app.log.warn({ err: 'only a text' }, 'x')
  app.log.warn({ err: { stack: 5 } }, 'x')
  const [own, beside, text, object] = await exported()
  t.match(own.attributes, { 'exception.type': 'E_NO', 'err.type': 'TypeError', 'exception.message': 'no: why', 'exception.stacktrace': /^TypeError: no\n {4}at /, 'err.code': 'E_NO', 'err.statusCode': 409 })
  t.equal(own.body, 'no')
  t.match(beside, { body: 'not placed', attributes: { 'exception.type': 'E_NO', order: 7 } })
  t.same(text.attributes, { err: 'only a text' })
  t.same(object.attributes, { 'err.stack': 5 })
})

test('a record has the line after redaction, serializers, formatters, mixins and hooks', async (t) => {
  const SECRET = 'hunter2'
  const { app, lines, exported } = await loggingApp(t, {
    logger: {
      redact: { paths: ['password', 'user.password', 'list[*].token', '*.deep.secret', 'err.secret', 'req.headers.authorization', 'gone'], remove: false },
      serializers: { card: (card) => card.slice(-4), whole: () => undefined },
      formatters: { level: (label, number) => ({ severity: label, level: number }), log: ({ dropped, ...rest }) => rest, bindings: ({ hostname }) => ({ host: hostname }) },
      mixin: () => ({ mixed: 1 }),
      messageKey: 'message',
      errorKey: 'error',
      nestedKey: undefined,
      base: { pid: 1, hostname: 'h', tenant: 'a' }
    }
  })
  const child = app.log.child({ part: 'cart', password: SECRET }, { redact: ['part2', 'password'], msgPrefix: '[cart] ' })
  const shapes = [
    { password: SECRET }, { user: { password: SECRET, name: 'bob' } }, { list: [{ token: SECRET }, { token: SECRET }] }, { a: { deep: { secret: SECRET } } },
    { error: Object.assign(new Error('x'), { secret: 'shown' }) }, { req: { headers: { authorization: SECRET } } }, { card: `4111 ${SECRET} 1111` },
    { whole: SECRET }, { dropped: SECRET }, { toJSON: () => ({ never: SECRET }) }, { nested: { toJSON: () => 'short' } }
  ]
  for (const shape of shapes) app.log.info(shape, 'said')
  child.info({ part2: SECRET }, 'said')
  const records = await exported()
  t.equal(records.length, shapes.length + 1)
  for (const [i, { body, attributes }] of records.entries()) {
    const { message, ...printed } = JSON.parse(lines[i])
    t.equal(body, message)
    t.equal(attributes.mixed, 1)
    t.equal(attributes.severity, 'info')
    t.equal('error' in printed || JSON.stringify(attributes) === JSON.stringify(Object.fromEntries(Object.entries(printed).filter(([key]) => !KNOWN.includes(key)))), true, lines[i])
  }
  t.notMatch(lines.join(), SECRET)
  t.notMatch(inspect(records, { depth: 9 }), SECRET)
  t.match(records.at(-1).body, '[cart] said')
})

for (const [name, logger] of Object.entries({
  "pino's defaults": {},
  'no time': { timestamp: false },
  'a time that is text': { timestamp: () => ',"time":"2026-01-02T03:04:05Z"' },
  'a time that is no whole number': { timestamp: () => ',"time":1.5' },
  'no base': { base: null },
  'a level that is text': { formatters: { level: (label) => ({ level: label }) } }
})) {
  test(`alternating loggers with similar, unusual or changing bindings are told apart: ${name}`, async (t) => {
    const { app, lines, exported } = await loggingApp(t, { logger })
    const random = randomFrom(12)
    const loggers = [
      app.log, app.log.child({ id: 1 }), app.log.child({ id: 2 }), app.log.child({ id: 1 }).child({ n: 'of the child' }), app.log.child({ text: 'quo"te \u20ac \u0001' }),
      app.log.child({ msg: 'of the child' }), app.log.child({ list: [1, { a: 2 }], none: null }), app.log.child({ long: 'x'.repeat(3000) }), app.log.child({ err: { stack: 'of the child' } }),
      app.log.child({ trace_id: 'a'.repeat(32), span_id: 'b'.repeat(16), trace_flags: '01' })
    ]
    for (let n = 0; n < 500; n++) {
      const log = loggers[Math.floor(random() * loggers.length)]
      if (n % 50 === 0) log.setBindings({ n })
      else if (n % 3 === 0) log.info({ n }, 'said')
      else log.warn('said')
    }
    const records = await exported()
    t.equal(records.length, lines.length)
    for (const [i, { body, attributes, traceId, spanId }] of records.entries()) {
      const { err, trace_id: inLine = '', msg } = JSON.parse(lines[i])
      const { err: _, ...expected } = attributesIn(lines[i])
      if (err !== undefined) expected['exception.stacktrace'] = err.stack
      if (JSON.stringify(Object.entries(attributes).sort()) !== JSON.stringify(Object.entries(expected).sort())) t.same(attributes, expected, lines[i])
      if (body !== msg || traceId !== inLine || (spanId === '') !== (inLine === '')) t.same([body, traceId], [msg, inLine], lines[i])
    }
  })
}

test('two applications can have loggers with the same bindings and another message key', async (t) => {
  const apps = await Promise.all(['msg', 'text'].map((messageKey) => loggingApp(t, { logger: { messageKey } })))
  const loggers = apps.map(({ app }) => app.log.child({ text: 'of the child' }))
  for (let n = 0; n < 3; n++) for (const log of loggers) log.info({ n })
  const [first, second] = await Promise.all(apps.map(({ exported }) => exported()))
  t.same(first.map(({ body, attributes }) => [body, attributes]), [0, 1, 2].map((n) => [undefined, { text: 'of the child', n }]))
  t.same(second.map(({ body, attributes }) => [body, attributes]), [0, 1, 2].map((n) => ['of the child', { n }]))
})

test('a duplicate key has its last value', async (t) => {
  const { app, exported } = await loggingApp(t)
  app.log.child({ id: 1, msg: 'of the child', other: 'x' }).info({ id: 2, more: 'y' }, 'said')
  const [{ body, attributes }] = await exported()
  t.equal(body, 'said')
  t.same(attributes, { id: 2, other: 'x', more: 'y' })
})

test('a line that is not JSON is the body', async (t) => {
  const { app, lines, exported } = await loggingApp(t, { logger: { hooks: { streamWrite: (line) => line.replace('{"level":30', 'INFO {') } } })
  app.log.info({ a: 1 }, 'said')
  app.log.warn({ a: 1 }, 'said')
  const [first, second] = await exported()
  t.equal(first.body, lines[0].trimEnd())
  t.same(first.attributes, {})
  t.same(second.attributes, { a: 1 })
})

// If each quotation mark started a scan to the end, a megabyte would take a quarter of an hour.
test('a truncated line of a megabyte is the body', async (t) => {
  const cut = (line) => line.slice(0, -100) + '\n'
  const { app, lines, exported } = await loggingApp(t, { logger: { hooks: { streamWrite: (line) => line.includes('"cut":') ? cut(line) : line } } })
  app.log.info({ cut: 2n ** 60n, text: '"'.repeat(512 * 1024) }, 'said')
  app.log.info({ cut: 1234567890123456, list: ['\\"'.repeat(200 * 1024)] }, 'said')
  const records = await exported()
  t.same(records.map(({ body }) => body), lines.map((line) => line.trimEnd()))
})

test('of a hundred thousand keys the first are attributes, and all others are counted', async (t) => {
  const { app, exported } = await loggingApp(t, { trace: { limits: { attributes: 3 } } })
  app.log.info({ ...Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, i])), err: { a: 1, b: 2 } }, 'said')
  const [{ body, attributes, droppedAttributesCount }] = await exported()
  t.same({ body, attributes, droppedAttributesCount }, { body: 'said', attributes: { k0: 0, k1: 1, k2: 2 }, droppedAttributesCount: 99_999 })
})

test('of an error of a child logger and the line\'s own, the record has the line\'s', async (t) => {
  const { app, exported } = await loggingApp(t)
  const child = app.log.child({ err: Object.assign(new TypeError('of the child'), { a: 1, list: [1] }) })
  child.info({ err: Object.assign(new RangeError('of the line'), { b: 2 }) }, 'first')
  child.info({ err: 'a text' }, 'second')
  child.info('third')
  const records = await exported()
  t.same(records.map(({ attributes: { 'exception.stacktrace': stack, ...rest } }) => rest), [
    { 'exception.type': 'RangeError', 'exception.message': 'of the line', 'err.b': 2 },
    { err: 'a text' },
    { 'exception.type': 'TypeError', 'exception.message': 'of the child', 'err.a': 1, 'err.list': [1] }
  ])
})

test('attributes, their length, their depth and the length of a record are limited', async (t) => {
  const { app, exported } = await loggingApp(t, { trace: { limits: { attributes: 3, attributeValueLength: 10 } }, logger: { depthLimit: 100 } })
  app.log.info({ a: 1, b: 2, c: 3, d: 4, e: { f: 5 } }, 'm'.repeat(100))
  app.log.info({ text: `${'x'.repeat(9)}\ud83d\ude00`, list: ['y'.repeat(20)] })
  let deep = 'end'
  for (let i = 0; i < 90; i++) deep = { d: deep }
  app.log.info({ deep })
  const [first, second, third] = await exported()
  t.same(first.attributes, { a: 1, b: 2, c: 3 })
  t.equal(first.droppedAttributesCount, 2)
  t.equal(first.body.length, 100)
  t.same(second.attributes, { text: 'x'.repeat(9), list: ['y'.repeat(10)] })
  let at = third.attributes.deep
  let depth = 0
  while (typeof at === 'object') {
    at = at.d
    depth++
  }
  t.equal(depth, 32)
  t.equal(at, '{"d":{"d":')
})

test('a line of a megabyte is exported, and a longer one is cut', async (t) => {
  const { app, exported } = await loggingApp(t)
  app.log.info({ list: Array.from({ length: 50_000 }, () => -1) }, 'a'.repeat(1024 * 1024))
  app.log.info('b'.repeat(5 * 1024 * 1024))
  app.log.info('after')
  const records = await exported()
  t.same(records.map(({ body, attributes }) => attributes.code ?? body.length), [1024 * 1024, 'LT_WARN_LOSS', 5])
  t.same(app.lightTrace.stats().logs.records.dropped, { too_large: 1 })
})

for (const [name, logger] of Object.entries({ "Fastify's": {}, 'a prefix, and other names': { msgPrefix: '[shop] ', messageKey: 'text', nestedKey: 'payload' } })) {
  test(`the query that Fastify prints is exported as on a span, and the line is unchanged: ${name}`, async (t) => {
    const { app, lines, sink, exported } = await loggingApp(t, {
      logger,
      trace: { redactQuery: ['own'] },
      routes (app) {
        app.get('/', async ({ log }) => {
          log.info({ url: '/?token=of-the-app', text: 'Route GET:/?token=of-the-app' }, 'order not found')
          return 'ok'
        })
        app.get('/bad', async () => { throw new Error('no') })
      }
    })
    const query = '?page=1&token=hunter2&own=hunter2&q=%22&n="\\hunter2'
    for (const path of ['/', '/bad', '/unknown']) await app.inject(path + query.replace('n="\\', 'api_key="\\'))
    const records = await exported()
    const shown = '?page=1&token=REDACTED&own=REDACTED&q=%22&api_key=REDACTED'
    const urls = records.map(({ attributes }) => (attributes.req ?? attributes.payload?.req)?.url).filter(Boolean)
    t.same(urls, [`/${shown}`, `/bad${shown}`, `/bad${shown}`, `/unknown${shown}`])
    t.ok(records.some(({ body }) => body.endsWith(`Route GET:/unknown${shown} not found`)))
    t.notMatch(inspect(records, { depth: 9 }), 'hunter2')
    t.match(inspect(records, { depth: 9 }), /token=of-the-app[^]*token=of-the-app/)
    t.equal(lines.filter((line) => line.includes('hunter2')).length, 5)
    const spans = sink.requests.flatMap(({ spans = [] }) => spans)
    t.same(spans.map(({ attributes }) => attributes['url.query']), Array(3).fill(shown.slice(1)))
  })
}

test('a marked secret in forty-eight shapes under redact is in no line and no record', async (t) => {
  const SECRET = 'hunter2-\u00e4"\\'
  const places = [
    ['token', (value) => ({ token: value })], ['user.token', (value) => ({ user: { token: value } })], ['list[*].token', (value) => ({ list: [{ token: value }, { token: value }] })],
    ['["a.b"].token', (value) => ({ 'a.b': { token: value } })], ['*.key', (value) => ({ any: { key: value } })], ['req.headers["x-key"]', (value) => ({ req: { headers: { 'x-key': value } } })],
    ['err.token', (value) => ({ err: Object.assign(new Error('no'), { token: value }) })], ['deep.a.b.c', (value) => ({ deep: { a: { b: { c: value } } } })]
  ]
  const values = [SECRET, [SECRET], { in: SECRET }, `${SECRET.repeat(50)}`, `${SECRET}\n${SECRET}`, { toJSON: () => SECRET }]
  for (const remove of [true, false]) {
    const { app, lines, exported } = await loggingApp(t, { logger: { redact: { paths: places.map(([path]) => path), remove } } })
    for (const [, make] of places) for (const value of values) app.log.warn(make(value), 'said')
    const records = await exported()
    t.equal(records.length, places.length * values.length)
    t.notMatch(lines.join(), 'hunter2')
    t.notMatch(inspect(records, { depth: 12 }), 'hunter2')
  }
})

test('circles, BigInt, getters that throw, binary, null prototypes and arrays with holes are logged', async (t) => {
  const { app, lines, exported } = await loggingApp(t)
  const circle = { name: 'c' }
  circle.self = circle
  const throwing = { get bad () { throw new Error('never') }, good: 1 }
  for (const value of [circle, { n: 2n ** 70n }, { throwing }, { bytes: Buffer.from([0, 255]) }, { plain: Object.assign(Object.create(null), { a: 1 }) }, { holes: [1, , 3] }, { date: new Date(NaN) }, { map: new Map([[1, 2]]) }, { half: '\ud83d', '\udc00': 1 }, { json: { toJSON () { throw new Error('never') } } }]) { // eslint-disable-line no-sparse-arrays
    try {
      app.log.info({ value }, 'said')
    } catch {} // thrown by pino itself
  }
  const records = await exported()
  t.equal(records.length, lines.length)
  for (const [i, { attributes }] of records.entries()) {
    const { value } = JSON.parse(lines[i])
    if (typeof value?.n !== 'number') t.same(JSON.parse(JSON.stringify(attributes.value ?? null)), JSON.parse(JSON.stringify(value ?? null).replace(/\\ud[0-9a-f]{3}/g, '\ufffd')))
    else t.equal(attributes.value.n, `${2n ** 70n}`)
  }
})
