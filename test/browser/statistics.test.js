'use strict'

// The statistics of a trace, beside its waterfall.

const { problemsOf } = require('./support/axe')
const { inBrowser, texts } = require('./support/browser')
const traces = require('./support/otlp-traces')

const ORDERS = { method: 'POST', route: '/orders', path: () => '/orders', base: 40 }

function order () {
  const made = traces.ids(31)
  const traceId = made.trace()
  const stock = traces.otlp({ stock: [traces.span({ traceId, id: made.span(), name: 'GET /items/:id', kind: 'SERVER', start: Date.now(), ms: 3 })] })
  return { traceId, bodies: [traces.request({ made, traceId, route: ORDERS, fail: true, slow: 1 }), stock] }
}

const names = (page) => texts(page, '.statistics tbody th button')
const row = (page, name) => page.locator('.statistics tbody tr', { has: page.locator(`th bdi:text-is("${name}")`) })
const sorted = (page) => page.locator('.statistics th[aria-sort]').evaluate((cell) => `${cell.textContent} ${cell.ariaSort}`)

async function statistics (open, traceId, { path = '?view=statistics', ...look } = {}) {
  const page = await open(`/traces/${traceId}${path}`, look)
  await page.locator('.statistics tbody tr').first().waitFor()
  return page
}

async function look (page, name) {
  if (process.env.LIGHT_TRACE_LOOK) await page.screenshot({ path: `${process.env.LIGHT_TRACE_LOOK}/statistics-${name}.png` })
}

inBrowser('the time of each kind of span, sorted as the user likes, by name and by service, in the address', async (t, { send, open }) => {
  const { traceId, bodies } = order()
  await send(...bodies)
  const page = await open(`/traces/${traceId}`)
  await page.locator('.fall .row').nth(6).waitFor()
  await page.getByRole('button', { name: 'Statistics' }).click()
  await page.locator('.statistics tbody tr').first().waitFor()
  t.ok(page.url().endsWith(`/traces/${traceId}?view=statistics`))
  t.notOk(await page.locator('.fall').isVisible())
  t.equal(await page.getByRole('button', { name: 'Statistics' }).getAttribute('aria-pressed'), 'true')
  const answer = await (await fetch(new URL(`/api/traces/${traceId}/statistics`, page.url()))).json()
  t.same(await names(page), answer.rows.map(({ name }) => name), 'the most own time first')
  t.equal(await sorted(page), 'Own time descending')
  t.match((await row(page, 'POST /orders').locator('th, td').allTextContents()).map((text) => text.trim()), [/^POST \/ordersserver$/, 'shop', '1', /^[\d.]+ ms[\d.]+ %$/, /ms$/, /ms$/, /ms$/, /ms$/, '1'])
  t.ok(await row(page, 'POST /orders').locator('.k-errors.bad').count() === 1)

  await page.getByRole('button', { name: 'Calls' }).click()
  t.equal(await sorted(page), 'Calls descending')
  await page.getByRole('button', { name: 'Span', exact: true }).click()
  t.same(await names(page), answer.rows.map(({ name }) => name).sort((a, b) => a.localeCompare(b)))
  t.match(page.url(), /\?view=statistics&sort=name&order=asc$/)
  await page.reload()
  await page.locator('.statistics tbody tr').first().waitFor()
  t.equal(await sorted(page), 'Span ascending')

  await page.getByRole('button', { name: 'By service' }).click()
  await row(page, 'stock').waitFor()
  t.match(page.url(), /by=service/)
  t.same(await names(page), ['shop', 'stock'])
  await row(page, 'stock').locator('button').click()
  await page.locator('.fall .row.found').first().waitFor()
  t.equal(await page.getByRole('searchbox').inputValue(), 'stock')
})

inBrowser('by keyboard: to the statistics, to the spans of a row, and back', async (t, { send, open }) => {
  const { traceId, bodies } = order()
  await send(...bodies)
  const page = await open(`/traces/${traceId}`)
  await page.locator('.fall .row').nth(6).waitFor()
  await page.keyboard.press('s')
  await page.locator('.statistics tbody tr').first().waitFor()
  await page.keyboard.press('Escape')
  await page.locator('.fall .row').first().waitFor()
  t.ok(page.url().endsWith(`/traces/${traceId}`))
  await page.keyboard.press('s')
  await row(page, 'redis GET session').locator('button').focus()
  await page.keyboard.press('Enter')
  await page.locator('.fall .row.found').waitFor()
  t.equal(await page.locator('.fall .row[aria-selected=true] .label').textContent(), 'redis GET session')
  await page.keyboard.press('s')
  await row(page, 'render').waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('render')
  await page.locator('.fall .row.found').waitFor()
})

inBrowser('a trace that grows updates its statistics, and what has the focus keeps it', async (t, { send, open }) => {
  const { traceId, bodies } = order()
  await send(...bodies)
  const page = await statistics(open, traceId)
  await page.locator('.statistics').getByRole('button', { name: 'Max' }).focus()
  await page.keyboard.press('Enter')
  await send(traces.otlp({ shop: [traces.span({ traceId, id: 'abcdefabcdefabcd', name: 'late', start: Date.now(), ms: 1 })] }))
  await row(page, 'late').waitFor()
  t.equal(await page.evaluate(() => document.activeElement.textContent), 'Max')
  t.equal(await sorted(page), 'Max descending')
})

inBrowser('names are text, whatever they hold', async (t, { send, open }) => {
  const made = traces.ids(5)
  const traceId = made.trace()
  const start = Date.now()
  await send(traces.otlp({ [traces.HOSTILE.script]: Object.values(traces.HOSTILE).map((name) => traces.span({ traceId, id: made.span(), parent: 'abcdefabcdefabcd', name, start, ms: 5 })), stock: [traces.span({ traceId, id: made.span(), name: '', start, ms: 5 })] }))
  const page = await statistics(open, traceId)
  t.equal(await page.locator('.statistics tbody tr').count(), Object.keys(traces.HOSTILE).length + 1)
  await page.locator('.statistics tbody button', { hasText: 'three' }).click()
  await page.locator('.fall .row.found').waitFor()
  await page.keyboard.press('s')
  await row(page, 'no name').locator('button').click()
  await page.locator('.fall .row').first().waitFor()
  await page.locator('.fall .row.found').waitFor({ state: 'detached' })
  t.equal(await page.evaluate(() => window.hacked), undefined)
})

for (const [size, colorScheme] of [['wide', 'light'], ['wide', 'dark'], ['narrow', 'light'], ['narrow', 'dark']]) {
  inBrowser(`axe finds nothing, and nothing is cut off: ${size}, ${colorScheme}`, async (t, { send, open }) => {
    const { traceId, bodies } = order()
    await send(...bodies)
    for (const by of ['name', 'service']) {
      const page = await statistics(open, traceId, { path: `?view=statistics&by=${by}`, size, colorScheme })
      t.same(await problemsOf(page), [], by)
      for (const selector of ['html', '#main', '.statistics']) t.ok(await page.locator(selector).evaluate((element) => element.scrollWidth <= element.clientWidth), `${selector} does not scroll sideways`)
      await look(page, `${by}-${size}-${colorScheme}`)
    }
  })
}
