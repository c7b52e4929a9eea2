'use strict'

// No values are exported. Each client gets a marked secret in every argument that is not a key, and the exported bytes are searched for it.
// The clients' own sanitizers do not remove some of these arguments.

const { test } = require('tap')
const { tracedApp } = require('../support/traced-app')
const { startSink } = require('../support/otlp-sink')

const port = Number(process.env.SERVICES_REDIS_PORT)
const SECRET = 'S3CRETVALUE'

// [as sent, as recorded]
const COMMANDS = [
  [['SET', 'k', SECRET], 'SET k ?'],
  [['GETSET', 'k', SECRET], 'GETSET k ?'],
  [['PSETEX', 'k', '10000', SECRET], 'PSETEX k ? ?'],
  [['APPEND', 'k', SECRET], 'APPEND ? ?'], // the clients themselves hide its key
  [['MSET', 'a', SECRET], 'MSET a ?'],
  [['EVAL', `return "${SECRET}"`, '1', 'k', SECRET], 'EVAL ? ? k ?'],
  [['EVALSHA', SECRET, '1', 'k', SECRET], 'EVALSHA ? ? k ?'],
  [['SADD', 's', SECRET], 'SADD s ?'],
  [['SISMEMBER', 's', SECRET], 'SISMEMBER s ?'],
  [['LPUSH', 'l', SECRET], 'LPUSH l ?'],
  [['LREM', 'l', '1', SECRET], 'LREM l ? ?'],
  [['GEOADD', 'g', '1', '2', SECRET], 'GEOADD g ? ? ?'],
  [['ZADD', 'z', '1', SECRET], 'ZADD z ? ?'],
  [['ZSCORE', 'z', SECRET], 'ZSCORE z ?'],
  [['HSET', 'h', SECRET, SECRET], 'HSET h ? ?'],
  [['XADD', 'x', '*', SECRET, SECRET], 'XADD x ? ? ?'],
  [['ACL', 'SETUSER', SECRET, `>${SECRET}`], 'ACL ? ? ?'],
  [['CONFIG', 'SET', 'proc-title-template', SECRET], 'CONFIG ? ? ?'],
  [['AUTH', SECRET, SECRET], 'AUTH ? ?'],
  [['ECHO', SECRET], 'ECHO ?'],
  [['PUBLISH', SECRET, SECRET], 'PUBLISH ? ?'],
  [['LIGHT.TRACE', SECRET], 'LIGHT.TRACE']
]

const viaRedis = (name) => async (t) => {
  const client = require(name).createClient({ url: `redis://127.0.0.1:${port}` })
  client.on('error', () => {})
  await client.connect()
  t.teardown(() => client.close())
  return (args) => client.sendCommand(args)
}

const viaIoredis = (name) => async (t) => {
  const client = new (require(name).Redis)({ port, host: '127.0.0.1', lazyConnect: true })
  await client.connect()
  t.teardown(() => client.disconnect())
  return ([command, ...args]) => client.call(command, ...args)
}

const CLIENTS = { redis: viaRedis('redis'), redis5: viaRedis('redis5'), ioredis: viaIoredis('ioredis'), ioredis5: viaIoredis('ioredis5') }

/** Returns what an app exports whose route runs `work`, as spans and as bytes. */
async function exported (t, work) {
  const sink = await startSink(t)
  const bodies = []
  sink.respond = (req, body) => { bodies.push(body); return { status: 200 } }
  const { app } = await tracedApp(t, {
    listen: false,
    trace: { spanProcessors: undefined, exporter: { url: sink.url } },
    routes: (app) => app.get('/', async () => { await work(); return 'ok' })
  })
  const { statusCode, body } = await app.inject('/')
  t.equal(statusCode, 200, body)
  await app.lightTrace.flush()
  return { bytes: Buffer.concat(bodies).toString('latin1'), calls: sink.spans.filter(({ kind }) => kind === 'CLIENT') }
}

for (const [name, connect] of Object.entries(CLIENTS)) {
  test(`${name}: no value, no script and no password is exported`, async (t) => {
    const send = await connect(t)
    const { bytes, calls } = await exported(t, async () => { for (const [args] of COMMANDS) await send(args).catch(() => {}) })
    t.same(calls.map(({ attributes }) => attributes['db.query.text']), COMMANDS.map(([, text]) => text))
    t.notMatch(bytes, SECRET)
  })
}

test('bullmq: a job\'s name and payload are not exported', async (t) => {
  const { Queue } = require('bullmq')
  const queue = new Queue('jobs', { connection: { port, host: '127.0.0.1' } })
  t.teardown(() => queue.close())
  await queue.waitUntilReady()
  const { bytes, calls } = await exported(t, async () => {
    await queue.add(SECRET, { password: SECRET })
    await queue.addBulk([{ name: SECRET, data: { password: SECRET } }, { name: SECRET, data: { password: SECRET }, opts: { delay: 1000 } }])
  })
  t.ok(calls.length > 0)
  t.match(calls[0].attributes['db.query.text'], /^EVAL(SHA)? \? \? bull:jobs:/)
  t.notMatch(bytes, SECRET)
})
