'use strict'

// No values are exported unless the user has asked for them. Each instrumentation gets a marked secret in every argument that may hold a
// value. The exported bytes are searched for it, also when the call fails with the secret in the error.
// Alone in its process: traceClient leaves pg alone once its channel has been heard, and other files publish it.

const diagnosticsChannel = require('node:diagnostics_channel')
const http = require('node:http')
const { EventEmitter } = require('node:events')
const { test } = require('tap')
const lightTrace = require('../..')
const { LIBRARIES, ON_REQUEST } = require('../../lib/outbound')
const { without } = require('../support/features')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')
const { upstream } = require('../support/upstream')
const { freePort } = require('../../scripts/free-port')

const SECRET = 'S3CRETVALUE'
const NUMBER = 5318008
const at = { serverAddress: 'db.internal', serverPort: 1, database: 'shop' }

const SQL = [
  `SELECT * FROM users WHERE name = '${SECRET}' AND n = ${NUMBER}`, `INSERT INTO t VALUES ('${SECRET}', ${NUMBER}), ('${SECRET}', -${NUMBER}.5)`,
  `-- ${SECRET}\nSELECT 1 /* ${SECRET} */`, `SELECT '${SECRET}`, `UPDATE t SET a = '${SECRET}''${SECRET}' WHERE b IN ('${SECRET}', '${SECRET}')`,
  `CALL login('bob', '${SECRET}')`, `SET PASSWORD = '${SECRET}'`, `EXEC login @p = '${SECRET}'`, `SELECT x'${SECRET}', N'${SECRET}', 0x${NUMBER}`
]

const redisCalls = (base) => [
  ['EVAL', SECRET, '1', 'k', SECRET], ['SET', 'k', SECRET], ['ACL', 'SETUSER', SECRET, SECRET], ['SISMEMBER', 'k', SECRET], ['HELLO', '3', 'AUTH', SECRET, SECRET],
  ['CONFIG', 'SET', SECRET, SECRET], ['PUBLISH', SECRET, SECRET], ['XADD', 'k', '*', SECRET, SECRET], ['SORT', 'k', 'BY', SECRET, 'GET', SECRET],
  ['MY.OWN', SECRET], ['CLIENT', SECRET], ['ZADD', 'k', '1', SECRET]
].map(([command, ...args]) => base(command, args))

// Channel → the payloads of calls. Every channel that light-trace subscribes to has some.
const PAYLOADS = {
  'mysql2:query': SQL.map((query) => ({ query, values: [SECRET], ...at })),
  'mysql2:execute': SQL.map((query) => ({ query, values: [SECRET, { password: SECRET }], ...at })),
  'node-redis:command': redisCalls((command, args) => ({ command, args: [command, ...args], clientId: SECRET, ...at })),
  'node-redis:batch': [{ batchMode: 'MULTI', batchSize: 2, commands: [[SECRET]], ...at }],
  'ioredis:command': redisCalls((command, args) => ({ command: command.toLowerCase(), args, ...at })).filter(({ command }) => command !== 'hello'), // it has no span
  'ioredis:batch': [{ batchMode: 'MULTI', batchSize: 2, commands: [[SECRET]], ...at }],
  ...Object.fromEntries(['query', 'aggregate', 'model:save', 'model:insertMany', 'model:bulkWrite', 'cursor:next'].map((name) => [`mongoose:${name}`, [{
    operation: 'findOne',
    collection: 'users',
    args: { filter: { [SECRET]: SECRET }, pipeline: [{ $match: { a: SECRET } }], docs: [{ a: SECRET }, { b: SECRET }], ops: [{ insertOne: SECRET }, SECRET], options: { comment: SECRET } },
    ...at
  }]])),
  'mssql:query': SQL.map((command) => ({ command, parameters: [SECRET], values: [SECRET] })),
  'mssql:batch': SQL.map((command) => ({ command, parameters: [SECRET] })),
  'mssql:prepared-statement:execute': SQL.map((statement) => ({ statement, values: { a: SECRET } })),
  'mssql:execute': [{ procedure: 'dbo.login', parameters: [SECRET], values: [SECRET] }],
  'mssql:bulk': [{ table: 'users', rowCount: 2, rows: [[SECRET]] }],
  'pg:query': SQL.map((text) => ({ query: { text, values: [SECRET] }, client: { host: 'db', port: 1, database: 'shop', password: SECRET, connectionParameters: { password: SECRET } } })),
  ...Object.fromEntries(['execute', 'subscribe'].map((name) => [`graphql:${name}`, [{
    operationName: 'Q',
    operationType: 'query',
    document: { loc: { source: { body: `query Q { login(password: "${SECRET}", pin: ${NUMBER}, ${SECRET}: 1) }` } } },
    rawVariableValues: { password: SECRET },
    variableValues: { password: SECRET }
  }]])),
  'graphql:parse': [{ source: { body: SECRET } }],
  'graphql:validate': [{ document: { loc: { source: { body: SECRET } } } }],
  'graphql:resolve': [{ fieldName: 'login', parentType: 'Query', fieldType: 'User', fieldPath: 'login', args: { password: SECRET } }],
  'plt:kafka:producer:sends': [{
    operation: 'send', client: { clientId: 'c', options: { sasl: { password: SECRET } } }, options: { messages: [{ topic: 'orders', key: SECRET, value: SECRET, headers: { authorization: SECRET } }] }
  }]
}

const channels = Object.fromEntries(ON_REQUEST.map((name) => [name, true]))
const failure = () => Object.assign(new Error(`near '${SECRET}'`), { code: 'E_FAILED', detail: SECRET, sql: SECRET, hint: SECRET })

/** Returns the exported bytes of a request that runs `work`, and the number of its spans. */
async function bytesOf (t, work, trace = {}) {
  const sink = await startSink(t)
  const bodies = []
  sink.respond = (req, body) => { bodies.push(body); return { status: 200 } }
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { spanProcessors: undefined, exporter: { url: sink.url }, outbound: { channels }, ...trace },
    routes: (app) => app.get('/', async (request) => { await work(request); return 'ok' })
  })
  const { statusCode, body } = await app.inject('/')
  t.equal(statusCode, 200, body)
  await app.lightTrace.flush()
  return { bytes: Buffer.concat(bodies).toString('latin1'), calls: sink.spans.length - 1 }
}

function clean (t, bytes) {
  t.notMatch(bytes, SECRET)
  t.notMatch(bytes, String(NUMBER))
}

test('every channel of the tables has a payload here', async (t) => {
  t.same([...LIBRARIES, ...ON_REQUEST].filter((name) => PAYLOADS[name] === undefined), [])
})

// Before pg's channel publishes, since traceClient then leaves queries to it.
test('pg with traceClient exports no values', { skip: without('trace-client') }, async (t) => {
  class Client extends EventEmitter {
    host = 'db'
    password = SECRET
    async query (config) {
      if (String(config.text ?? config).startsWith('UPDATE')) throw Object.assign(failure(), { code: '23505', severity: 'ERROR' })
      return { rows: [SECRET] }
    }
  }
  const client = lightTrace.traceClient(new Client())
  const { bytes, calls } = await bytesOf(t, async () => {
    for (const text of SQL) {
      await client.query(text).catch(() => {})
      await client.query({ text, values: [SECRET], name: SECRET }).catch(() => {})
      await client.query(text, [SECRET]).catch(() => {})
    }
  })
  t.equal(calls, SQL.length * 3)
  clean(t, bytes)
})

for (const [name, payloads] of Object.entries(PAYLOADS)) {
  test(name, { skip: without('libraries') }, async (t) => {
    const channel = diagnosticsChannel.tracingChannel(name)
    const { bytes, calls } = await bytesOf(t, async () => {
      for (const payload of payloads) {
        await channel.tracePromise(async () => ({ data: { token: SECRET }, rows: [SECRET] }), { ...payload })
        await channel.tracePromise(async () => { throw failure() }, { ...payload }).catch(() => {})
        await channel.tracePromise(async () => ({ errors: [{ message: SECRET, name: 'GraphQLError', extensions: { code: 'BAD' } }] }), { ...payload })
      }
    })
    t.equal(calls, payloads.length * 3)
    clean(t, bytes)
  })
}

test('graphql with its document exports names and no values', { skip: without('libraries') }, async (t) => {
  const [payload] = PAYLOADS['graphql:execute']
  const { bytes } = await bytesOf(t, async () => {
    const document = { loc: { source: { body: `query Q { login(password: "${SECRET}", pin: ${NUMBER}) # ${SECRET}\n }` } } }
    await diagnosticsChannel.tracingChannel('graphql:execute').tracePromise(async () => ({}), { ...payload, document })
  }, { outbound: { graphqlDocuments: true } })
  t.match(bytes, /login\(password: \?, pin: \?\)/)
  clean(t, bytes)
})

test('a message received from Kafka exports no values', { skip: without('libraries') }, async (t) => {
  const { bytes, calls } = await bytesOf(t, async () => {
    const payload = { client: { groupId: 'g' }, raw: { headers: [['authorization', SECRET]] }, result: { topic: 'orders', key: SECRET, value: SECRET, partition: 1, offset: 2n, headers: new Map([['a', SECRET]]) } }
    diagnosticsChannel.tracingChannel('plt:kafka:consumer:receives').asyncStart.publish(payload)
  })
  t.equal(calls, 1)
  clean(t, bytes)
})

test('node:sqlite exports no values', { skip: without('libraries') }, async (t) => {
  const { bytes, calls } = await bytesOf(t, async () => {
    for (const sql of SQL) diagnosticsChannel.channel('sqlite.db.query').publish({ sql, database: {}, duration: 1000 })
  })
  t.equal(calls, SQL.length)
  clean(t, bytes)
})

test('HTTP calls export no header, body, credential or query value', async (t) => {
  const { port } = await upstream(t)
  const path = `/login?token=${SECRET}&password=${SECRET}`
  const headers = { authorization: `Bearer ${SECRET}`, cookie: SECRET, 'x-api-key': SECRET }
  const { bytes, calls } = await bytesOf(t, async () => {
    await (await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body: SECRET })).text()
    await new Promise((resolve, reject) => http.request({ port, path, headers, method: 'POST', auth: `bob:${SECRET}` }, (res) => res.resume().on('end', resolve)).on('error', reject).end(SECRET))
    const { request } = require('undici7')
    await (await request(`http://127.0.0.1:${port}${path}`, { headers })).body.text()
    await fetch(`http://127.0.0.1:${await freePort()}${path}`).catch(() => {})
  })
  t.equal(calls, 4)
  clean(t, bytes)
})

test('a request exports no header, cookie, body, query value or reply', async (t) => {
  const sink = await startSink(t)
  const bodies = []
  sink.respond = (req, body) => { bodies.push(body); return { status: 200 } }
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { spanProcessors: undefined, exporter: { url: sink.url }, headers: { request: ['authorization', 'x-session-id'], response: ['set-cookie', 'x-auth'] } },
    routes: (app) => app.post('/:name', async (request, reply) => reply.header('set-cookie', SECRET).header('x-auth', SECRET).send({ a: SECRET }))
  })
  await app.inject({
    method: 'POST', url: `/bob?access_token=${SECRET}`, headers: { authorization: SECRET, cookie: `a=${SECRET}`, 'x-session-id': SECRET, baggage: `a=${SECRET}` }, payload: { a: SECRET }
  })
  await app.lightTrace.flush()
  t.equal(sink.spans.length, 1)
  clean(t, Buffer.concat(bodies).toString('latin1'))
})
