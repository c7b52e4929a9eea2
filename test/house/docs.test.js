'use strict'

// Compares README and docs with the code. The comment above each test names the readers that it protects, and from what.

const { existsSync, readFileSync, readdirSync } = require('node:fs')
const { dirname, join, relative } = require('node:path')
const { parse } = require('espree')
const { test } = require('tap')
const { resolveOptions } = require('../../lib/config/options')
const { startProgram, ROOT } = require('../support/program')
const { startSink } = require('../support/otlp-sink')
const { requiredFiles } = require('../../scripts/required-files')
const { codeTables } = require('../../scripts/code-tables')
const { SUITES } = require('../../scripts/suites')
const codes = require('../../lib/runtime/codes.json')
const { listed } = require('../../site/pages')

const texts = new Map()
const headingsOf = new Map()

const pages = ['README.md', 'CHANGELOG.md', 'SECURITY.md', 'UPGRADING.md', 'CONTRIBUTING.md', 'CODE_OF_CONDUCT.md', 'bench/README.md', 'bench/RESULTS.md', 'bench/REQUESTS.md', 'bench/upstream/README.md', 'test/faults/README.md', 'skills/light-trace/SKILL.md', 'llms.txt']
  .concat(readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`))
  .filter((page) => /\.(?:md|txt)$/.test(page) && existsSync(join(ROOT, page)))
const readme = read('README.md')

// Protects newcomers from docs that take longer to read than the code takes to try.
test('the README, the changelog and the packed pages are short', async (t) => {
  const notPacked = require('../../package.json').files.filter((name) => name.startsWith('!docs/')).map((name) => name.slice(1))
  const packed = pages.filter((page) => /^(?:(?:README|CHANGELOG|SECURITY|UPGRADING)\.md$|docs\/)/.test(page) && !notPacked.includes(page))
  t.ok(packed.length > 15 && notPacked.length > 0)
  for (const [name, wordsMax, counted] of [['README.md', 900, ['README.md']], ['CHANGELOG.md', 300, ['CHANGELOG.md']], ['the packed pages', 24_000, packed]]) {
    const words = counted.flatMap((page) => read(page).split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word))).length // the bars of tables are not words
    t.ok(words <= wordsMax, `${name} has ${words} words, ${wordsMax} at most`)
  }
})

// Protects readers from a link to a missing page or heading.
test('every link to a file or a heading has a target', async (t) => {
  const wrong = []
  for (const page of pages) {
    for (const [, link] of withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(link)) continue
      const [path, heading] = link.split('#')
      const target = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path))
      if (!existsSync(join(ROOT, target)) || (heading !== undefined && target.endsWith('.md') && !headings(target).includes(heading))) wrong.push(`${page} links to ${link}`)
    }
  }
  t.same(wrong, [])
})

// Protects language models, and readers of the site, from a page that they cannot find. The site's table of contents is generated from
// llms.txt.
test('llms.txt has the form of llmstxt.org and lists every page of the docs', async (t) => {
  const [title, summary, ...rest] = read('llms.txt').trimEnd().split(/\n{2,}/)
  t.match(title, /^# [^\n]+$/)
  t.match(summary, /^> [^\n]+$/)
  const [, ...sections] = rest.join('\n\n').split(/^## .+\n\n/m)
  t.ok(sections.length >= 5)
  t.same(sections.flatMap((section) => section.trim().split('\n')).filter((line) => !/^- \[[^\]]+\]\([^)\s]+\): \S/.test(line)), [])
  const paths = listed()
  t.same(paths, [...new Set(paths)], 'each once')
  const notThere = ['CODE_OF_CONDUCT.md', 'bench/REQUESTS.md', 'bench/upstream/README.md', 'skills/light-trace/SKILL.md', 'llms.txt']
  t.same(pages.filter((page) => !notThere.includes(page) && !paths.includes(page)), [])
})

// Protects contributors from a command that does not exist.
test('every named command and file exists', async (t) => {
  const { scripts } = require('../../package.json')
  const wrong = []
  for (const page of pages.filter((page) => page !== 'CHANGELOG.md')) {
    const text = read(page)
    for (const [command, name] of text.matchAll(/npm run ([\w:-]*\w)/g)) if (!(name in scripts)) wrong.push(`${page}: ${command}`)
    for (const [command, name] of text.matchAll(/npm run test:suite -- (\w+)/g)) if (!(name in SUITES)) wrong.push(`${page}: ${command}`)
    const paths = [...text.matchAll(/npm run test:unit ([\w./ -]+)/g)].flatMap(([, paths]) => paths.trim().split(/ +/)).filter((path) => !path.startsWith('-'))
    for (const [, path] of text.matchAll(/`((?:lib|test|bench|examples|scripts)\/[\w./-]+)`/g)) paths.push(path)
    for (const path of paths) if (!existsSync(join(ROOT, path))) wrong.push(`${page}: ${path}`)
  }
  t.same(wrong, [])
})

// Protects readers of a comment from a reference to a page that does not exist or is not in the repository.
test('no file refers to a page or a decision that is not in the repository', async (t) => {
  const files = filesBelow('').filter((file) => /\.(?:m?js|m?ts|md)$/.test(file))
  const decisions = new Set(read('docs/decisions.md').match(/^## D\d+/gm).map((heading) => heading.slice(3)))
  t.ok(files.length > 200 && decisions.size >= 20)
  const wrong = []
  for (const file of files) {
    const text = read(file)
    for (const [pointer] of text.matchAll(/\bfacts\/[\w-]+\.md|\/work\/|\bissue \d+\b/g)) if (file !== 'test/house/docs.test.js') wrong.push(`${file}: ${pointer}`)
    for (const [page] of text.matchAll(/\bdocs\/[\w-]+\.md\b/g)) if (!existsSync(join(ROOT, page))) wrong.push(`${file}: ${page}`)
    if (!/^(?:lib|test|bench|scripts)\/.*\.m?js$/.test(file) || !/\bD\d/.test(text)) continue
    for (const comment of text.match(/\/\/.*|^ *\*.*/gm) ?? []) {
      for (const [name] of comment.matchAll(/\bD\d+\b/g)) if (!decisions.has(name)) wrong.push(`${file}: ${name}`)
    }
  }
  t.same(wrong, [])
})

// Protects users who look up the code of a log line from finding nothing.
test('docs/errors.md has the codes of lib/runtime/codes.json, no page names another: npm run docs:tables writes it', async (t) => {
  for (const [section, table] of Object.entries(codeTables())) t.equal(between(read('docs/errors.md'), section), table)
  const named = pages.flatMap((page) => (read(page).match(/\bLT_(?:ERR|WARN)_[A-Z_]*[A-Z]\b/g) ?? []).map((code) => `${page}: ${code}`))
  t.same(named.filter((name) => !(name.split(': ')[1] in codes) && !name.startsWith('CHANGELOG')), [])
})

// Protects maintainers from a row without a code. `npm run test:types` rejects a code without a row wherever it can check the type of a
// report.
test('lib/runtime/codes.json has exactly the codes of the source', async (t) => {
  const inSource = new Set(sources().flatMap((code) => code.match(/'LT_[A-Z_]+'/g) ?? []).map((code) => code.slice(1, -1)))
  t.same(Object.keys(codes).sort(), [...inSource].sort())
})

// Protects readers of a counter of dropped spans from a reason that is not documented.
test('docs/reliability.md has exactly the reasons for which a span is dropped', async (t) => {
  const inSource = new Set(sources().flatMap((code) => [...code.matchAll(/\bdrop\(\s*'([a-z_]+)'/g)].map(([, reason]) => reason)))
  const [, table] = read('docs/reliability.md').split('| `dropped` |')
  const documented = table.split('\n\n')[0].match(/^\| `[a-z_]+`/gm).map((cell) => cell.slice(3, -1))
  t.ok(documented.length > 5)
  t.same(documented.sort(), [...inSource].sort())
})

// Protects contributors from a hot function whose proof is missing.
test('each proof that a hot function names exists', async (t) => {
  const { hotFunctions } = require('../../scripts/hot-functions')
  t.ok(hotFunctions().length > 30)
  for (const { proof, name } of hotFunctions().filter(({ proof }) => proof !== '')) t.ok(existsSync(join(ROOT, proof)), `${name}: ${proof}`)
})

// Protects readers from code that does not run. test/examples.test.js runs the examples that are files.
test('JavaScript in the docs can be parsed', async (t) => {
  for (const page of pages) {
    for (const [index, code] of codeBlocks(read(page), 'js').entries()) {
      const isModule = /^(?:import|export) /m.test(code)
      t.doesNotThrow(() => parse(isModule ? code : `(async () => {\n${code}\n})`, { ecmaVersion: 'latest', sourceType: isModule ? 'module' : 'commonjs' }), `${page}, block ${index + 1}`)
    }
  }
})

// Protects newcomers from a first try that shows no trace.
test('the README\'s first program traces a request', async (t) => {
  const [, ...blocks] = readme.split('## Install and register')
  const [code] = codeBlocks(blocks.join(''), 'js')
  const sink = await startSink(t)
  const program = startProgram(['-e', code.replace('3000', "0, host: '127.0.0.1'")], { OTEL_EXPORTER_OTLP_ENDPOINT: new URL(sink.url).origin })
  t.teardown(() => program.kill())
  const [, origin] = await program.output(/Server listening at (http:\/\/[\d.:]+)/)
  const response = await fetch(`${origin}/users/7`)
  t.same(await response.json(), { id: '7' })
  const spans = await sink.waitFor(2)
  t.match(spans.find(({ kind }) => kind === 'SERVER'), {
    name: 'GET /users/:id', attributes: { 'user.id': '7' }, resource: { 'service.name': 'shop' }
  })
  t.ok(spans.some(({ name }) => name === 'load user'))
})

// Protects users who decide by a figure from one that was typed by hand or belongs to an older run.
test('the figures of the README, docs/overhead.md and its picture are from the last published runs: npm run docs:figures', async (t) => {
  const { resultsByName, hasAll } = require('../../bench/report/publish')
  const drawChart = require('../../bench/report/chart')
  const { readmeTable, realTable, othersTable, answer, addedTable, nodesTable } = require('../../bench/report/cost-tables')
  const { seedsOf } = require('../../bench/targets')
  const results = resultsByName()
  if (!hasAll(results)) return t.fail('not everything is measured yet: npm run bench:cost -- --readme')
  const page = read('docs/overhead.md')
  t.equal(counted(between(readme, 'bench')), counted(readmeTable(results).trim()))
  t.equal(between(page, 'bench:answer'), answer(results))
  t.equal(counted(between(page, 'bench:added')), counted(addedTable(results)))
  t.equal(counted(between(read('bench/REQUESTS.md'), 'bench:real')), counted(realTable(results.instructions)))
  t.equal(counted(between(read('bench/REQUESTS.md'), 'bench:others')), counted(othersTable(results.instructions)))
  t.equal(counted(between(read('bench/REQUESTS.md'), 'bench:nodes')), counted(nodesTable(results.seeds)))
  t.equal(counted(between(page, 'bench:nodes')), counted(nodesTable(results.seeds, true)))
  t.equal(read('docs/overhead.svg'), drawChart(seedsOf(results.seeds, 'hello', 10, 24)))
})

/** Removes the part that changes with each commit. */
function counted (text) {
  return text.replace(/, (?:the oldest )?before [^.]* hot files/g, '')
}

// Protects users from an attribute that is not documented, and from a documented one that is never set.
test('docs/attributes.md has exactly the attributes that are set', async (t) => {
  const firstCells = read('docs/attributes.md').match(/^\| `[\w.<>]+`(?:, `[\w.<>]+`)* \|/gm)
  const documented = new Set(firstCells.flatMap((cell) => cell.match(/[\w.<>]+/g)))
  const set = attributesInSource(/^(?:span|fastify|outbound|export|features)[/\\](?!metrics|logs|sdk|testing)/)
  const platform = new Set([...read('lib/config/resource.js').matchAll(/'([a-z]\w*\.[\w.]+)':/g)].map(([, name]) => name))
  t.same([...set, ...platform].filter((name) => !documented.has(name)), [], 'not documented')
  const { attributes } = resolveOptions({}, {}).resource
  t.same([...documented].filter((name) => !set.has(name) && !platform.has(name) && !(name in attributes)), [], 'not set')
})

// ---- the code

/** All code that a user's process can load, without comments. */
function sources () {
  return [...requiredFiles()].filter((file) => file.endsWith('.js'))
    .map((file) => read(file).replace(/^\s*(?:\/\/|\*).*$|\s\/\/ .*$/gm, ''))
}

function attributesInSource (rooms) {
  const found = new Set()
  for (const file of readdirSync(join(ROOT, 'lib'), { recursive: true }).filter((file) => file.endsWith('.js') && rooms.test(file))) {
    const code = read(join('lib', file)).replace(/^\s*(?:\/\/|\*).*$|\s\/\/ .*$/gm, '')
    for (const [, name] of code.matchAll(/'((?:http|url|network|client|server|user_agent|error|exception|db|messaging|graphql|fastify|light_trace|faas|aws|cloud|code)\.[a-z_.]*[a-z_])'/g)) {
      if (!CHANNELS.test(name)) found.add(name)
    }
    for (const [, name] of code.matchAll(/'(http\.(?:request|response)\.header)\.'/g)) found.add(`${name}.<key>`)
  }
  return found
}

// Channels and symbols of node:http and Fastify look like attributes.
const CHANNELS = /^http\.(?:client|server)\.|^fastify\.(?:initialization|request\.handler|options)/

// ---- the docs

/** Cached, because many tests read the same pages. */
function read (page) {
  if (!texts.has(page)) texts.set(page, readFileSync(join(ROOT, page), 'utf8'))
  return texts.get(page)
}

/** The repository's own files, without installed, built or measured files, and without files that other tests write and delete meanwhile. */
function filesBelow (folder) {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).filter(({ name }) => !/^(?:node_modules|results|\..*)$/.test(name))
    .flatMap((entry) => entry.isDirectory() ? filesBelow(`${folder}${entry.name}/`) : [folder + entry.name])
}

function withoutCode (text) {
  return text.replace(/^```.*?^```/gms, '').replace(/`[^`\n]*`/g, '')
}

function codeBlocks (text, language) {
  return [...text.matchAll(/^```(\w*)\n(.*?)^```/gms)].filter(([, name]) => name === language).map(([, , code]) => code)
}

/** The anchors of a page's headings, as GitHub makes them. */
function headings (page) {
  if (!headingsOf.has(page)) {
    headingsOf.set(page, [...read(page).replace(/^```.*?^```/gms, '').matchAll(/^#+ (.*)$/gm)]
      .map(([, title]) => title.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').trim().replace(/\s/g, '-')))
  }
  return headingsOf.get(page)
}

function between (text, name) {
  return text.split(`<!-- ${name}:start -->`)[1].split(`<!-- ${name}:end -->`)[0].trim()
}
