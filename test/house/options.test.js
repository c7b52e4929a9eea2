'use strict'

// The docs and index.d.ts describe options and variables as the table that the program reads. The comment above each test names the readers
// that it protects, and from what.

const { readFileSync, readdirSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')
const { resolveOptions } = require('../../lib/config/options')
const { MOVED, OPTIONS } = require('../../lib/config/table')
const { files, namesOfVariables, undescribed, withOptions } = require('../../scripts/options')
const { ROOT } = require('../support/program')

const OPTIONS_MAX = 28
const TABLES = ['docs/options.md', 'docs/environment.md']
const INTERNAL = ['LIGHT_TRACE_VIEWER'] // set by `npx light-trace`

// Protects users from an option, default or variable whose documentation differs from the code.
for (const file of files()) {
  test(`${file} describes options and variables as the table does: npm run docs:tables`, async (t) => {
    const content = readFileSync(join(ROOT, file), 'utf8')
    t.equal(content, withOptions(file, content))
  })
}

// Protects users from an option or variable without documentation.
test('each row of the table has a sentence, and each sentence a row', async (t) => {
  t.same(undescribed(), [])
})

// Protects users from a list of options that is too long to read.
test('there are at most 28 options, each documented', async (t) => {
  const names = Object.keys(OPTIONS)
  t.ok(names.length <= OPTIONS_MAX, `${names.length} options`)
  const pages = readdirSync(join(ROOT, 'docs')).filter((file) => file.endsWith('.md') && !TABLES.includes(`docs/${file}`)).map((file) => readFileSync(join(ROOT, 'docs', file), 'utf8'))
  const options = readFileSync(join(ROOT, 'docs/options.md'), 'utf8').replaceAll(/<!-- options:\w+:start -->[^]*?<!-- options:\w+:end -->/g, '')
  const isNamed = (name) => [options, ...pages].some((page) => new RegExp(`[\`{ ]${name}[\`:.]`).test(page))
  t.same(names.filter((name) => !isNamed(name)), [], 'a page has a use for each, outside of the table')
  t.same(Object.keys(MOVED).filter((name) => name in OPTIONS), [], 'no option exists under two names')
})

// Protects users from a documented variable that has no effect, and from an undocumented one that has.
test('the known variables of OpenTelemetry and light-trace are exactly those that are read', async (t) => {
  const known = namesOfVariables()
  t.same(known, [...new Set(known)], 'each once')
  const read = variablesRead()
  t.same(known.filter((name) => !read.has(name)), [], 'not read')
  t.same([...read].filter((name) => /^(?:OTEL|LIGHT_TRACE)_/.test(name) && !known.includes(name) && !INTERNAL.includes(name)), [], 'not known')
})

/** Returns the variables that are read, in environments that together make all of them count. */
function variablesRead () {
  const asked = new Set()
  const values = {
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_METRICS_EXPORTER: 'otlp,prometheus',
    OTEL_LOGS_EXPORTER: 'otlp',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=x',
    TRACEPARENT: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    KUBERNETES_SERVICE_HOST: '10.0.0.1',
    HTTP_PROXY: 'http://proxy:3128'
  }
  for (const endpoint of ['https://127.0.0.1:4318', 'http://192.0.2.1:4318']) {
    resolveOptions({}, new Proxy({ ...values, OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }, {
      getOwnPropertyDescriptor (target, name) {
        asked.add(name)
        return Reflect.getOwnPropertyDescriptor(target, name)
      }
    }))
  }
  return asked
}
