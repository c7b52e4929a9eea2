'use strict'

// Which files may require which others, as Node itself resolves them. A span moves in one direction, and everything is loaded at startup
// except for a few modules that most users never need. The comment above each test names the readers that it protects, and from what.

const { readdirSync, readFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { join, relative, sep } = require('node:path')
const { test } = require('tap')
const { FEATURES } = require('../../lib/features')

const ROOT = join(__dirname, '..', '..')

// A room may require itself and the rooms that are listed here. Files of lib outside of any room compose the others and may require all of
// them. Features surround the core: they may require its rooms and what their rows list, and only the table of features requires them.
const GROUND = ['runtime', 'config', 'context', 'sampling', 'span', 'http']
const CORE = {
  runtime: [],
  config: ['runtime'],
  context: ['runtime'],
  sampling: ['runtime', 'context'],
  span: ['runtime', 'context', 'sampling'],
  http: ['runtime', 'context', 'span'],
  otlp: ['runtime', 'context', 'span', 'http'],
  export: [...GROUND, 'otlp'],
  otel: GROUND,
  outbound: [...GROUND, 'otel'],
  fastify: [...GROUND, 'otel', 'outbound']
}
const TABLE = 'lib/features.js'

const files = [...filesIn('lib'), ...filesIn('viewer'), 'index.js', 'register.js'].map((file) => ({ file, required: requiredBy(file) }))

// Lets developers read one stage of a span's way without reading the others.
test('each file requires only earlier stages of a span\'s way', async (t) => {
  t.ok(files.length > 100)
  const wrong = []
  for (const { file, required } of files.filter(({ file }) => roomOf(file) in CORE)) {
    for (const { target } of required.filter(({ target }) => target.startsWith('lib/') && target !== TABLE)) {
      if (roomOf(target) !== roomOf(file) && !CORE[roomOf(file)].includes(roomOf(target))) wrong.push(`${file} requires ${target}`)
    }
  }
  t.same(wrong, [])
})

// Lets developers read the core without knowing the features, and remove a feature without breaking others.
test('only the table of features requires a feature, and features require only those that their row names', async (t) => {
  const wrong = []
  for (const { file, required } of files.filter(({ file }) => file !== TABLE && !file.startsWith('viewer/'))) {
    for (const { target } of required) {
      const feature = featureOf(target)
      if (feature === undefined || feature === featureOf(file) || (FEATURES[featureOf(file)]?.uses ?? []).includes(feature)) continue
      wrong.push(`${file} requires ${target}`)
    }
  }
  t.same(wrong, [])
  t.same(Object.keys(FEATURES).filter((name) => !files.some(({ file }) => featureOf(file) === name)), [], 'rows without a file')
})

// Protects users of the viewer from one that shows nothing after a rename in lib.
test('the members of the application\'s light-trace that the viewer uses exist', async (t) => {
  const taken = [...readFileSync(join(ROOT, 'viewer', 'preload.js'), 'utf8').matchAll(/const \{ (.+) \} = within\('(.+)'\)/g)]
  t.ok(taken.length > 1)
  for (const [, names, file] of taken) for (const name of names.split(', ')) t.ok(name in require(join(ROOT, file)), `${name} of ${file}`)
})

// Protects users from an export that is still undefined because of a require cycle.
test('no file requires itself through others', async (t) => {
  const targets = new Map(files.map(({ file, required }) => [file, file === TABLE ? [] : required.map(({ target }) => target)])) // the table loads its features later
  t.same([...targets.keys()].filter((file) => reaches(targets, file, file)), [])
})

// Protects users from a first request that waits for the disk.
test('features are loaded on demand and the core at start, except for features of options, and modules for https and proxies', async (t) => {
  // register.js loads the whole library when Fastify is first used.
  const doors = files.filter(({ file }) => !file.startsWith('viewer/') && file !== 'register.js').flatMap(({ required }) => required.filter(({ isLazy, target }) => isLazy && target.startsWith('lib/')))
  const opened = new Set(doors.map(({ target }) => target))
  t.same([...opened].filter((door) => featureOf(door) === undefined).sort(), ['lib/config/signals.js', 'lib/config/tls-and-proxy.js'])
  const loaded = reachable('index.js')
  t.same([...opened].filter((door) => loaded.has(door)), [], 'loaded at start anyway')
})

// Protects users from memory that a single quotation mark in a comment costs.
test('files that are loaded at start are ASCII: V8 stores and reads a file with one other character at two bytes each', async (t) => {
  t.same([...reachable('index.js')].filter((file) => !/^[\0-\x7f]*$/.test(readFileSync(join(ROOT, file), 'utf8'))), [])
})

// Protects users from a require of a package that is not installed.
test('the library does not require the viewer, and from outside only its peer and fastify-plugin', async (t) => {
  const required = files.filter(({ file }) => !file.startsWith('viewer/')).flatMap(({ file, required }) => required.map(({ target }) => `${file} requires ${target}`))
  t.same(required.filter((line) => /requires (?:viewer\/|node_modules\/(?!(?:fastify-plugin|@opentelemetry\/api)\/))/.test(line)), [])
})

// Protects developers from searching more than one file for the variables that are read.
test('process.env is read in one file', async (t) => {
  const readers = filesIn('lib').filter((file) => /process\.env\b/.test(readFileSync(join(ROOT, file), 'utf8')))
  t.same(readers, ['lib/config/env.js'])
})

/**
 * Returns what a file requires, as Node resolves it, without Node's own modules. A require on an indented line or in a one-line function
 * counts as loaded on demand. A parser gives the same result for all files, but takes ten times as long.
 */
function requiredBy (file) {
  const { resolve } = createRequire(join(ROOT, file))
  const found = []
  for (const line of readFileSync(join(ROOT, file), 'utf8').split('\n')) {
    if (!line.includes('require(') || /^\s*(?:\/\/|\*|\/\*)/.test(line)) continue
    for (const [, before, name] of line.matchAll(/(.*?)\brequire\((?:'([^']+)'\))?/g)) {
      if (name === undefined) throw new Error(`${file} requires what no resolver can follow`)
      if (!name.startsWith('node:')) found.push({ target: relative(ROOT, resolve(name)).split(sep).join('/'), isLazy: /^ |=>|\bfunction\b/.test(before) })
    }
  }
  return found
}

function reachable (start) {
  const seen = new Set()
  const visit = (file) => {
    if (seen.has(file)) return
    seen.add(file)
    for (const { target, isLazy } of files.find((other) => other.file === file)?.required ?? []) if (!isLazy) visit(target)
  }
  visit(start)
  return seen
}

function reaches (targets, from, to, seen = new Set()) {
  return targets.get(from).some((target) => {
    if (target === to) return true
    if (seen.has(target) || !targets.has(target)) return false
    seen.add(target)
    return reaches(targets, target, to, seen)
  })
}

function filesIn (folder) {
  return readdirSync(join(ROOT, folder), { recursive: true }).map((name) => `${folder}/${name.split(sep).join('/')}`)
    .filter((file) => file.endsWith('.js') && !file.startsWith('viewer/page/'))
}

/** Returns the row of lib/features.js to which a file belongs, or undefined for the core. */
function featureOf (file) {
  return Object.keys(FEATURES).find((name) => [].concat(FEATURES[name].files ?? [name, `${name}.js`]).some((place) => isBelow(file, `lib/features/${place}`)))
}

function isBelow (file, place) { return file === place || file.startsWith(`${place}/`) }

function roomOf (file) {
  const parts = file.split('/')
  return parts[0] === 'lib' && parts.length > 2 ? parts[1] : ''
}
