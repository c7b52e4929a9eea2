'use strict'

// npm run test:viewer [-- test files]
// npm run docs:pictures
//
// Finds Chromium, or installs Debian's where it may, and runs test/browser/ in it against a real viewer: every view, the
// keyboard, what comes live, light and dark, narrow, hostile traces, accessibility. Then test/senders/: OpenTelemetry's own
// SDKs send to it. The second writes the pictures of the docs.

const path = require('node:path')
const { chromium } = require('./viewer/chromium')
const { installSenders } = require('./viewer/senders')
const { withServers, runTests } = require('./with-servers')

const PICTURES = path.join(__dirname, '..', 'docs', 'images')
const FOLDERS = ['test/browser', 'test/senders']

withServers(async () => {
  const pictures = process.argv.indexOf('--pictures')
  const env = { LIGHT_TRACE_CHROMIUM: await chromium() }
  if (pictures > 0) {
    process.argv.splice(pictures, 1, 'test/browser/pictures.test.js')
    env.LIGHT_TRACE_PICTURES = PICTURES
  } else env.LIGHT_TRACE_PYTHON = await installSenders()
  const total = { passed: 0, failed: 0 }
  // Files that are named are run once.
  for (const folder of process.argv.length > 2 ? FOLDERS.slice(0, 1) : FOLDERS) {
    const { passed, failed } = await runTests({ folder, env, timeoutS: 180 })
    total.passed += passed
    total.failed += failed
  }
  return total
})
