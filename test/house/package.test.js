'use strict'

// The published package has all that its users need, and nothing that harms them. The comment above each test names the readers that it
// protects, and from what.

const { exec } = require('node:child_process')
const { readFileSync, readdirSync } = require('node:fs')
const { join, posix } = require('node:path')
const { test } = require('tap')
const { jobs } = require('../../scripts/ci-jobs')
const { requiredFiles } = require('../../scripts/required-files')

const ROOT = join(__dirname, '..', '..')
const BYTES_MAX = 1_940_000 // unpacked, the disk space of an installation. A sixth is the docs, whose links lead nowhere else. Slow requests, blocked loops, folded calls, budgets and `check` take 130 kB; several collectors, back pressure and configuration files 50; a guard, a fair budget, redacted records and hints for wrong options 50; a close that comes last, whole failed requests and one outcome 20; the table of codes 15; the viewer's metrics with uPlot, map of services, conditions, statistics and gRPC 220
const BYTES_OF_A_FILE_MAX = 200_000 // the largest, viewer/page.html, has 184 kB

const MEANT = new RegExp(`^(?:${[
  'LICENSE', '(?:README|CHANGELOG|SECURITY|UPGRADING)\\.md', 'package\\.json', '(?:index|register)\\.(?:js|d\\.ts)',
  'lib/(?:[\\w-]+/)*[\\w-]+\\.(?:js|d\\.ts)', 'lib/runtime/codes\\.json', 'viewer/(?:[\\w-]+/)*[\\w-]+\\.js', 'viewer/page\\.html', 'docs/[\\w-]+\\.md',
  'examples/(?:[\\w-]+/)?[\\w-][\\w.-]*\\.(?:m?js|mts|json|yml)'
].join('|')})$`)
const ODD = /(?:^|\/)\.|\.(?:map|pem|key|env|log)\b|\bfixtures?\b|(?:secret|credential|key|token)s?\b[^/]*\.(?:json|yml)$/i // code and docs may be about keys

const SECRETS = {
  'a private key': /-----BEGIN [A-Z ]*PRIVATE KEY/,
  'a key of a cloud': /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,}/,
  'a token of a forge or registry': /\b(?:gh[opsur]_|github_pat_|npm_)\w{20,}|\bglpat-[\w-]{20,}/,
  'a key of a service': /\bxox[abeoprs]-[\w-]{10,}|\b[rs]k_live_\w{16,}|\bsk-[\w-]{20,}|\bglc_\w{20,}|\bhc[ab]?[ix]?k_\w{20,}|\bdt0[a-z]\d\d\.\w{20,}|\b\w{36}NRAL\b/,
  'a JWT': /\beyJ[\w-]{10,}\.eyJ[\w-]{10,}/,
  'an authorization': /\b(?:Bearer|Basic)(?: |%20)(?!(?:[A-Z\d]+_)+[A-Z]+\b)[\w+/.-]{20,}/, // YOUR_SECRET_TOKEN is a placeholder
  'a URL with a password': /\bhttps?:\/\/(?!USER:PASSWORD@)[^\s/:@'"`]+:[^\s/@'"`]+@/,
  'a value under the name of a secret': /(?:password|passwd|secret|token|api[_-]?key)['"]?\s*[:=]\s*(['"])[^\s'"<$]{8,}\1/i,
  'a source map': /sourceMappingURL=/,
  'a path of a machine': /(?:\/home|\/Users|[A-Z]:\\Users)[/\\]\w+[/\\]|\/root\//
}

let packing = null

// Protects users from a require of a file that is not in the package.
test('the package has every file that its entries need', async (t) => {
  const { files, unpackedSize } = await packed()
  const names = new Set(files.map(({ path }) => path))
  const required = requiredFiles()
  t.ok(required.size > 80)
  t.same([...required].filter((file) => !names.has(file)), [])
  t.ok(names.has('SECURITY.md'))
  t.notOk([...names].some((file) => /^(?:test|bench|scripts|node_modules)\//.test(file)), 'and no other')
  t.ok(unpackedSize <= BYTES_MAX, `${unpackedSize} bytes`)
})

// This test and the next two protect the publisher from publishing a secret, and users from useless files.
test('the package has no unneeded files: no other types, no possible keys, tokens or fixtures, and nothing large', async (t) => {
  const { files } = await packed()
  t.ok(files.length > 150)
  t.same(files.flatMap(({ path, size }) => whatIsOdd(path, size).map((what) => `${path}: ${what}`)), [])
})

test('no file of the package contains a secret, a source map or a path of the build machine', async (t) => {
  const { files } = await packed()
  t.same(files.flatMap(({ path }) => whatIsSecret(readFileSync(join(ROOT, path), 'utf8')).map((what) => `${path}: ${what}`)), [])
})

test('the scan finds each kind of secret', async (t) => {
  const odd = ['.env', 'lib/.env', 'lib/.npmrc', '.github/workflows/ci.yml', 'lib/tracer.js.map', 'lib/tracer.test.js', 'lib/fixtures/app.js', 'examples/server-key.json', 'examples/id_rsa',
    'examples/api-token.yml', 'examples/cert.pem', 'examples/deep/er/app.js', 'docs/images/a.png', 'docs/internal.txt', 'viewer/other.html', 'lib/addon.node', 'light-trace-0.1.0.tgz', 'notes.md', 'package-lock.json']
  t.same(odd.filter((path) => whatIsOdd(path, 1).length === 0), [])
  t.same(whatIsOdd('lib/tracer.js', BYTES_OF_A_FILE_MAX), [])
  t.not(whatIsOdd('lib/tracer.js', BYTES_OF_A_FILE_MAX + 1).length, 0)
  const x = (count) => 'Ab3'.repeat(count) // joined at run time, so that secret scanners do not take them for real ones
  const secrets = {
    'a private key': ['-----BEGIN PRIVATE' + ' KEY-----', '-----BEGIN RSA PRIVATE' + ' KEY-----', '-----BEGIN OPENSSH PRIVATE' + ' KEY-----'],
    'a key of a cloud': ['AKIA' + 'A'.repeat(16), 'AIza' + x(12)],
    'a token of a forge or registry': ['ghp_' + x(12), 'github_pat_' + x(12), 'glpat-' + x(7), 'npm_' + x(12)],
    'a key of a service': ['xoxb-' + x(6), 'sk_live_' + x(8), 'sk-proj-' + x(8), 'glc_' + x(12), 'hcaik_' + x(12), 'dt0c01.' + x(8), '0'.repeat(36) + 'NRAL'],
    'a JWT': [`eyJ${x(6)}.eyJ${x(6)}.${x(6)}`],
    'an authorization': ['Authorization: Bearer ' + x(8), 'authorization=Basic%20' + x(8)],
    'a URL with a password': ['https://ann:hunter2@collector.example/'],
    'a value under the name of a secret': ["password: 'hunter2hunter2'", 'API_KEY="hunter2hunter2"', '"secret": "hunter2hunter2"'],
    'a source map': ['//# sourceMapping' + 'URL=tracer.js.map'],
    'a path of a machine': ["require('/home/ann/light-trace')", 'at /Users/ann/app.js:1:1', 'file:///root/app.js', 'C:\\Users\\ann\\app.js']
  }
  t.same(Object.keys(secrets), Object.keys(SECRETS))
  for (const [name, texts] of Object.entries(secrets)) {
    for (const text of texts) t.same(whatIsSecret(`before\n${text}\nafter`), [name], text.slice(0, 12))
  }
})

// Protects users from code that runs during installation.
test('nothing runs when the package is installed', async (t) => {
  const { scripts } = require('../../package.json')
  for (const name of ['preinstall', 'install', 'postinstall', 'prepublish', 'preprepare', 'prepare', 'postprepare']) t.notOk(name in scripts, name)
})

// Protects users who decide by the size in the docs from an outdated one.
test('the published size is within a twentieth of the package\'s: node bench/run/installed-size.js && npm run docs:figures', async (t) => {
  const { unpackedSize } = await packed()
  const { installedBytes } = require('../../bench/results/sizes.json')
  t.ok(Math.abs(installedBytes.lighttrace / unpackedSize - 1) < 0.05, `${installedBytes.lighttrace} published, ${unpackedSize} packed and fastify-plugin`)
})

// Protects readers of the docs in node_modules from a link that leads out of the package.
test('every link of the packed pages leads into the package; only pictures are not packed', async (t) => {
  const { files } = await packed()
  const names = new Set(files.map(({ path }) => path))
  const folders = new Set([...names].flatMap((name) => name.split('/').slice(0, -1).map((_, index, parts) => parts.slice(0, index + 1).join('/'))))
  const wrong = []
  for (const page of [...names].filter((name) => name.endsWith('.md'))) {
    const links = readFileSync(join(ROOT, page), 'utf8').matchAll(/\]\((?![a-z]+:|#)([^)#\s]+)[^)]*\)/g)
    for (const [, link] of links) {
      const target = posix.join(posix.dirname(page), link)
      if (/\.(?:svg|png)$/.test(target)) continue
      if (!names.has(target) && !folders.has(target.replace(/\/$/, ''))) wrong.push(`${page}: ${link}`)
    }
  }
  t.same(wrong, [])
})

// Protects newcomers from an example that installs another version or that they cannot start.
test('each project of examples/ needs this version, is private, and has one command to start or test it', async (t) => {
  const [major, minor] = require('../../package.json').version.split('.')
  const projects = readdirSync(join(ROOT, 'examples'), { recursive: true }).filter((file) => /^[\w-]+[/\\]package\.json$/.test(file))
  t.ok(projects.length >= 6)
  for (const file of projects) {
    const manifest = JSON.parse(readFileSync(join(ROOT, 'examples', file), 'utf8'))
    t.equal(manifest.dependencies['light-trace'], `^${major}.${minor}.0`, file)
    t.equal(manifest.private, true, file)
    const readme = readFileSync(join(ROOT, 'examples', posix.dirname(file.replaceAll('\\', '/')), 'README.md'), 'utf8')
    const [, command] = /npm install && npm (start|test)$/m.exec(readme) ?? []
    t.ok(manifest.scripts[command] !== undefined, file)
  }
})

// Protects contributors and CI from untested versions of packages, and from a registry other than their own.
for (const [folder, packagesMin] of [['', 300], ['site', 100]]) {
  test(`${join(folder, 'package-lock.json')} matches package.json, names no registry, and has a hash of each package`, async (t) => {
    const manifest = require(join(ROOT, folder, 'package.json'))
    const { packages } = require(join(ROOT, folder, 'package-lock.json'))
    const { '': root, ...locked } = packages
    for (const kind of ['dependencies', 'devDependencies', 'peerDependencies']) t.same(root[kind], manifest[kind], `${kind}: npm run lockfile`)
    t.ok(Object.keys(locked).length > packagesMin)
    t.same(Object.keys(locked).filter((path) => locked[path].resolved !== undefined || !/^sha512-/.test(locked[path].integrity)), [])
    t.same(Object.values(manifest.devDependencies).filter((version) => !/^(?:npm:(?:@[\w-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+$/.test(version)), [], 'each is pinned')
  })
}

// Protects users of an old Node from a promise that is not tested.
test('the Node versions of UPGRADING.md match the matrix, and the oldest matches package.json', async (t) => {
  const promised = [...readFileSync(join(ROOT, 'UPGRADING.md'), 'utf8').matchAll(/^\| (\d+) \| \d{4}-\d\d-\d\d/gm)].map(([, major]) => major)
  t.same(promised, jobs().cells.filter((name) => /^node\d+$/.test(name)).map((name) => name.slice(4)))
  t.equal(require('../../package.json').engines.node, `>=${promised[0]}`)
})

// Protects users from an import that is undefined.
test('every entry can be required and imported by its name', async (t) => {
  t.type(require('light-trace'), 'function')
  const { default: plugin, lightTrace, current, traceClient } = await import('light-trace')
  for (const exported of [plugin, lightTrace, current, traceClient]) t.type(exported, 'function', 'by every name of the types')
  t.type(require('light-trace/testing').createCollector, 'function')
  t.type((await import('light-trace/testing')).createCollector, 'function')
})

function whatIsOdd (path, size) {
  return [
    !MEANT.test(path) && 'of no kind that is meant to be there',
    ODD.test(path) && 'its name',
    size > BYTES_OF_A_FILE_MAX && 'its size'
  ].filter(Boolean)
}

function whatIsSecret (text) {
  return Object.entries(SECRETS).filter(([, pattern]) => pattern.test(text)).map(([name]) => name)
}

function packed () {
  packing ??= new Promise((resolve, reject) => {
    // Through the system's shell, because npm is a script on Windows, which only a shell can start.
    exec('npm pack --dry-run --json --ignore-scripts', { cwd: ROOT, maxBuffer: 10_000_000 }, (error, stdout) => {
      if (error !== null) reject(error)
      else resolve(Object.values(JSON.parse(stdout))[0])
    })
  })
  return packing
}
