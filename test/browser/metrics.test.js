'use strict'

// The Metrics page: its charts, their tables, and the traces that they lead to.

const { problemsOf } = require('./support/axe')
const { boxOf, inBrowser, shows, texts } = require('./support/browser')
const { STEP_MS, gauge, histogram, sendMetrics, shopMetrics, sum } = require('./support/otlp-metrics')
const traces = require('./support/otlp-traces')

const { HOSTILE } = traces
const ORDERS = { method: 'POST', route: '/orders', path: () => '/orders', base: 40 }
const LOOKS = [['wide', 'light'], ['wide', 'dark'], ['narrow', 'light'], ['narrow', 'dark']]

/** Sends the metrics of a shop, with one exemplar whose trace the viewer has, and one whose trace it lacks. */
async function shop (send, url, options) {
  const made = traces.ids(41)
  const traceId = made.trace()
  await send(traces.request({ made, route: ORDERS, traceId, fail: false, slow: 1 }))
  const { rows: [{ id: spanId }] } = await (await fetch(`${url}/api/traces/${traceId}/rows`)).json()
  const endMs = Date.now()
  const exemplars = [{ at: endMs - 400_000, value: 0.2, traceId, spanId }, { at: endMs - 200_000, value: 0.09, traceId: made.trace(), spanId: made.span() }]
  await sendMetrics(url, shopMetrics({ endMs, exemplars, ...options }))
  return { traceId, spanId, endMs }
}

function figureOf (page, name) {
  return page.locator('figure', { has: page.locator('figcaption', { hasText: new RegExp(`^${name}`) }) }).first()
}

/** Scrolls to a figure, which is loaded and drawn then. */
async function drawn (page, name) {
  const figure = figureOf(page, name)
  await figure.scrollIntoViewIfNeeded()
  await figure.locator('canvas').waitFor()
  return figure
}

function legendOf (figure) {
  return figure.locator('.chart-legend li').evaluateAll((items) => items.map((item) => [...item.children].slice(1).map((each) => each.textContent).join(' ')))
}

/** The colours of a chart's pixels, most frequent first. */
function coloursOf (figure) {
  return figure.locator('canvas').evaluate((canvas) => {
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    const counts = new Map()
    for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) counts.set(`${data.slice(at, at + 3)}`, (counts.get(`${data.slice(at, at + 3)}`) ?? 0) + 1)
    return [...counts].sort(([, a], [, b]) => b - a).map(([colour]) => colour)
  })
}

inBrowser('without metrics the page says how to send some', async (t, { open }) => {
  const page = await open('/')
  await page.keyboard.press('5')
  await page.waitForURL(/\/metrics$/)
  await page.getByText('No metrics have arrived yet').waitFor()
  t.match(await page.locator('.nothing pre').textContent(), /\/v1\/metrics$/)
  t.equal(await page.locator('nav a[aria-current]').textContent(), 'Metrics')
})

inBrowser('routes, the runtime and instruments are drawn as they arrive, and nothing is requested from elsewhere', async (t, { send, open, url }) => {
  const page = await open('/metrics')
  const addresses = []
  page.on('request', (request) => addresses.push(request.url()))
  await page.getByText('No metrics have arrived yet').waitFor()
  await shop(send, url)
  await drawn(page, 'Memory')
  t.same(await texts(page, '.metrics section > h2'), ['Requests', 'Runtime', 'Instruments'])
  t.same((await texts(page, '.metrics .card h3')).slice(0, 8), ['Event loop delay', 'Event loop utilization', 'Garbage collection', 'Heap', 'CPU', 'Memory', 'http.server.request.duration', 'shop.orders'])
  await shows(t, () => legendOf(figureOf(page, 'Requests per second')), [/^POST \/orders [\d.]+\/s$/, /^GET \/orders\/:id\/invoice /, /^GET \/products /, /^failed 0\.\d+\/s$/])
  await shows(t, () => legendOf(figureOf(page, 'Event loop delay')), [/^p99 .*ms$/, /^p90 .*ms$/, /^p50 .*ms$/])
  await shows(t, () => legendOf(figureOf(page, 'CPU')), [/^Per second \d+ %$/], 'a counter of time is a share of the time')
  await shows(t, () => legendOf(figureOf(page, 'Memory')), [/MB$/])
  for (const name of ['Requests per second', 'Latency', 'Heap']) t.ok((await coloursOf(figureOf(page, name))).length > 3, `${name} is drawn`)
  const before = await legendOf(figureOf(page, 'Memory'))
  await sendMetrics(url, [gauge('process.memory.usage', 'By', [{ at: Date.now(), value: 5e8 }])])
  await page.getByText('500.0 MB').first().waitFor()
  t.not(before[0], 'Value 500.0 MB')
  t.ok(addresses.length > 5 && addresses.every((each) => each.startsWith(`${url}/api/`)), 'only its own API')
})

inBrowser('the tables say what the API says', async (t, { send, open, url }) => {
  const { endMs } = await shop(send, url)
  const { quantity, duration, number, percent } = await import('../../viewer/page/text.mjs')
  const interval = `from=${endMs - 1_190_000}&to=${endMs}` // otherwise the page and the test may ask in different slots of 10 s
  const page = await open(`/metrics?${interval}`)
  const overview = await (await fetch(`${url}/api/metrics/overview?${interval}`)).json()
  await page.locator('.k-route .link').first().waitFor()
  t.same(await page.locator('.metrics tbody tr').evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent))), overview.routes.map((each) =>
    [each.route, 'shop', `${number(each.rate)}/s`, each.errorShare > 0 ? percent(each.errorShare) : '–', duration(each.p50Ms), duration(each.p95Ms), duration(each.p99Ms), 'requests']))
  const cells = async (figure) => {
    await figure.locator('summary').click()
    await figure.locator('td').first().waitFor()
    return figure.locator('table').first().locator('tr').evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)))
  }
  const expected = (data, lines, format) => data.atMs.map((_, index) => lines.map((values) => values[index] === null ? '–' : format(values[index]))).filter((row) => row.some((value) => value !== '–')).reverse()
  const values = (rows) => rows.slice(1).map(([, ...rest]) => rest)
  const dataOf = async (name) => (await fetch(`${url}/api/metrics/data?name=${name}&${interval}`)).json()

  const duration9 = await dataOf('http.server.request.duration')
  const [series] = duration9.series
  const table = await cells(figureOf(page, 'http.server.request.duration'))
  t.same(table[0], ['Time', 'p50', 'p95', 'p99'])
  t.same(values(table), expected(duration9, [series.p50, series.p95, series.p99], (value) => quantity(value, 's')))
  t.ok(table.length > 100)
  const orders = await dataOf('shop.orders')
  t.same(values(await cells(figureOf(page, 'shop.orders'))), expected(orders, [orders.series[0].rate], (value) => `${number(value)}/s`))
  const depth = await dataOf('shop.queue.depth')
  t.same(values(await cells(figureOf(page, 'shop.queue.depth'))), expected(depth, [depth.series[0].value], number))
})

inBrowser('an exemplar is a dot that opens its trace, and a row of the table for the keyboard', async (t, { send, open, url }) => {
  const { traceId, spanId } = await shop(send, url)
  const page = await open('/metrics')
  const latency = figureOf(page, 'Latency')
  await latency.locator('.exemplars a').waitFor()
  t.equal(await latency.locator('.exemplars > *').count(), 2)
  t.match(await latency.locator('.exemplars span').getAttribute('title'), /^90\.0 ms at .*, its trace is not stored$/)
  await latency.locator('.exemplars a').click()
  await page.waitForURL(`${url}/traces/${traceId}?span=${spanId}`)
  await page.locator('.fall .row').first().waitFor()
  await page.goBack()
  await latency.locator('summary').focus()
  await page.keyboard.press('Enter')
  await latency.locator('td a').waitFor()
  t.same(await latency.locator('table').last().locator('td:nth-child(2)').evaluateAll((all) => all.map((each) => each.textContent)), ['200 ms', '90.0 ms'])
  t.equal(await latency.locator('td', { hasText: 'not stored' }).count(), 1)
  for (let nth = 0; nth < 2; nth++) await page.keyboard.press('Tab')
  t.equal(await page.evaluate(() => document.activeElement.textContent), traceId)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${url}/traces/${traceId}?span=${spanId}`)
})

inBrowser('a route, a service, attributes and statistics are chosen, and the address has the choice', async (t, { send, open, url }) => {
  await shop(send, url)
  await sendMetrics(url, [gauge('shop.queue.depth', '{job}', [{ at: Date.now(), value: 3 }])], 'stock')
  const page = await open('/metrics')
  await page.getByRole('button', { name: 'POST /orders' }).click()
  await page.getByRole('button', { name: 'Show all routes' }).waitFor()
  await shows(t, () => legendOf(figureOf(page, 'Requests per second')), [/^requests [\d.]+\/s$/, /^failed [\d.]+\/s$/])
  await shows(t, () => legendOf(figureOf(page, 'Latency')), [/^p50 /, /^p95 /, /^p99 /])
  t.equal(await page.evaluate(() => document.activeElement.textContent), 'POST /orders', 'the focus stays')
  await drawn(page, 'shop.orders')
  await page.getByLabel('Lines of shop.orders').selectOption('tenant')
  await page.getByText('initech').waitFor()
  await shows(t, () => legendOf(figureOf(page, 'shop.orders')), [/^initech /, /^globex /, /^acme /])
  await page.getByLabel('Lines of http.server.request.duration').selectOption('http.route')
  await figureOf(page, 'http.server').getByText('/orders/:id/invoice').waitFor()
  const noteOf = (name) => page.locator('.card', { has: figureOf(page, name) }).locator('.remark').textContent()
  for (const name of ['shop.orders', 'http.server.request.duration']) {
    const { series } = await (await fetch(`${url}/api/metrics/data?name=${name}`)).json()
    t.ok(series[0].total > 1)
    t.equal((await noteOf(name)).replace(/[^\d]/g, ''), String(Math.round(series[0].total)), `${name} has its total`)
  }
  t.equal(await page.getByLabel('Statistic of http.server.request.duration').inputValue(), 'p95', 'one percentile of each line')
  await page.getByLabel('Statistic of http.server.request.duration').selectOption('max')
  t.match(page.url(), /\/metrics\?route=POST\+%2Forders&of=shop&by\.shop\.orders=tenant&by\.http\.server\.request\.duration=http\.route&show\.http\.server\.request\.duration=max$/)
  await page.reload()
  await drawn(page, 'shop.orders')
  await page.getByText('initech').waitFor()
  await page.getByRole('button', { name: 'Show all routes' }).waitFor()
  await figureOf(page, 'http.server').getByText('/orders/:id/invoice').waitFor()
  t.equal(await page.getByLabel('Statistic of http.server.request.duration').inputValue(), 'max')
  await page.getByLabel('Search').fill('queue')
  await page.getByText(/^1 of 11 instruments/).waitFor()
  t.same(await texts(page, '.metrics section:not([hidden]) > h2'), ['Instruments'], 'what is found is at the top')
  await page.getByLabel('Search').fill('')
  await page.getByText(/^11 instruments/).waitFor()
  t.equal((await texts(page, '.metrics section:not([hidden]) > h2')).length, 3)
  await page.getByLabel('Service').selectOption('stock')
  await page.waitForURL(/service=stock/)
  await page.getByText('1 of 11 instruments').waitFor()
  t.same(await texts(page, '.metrics section:not([hidden]) > h2'), ['Instruments'], 'a service without requests and without a runtime')
  t.same(await texts(page, '.card h3'), ['shop.queue.depth'])
})

inBrowser('instruments are searched, and many of them are shown in parts', async (t, { open, url }) => {
  await sendMetrics(url, Array.from({ length: 60 }, (_, index) => gauge(`shop.number.${index}`, '1', [{ at: Date.now(), value: index }], index === 7 ? 'The seventh of all' : undefined)))
  const page = await open('/metrics')
  await page.getByText('60 instruments').waitFor()
  t.equal(await page.locator('.card').count(), 24)
  await page.getByRole('button', { name: 'Show 24 more of 36' }).click()
  t.equal(await page.locator('.card').count(), 48)
  await page.getByRole('region', { name: 'Metrics', exact: true }).focus()
  await page.keyboard.press('/')
  await page.keyboard.type('SEVENTH')
  await page.getByText('1 of 60 instruments').waitFor()
  t.same(await texts(page, '.card h3'), ['shop.number.7'])
  t.match(page.url(), /q=SEVENTH/)
  await (await drawn(page, 'shop.number.7')).getByText('Value').waitFor()
})

inBrowser('instruments of the same name have their scopes in their titles', async (t, { open, url }) => {
  const metrics = [gauge('queue.depth', '{job}', [{ at: Date.now(), value: 3 }])]
  await sendMetrics(url, [...metrics, gauge('queue.age', 's', [{ at: Date.now(), value: 3 }])], 'shop', 'mail')
  const page = await open('/metrics')
  await page.getByText('queue.depth', { exact: true }).waitFor()
  await sendMetrics(url, metrics, 'shop', 'print')
  await page.getByText('queue.depth · print').waitFor()
  t.same((await texts(page, '.card h3')).sort(), ['queue.age', 'queue.depth · mail', 'queue.depth · print'])
})

inBrowser('instruments that differ only in unit or kind have cards of their own, whose titles differ', async (t, { open, url }) => {
  const at = Date.now()
  await sendMetrics(url, [gauge('load', 's', [{ at, value: 7 }]), gauge('load', '', [{ at, value: 3 }]), sum('load', 's', [{ at, value: 50 }]), gauge('age', 's', [{ at, value: 9 }])], 'shop', '')
  const page = await open('/')
  const asked = new Set()
  page.on('request', (request) => request.url().includes('/metrics/data') && asked.add(new URL(request.url()).search))
  await page.goto(`${url}/metrics`)
  const titles = ['age', 'load · no unit', 'load · s · counter', 'load · s · gauge']
  await shows(t, async () => (await texts(page, '.card h3')).sort(), titles)
  for (const title of titles) await drawn(page, title)
  await shows(t, () => legendOf(figureOf(page, 'load · s · gauge')), ['Value 7.00 s'])
  await shows(t, () => legendOf(figureOf(page, 'load · s · counter')), [/^Per second \d+ %$/])
  t.same([...asked].sort(), ['age&scope=&unit=s&kind=gauge', 'load&scope=&unit=&kind=gauge', 'load&scope=&unit=s&kind=counter', 'load&scope=&unit=s&kind=gauge'].map((each) => `?name=${each}`))
})

inBrowser('in a chart the arrow keys move through time, in all charts, and announce the values', async (t, { send, open, url }) => {
  const { endMs } = await shop(send, url)
  const interval = `from=${endMs - 1_190_000}&to=${endMs}`
  const page = await open(`/metrics?${interval}`)
  await drawn(page, 'Garbage collection')
  const heap = await drawn(page, 'Heap')
  const plot = heap.getByRole('slider', { name: 'Heap' })
  await plot.focus()
  t.match(await plot.getAttribute('aria-valuetext'), /^Last, Value .* MB$/)
  const { atMs, series: [{ value }] } = await (await fetch(`${url}/api/metrics/data?name=v8js.memory.heap.used&${interval}`)).json()
  const last = value.findLastIndex((each) => each !== null)
  const { clock, quantity } = await import('../../viewer/page/text.mjs')
  const said = (index) => `${clock(atMs[index]).slice(0, 8)}, Value ${quantity(value[index], 'By')}`
  await page.keyboard.press('End')
  t.equal(await plot.getAttribute('aria-valuetext'), said(last))
  await page.keyboard.press('ArrowLeft')
  t.equal(await plot.getAttribute('aria-valuetext'), said(last - 1))
  t.equal(await figureOf(page, 'Garbage collection').locator('figcaption .quiet').textContent(), clock(atMs[last - 1]).slice(0, 8), 'the charts in view follow')
  await page.keyboard.press('Home')
  t.equal(await plot.getAttribute('aria-valuetext'), said(value.findIndex((each) => each !== null)))
  await page.keyboard.press('Escape')
  t.match(await plot.getAttribute('aria-valuetext'), /^Last/)
  t.equal(await page.evaluate(() => window.location.pathname), '/metrics')
})

inBrowser('an interval that is drawn with the mouse becomes the interval of the page', async (t, { send, open, url }) => {
  await shop(send, url)
  const page = await open('/metrics')
  const box = await boxOf((await drawn(page, 'Requests per second')).locator('.u-over'))
  await page.mouse.move(box.x + box.width * 0.25, box.y + 40)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.75, box.y + 50, { steps: 4 })
  await page.mouse.up()
  await page.waitForURL(/from=\d+&to=\d+/)
  const params = new URL(page.url()).searchParams
  const [from, to] = ['from', 'to'].map((name) => Number(params.get(name)))
  t.ok(to - from > 500_000 && to - from < 700_000, `half of twenty minutes: ${to - from}`)
  await page.getByRole('button', { name: /^Time interval: \d/ }).waitFor()
  await (await drawn(page, 'shop.queue.depth')).locator('summary').click()
  await figureOf(page, 'shop.queue.depth').locator('td').first().waitFor()
  const count = await figureOf(page, 'shop.queue.depth').locator('tbody tr').count()
  t.ok(Math.abs(count - (to - from) / STEP_MS) <= 2, `${count} rows`)
  await page.getByRole('button', { name: /^Time interval/ }).click()
  await page.getByRole('button', { name: 'All time' }).click()
  await page.waitForURL(/\/metrics$/)
})

inBrowser('the page stays where it is scrolled to, with the focus, when new metrics arrive', async (t, { send, open, url }) => {
  await shop(send, url)
  const page = await open('/metrics')
  await page.getByRole('button', { name: 'POST /orders' }).click()
  const region = page.getByRole('region', { name: 'Metrics', exact: true })
  await region.evaluate((element) => { element.scrollTop = 900 })
  await page.waitForFunction(cardsAreDrawn) // each grows when it is
  const rate = () => page.locator('.metrics tbody td.k-rate').first().textContent()
  const [before, top] = [await rate(), await region.evaluate((element) => element.scrollTop)]
  const attributes = { 'http.request.method': 'POST', 'http.route': '/orders', 'http.response.status_code': 200 }
  await sendMetrics(url, [histogram('http.server.request.duration', 's', [{ at: Date.now(), attributes, counts: [0, 90_000, 0, 0, 0, 0, 0, 0, 0, 0] }])])
  await page.waitForFunction((text) => document.querySelector('.metrics tbody td.k-rate').textContent !== text, before)
  t.ok(top > 500)
  t.equal(await region.evaluate((element) => element.scrollTop), top)
  t.equal(await page.evaluate(() => document.activeElement.textContent), 'POST /orders')
})

// In the browser: the cards that are in view, or nearly so.
function cardsAreDrawn () {
  const { top, bottom } = document.querySelector('.metrics').getBoundingClientRect()
  return [...document.querySelectorAll('.card')].every((card) => {
    const at = card.getBoundingClientRect()
    return at.bottom < top - 200 || at.top > bottom + 200 || card.querySelector('.chart-legend li') !== null
  })
}

inBrowser('charts follow the theme and the width of the window', async (t, { send, open, url }) => {
  await shop(send, url)
  const page = await open('/metrics')
  const heap = figureOf(page, 'Heap')
  await heap.locator('canvas').waitFor()
  const light = await coloursOf(heap)
  await page.getByRole('button', { name: 'Switch to dark' }).click()
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark')
  const dark = await coloursOf(heap)
  t.not(dark[0], light[0], 'its grid')
  t.ok(dark.includes('116,143,252') && light.includes('76,110,245'), 'its line has the colour of the style sheet')
  const width = () => heap.locator('canvas').evaluate((canvas) => canvas.clientWidth)
  const wide = await width()
  await page.setViewportSize({ width: 380, height: 720 })
  await page.waitForFunction(() => document.querySelector('.card canvas').clientWidth < 380)
  t.ok(await width() < wide)
  await shows(t, () => page.evaluate(() => document.getElementById('main').scrollWidth), 380)
})

inBrowser('a chart draws fifty of two thousand series', async (t, { open, url }) => {
  const at = Date.now()
  for (let part = 0; part < 4; part++) await sendMetrics(url, [sum('shop.calls', '{call}', Array.from({ length: 500 }, (_, index) => [0, 1].map((step) => ({ at: at - step * STEP_MS, value: index, attributes: { customer: `customer ${part * 500 + index}`, all: 'one' } }))).flat())])
  const page = await open('/metrics?by.shop.calls=customer')
  const figure = figureOf(page, 'shop.calls')
  await figure.locator('.chart-legend li').nth(49).waitFor()
  t.equal(await figure.locator('.chart-legend li').count(), 50)
  const { series } = await (await fetch(`${url}/api/metrics`)).json()
  await page.getByText(`${series - 50 > 999 ? `${Math.floor((series - 50) / 1000)}\u202f${String((series - 50) % 1000).padStart(3, '0')}` : series - 50} more lines are not shown.`).waitFor()
  t.ok(series > 1900)
  await figure.locator('summary').click()
  await figure.locator('td').first().waitFor()
  t.equal(await figure.locator('thead th').count(), 51)
})

inBrowser('hostile names, values, units and services are shown as text', async (t, { open, url }) => {
  const at = Date.now()
  const texts = Object.values(HOSTILE)
  for (const each of texts) {
    const attributes = { [each]: each, 'http.route': each, 'http.request.method': 'GET' }
    await sendMetrics(url, [gauge(`name ${each}`, each, [{ at, value: 5, attributes }], each), histogram('http.server.request.duration', 's', [{ at, attributes, counts: [1, 2, 1, 0, 0, 0, 0, 0, 0, 0], exemplars: [{ at: at - 1, value: 0.01, traceId: 'a'.repeat(32), spanId: 'b'.repeat(16) }] }])], each)
  }
  for (const size of ['wide', 'narrow']) {
    const page = await open('/metrics', { size })
    await page.locator('.card').first().waitFor()
    for (const select of await page.locator('select[aria-label^="Lines"]').all()) await select.selectOption({ index: 1 })
    await drawn(page, 'name <script>')
    for (const summary of await page.locator('.chart-table summary').all()) await summary.click()
    await figureOf(page, 'name <script>').locator('td').first().waitFor()
    const content = await page.evaluate(() => document.getElementById('main').textContent)
    t.match(content, 'user⟨U+202E⟩txt.exe')
    // eslint-disable-next-line no-control-regex
    t.notMatch(content, /[\u0000-\u0008\u001b\u202e\u2028]/)
    t.equal(await page.locator('#main script, #main img, #main svg:not(.icon)').count(), 0)
    t.equal(await page.evaluate(() => window.hacked), undefined)
    t.ok(await page.evaluate(() => document.getElementById('main').scrollWidth <= document.getElementById('main').clientWidth), `${size}: nothing is cut off`)
  }
})

for (const [size, colorScheme] of LOOKS) {
  inBrowser(`axe finds nothing on the Metrics page, and nothing is cut off: ${size}, ${colorScheme}`, async (t, { send, open, url }) => {
    await shop(send, url)
    const page = await open('/metrics', { size, colorScheme })
    await figureOf(page, 'Requests per second').locator('canvas').waitFor()
    t.same(await problemsOf(page), [], 'all routes')
    await page.getByRole('button', { name: 'POST /orders' }).click()
    await page.getByLabel('Lines of shop.orders').selectOption('tenant')
    for (const name of ['Latency', 'shop.orders', 'CPU']) {
      await figureOf(page, name).locator('summary').click()
      await figureOf(page, name).locator('td').first().waitFor()
    }
    t.same(await problemsOf(page), [], 'with tables')
    t.ok(await page.evaluate(() => ['documentElement', 'body'].every((name) => document[name].scrollWidth <= document[name].clientWidth) && document.getElementById('main').scrollWidth <= document.getElementById('main').clientWidth))
    t.ok(await page.locator('#tools button').last().evaluate((each) => each.getBoundingClientRect().right <= window.innerWidth), 'nor are the buttons of the bar')
  })
}
