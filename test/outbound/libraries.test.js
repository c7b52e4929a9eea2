'use strict'

// The test publishes what libraries publish, with their messages and order. test/services runs the libraries with real servers.

const diagnosticsChannel = require('node:diagnostics_channel')
const { test } = require('tap')
const { setImmediate: turn } = require('node:timers/promises')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')

// Runs `publish` inside a request and returns the spans under it.
async function during (t, publish, trace = {}) {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace,
    routes: (app) => app.get('/go', async (request) => { await publish(request); return 'ok' })
  })
  const response = await app.inject('/go')
  if (response.statusCode !== 200) throw new Error(response.body)
  return { children: (await collector.spans()).filter(({ parentSpanId }) => parentSpanId !== undefined), collector, app }
}

const call = (name, payload, work = async () => 'done') => diagnosticsChannel.tracingChannel(name).tracePromise(work, payload)
const failing = (error) => async () => { throw error }
const at = { serverAddress: 'db.internal', serverPort: 3306 }

test('mysql2: calls have the attributes of the conventions', async (t) => {
  const { children: [query, execute, duplicate] } = await during(t, async () => {
    await call('mysql2:query', { query: "SELECT * FROM users WHERE name = 'bob'", values: undefined, database: 'shop', ...at })
    await call('mysql2:execute', { query: 'UPDATE users SET name = ?', values: ['bob'], database: '', serverAddress: '/run/mysqld.sock' })
    const error = Object.assign(new Error("Duplicate entry 'bob' for key 'name'"), { code: 'ER_DUP_ENTRY', errno: 1062 })
    await t.rejects(call('mysql2:query', { query: "INSERT INTO users VALUES ('bob')", database: 'shop', ...at }, failing(error)))
  })
  t.match(query, { name: 'SELECT users', kind: 'CLIENT', status: { code: 'UNSET' } })
  t.same(query.attributes, {
    'db.system.name': 'mysql',
    'db.namespace': 'shop',
    'db.query.summary': 'SELECT users',
    'db.query.text': 'SELECT * FROM users WHERE name = ?',
    'server.address': 'db.internal',
    'server.port': 3306
  })
  t.match(execute, { name: 'UPDATE users', attributes: { 'server.address': '/run/mysqld.sock' } })
  t.notOk('db.namespace' in execute.attributes)
  t.match(duplicate, { status: { code: 'ERROR' }, attributes: { 'db.response.status_code': '1062', 'error.type': '1062' } })
  t.notMatch(JSON.stringify(duplicate), /bob/)
})

test('a failed connection has the socket\'s code', async (t) => {
  const { children: [span] } = await during(t, () => t.rejects(
    call('mysql2:query', { query: 'SELECT 1', ...at }, failing(Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED', errno: -111 })))))
  t.match(span, { status: { code: 'ERROR' }, attributes: { 'error.type': 'ECONNREFUSED' } })
  t.notOk('db.response.status_code' in span.attributes)
})

test('redis and ioredis: calls have the attributes of the conventions', async (t) => {
  const redis = { database: 2, clientId: 'c', serverAddress: 'redis.internal', serverPort: 6379 }
  const { children } = await during(t, async () => {
    await call('node-redis:command', { command: 'SET', args: ['SET', 'key', '?'], ...redis })
    await call('node-redis:batch', { batchMode: 'PIPELINE', batchSize: 3, ...redis }, () =>
      call('node-redis:command', { command: 'GET', args: ['GET', 'a'], batchMode: 'PIPELINE', batchSize: 3, ...redis }))
    await call('ioredis:command', { command: 'get', args: ['key'], database: 0, serverAddress: 'redis.internal', serverPort: 6379 })
    await t.rejects(call('node-redis:command', { command: 'INCR', args: ['INCR', 'key'], ...redis },
      failing(new Error('WRONGTYPE Operation against a key'))))
  })
  t.same(children.map(({ name }) => name), ['SET', 'PIPELINE', 'GET', 'INCR'])
  t.same(children[0].attributes, {
    'db.system.name': 'redis',
    'db.namespace': '2',
    'db.operation.name': 'SET',
    'db.query.text': 'SET key ?',
    'server.address': 'redis.internal',
    'server.port': 6379
  })
  t.match(children[1].attributes, { 'db.operation.name': 'PIPELINE', 'db.operation.batch.size': 3 })
  t.match(children[2].attributes, { 'db.query.text': 'GET key' })
  t.match(children[3].attributes, { 'db.response.status_code': 'WRONGTYPE', 'error.type': 'WRONGTYPE' })
})

test('redis: a command ends its span once, however its promise settles, and only the needed events have subscribers', async (t) => {
  const payload = (args) => ({ command: 'GET', args: ['GET', ...args], database: 0, serverAddress: 'redis.internal', serverPort: 6379 })
  for (const name of ['node-redis', 'ioredis']) {
    const { children, app } = await during(t, async () => {
      const channel = diagnosticsChannel.tracingChannel(`${name}:command`)
      await call(`${name}:command`, payload(['resolves']))
      await t.rejects(call(`${name}:command`, payload(['rejects']), failing(new Error('WRONGTYPE no'))))
      await call(`${name}:command`, payload(['thenable']), () => ({ then (resolve) { resolve('done') } }))
      t.throws(() => channel.tracePromise(() => { throw new Error('ERR no') }, payload(['throws'])))
      for (const event of ['start', 'asyncStart', 'error']) t.ok(channel[event].hasSubscribers, event)
      for (const event of ['end', 'asyncEnd']) t.notOk(channel[event].hasSubscribers, event)
    })
    t.same(children.map(({ status }) => status.code), ['UNSET', 'ERROR', 'UNSET', 'ERROR'])
    t.match(app.lightTrace.stats().spans, { started: 5, ended: 5 })
    await app.close()
  }
})

test('redis: each command has its own text, however it is written and whatever is read in between', async (t) => {
  const at = { database: 0, serverAddress: 'redis.internal', serverPort: 6379 }
  const command = (command, ...args) => call('node-redis:command', { command, args: [command, ...args], ...at })
  const { children } = await during(t, async () => {
    for (let i = 0; i < 2; i++) {
      await command('get', 'a')
      await command('SET', 'b', 'secret')
      await command('get', 'c')
      await command('auth', 'secret')
      await command('no command', 'secret')
      await command('NOTHEARDOF', 'secret')
      let inner
      await call('node-redis:command', { command: 'GETDEL', get args () { inner ??= command('ECHO', 'secret'); return ['GETDEL', 'd'] }, ...at })
      await inner
      await call('node-redis:command', { command: 'GETDEL', get args () { throw new Error('secret') }, ...at })
    }
  })
  const once = [['GET', 'GET a'], ['SET', 'SET b ?'], ['GET', 'GET c'], ['AUTH', 'AUTH ?'], ['redis', undefined], ['NOTHEARDOF', 'NOTHEARDOF'],
    ['GETDEL', 'GETDEL d'], ['ECHO', 'ECHO ?'], ['GETDEL', 'GETDEL']]
  const sorted = (list) => list.map((pair) => pair.join(': ')).sort()
  t.same(sorted(children.map(({ name, attributes }) => [name, attributes['db.query.text']])), sorted([...once, ...once]))
  t.notMatch(JSON.stringify(children), /secret/)
})

test('mongoose: calls have the attributes of the conventions', async (t) => {
  const payload = { collection: 'users', database: 'shop', serverAddress: 'mongo.internal', serverPort: 27017 }
  const { children } = await during(t, async () => {
    await call('mongoose:query', { operation: 'findOne', args: { filter: { name: 'bob' } }, ...payload })
    await call('mongoose:model:insertMany', { operation: 'insertMany', args: { docs: [{}, {}] }, ...payload })
    await call('mongoose:cursor:next', { operation: 'find', ...payload })
    await t.rejects(call('mongoose:model:save', { operation: 'save', ...payload }, failing(Object.assign(new Error('E11000 bob'), { code: 11000 }))))
  })
  t.same(children.map(({ name }) => name), ['findOne users', 'insertMany users', 'save users'])
  t.same(children[0].attributes, {
    'db.system.name': 'mongodb',
    'db.namespace': 'shop',
    'db.operation.name': 'findOne',
    'db.collection.name': 'users',
    'server.address': 'mongo.internal',
    'server.port': 27017
  })
  t.notOk('db.operation.batch.size' in children[1].attributes, 'many documents in one operation')
  t.equal(children[2].attributes['error.type'], '11000')
})

test('mssql: calls have the attributes of the conventions', async (t) => {
  const { children } = await during(t, async () => {
    await call('mssql:query', { command: 'SELECT * FROM [users] WHERE id = @id', parameters: ['id'], requestId: 1, poolId: 1 })
    await call('mssql:execute', { procedure: 'dbo.total', parameters: [] })
    await call('mssql:bulk', { table: 'users', rowCount: 40 })
  })
  t.same(children.map(({ name }) => name), ['SELECT users', 'EXECUTE dbo.total', 'BULK INSERT users'])
  t.match(children[1].attributes, { 'db.system.name': 'microsoft.sql_server', 'db.stored_procedure.name': 'dbo.total' })
  t.notOk('db.operation.batch.size' in children[2].attributes)
})

test('graphql: an operation has a span, and its stages if configured', async (t) => {
  const document = { loc: { source: { body: '{ user(id: 7) { name } }' } } }
  const publish = async () => {
    await call('graphql:execute', { document, operationName: 'Q', operationType: 'query' }, async () => ({ data: {} }))
    await call('graphql:execute', { document, operationType: 'mutation' }, async () => ({ errors: [{ name: 'GraphQLError', extensions: { code: 'FORBIDDEN' } }] }))
    await call('graphql:resolve', { parentType: 'Query', fieldName: 'user', fieldPath: 'user', fieldType: 'User' })
  }
  const { children } = await during(t, publish)
  t.same(children.map(({ name, kind }) => [name, kind]), [['query', 'SERVER'], ['mutation', 'SERVER']])
  t.same(children[0].attributes, { 'graphql.operation.type': 'query', 'graphql.operation.name': 'Q' })
  t.match(children[1], { status: { code: 'ERROR' }, attributes: { 'error.type': 'FORBIDDEN' } })
  const asked = await during(t, publish, { outbound: { channels: { 'graphql:resolve': true } } })
  t.same(asked.children.map(({ name }) => name), ['query', 'mutation', 'resolve Query.user'])
  const documents = await during(t, publish, { outbound: { graphqlDocuments: true, channels: { 'graphql:resolve': true, 'graphql:execute': true } } })
  t.equal(documents.children[0].attributes['graphql.document'], '{ user(id: ?) { name } }')
  const none = await during(t, publish, { outbound: { graphqlDocuments: true, libraries: false } })
  t.same(none.children, [])
})

test('kafka: each message has the context, and its receiver a link', async (t) => {
  const kOptions = Symbol('plt.kafka.base.options')
  const sent = []
  const { children, collector } = await during(t, async () => {
    for (const serializers of [undefined, { headerKey: Buffer.from, headerValue: Buffer.from }]) {
      const messages = [{ topic: 'orders', value: 'a' }, { topic: 'orders', value: 'b', headers: { traceparent: 'own' } }]
      const options = { messages }
      const payload = { client: { clientId: 'shop', [kOptions]: { serializers } }, operation: 'send', options }
      await call('plt:kafka:producer:sends', payload, async () => { sent.push(options.messages) })
      t.equal(options.messages, messages, 'the user\'s own messages are unchanged')
      t.notOk('headers' in messages[0])
    }
  })
  t.match(children[0], { name: 'send orders', kind: 'PRODUCER' })
  t.same(children[0].attributes, {
    'messaging.system': 'kafka',
    'messaging.operation.name': 'send',
    'messaging.operation.type': 'send',
    'messaging.destination.name': 'orders',
    'messaging.client.id': 'shop',
    'messaging.batch.message_count': 2
  })
  const [[first, second], [third]] = sent
  t.equal(second.headers.get('traceparent'), 'own')
  t.equal(third.headers.get('traceparent'), `00-${children[1].traceId}-${children[1].spanId}-03`)
  const [[key, value]] = first.headers
  t.ok(Buffer.isBuffer(key) && Buffer.isBuffer(value), 'without serializers, headers are bytes')
  t.equal(String(value), `00-${children[0].traceId}-${children[0].spanId}-03`)

  collector.reset()
  const receives = diagnosticsChannel.tracingChannel('plt:kafka:consumer:receives')
  const payload = { client: { groupId: 'g', clientId: 'c' }, raw: { headers: [[key, value]] }, result: { topic: 'orders', partition: 3, offset: 17n } }
  receives.start.publish(payload)
  receives.asyncStart.publish(payload)
  receives.asyncEnd.publish(payload)
  receives.end.publish(payload)
  const [received] = await collector.spans()
  t.match(received, { name: 'receive orders', kind: 'CLIENT', traceId: children[0].traceId, parentSpanId: children[0].spanId })
  t.match(received.links, [{ traceId: children[0].traceId, spanId: children[0].spanId }])
  t.match(received.attributes, { 'messaging.destination.partition.id': '3', 'messaging.kafka.offset': 17, 'messaging.consumer.group.name': 'g' })
  receives.asyncStart.publish({ raw: { headers: [] }, result: { topic: 'orders' } })
  t.equal((await collector.spans()).length, 1, 'a message without the sender\'s context makes no span')
})

test('kafka: received messages have their link with metrics, too', { skip: without('metrics') }, async (t) => {
  const { collector } = await tracedApp(t, { listen: false, trace: { metrics: true } })
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const headers = new Map([['traceparent', `00-${traceId}-b7ad6b7169203331-01`]])
  diagnosticsChannel.tracingChannel('plt:kafka:consumer:receives').asyncStart.publish({ result: { topic: 'orders', headers } })
  t.match(await collector.spans(), [{ name: 'receive orders', traceId, links: [{ traceId, spanId: 'b7ad6b7169203331' }] }])
})

test('node:sqlite reports a query after its end', async (t) => {
  const { children: [span] } = await during(t, () =>
    diagnosticsChannel.channel('sqlite.db.query').publish({ sql: "insert into t values(1.0,'secret')", database: {}, duration: 5e6 }))
  t.match(span, { name: 'INSERT t', attributes: { 'db.system.name': 'sqlite', 'db.query.text': 'insert into t values(?,?)' } })
  t.equal(span.duration.toFixed(5), '5.00000')
})

test('a channel of the user\'s own makes spans', async (t) => {
  const { children } = await during(t, async () => {
    await call('my-lib:op', { id: 7 })
    await call('my-lib:plain', {})
    await call('my-lib:broken', {})
    await t.rejects(call('my-lib:op', { id: 8 }, failing(new RangeError('no'))))
  }, {
    outbound: {
      channels: {
        'my-lib:op': { kind: 'producer', name: (call) => `op ${call.id}`, attributes: (call) => ({ id: call.id, bad: () => {} }) },
        'my-lib:plain': {},
        'my-lib:broken': { kind: 'internal', name () { throw new Error('broken') }, attributes () { throw new Error('broken') } }
      }
    }
  })
  t.same(children.map(({ name, kind }) => `${kind} ${name}`), ['PRODUCER op 7', 'CLIENT my-lib:plain', 'INTERNAL my-lib:broken', 'PRODUCER op 8'])
  t.same(children[0].attributes, { id: 7 })
  t.match(children[3], { status: { code: 'ERROR' }, attributes: { 'error.type': 'RangeError' } })
})

test('attributes of a channel of the user\'s own respect the limits', async (t) => {
  const { children: [span] } = await during(t, () => call('my-lib:op', {}), {
    limits: { attributeValueLength: 10 },
    outbound: { channels: { 'my-lib:op': { attributes: () => ({ text: 'x'.repeat(1000), map: { text: 'x'.repeat(1000) }, list: ['x'.repeat(1000)] }) } } }
  })
  const short = 'x'.repeat(10)
  t.same(span.attributes, { text: short, map: { text: short }, list: [short] })
})

test('every order of events that Node and libraries publish ends the span once', async (t) => {
  const channel = diagnosticsChannel.tracingChannel('my-lib:op')
  const publish = (...events) => () => {
    const payload = {}
    for (const event of events) {
      if (event === 'error') payload.error = new Error('no')
      if (event === 'result') payload.result = undefined
      else channel[event].publish(payload)
    }
  }
  const orders = [
    publish('start', 'result', 'end'),
    publish('start', 'error', 'end'),
    publish('start', 'end', 'result', 'asyncStart', 'asyncEnd'),
    publish('start', 'end', 'error', 'asyncStart', 'asyncEnd'),
    publish('start', 'asyncStart', 'asyncEnd', 'end'),
    publish('start', 'end', 'asyncEnd'),
    publish('start', 'end', 'asyncStart', 'asyncEnd', 'asyncStart', 'asyncEnd'),
    publish('start', 'start', 'end', 'asyncStart')
  ]
  const { children, app } = await during(t, () => orders.forEach((order) => order()), { outbound: { channels: { 'my-lib:op': {} } } })
  t.equal(children.length, orders.length)
  t.match(app.lightTrace.stats().spans, { started: 9, ended: 9 })
})

test('undocumented payloads give a shorter span, and nothing throws', async (t) => {
  const hostile = new Proxy({}, { get () { throw new Error('trap') }, has () { throw new Error('trap') } })
  const wrong = { query: 7, sql: [], command: {}, args: 'x', operation: null, collection: Symbol('x'), database: {}, serverAddress: 1, serverPort: 'x', options: { messages: 'no' }, document: 1, result: { errors: 'x' } }
  const throwing = Object.defineProperties({}, Object.fromEntries(Object.keys(wrong).map((key) => [key, { enumerable: true, get () { throw new Error('trap') } }])))
  const { LIBRARIES, ON_REQUEST } = require('../../lib/outbound')
  const names = [...LIBRARIES, ...ON_REQUEST]
  const uncaught = []
  const onUncaught = (error) => uncaught.push(error)
  process.on('uncaughtException', onUncaught)
  t.teardown(() => process.off('uncaughtException', onUncaught))
  const { children, app } = await during(t, async () => {
    for (const name of names) {
      const channel = diagnosticsChannel.tracingChannel(name)
      for (const payload of [{}, { ...wrong }, Object.create(throwing), Object.freeze({}), null, undefined, 7, 'x', hostile]) {
        for (const event of ['start', 'end', 'asyncStart', 'asyncEnd', 'error']) channel[event].publish(payload)
      }
    }
    for (const payload of [{}, wrong, null, hostile]) {
      for (const name of ['sqlite.db.query', 'undici:request:create', 'undici:request:headers', 'undici:request:error', 'undici:client:sendHeaders', 'http.client.request.created', 'http.client.request.start', 'http.client.response.finish', 'http.client.request.error', 'http2.client.stream.created', 'http2.client.stream.close', 'tracing:plt:kafka:consumer:receives:asyncStart']) {
        diagnosticsChannel.channel(name).publish(payload)
      }
    }
    await new Promise((resolve) => setImmediate(resolve))
  }, { outbound: { channels: Object.fromEntries(ON_REQUEST.map((name) => [name, true])) } })
  t.same(uncaught, [])
  t.ok(children.length >= names.length, `${children.length} spans`)
  const { started, ended } = app.lightTrace.stats().spans
  t.equal(started, ended)
})

test('each subscribed channel has a descriptor, and each descriptor a channel', (t) => {
  const { LIBRARIES, ON_REQUEST } = require('../../lib/outbound')
  const { CALL_DESCRIPTORS } = require('../../lib/features/libraries')
  t.same([...LIBRARIES, ...ON_REQUEST].sort(), Object.keys(CALL_DESCRIPTORS).sort())
  t.end()
})

test('a statement of 10 MB is cut', async (t) => {
  const { children: [span] } = await during(t, () => call('mysql2:query', { query: `INSERT INTO blobs VALUES ('${'x'.repeat(10e6)}')` }))
  t.equal(span.attributes['db.query.text'], 'INSERT INTO blobs VALUES (?')
})

test('for an unsampled request, nothing of a call is read', async (t) => {
  let reads = 0
  const { children } = await during(t, () => call('mysql2:query', { get query () { reads++; return 'SELECT 1' } }), { sampler: 'always_off' })
  t.same(children, [])
  t.equal(reads, 0)
})

test('work that ends after its request is marked', async (t) => {
  const get = (key, work) => call('node-redis:command', { command: 'GET', args: ['GET', key], serverAddress: 'redis.internal', serverPort: 6379 }, work)
  let over
  const late = new Promise((resolve) => { over = resolve })
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: { spans: { handler: true, hooks: ['onSend', 'onResponse'] } },
    routes: (app) => app.get('/go', async ({ trace }) => {
      get('late', () => late)
      trace.withSpan('outer', () => trace.withSpan('inner', () => late))
      await get('in time')
      return 'ok'
    })
  })
  await app.inject('/go')
  for (let spans; spans === undefined || spans.started - spans.ended > 3; spans = app.lightTrace.stats().spans) await turn()
  over()
  const spans = await collector.spans()
  const marked = spans.filter(({ attributes }) => attributes['light_trace.after_response'] === true).map(({ name, attributes }) => attributes['db.query.text'] ?? name)
  t.same(marked.sort(), ['GET late', 'inner', 'outer'])
})

test('channels that no span needs have no subscriber', async (t) => {
  const { app } = await tracedApp(t, { listen: false })
  const [major] = process.versions.node.split('.').map(Number)
  const names = [
    'undici:request:bodySent', 'undici:request:trailers', 'undici:client:connected', 'undici:client:beforeConnect',
    'http.server.request.start', 'http.server.response.created', 'net.client.socket', 'tracing:fastify.request.handler:start',
    'tracing:node-redis:connect:start', 'tracing:ioredis:connect:start', 'tracing:mysql2:connect:start', 'tracing:graphql:parse:start', 'tracing:mongoose:cursor:next:start',
    ...(major > 22 ? ['http.client.request.start'] : [])
  ]
  t.same(names.filter((name) => diagnosticsChannel.hasSubscribers(name)), [])
  await app.close()
})

test('libraries: false leaves the libraries\' channels without subscribers', async (t) => {
  await during(t, () => {
    t.notOk(diagnosticsChannel.hasSubscribers('tracing:mysql2:query:start'))
    t.notOk(diagnosticsChannel.hasSubscribers('tracing:graphql:resolve:start'))
  }, { outbound: { libraries: false } })
  const { app } = await tracedApp(t, { listen: false })
  t.ok(diagnosticsChannel.hasSubscribers('tracing:mysql2:query:start'))
  t.notOk(diagnosticsChannel.hasSubscribers('tracing:graphql:resolve:start'))
  await app.close()
  t.notOk(diagnosticsChannel.hasSubscribers('tracing:mysql2:query:start'))
  t.notOk(diagnosticsChannel.hasSubscribers('tracing:mysql2:pool:connect:asyncStart'))
})
