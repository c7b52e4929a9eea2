'use strict'

// The viewer in light and dark, wide and narrow, and for screen readers.

const { problemsOf } = require('./support/axe')
const { inBrowser, styleOf } = require('./support/browser')
const { sendLogs } = require('./support/otlp-logs')
const traces = require('./support/otlp-traces')

/** Sends a shop's traces. Returns the address of every view of it. */
async function allViews (send, url) {
  const orphans = traces.orphans()
  const route = { method: 'POST', route: '/orders', path: () => '/orders', base: 40 }
  const made = traces.ids(91)
  await send(...traces.shop({ count: 60 }), orphans.body, ...[true, false].map((fail) => traces.request({ made, route, fail })))
  const list = async (query) => (await (await fetch(`${url}/api/traces?${query}`)).json()).traces
  const [failed] = await list('status=error&route=POST%20/orders')
  const [good] = await list('status=ok&route=POST%20/orders')
  const [traceId, at] = [failed.id, failed.startMs + 1]
  await sendLogs(url, ...[5, 9, 13, 17].map((severity) => ({ traceId, at, severity, text: 'a line that is long enough to be cut '.repeat(5) })), { at, text: `${'x'.repeat(500)} of no request` })
  return {
    requests: '/',
    trace: `/traces/${good.id}`,
    span: `/traces/${failed.id}?span=last`,
    gap: `/traces/${orphans.traceId}`,
    routes: '/routes',
    route: `/routes?route=${encodeURIComponent(good.route)}&service=shop`,
    exceptions: '/exceptions',
    compare: `/compare?a=${good.id}`,
    logs: '/logs',
    line: `/traces/${failed.id}?span=l1`,
    lost: '/lost'
  }
}

const READY = { requests: '.row', trace: '.fall .row', span: '.fall .row', gap: '.row.missing', routes: 'tbody tr', route: '.box', exceptions: 'summary', compare: '.compare .row', lost: 'tbody tr', logs: '.log', line: '.panel .message' }

async function show (page, url, name, path) {
  await page.goto(url + path)
  await page.locator(READY[name]).first().waitFor()
  if (name === 'span') {
    await page.keyboard.press('Enter')
    await page.locator('.exception').waitFor()
  }
  if (name === 'exceptions') await page.locator('summary').first().click()
}

for (const [size, colorScheme] of [['wide', 'light'], ['wide', 'dark'], ['narrow', 'light'], ['narrow', 'dark']]) {
  inBrowser(`axe finds no serious problem, and nothing is cut off: ${size}, ${colorScheme}`, async (t, { send, open, url }) => {
    const views = await allViews(send, url)
    const page = await open('/', { size, colorScheme })
    for (const [name, path] of Object.entries(views)) {
      await show(page, url, name, path)
      t.same(await problemsOf(page), [], name)
      const { width, clientWidth } = await page.evaluate(() => ({ width: document.documentElement.scrollWidth, clientWidth: document.documentElement.clientWidth }))
      t.equal(width, clientWidth, `${name} does not scroll sideways`)
      t.ok(await page.evaluate(() => document.getElementById('main').scrollWidth <= document.getElementById('main').clientWidth), `${name}: nothing in it scrolls sideways`)
    }
    await page.goto(url)
    await page.locator('.row').first().waitFor()
    await page.keyboard.press('?')
    await page.locator('dialog[open]').waitFor()
    t.same(await problemsOf(page), [], 'help')
  })
}

inBrowser('the switch changes light to dark, and the browser remembers the choice', async (t, { open }) => {
  const page = await open('/', { colorScheme: 'light' })
  const shade = (of = page) => styleOf(of.locator('body'), 'background-color')
  const light = await shade()
  await page.getByRole('button', { name: 'Switch to dark' }).click()
  const dark = await shade()
  t.not(dark, light)
  t.equal(await page.evaluate(() => document.activeElement.ariaLabel), 'Switch to light', 'the focus stays on the switch')
  await page.reload()
  t.equal(await shade(), dark)
  const other = await open('/', { colorScheme: 'dark' })
  t.equal(await shade(other), dark, 'without a choice it follows the system')
})

inBrowser('what has failed is bold where the system sets the colours', async (t, { send, open, url }) => {
  const views = await allViews(send, url)
  const page = await open(views.line)
  const label = page.locator('.failed:not(.top) .label').first()
  const weight = () => label.evaluate((element) => element.computedStyleMap().get('font-weight').value)
  await label.waitFor()
  t.equal(await weight(), 400)
  await page.emulateMedia({ forcedColors: 'active' })
  t.equal(await weight(), 700)
})

inBrowser('a screen reader gets rows, levels, states and the values of the bars', async (t, { send, open, url }) => {
  const views = await allViews(send, url)
  const page = await open(views.trace)
  await page.locator('.fall .row').nth(5).waitFor()
  const grid = page.getByRole('treegrid', { name: 'Spans' })
  t.equal(Number(await grid.getAttribute('aria-rowcount')), await page.locator('.row').count() + 1)
  const first = grid.getByRole('row', { level: 1, expanded: true, selected: true })
  t.equal(await first.count(), 1)
  t.match(await first.ariaSnapshot(), /row "shop POST \/orders .* ms starts at 0, own time .* critical path/)
  const focusable = await page.evaluate(() => [...document.querySelectorAll('a[href], button, input, select, [tabindex="0"]')].filter((each) => each.checkVisibility()).map((each) => each.ariaLabel ?? each.textContent.trim()))
  t.match(focusable.slice(0, 5), [/^Skip/, 'light-trace', 'Requests', 'Routes', 'Exceptions'], 'the tab order is the order of the page')
  t.ok(focusable.indexOf('Find a span in this trace') < focusable.indexOf('Spans'))
})
