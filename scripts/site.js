'use strict'

// npm run test:site [-- test files]
// npm run docs
//
// Makes the site of docs/, which fails where a page links to one that is not there, and runs test/site/ on it in a real browser.
// The second serves it instead. What makes it is in site/ and is installed there.

const { existsSync, statSync } = require('node:fs')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const { makePages } = require('../site/pages')
const { chromium } = require('./viewer/chromium')
const { run } = require('./run')
const { withServers, runTests } = require('./with-servers')

const SITE = path.join(__dirname, '..', 'site')
const BUILT = path.join(SITE, '.cache', 'dist')
const PORT = 5173 // Vite's own

if (process.argv[2] === '--serve') build().then(() => serve(PORT)).then(({ url }) => console.log(url))
else {
  withServers(async (open) => {
    await build()
    const { url } = await open(serve(0))
    return runTests({ folder: 'test/site', env: { LIGHT_TRACE_SITE: BUILT, LIGHT_TRACE_SITE_URL: url, LIGHT_TRACE_CHROMIUM: await chromium() }, timeoutS: 240 })
  })
}

async function build () {
  if (!isInstalled()) await step('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'])
  makePages()
  await step('node_modules/.bin/typedoc', [])
  await step('node_modules/.bin/vitepress', ['build'])
}

function isInstalled () {
  const installed = path.join(SITE, 'node_modules', '.package-lock.json')
  return existsSync(installed) && statSync(installed).mtimeMs > statSync(path.join(SITE, 'package-lock.json')).mtimeMs
}

async function step (command, args) {
  const { code, output } = await run(command, args, { cwd: SITE })
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}\n${output}`)
}

/** The site on the loopback: on this port or the next free one, where it is not 0. */
async function serve (port) {
  const { preview } = await import(pathToFileURL(path.join(SITE, 'node_modules', 'vite', 'dist', 'node', 'index.js')))
  const server = await preview({ root: SITE, configFile: false, appType: 'mpa', logLevel: 'error', build: { outDir: BUILT }, preview: { host: '127.0.0.1', port } })
  return { url: `http://127.0.0.1:${server.httpServer.address().port}`, stop: () => server.close() }
}
