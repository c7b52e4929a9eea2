'use strict'

// npm run build:viewer
//
// Joins viewer/page/ into viewer/page.html, one file that works offline. A test fails if it is outdated.

const { readFileSync, writeFileSync } = require('node:fs')
const path = require('node:path')
const esbuild = require('esbuild')
const { onlyUsed } = require('./uplot-parts')

const SOURCE = path.join(__dirname, '..', 'viewer', 'page')
const PAGE = path.join(__dirname, '..', 'viewer', 'page.html')

// What esbuild is given of uPlot.
const lessOfUplot = {
  name: 'less of uPlot',
  setup (build) {
    build.onLoad({ filter: /[\\/]uPlot\.esm\.js$/ }, ({ path: file }) => ({ contents: onlyUsed(readFileSync(file, 'utf8')) }))
  }
}

module.exports = { buildPage, lessOfUplot, PAGE }

if (require.main === module) {
  buildPage().then((page) => {
    writeFileSync(PAGE, page)
    console.log(`viewer/page.html: ${(Buffer.byteLength(page) / 1000).toFixed(1)} kB`)
  })
}

async function buildPage () {
  const [script, style] = await Promise.all(['main.mjs', 'page.css'].map(bundle))
  if (/<\/script|<!--/i.test(script) || /<\/style/i.test(style)) throw new Error('Bug: the script or the style ends its own element')
  return readFileSync(path.join(SOURCE, 'page.html'), 'utf8')
    .replace('<style></style>', () => `<style>${style}</style>`)
    .replace('<script type="module"></script>', () => `<script type="module">${script}</script>`)
}

async function bundle (entry) {
  const { outputFiles } = await esbuild.build({
    entryPoints: [path.join(SOURCE, entry)],
    absWorkingDir: SOURCE,
    bundle: true,
    minify: true,
    write: false,
    format: entry.endsWith('.css') ? undefined : 'esm',
    target: 'esnext',
    charset: 'utf8',
    legalComments: 'none',
    plugins: [lessOfUplot]
  })
  return outputFiles[0].text.trim()
}
