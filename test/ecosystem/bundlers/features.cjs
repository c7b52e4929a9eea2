'use strict'

// An app with all features that once depended on the name or text of a function. It is bundled and minified, and prints what it saw.

const fastify = require('fastify')
const lightTrace = require('light-trace')
const { createCollector } = require('light-trace/testing')

const busyUntil = (ms) => { for (const end = performance.now() + ms; performance.now() < end;); }

async function main () {
  const collector = createCollector()
  const lines = []
  const app = fastify({ logger: { level: 'info', stream: { write: (line) => lines.push(JSON.parse(line).msg) } } })
  await app.register(lightTrace, {
    spanProcessors: [collector], logs: { buffer: 'debug' }, spans: { handler: true, hooks: ['onRequest', 'preHandler'] }, slow: { afterMs: Infinity, blockedLoop: { afterMs: 50 } }
  })
  app.addHook('onRequest', async () => {})
  app.addHook('preHandler', async () => {})
  app.get('/bad', async ({ log }) => { log.debug('held'); throw new Error('no') })
  app.get('/block', async () => { await new Promise((resolve) => setTimeout(resolve, 100)); busyUntil(400); return 'ok' })
  app.get('/logger', async ({ log }) => Object.getPrototypeOf(log) === app.log) // otherwise its ids are in another child logger
  const hasOwnLogger = (await app.inject('/logger')).json()
  collector.reset()
  for (const url of ['/bad', '/nowhere']) await app.inject(url)
  const tree = (await collector.tree()).replaceAll(/ (?:ERROR|error\.type|exception).*/g, '')
  let blocked = false
  for (let i = 0; i < Number(process.env.BLOCKS ?? 20) && !blocked; i++) { // the worker may still be starting
    await app.inject('/block')
    blocked = (await collector.spans()).some(({ events }) => events.some(({ name }) => name.includes('blocked')))
  }
  console.log(JSON.stringify({
    tree,
    hasOwnLogger,
    held: lines.includes('held'),
    blocked,
    warned: lines.filter((line) => /no effect/.test(line))
  }))
  await app.close()
}

main()
