'use strict'

// A viewer, a browser, and pages without errors: an error in the console or an exception fails the test.

const { chromium } = require('playwright-core')
const { setTimeout: pause } = require('node:timers/promises')
const { isDeepStrictEqual } = require('node:util')
const { teardown, test } = require('tap')
const { Viewer } = require('../../../viewer/http/server')

const LOOK_MS = 20
const WAIT_MS = 60_000 // far more than a busy machine needs
const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 360, height: 720 } }

module.exports = { inBrowser, rows, texts, styleOf, boxOf, shows, painted, answers, answeredAndPainted }

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
  if (!expectErrors) await page.locator('#state.live').waitFor() // what is sent from now on is an event for it
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

/** The computed style of the element that a locator finds. */
function styleOf (locator, property = 'color') {
  return read(() => locator.evaluate((element, property) => element.isConnected ? window.getComputedStyle(element).getPropertyValue(property) : null, property))
}

/** Where the element that a locator finds is: { x, y, width, height }. */
function boxOf (locator) {
  return read(() => locator.evaluate((element) => element.isConnected ? element.getBoundingClientRect().toJSON() : null))
}

// A page may draw an element anew after it was found and before it is read. An element that is no longer in the page has no style and no
// place, so the new one is looked for.
async function read (look) {
  for (;;) {
    const found = await look()
    if (found !== null) return found
  }
}

/** Waits until the page has painted what it has. */
function painted (page) {
  return page.evaluate(() => new Promise((resolve) => window.requestAnimationFrame(() => setTimeout(resolve))))
}

/** Waits until the page has painted this many answers from addresses with this text. */
async function answers (page, text, count) {
  await page.waitForFunction(([text, count]) => window.performance.getEntriesByType('resource').filter(({ name }) => name.includes(text)).length >= count, [text, count])
  await painted(page)
}

/** Lets the server's answer to this address through by `release`, and waits until the page has painted it. */
async function answeredAndPainted (page, address, release) {
  const [answer] = await Promise.all([page.waitForResponse(address), release()])
  await answer.finished()
  await painted(page)
}

/**
 * Checks what a page shows, as soon as it does: what it has to ask the server for comes later than the click.
 * @param {() => any} look
 * @param {string | number | RegExp | Array} expected
 */
async function shows (t, look, expected, message) {
  let found = await look()
  for (const end = performance.now() + WAIT_MS; !fits(found, expected) && performance.now() < end; found = await look()) await pause(LOOK_MS)
  if (fits(found, expected)) t.pass(message)
  else t.same(found, expected, message)
}

function fits (found, expected) {
  if (expected instanceof RegExp) return expected.test(found)
  if (Array.isArray(expected)) return found.length === expected.length && expected.every((each, index) => fits(found[index], each))
  return isDeepStrictEqual(found, expected)
}
