'use strict'

// npm run bench:compare -- <ref> [--cases a,b] [--rounds n] [--seconds s]: this checkout's light-trace
// against another commit's, in turns, with this checkout's bench. The other one is laid out as a git
// worktree below .cache and removed again.

const fs = require('node:fs')
const path = require('node:path')
const { execFileSync } = require('node:child_process')
const { parseArgs } = require('node:util')
const { cases, HEADLINE_NODE } = require('./cases')
const startProgress = require('./run/progress')
const { run, stepsOf } = require('./run/run')
const summarise = require('./report/summary')
const consoleTable = require('./report/console-table')

const root = path.join(__dirname, '..')

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})

async function main () {
  const { positionals: [ref], values } = parseArgs({
    allowPositionals: true,
    options: {
      cases: { type: 'string', default: 'lighttrace-100,lighttrace-unsampled' },
      rounds: { type: 'string', default: '11' },
      seconds: { type: 'string', default: '1.5' },
      node: { type: 'string' }
    }
  })
  if (!ref) throw new Error('npm run bench:compare -- <ref>')
  const profile = { rounds: Number(values.rounds), seconds: Number(values.seconds), warmup: 2, connections: 50, pipelining: 1, rate: 0 }
  const folder = layOut(ref)
  const pairs = values.cases.split(',').flatMap((name) => pairOf(name.trim(), ref, folder))
  const measured = await run(pairs, { profile, node: values.node, headlineNode: HEADLINE_NODE, progress: startProgress(stepsOf(pairs, profile)) })
  console.log('\n' + consoleTable(summarise(measured)))
}

// The other commit's is the baseline: what "over" shows is what this checkout adds to it.
function pairOf (name, ref, folder) {
  const found = cases.find((testCase) => testCase.name === name)
  if (!found) throw new Error(`no case is called "${name}"`)
  const before = { ...found, name: `${name} ${ref}`, also: undefined, against: `${name} ${ref}`, env: { ...found.env, LIGHT_TRACE_ROOT: folder } }
  return [before, { ...before, name: `${name} here`, env: { ...found.env, LIGHT_TRACE_ROOT: root } }]
}

function layOut (ref) {
  const sha = git('rev-parse', '--verify', `${ref}^{commit}`)
  const folder = path.join(root, '.cache', `bench-${sha.slice(0, 10)}-${process.pid}`)
  git('worktree', 'add', '--detach', '--quiet', folder, sha)
  fs.symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'), 'junction')
  process.once('exit', () => {
    fs.rmSync(path.join(folder, 'node_modules'))
    git('worktree', 'remove', '--force', folder)
  })
  return folder
}

function git (...args) {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
}
