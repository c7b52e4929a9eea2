'use strict'

// Log lines: below their spans, and as a live list.

const { answeredAndPainted, inBrowser, shows, styleOf, texts } = require('./support/browser')
const { sendLogs } = require('./support/otlp-logs')
const traces = require('./support/otlp-traces')

const { HOSTILE } = traces
const ORDERS = { method: 'POST', route: '/orders', path: () => '/orders', base: 40 }

/** Sends a request with three lines: one of its own, one of its handler, and another of its own. */
async function orderWithLines ({ url, send }) {
  const made = traces.ids(31)
  const traceId = made.trace()
  await send(traces.request({ made, traceId, route: ORDERS, fail: true, slow: 1 }))
  const { rows, startMs } = await (await fetch(`${url}/api/traces/${traceId}/rows`)).json()
  const handler = rows.find(({ name }) => name === 'handler')
  await sendLogs(url,
    { traceId, spanId: rows[0].id, at: startMs + 0.5, severity: 5, text: 'incoming', attributes: { user: 'ann' } },
    { traceId, spanId: handler.id, at: startMs + handler.start + handler.duration - 0.5, severity: 17, text: 'no stock', attributes: { 'exception.stacktrace': 'Error: x\n    at load (/app/x.js:1:1)' } },
    { traceId, spanId: rows[0].id, at: startMs + rows[0].duration - 0.5, severity: 13, text: 'answered late' })
  return { traceId, handler, startMs }
}

const lineRows = (page) => texts(page, '.fall .row.line .label')

inBrowser('log lines are listed below their span, by time, in the colour of their level, and filtered by level and text', async (t, viewer) => {
  const { traceId } = await orderWithLines(viewer)
  const page = await viewer.open(`/traces/${traceId}`)
  await page.locator('.fall .row.line').nth(2).waitFor()
  t.same(await texts(page, '.fall .row .label'), ['POST /orders', 'incoming', 'preHandler authenticate', 'redis GET session', 'handler', 'postgresql SELECT items', (await texts(page, '.fall .row .label'))[6], 'render', 'no stock', 'answered late'])
  t.match(await page.locator('.row.line').first().textContent(), /^debug\+500 µsincominguser=ann$/)
  const colour = (level) => styleOf(page.locator(`.l-${level}`).first())
  t.equal(new Set([await colour('debug'), await colour('warn'), await colour('error')]).size, 3)
  await page.getByLabel('Level').selectOption('warn')
  t.same(await lineRows(page), ['no stock', 'answered late'])
  await page.getByPlaceholder('Find a span or line').fill('LATE')
  t.same(await lineRows(page), ['answered late'])
  await page.getByText('1 of 1').waitFor()
  await page.getByPlaceholder('Find a span or line').fill('')
  await page.reload()
  await page.locator('.fall .row.line').nth(1).waitFor()
  t.same(await lineRows(page), ['no stock', 'answered late'], 'the level is remembered')
  await page.getByLabel('Level').selectOption('none')
  t.same(await lineRows(page), [])
  t.equal(await page.locator('.fall .row', { hasText: 'POST /orders' }).first().getAttribute('aria-expanded'), 'true')
})

inBrowser('a line has a panel with all its data, which its URL and the keyboard open, too', async (t, viewer) => {
  const { traceId } = await orderWithLines(viewer)
  const page = await viewer.open(`/traces/${traceId}`)
  await page.locator('.row.line', { hasText: 'no stock' }).click()
  await page.locator('.panel').getByText('Log line').waitFor()
  t.match(await page.locator('.panel').textContent(), /error Log line.*shop · pino.*Spanhandler.*no stock.*exception\.stacktraceError: x\n {4}at load/s)
  t.match(page.url(), /span=l1/)
  await page.reload()
  await page.locator('.panel').getByText('no stock').waitFor()
  t.equal(await page.locator('.row[aria-selected=true] .label').textContent(), 'no stock')
  await page.locator('.panel').getByRole('button', { name: 'handler' }).click()
  await page.locator('.panel h2', { hasText: 'handler' }).waitFor()
  await page.keyboard.press('Escape')
  await page.keyboard.press('Home')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.locator('.panel').getByText('incoming').waitFor()
  t.pass()
})

inBrowser('the list of lines is live, can be filtered, and links to the request in the panel', async (t, viewer) => {
  const page = await viewer.open('/logs')
  await page.getByText('No line has been received yet').waitFor()
  const { traceId } = await orderWithLines(viewer)
  await page.locator('a.log').nth(2).waitFor()
  const said = () => texts(page, '.log .what bdi:first-child')
  t.same(await said(), ['answered late', 'no stock', 'incoming'])
  await sendLogs(viewer.url, { at: Date.now(), text: 'of no request' })
  await page.getByText('of no request').waitFor()
  t.same(await said(), ['of no request', 'answered late', 'no stock', 'incoming'])
  await page.locator('a.log').nth(2).focus()
  await sendLogs(viewer.url, { at: Date.now(), text: 'another' })
  await page.getByText('another').waitFor()
  t.match(await page.evaluate(() => document.activeElement.textContent), /no stock/, 'the focus stays')
  await page.getByLabel('Level').selectOption('warn')
  await page.getByText('2 of 5 lines').waitFor()
  await page.getByPlaceholder('Search lines').fill('stock')
  await page.getByText('1 of 5 lines').waitFor()
  t.match(page.url(), /\/logs\?level=warn&q=stock$/)
  await page.locator('a.log').click()
  await page.locator('.panel').getByRole('link', { name: 'Show in its trace' }).click()
  await page.waitForURL(/\/traces\//)
  await page.locator('.panel').getByText('no stock').waitFor()
  t.match(page.url(), new RegExp(`/traces/${traceId}\\?span=l1`))
  await page.keyboard.press('4')
  await page.locator('.log').nth(4).waitFor()
  await page.getByRole('button', { name: 'Pause' }).click()
  await sendLogs(viewer.url, { at: Date.now(), text: 'while paused' })
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByText('while paused').waitFor()
  t.equal(await page.locator('.log').count(), 6)
})

inBrowser('lines that were asked for with another level are not shown', async (t, { open, url }) => {
  await sendLogs(url, { at: Date.now(), text: 'for your information' }, { at: Date.now(), severity: 17, text: 'an error' })
  const page = await open('/routes')
  const held = []
  await page.route(/\/api\/logs\?/, (route) => held.length < 2 ? held.push(route) : route.continue())
  await page.goto(`${url}/logs`)
  await shows(t, () => held.length, 1)
  await page.getByLabel('Level').selectOption('error')
  await answeredAndPainted(page, /\/api\/logs\?/, () => held[0].continue())
  t.same(await texts(page, '.log .what'), [])
  await shows(t, () => held.length, 2)
  await held[1].continue()
  await shows(t, () => texts(page, '.log .what'), ['an error'])
})

inBrowser('the page says why lines cannot be loaded, and if only the newest were searched', async (t, { open, url }) => {
  await sendLogs(url, { at: Date.now(), text: 'a line' })
  const page = await open('/logs?where=%3D%3D', { expectErrors: true })
  await page.locator('.note .problem', { hasText: 'where: ' }).waitFor()
  await page.getByRole('button', { name: /^Remove/ }).click()
  await page.locator('.log').waitFor()
  t.equal(await page.locator('.problem').count(), 0)
  await page.route(/\/api\/logs\?.*q=/, (route) => route.fulfill({ json: { lines: [], more: true, total: 5000, incomplete: true } }))
  await page.getByPlaceholder('Search lines').fill('needle')
  await page.getByText('No match in the newest lines.').waitFor()
})

inBrowser('hostile lines are shown as text', async (t, viewer) => {
  const { traceId, startMs } = await orderWithLines(viewer)
  await sendLogs(viewer.url, ...Object.entries(HOSTILE).flatMap(([name, text]) => [
    { traceId, spanId: '', at: startMs, text: `${name}: ${text}`, attributes: { [text]: text } }, { at: startMs, text, attributes: { [text]: text } }
  ]))
  const unhurt = async (page) => {
    t.equal(await page.evaluate(() => window.hacked), undefined)
    t.equal(await page.locator('main script, main img, main iframe, main [onerror]').count(), 0)
    t.same(await page.locator('main a').evaluateAll((links) => links.map((link) => link.protocol).filter((protocol) => protocol !== 'http:')), [])
    t.notMatch((await page.locator('main').innerText()).replace(/[\n\t]/g, ''), /[\u202a-\u202e\p{Cc}]/u)
  }
  const page = await viewer.open('/logs')
  await page.locator('.log').nth(16).waitFor()
  await unhurt(page)
  await page.goto(`${viewer.url}/traces/${traceId}`)
  await page.locator('.row.line').nth(9).waitFor()
  for (const row of await page.locator('.row.line').all()) {
    await row.click()
    await page.locator('.panel').getByText('Log line').waitFor()
    await unhurt(page)
  }
})

inBrowser('a list of lines that is scrolled down stays there, and a button leads to new lines', async (t, { open, url }) => {
  const lines = (count, text) => Array.from({ length: count }, (_, index) => ({ at: Date.now(), text: `${text} ${index}` }))
  await sendLogs(url, ...lines(100, 'old'))
  const page = await open('/logs')
  await page.locator('.log').nth(99).waitFor()
  await page.locator('.log', { hasText: 'old 0' }).last().scrollIntoViewIfNeeded()
  await sendLogs(url, ...lines(3, 'new'))
  await page.getByRole('button', { name: '3 new lines' }).click()
  t.equal(await page.locator('.log').first().evaluate((line) => line.checkVisibility() && line.getBoundingClientRect().top > 0), true)
  await page.getByRole('button', { name: 'new line' }).waitFor({ state: 'hidden' })
  await sendLogs(url, ...lines(1, 'newest'))
  await page.getByText('newest 0').waitFor()
  t.equal(await page.getByRole('button', { name: 'new line' }).count(), 0, 'at the top no button is needed')
})
