'use strict'

// The list of requests: live, the last failures first, filtered, and with the keyboard.

const { answeredAndPainted, answers, boxOf, inBrowser, painted, rows, shows } = require('./support/browser')
const traces = require('./support/otlp-traces')

const made = traces.ids(23)
const PRODUCTS = { method: 'GET', route: '/products', path: () => '/products', base: 4 }
const USERS = { method: 'GET', route: '/users/:id', path: () => '/users/7', base: 7 }
const INVOICE = { method: 'GET', route: '/orders/:id/invoice', path: () => '/orders/1/invoice', base: 120 }

function request (route, fail = false, index = 0) {
  return traces.request({ made, route, fail, slow: 1, index })
}

/** Many small traces in one message. */
function many (length) {
  const start = Date.now() - 60_000
  return traces.otlp({
    many: Array.from({ length }, (_, index) => traces.span({
      traceId: made.trace(), id: made.span(), name: `GET /many/${index}`, kind: 'SERVER', start: start + index * 10, ms: 1 + index % 40, attributes: { 'http.request.method': 'GET', 'http.route': '/many', 'url.path': `/many/${index}`, 'http.response.status_code': 200 }
    }))
  })
}

/** Hides the tab, or shows it again. */
function turn (page, hidden) {
  return page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden })
    document.dispatchEvent(new window.Event('visibilitychange'))
  }, hidden)
}

// The page loads its requests when it is opened, and once more when it is connected: that drops older ones and those that wait.
function loadedTwice (page) {
  return answers(page, '/api/traces?limit=500', 2)
}

inBrowser('an empty viewer explains how to fill it, and fills by itself', async (t, { send, open, url }) => {
  const page = await open('/')
  await page.getByText('Waiting for the first request').waitFor()
  t.match(await page.locator('.welcome').textContent(), `OTEL_EXPORTER_OTLP_ENDPOINT=${url}`)
  await send(request(PRODUCTS))
  await page.locator('.row').first().waitFor()
  t.match(await rows(page), [/200 GET\s*\/products/])
  await send(request(USERS, true))
  await page.locator('.row.failed').waitFor()
  t.match(await rows(page), [/^Last failed 1/, /500 GET\s*\/users\/:id/, /^All others 1/, /200 GET\s*\/products/], 'the failed request is first')
  await page.locator('#foot').getByText('2 traces').waitFor()
})

inBrowser('an app that is not traced is named, with the reason, where its requests would be', async (t, { viewer, open, url }) => {
  viewer.app = { command: 'app.js', pid: 7, running: true, exit: null }
  const report = (untraced) => fetch(`${url}/api/app`, { method: 'POST', body: JSON.stringify({ pid: 7, untraced }) })
  await report('uses Fastify 4.28.1, and light-trace needs Fastify 5 or later')
  const page = await open('/')
  await page.getByText('process 7 uses Fastify 4.28.1').waitFor()
  await report('says more')
  await page.getByText('process 7 says more').waitFor()
})

inBrowser('many failures do not hide new requests, and a call that failed inside a request is a note', async (t, { send, open }) => {
  for (let index = 0; index < 12; index++) await send(request(USERS, true, index))
  const [root, call] = [made.span(), made.span()]
  const traceId = made.trace()
  await send(traces.otlp({
    shop: [
      traces.span({ traceId, id: root, name: 'GET /new', kind: 'SERVER', start: Date.now(), ms: 5, attributes: { 'http.request.method': 'GET', 'http.route': '/new', 'http.response.status_code': 200 } }),
      traces.span({ traceId, id: call, parent: root, name: 'CLIENT', kind: 'CLIENT', start: Date.now(), ms: 1, error: 'ERR unknown subcommand' })
    ]
  }))
  const page = await open('/')
  await page.locator('.row .flag').getByText('1 failed inside').waitFor()
  const shown = await rows(page)
  t.match([shown[0], shown[6], shown[7]], [/^Last failed 5/, /^All others 8/, /200 GET\s*\/new/])
  t.equal(shown.length, 15)
})

inBrowser('requests that one blocked loop made slow are grouped below its line, first the one that blocked it', async (t, { send, open }) => {
  const culprit = made.trace()
  const stopped = (route, traceId, role, id = 'f00dbabe00000001') => {
    const body = traces.request({ made, traceId, route: { method: 'GET', route, path: () => route, base: 7 }, fail: false, slow: 1 })
    const root = body.resourceSpans[0].scopeSpans[0].spans.find(({ parentSpanId }) => !parentSpanId)
    const blocked = { id, role, duration: 0.612, 'culprit.trace_id': culprit }
    const attributes = { 'code.function.name': 'search', 'code.file.path': '/app/search.js', 'code.line.number': 14, ...Object.fromEntries(Object.entries(blocked).map(([name, value]) => [`light_trace.blocked_loop.${name}`, value])) }
    const { events } = traces.span({ traceId, id: root.spanId, name: '', start: 0, ms: 0, events: [{ name: 'light_trace.blocked_loop', at: Date.now(), attributes }] })
    root.events = events
    return body
  }
  await send(stopped('/search', culprit, 'culprit'), request(PRODUCTS), stopped('/waits', made.trace(), 'victim'), stopped('/alone', made.trace(), 'victim', 'f00dbabe00000002'), stopped('/last', made.trace(), 'victim'))
  const page = await open('/?order=newest')
  await page.locator('.row').nth(5).waitFor()
  t.match(await rows(page), [
    /^Blocked event loop, 612 ms at search \(\/app\/search\.js:14\) 3$/,
    /\/search.* blocked the loop$/,
    /\/last.* loop blocked$/,
    /\/waits.* loop blocked$/,
    /\/alone.* loop blocked$/,
    /\/products/
  ])
  if (process.env.LIGHT_TRACE_LOOK) await page.screenshot({ path: `${process.env.LIGHT_TRACE_LOOK}/stopped.png` })
  const selected = () => page.locator('.row[aria-selected=true] .route').textContent()
  await page.keyboard.press('ArrowDown')
  t.equal(await selected(), '/search', 'the line of the group is skipped')
  await page.keyboard.press('ArrowUp')
  t.equal(await selected(), '/search')
  await page.keyboard.press('End')
  t.equal(await selected(), '/products')
  await page.keyboard.press('Home')
  t.equal(await selected(), '/search')
  await page.keyboard.press('Enter')
  await page.locator('.trace-head .flag').getByText('blocked the loop').waitFor()
})

inBrowser('the server filters, and the filter is kept in the URL', async (t, { send, open }) => {
  await send(request(PRODUCTS, false, 0), request(USERS, false, 1), request(INVOICE, false, 2), request(USERS, true, 1))
  const page = await open('/')
  await page.locator('.row.failed').waitFor()
  const shown = async (change, count) => {
    await change()
    await page.waitForFunction((count) => document.querySelectorAll('.row:not(.group)').length === count, count)
    return (await rows(page)).filter((row) => !/^(?:Last failed|All others)/.test(row))
  }
  t.match(await shown(() => page.getByLabel('Status', { exact: true }).selectOption('error'), 1), [/500 GET\s*\/users/])
  t.match(page.url(), /\?status=error$/)
  await shown(() => page.keyboard.press('Escape'), 4)
  await shown(() => page.getByLabel('Route', { exact: true }).selectOption('GET /users/:id'), 2)
  await shown(() => page.keyboard.press('Escape'), 4)
  await shown(() => page.getByLabel('Duration', { exact: true }).selectOption('50'), 1)
  await shown(() => page.keyboard.press('Escape'), 4)
  t.ok((await page.getByLabel('Service', { exact: true }).locator('option').allTextContents()).includes('stock'))
  await shown(() => page.getByLabel('Service', { exact: true }).selectOption('stock'), 2)
  await shown(() => page.keyboard.press('Escape'), 4)

  await page.keyboard.press('/')
  await shown(() => page.keyboard.type('invoice'), 1)
  await page.keyboard.press('Control+a')
  await shown(() => page.keyboard.type('tenant=glo'), 2)
  await page.keyboard.type('bex')
  await shown(() => page.keyboard.press('Enter'), 2)
  t.match(await page.locator('.chip').textContent(), 'tenant = globex')
  t.match(page.url(), /where=tenant\+%3D\+globex/)
  await page.reload()
  await page.locator('.chip').waitFor()
  await shown(() => page.getByRole('button', { name: /^Remove tenant/ }).click(), 4)

  await page.getByRole('button', { name: 'Slowest' }).click()
  await page.waitForFunction(() => document.querySelector('.group') === null)
  t.match((await rows(page))[0], /invoice/)
  await page.keyboard.press('/')
  await page.keyboard.type('nothing has this')
  await page.getByText('No match in 4 requests.').waitFor()
  await page.getByRole('button', { name: 'Clear the filter' }).click()
  await page.waitForFunction(() => document.querySelectorAll('.row').length === 4)
})

inBrowser('requests that arrive while paused wait', async (t, { send, open }) => {
  await send(request(PRODUCTS))
  const page = await open('/')
  await loadedTwice(page)
  await page.locator('.grid').focus()
  await page.keyboard.press('p')
  await page.getByRole('button', { name: 'Resume' }).waitFor()
  await send(request(USERS))
  await page.getByRole('button', { name: 'Resume (1 new)' }).waitFor()
  t.equal((await rows(page)).length, 1)
  await page.getByRole('button', { name: 'Resume (1 new)' }).click()
  await page.waitForFunction(() => document.querySelectorAll('.row').length === 2)
})

inBrowser('a paused list stays as it is, also if the page misses something, and catches up when it goes on', async (t, { viewer, send, open }) => {
  await send(request(PRODUCTS))
  const page = await open('/')
  await loadedTwice(page)
  await page.getByRole('button', { name: 'Pause' }).click()
  await turn(page, true)
  while (viewer.stats().clients > 0) await new Promise((resolve) => setImmediate(resolve))
  await send(many(250))
  await turn(page, false)
  while (viewer.stats().clients < 1) await new Promise((resolve) => setImmediate(resolve))
  await send(request(USERS))
  await page.getByRole('button', { name: 'Resume (1 new)' }).waitFor()
  await painted(page)
  t.equal((await rows(page)).length, 1)
  await send(many(250)) // more than one event has
  await page.getByRole('button', { name: 'Resume (201 new)' }).waitFor()
  t.equal((await rows(page)).length, 1)
  await page.getByRole('button', { name: 'Resume' }).click()
  await shows(t, () => page.locator('.grid').getAttribute('aria-rowcount'), '501', 'not only those that were announced')
})

inBrowser('older requests that were asked for with another filter do not join the list', async (t, { send, open }) => {
  await send(many(600), request(USERS))
  const page = await open('/')
  await loadedTwice(page)
  let older
  await page.route(/\/api\/traces\?.*before=/, (route) => { older = route })
  await page.getByRole('button', { name: 'Load older requests' }).click()
  await page.getByLabel('Route', { exact: true }).selectOption('GET /users/:id')
  await answers(page, '/api/traces?route=GET+%2Fusers%2F%3Aid&limit=500', 2)
  await answeredAndPainted(page, /before=/, () => older.continue())
  await shows(t, () => rows(page), [/\/users/])
})

inBrowser('a request that arrives while the list is loading stays in it', async (t, { send, open }) => {
  await send(request(USERS))
  const page = await open('/')
  await loadedTwice(page)
  const held = []
  await page.route(/\/api\/traces\?.*where=/, async (route) => {
    const response = await route.fetch()
    await new Promise((resolve) => held.push(resolve))
    await route.fulfill({ response })
  })
  await page.getByLabel('Duration', { exact: true }).selectOption('1')
  await shows(t, () => held.length, 4, 'a load, and another after the connection')
  await send(request(INVOICE))
  await page.locator('.row', { hasText: 'invoice' }).waitFor()
  for (const answer of held) answer()
  await answers(page, '/api/traces?where=', 4)
  t.match(await rows(page), [/invoice/, /users/])
})

inBrowser('a search that took too long is continued where it stopped', async (t, { send, open, url }) => {
  await send(request(USERS))
  const { traces: found } = await (await fetch(`${url}/api/traces`)).json()
  const page = await open('/routes')
  const asked = []
  const stopped = { traces: [], more: true, total: 5000, incomplete: true }
  const slices = { null: { ...stopped, before: 3000 }, 3000: { ...stopped, traces: found, before: 1000 }, 1000: { ...stopped, before: 500 }, 500: { traces: [], more: false, total: 5000 } }
  await page.route(/\/api\/traces\?.*q=needle/, (route) => {
    const before = new URL(route.request().url()).searchParams.get('before')
    if (before !== null) asked.push(before)
    return route.fulfill({ json: slices[before] })
  })
  await page.goto(`${url}/?q=needle`)
  await answers(page, '/api/traces?q=needle&limit=500', 2)
  await page.getByText('No match in the newest requests yet').waitFor()
  const older = page.getByRole('button', { name: 'Load older requests' })
  for (const shown of [0, 1, 1]) {
    t.equal(await page.locator('.row').count(), shown)
    const button = await older.elementHandle()
    await button.click()
    await page.waitForFunction((button) => !button.isConnected, button) // it is drawn anew with the answer
  }
  t.same(asked, ['3000', '1000', '500'])
  t.equal(await older.count(), 0)
  t.match(await rows(page), [/\/users/])
})

inBrowser('every action is possible by keyboard', async (t, { send, open }) => {
  await send(request(USERS, true), request(PRODUCTS), request(USERS, true), request(PRODUCTS))
  const page = await open('/')
  await page.locator('.row.failed').first().waitFor()
  const selected = () => page.locator('.row[aria-selected=true]').getAttribute('aria-rowindex')
  await page.keyboard.press('?')
  await page.locator('dialog[open]').waitFor()
  await page.keyboard.press('Escape')
  await page.locator('dialog[open]').waitFor({ state: 'detached' })
  await page.keyboard.press('ArrowDown')
  t.equal(await selected(), '3', 'the group is skipped')
  t.equal(await page.locator('.grid').getAttribute('aria-activedescendant'), 'r1')
  await page.keyboard.press('e')
  t.equal(await selected(), '4')
  await page.keyboard.press('e')
  t.equal(await selected(), '3', 'after the last failed request comes the first')
  await page.keyboard.press('End')
  t.equal(await selected(), '7')
  await page.keyboard.press('Home')
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/traces\/[0-9a-f]{32}$/)
  await page.locator('.fall .row').first().waitFor()
  await page.keyboard.press('Escape')
  await page.waitForURL(/\/$/)
  await page.keyboard.press('2')
  await page.waitForURL(/\/routes$/)
  await page.keyboard.press('3')
  await page.waitForURL(/\/exceptions$/)
  await page.keyboard.press('1')
  await page.waitForURL(/\/$/)
  await page.keyboard.press('/')
  t.equal(await page.evaluate(() => document.activeElement.id), 'search')
  await page.keyboard.press('Escape')
  t.ok(await page.evaluate(() => document.activeElement.matches('.grid')), 'Escape returns to the rows')
})

inBrowser('of thousands of requests the page holds the newest, renders the visible ones, and loads older ones', async (t, { send, open }) => {
  await send(many(1200))
  const page = await open('/')
  await loadedTwice(page)
  t.equal(await page.locator('.grid').getAttribute('aria-rowcount'), '501')
  t.ok(await page.locator('.row').count() < 60, 'only visible rows are rendered')
  await page.getByRole('button', { name: 'Load older requests' }).click()
  await page.waitForFunction(() => document.querySelector('.grid').ariaRowCount === '1001')
  await page.getByRole('button', { name: 'Load older requests' }).click()
  await page.waitForFunction(() => document.querySelector('.grid').ariaRowCount === '1201')
  await page.locator('.grid').focus()
  await page.keyboard.press('End')
  t.match((await rows(page)).at(-1), /\/many\/0 many/)
})

inBrowser('the slowest of all stored requests come first, also those that are not among the newest', async (t, { send, open }) => {
  await send(request(INVOICE))
  await send(many(600))
  const page = await open('/')
  await loadedTwice(page)
  await page.getByText(/^500 requests loaded/).waitFor()
  await page.getByRole('button', { name: 'Slowest' }).click()
  await page.locator('.row', { hasText: 'invoice' }).waitFor()
  t.match((await rows(page))[0], /invoice/)
  t.equal(await page.getByRole('button', { name: 'Load older requests' }).count(), 0)
  await send(request({ ...INVOICE, route: '/new', path: () => '/new', base: 900 }))
  await page.locator('.row', { hasText: '/new' }).waitFor()
  t.match((await rows(page)).slice(0, 2), [/new/, /invoice/])
})

inBrowser('a viewer that has stopped is reported as not connected', async (t, { viewer, send, open }) => {
  await send(request(PRODUCTS))
  const page = await open('/', { expectErrors: true })
  await page.locator('#state.live').waitFor()
  await viewer.close()
  await page.getByText('not connected').waitFor()
  t.equal((await rows(page)).length, 1, 'received requests are still shown')
})

inBrowser('traces can be imported from a file and exported to one', async (t, { send, open }) => {
  const page = await open('/', { expectErrors: true }) // a rejected file causes an error in the console
  const body = request(USERS, true)
  await page.locator('input[type=file]').setInputFiles({ name: 'trace.json', mimeType: 'application/json', buffer: Buffer.from(JSON.stringify(body)) })
  await page.waitForURL(/\/traces\/[0-9a-f]{32}$/)
  await page.locator('.fall .row').first().waitFor()
  await page.locator('input[type=file]').setInputFiles({ name: 'no.json', mimeType: 'application/json', buffer: Buffer.from('{ not json') })
  await page.locator('#said').getByText(/^no\.json: /).waitFor()
  await send(request(PRODUCTS))
  await page.keyboard.press('1')
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export' }).click()])
  const chunks = []
  for await (const chunk of await download.createReadStream()) chunks.push(chunk)
  const lines = Buffer.concat(chunks).toString().trim().split('\n').map((line) => JSON.parse(line))
  t.equal(lines.length, 2)
  t.ok(lines.every(({ resourceSpans }) => resourceSpans.length > 0))
})

inBrowser('a click works while requests keep coming', async (t, { send, open }) => {
  await send(request(USERS, true))
  const page = await open('/')
  const row = page.locator('.row.failed')
  await row.waitFor()
  await page.locator('.overview canvas').waitFor() // it moves the rows down
  const { x, y } = await boxOf(row)
  await page.mouse.move(x + 300, y + 10)
  await page.mouse.down()
  const live = await open('/') // shows that the viewer has sent them to the pages
  await send(...Array.from({ length: 20 }, () => request(PRODUCTS)))
  await live.locator('.row').nth(10).waitFor()
  t.equal((await rows(page)).length, 2, 'new requests wait until the button is released')
  await page.mouse.up()
  await page.waitForURL(/\/traces\//)
  await page.keyboard.press('Escape')
  await page.locator('.row[aria-selected=true].failed').waitFor()
  t.ok(await page.evaluate(() => document.activeElement.matches('.grid')), 'the focus is back in the rows, at the same request')
})

inBrowser('a hidden tab holds no connection, and catches up later', async (t, { viewer, send, open }) => {
  await send(request(USERS))
  const page = await open('/')
  await page.locator('.row').first().waitFor()
  await page.locator('#state.live').waitFor()
  await turn(page, true)
  while (viewer.stats().clients > 0) await new Promise((resolve) => setImmediate(resolve))
  await send(request(PRODUCTS))
  await turn(page, false)
  await page.waitForFunction(() => document.querySelectorAll('.row').length === 2)
  t.equal(viewer.stats().clients, 1)
})

inBrowser('a tab that is opened in the background holds no connection until it is shown', async (t, { viewer, open, url }) => {
  const front = await open('/routes')
  const page = await front.context().newPage()
  await page.addInitScript(() => Object.defineProperty(document, 'hidden', { configurable: true, get: () => true }))
  await answeredAndPainted(page, /\/api\/exceptions$/, () => page.goto(`${url}/exceptions`))
  t.equal(viewer.stats().clients, 1)
  await turn(page, false)
  await page.locator('#state.live').waitFor()
  t.equal(viewer.stats().clients, 2)
})
