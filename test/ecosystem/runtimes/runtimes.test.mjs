// Bun and Deno: features.cjs tries each feature of light-trace. The results are the table of docs/recipes.md, so this test fails when they
// change. `DOCS=write npm run test:suite -- ecosystem runtimes` updates it.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { runProgram, startSink } from '../../test/support/ecosystem.js'

const here = import.meta.dirname
const page = join(here, '../../docs/recipes.md')
const [START, END] = ['<!-- runtimes:start -->\n', '<!-- runtimes:end -->']
const { dependencies: { bun, deno } } = JSON.parse(readFileSync(join(here, 'package.json'), 'utf8'))

const RUNTIMES = {
  node: { command: [process.execPath], preload: '--import light-trace/register' },
  [`Bun ${bun}`]: { command: [join(here, 'node_modules/@oven', `bun-${process.platform}-${process.arch}`, 'bin/bun')], preload: '--preload light-trace/register' },
  [`Deno ${deno}`]: { command: [join(here, 'node_modules/@deno', `${process.platform}-${process.arch}-glibc`, 'deno'), 'run', '-A'], preload: '--preload ./node_modules/light-trace/register.js' }
}
const PRELOAD = 'preloading'
const HEADERS_OF_HTTP = '`node:http`: trace headers'

test('the table of docs/recipes.md has what works in Bun and in Deno', { timeout: 300_000 }, async (t) => {
  const upstream = createServer((request, response) => response.end(JSON.stringify(request.headers)))
  await new Promise((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  t.after(() => { upstream.closeAllConnections(); upstream.close() })
  const tried = {}
  for (const [runtime, { command, preload }] of Object.entries(RUNTIMES)) {
    const sink = await startSink(t)
    const { text } = await runProgram(t, [...command, 'features.cjs'], { cwd: here, env: { UPSTREAM: `http://127.0.0.1:${upstream.address().port}/`, SINK: sink.url } })
    const [, results] = /^RESULTS (.*)$/m.exec(text) ?? assert.fail(`${runtime}: ${text}`)
    assert.equal(sink.spans.length, 1, runtime)
    tried[runtime] = JSON.parse(results)
    const preloaded = await startSink(t)
    await runProgram(t, [...command, ...preload.split(' '), 'preloaded.cjs'], { cwd: here, sink: preloaded })
    tried[runtime][PRELOAD] = preloaded.spans.map(({ kind, name }) => `${kind} ${name}`).join() === 'SERVER GET /'
    for (const [name, result] of Object.entries(tried[runtime])) if (result !== true) t.diagnostic(`${runtime}: ${name}: ${String(result).split('\n')[0]}`)
  }
  // Everything works in Node, so a failure elsewhere is not a fault of the test. Exception: Node 20's http has no channel to write headers
  // in.
  const { node, ...others } = tried
  for (const [name, result] of Object.entries(node)) if (name !== HEADERS_OF_HTTP || !process.version.startsWith('v20.')) assert.equal(result, true, name)

  const answers = (name) => Object.values(others).map((results) => results[name] === true ? 'yes' : '**no**').join(' | ')
  const everywhere = Object.keys(node).filter((name) => !answers(name).includes('no'))
  const table = [
    `| | ${Object.keys(others).join(' | ')} |`, '|---|---|---|', `| ${everywhere.join('; ')} | yes | yes |`,
    ...Object.keys(node).filter((name) => !everywhere.includes(name)).map((name) => `| ${name} | ${answers(name)} |`)
  ].join('\n') + '\n'
  const text = readFileSync(page, 'utf8')
  const [before, rest] = text.split(START)
  const [shown, after] = rest.split(END)
  if (process.env.DOCS === 'write') writeFileSync(page, before + START + table + END + after)
  else assert.equal(shown, table, 'DOCS=write npm run test:suite -- ecosystem runtimes writes it')
})
