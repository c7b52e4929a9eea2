'use strict'

// The views of routes, a single route, exceptions, comparisons, and losses.

const { inBrowser, rows, texts } = require('./support/browser')
const traces = require('./support/otlp-traces')

const made = traces.ids(61)
const USERS = { method: 'GET', route: '/users/:id', path: () => '/users/7', base: 7 }
const ORDERS = { method: 'POST', route: '/orders', path: () => '/orders', base: 40 }

function request (route, { fail = false, slow = 1 } = {}) {
  const traceId = made.trace()
  return { traceId, body: traces.request({ made, traceId, route, fail, slow }) }
}

inBrowser('routes have figures, an order, charts, and links to the slowest, a failed and the median request', async (t, { send, open }) => {
  const [slowest, failed] = [request(USERS, { slow: 30 }), request(USERS, { fail: true })]
  await send(slowest.body, failed.body, request(USERS).body, request(USERS).body, request(ORDERS).body)
  const page = await open('/routes')
  const row = page.locator('tbody tr', { hasText: '/users/:id' })
  await row.waitFor()
  t.match(await row.locator('td, th').allTextContents(), [/GET.*\/users\/:id/, 'shop', '4', /\d/, '1 · 25 %', /ms$/, /ms$/, /ms$/])
  t.match(await row.locator('canvas').getAttribute('aria-label'), /^Latency in the last ten minutes: .*request/)
  t.ok(await row.locator('canvas').evaluate((canvas) => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0)), 'the chart is not empty')
  const first = async () => (await texts(page, 'tbody th'))[0]
  await page.getByRole('button', { name: 'Route' }).click()
  t.equal(await page.locator('th[aria-sort]').getAttribute('aria-sort'), 'ascending')
  t.match(await first(), /items/)
  await page.getByRole('button', { name: 'Route' }).click()
  t.match(await first(), /POST/)

  await page.keyboard.press('ArrowDown')
  const focused = () => page.evaluate(() => document.activeElement.closest('tbody th')?.textContent)
  t.match(await focused(), /POST/, 'the arrow keys move between rows')
  for (const key of ['ArrowDown', 'ArrowUp', 'ArrowUp']) await page.keyboard.press(key)
  t.match(await focused(), /POST/)

  const follow = async (name, traceId) => {
    await row.getByRole('link', { name: new RegExp(`^${name}`) }).click()
    await page.waitForURL(new RegExp(`/traces/${traceId}`))
    await page.locator('.fall .row').first().waitFor()
    await page.goBack()
    await row.waitFor()
  }
  await follow('slowest', slowest.traceId)
  await follow('failed', failed.traceId)
  await follow('median', '[0-9a-f]{32}')
  await row.getByRole('link', { name: '1 · 25 %' }).click()
  await page.waitForURL(/\/\?route=GET\+%2Fusers%2F%3Aid&service=shop&status=error$/)
  await page.locator('.row.failed').waitFor()

  await page.keyboard.press('2')
  await row.waitFor()
  await send(request(USERS).body)
  await row.getByText('5', { exact: true }).waitFor()
})

inBrowser('a route has its figures, its flame graph and its requests', async (t, { send, open }) => {
  for (let nth = 0; nth < 12; nth++) await send(request(USERS, { fail: nth === 3 }).body)
  const page = await open('/routes')
  await page.getByRole('link', { name: /\/users\/:id/ }).first().click()
  await page.waitForURL(/\/routes\?route=GET\+%2Fusers%2F%3Aid&service=shop$/)
  await page.locator('.flame .box').first().waitFor()
  t.match(await page.locator('.facts').textContent(), /Requests12.*Failed1 · 8\.3 %/)
  const boxes = await page.locator('.flame .box').evaluateAll((all) => all.map((box) => box.ariaLabel))
  t.match(boxes, [/^GET \/users\/:id, .* a request, own time .*, 100 % of all, 1 failed$/])
  t.ok(boxes.some((label) => label.startsWith('postgresql SELECT items, ')))
  await page.locator('.box', { hasText: 'handler' }).first().click()
  t.match(await page.locator('.flame .box').first().getAttribute('aria-label'), /handler/i)
  await page.getByRole('button', { name: 'Show all' }).click()
  t.equal(await page.locator('.flame .box').count(), boxes.length)
  for (const [link, address] of [['Slowest request', /\/traces\//], ['Compare slowest with median', /\/compare\?a=/], ['All its requests', /\/\?route=/]]) {
    await page.getByRole('link', { name: link }).click()
    await page.waitForURL(address)
    await page.goBack()
    await page.locator('.flame .box').first().waitFor()
  }
  await page.locator('.scroll').focus()
  await page.keyboard.press('Escape')
  await page.waitForURL(/\/routes$/)
})

inBrowser('an exception that many requests share is one row', async (t, { send, open }) => {
  const page = await open('/exceptions')
  await page.getByText('Nothing has failed.').waitFor()
  await send(request(USERS, { fail: true }).body, request(ORDERS, { fail: true }).body, request(USERS, { fail: true }).body, request(USERS).body)
  await page.getByText('3 requests').waitFor()
  t.equal(await page.locator('summary').count(), 1)
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('Enter')
  await page.getByText('at loadUser (/app/users.js:12:7)').waitFor()
  await send(request(USERS, { fail: true }).body)
  await page.getByText('4 requests').waitFor()
  t.ok(await page.getByText('at loadUser').isVisible(), 'an opened row stays open')
  await page.getByRole('link', { name: 'Show its requests' }).click()
  await page.waitForURL(/\?exception=/)
  await page.waitForFunction(() => document.querySelectorAll('.row.failed').length === 4)
})

inBrowser('a request can be compared with the median one of its route', async (t, { send, open }) => {
  const slow = request(ORDERS, { slow: 20 })
  const failed = request(ORDERS, { fail: true })
  await send(slow.body, failed.body, request(ORDERS).body, request(ORDERS).body, request(ORDERS).body, request(ORDERS).body)
  const page = await open(`/traces/${slow.traceId}`)
  await page.getByRole('link', { name: 'Compare' }).click()
  await page.locator('.compare .row').first().waitFor()
  const [top, ...rest] = await rows(page)
  t.match(top, /^POST \/orders \d+ ms [\d.]+ ms \+\d+ ms$/)
  t.ok(rest.some((row) => /INSERT order_items .* ×3 .* ×3/.test(row)), 'three spans with one name are one row')
  t.ok(await page.locator('.delta.slower').count() > 5)
  await page.keyboard.press('ArrowDown')
  t.equal(await page.locator('.compare').getAttribute('aria-activedescendant'), 'r1')
  await page.keyboard.press('Escape')
  await page.waitForURL(new RegExp(`/traces/${slow.traceId}`))

  const other = await open(`/compare?a=${failed.traceId}&b=${slow.traceId}`)
  await other.getByText('only in B').first().waitFor()
  const alone = await open('/compare?a=nothing', { expectErrors: true })
  await alone.getByText('Nothing to compare with').waitFor()
})

inBrowser('lost data is counted, with its source and its reason', async (t, { send, open, url }) => {
  const page = await open('/')
  await page.getByText('nothing lost').waitFor()
  for (let seed = 1; seed <= 6; seed++) await send(traces.bigTrace({ spans: 300, seed }).body)
  await send(traces.orphans().body)
  await fetch(`${url}/v1/traces`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{ broken' })
  await page.locator('#foot a.warn').click()
  await page.waitForURL(/\/lost$/)
  const figure = async (label) => page.locator('tr', { has: page.getByText(label, { exact: true }) }).locator('.num').textContent().then((number) => Number(number.replaceAll('\u202f', '')))
  await page.getByText('evicted', { exact: true }).waitFor()
  t.ok(await figure('evicted') >= 300, 'whole traces')
  t.equal(await figure('malformed'), 1)
  t.equal(await figure('Orphans'), 2)
}, { maxBytes: 400_000 })

inBrowser('the reasons of an app are explained apart from those of the viewer', async (t, { viewer, open, url }) => {
  viewer.app = { command: 'app.js', pid: 7, running: true, exit: null }
  await fetch(`${url}/api/app`, { method: 'POST', body: JSON.stringify({ pid: 7, service: 'shop', dropped: { queue_full: 4, too_large: 3, thinned: 2, constructor: 1 } }) })
  const page = await open('/lost')
  const about = (reason) => page.locator('tr', { has: page.getByText(reason, { exact: true }) }).locator('td').last().textContent()
  t.equal(await about('too large'), 'over 4 MiB, or half of the buffer, also without attributes, events and links')
  t.match(await about('queue full'), /buffer was full/)
  t.match(await about('thinned'), /buffer was full/)
  t.equal(await about('constructor'), '')
})

inBrowser('a library whose calls are not traced is named below every view, with a link to the fix', async (t, { viewer, open, url }) => {
  viewer.app = { command: 'app.js', pid: 7, running: true, exit: null }
  const page = await open('/')
  await page.getByText('nothing lost').waitFor()
  await fetch(`${url}/api/app`, { method: 'POST', body: JSON.stringify({ pid: 7, service: 'shop', untracedLibraries: ['mongodb', 'postgres', 7] }) })
  await page.locator('#foot').getByRole('link', { name: 'mongodb, postgres not traced' }).click()
  await page.waitForURL(/\/lost$/)
  const row = page.locator('tr', { hasText: 'Libraries that are not traced' })
  t.match(await row.textContent(), /mongodb, postgres.*traceClient/)
})

inBrowser('pages of unknown addresses link back', async (t, { open }) => {
  const page = await open('/traces/nothing%2Fat%20all', { expectErrors: true })
  await page.getByText('The trace cannot be shown').or(page.getByText('This trace is not here')).waitFor()
  await page.getByRole('link', { name: 'All requests' }).click()
  await page.getByText('Waiting for the first request').waitFor()
  const route = await open('/routes?route=GET%20%2Fnone', { expectErrors: true })
  await route.getByText('No request of this route has arrived.').waitFor()
  const flame = await open('/flame?route=GET%20%2Fnone', { expectErrors: true })
  await flame.getByText('No request of this route is stored.').waitFor()
  t.equal(await flame.title(), 'GET /none · light-trace')
})
