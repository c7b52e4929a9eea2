'use strict'

// What GitHub reads can be read, and runs what .ci/run runs.

const { readFileSync, readdirSync } = require('node:fs')
const { join } = require('node:path')
const { test } = require('tap')
const { parseDocument } = require('yaml')
const { jobs } = require('../../scripts/ci-jobs')
const { whatIsMissing } = require('../../scripts/check-release')

const ROOT = join(__dirname, '..', '..')
const FOLDER = join(ROOT, '.github')
const files = readdirSync(FOLDER, { recursive: true }).filter((name) => name.endsWith('.yml'))
const { scripts } = require('../../package.json')

test('every file is YAML without errors or doubts', async (t) => {
  t.ok(files.length >= 4)
  for (const file of files) {
    const document = parse(file)
    t.same([...document.errors, ...document.warnings].map(({ message }) => message), [], file)
  }
})

test('every step runs something, every job that is waited for exists, every script too', async (t) => {
  for (const file of files.filter((name) => name.startsWith('workflows'))) {
    const workflow = parse(file).toJS()
    t.ok(Object.keys(workflow.jobs).length > 0)
    for (const [name, job] of Object.entries(workflow.jobs)) {
      for (const needed of [job.needs ?? []].flat()) t.ok(needed in workflow.jobs, `${file}: ${name} needs ${needed}`)
      t.ok(job['timeout-minutes'] > 0, `${file}: ${name} ends`)
      for (const step of job.steps) {
        t.not(step.run === undefined, step.uses === undefined, `${file}: ${name}: run or uses`)
        for (const [, script] of (step.run ?? '').matchAll(/npm (?:run )?(test|(?<=run )[\w:-]+)/g)) t.ok(script in scripts, `${file}: npm run ${script}`)
        for (const [, path] of (step.run ?? '').matchAll(/node ([\w/.-]+\.js)/g)) t.ok(readFileSync(join(ROOT, path)).length > 0, path)
      }
    }
  }
})

test('CI may read and nothing else', async (t) => {
  t.same(parse('workflows/ci.yml').toJS().permissions, { contents: 'read' })
})

test('CI has a job for each suite of .ci/run, and one for each cell of the matrix', async (t) => {
  const lists = jobs()
  const { jobs: all } = parse('workflows/ci.yml').toJS()
  const suites = [...readFileSync(join(ROOT, '.ci', 'run'), 'utf8').matchAll(/(?:test|bench):[\w-]+/g)].map(([name]) => name).filter((name) => name in scripts)
  t.ok(suites.length >= 5)
  t.same([...lists.suites, ...lists.benches, 'test:matrix'].sort(), [...new Set(suites)].sort())
  t.ok(lists.cells.length >= 7)
  const strategies = Object.fromEntries(Object.values(all).flatMap(({ strategy }) => Object.entries(strategy?.matrix ?? {})))
  t.same(Object.keys(strategies).sort(), ['bench', 'cell', 'suite'])
  for (const [key, list] of Object.entries({ bench: 'benches', cell: 'cells', suite: 'suites' })) {
    t.equal(strategies[key], `\${{ fromJSON(needs.test.outputs.jobs).${list} }}`)
    t.ok(Object.values(all).some(({ steps }) => steps.some(({ run }) => run?.includes(`\${{ matrix.${key} }}`))), `${key} is run`)
  }
  t.ok(all.bench.steps.some(({ run }) => run?.includes('$GITHUB_STEP_SUMMARY')), 'the bench is in the summary')
})

test('a release needs its tag, its date and what the publisher fills in', async (t) => {
  const manifest = { version: '1.2.3', repository: { url: 'git+https://host.example/a.git' }, bugs: { url: 'https://host.example/issues' }, homepage: 'https://host.example' }
  const changelog = '# Changelog\n\n## 1.2.3 - 2027-01-31\n'
  t.same(whatIsMissing({ tag: 'v1.2.3', manifest, changelog }), [])
  t.match(whatIsMissing({ tag: 'v1.2.4', manifest, changelog }), [/v1\.2\.4/])
  t.match(whatIsMissing({ tag: 'v1.2.3', manifest, changelog: changelog.replace('2027-01-31', 'unreleased') }), [/CHANGELOG/])
  t.match(whatIsMissing({ tag: 'v1.2.3', manifest: { version: '1.2.3' }, changelog }), [/repository/, /bugs/, /homepage/])
})

function parse (file) {
  return parseDocument(readFileSync(join(FOLDER, file), 'utf8'), { uniqueKeys: true, strict: true })
}
