'use strict'

// npm run build:viewer
//
// Joins viewer/page/ into viewer/page.html, one file that works offline. A test fails if it is outdated.

const { readFileSync, writeFileSync } = require('node:fs')
const path = require('node:path')
const esbuild = require('esbuild')

const SOURCE = path.join(__dirname, '..', 'viewer', 'page')
const PAGE = path.join(__dirname, '..', 'viewer', 'page.html')

module.exports = { buildPage, PAGE }

if (require.main === module) {
  const page = buildPage()
  writeFileSync(PAGE, page)
  console.log(`viewer/page.html: ${(Buffer.byteLength(page) / 1000).toFixed(1)} kB`)
}

function buildPage () {
  const script = bundle('main.mjs')
  const style = bundle('page.css')
  if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) throw new Error('Bug: the script or the style ends its own element')
  return readFileSync(path.join(SOURCE, 'page.html'), 'utf8')
    .replace('<style></style>', () => `<style>${style}</style>`)
    .replace('<script type="module"></script>', () => `<script type="module">${script}</script>`)
}

function bundle (entry) {
  const { outputFiles } = esbuild.buildSync({
    entryPoints: [path.join(SOURCE, entry)],
    absWorkingDir: SOURCE,
    bundle: true,
    minify: true,
    write: false,
    format: entry.endsWith('.css') ? undefined : 'esm',
    target: 'esnext',
    charset: 'utf8',
    legalComments: 'none'
  })
  return outputFiles[0].text.trim()
}
