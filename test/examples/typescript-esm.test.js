'use strict'

const { readFileSync, writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')
const { startExample, sinkFor, tree, promised, ended, directoryOf } = require('../support/examples')

test('the example compiles, and its requests are traced', async (t) => {
  const { sink, endpoint } = await sinkFor(t)
  const example = startExample(t, 'typescript-esm', { ...endpoint, PORT: '0' })
  const [, origin] = await example.output(/Server listening at (http:\/\/127\.0\.0\.1:\d+)/)
  t.same(await (await fetch(`${origin}/customers/7/price`)).json(), { price: 8 })
  t.equal(tree(await sink.waitFor(2)), promised('typescript-esm'))
  t.equal(sink.spans.find(({ kind }) => kind === 'INTERNAL').attributes['customer.id'], 7)
  await example.stop()
})

test('the compiler checks the store and the options', async (t) => {
  const directory = directoryOf('typescript-esm')
  const change = async (file, from, to) => {
    const name = join(directory, 'src', file)
    const source = readFileSync(name, 'utf8')
    t.ok(source.includes(from), from)
    writeFileSync(name, source.replace(from, to))
    const { output } = await ended('build', directory)
    writeFileSync(name, source)
    return output
  }
  t.match(await change('price.ts', "=== 'pro'", "=== 'prp'"), /src\/price\.ts.*TS2367/)
  t.match(await change('app.ts', "set('customer'", "set('custmer'"), /src\/app\.ts.*TS/)
  t.match(await change('app.ts', 'serviceName:', 'servicName:'), /src\/app\.ts.*TS2561/)
})
