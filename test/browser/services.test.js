'use strict'

// The map of services in a browser: what is drawn, its keys, its tables, and where it leads.

const { problemsOf } = require('./support/axe')
const { answeredAndPainted, inBrowser, shows, texts } = require('./support/browser')
const traces = require('./support/otlp-traces')

const made = traces.ids(77)

const HTTP = { 'http.request.method': 'GET', 'server.address': 'stock', 'server.port': 3001 }
const PG = { 'db.system.name': 'postgresql', 'server.address': 'db', 'db.namespace': 'shop' }

/** A request of shop, which calls stock, which calls a database. `fail`: the database does. */
function request ({ fail = false, from = 'shop', to = 'stock', traceId = made.trace(), start = Date.now() - 1000, ms = 40 } = {}) {
  const [root, call, there] = [made.span(), made.span(), made.span()]
  const base = { traceId, start }
  return {
    traceId,
    body: traces.otlp({
      [from]: [
        traces.span({ ...base, id: root, kind: 'SERVER', name: 'GET /', ms, attributes: { 'http.request.method': 'GET', 'http.route': '/', 'http.response.status_code': 200 } }),
        traces.span({ ...base, id: call, parent: root, kind: 'CLIENT', name: 'GET', ms: ms / 2, attributes: HTTP })
      ],
      [to]: [
        traces.span({ ...base, id: there, parent: call, kind: 'SERVER', name: 'GET /items', ms: ms / 4, attributes: { 'http.request.method': 'GET', 'http.route': '/items' } }),
        traces.span({ ...base, id: made.span(), parent: there, kind: 'CLIENT', name: 'SELECT', ms: 2, attributes: PG, error: fail ? 'deadlock' : undefined })
      ]
    })
  }
}

const focused = (page) => page.evaluate(() => document.activeElement.textContent)
const address = (page) => new URL(page.url()).search

inBrowser('the map shows who calls whom, and follows what arrives', async (t, { send, open }) => {
  const page = await open('/services')
  await page.getByText('No trace has arrived yet.').waitFor()
  await send(request().body)
  await page.locator('.node').nth(3).waitFor()
  t.same((await texts(page, '.node bdi')).sort(), ['clients', 'db/shop', 'shop', 'stock'])
  const places = await page.locator('.node').evaluateAll((nodes) => ['clients', 'stock', 'postgresql'].map((name) => nodes.find((node) => node.textContent.includes(name)).offsetLeft))
  t.same(places, places.toSorted((a, b) => a - b), 'from left to right')
  t.equal(await page.locator('.edge-line').count(), 3)
  t.equal(await page.locator('.edge-line.bad, .edge .bad').count(), 0, 'nothing is red')
  await page.locator('.node', { hasText: 'stock' }).focus()
  const failed = request({ fail: true })
  await send(failed.body)
  await page.locator('.edge', { hasText: '50 % failed' }).waitFor()
  t.equal(await page.locator('.edge-line.bad').count(), 1, 'only the call that failed is red')
  t.match(await focused(page), /^stock/, 'the keyboard stays where it was')

  await page.locator('.edge', { hasText: 'failed' }).click()
  t.match(await page.locator('.panel').textContent(), /stock → postgresql db\/shop.*Calls2.*Failed1 · 50 %/)
  t.match(address(page), /caller=service%3Astock&callee=db/)
  await page.getByRole('link', { name: 'Last failed' }).click()
  await page.waitForURL(new RegExp(failed.traceId))
  await page.goBack()
  await page.locator('.panel').getByRole('link', { name: 'Its requests' }).click()
  await page.waitForURL(/\/\?where=/)
  await page.locator('.row').nth(1).waitFor()
})

inBrowser('by keyboard: along the calls, to the figures, and back', async (t, { send, open }) => {
  await send(request().body, request({ from: 'web', to: 'shop' }).body)
  const page = await open('/')
  await page.locator('.row').first().waitFor()
  await page.keyboard.press('6')
  await page.waitForURL(/\/services$/)
  await page.locator('.node').nth(4).waitFor()
  t.equal(await page.locator('.map [tabindex="0"]').count(), 1, 'the map is one stop of the Tab key')
  await page.locator('.map [tabindex="0"]').focus()
  t.match(await focused(page), /^clients/)
  await page.keyboard.press('ArrowRight')
  t.match(await focused(page), /^clients calls (?:shop|web), \d/)
  await page.keyboard.press('ArrowRight')
  t.match(await focused(page), /^(?:shop|web)\d/)
  for (const [key, name] of [['ArrowDown', /^\S/], ['ArrowUp', /^(?:shop|web)\d/], ['ArrowLeft', /^(?:clients|web) calls/], ['ArrowLeft', /^(?:clients|web)/]]) {
    await page.keyboard.press(key)
    t.match(await focused(page), name, key)
  }
  await page.keyboard.press('Enter')
  await page.locator('.panel h2').waitFor()
  t.match(await focused(page), /^(?:clients|web)/, 'the keyboard stays on the map')
  await page.keyboard.press('Escape')
  await page.locator('.panel').waitFor({ state: 'hidden' })
  await page.keyboard.press('?')
  await page.getByText('metrics, services').waitFor()
})

inBrowser('what a service depends on, and what depends on it, in the address', async (t, { send, open }) => {
  await send(request().body, request({ from: 'web', to: 'shop' }).body, request({ from: 'other', to: 'alone' }).body)
  const page = await open('/services?node=service%3Astock')
  await page.locator('.panel').getByRole('button', { name: 'What it depends on' }).click()
  await page.waitForFunction(() => document.querySelectorAll('.node').length === 2)
  t.same((await texts(page, '.node bdi')).sort(), ['db/shop', 'stock'])
  t.match(address(page), /of=service%3Astock&side=calls/)
  await page.reload()
  await page.locator('.node').nth(1).waitFor()
  t.equal(await page.locator('.node').count(), 2)
  await page.getByLabel('Which side').selectOption('callers')
  await page.waitForFunction(() => document.querySelectorAll('.node').length === 4)
  t.same((await texts(page, '.node bdi')).sort(), ['clients', 'shop', 'stock', 'web'])
  await page.getByLabel('Only what belongs to').selectOption({ label: 'postgresql db/shop' })
  await page.waitForFunction(() => document.querySelectorAll('.node').length > 5)
  await page.getByLabel('Only what belongs to').selectOption('')
  await page.waitForFunction(() => document.querySelectorAll('.node').length === 7)
})

inBrowser('what is chosen stays, if an answer comes that was asked for before', async (t, { send, open }) => {
  await send(request().body, request({ from: 'web', to: 'shop' }).body)
  const page = await open('/services?node=service%3Astock')
  await page.locator('.node').nth(4).waitFor()
  const held = []
  await page.route(/\/api\/services\?layout=/, (route) => held.push(route)) // everything
  await send(request().body)
  await shows(t, () => held.length, 1)
  await page.locator('.panel').getByRole('button', { name: 'What it depends on' }).click()
  await page.waitForFunction(() => document.querySelectorAll('.node').length === 2)
  await answeredAndPainted(page, /\/api\/services\?layout=/, () => held[0].continue())
  t.equal(await page.locator('.node').count(), 2)
})

inBrowser('Escape works before the map is there', async (t, { send, open, url }) => {
  await send(request().body)
  const page = await open('/routes')
  const held = []
  await page.route(/\/api\/services\?layout=/, (route) => held.length === 0 ? held.push(route) : route.continue())
  await page.goto(`${url}/services?node=service%3Astock`)
  await shows(t, () => held.length, 1)
  await page.keyboard.press('Escape')
  await page.waitForURL(/\/services$/)
  await held[0].continue()
  await page.locator('.node').first().waitFor()
  t.equal(await page.locator('.problem, .panel:visible').count(), 0)
})

inBrowser('tables say the same; on a narrow screen they come first', async (t, { send, open }) => {
  await send(request().body, request({ fail: true }).body)
  for (const [size, first] of [['wide', 'map-box'], ['narrow', 'calls']]) {
    const page = await open('/services', { size })
    await page.locator('tbody tr').nth(5).waitFor()
    t.equal(await page.locator('.map-box, table').first().evaluate((element) => element.className.split(' ').at(-1)), first)
    const row = page.locator('table').first().locator('tr', { hasText: 'postgresql db/shop' })
    t.match(await row.locator('td').allTextContents(), ['stock', 'postgresql db/shop', '2', /\/s|\/min/, '1 · 50 %', '2.00 ms', '2.00 ms', /slowestfailed/])
    await row.getByRole('button').click()
    await page.locator('.panel h2', { hasText: 'stock → postgresql' }).waitFor()
    t.same(await problemsOf(page), [])
    t.ok(await page.evaluate(() => document.documentElement.scrollWidth === document.documentElement.clientWidth && document.getElementById('main').scrollWidth <= document.getElementById('main').clientWidth), 'nothing scrolls sideways but the map')
  }
})

for (const colorScheme of ['light', 'dark']) {
  inBrowser(`axe finds nothing: ${colorScheme}`, async (t, { send, open }) => {
    await send(request().body, request({ fail: true }).body)
    const page = await open('/services?node=service%3Astock', { colorScheme })
    await page.locator('.panel h2').waitFor()
    t.same(await problemsOf(page), [])
  })
}

inBrowser('names that no correct sender makes are text', async (t, { send, open }) => {
  for (const name of Object.values(traces.HOSTILE)) await send(request({ from: name, to: `to ${name}` }).body)
  const page = await open('/services')
  await page.locator('.node').nth(14).waitFor()
  for (let nth = 0; nth < 16; nth++) {
    await page.locator('.node').nth(nth).evaluate((node) => node.click())
    await page.locator('.panel h2').waitFor()
  }
  t.equal(await page.evaluate(() => window.hacked), undefined)
  t.equal(await page.locator('main script, main img, main iframe, main style').count(), 0)
  t.notMatch(await page.locator('main').innerText().then((text) => text.replace(/[\n\t]/g, '')), /[\u202a-\u202e\p{Cc}]/u)
  t.match(await texts(page, '.node bdi'), { length: 16 })
  const overlaps = await page.locator('.node').evaluateAll((nodes) => nodes.filter((a) => nodes.some((b) => a !== b && a.offsetLeft === b.offsetLeft && a.offsetTop < b.offsetTop + b.offsetHeight && b.offsetTop < a.offsetTop + a.offsetHeight)).length)
  t.equal(overlaps, 0)
})

inBrowser('200 nodes and 1,000 edges: no node is on another, and what is selected shows its figures', async (t, { send, open }) => {
  const root = made.span()
  for (let nth = 0; nth < 60; nth++) {
    const traceId = made.trace()
    const start = Date.now() - 1000
    const of = { traceId, start, ms: 5 }
    await send(traces.otlp({
      [`service ${nth}`]: [
        traces.span({ ...of, id: root, kind: 'SERVER', name: 'GET /' }),
        ...Array.from({ length: 17 }, (_, call) => traces.span({ ...of, id: made.span(), parent: root, kind: 'CLIENT', name: 'GET', attributes: { ...HTTP, 'server.address': `host-${(nth * 3 + call * 11) % 160}` } }))
      ]
    }))
  }
  const page = await open('/services')
  await page.locator('.node').nth(199).waitFor()
  await page.getByText(/calls of what is less busy are not shown/).waitFor()
  t.equal(await page.locator('.map.dense').count(), 1)
  const overlaps = await page.locator('.node').evaluateAll((nodes) => nodes.filter((a) => nodes.some((b) => a !== b && a.offsetLeft === b.offsetLeft && a.offsetTop < b.offsetTop + b.offsetHeight && b.offsetTop < a.offsetTop + a.offsetHeight)).length)
  t.equal(overlaps, 0)
  await page.locator('.node', { hasText: 'service 7' }).first().click()
  await page.locator('.panel li').nth(5).waitFor()
  t.ok(await page.locator('.edge.on').first().textContent())
  await page.locator('.panel').getByRole('button', { name: 'What it depends on' }).click()
  await page.waitForFunction(() => document.querySelectorAll('.node').length < 40)
  t.equal(await page.locator('.map.dense').count(), 0)
})
