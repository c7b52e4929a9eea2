'use strict'

// Every page in a real browser, light and dark, wide and narrow.

const { readFileSync, readdirSync } = require('node:fs')
const { sep } = require('node:path')
const { chromium } = require('playwright-core')
const { teardown, test } = require('tap')

const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')
const SITE = process.env.LIGHT_TRACE_SITE
const ORIGIN = process.env.LIGHT_TRACE_SITE_URL
const LOOKS = [{ width: 380, colorScheme: 'light' }, { width: 380, colorScheme: 'dark' }, { width: 1280, colorScheme: 'light' }, { width: 1280, colorScheme: 'dark' }]
const FOR_AXE = ['/index.html', '/docs/options.html', '/docs/conformance.html', '/api/testing.html']
const pages = readdirSync(SITE, { recursive: true }).filter((file) => file.endsWith('.html') && file !== '404.html').map((file) => `/${file.split(sep).join('/')}`)

let browser
teardown(async () => (await browser)?.close())

/** A page in a window of its own, and what has gone wrong in it. */
async function open (t, { width, colorScheme }) {
  browser ??= chromium.launch({ executablePath: process.env.LIGHT_TRACE_CHROMIUM, args: ['--no-sandbox'] })
  const context = await (await browser).newContext({ viewport: { width, height: 800 }, colorScheme })
  t.teardown(() => context.close())
  const page = await context.newPage()
  const problems = []
  page.on('pageerror', (error) => problems.push(error.stack))
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && problems.push(message.text()))
  page.on('request', (request) => request.url().startsWith(`${ORIGIN}/`) || request.url().startsWith('data:') || problems.push(`it asked for ${request.url()}`))
  page.on('response', (response) => response.status() >= 400 && problems.push(`${response.status()} for ${response.url()}`))
  return { page, problems }
}

/** Vue has taken over: a page that shows what was built and then fails would look well. */
async function show (page, path) {
  await page.goto(ORIGIN + path)
  await page.waitForFunction(() => document.getElementById('app')?.__vue_app__ !== undefined)
}

for (const look of LOOKS) {
  test(`every page loads, asks no other host and does not scroll sideways: ${look.width}, ${look.colorScheme}`, async (t) => {
    t.ok(pages.length > 40)
    const { page, problems } = await open(t, look)
    for (const path of pages) {
      await show(page, path)
      const { width, isDark, heading } = await page.evaluate(() => ({
        width: document.documentElement.scrollWidth, isDark: document.documentElement.classList.contains('dark'), heading: document.querySelectorAll('h1').length
      }))
      t.equal(width, look.width, path)
      t.equal(isDark, look.colorScheme === 'dark', path)
      t.equal(heading, 1, `${path} has one title`)
      t.same(problems.splice(0), [], path)
    }
  })

  test(`axe finds nothing serious: ${look.width}, ${look.colorScheme}`, async (t) => {
    const { page } = await open(t, look)
    for (const path of FOR_AXE) {
      await show(page, path)
      await page.evaluate(AXE)
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }))
      t.same(violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary}`).join(' | ')}`), [], path)
    }
  })

  test(`the search finds "sampler" and goes to its page: ${look.width}, ${look.colorScheme}`, async (t) => {
    const { page, problems } = await open(t, look)
    await show(page, '/index.html')
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByRole('searchbox').fill('sampler')
    const hit = page.locator('.VPLocalSearchBox .result').filter({ hasText: 'Sampling' }).first()
    await hit.waitFor()
    await hit.click()
    await page.waitForURL(/\/docs\/sampling\.html/)
    t.equal(await page.locator('h1').innerText().then((text) => text.replace(/[^\w ]/g, '').trim()), 'Sampling')
    t.same(problems, [])
  })
}
