'use strict'

// npm run docs
//
// Builds the site of docs/ and serves it. The build fails if a page links to a missing page. The tools for it are installed in this
// folder. npm run test:suite -- site tests it.

const { existsSync, statSync } = require('node:fs')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const { run } = require('../scripts/run')
const { makePages } = require('./pages')

const BUILT = path.join(__dirname, '.cache', 'dist')
const PORT = 5173 // Vite's default

module.exports = { build, serve, BUILT }

if (require.main === module) build().then(() => serve(PORT)).then(({ url }) => console.log(url))

async function build () {
  if (!isInstalled()) await step('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'])
  makePages()
  await step('node_modules/.bin/typedoc', [])
  await step('node_modules/.bin/vitepress', ['build'])
}

/** Serves the site on the loopback interface, on this port or the next free one; 0 takes any free port. */
async function serve (port) {
  const { preview } = await import(pathToFileURL(path.join(__dirname, 'node_modules', 'vite', 'dist', 'node', 'index.js')))
  const server = await preview({ root: __dirname, configFile: false, appType: 'mpa', logLevel: 'error', build: { outDir: BUILT }, preview: { host: '127.0.0.1', port } })
  return { url: `http://127.0.0.1:${server.httpServer.address().port}`, stop: () => server.close() }
}

function isInstalled () {
  const installed = path.join(__dirname, 'node_modules', '.package-lock.json')
  return existsSync(installed) && statSync(installed).mtimeMs > statSync(path.join(__dirname, 'package-lock.json')).mtimeMs
}

async function step (command, args) {
  const { code, output } = await run(command, args, { cwd: __dirname })
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}\n${output}`)
}
