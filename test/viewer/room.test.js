'use strict'

// The viewer is separate from the library. No app loads it, and it needs no dependencies besides those of the package.

const { readdirSync, readFileSync } = require('node:fs')
const { join, relative, resolve, dirname, sep } = require('node:path')
const { test } = require('tap')
const { perfettoOf } = require('../../viewer/views/perfetto')
const { TraceStore } = require('../../viewer/store/trace-store')
const { encodeRequest } = require('../support/otlp-encode')
const { spansOf, traceId } = require('./support')

const ROOT = join(__dirname, '../..')

const filesOf = (folder) => readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.js')).map((entry) => join(entry.parentPath ?? entry.path, entry.name))

const requiresOf = (file) => [...readFileSync(file, 'utf8').matchAll(/(?:require\(|from |import\()'([^']+)'/g)].map(([, name]) => name)

test('nothing that an app loads requires the viewer', async (t) => {
  for (const file of [...filesOf('lib'), join(ROOT, 'index.js'), join(ROOT, 'register.js')]) {
    t.notOk(requiresOf(file).some((name) => name.startsWith('.') && relative(join(ROOT, 'viewer'), resolve(dirname(file), name)).startsWith('..') === false), relative(ROOT, file))
  }
})

test('the viewer requires Node\'s modules and its own, and of the library only the plugin, the suggested names, budgets, the console\'s words and the shape of a statement', async (t) => {
  const outside = new Set(filesOf('viewer').flatMap((file) => requiresOf(file).map((name) => name.startsWith('.') ? relative(ROOT, resolve(dirname(file), name)).split(sep).join('/') : name)))
  t.same([...outside].filter((name) => !name.startsWith('node:') && !/^viewer\b/.test(name)).sort(), ['index', 'lib/config/checks', 'lib/features/console', 'lib/features/libraries/statement', 'lib/features/testing/budget', 'package.json'])
})

test('slices of one lane are nested or side by side', async (t) => {
  const store = new TraceStore()
  // Overlapping siblings, late work after its parent, and another service.
  store.receive(encodeRequest(spansOf([
    { id: 1, ms: 100 }, { id: 2, parent: 1, at: 10, ms: 50 }, { id: 3, parent: 1, at: 20, ms: 60 }, { id: 4, parent: 2, at: 15, ms: 10 },
    { id: 5, parent: 3, at: 25, ms: 10 }, { id: 6, parent: 1, at: 90, ms: 50 }, { id: 7, parent: 6, at: 120, ms: 5 }, { id: 8, parent: 1, at: 62, ms: 20 }
  ])))
  store.receive(encodeRequest(spansOf([{ id: 9, parent: 2, kind: 2, at: 20, ms: 10 }], 'stock')))
  const { traceEvents } = perfettoOf(store.get(traceId(1)))
  const slices = traceEvents.filter(({ ph }) => ph === 'X')
  t.equal(slices.length, 9)
  t.same(traceEvents.filter(({ ph }) => ph === 'M').map(({ args }) => args.name), ['shop', 'stock'])
  for (const a of slices) {
    for (const b of slices) {
      if (a === b || a.pid !== b.pid || a.tid !== b.tid) continue
      const [aEnd, bEnd] = [a.ts + a.dur, b.ts + b.dur]
      t.ok(aEnd <= b.ts || bEnd <= a.ts || (a.ts <= b.ts && bEnd <= aEnd) || (b.ts <= a.ts && aEnd <= bEnd), `${a.args.span} and ${b.args.span}`)
    }
  }
  t.equal(slices.find(({ args }) => args.span.endsWith('4')).tid, slices.find(({ args }) => args.span.endsWith('2')).tid, 'a child is beneath its parent')
})
