// Package managers that give a package only its declared dependencies: pnpm with its isolated node_modules, and Yarn without node_modules
// (Plug'n'Play).

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runProgram, startProgram, startSink } from '../../test/support/ecosystem.js'

const here = import.meta.dirname
const { dependencies } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'))
const { version } = JSON.parse(readFileSync(join(here, 'node_modules/light-trace/package.json'), 'utf8'))
const tarball = join(here, '..', `light-trace-${version}.tgz`)
const pnpm = [process.execPath, join(here, 'node_modules/pnpm/bin/pnpm.cjs')]
const yarn = [process.execPath, join(here, 'node_modules/@yarnpkg/cli-dist/bin/yarn.js')]
const registry = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()

test('pnpm, isolated and strict', { timeout: 300_000 }, async (t) => {
  const folder = makeApp(t, { 'pnpm-workspace.yaml': 'nodeLinker: isolated\nstrictPeerDependencies: true\nhoist: false\n' })
  const installed = await runProgram(t, [...pnpm, 'install', '--ignore-scripts', '--store-dir', join(here, 'node_modules/.pnpm-store')], { cwd: folder, env: { npm_config_registry: registry } })
  assert.equal(installed.code, 0, installed.text)
  assert.ok(!existsSync(join(folder, 'node_modules/fastify-plugin')), 'only declared dependencies are there')
  await check(t, folder, { node: [process.execPath], bin: [join(folder, 'node_modules/.bin/light-trace')] })
})

test('Yarn Plug’n’Play', { timeout: 300_000 }, async (t) => {
  const folder = makeApp(t, { 'yarn.lock': '', '.yarnrc.yml': `nodeLinker: pnp\nenableGlobalCache: false\nenableTelemetry: false\nunsafeHttpWhitelist: ["*"]\nnpmRegistryServer: ${JSON.stringify(registry)}\n` })
  const installed = await runProgram(t, [...yarn, 'install', '--mode=skip-build'], { cwd: folder, env: { CI: '' } })
  assert.equal(installed.code, 0, installed.text)
  assert.ok(!existsSync(join(folder, 'node_modules')) && existsSync(join(folder, '.pnp.cjs')))
  assert.doesNotMatch(installed.text, /light-trace.*(?:doesn't provide|provides)/)
  await check(t, folder, { node: [...yarn, 'node'], bin: [...yarn, 'light-trace'] })
})

/** Runs the app three times: it registers light-trace, it preloads light-trace, and the package's command runs it. */
async function check (t, folder, { node, bin }) {
  for (const [command, env] of [
    [[...node, 'app.cjs'], {}],
    [[...node, '--import', 'light-trace/register', 'app.cjs'], { PRELOADED: '1' }]
  ]) {
    const sink = await startSink(t)
    const program = startProgram(t, command, { cwd: folder, sink, env })
    const traceId = await ask(program)
    const [, pid] = await program.says(/"pid":(\d+)/)
    process.kill(Number(pid), 'SIGTERM')
    assert.equal(await program.ended, 0, program.text())
    assert.deepEqual(sink.spans.map(({ kind, name, traceId }) => `${kind} ${name} ${traceId}`).sort(), [`INTERNAL work ${traceId}`, `SERVER GET / ${traceId}`])
    assert.doesNotMatch(program.text(), /LT_|not declared|ERR_/)
  }
  const viewer = startProgram(t, [...bin, '--port', '0', 'app.cjs'], { cwd: folder })
  const [, page] = await viewer.says(/(http:\/\/[^\s"]+)/)
  const traceId = await ask(viewer)
  assert.match(await (await fetch(page)).text(), /<title>/)
  assert.match(traceId, /^[0-9a-f]{32}$/)
}

async function ask (program) {
  const [, origin] = await program.says(/Server listening at (http:\/\/127\.0\.0\.1:\d+)/)
  return (await (await fetch(origin)).json()).traceId
}

function makeApp (t, files) {
  const folder = mkdtempSync(join(here, 'app-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const { fastify, '@opentelemetry/api': api } = dependencies
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'strict', private: true, dependencies: { fastify, '@opentelemetry/api': api, 'light-trace': `file:${tarball}` } }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  copyFileSync(join(here, 'app.cjs'), join(folder, 'app.cjs'))
  return folder
}
