'use strict'

// Properties that other code puts on Object.prototype while the app runs: each name that lib reads, one after the other.

const { test } = require('tap')
const fs = require('node:fs')
const path = require('node:path')
const { runInChild } = require('../support/child')
const { startFakeCollector } = require('../support/fake-collector')

const LIB = path.join(__dirname, '../../lib')
const READ = /\.([a-z_$][\w$]*)/gi
const TAKEN = /\{ ([\w$, =']+) \}(?: = |,|\))/g
// Names of Node's iterators, emitters, sockets and property descriptors, and of inject(). No program works with these. From Node 26.12,
// every console.log reads the first one.
const NODES = ['removeListener', 'return', 'next', 'done', 'path', 'get', 'set', 'value', 'then', 'throw', 'stream']

function namesInLib () {
  const names = new Set()
  for (const file of fs.readdirSync(LIB, { recursive: true })) {
    if (!file.endsWith('.js')) continue
    const text = fs.readFileSync(path.join(LIB, file), 'utf8')
    for (const [, name] of text.matchAll(READ)) names.add(name)
    for (const [, list] of text.matchAll(TAKEN)) for (const name of list.split(',')) names.add(name.trim().split(' ')[0])
  }
  return [...names].filter((name) => /^[a-z]\w\w/.test(name) && !(name in Object.prototype) && !NODES.includes(name))
}

// A09
for (const [kind, value] of Object.entries({ 'a text': 'x', 'an object': { a: 1 } })) {
  test(`requests are answered, traced and counted with ${kind} on Object.prototype under any name that Fastify tolerates`, async (t) => {
    const collector = await startFakeCollector(t)
    const { code, said: [{ tried, wrong } = {}], stderr } = await runInChild(t, async ({ Fastify, lightTrace, say }, url, names, json) => {
      const value = JSON.parse(json)
      const redis = require('node:diagnostics_channel').tracingChannel('ioredis:command')
      const apps = [Fastify(), Fastify()]
      await apps[1].register(lightTrace, { exporter: { url }, spans: { handler: true } })
      for (const app of apps) {
        app.get('/ok/:id', async ({ trace }) => {
          await trace?.withSpan('child', {}, async (span) => span.setAttribute('a', 1).addEvent('e', { a: 1 }))
          trace?.inject({})
          await redis.tracePromise(async () => 1, { command: 'get', args: ['get', 'k'], serverAddress: 'redis', serverPort: 6379 })
          return 'ok'
        })
        app.get('/boom', async () => { throw new Error('boom') })
        await app.inject('/ok/1')
        await app.inject('/boom')
      }
      const answersOf = async (app) => {
        try {
          return [(await app.inject('/ok/1')).body, (await app.inject('/boom')).body].join()
        } catch (error) {
          return error.stack
        }
      }
      const [bare, traced] = apps
      const usual = await answersOf(bare)
      const { started: spansOfBoth } = traced.lightTrace.stats().spans // of the same two requests
      const wrong = []
      let tried = 0
      for (const name of names.split(',')) {
        const { started, accepted } = traced.lightTrace.stats().spans
        Object.defineProperty(Object.prototype, name, { value, configurable: true, writable: true, enumerable: false }) // eslint-disable-line no-extend-native
        const isBorne = await answersOf(bare) === usual
        const answers = isBorne ? await answersOf(traced) : usual
        delete Object.prototype[name]
        if (!isBorne) continue
        tried++
        const { spans } = traced.lightTrace.stats()
        const left = spans.delivered + spans.queued + spans.inFlight
        if (answers !== usual) wrong.push(`${name}: ${answers}`)
        else if (spans.started - started !== spansOfBoth || spans.accepted - accepted !== spansOfBoth) wrong.push(`${name}: ${spans.started - started} started, ${spans.accepted - accepted} ended`)
        else if (left !== spans.accepted) wrong.push(`${name}: ${spans.accepted - left} lost`)
        if (wrong.length > 0 && left !== spans.accepted) break
      }
      for (const app of apps) await app.close()
      say({ tried, wrong })
    }, { args: [collector.url, namesInLib().join(), JSON.stringify(value)], killAfterMs: 120_000 }).exit
    t.equal(code, 0, stderr)
    t.ok(tried > 500, `${tried} names`)
    t.strictSame(wrong, [])
  })
}
