// fastify-cli: an app with its plugins in a folder, its options, and light-trace as a plugin or preloaded. It runs with Node and with tsx,
// as CommonJS and as ESM.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { docsCode, startProgram, startSink } from '../../test/support/ecosystem.js'

const here = import.meta.dirname
const [plugin, appFile] = docsCode('recipes.md', 'fastify-cli and @fastify/autoload', 'js')
const START = ['start', '--address', '127.0.0.1', '--port', '0', '--log-level', 'info']

test('the files are the same as in docs/recipes.md', () => {
  assert.equal(readFileSync(join(here, 'cli/plugins/00-light-trace.cjs'), 'utf8'), plugin)
  assert.ok(readFileSync(join(here, 'cli/app.cjs'), 'utf8').includes(appFile))
})

test('fastify start works with --options and custom flags', async (t) => {
  const sink = await startSink(t)
  const program = startProgram(t, [process.execPath, 'node_modules/.bin/fastify', ...START, '--options', 'cli/app.cjs', '--', '--tier=gold'], { cwd: here, sink })
  const { origin, answer } = await ask(program)
  assert.deepEqual(answer, { tier: 'gold', ip: '203.0.113.7', traceId: answer.traceId }) // trustProxy comes from the app's exported `options`
  assert.match(answer.traceId, /^[0-9a-f]{32}$/)
  assert.equal((await fetch(`${origin}/nothing-here`)).status, 404)
  program.kill('SIGTERM') // fastify-cli then closes the app
  assert.equal(await program.ended, 0)
  assert.deepEqual(sink.spans.map(({ kind, name, attributes }) => `${kind} ${name} ${attributes['client.address']}`), ['SERVER GET / 203.0.113.7', 'SERVER GET 127.0.0.1'])
  const warnings = program.text().split('\n').filter((line) => line.includes('LT_')).map((line) => JSON.parse(line))
  assert.deepEqual(warnings.map(({ code, msg }) => `${code} ${/trustProxy|tier/.exec(msg)}`), ['LT_WARN_OPTION_UNKNOWN trustProxy', 'LT_WARN_OPTION_UNKNOWN tier']) // options of the app's other plugins
})

test('fastify start with light-trace preloaded: each request has one span', async (t) => {
  const sink = await startSink(t)
  writeFileSync(join(here, 'plain.cjs'), 'module.exports = async (app, options) => { app.get("/", async (request) => ({ traceId: request.trace.traceId })) }')
  t.after(() => rmSync(join(here, 'plain.cjs')))
  const program = startProgram(t, [process.execPath, '--import', 'light-trace/register', 'node_modules/.bin/fastify', ...START, 'plain.cjs'], { cwd: here, sink })
  const { answer } = await ask(program)
  program.kill('SIGTERM')
  assert.equal(await program.ended, 0)
  assert.deepEqual(sink.spans.map(({ kind, name, traceId }) => `${kind} ${name} ${traceId}`), [`SERVER GET / ${answer.traceId}`])
})

for (const [name, file, command] of [
  ['ESM', 'app.mjs', [process.execPath]],
  ['TypeScript by tsx', 'app.ts', [process.execPath, 'node_modules/tsx/dist/cli.mjs']],
  ['TypeScript by --import tsx', 'app.mts', [process.execPath, '--import', 'tsx']]
]) {
  test(`${name}: light-trace works as a plugin, and preloaded in an app that does not mention it`, async (t) => {
    const folder = mkdtempSync(join(here, 'esm-'))
    t.after(() => rmSync(folder, { recursive: true }))
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    for (const [index, how] of ["import lightTrace from 'light-trace'\n", "import 'light-trace/register'\n"].entries()) {
      const sink = await startSink(t)
      writeFileSync(join(folder, file), `${how}
import fastify from 'fastify'
const app = fastify({ logger: true })
${index === 0 ? 'await app.register(lightTrace)' : ''}
app.get('/', async (request) => ({ traceId: request.trace.traceId }))
await app.listen({ port: 0, host: '127.0.0.1' })
process.once('SIGTERM', () => app.close())
`)
      const program = startProgram(t, [...command, join(folder, file)], { cwd: here, sink })
      const { answer } = await ask(program)
      const [, pid] = await program.says(/"pid":(\d+)/)
      process.kill(Number(pid), 'SIGTERM') // sent to the app itself, because tsx, its parent, does not always wait for it
      assert.equal(await program.ended, 0)
      assert.deepEqual(sink.spans.map(({ kind, name, traceId }) => `${kind} ${name} ${traceId}`), [`SERVER GET / ${answer.traceId}`])
    }
  })
}

async function ask (program) {
  const [, origin] = await program.says(/Server listening at (http:\/\/127\.0\.0\.1:\d+)/)
  const answer = await (await fetch(origin, { headers: { 'x-forwarded-for': '203.0.113.7' } })).json()
  return { origin, answer }
}
