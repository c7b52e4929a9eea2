'use strict'

// The location where a route is declared, on its request's span.

const { mkdirSync, readFileSync, writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { pathToFileURL } = require('node:url')
const Fastify = require('fastify')
const { test } = require('tap')
const lightTrace = require('../..')
const { without } = require('../support/features')
const { runProgram } = require('../support/program')
const { tracedApp } = require('../support/traced-app')

const lines = readFileSync(__filename, 'utf8').split('\n')
const lineOf = (text) => lines.findIndex((line) => line.includes(text)) + 1

const asInTests = { codeLocation: Boolean(without('testing')) || undefined } // undefined counts as not given

async function placeOf (app, collector, request) {
  collector.reset()
  await app.inject(request)
  const [{ attributes }] = await collector.spans()
  return { file: attributes['code.file.path'], line: attributes['code.line.number'] }
}

test('each way to declare a route records its location, also in prefixed and encapsulated plugins and with its own hook', async (t) => {
  const shared = { mine: 1 }
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: asInTests,
    routes: async (app) => {
      app.get('/short', async (request) => Object.getOwnPropertySymbols(request.routeOptions.config).filter((symbol) => Object.prototype.propertyIsEnumerable.call(request.routeOptions.config, symbol)).length)
      app.route({ method: ['GET', 'PUT'], url: '/route', config: shared, handler: async () => 'ok' }) // declared by route()
      await app.register(async (inner) => {
        inner.addHook('onRoute', () => {})
        inner.get('/', async () => 'ok') // declared in a prefix
        await inner.register(async (innermost) => {
          innermost.get('/deep', { config: shared }, async () => 'ok') // declared in a prefix of a prefix
        }, { prefix: '/b' })
      }, { prefix: '/a' })
      app.setNotFoundHandler(async () => 'nothing')
    }
  })
  const is = async (request, text) => t.same(await placeOf(app, collector, request), { file: __filename, line: lineOf(text) }, text)
  await is('/short', "app.get('/short'")
  await is({ method: 'HEAD', url: '/short' }, "app.get('/short'")
  await is('/route', '// declared by route()')
  await is({ method: 'PUT', url: '/route' }, '// declared by route()')
  await is('/a', '// declared in a prefix')
  await is('/a/', '// declared in a prefix')
  await is('/a/b/deep', '// declared in a prefix of a prefix')
  t.same(await placeOf(app, collector, '/nothing'), { file: undefined, line: undefined })
  t.equal((await app.inject('/short')).body, '0', 'a handler sees the config that was written')
  t.same(Reflect.ownKeys(shared), ['mine'])
})

test('the location is the application\'s own code in the stack, also with a loader, an ES module or a package', async (t) => {
  const folder = t.testdir({
    routes: { 'users.js': 'module.exports = async (app) => {\n  app.get("/users", async () => "ok")\n}', 'more.mjs': '\n\n\nexport default async (app) => { app.get("/more", async () => "ok") }' },
    'my app (1)': { 'odd.js': 'module.exports = async (app) => {\n\n  app.get("/odd", async () => "ok")\n}' }
  })
  const inPackage = join(folder, 'node_modules', 'pages')
  mkdirSync(inPackage, { recursive: true })
  writeFileSync(join(inPackage, 'index.js'), 'exports.plugin = async (app) => {\n  app.get("/pages", async () => "ok")\n}\nexports.add = (app, url) => app.get(url, async () => "ok")')
  const pages = require(inPackage)
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: asInTests,
    routes: async (app) => {
      await app.register(require(join(folder, 'routes/users.js')))
      await app.register(import(pathToFileURL(join(folder, 'routes/more.mjs'))))
      await app.register(require(join(folder, 'my app (1)', 'odd.js')))
      await app.register(pages.plugin)
      pages.add(app, '/added') // by a package's function
    }
  })
  t.same(await placeOf(app, collector, '/users'), { file: join(folder, 'routes', 'users.js'), line: 2 })
  t.same(await placeOf(app, collector, '/more'), { file: join(folder, 'routes', 'more.mjs'), line: 4 })
  t.same(await placeOf(app, collector, '/odd'), { file: join(folder, 'my app (1)', 'odd.js'), line: 3 })
  t.same(await placeOf(app, collector, '/pages'), { file: join(inPackage, 'index.js'), line: 2 })
  t.same(await placeOf(app, collector, '/added'), { file: __filename, line: lineOf('// by a package\'s function') })
})

test('source maps apply if Node or a loader uses them', { skip: without('testing') }, async (t) => {
  const map = { version: 3, sources: ['app.ts'], names: [], mappings: ['', '', '', '', ''].join(';') + 'AAoBA' } // line 5 is line 21 of app.ts
  const folder = t.testdir({
    'app.js': `const { createCollector } = require(${JSON.stringify(join(__dirname, '../../lib/features/testing/testing'))})\nconst collector = createCollector()
const app = require(${JSON.stringify(require.resolve('fastify'))})()\napp.register(require(${JSON.stringify(join(__dirname, '../..'))}), { spanProcessors: [collector] }).then(async () => {
app.get('/', async () => 'ok')
await app.inject('/'); const [{ attributes }] = await collector.spans(); console.log(attributes['code.file.path'] + ':' + attributes['code.line.number']); await app.close() })
//# sourceMappingURL=data:application/json;base64,${Buffer.from(JSON.stringify(map)).toString('base64')}\n`
  })
  const { stdout, stderr } = await runProgram(['--enable-source-maps', join(folder, 'app.js')])
  t.equal(stdout.trim(), `${join(folder, 'app.ts')}:21`, stderr)
})

test('the location is off by default, and in production only set by the option', { skip: without('sdk') }, async (t) => {
  const ended = []
  const processor = { onStart () {}, onEnd: (span) => ended.push(span.attributes), forceFlush: async () => {}, shutdown: async () => {} }
  const { stackTraceLimit } = Error
  for (const [codeLocation, line] of [[undefined, undefined], [false, undefined], [true, lines.indexOf("    app.get('/option', async () => 'ok')") + 1]]) {
    const app = Fastify()
    await app.register(lightTrace, { spanProcessors: [processor], registerGlobals: false, ...(codeLocation !== undefined && { codeLocation }) })
    app.get('/option', async () => 'ok')
    await app.inject('/option')
    await app.close()
    t.equal(ended.pop()['code.line.number'], line, String(codeLocation))
  }
  t.equal(Error.stackTraceLimit, stackTraceLimit)
  const { app, collector } = await tracedApp(t, { listen: false, trace: { codeLocation: false }, routes: (app) => app.get('/', async () => 'ok') })
  t.same(await placeOf(app, collector, '/'), { file: undefined, line: undefined }, 'a test can switch it off')
})

test('an attribute of the user\'s own overrides it', async (t) => {
  const { app, collector } = await tracedApp(t, {
    listen: false,
    trace: asInTests,
    routes: (app) => {
      app.get('/static', { config: { trace: { attributes: { 'code.file.path': 'mine' } } } }, async () => 'ok')
      app.get('/set', async ({ trace }) => { trace.span.setAttributes({ 'code.file.path': 'mine', 'code.line.number': 1 }) })
    }
  })
  t.same(await placeOf(app, collector, '/static'), { file: 'mine', line: undefined })
  t.same(await placeOf(app, collector, '/set'), { file: 'mine', line: 1 })
})

test('an application with its own format of stacks starts', async (t) => {
  const { prepareStackTrace } = Error
  t.teardown(() => { Error.prepareStackTrace = prepareStackTrace })
  for (const format of [() => { throw new Error('no') }, (_, sites) => sites, () => undefined, () => 'at file://%%%:1:1', () => ' at x (:1:1)\n at ']) {
    const { app, collector } = await tracedApp(t, {
      listen: false,
      trace: asInTests,
      routes: (app) => {
        Error.prepareStackTrace = format
        app.get('/', async () => 'ok')
        Error.prepareStackTrace = prepareStackTrace
      }
    })
    t.same(await placeOf(app, collector, '/'), { file: undefined, line: undefined }, String(format))
  }
})
