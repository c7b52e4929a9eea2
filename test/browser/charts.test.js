'use strict'

// The page has only the parts of uPlot that its charts use (scripts/uplot-parts.js). They draw and answer as the whole of it does.

const { readFileSync } = require('node:fs')
const path = require('node:path')
const esbuild = require('esbuild')
const { lessOfUplot, PAGE } = require('../../scripts/viewer-page')
const { inBrowser } = require('./support/browser')

const DAY_MS = 24 * 3_600_000
const FROM_MS = 1_700_000_000_000
const CHARTS = [
  { forMs: 900_000, values: 60, lines: 2 },
  { forMs: 4 * DAY_MS, values: 100, lines: 1, bars: true },
  { forMs: 5000, values: 50, lines: 12 },
  { forMs: 400 * DAY_MS, values: 300, lines: 3, least: -8, missing: 0.2 },
  { forMs: 30 * 3_600_000, values: 720, lines: 4, missing: 0.2 },
  { forMs: 40 * 365 * DAY_MS, values: 40, lines: 1 },
  { forMs: 1000, values: 1, lines: 1, bars: true }
]

inBrowser('charts are the same with all of uPlot, also while they are used', async (t, { open }) => {
  const [whole, part] = await Promise.all([scriptOf([]), scriptOf([lessOfUplot])])
  t.ok(part.length < whole.length)
  const opened = await open('/')
  const [expected, found] = [await statesWith(opened, whole), await statesWith(opened, part)]
  t.ok(expected.length > CHARTS.length * 10)
  t.ok(new Set(expected).size > CHARTS.length * 5, 'they differ among themselves')
  t.same(found.map((state, at) => state === expected[at] ? 'same' : state), expected.map(() => 'same'))
})

inBrowser('the legend shows a last value only if it is of the last minute', async (t, { open }) => {
  const page = await pageWith(await open('/'), await scriptOf([lessOfUplot]))
  await page.evaluate((fromMs) => {
    const figure = globalThis.chart({ label: 'Heat' })
    document.getElementById('host').append(figure.element)
    const values = [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, null], [1, 2, 3, 4, null, null], [1, null, null, null, null, null]]
    figure.set({ fromMs, toMs: fromMs + 240_000, atMs: [0, 1, 2, 3, 4, 5].map((at) => fromMs + at * 40_000), lines: values.map((each, at) => ({ label: `line ${at}`, values: each })) })
  }, FROM_MS)
  const shown = () => [...document.querySelectorAll('.chart-legend .num')].map(({ textContent }) => textContent)
  await page.waitForFunction(() => [...document.querySelectorAll('.chart-legend .num')].filter(({ textContent }) => textContent !== '').length === 4)
  t.same(await page.evaluate(shown), ['6', '5', '–', '–'])
})

inBrowser('a value without neighbours is a point', async (t, { open }) => {
  const page = await pageWith(await open('/'), await scriptOf([lessOfUplot]))
  const redOf = (values) => page.evaluate(async ({ fromMs, values }) => {
    const figure = globalThis.chart({ label: 'Heat' })
    document.getElementById('host').replaceChildren(figure.element)
    figure.set({ fromMs, toMs: fromMs + 600_000, atMs: values.map((_, at) => fromMs + at * 40_000), lines: [{ label: 'all', values: values.map(() => 1) }, { label: 'some', values, colour: '--bad' }] })
    while (!figure.element.querySelector('canvas')) await new Promise(window.requestAnimationFrame)
    for (let i = 0; i < 2; i++) await new Promise(window.requestAnimationFrame)
    const canvas = figure.element.querySelector('canvas')
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    let red = 0
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && data[i] > data[i + 1] + 60 && data[i] > data[i + 2] + 60) red++
    return red
  }, { fromMs: FROM_MS, values })
  const none = Array(12).fill(null)
  const one = await redOf(none.with(3, 2))
  t.equal(await redOf(none), 0)
  t.ok(one > 4, `${one} pixels`)
  t.ok(Math.abs(await redOf(none.with(0, 2).with(6, 2)) - 2 * one) <= one, 'two that are too far from each other for a line')
  t.ok(await redOf(none.with(3, 2).with(5, 2)) > 10 * one, 'a line')
})

async function scriptOf (plugins) {
  const { outputFiles } = await esbuild.build({
    stdin: { contents: 'import { chart } from "./chart.mjs"; globalThis.chart = chart', resolveDir: path.join(__dirname, '..', '..', 'viewer', 'page') },
    bundle: true,
    write: false,
    format: 'esm',
    plugins
  })
  return outputFiles[0].text
}

async function pageWith (opened, script) {
  const page = await opened.context().newPage()
  const style = /<style>([^]*?)<\/style>/.exec(readFileSync(PAGE, 'utf8'))[1]
  await page.setContent(`<!doctype html><style>${style}</style><body style="display: block; overflow: auto"><div id="host"></div>`)
  await page.addScriptTag({ content: script, type: 'module' })
  return page
}

async function statesWith (opened, script) {
  return (await pageWith(opened, script)).evaluate(statesOf, { charts: CHARTS, fromMs: FROM_MS })
}

/** In the browser: draws each chart, moves over it, selects, resizes, and returns what is seen after each step. */
async function statesOf ({ charts, fromMs }) {
  const states = []
  let seed = 7
  const random = () => (seed = seed * 16_807 % 2_147_483_647) / 2_147_483_647
  const host = document.getElementById('host')
  const frames = () => new Promise((resolve) => window.requestAnimationFrame(() => window.requestAnimationFrame(() => setTimeout(resolve))))
  for (const { forMs, values, lines, bars, least = 0, missing = 0 } of charts) {
    const atMs = Array.from({ length: values }, (_, index) => fromMs + index * Math.floor(forMs / values))
    const data = () => ({
      fromMs,
      toMs: fromMs + forMs,
      atMs,
      lines: Array.from({ length: lines }, (_, nth) => ({ label: `line ${nth}`, bars, values: atMs.map(() => random() < missing ? null : least + random() * (nth + 1) * 10) })),
      dots: [{ atMs: fromMs + forMs / 3, value: 4, label: 'dot' }]
    })
    host.style.width = '700px'
    const figures = ['one', 'two'].map((label) => globalThis.chart({ label, group: 'both', onSelect: (...chosen) => states.push(`chosen ${chosen}`) }))
    host.replaceChildren(...figures.map(({ element }) => element))
    for (const figure of figures) figure.set(data())
    const seen = async () => {
      await frames()
      states.push(...figures.map(({ element }) => `${element.outerHTML} ${element.querySelector('canvas').toDataURL()}`))
    }
    while (!figures.every(({ element }) => element.querySelector('.exemplars > *'))) await frames()
    await seen()
    const over = figures[0].element.querySelector('.u-over')
    const mouse = (type, x, y, target = over) => {
      const { left, top } = over.getBoundingClientRect()
      target.dispatchEvent(new window.MouseEvent(type, { clientX: left + x, clientY: top + y, movementX: 1, bubbles: type !== 'mouseleave' }))
      return seen()
    }
    for (const [x, y] of [[50, 50], [200, 30], [333, 90], [over.clientWidth - 1, 5]]) await mouse('mousemove', x, y)
    await mouse('mousedown', 100, 20)
    await mouse('mousemove', 220, 40)
    await mouse('mouseup', 220, 40, document)
    await mouse('mousedown', 300, 20)
    await mouse('mousemove', 320, 40)
    await mouse('mouseleave', 320, -5)
    await mouse('mouseup', 320, -5, document)
    await mouse('dblclick', 200, 20)
    for (const [key, shiftKey] of [['ArrowLeft'], ['Home'], ['ArrowRight', true], ['ArrowRight', true], ['Enter'], ['End', true], ['ArrowLeft', true], ['Escape']]) {
      over.dispatchEvent(new window.KeyboardEvent('keydown', { key, shiftKey, bubbles: true }))
      await seen()
    }
    figures[0].set(data())
    await seen()
    host.style.width = '333px'
    while (figures.some(({ element }) => element.querySelector('canvas').clientWidth > 333)) await frames()
    await seen()
    window.dispatchEvent(new window.CustomEvent('dppxchange'))
    await seen()
    for (const figure of figures) figure.close()
  }
  return states
}
