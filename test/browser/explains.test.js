'use strict'

// The page explains what it shows: the line above a slow request, repeated calls, a blocked event loop, and what is red.

const { readFileSync } = require('node:fs')
const { join } = require('node:path')
const { problemsOf } = require('./support/axe')
const { inBrowser, styleOf, texts } = require('./support/browser')
const traces = require('./support/otlp-traces')

const HTTP = { 'http.request.method': 'GET', 'http.route': '/items', 'url.path': '/items', 'http.response.status_code': 200 }
const SLOW = { 'light_trace.time.idle': 0.31, 'light_trace.time.busy': 0.79, 'light_trace.time.gc': 0.105, 'light_trace.time.unscheduled': 0.035 }
const REPEATED = { 'light_trace.repeated.shape': 'SELECT items', 'light_trace.repeated.count': 12, 'light_trace.repeated.duration': 0.06 }
const BLOCKED = { id: 'f00dbabe00000001', role: 'culprit', duration: 0.612 }
const row = (page, name) => page.locator('.fall .row', { has: page.locator(`.label:text-is("${name}")`) })
const look = (page, name) => process.env.LIGHT_TRACE_LOOK && page.screenshot({ path: `${process.env.LIGHT_TRACE_LOOK}/${name}.png` })

function requestOf (seed, { ms = 1240, attributes = {}, calls = [], ...rest } = {}) {
  const made = traces.ids(seed)
  const [traceId, root] = [made.trace(), made.span()]
  const start = Date.now() - 5000
  const spans = [
    traces.span({ traceId, id: root, name: 'GET /items', kind: 'SERVER', start, ms, attributes: { ...HTTP, ...attributes }, ...rest }),
    ...calls.map((call, index) => traces.span({ traceId, id: made.span(), parent: root, name: 'SELECT items', kind: 'CLIENT', start: start + 5 + index * 7, ms: 5, ...call }))
  ]
  return { traceId, root, body: traces.otlp({ shop: spans }) }
}

function nPlus1 (seed = 201) {
  const call = (text) => ({ attributes: { 'db.system.name': 'postgresql', 'db.query.text': text } })
  return requestOf(seed, { ms: 120, attributes: REPEATED, calls: [call('SELECT id FROM items'), ...Array.from({ length: 12 }, () => call('SELECT name FROM items WHERE id = $1'))] })
}

function blocked (seed = 202, file = __filename) {
  const attributes = { 'code.function.name': 'search', 'code.file.path': file, 'code.line.number': 14, ...Object.fromEntries(Object.entries(BLOCKED).map(([name, value]) => [`light_trace.blocked_loop.${name}`, value])) }
  return requestOf(seed, { ms: 650, events: [{ name: 'light_trace.blocked_loop', at: Date.now() - 4900, attributes }] })
}

inBrowser('the line above a slow request has its legend on the page, in the words of the docs', async (t, { send, open }) => {
  const slow = requestOf(203, { attributes: SLOW })
  const fast = requestOf(204, { ms: 4 })
  await send(slow.body, fast.body)
  for (const size of ['wide', 'narrow']) {
    const page = await open(`/traces/${slow.traceId}`, { size })
    await page.locator('.waits').waitFor()
    const legend = page.locator('.waits-legend')
    t.ok(await legend.isVisible(), size)
    const docs = readFileSync(join(__dirname, '..', '..', 'docs', 'slow.md'), 'utf8')
    const entries = await legend.locator('[title]').evaluateAll((all) => all.map((each) => ({ name: each.childNodes[1].textContent, meaning: each.title })))
    t.same(entries.map(({ name }) => name), ['waiting', 'busy event loop', 'garbage collection', 'not running'])
    for (const { name, meaning } of entries) t.ok(docs.includes(name) && docs.includes(meaning), `${name}: ${meaning}`)
    for (const kind of [0, 1, 2, 3]) t.equal(await styleOf(legend.locator(`.w${kind}`), 'background-color'), await styleOf(page.locator(`.waits .w${kind}`), 'background-color'), `the colour of w${kind}`)
    await look(page, `slow-${size}`)
  }
  const page = await open(`/traces/${fast.traceId}`)
  await page.locator('.fall .row').waitFor()
  t.notOk(await page.locator('.waits-legend').isVisible(), 'no legend without a line')
})

inBrowser('repeated calls have one number, in the list, the trace and the panel, which says what to do', async (t, { send, open }) => {
  const { traceId, root, body } = nPlus1()
  await send(body)
  const page = await open('/')
  const flag = page.locator('.row .flag', { hasText: '12 × SELECT items' })
  await flag.waitFor()
  t.match(await flag.getAttribute('title'), /^12 calls in sequence: SELECT items; batching them could save up to 55\.0 ms$/)
  await look(page, 'list')
  await flag.click()
  await page.waitForURL(`**/traces/${traceId}?span=${root}`)
  const section = page.locator('details', { has: page.locator('h3:text-is("Repeated calls")') })
  await section.waitFor()
  const text = await section.textContent()
  t.match(text, /12 calls in sequence: SELECT items\.SELECT name FROM items WHERE id = \$1Load.*WHERE id = ANY\(\$1\).*DataLoader.*save up to 55\.0 ms of 120 ms/s)
  await look(page, 'repeats')
  t.equal(await page.locator('.trace-head .flag').textContent(), '12 × SELECT items')
  t.match(await texts(page, '.fall .row .name'), [/12 ×$/, /^≡postgresql SELECT items$/, /12 ×postgresql SELECT items/])
  await page.locator('.fall .row', { hasText: '12 ×' }).nth(1).click()
  await page.locator('.panel').getByText('12 similar calls').waitFor()
  t.match(await section.textContent(), /12 calls in sequence/, 'also in the panel of the folded calls')
  await page.locator('.panel').getByRole('button', { name: 'Close' }).click()
  await page.locator('.trace-head .flag').click()
  await section.waitFor()
})

inBrowser('"blocked the loop" leads to the line, from the list and from the trace', async (t, { send, open, url }) => {
  const { traceId, root, body } = blocked()
  await send(body)
  const page = await open('/')
  await page.locator('.row .flag', { hasText: 'blocked the loop' }).click()
  await page.waitForURL(`**/traces/${traceId}?span=${root}`)
  const place = page.locator('.panel .place')
  await place.waitFor()
  t.equal(await place.textContent(), `blocked the event loop for 612 ms at search (${__filename}:14)`)
  t.equal(await place.locator('a').getAttribute('href'), `vscode://file${__filename}:14`)
  await look(page, 'blocked')
  await page.goto(`${url}/traces/${traceId}`)
  await page.locator('.trace-head .flag', { hasText: 'blocked the loop' }).click()
  await place.waitFor()
  t.match(page.url(), `?span=${root}`)
  await page.keyboard.press('Escape')
  await page.locator('.panel').waitFor({ state: 'hidden' })
  await page.locator('.trace-head .flag').focus()
  await page.keyboard.press('Enter')
  await place.waitFor()
})

inBrowser('red means failed and nothing else', async (t, { send, open, url }) => {
  const exception = (at) => ({ name: 'exception', at, attributes: { 'exception.type': 'Conflict', 'exception.message': 'already there', 'exception.stacktrace': 'Conflict: already there\n    at add (/app/add.js:3:7)' } })
  const conflict = requestOf(205, { attributes: { ...SLOW, 'http.response.status_code': 409, price: 12.5, count: 7, big: true }, events: [exception(Date.now() - 4900)] })
  const odd = requestOf(206, { attributes: { 'http.response.status_code': 503 } })
  const failed = requestOf(207, { attributes: { 'http.response.status_code': 500 }, error: 'broken', events: [exception(Date.now() - 4900)] })
  await send(conflict.body, odd.body)
  for (const colorScheme of ['light', 'dark']) {
    const page = await open('/', { colorScheme })
    await page.locator('.row .why').waitFor()
    t.same(await redIn(page), [], 'the list')
    for (const { traceId } of [conflict, odd]) {
      await page.goto(`${url}/traces/${traceId}`)
      await page.locator('.fall .row').first().click()
      await page.locator('.panel h2').waitFor()
      t.same(await redIn(page), [], 'a trace')
    }
    await page.goto(`${url}/traces/${conflict.traceId}`)
    await page.locator('.fall .row').first().click()
    await page.locator('.exception').waitFor()
    await look(page, `conflict-${colorScheme}`)
    const ink = await styleOf(page.locator('body'))
    for (const type of ['int', 'double', 'bool']) t.equal(await styleOf(page.locator(`.v-${type} .value`).first()), ink, `${type}: only links have the colour of links`)
    await page.goto(`${url}/compare?a=${conflict.traceId}&b=${odd.traceId}`)
    await page.locator('.compare .row').first().waitFor()
    t.same(await redIn(page), [], 'a comparison')
  }
  await send(failed.body)
  const page = await open(`/traces/${failed.traceId}`)
  await page.locator('.fall .row').first().click()
  await page.locator('.exception').waitFor()
  t.ok((await redIn(page)).length >= 5, 'what failed is red')
})

// The classes of the visible elements that have a red text, background or border.
function redIn (page) {
  return page.evaluate(() => {
    const probe = document.createElement('i')
    const [bad, soft] = ['--bad', '--bad-soft'].map((name) => {
      probe.style.color = `var(${name})`
      document.body.append(probe)
      return window.getComputedStyle(probe).color
    })
    probe.remove()
    return [...document.querySelectorAll('#main *')].filter((element) => element.checkVisibility()).filter((element) => {
      const style = window.getComputedStyle(element)
      const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '')
      return (own && style.color === bad) || [bad, soft].includes(style.backgroundColor) || style.backgroundImage.includes(bad)
    }).map((element) => element.className)
  })
}

inBrowser('on a narrow page a failed row keeps its method and its reason', async (t, { send, open }) => {
  const failed = requestOf(208, { attributes: { 'http.response.status_code': 500, ...REPEATED }, error: 'The stock could not be read: connection refused' })
  const plain = requestOf(209, { attributes: { 'http.response.status_code': 500 }, error: 'The stock could not be read: connection refused' })
  await send(failed.body, plain.body, nPlus1(210).body)
  for (const colorScheme of ['light', 'dark']) {
    const page = await open('/', { size: 'narrow', colorScheme })
    await page.setViewportSize({ width: 380, height: 720 })
    await page.locator('.row.failed').nth(1).waitFor()
    for (const { hasMethod, hasReason, why, time, flags, what, textStart, timeEnd } of await page.locator('.row.failed').evaluateAll(placesIn)) {
      t.ok(hasMethod)
      t.ok(hasReason)
      t.ok(why.width > 60, `${why.width} pixels of the reason`)
      t.ok(textStart >= timeEnd, 'beside the time')
      t.ok(flags.width === 0 || why.x + why.width <= flags.x + 1, 'before the notes')
      t.ok(why.y >= time.y - 4 && what.width > 0, 'in the second line')
    }
    await look(page, `narrow-${colorScheme}`)
  }
})

// In the browser: where the parts of each row are.
function placesIn (rows) {
  return rows.map((row) => {
    const [why, time, flags, what] = ['.why', '.time', '.flags', '.what'].map((name) => row.querySelector(name).getBoundingClientRect().toJSON())
    const textIn = (name) => {
      const range = document.createRange()
      range.selectNodeContents(row.querySelector(name))
      return range.getBoundingClientRect()
    }
    const [hasMethod, hasReason] = ['.method', '.why'].map((name) => row.querySelector(name).checkVisibility())
    return { hasMethod, hasReason, why, time, flags, what, textStart: textIn('.why').left, timeEnd: textIn('.time').right }
  })
}

inBrowser('a trace that is not here has no buttons that do nothing', async (t, { send, open }) => {
  const { traceId, body } = requestOf(211)
  const page = await open(`/traces/${traceId}`, { expectErrors: true })
  await page.getByText('This trace is not here').waitFor()
  t.same(await page.locator('#main').locator('a, button, input, select').evaluateAll((all) => all.filter((each) => each.checkVisibility()).map((each) => each.textContent)), ['All requests'])
  for (const key of ['c', 'e', 'z', '/', 'ArrowDown']) await page.keyboard.press(key)
  await look(page, 'unknown')
  await send(body)
  await page.getByRole('button', { name: 'Copy as text' }).waitFor()
  await page.locator('.fall .row').waitFor()
})

inBrowser('find shows which match it is at, goes to the next and the previous one, and announces it', async (t, { send, open }) => {
  const { traceId, body } = nPlus1(212)
  await send(body)
  const page = await open(`/traces/${traceId}`)
  await page.locator('.fall .row').nth(2).waitFor()
  t.notOk(await page.getByRole('button', { name: /^Next match/ }).isVisible())
  await page.keyboard.press('/')
  await page.keyboard.type('select')
  const status = page.locator('.tools [role=status]')
  await status.getByText('1 of 13').waitFor()
  t.equal(await status.textContent(), '1 of 13 postgresql SELECT items', 'a screen reader also gets its name')
  for (const [key, at] of [['Enter', 2], ['Enter', 3], ['Shift+Enter', 2], ['Shift+Enter', 1], ['Shift+Enter', 13], ['Enter', 1]]) {
    await page.keyboard.press(key)
    await status.getByText(`${at} of 13`).waitFor()
  }
  t.equal(await page.evaluate(() => document.activeElement.type), 'search', 'the focus stays in the field')
  await page.getByRole('button', { name: /^Previous match/ }).click()
  await status.getByText('13 of 13').waitFor()
  await page.getByRole('button', { name: /^Next match/ }).click()
  await status.getByText('1 of 13').waitFor()
  await look(page, 'find')
  await row(page, 'GET /items').click()
  await status.getByText('13 found').waitFor()
  await page.locator('input[type=search]').fill('nothing has this')
  await status.getByText('no match').waitFor()
  t.notOk(await page.getByRole('button', { name: /^Next match/ }).isVisible())
  await page.locator('input[type=search]').fill('')
  t.equal(await status.textContent(), '')
})

inBrowser('axe finds no violation in the explanations', async (t, { send, open, url }) => {
  const [many, stopped, slow] = [nPlus1(213), blocked(214), requestOf(215, { attributes: { ...SLOW, 'http.response.status_code': 500 }, error: 'broken' })]
  await send(many.body, stopped.body, slow.body)
  for (const [size, colorScheme] of [['wide', 'light'], ['wide', 'dark'], ['narrow', 'light'], ['narrow', 'dark']]) {
    const page = await open('/', { size, colorScheme })
    await page.locator('.row .flag').first().waitFor()
    t.same(await problemsOf(page), [], `the list: ${size}, ${colorScheme}`)
    for (const { traceId, root } of [many, stopped, slow]) {
      await page.goto(`${url}/traces/${traceId}?span=${root}`)
      await page.locator('.panel h2').waitFor()
      await page.locator('input[type=search]').fill('items')
      await page.locator('.tools [role=status]').getByText(/ of /).waitFor()
      t.same(await problemsOf(page), [], `${size}, ${colorScheme}`)
      await look(page, `axe-${size}-${colorScheme}-${[many, stopped, slow].findIndex((each) => each.traceId === traceId)}`)
    }
  }
})
