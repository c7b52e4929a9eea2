'use strict'

const { readdirSync, readFileSync, statSync } = require('node:fs')
const { join, relative, dirname, sep } = require('node:path')
const { test } = require('tap')

const lib = join(__dirname, '..', 'lib')

// A span's way. A room may require its own and those before it. The three rooms that instrument (fastify, otel, outbound) are
// handed the tracer and use what is before `otlp`. The files beside the rooms compose.
const GROUND = ['runtime', 'config', 'context', 'span']
const MAY_REQUIRE = {
  runtime: ['runtime'],
  config: ['runtime', 'config'],
  context: ['runtime', 'context'],
  span: ['runtime', 'context', 'span'],
  metrics: ['runtime', 'context', 'span', 'metrics'],
  otlp: ['runtime', 'context', 'span', 'metrics', 'otlp'],
  export: [...GROUND, 'metrics', 'otlp', 'export'],
  otel: [...GROUND, 'metrics', 'otel'],
  outbound: [...GROUND, 'otel', 'outbound'],
  fastify: [...GROUND, 'otel', 'outbound', 'fastify'],
  serverless: [...GROUND, 'serverless']
}

test('each file requires only what lies before it on a span\'s way', (t) => {
  t.ok(files(lib).length > 80)
  for (const file of files(lib)) {
    const room = roomOf(file)
    if (room === '') continue
    for (const required of requires(file).filter((path) => !path.endsWith('/package.json'))) {
      const target = roomOf(join(dirname(file), required))
      t.ok(MAY_REQUIRE[room].includes(target), `${relative(lib, file)} requires ${required}`)
    }
  }
  t.end()
})

test('process.env is read in one file', (t) => {
  const readers = files(lib).filter((file) => /process\.env\b/.test(readFileSync(file, 'utf8')))
  t.same(readers.map((file) => relative(lib, file)), [join('config', 'env.js')])
  t.end()
})

test('nothing but the peer and fastify-plugin is required from outside', (t) => {
  for (const file of [...files(lib), join(lib, '..', 'index.js')]) {
    const outside = [...readFileSync(file, 'utf8').matchAll(/require\('([^'.][^']*)'\)/g)]
      .map(([, name]) => name).filter((name) => !name.startsWith('node:'))
    for (const name of outside) t.ok(['fastify-plugin', '@opentelemetry/api'].includes(name), `${relative(lib, file)} requires ${name}`)
  }
  t.end()
})

function files (folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name)
    return statSync(path).isDirectory() ? files(path) : path.endsWith('.js') ? [path] : []
  })
}

function requires (file) {
  return [...readFileSync(file, 'utf8').matchAll(/require\('(\.[^']*)'\)/g)].map(([, path]) => path)
}

function roomOf (file) {
  const parts = relative(lib, file).split(sep)
  return parts.length > 1 && parts[0] !== '..' ? parts[0] : ''
}
