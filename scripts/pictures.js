'use strict'

// npm run docs:pictures: makes docs/images. The console picture shows what the demo's shop prints with `exporter: 'console'`. The
// viewer's pages are screenshots of a real browser, from test/browser/pictures.test.js.

const { execFile } = require('node:child_process')
const { writeFileSync } = require('node:fs')
const path = require('node:path')
const { promisify } = require('node:util')
const { runFiles } = require('./tests')
const { chromium } = require('./viewer/chromium')

const ROOT = path.join(__dirname, '..')
const PICTURES = path.join(ROOT, 'docs', 'images')
const FILE = path.join(PICTURES, 'console.svg')
const ALT = 'The spans of three requests on the console, as trees: a user is loaded; an order reserves stock by a call to another service and fails when the card is charged; a page that is not there.'

const PROGRAM = `
const { buildShop } = require('./examples/demo/app')
buildShop({ exporter: 'console', slow: false }).then(async (app) => {
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  const order = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"item":"lamp"}' }
  for (const [url, init] of [['/users/7'], ['/orders', order], ['/nothing-here']]) await (await fetch(origin + url, init)).text()
  await app.close()
})`

const FONT_SIZE = 14
const CHARACTER = 8.43 // width in the monospaced fonts listed below
const LINE = 21
const MARGIN = 18
const COLOURS = { kind: '#7ee787', name: '#e6edf3', error: '#ff7b72', rest: '#8b949e' }

main()

async function main () {
  writeFileSync(FILE, draw(await linesOf(['-e', PROGRAM])))
  const { failed } = await runFiles([path.join('test', 'browser', 'pictures.test.js')], { env: { LIGHT_TRACE_CHROMIUM: await chromium(), LIGHT_TRACE_PICTURES: PICTURES }, timeoutS: 180 })
  process.exitCode = failed === 0 ? 0 : 1
}

/** @returns {Promise<string[]>} the lines that a program prints */
async function linesOf (args) {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(?:OTEL_|NODE_OPTIONS$)/.test(name)))
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, env })
  return stdout.trimEnd().split('\n')
}

function draw (lines) {
  const width = Math.ceil(Math.max(...lines.map(({ length }) => length)) * CHARACTER) + 2 * MARGIN
  const height = lines.length * LINE + 2 * MARGIN
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title">
<title id="title">${ALT}</title>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace" font-size="${FONT_SIZE}">
${lines.map((line, i) => `<text x="${MARGIN}" y="${MARGIN + i * LINE + FONT_SIZE}" xml:space="preserve">${coloured(line)}</text>`).join('\n')}
</g>
</svg>
`
}

// `  CLIENT GET ERROR error.type=500 1.2 ms trace_id=…`
function coloured (line) {
  const [, indent, kind, name, error = '', rest] = /^( *)([A-Z]+) (.*?)( ERROR \S+)?( [\d.]+ ms.*)$/.exec(line)
  const piece = (colour, text) => text && `<tspan fill="${COLOURS[colour]}">${text.replace(/[<>&]/g, (sign) => ({ '<': '&lt;', '>': '&gt;', '&': '&amp;' })[sign])}</tspan>`
  return indent + piece('kind', kind) + piece('name', ` ${name}`) + piece('error', error) + piece('rest', rest)
}
