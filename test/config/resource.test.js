'use strict'

const { spawnSync } = require('node:child_process')
const os = require('node:os')
const path = require('node:path')
const { test } = require('tap')
const { resolveOptions } = require('../../lib/config/options')
const { version } = require('../../package.json')

const attributesOf = (options, environment = {}) => resolveOptions(options, environment).resource.attributes

test('the resource describes the service, the process and the machine', (t) => {
  const attributes = attributesOf({})
  const { 'container.id': containerId, ...others } = attributes // if the tests run in a container
  t.same({ ...others, 'service.instance.id': 'random' }, {
    'service.name': 'light-trace',
    'service.version': version,
    'service.instance.id': 'random',
    'telemetry.sdk.name': 'light-trace',
    'telemetry.sdk.language': 'nodejs',
    'telemetry.sdk.version': version,
    'process.pid': process.pid,
    'process.runtime.name': 'nodejs',
    'process.runtime.version': process.versions.node,
    'host.name': os.hostname()
  })
  t.match(attributes['service.instance.id'], /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  t.not(attributesOf({})['service.instance.id'], attributes['service.instance.id'])
  t.equal(Object.getPrototypeOf(attributes), null)
  t.end()
})

test('OTEL_RESOURCE_ATTRIBUTES overrides what is detected, and code overrides both', (t) => {
  const environment = { OTEL_RESOURCE_ATTRIBUTES: 'host.name=env,a=1%2C2, b = c=d ,__proto__=x' }
  const attributes = attributesOf({ resource: { b: 'code', n: 1, list: ['x'], skipped: undefined } }, environment)
  t.match(attributes, { 'host.name': 'env', a: '1,2', b: 'code', n: 1, list: ['x'] })
  t.ok(Object.hasOwn(attributes, '__proto__'))
  t.notOk(Object.hasOwn(attributes, 'skipped'))
  t.end()
})

test('the service name comes from code, then OTEL_SERVICE_NAME, then OTEL_RESOURCE_ATTRIBUTES, then package.json', (t) => {
  const ways = [
    [{ serviceName: 'a', resource: { 'service.name': 'b' } }, { OTEL_SERVICE_NAME: 'c', OTEL_RESOURCE_ATTRIBUTES: 'service.name=d' }, 'a'],
    [{ resource: { 'service.name': 'b' } }, { OTEL_SERVICE_NAME: 'c', OTEL_RESOURCE_ATTRIBUTES: 'service.name=d' }, 'b'],
    [{}, { OTEL_SERVICE_NAME: 'c', OTEL_RESOURCE_ATTRIBUTES: 'service.name=d' }, 'c'],
    [{}, { OTEL_SERVICE_NAME: ' ', OTEL_RESOURCE_ATTRIBUTES: 'service.name=d' }, 'd'],
    [{}, {}, 'light-trace']
  ]
  for (const [options, environment, expected] of ways) {
    const settings = resolveOptions(options, environment)
    t.equal(settings.serviceName, expected)
    t.equal(settings.resource.attributes['service.name'], expected)
  }
  t.end()
})

test('the version comes from the app\'s package.json, and everything else overrides it', (t) => {
  for (const [options, environment, expected] of [
    [{ serviceName: 'shop' }, {}, version],
    [{}, { OTEL_RESOURCE_ATTRIBUTES: 'service.version=3' }, '3'],
    [{ resource: { 'service.version': '4' } }, { OTEL_RESOURCE_ATTRIBUTES: 'service.version=3' }, '4']
  ]) t.equal(attributesOf(options, environment)['service.version'], expected)
  t.end()
})

test('deployment.environment.name is only set explicitly', (t) => {
  t.notOk('deployment.environment.name' in attributesOf({}, { NODE_ENV: 'production', VERCEL: '1', VERCEL_ENV: 'preview' }))
  t.notOk(Object.keys(attributesOf({})).some((key) => /command|owner|args/.test(key)), 'no attribute that may hold a secret is set')
  t.end()
})

test('an OTEL_RESOURCE_ATTRIBUTES with any error is discarded as a whole and logged', (t) => {
  for (const text of ['a=1,b', 'a=1,=2', 'a=1,b=%zz', 'a=1,%zz=2', `a=1,b=${'x'.repeat(70000)}`]) {
    const { resource, warnings } = resolveOptions({}, { OTEL_RESOURCE_ATTRIBUTES: text })
    t.notOk(Object.hasOwn(resource.attributes, 'a'), text.slice(0, 20))
    t.equal(warnings.length, 1)
    t.match(warnings[0], { code: 'LT_WARN_ENV', message: /OTEL_RESOURCE_ATTRIBUTES/ })
  }
  t.same(resolveOptions({}, { OTEL_RESOURCE_ATTRIBUTES: 'a=1,,' }).warnings, [])
  t.end()
})

// P09. In a separate process, because the result depends on the script and the working directory.
test('without a name, the service is named after the app\'s nearest package.json, else unknown_service:node', (t) => {
  const options = path.join(__dirname, '../../lib/config/options.js')
  const print = `process.stdout.write(require(${JSON.stringify(options)}).resolveOptions({}, {}).serviceName)`
  const manifest = (name) => JSON.stringify({ name })
  const home = t.testdir({
    app: {
      'package.json': manifest('@acme/app'),
      'server.cjs': print,
      src: { 'package.json': '{ "type": "commonjs" }', 'server.cjs': print },
      broken: { 'package.json': '{' },
      odd: { 'package.json': 'null' },
      node_modules: { tool: { 'package.json': manifest('tool'), 'cli.cjs': print } }
    }
  })
  const named = (file, cwd = os.tmpdir()) => spawnSync(process.execPath, [path.join(home, file)], { cwd, encoding: 'utf8' }).stdout
  t.equal(named('app/server.cjs'), '@acme/app')
  t.equal(named('app/src/server.cjs'), '@acme/app')
  for (const folder of ['src', 'broken', 'odd']) {
    t.equal(named('app/node_modules/tool/cli.cjs', path.join(home, 'app', folder)), '@acme/app', folder)
  }

  const root = path.parse(process.cwd()).root
  const lost = spawnSync(process.execPath, ['-e', print], { cwd: root, encoding: 'utf8' })
  t.equal(lost.stdout, 'unknown_service:node')
  const inFunction = spawnSync(process.execPath, ['-e', print.replace('({}, {})', "({}, { AWS_LAMBDA_FUNCTION_NAME: 'orders' })")], { cwd: root, encoding: 'utf8' })
  t.equal(inFunction.stdout, 'orders', 'a function without a package.json has a name')
  t.end()
})
