'use strict'

// Every page in a real browser, narrow and wide, light and dark.

const { readFileSync, readdirSync } = require('node:fs')
const { sep } = require('node:path')
const { chromium } = require('playwright-core')
const { teardown, test } = require('tap')

const AXE = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8')
const SITE = process.env.LIGHT_TRACE_SITE
const ORIGIN = process.env.LIGHT_TRACE_SITE_URL
const LOOKS = [380, 1280].flatMap((width) => ['light', 'dark'].map((colorScheme) => ({ width, colorScheme })))
const FOR_AXE = ['/index.html', '/docs/conformance.html', '/api/testing.html']
const paths = readdirSync(SITE, { recursive: true }).filter((file) => file.endsWith('.html') && file !== '404.html').map((file) => `/${file.split(sep).join('/')}`)

let browser
teardown(async () => (await browser)?.close())

/** Opens a page in its own window, and collects its errors. */
async function open (t) {
  browser ??= chromium.launch({ executablePath: process.env.LIGHT_TRACE_CHROMIUM, args: ['--no-sandbox'] })
  const context = await (await browser).newContext({ reducedMotion: 'reduce' })
  t.teardown(() => context.close())
  const page = await context.newPage()
  const problems = []
  page.on('pageerror', (error) => problems.push(error.stack))
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && problems.push(message.text()))
  page.on('request', (request) => request.url().startsWith(`${ORIGIN}/`) || request.url().startsWith('data:') || problems.push(`it asked for ${request.url()}`))
  page.on('response', (response) => response.status() >= 400 && problems.push(`${response.status()} for ${response.url()}`))
  return { page, problems }
}

/** The page follows the system's preference. */
async function look (page, width, colorScheme) {
  await page.setViewportSize({ width, height: 800 })
  await page.emulateMedia({ colorScheme })
  await page.waitForFunction((isDark) => document.documentElement.classList.contains('dark') === isDark, colorScheme === 'dark')
}

/** Waits until Vue has mounted. A page that shows the built HTML and then fails would look correct. */
async function show (page, path) {
  await page.goto(ORIGIN + path)
  await page.waitForFunction(() => document.getElementById('app')?.__vue_app__ !== undefined)
}

test('every page loads, contacts no other host and does not scroll sideways, narrow and wide, light and dark', async (t) => {
  t.ok(paths.length > 40)
  const { page, problems } = await open(t)
  for (const path of paths) {
    await show(page, path)
    t.equal(await page.locator('h1').count(), 1, `${path} has one title`)
    for (const { width, colorScheme } of LOOKS) {
      await look(page, width, colorScheme)
      t.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, `${path}, ${width}, ${colorScheme}`)
    }
    t.same(problems.splice(0), [], path)
  }
})

test('axe finds no serious problem', async (t) => {
  const { page } = await open(t)
  for (const path of FOR_AXE) {
    await show(page, path)
    await page.evaluate(AXE)
    for (const { width, colorScheme } of LOOKS) {
      await look(page, width, colorScheme)
      // This rule is about VitePress's button, whose label contains its keys.
      const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'], rules: { 'label-content-name-mismatch': { enabled: false } } }))
      t.same(violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary}`).join(' | ')}`), [], `${path}, ${width}, ${colorScheme}`)
    }
  }
})

for (const { width, colorScheme } of LOOKS) {
  test(`the search for "sampler" leads to its page: ${width}, ${colorScheme}`, async (t) => {
    const { page, problems } = await open(t)
    await show(page, '/')
    await look(page, width, colorScheme)
    await page.getByRole('button', { name: 'Search' }).click()
    await page.getByRole('searchbox').fill('sampler')
    await page.locator('.VPLocalSearchBox .result').filter({ hasText: 'Sampling' }).first().click()
    await page.waitForURL('**/docs/sampling.html*')
    await page.locator('h1', { hasText: 'Sampling' }).waitFor()
    t.same(problems, [])
  })
}
