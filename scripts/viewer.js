'use strict'

// npm run test:viewer [-- test files]
// npm run docs:pictures
//
// Finds Chromium, or installs Debian's where it may, and runs test/browser/ in it against a real viewer: every view, the
// keyboard, what comes live, light and dark, narrow, hostile traces, accessibility. The second writes the pictures of
// the docs.

const path = require('node:path')
const { chromium } = require('./viewer/chromium')
const { withServers, runTests } = require('./with-servers')

const PICTURES = path.join(__dirname, '..', 'docs', 'images')

withServers(async () => {
  const pictures = process.argv.indexOf('--pictures')
  const env = { LIGHT_TRACE_CHROMIUM: await chromium() }
  if (pictures > 0) {
    process.argv.splice(pictures, 1, 'test/browser/pictures.test.js')
    env.LIGHT_TRACE_PICTURES = PICTURES
  }
  return runTests({ folder: 'test/browser', env, flags: ['--jobs=1', '--timeout=180'] })
})
