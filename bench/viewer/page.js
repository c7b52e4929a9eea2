'use strict'

// node bench/viewer/page.js: measures the page in Chromium. Writes bench/results/viewer-page.json.
//   first paint     of a trace of 10,000 spans: from navigation to the first rows on the screen, and until all rows can be reached
//   empty page      the same for a page with one static row, no style and no script: the part that no page can avoid
//   scrolling       from top to bottom: long tasks (over 50 ms) and late frames
//   main thread     the same two in CPU time of the page's main thread, which other processes hardly affect
//   metrics         of 2,000 series, while new values arrive: scrolling, and the cursor over a chart of 50 lines
//   lines           100,000 log lines, while new ones arrive: scrolling the Logs page
//   seen            from the response of a request to its row on the page, with an app under `light-trace app.js`

const { readFileSync } = require('node:fs')
const http = require('node:http')
const path = require('node:path')
const { chromium: playwright } = require('playwright-core')
const { chromium } = require('../../scripts/viewer/chromium')
const { start } = require('../../scripts/run')
const { describeMachine, describeCommit, watchSteal } = require('../run/machine')
const { writeResults } = require('../report/results-file')
const { FIXED_HEADERS } = require('../../viewer/http/page')
const traces = require('../../test/browser/support/otlp-traces')
const { sendMetrics, shopMetrics } = require('../../test/browser/support/otlp-metrics')
const { sendSeries, sendLines, INSTRUMENTS, SERIES, LINES, MAX_BYTES } = require('./load')

const ROOT = path.join(__dirname, '..', '..')
const EMPTY_PAGE = '<!doctype html><html lang="en"><title>light-trace</title><link rel="icon" href="data:,"><div class="fall" aria-busy="false"><div class="row">GET /report</div></div>'

const SPANS = 10_000
const PAINTS = 15
const SCROLLS = 5
const LOADS = 8
const SLOTS = 30 // of each series at the start
const NEW_LINES = 20
const SENT_EVERY_MS = 1000
const REQUESTS = 60
const BETWEEN_MS = 150
const START_MS = 20_000

module.exports = { measurePage }

if (require.main === module) {
  measurePage().then((result) => {
    console.log(`first paint of ${SPANS} spans: median ${result.firstPaintMs.median.toFixed(0)} ms, worst ${result.firstPaintMs.max.toFixed(0)} ms; all rows after ${result.allRowsMs.median.toFixed(0)} ms; an empty page: median ${result.emptyPaintMs.median.toFixed(0)} ms`)
    console.log(`scrolling: ${result.scrolling.longTasks} long tasks in ${result.scrolling.frames} frames, p95 of a frame ${result.scrolling.frameMs.p95.toFixed(0)} ms, longest frame ${result.scrolling.longestFrameMs.toFixed(0)} ms`)
    console.log(`main thread: ${result.mainThread.loadMs.median.toFixed(0)} ms of CPU to load, ${result.mainThread.scrollFrameMs.median.toFixed(0)} ms for a frame while scrolling, at most ${result.mainThread.scrollFrameMs.max.toFixed(0)} ms`)
    console.log(`metrics of ${result.metrics.series} series: ${result.metrics.longTasks} long tasks in ${result.metrics.frameMs.count} frames, p95 of a frame ${result.metrics.frameMs.p95.toFixed(0)} ms, longest ${result.metrics.frameMs.max.toFixed(0)} ms; ${result.metrics.cpuFrameMs.p95.toFixed(0)} ms of CPU`)
    console.log(`${result.lines.lines} log lines: ${result.lines.longTasks} long tasks in ${result.lines.frameMs.count} frames, p95 of a frame ${result.lines.frameMs.p95.toFixed(0)} ms, longest ${result.lines.frameMs.max.toFixed(0)} ms; ${result.lines.cpuFrameMs.p95.toFixed(0)} ms of CPU`)
    console.log(`from response to visible row: median ${result.seenMs.median.toFixed(0)} ms, p95 ${result.seenMs.p95.toFixed(0)} ms, worst ${result.seenMs.max.toFixed(0)} ms in ${result.seenMs.count} requests`)
    console.error(`wrote ${writeResults('viewer-page', result)}`)
  }).catch((error) => {
    console.error(error)
    process.exitCode = 1
  })
}

async function measurePage () {
  const machine = describeMachine()
  const steal = watchSteal()
  const browser = await playwright.launch({ executablePath: await chromium(), args: ['--no-sandbox'] })
  const viewer = start(process.execPath, ['viewer/cli.js', '--port', '0', 'bench/viewer/app.js'], { cwd: ROOT, env: { ...process.env, PORT: '0' } })
  try {
    const [, url] = await output(viewer, /(http:\/\/[\w.:]+)\/?\s/)
    const [, app] = await output(viewer, /listens (http:\S+)/)
    const seenMs = await measureSeen(browser, url, app)
    const traceId = await sendBigTrace(url)
    const { firstPaintMs, allRowsMs, emptyPaintMs } = await measureFirstPaint(browser, `${url}/traces/${traceId}`)
    const scrolling = await measureScrolling(browser, `${url}/traces/${traceId}`)
    const mainThread = await measureMainThread(browser, `${url}/traces/${traceId}`)
    const metrics = await measureMetrics(browser)
    const lines = await measureLines(browser)
    return { date: new Date().toISOString(), ...describeCommit(ROOT), machine, realTime: isRealTime(), steal: steal(), node: process.version, chromium: browser.version(), spans: SPANS, firstPaintMs, allRowsMs, emptyPaintMs, scrolling, mainThread, metrics, lines, seenMs }
  } finally {
    await browser.close()
    await viewer.stop()
  }
}

// For a busy machine: chrt -r 1 node bench/viewer/page.js. The results mention it.
function isRealTime () {
  try {
    return /^policy\s*:\s*[12]$/m.test(readFileSync('/proc/self/sched', 'utf8'))
  } catch {
    return false
  }
}

async function output (child, format) {
  for (const deadline = Date.now() + START_MS; Date.now() < deadline;) {
    const found = format.exec(child.output())
    if (found !== null) return found
    if (!child.alive()) break
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`the viewer did not print ${format}:\n${child.output()}`)
}

async function sendBigTrace (url) {
  const { traceId, body } = traces.bigTrace({ spans: SPANS })
  const answer = await fetch(`${url}/v1/traces`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(`the viewer responded with ${answer.status}`)
  return traceId
}

// Measures both pages in turn, so that other activity on the machine affects both.
async function measureFirstPaint (browser, address) {
  const empty = await serveEmptyPage()
  const paints = []
  for (let nth = 0; nth <= PAINTS; nth++) paints.push({ trace: await paint(browser, address, SPANS + 1), empty: await paint(browser, empty.address) })
  empty.close()
  paints.shift() // the first one starts the browser's processes
  return {
    firstPaintMs: spread(paints.map(({ trace }) => trace.first)),
    allRowsMs: spread(paints.map(({ trace }) => trace.all)),
    emptyPaintMs: spread(paints.map((each) => each.empty.first))
  }
}

// Sends the headers of the viewer's pages: one of them makes Chromium use another process.
async function serveEmptyPage () {
  const server = http.createServer((request, response) => response.writeHead(200, FIXED_HEADERS).end(EMPTY_PAGE))
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { address: `http://localhost:${server.address().port}/`, close: () => server.close().closeAllConnections() }
}

// Each run has its own window and process, and nothing is cached. The clock starts with the navigation. It stops with the frame after the
// first rows, and again with the frame after all rows can be reached. The page reports that itself. Until then it is not queried, since
// playwright's queries run on the page's main thread.
async function paint (browser, address, rowCount) {
  const page = await browser.newPage()
  const debug = await page.context().newCDPSession(page)
  await debug.send('Runtime.enable')
  await debug.send('Runtime.addBinding', { name: 'measured' })
  await page.addInitScript(() => {
    const times = {}
    const afterFrame = (name) => window.requestAnimationFrame(() => window.setTimeout(() => {
      times[name] ??= window.performance.now()
      if (name === 'all') window.measured(JSON.stringify(times))
    }))
    const look = new window.MutationObserver(() => {
      if (document.querySelector('.fall .row') === null) return
      afterFrame('first')
      if (document.querySelector('.fall[aria-busy=false]') === null) return
      look.disconnect()
      afterFrame('all')
    })
    look.observe(document, { attributes: true, childList: true, subtree: true })
  })
  const measured = new Promise((resolve) => debug.once('Runtime.bindingCalled', resolve))
  await page.goto(address)
  const { payload } = await measured
  const rows = rowCount && Number(await page.locator('.fall').getAttribute('aria-rowcount'))
  if (rows !== rowCount) throw new Error(`the page has ${rows} rows`)
  await page.close()
  return JSON.parse(payload)
}

async function measureScrolling (browser, address) {
  const page = await browser.newPage()
  await page.goto(address)
  await page.locator('.fall[aria-busy=false] .row').nth(10).waitFor()
  const runs = []
  for (let nth = 0; nth < SCROLLS; nth++) runs.push(await page.evaluate(scroll))
  await page.close()
  return {
    longTasks: runs.reduce((sum, { longTasks }) => sum + longTasks, 0),
    longestTaskMs: Math.max(...runs.map(({ longest }) => longest)),
    frames: runs.reduce((sum, { frames }) => sum + frames.length, 0),
    frameMs: spread(runs.flatMap(({ frames }) => frames)),
    longestFrameMs: Math.max(...runs.flatMap(({ frames }) => frames))
  }
}

async function measureMainThread (browser, address) {
  const loads = []
  const frames = []
  for (let nth = 0; nth <= LOADS; nth++) {
    const page = await browser.newPage()
    const spent = await mainThreadOf(page)
    await page.goto(address)
    await page.evaluate(() => new Promise((resolve) => {
      const look = () => document.querySelector('.fall[aria-busy=false] .row') === null ? window.requestAnimationFrame(look) : window.setTimeout(resolve)
      look()
    }))
    loads.push(await spent())
    const steps = nth === LOADS ? 100 : 0
    for (let step = 1; step <= steps; step++) {
      const before = await spent()
      await page.evaluate(scrollTo, { selector: '.fall', part: step / 100 })
      frames.push(await spent() - before)
    }
    await page.close()
  }
  return { loadMs: spread(loads.slice(1)), scrollFrameMs: spread(frames) }
}

// Runs in the page: 120 steps of a few screens each, one per frame. With `over`, the cursor also moves over the first such element in view.
async function scroll ({ selector = '.fall', over } = {}) {
  const grid = document.querySelector(selector)
  const tasks = []
  const observer = new window.PerformanceObserver((list) => tasks.push(...list.getEntries()))
  observer.observe({ type: 'longtask' })
  const frames = []
  let last = await new Promise(window.requestAnimationFrame)
  for (let step = 0; step <= 120; step++) {
    grid.scrollTop = grid.scrollHeight * step / 120
    const hovered = over && [...document.querySelectorAll(over)].find((each) => each.getBoundingClientRect().top > 0)
    if (hovered) {
      const { left, top, width, height } = hovered.getBoundingClientRect()
      hovered.dispatchEvent(new window.MouseEvent('mousemove', { bubbles: true, clientX: left + width * step / 121, clientY: top + height * (step % 10) / 10 }))
    }
    const now = await new Promise(window.requestAnimationFrame)
    frames.push(now - last)
    last = now
  }
  await new Promise((resolve) => window.setTimeout(resolve, 100))
  tasks.push(...observer.takeRecords())
  observer.disconnect()
  return { frames, longTasks: tasks.length, longest: Math.max(0, ...tasks.map(({ duration }) => duration)) }
}

// Returns a function that returns the milliseconds of CPU that the page's main thread has used.
async function mainThreadOf (page) {
  const debug = await page.context().newCDPSession(page)
  await debug.send('Performance.enable', { timeDomain: 'threadTicks' })
  return async () => (await debug.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration').value * 1000
}

// Runs in the page.
async function scrollTo ({ selector, part }) {
  const grid = document.querySelector(selector)
  grid.scrollTop = grid.scrollHeight * part
  await new Promise(window.requestAnimationFrame)
  await new Promise((resolve) => window.setTimeout(resolve))
}

// Instruments of 100 series each, of which a chart shows 50. New values arrive each second, so the page loads all the time.
function measureMetrics (browser) {
  return withViewer([], async (url) => {
    await sendSeries(url, SLOTS)
    await sendMetrics(url, shopMetrics())
    const { series } = await (await fetch(`${url}/api/metrics`)).json()
    const page = await browser.newPage()
    await page.goto(`${url}/metrics?${INSTRUMENTS.map((name) => `by.${name}=nth`).join('&')}`)
    await page.locator('.card canvas').first().waitFor()
    const figures = await whileArriving(() => sendSeries(url, 1), () => measureFrames(page, '.metrics', '.metrics .u-over'))
    const drawn = await page.evaluate(() => Math.max(...[...document.querySelectorAll('.chart-legend')].map((each) => each.children.length)))
    if (series < SERIES || drawn !== 50) throw new Error(`the viewer has ${series} series, and the page ${drawn} lines in a chart`)
    return { series: SERIES, ...figures }
  })
}

// The page shows the newest lines, and replaces some each second.
function measureLines (browser) {
  return withViewer(['--max-bytes', MAX_BYTES], async (url) => {
    await sendLines(url)
    const { lines: { held } } = await (await fetch(`${url}/api/stats`)).json()
    if (held !== LINES) throw new Error(`the viewer has ${held} lines`)
    const page = await browser.newPage()
    await page.goto(`${url}/logs`)
    const first = page.locator('.log-row').first()
    await first.waitFor()
    const before = await first.textContent()
    const figures = await whileArriving(() => sendLines(url, NEW_LINES), () => measureFrames(page, '.scroll[aria-label=Logs]'))
    if (await first.textContent() === before) throw new Error('the page did not show new lines')
    return { lines: LINES, ...figures }
  })
}

async function withViewer (args, measure) {
  const viewer = start(process.execPath, ['viewer/cli.js', '--port', '0', ...args], { cwd: ROOT })
  try {
    const [, url] = await output(viewer, /(http:\/\/[\w.:]+)\/?\s/)
    return await measure(url)
  } finally {
    await viewer.stop()
  }
}

async function whileArriving (send, measure) {
  const timer = setInterval(() => send().catch(() => {}), SENT_EVERY_MS)
  try {
    return await measure()
  } finally {
    clearInterval(timer)
  }
}

async function measureFrames (page, selector, over) {
  const spent = await mainThreadOf(page)
  const runs = []
  for (let nth = 0; nth < SCROLLS; nth++) runs.push(await page.evaluate(scroll, { selector, over }))
  const cpu = []
  for (let step = 1; step <= 100; step++) {
    const before = await spent()
    await page.evaluate(scrollTo, { selector, part: step / 100 })
    cpu.push(await spent() - before)
  }
  return { longTasks: runs.reduce((sum, { longTasks }) => sum + longTasks, 0), longestTaskMs: Math.max(...runs.map(({ longest }) => longest)), frameMs: spread(runs.flatMap(({ frames }) => frames)), cpuFrameMs: spread(cpu) }
}

// Both clocks are this machine's. The page records when a row with a new path appears.
async function measureSeen (browser, url, app) {
  const page = await browser.newPage()
  await page.goto(url)
  await page.locator('#state.live').waitFor()
  await page.evaluate(() => {
    window.seen = {}
    new window.MutationObserver(() => {
      for (const { textContent } of document.querySelectorAll('.row .path')) window.seen[textContent] ??= window.performance.timeOrigin + window.performance.now()
    }).observe(document.getElementById('main'), { childList: true, subtree: true })
  })
  const answered = {}
  for (let number = 0; number < REQUESTS; number++) {
    await (await fetch(`${app}/seen/${number}`)).text()
    answered[`/seen/${number}`] = performance.timeOrigin + performance.now()
    await new Promise((resolve) => setTimeout(resolve, BETWEEN_MS * (0.5 + Math.random())))
  }
  await page.waitForFunction((count) => Object.keys(window.seen).filter((path) => path.startsWith('/seen/')).length === count, REQUESTS)
  const seen = await page.evaluate(() => window.seen)
  await page.close()
  return spread(Object.entries(answered).map(([path, at]) => seen[path] - at))
}

function spread (values) {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]
  return { count: sorted.length, min: sorted[0], median: at(0.5), p95: at(0.95), max: sorted.at(-1) }
}
