'use strict'

// What is published holds all that its users need.

const { execFile } = require('node:child_process')
const { readFileSync } = require('node:fs')
const { join, posix } = require('node:path')
const { test } = require('tap')
const { jobs } = require('../../scripts/ci-jobs')
const { requiredFiles } = require('../../scripts/required-files')

const ROOT = join(__dirname, '..', '..')
const BYTES_MAX = 1_550_000 // unpacked: what an installation takes on the disk, a sixth of it the docs, whose links lead nowhere else; slow requests, blocked loops, folded calls, budgets and `check` are 130 kB

test('the package holds every file that its entries need', async (t) => {
  const { files, unpackedSize } = await packed()
  const names = new Set(files.map(({ path }) => path))
  const required = requiredFiles()
  t.ok(required.size > 80)
  for (const file of required) t.ok(names.has(file), file)
  t.ok(names.has('SECURITY.md'))
  t.notOk([...names].some((file) => /^(?:test|bench|scripts|node_modules)\//.test(file)), 'and nothing that they do not')
  t.ok(unpackedSize <= BYTES_MAX, `${unpackedSize} bytes`)
})

test('the published size is that of the package, within a twentieth: node bench/run/installed-size.js && npm run docs', async (t) => {
  const { unpackedSize } = await packed()
  const { installedBytes } = require('../../bench/results/overhead.json')
  t.ok(Math.abs(installedBytes.lighttrace / unpackedSize - 1) < 0.05, `${installedBytes.lighttrace} published, ${unpackedSize} packed and fastify-plugin`)
})

test('every link of the pages in the package leads into it; pictures alone are not packed', async (t) => {
  const { files } = await packed()
  const names = new Set(files.map(({ path }) => path))
  for (const page of [...names].filter((name) => name.endsWith('.md'))) {
    const links = readFileSync(join(ROOT, page), 'utf8').matchAll(/\]\((?![a-z]+:|#)([^)#\s]+)[^)]*\)/g)
    for (const [, link] of links) {
      const target = posix.join(posix.dirname(page), link)
      if (/\.(?:svg|png)$/.test(target)) continue
      t.ok(names.has(target) || [...names].some((name) => name.startsWith(`${target.replace(/\/$/, '')}/`)), `${page}: ${link}`)
    }
  }
})

test('the lockfile is that of package.json, names no registry, and knows what each package is', async (t) => {
  const manifest = require('../../package.json')
  const { packages } = require('../../package-lock.json')
  const { '': root, ...locked } = packages
  for (const kind of ['dependencies', 'devDependencies', 'peerDependencies']) t.same(root[kind], manifest[kind], `${kind}: npm run lockfile`)
  t.ok(Object.keys(locked).length > 300)
  for (const [path, entry] of Object.entries(locked)) {
    t.equal(entry.resolved, undefined, path)
    t.match(entry.integrity, /^sha512-/, path)
  }
  for (const [name, version] of Object.entries(manifest.devDependencies)) {
    t.match(version, /^(?:npm:(?:@[\w-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+$/, `${name} is pinned`)
  }
})

test('the Nodes of UPGRADING.md are those of the matrix, and the oldest is that of package.json', async (t) => {
  const promised = [...readFileSync(join(ROOT, 'UPGRADING.md'), 'utf8').matchAll(/^\| (\d+) \| \d{4}-\d\d-\d\d/gm)].map(([, major]) => major)
  t.same(promised, jobs().cells.filter((name) => /^node\d+$/.test(name)).map((name) => name.slice(4)))
  t.equal(require('../../package.json').engines.node, `>=${promised[0]}`)
})

test('every entry can be required and imported by its name', async (t) => {
  t.type(require('light-trace'), 'function')
  const { default: plugin, lightTrace, current, traceClient } = await import('light-trace')
  for (const exported of [plugin, lightTrace, current, traceClient]) t.type(exported, 'function', 'by every name that the types have')
  t.type(require('light-trace/testing').createCollector, 'function')
  t.type((await import('light-trace/testing')).createCollector, 'function')
})

function packed () {
  return new Promise((resolve, reject) => {
    const command = process.platform === 'win32' ? 'npm.cmd' : 'npm'
    execFile(command, ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: ROOT, maxBuffer: 10_000_000 }, (error, stdout) => {
      if (error !== null) reject(error)
      else resolve(Object.values(JSON.parse(stdout))[0])
    })
  })
}
