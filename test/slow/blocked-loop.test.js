'use strict'

// Reports of what blocks the event loop, with real causes over real sockets: the line, the requests that waited, and the cases in which no
// line may be blamed.

const { mkdtempSync, rmSync, writeFileSync } = require('node:fs')
const { tmpdir } = require('node:os')
const path = require('node:path')
const esbuild = require('esbuild')
const tap = require('tap')
const { runInChild } = require('../support/child')
const { startSink } = require('../support/otlp-sink')
const { without } = require('../support/features')

const { test } = tap
const RUNS = 10

tap.setTimeout(120_000)

// The work of each cause ends on the line that is marked with its name.
for (const cause of ['a regular expression', 'JSON', 'sync crypto', 'a tight loop', 'a sync call that waits']) {
  test(`the line and the request of ${cause} are right in nine of ten runs`, async (t) => {
    const child = runInChild(t, async ({ Fastify, lightTrace, say, root }, cause, runs) => {
      const crypto = require('node:crypto')
      const { EventEmitter, once } = require('node:events')
      const { createCollector } = require(`${root}/lib/features/testing/testing`)
      // So much work that it blocks for about 300 ms on this machine, three times the threshold.
      const measured = (task) => { const start = performance.now(); task(); return performance.now() - start }
      const lengthFor = (length, more, task) => { while (measured(() => task(length)) < 300) length = more(length); return length }
      const rowsOf = (length) => JSON.stringify(Array.from({ length }, (_, i) => ({ i, name: `row ${i}`, tags: [1, 2, 3] })))
      const sizeOf = (list) => list.length
      const isA = /^(?:a+)+$/
      let [text, rows, turns, rounds] = ['', '', 0, 0]
      if (cause === 'a regular expression') text = `${'a'.repeat(lengthFor(20, (length) => length + 1, (length) => isA.test(`${'a'.repeat(length)}!`)))}!`
      if (cause === 'a tight loop') turns = lengthFor(2e8, (length) => length + 1e8, (length) => { let sum = 0; for (let i = 0; i < length; i++) sum = (sum + i) | 0; return sum })
      if (cause === 'sync crypto') rounds = lengthFor(2e5, (length) => length * 1.5, (length) => crypto.pbkdf2Sync('word', 'salt', length, 64, 'sha512'))
      if (cause === 'JSON') {
        rows = rowsOf(200_000)
        while (measured(() => JSON.parse(rows)) < 300) rows = `[${rows.slice(1, -1)},${rows.slice(1, -1)}]`
      }
      const causes = {
        'a regular expression': async () => {
          await null
          return { is: isA.test(text) } // line of a regular expression
        },
        JSON: async () => {
          await null
          return { count: sizeOf(JSON.parse(rows)) } // line of JSON
        },
        'sync crypto': async () => {
          await null
          return { key: crypto.pbkdf2Sync('word', 'salt', rounds, 64, 'sha512').toString('hex') } // line of sync crypto
        },
        'a tight loop': async () => {
          await null
          let sum = 0
          for (let i = 0; i < turns; i++) sum = (sum + i) | 0 // line of a tight loop
          return { sum }
        },
        'a sync call that waits': async () => {
          await null
          require('node:child_process').execFileSync(process.execPath, ['-e', 'setTimeout(() => {}, 300)']) // line of a sync call that waits
          return {}
        }
      }
      const collector = createCollector()
      const isWatched = once(process, 'worker').then(([worker]) => once(worker, 'online'))
      const app = Fastify()
      await app.register(lightTrace, { spanProcessors: [collector], slow: { blockedLoop: true } })
      const steps = new EventEmitter()
      app.get('/waits', () => new Promise((resolve) => {
        steps.once('release', resolve)
        steps.emit('open')
      }))
      app.get('/blocks', async () => {
        const answer = await causes[cause]()
        steps.emit('release', {})
        return answer
      })
      const origin = await app.listen({ port: 0, host: '127.0.0.1' })
      await isWatched
      for (let run = 0; run < runs; run++) {
        const isOpen = once(steps, 'open')
        const waits = fetch(`${origin}/waits`)
        await isOpen
        await (await fetch(`${origin}/blocks`)).json()
        await waits
      }
      const line = require('node:fs').readFileSync(__filename, 'utf8').split('\n').findIndex((text) => text.endsWith(`// line of ${cause}`)) + 1
      const spans = await collector.spans()
      await app.close()
      say({ line, seen: spans.map(({ name, events }) => ({ name, events: events.map(({ attributes }) => attributes) })) })
    }, { args: [cause, RUNS], killAfterMs: 50_000 })
    const { said: [{ line, seen }] } = await child.exit
    const rightOf = (name, role) => seen.filter((span) => span.name === name && span.events.some((event) =>
      event['code.line.number'] === line && event['light_trace.blocked_loop.role'] === role)).length
    const [culprits, victims] = [rightOf('GET /blocks', 'culprit'), rightOf('GET /waits', 'victim')]
    t.ok(culprits >= 0.9 * RUNS, `${culprits} culprits`)
    t.ok(victims >= 0.9 * RUNS, `${victims} victims`)
    t.equal(rightOf('GET /waits', 'culprit') + rightOf('GET /blocks', 'victim'), 0, 'no request has the role of the other')
  })
}

// Native code cannot be interrupted. The first sample shows the function that runs after it, however short that is.
for (const [what, innocentMs, share] of [
  ['native code that ends soon after the sample', 3, [1, 1.4]],
  ['native code that ends just before the sample', 40, [0.7, 1.1]]
]) {
  test(`${what}: the line is marked as the next one, or no line is named`, async (t) => {
    const child = runInChild(t, async ({ Fastify, lightTrace, say, root }, innocentMs, [least, most], runs) => {
      const crypto = require('node:crypto')
      const { once } = require('node:events')
      const { createCollector } = require(`${root}/lib/features/testing/testing`)
      const measured = (task) => { const start = performance.now(); task(); return performance.now() - start }
      const hash = (rounds) => crypto.pbkdf2Sync('word', 'salt', rounds, 64, 'sha512')
      hash(1000)
      const perMs = 1e5 / Math.min(...Array.from({ length: 5 }, () => measured(() => hash(1e5)))) // the minimum, because a busy machine is slower
      function innocent () {
        let count = 0
        for (const until = performance.now() + innocentMs; performance.now() < until;) count++
        return count
      }
      let rounds = 0
      function blocks () {
        const key = hash(rounds)
        const count = innocent()
        return { key, count }
      }
      const collector = createCollector()
      const isWatched = once(process, 'worker').then(([worker]) => once(worker, 'online'))
      const app = Fastify()
      await app.register(lightTrace, { spanProcessors: [collector], slow: { blockedLoop: true } })
      app.get('/', async () => {
        await null
        return blocks()
      })
      const origin = await app.listen({ port: 0, host: '127.0.0.1' })
      await isWatched
      for (let run = 0; run < runs; run++) {
        rounds = Math.round(100 * perMs * (least + (most - least) * run / (runs - 1)))
        await (await fetch(origin)).text()
      }
      const spans = await collector.spans()
      await app.close()
      say(spans.flatMap(({ events }) => events.map(({ attributes }) => attributes)))
    }, { args: [innocentMs, share, 2 * RUNS] })
    const { said: [events] } = await child.exit
    t.ok(events.some((event) => event['code.line.number'] !== undefined))
    t.same(events.filter((event) => event['code.line.number'] !== undefined && event['light_trace.blocked_loop.is_before_line'] !== true), [])
  })
}

test('the line that blocked the loop is on the request that ran it and on the one that waited', async (t) => {
  const child = runInChild(t, async ({ Fastify, lightTrace, say, root }) => {
    const { EventEmitter, once } = require('node:events')
    const { createCollector } = require(`${root}/lib/features/testing/testing`)
    const lines = []
    const collector = createCollector()
    const isWatched = once(process, 'worker').then(([worker]) => once(worker, 'online'))
    const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line)) } } })
    await app.register(lightTrace, { spanProcessors: [collector], slow: { blockedLoop: true } })
    const steps = new EventEmitter()
    const isOpen = once(steps, 'open')
    app.get('/waits', () => new Promise((resolve) => {
      steps.once('release', resolve)
      steps.emit('open')
    }))
    app.get('/spins/:secret', async function spins (request) {
      await null
      const { secret } = request.params
      const until = performance.now() + 500
      while (performance.now() < until) secret.indexOf('x') // the line
      steps.emit('release', {})
      return {}
    })
    app.get('/after', async () => ({}))
    const origin = await app.listen({ port: 0, host: '127.0.0.1' })
    await isWatched
    const waits = fetch(`${origin}/waits`)
    await isOpen
    await fetch(`${origin}/spins/marzipan`)
    await waits
    await fetch(`${origin}/after`)
    const line = require('node:fs').readFileSync(__filename, 'utf8').split('\n').findIndex((text) => text.endsWith('// the' + ' line')) + 1
    const spans = await collector.spans()
    await app.close()
    say({ file: __filename, line, lines, spans: spans.map(({ name, traceId, spanId, events }) => ({ name, traceId, spanId, events })) })
  })
  const { code, said: [{ file, line, lines, spans }], stderr } = await child.exit
  t.equal(code, 0)
  t.equal(stderr, '')
  const of = (name) => spans.find((span) => span.name === name).events.map(({ name, attributes }) => ({ name, attributes }))
  const [spins, waits] = [of('GET /spins/:secret'), of('GET /waits')]
  const expected = {
    name: 'light_trace.blocked_loop',
    attributes: {
      'code.function.name': 'spins',
      'code.file.path': file,
      'code.line.number': line,
      'code.stacktrace': new RegExp(`^(?: {4}at .*\\n)* {4}at spins \\(.*:${line}:\\d+\\)`)
    }
  }
  t.match(spins, [{ ...expected, attributes: { ...expected.attributes, 'light_trace.blocked_loop.role': 'culprit' } }])
  t.match(waits, [{ ...expected, attributes: { ...expected.attributes, 'light_trace.blocked_loop.role': 'victim' } }])
  t.same(of('GET /after'), [], 'a later request has not waited')
  const { traceId, spanId } = spans.find(({ name }) => name === 'GET /spins/:secret')
  const id = spins[0].attributes['light_trace.blocked_loop.id']
  t.match(id, /^[0-9a-f]{16}$/)
  for (const [{ attributes }] of [spins, waits]) {
    t.equal(attributes['light_trace.blocked_loop.culprit.trace_id'], traceId)
    t.equal(attributes['light_trace.blocked_loop.culprit.span_id'], spanId)
    t.equal(attributes['light_trace.blocked_loop.id'], id)
    t.ok(attributes['light_trace.blocked_loop.duration'] >= 0.1)
    t.notMatch(JSON.stringify(attributes), /marzipan/, 'no values from the code')
  }
  t.match(lines, [{ code: 'LT_WARN_LOOP_BLOCKED', msg: /^the event loop was blocked for \d+ ms.* at (or just before )?spins \(/ }])
  t.equal(lines.length, 1)
})

for (const [how, nodeArgs] of [['with --enable-source-maps it is the line of the source', ['--enable-source-maps']], ['without source maps it is the line of the file that ran', []]]) {
  test(how, async (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'light-trace-maps-'))
    t.teardown(() => rmSync(folder, { recursive: true }))
    const [source, compiled] = ['search.ts', 'search.js'].map((name) => path.join(folder, name))
    // Compilation removes the types, so line numbers change.
    const text = `
      interface Query { text: string, until: number }
      type Found = { count: number }

      export async function search (query: Query): Promise<Found> {
        await null
        let count: number = 0
        while (performance.now() < query.until) count += query.text.indexOf('x') // the line
        return { count }
      }`
    const { code: output } = esbuild.transformSync(text, { loader: 'ts', format: 'cjs', sourcemap: 'inline', sourcefile: source })
    writeFileSync(source, text)
    writeFileSync(compiled, output)
    const child = runInChild(t, async ({ Fastify, lightTrace, say, root }, compiled) => {
      const { once } = require('node:events')
      const { createCollector } = require(`${root}/lib/features/testing/testing`)
      const { search } = require(compiled)
      const isWatched = once(process, 'worker').then(([worker]) => once(worker, 'online'))
      const collector = createCollector()
      const app = Fastify()
      await app.register(lightTrace, { spanProcessors: [collector], slow: { blockedLoop: true } })
      app.get('/', () => search({ text: 'a', until: performance.now() + 800 }))
      const origin = await app.listen({ port: 0, host: '127.0.0.1' })
      await isWatched
      await (await fetch(origin)).json()
      const [{ events }] = await collector.spans()
      await app.close()
      say(events.map(({ attributes }) => attributes))
    }, { args: [compiled], nodeArgs })
    const { said: [[attributes]] } = await child.exit
    const [file, lines] = nodeArgs.length > 0 ? [source, text] : [compiled, output]
    const line = lines.split('\n').findIndex((each) => each.includes('while (')) + 1
    t.not(text.split('\n').findIndex((each) => each.includes('while (')), output.split('\n').findIndex((each) => each.includes('while (')), 'the lines have moved')
    t.match(attributes, { 'code.function.name': 'search', 'code.file.path': file, 'code.line.number': line })
    t.ok(attributes['code.stacktrace'].includes(`at search (${file}:${line}:`), attributes['code.stacktrace'])
  })
}

test('streamed, hijacked, aborted and HTTP/2 requests record that they waited, once each', async (t) => {
  const child = runInChild(t, async ({ Fastify, lightTrace, say, root }) => {
    const { EventEmitter, once } = require('node:events')
    const http = require('node:http')
    const http2 = require('node:http2')
    const { Readable } = require('node:stream')
    const { createCollector } = require(`${root}/lib/features/testing/testing`)
    const collector = createCollector()
    const isWatched = once(process, 'worker').then(([worker]) => once(worker, 'online'))
    const steps = new EventEmitter()
    const [open, over] = [[], once(steps, 'release')]
    const opened = (name) => { open.push(name); steps.emit('open') }
    const origins = []
    const apps = []
    for (const options of [{}, { http2: true }]) {
      const app = Fastify({ ...options, forceCloseConnections: !options.http2 })
      apps.push(app)
      await app.register(lightTrace, { spanProcessors: [collector], slow: { blockedLoop: true } })
      app.get('/waits', async () => { opened('waits'); await over; return {} })
      app.get('/aborted', async () => { opened('aborted'); await over; return {} })
      app.get('/streamed', (request, reply) => reply.send(Readable.from((async function * () {
        yield 'first'
        opened('streamed')
        await over
        yield 'last'
      })())))
      app.get('/hijacked', async (request, reply) => {
        reply.hijack()
        opened('hijacked')
        await over
        reply.raw.end('{}')
      })
      app.get('/blocks', async () => {
        await null
        const until = performance.now() + 800
        while (performance.now() < until) ;
        steps.emit('release')
        return {}
      })
      origins.push(await app.listen({ port: 0, host: '127.0.0.1' }))
    }
    await isWatched
    const answers = ['/waits', '/streamed', '/hijacked'].map((path) => fetch(origins[0] + path).then((answer) => answer.text()))
    const session = http2.connect(origins[1])
    const stream = session.request({ ':path': '/waits' }).resume()
    const left = http.get(`${origins[0]}/aborted`).on('error', () => {})
    while (open.length < 5) await once(steps, 'open')
    const blocks = fetch(`${origins[0]}/blocks`)
    left.destroy()
    await Promise.all([blocks, once(stream, 'close'), ...answers])
    session.close()
    const spans = await collector.spans()
    for (const app of apps) await app.close()
    const of = (attributes, key) => attributes[`light_trace.blocked_loop.${key}`]
    const culprit = spans.find(({ name }) => name === 'GET /blocks').events.find(({ attributes }) => of(attributes, 'role') === 'culprit')
    // A busy machine may block the loop once more.
    const ofBlock = ({ events }) => events.map(({ attributes }) => attributes).filter((attributes) => of(attributes, 'id') === of(culprit.attributes, 'id'))
    say(spans.map((span) => [span.name, ...ofBlock(span).map((attributes) => of(attributes, 'role'))].join(' ')).sort())
  })
  const { said: [spans] } = await child.exit
  t.same(spans.filter((text) => !text.startsWith('GET /aborted')), ['GET /blocks culprit', 'GET /hijacked victim', 'GET /streamed victim', 'GET /waits victim', 'GET /waits victim'])
  t.match(spans.filter((text) => text.startsWith('GET /aborted')), [/^GET \/aborted( victim)?$/], 'it may have been over by then')
})

// Runs in the child. The options configure the blocking and the process.
async function blockOnce ({ Fastify, lightTrace, say, root }, { apps = 1, end = 'close', inspects = false, isWatched = false } = {}) {
  const { once } = require('node:events')
  const watched = once(process, 'worker').then(([worker]) => once(worker, 'online'))
  const { createCollector } = require(`${root}/lib/features/testing/testing`)
  const lines = []
  const collector = createCollector()
  const logger = () => ({ level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line).msg) } })
  const opened = []
  for (let i = 0; i < apps; i++) {
    const app = Fastify({ logger: logger() })
    await app.register(lightTrace, { spanProcessors: [collector], slow: { blockedLoop: true } })
    app.get('/', async () => {
      const until = performance.now() + 800
      let count = 0
      while (performance.now() < until) count++
      if (end === 'exit') process.exit(7)
      return { count }
    })
    opened.push({ app, origin: await app.listen({ port: 0, host: '127.0.0.1' }) })
  }
  if (isWatched) await watched
  if (inspects) require('node:inspector').open(0)
  for (const { origin } of opened) await (await fetch(origin)).json()
  const spans = await collector.spans()
  for (const { app } of opened) await app.close()
  if (inspects) require('node:inspector').close()
  say({ lines, events: spans.flatMap(({ events }) => events.map(({ attributes }) => attributes['light_trace.blocked_loop.role'])) })
}

for (const [where, { reason, ...options }] of Object.entries({
  'with --inspect': { nodeArgs: ['--inspect=0'], reason: /debugger/ },
  'where a debugger comes later': { args: [{ inspects: true, isWatched: true }], reason: /debugger/ },
  'under --permission': { nodeArgs: [...permission('--allow-worker')], reason: /permission/ },
  'under --permission without workers': { nodeArgs: [...permission()], reason: /permission/ }
})) {
  test(`${where}, one line reports that it is unavailable, and the app continues`, async (t) => {
    const { code, said: [{ lines, events }] } = await runInChild(t, blockOnce, options).exit
    t.equal(code, 0)
    t.match(lines, [reason])
    t.equal(lines.length, 1)
    t.same(events, [])
  })
}

test('under --permission-audit without permissions, if Node has no inspector, it is reported as unavailable', { skip: !process.allowedNodeEnvironmentFlags.has('--permission-audit') }, async (t) => {
  const { code, said: [{ lines, events }] } = await runInChild(t, blockOnce, { nodeArgs: ['--permission-audit'] }).exit
  t.equal(code, 0)
  t.match(lines, [/permission model is on, without --allow-worker and --allow-inspector/])
  t.same(events, [])
})

test('it continues after the debugger\'s port is closed again', { skip: process.platform === 'win32' }, async (t) => {
  const child = runInChild(t, async ({ Fastify, lightTrace, say, root }) => {
    const inspector = require('node:inspector')
    const { once } = require('node:events')
    const { setTimeout: wait } = require('node:timers/promises')
    const { createCollector } = require(`${root}/lib/features/testing/testing`)
    const lines = []
    const collector = createCollector()
    const isWatched = once(process, 'worker').then(([worker]) => once(worker, 'online'))
    const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line).code) } } })
    await app.register(lightTrace, { spanProcessors: [collector], slow: { blockedLoop: true } })
    app.get('/', async () => ({}))
    app.get('/blocks', async () => {
      for (const until = performance.now() + 400; performance.now() < until;);
      return {}
    })
    const origin = await app.listen({ port: 0, host: '127.0.0.1' })
    await isWatched
    process.kill(process.pid, 'SIGUSR1')
    while (!lines.includes('LT_WARN_BLOCKED_LOOP')) {
      await (await fetch(origin)).text()
      await wait(20)
    }
    await (await fetch(`${origin}/blocks`)).text()
    const meanwhile = (await collector.spans()).flatMap(({ events }) => events).length
    inspector.close()
    let events = []
    for (let run = 0; run < 20 && events.length === 0; run++) {
      await (await fetch(`${origin}/blocks`)).text()
      await wait(100)
      events = (await collector.spans()).flatMap(({ events }) => events)
    }
    await app.close()
    say({ meanwhile, events: events.length, lines })
  }, { nodeArgs: ['--inspect-port=0'] })
  const { code, said: [{ meanwhile, events, lines }] } = await child.exit
  t.equal(code, 0)
  t.equal(meanwhile, 0)
  t.ok(events > 0)
  t.equal(lines.filter((code) => code === 'LT_WARN_BLOCKED_LOOP').length, 1)
})

test('in a worker it is reported as unavailable, and the app continues', async (t) => {
  const { code, said: [{ lines }] } = await runInChild(t, async ({ root }, block) => {
    const { Worker } = require('node:worker_threads')
    const source = `const Fastify = require('fastify'); const { parentPort } = require('node:worker_threads');
      (${block})({ Fastify, lightTrace: require(${JSON.stringify(root)}), say: (value) => parentPort.postMessage(value), root: ${JSON.stringify(root)} })`
    new Worker(source, { eval: true }).on('message', (value) => console.log(JSON.stringify(value)))
  }, { args: [String(blockOnce)] }).exit
  t.equal(code, 0)
  t.match(lines, [/runs in a worker/])
})

test('after 25 days, when its clock exceeds 32 bits, it still detects a blocked loop', async (t) => {
  const later = 'const now = performance.now.bind(performance); performance.now = () => now() + 2 ** 31'
  const nodeArgs = ['--import', `data:text/javascript,${encodeURIComponent(later)}`]
  const { code, said: [{ events }] } = await runInChild(t, blockOnce, { nodeArgs, args: [{ isWatched: true }] }).exit
  t.equal(code, 0)
  t.match(events, ['culprit'])
})

test('two apps in one process share one worker, and each has its event', async (t) => {
  const { code, said: [{ lines, events }] } = await runInChild(t, blockOnce, { args: [{ apps: 2, isWatched: true }] }).exit
  t.equal(code, 0, 'nothing keeps the process alive')
  t.ok(events.filter((role) => role === 'culprit').length >= 2, 'a busy machine may block it once more')
  t.ok(lines.length >= 2)
})

test('a process that exits while its loop is blocked exits at once, without output of a debugger', async (t) => {
  const { code, stderr } = await runInChild(t, blockOnce, { args: [{ end: 'exit', isWatched: true }] }).exit
  t.equal(code, 7)
  t.equal(stderr, '')
})

test('a process that was stopped blames no code', { skip: process.platform === 'win32' }, async (t) => {
  const child = runInChild(t, async ({ Fastify, lightTrace, say, root }) => {
    const { createCollector } = require(`${root}/lib/features/testing/testing`)
    const lines = []
    const collector = createCollector()
    const app = Fastify({ logger: { level: 'warn', stream: { write: (line) => lines.push(JSON.parse(line).msg) } } })
    await app.register(lightTrace, { spanProcessors: [collector], slow: { blockedLoop: true } })
    app.get('/', async () => {
      say('open')
      await new Promise((resolve) => process.once('SIGUSR2', resolve))
      await new Promise((resolve) => setTimeout(resolve, 300))
      return {}
    })
    await fetch(await app.listen({ port: 0, host: '127.0.0.1' }))
    const spans = await collector.spans()
    await app.close()
    say({ lines, events: spans.flatMap(({ events }) => events.map(({ attributes }) => attributes)) })
  })
  t.equal(await child.said(), 'open')
  await new Promise((resolve) => setTimeout(resolve, 200))
  child.kill('SIGSTOP')
  await new Promise((resolve) => setTimeout(resolve, 1000))
  child.kill('SIGCONT')
  child.kill('SIGUSR2')
  const { said: [, { lines, events }] } = await child.exit
  t.same(events, [])
  t.same(lines, [])
})

/** Returns the flags that start a process under Node's permission model, for this Node. */
function permission (...rights) {
  const flags = process.allowedNodeEnvironmentFlags
  const net = flags.has('--allow-net') ? ['--allow-net'] : []
  return [flags.has('--permission') ? '--permission' : '--experimental-permission', '--allow-fs-read=*', ...net, ...rights]
}

test('a blocked loop takes a snapshot of unsampled requests: the one that blocked it, and those that waited', { skip: without('keep') }, async (t) => {
  const sink = await startSink(t)
  const child = runInChild(t, async ({ Fastify, lightTrace, say }, url) => {
    const { EventEmitter, once } = require('node:events')
    // One of ten blocks may be missed, and an application takes an automatic snapshot only once a minute. So each further try uses a new
    // application.
    for (let run = 0, sent = 0; run < 10 && sent < 2; run++) {
      const isWatched = once(process, 'worker').then(([worker]) => once(worker, 'online'))
      const steps = new EventEmitter()
      const app = Fastify()
      await app.register(lightTrace, { sampler: 0, keep: { recorder: { blockedLoop: true } }, slow: { blockedLoop: true }, exporter: { url } })
      app.get('/waits', () => new Promise((resolve) => {
        steps.once('release', resolve)
        steps.emit('open')
      }))
      app.get('/blocks', async () => {
        for (const end = performance.now() + 400; performance.now() < end;);
        steps.emit('release', '')
        return ''
      })
      const origin = await app.listen({ port: 0, host: '127.0.0.1' })
      await isWatched
      const isOpen = once(steps, 'open')
      const waits = fetch(`${origin}/waits`)
      await isOpen
      await fetch(`${origin}/blocks`)
      await waits
      await new Promise((resolve) => setTimeout(resolve, 1500))
      sent = app.lightTrace.stats().spans.accepted
      await app.close()
    }
    say('done')
  }, { args: [sink.url], killAfterMs: 50_000 })
  t.equal((await child.exit).code, 0)
  const reasons = sink.spans.map(({ name, attributes }) => `${name}: ${attributes['light_trace.kept']}, ${attributes['light_trace.snapshot.reason']}`)
  for (const name of ['GET /blocks', 'GET /waits']) t.ok(reasons.includes(`${name}: snapshot, blocked loop`), `${name} of ${reasons}`)
})
