'use strict'

// A viewer, a browser, and pages without errors: an error in the console or an exception fails the test.

const { chromium } = require('playwright-core')
const { teardown, test } = require('tap')
const { Viewer } = require('../../../viewer/http/server')

const WAIT_MS = 15_000
const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 360, height: 720 } }

module.exports = { inBrowser, rows, texts }

/**
 * A test in which every page must stay free of errors.
 * @param {(t, viewer: { viewer, url: string, send: (...bodies: object[]) => Promise, open: (path: string, look?: object) => Promise<import('playwright-core').Page> }) => Promise} body
 *   open: in its own window; look: { size: 'wide' | 'narrow', colorScheme, expectErrors }
 */
function inBrowser (name, body, options) {
  test(name, async (t) => {
    const viewer = new Viewer(options)
    const url = `http://127.0.0.1:${await viewer.listen(0)}`
    t.teardown(() => viewer.close())
    const problems = []
    const contexts = []
    t.teardown(() => Promise.all(contexts.map((context) => context.close())))
    await body(t, { viewer, url, send: (...bodies) => send(url, bodies), open: (path, look) => open(url + path, look, problems, contexts) })
    t.same(problems, [], 'no page has failed')
  })
}

// One browser for the tests of a file. Each page has its own profile.
let browser
teardown(async () => (await browser)?.close())

function launch () {
  return chromium.launch({ executablePath: process.env.LIGHT_TRACE_CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] })
}

async function send (url, bodies) {
  for (const body of bodies) {
    const { ok, status } = await fetch(`${url}/v1/traces`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    if (!ok) throw new Error(`the viewer answered ${status}`)
  }
}

async function open (url, { size = 'wide', colorScheme = 'light', expectErrors = false } = {}, problems, contexts) {
  browser ??= launch()
  const context = await (await browser).newContext({ viewport: SIZES[size], colorScheme, permissions: ['clipboard-read', 'clipboard-write'], acceptDownloads: true })
  contexts.push(context)
  const page = await context.newPage()
  page.setDefaultTimeout(WAIT_MS)
  page.on('pageerror', (error) => problems.push(error.stack))
  page.on('console', (message) => message.type() === 'error' && !expectErrors && problems.push(message.text()))
  await page.goto(url)
  return page
}

/** Returns the text of a grid's visible rows, with cells separated by one space. */
function rows (page) {
  return page.locator('.rows > .row').evaluateAll((elements) => elements
    .sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)
    .map((element) => [...element.children].map((cell) => cell.textContent.trim()).filter(Boolean).join(' ')))
}

function texts (page, selector) {
  return page.locator(selector).evaluateAll((elements) => elements.map((element) => element.textContent.trim()))
}
