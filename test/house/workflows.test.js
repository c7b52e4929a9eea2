'use strict'

// The files that GitHub reads are valid and run the same suites as .ci/run. Without these tests, an error would only show after a push. The
// comment above each test names the readers that it protects, and from what.

const { readFileSync, readdirSync } = require('node:fs')
const { basename, join } = require('node:path')
const { test } = require('tap')
const { parseDocument } = require('yaml')
const { jobs, LEFT_OUT } = require('../../scripts/ci-jobs')
const { whatIsMissing } = require('../../scripts/release')
const { SUITES } = require('../../scripts/suites')

const ROOT = join(__dirname, '..', '..')
const FOLDER = join(ROOT, '.github')
const files = readdirSync(FOLDER, { recursive: true }).filter((name) => name.endsWith('.yml'))
const workflows = files.filter((name) => name.startsWith('workflows'))
const { scripts } = require('../../package.json')

// This test and the next protect contributors from a workflow that never starts.
test('every file is YAML without errors or warnings', async (t) => {
  t.ok(files.length >= 4)
  for (const file of files) {
    const document = parse(file)
    t.same([...document.errors, ...document.warnings].map(({ message }) => message), [], file)
  }
})

test('every step runs something, and every required job and script exists', async (t) => {
  for (const file of workflows) {
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

// Protects users from a release that was built by an action whose tag was moved.
test('every action is pinned to one commit, with its version next to it, the same everywhere', async (t) => {
  const pins = new Map()
  const wrong = []
  for (const file of workflows) {
    const text = readFileSync(join(FOLDER, file), 'utf8')
    const uses = [...text.matchAll(/\buses: +(\S+)(.*)/g)]
    t.equal(uses.length, text.match(/\buses:/g).length, file)
    for (const [, action, comment] of uses) {
      if (!/^[\w.-]+\/[\w./-]+@[0-9a-f]{40}$/.test(action) || !/^ # v\d+\.\d+\.\d+$/.test(comment)) wrong.push(`${file}: ${action}`)
      const [name, commit] = action.split('@')
      const repository = name.split('/', 2).join('/')
      if (pins.has(repository) && pins.get(repository) !== `${commit}${comment}`) wrong.push(`${file}: ${action} is another one elsewhere`)
      pins.set(repository, `${commit}${comment}`)
    }
  }
  t.same(wrong, [])
  t.ok(pins.size >= 5)
})

// The permissions of jobs beyond reading the repository.
const MAY_WRITE = {
  'codeql.yml analyze': ['security-events'],
  'release.yml publish': ['id-token'],
  'release.yml sbom': ['contents'],
  'scorecard.yml analyze': ['security-events', 'id-token']
}

// This test and the next protect the publisher from a step that writes to the repository or publishes.
test('a workflow may read the code and nothing else, and each further permission is a job\'s own', async (t) => {
  const writing = {}
  for (const file of workflows) {
    const { permissions, jobs } = parse(file).toJS()
    t.same(permissions, { contents: 'read' }, file)
    for (const [name, job] of Object.entries(jobs)) {
      const granted = Object.entries(job.permissions ?? {}).filter(([, level]) => level === 'write').map(([scope]) => scope)
      if (granted.length > 0) writing[`${basename(file)} ${name}`] = granted
      t.type(job.permissions ?? {}, Object, `${file}: ${name}: neither read-all nor write-all`)
      for (const step of job.steps.filter(({ uses }) => uses?.startsWith('actions/checkout@'))) {
        t.equal(step.with?.['persist-credentials'], false, `${file}: ${name}: no step finds the token in .git/config`)
      }
    }
  }
  t.same(writing, MAY_WRITE)
})

test('no workflow runs code of forks with the repository\'s permissions', async (t) => {
  for (const file of workflows) t.notOk('pull_request_target' in parse(file).toJS().on, file)
})

// Protects users from actions and packages with known vulnerabilities.
test('Dependabot updates the actions and the packages', async (t) => {
  const { version, updates } = parse('dependabot.yml').toJS()
  t.equal(version, 2)
  t.same(updates.map((update) => update['package-ecosystem']).sort(), ['github-actions', 'npm'])
})

// Protects contributors from a suite that runs in only one of the two.
test('CI has a job for each suite of .ci/run, for each suite that it leaves out, and for each cell of the matrix', async (t) => {
  const lists = jobs()
  const { jobs: { systems, ...all } } = parse('workflows/ci.yml').toJS()
  t.same([...lists.suites].sort(), Object.keys(SUITES).sort(), 'each suite is in a lane, or left out')
  for (const name of LEFT_OUT) t.ok(name in SUITES, name)
  t.same(lists.benches, ['bench:ci'])
  t.ok(lists.cells.length >= 7)
  const strategies = Object.fromEntries(Object.values(all).flatMap(({ strategy }) => Object.entries(strategy?.matrix ?? {})))
  t.same(Object.keys(strategies).sort(), ['bench', 'cell', 'suite'])
  for (const [key, list] of Object.entries({ bench: 'benches', cell: 'cells', suite: 'suites' })) {
    t.equal(strategies[key], `\${{ fromJSON(needs.test.outputs.jobs).${list} }}`)
    t.ok(Object.values(all).some(({ steps }) => steps.some(({ run }) => run?.includes(`\${{ matrix.${key} }}`))), `${key} is run`)
  }
  t.same(systems.strategy.matrix, { system: ['windows-latest', 'macos-latest'] })
  t.ok(systems.steps.some(({ run }) => run === 'npm test'), 'and npm test runs on the other systems')
  t.ok(all.bench.steps.some(({ run }) => run?.includes('$GITHUB_STEP_SUMMARY')), 'the bench is in the summary')
})

// Protects the publisher from an incomplete version, which cannot be published again.
test('a release needs its tag, its date and the publisher\'s data', async (t) => {
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
