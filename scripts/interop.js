'use strict'

// npm run test:interop [-- <fixture>…]
//
// Runs test/otel/app/run.js with the packages of each fixture, test/fixtures/api-*: a pair of API and SDK that users
// have, with this package installed beside them as npm would. Prints `N passed, N failed`.

const fs = require('node:fs')
const path = require('node:path')
const { run } = require('./run')
const { installNode, nodeBinary } = require('./matrix-cell')

const ROOT = path.join(__dirname, '..')
const TESTS = path.join(ROOT, 'test', 'otel')
const FIXTURES = [
  { name: 'api-1.9', node: 20 },
  { name: 'api-1.10', node: 24 } // SDK 3.x wants Node 22.15
]
const DEADLINE_MS = 10 * 60_000

main().then((code) => { process.exitCode = code })

async function main () {
  const only = process.argv.slice(2)
  const total = { passed: 0, failed: 0 }
  for (const fixture of FIXTURES) {
    if (only.length > 0 && !only.includes(fixture.name)) continue
    const { passed, failed, line } = await runFixture(fixture).catch((error) => ({ passed: 0, failed: 1, line: error.message }))
    total.passed += passed
    total.failed += failed
    console.log(`${failed === 0 ? 'ok    ' : 'FAILED'} ${fixture.name.padEnd(9)} ${line}`)
  }
  console.log(`${total.passed} passed, ${total.failed} failed`)
  return total.failed === 0 && total.passed > 0 ? 0 : 1
}

async function runFixture ({ name, node }) {
  const directory = path.join(ROOT, 'test', 'fixtures', name)
  await installPackages(directory)
  putLightTrace(path.join(directory, 'node_modules', 'light-trace'))
  const app = putApp(directory)
  await installNode(node)
  const env = { ...process.env, FIXTURE: app, INTEROP_TESTS: TESTS }
  for (const key of Object.keys(env)) if (/^(npm_|NODE_|OTEL_|TAP_|_TAPJS)/.test(key)) delete env[key]
  const { code, output } = await run(nodeBinary(node), ['--test', '--test-reporter=tap', path.join(app, 'run.js')], { cwd: directory, env, deadlineMs: DEADLINE_MS })
  const count = (what) => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(output)?.[1] ?? 0)
  const passed = count('pass')
  const failed = Math.max(count('fail') + count('cancelled'), code === 0 && passed > 0 ? 0 : 1)
  if (failed > 0) console.log(output)
  return { passed, failed, line: `${passed} passed, ${failed} failed on node ${node}` }
}

async function installPackages (directory) {
  const wanted = JSON.stringify(JSON.parse(fs.readFileSync(path.join(directory, 'package.json'))).dependencies)
  const stamp = path.join(directory, 'node_modules', '.installed') // for these, and no others
  if (fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === wanted) return
  fs.rmSync(path.join(directory, 'node_modules'), { recursive: true, force: true })
  const { code, output } = await run('npm', ['install', '--ignore-scripts', '--no-package-lock', '--no-audit', '--no-fund'], { cwd: directory, deadlineMs: DEADLINE_MS })
  if (code !== 0) throw new Error(`npm install in ${directory} ended with ${code}\n${output}`)
  fs.writeFileSync(stamp, wanted)
}

// The application is the same for all; what it requires are the fixture's packages, so it is copied among them.
function putApp (directory) {
  const app = path.join(directory, 'node_modules', 'the-app')
  fs.rmSync(app, { recursive: true, force: true })
  fs.cpSync(path.join(TESTS, 'app'), app, { recursive: true })
  return app
}

// A copy, not a link: through a link it would find the packages of this repository.
function putLightTrace (target) {
  const { files } = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json')))
  fs.rmSync(target, { recursive: true, force: true })
  for (const file of ['package.json', ...files]) {
    if (fs.existsSync(path.join(ROOT, file))) fs.cpSync(path.join(ROOT, file), path.join(target, file), { recursive: true })
  }
}
