// A chart of values over time, drawn by uPlot, with the same numbers in a table below it. Its colours are the CSS variables of page.css.
//
//   const figure = chart({ label: 'Latency', format: duration })
//   host.append(figure.element)
//   figure.set({ fromMs, toMs, atMs: [], lines: [{ label: 'p50', values: [null, 1.5] }], dots: [] })
//   figure.close() // when its view closes

import { h, scrolling, table } from './dom.mjs'
import { within } from './numbers.mjs'
import { clock, line as text, number, time, trimmed } from './text.mjs'

export const LINES_MAX = 50
const COLOURS = ['--hue-0', '--hue-2', '--hue-4', '--hue-3', '--hue-1', '--hue-6']
const DOTS_MAX = 60
const CELLS_MAX = 3000 // in a table: each cell is an element
const GAP_MS = 150_000 // many applications send their metrics once a minute, so a shorter gap is no gap
const NEAR_PX = 24
const LAST_MS = 60_000 // an older value is not shown as the last
const NAMED_MAX = 8 // with more lines, the legend scrolls, and the cursor names the nearest
const FONT = '11px system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif'

/**
 * @param {object} options
 * @param {string} options.label what the chart shows
 * @param {string | Node} [options.caption] above the chart; the label if it is left out
 * @param {(value: number) => string} [options.format] of a value, for the axis, the table and the cursor; `set` may pass another one
 * @param {string} [options.group] charts of a group move their cursors together
 * @param {(fromMs: number, toMs: number) => void} [options.onSelect] an interval was chosen with the mouse, or with Shift, the arrow keys and Enter
 * @param {number} [options.height]
 */
export function chart ({ label, caption = label, format = number, group, onSelect, height = 150 }) {
  const now = h('span.quiet')
  const legend = h('ul.chart-legend')
  const plot = h('div.plot', { style: { height: `${height}px` } })
  const links = h('div.exemplars')
  const box = scrolling(`${label}: table`)
  const details = h('details.chart-table', { ontoggle: fillTable }, h('summary', 'Table'), box)
  const element = h('figure.chart', h('figcaption', caption, now), plot, legend, details)
  let data = { atMs: [], lines: [], dots: [] }
  let at = [] // the times for which there is a value
  let many
  let made // the uPlot
  let kind // the lines that it was made for: with others it is made anew
  let figures = [] // the elements that show the values at the cursor
  let filled // the data that the table shows
  let closed = false
  let width = 0
  let visible = true
  let nearest = null // the line at the cursor, of many
  let anchor = null // where a choice by keyboard began
  const observer = new ResizeObserver((entries) => fit(entries.at(-1).contentRect.width))
  observer.observe(plot)
  const viewObserver = new IntersectionObserver((entries) => { visible = entries.at(-1).isIntersecting })
  viewObserver.observe(plot)
  charts.add(redraw)

  return { element, set, close }

  /** @param {{ fromMs, toMs, atMs: number[], format?, lines: { label, values, colour?, bars? }[], dots?: { atMs, value, label, href? }[] }} next */
  function set (next) {
    format = next.format ?? format
    // Of too many dots, those with the highest values are shown.
    data = { ...next, lines: next.lines.slice(0, LINES_MAX), dots: (next.dots ?? []).toSorted((a, b) => b.value - a.value).slice(0, DOTS_MAX) }
    many = data.lines.length > NAMED_MAX
    at = [...data.atMs.keys()].filter((index) => data.lines.some(({ values }) => values[index] != null))
    if (made === undefined || kind !== kindOf(data)) make()
    else {
      made.setData(columns())
      showValues(made)
    }
    fillTable()
  }

  function close () {
    closed = true
    observer.disconnect()
    viewObserver.disconnect()
    charts.delete(redraw)
    made?.destroy()
  }

  function fit (next) {
    if (next === 0) return
    width = next
    if (made === undefined) make()
    else made.setSize({ width, height })
  }

  function redraw () {
    made?.redraw(false)
  }

  function columns () {
    return [data.atMs, ...data.lines.map(({ values }) => values)]
  }

  async function make () {
    // Loaded with the first chart, since its tables of steps take milliseconds.
    Plot ??= (await import('uplot')).default
    if (closed || width === 0 || data.atMs.length === 0 || kind === kindOf(data)) return
    kind = kindOf(data)
    const focused = document.activeElement === made?.over
    made?.destroy()
    drawLegend()
    made = new Plot(options(), columns(), plot)
    made.over.after(links)
    if (focused) made.over.focus()
  }

  function options () {
    const axis = { stroke: () => colour('--quiet'), font: FONT, ticks: { show: false }, grid: { stroke: () => colour('--line'), width: 1 }, gap: 6 }
    const pub = (type) => /move|leave/.test(type)
    const sub = (type) => visible && pub(type)
    return {
      width,
      height,
      ms: 1,
      padding: [8, 18, 0, 0],
      legend: { show: false },
      scales: { x: { range: () => [data.fromMs, data.toMs] }, y: { range: heights } },
      axes: [
        { ...axis, size: 24, space: 60, values: (_, splits, __, ___, step) => splits.map((ms) => step < 60_000 ? clock(ms).slice(0, 8) : time(ms)) },
        { ...axis, size: 58, space: 26, values: (_, splits) => splits.map((value) => trimmed(format(value))) }
      ],
      series: [{}, ...data.lines.map(seriesOf)],
      cursor: {
        y: false,
        drag: { x: onSelect !== undefined, setScale: false },
        hover: { prox: NEAR_PX, skip: [null] },
        focus: { prox: many ? NEAR_PX : -1, alpha: 1 },
        points: { size: 7, width: 1.5, one: many, stroke: (_, index) => lineColour(index - 1), fill: () => colour('--panel') },
        sync: group && { key: group, scales: ['x', null], filters: { pub, sub } }
      },
      hooks: { ready: [ready], setCursor: [showValues], setSeries: [showNearest], setSelect: [selected], draw: [placeDots] }
    }
  }

  // From zero, so that heights can be compared, and up to the highest value or dot.
  function heights (_, low, high) {
    const most = Math.max(high ?? 0, ...data.dots.map(({ value }) => value))
    const least = Math.min(low ?? 0, 0)
    return [least * 1.1, most * 1.1 || (least === 0 ? 1 : 0)]
  }

  function seriesOf ({ bars }, index) {
    const stroke = () => lineColour(index)
    return {
      stroke,
      pxAlign: false,
      width: many ? 1 : 1.5,
      dash: !many && index >= COLOURS.length ? [6, 3] : [], // drawing dashes is slow
      points: { size: 4, width: 1, fill: stroke, space: 1e6, filter: () => alone(index) },
      gaps: ({ bbox }, _, __, ___, gaps) => gaps.filter(([from, to]) => (to - from) / bbox.width * (data.toMs - data.fromMs) > GAP_MS),
      ...bars && { fill: stroke, width: 0, points: { show: false }, paths: Plot.paths.bars({ size: [0.9, 60, 1], align: 1 }) }
    }
  }

  // Values without neighbours: no line leads to them.
  function alone (index) {
    const { values } = data.lines[index]
    const known = [...values.keys()].filter((each) => values[each] != null)
    const isFar = (a, b) => !(data.atMs[b] - data.atMs[a] <= GAP_MS)
    return known.filter((each, nth) => isFar(known[nth - 1], each) && isFar(each, known[nth + 1]))
  }

  function variableOf (index) {
    return data.lines[index].colour ?? COLOURS[index % COLOURS.length]
  }

  function lineColour (index) {
    return colour(variableOf(index))
  }

  function drawLegend () {
    figures = data.lines.map(() => h('span.num'))
    legend.classList.toggle('many', many)
    legend.tabIndex = many ? 0 : -1 // it scrolls
    legend.replaceChildren(...data.lines.map((each, index) => h('li',
      h('span.swatch', { style: { background: `var(${variableOf(index)})` } }), h('bdi', text(each.label, 80)), figures[index])))
  }

  // For the keyboard and for screen readers the plot is a slider: the arrow keys move through time, and the values are announced.
  function ready (self) {
    self.over.tabIndex = 0
    self.over.role = 'slider'
    self.over.ariaLabel = label
    self.over.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 }[event.key] ?? (event.key === 'Enter' && self.select.width > 0 ? CHOOSE : event.key === 'Escape' && self.cursor.idx != null && 0)
      if (step === undefined || step === false || event.ctrlKey || event.metaKey || event.altKey) return
      event.preventDefault() // also so that Enter does not press what has the focus afterwards
      if (step === CHOOSE) return selected(self)
      const { idx } = self.cursor
      const before = idx == null ? step < 0 ? at.length : -1 : at.findLastIndex((index) => index <= idx)
      const next = step === 0 ? undefined : at[within(0, before + step, at.length - 1)]
      anchor = step !== 0 && event.shiftKey && onSelect ? anchor ?? idx ?? next : null
      move(self, next)
      mark(self, anchor === null ? [] : [anchor, next])
    })
    self.over.addEventListener('blur', () => {
      anchor = null
      move(self)
      mark(self, [])
    })
    showValues(self)
  }

  function move (self, index) {
    const left = index === undefined ? -10 : self.valToPos(data.atMs[index], 'x')
    self.setCursor({ left, top: left < 0 ? left : 20 }, true, true)
  }

  // Shows the interval that Shift and the arrow keys have chosen so far.
  function mark (self, indexes) {
    const [left = 0, right = 0] = indexes.map((index) => self.valToPos(data.atMs[index], 'x')).sort((a, b) => a - b)
    self.setSelect({ left, top: 0, width: right - left, height: right > left ? self.over.clientHeight : 0 }, false)
  }

  function selected (self) {
    const { left, width } = self.select
    if (width === 0) return
    anchor = null
    mark(self, [])
    onSelect(...[left, left + width].map((each) => Math.round(self.posToVal(each, 'x'))))
  }

  // Shows the values at the cursor, or the last ones without a cursor.
  function showValues (self) {
    const { over, cursor: { idx, idxs } } = self
    const shown = idx ?? at.at(-1)
    now.textContent = shown === undefined ? '' : clock(data.atMs[shown]).slice(0, 8)
    if (many && idx != null && !over.matches(':hover, :focus')) return // the cursor is in another chart
    for (const [index, { values }] of data.lines.entries()) figures[index].textContent = textOf(idx == null ? lastOf(values) : values[idxs[index + 1]])
    if (nearest !== null && idx != null) now.append(' ', h('bdi', text(data.lines[nearest - 1].label, 40)), ' ', figures[nearest - 1].textContent)
    over.ariaValueMin = 0
    over.ariaValueMax = data.atMs.length
    over.ariaValueNow = idx ?? data.atMs.length
    over.ariaValueText = [idx == null ? 'Last' : now.textContent, ...data.lines.slice(0, NAMED_MAX).map((each, index) => `${text(each.label, 40)} ${figures[index].textContent}`)].join(', ')
  }

  function lastOf (values) {
    return values.findLast((value, index) => value != null && data.atMs.at(-1) - data.atMs[index] <= LAST_MS)
  }

  function showNearest (_, index) {
    nearest = index
  }

  function textOf (value) {
    return value == null ? '–' : format(value)
  }

  function placeDots (self) {
    const [offsetLeft, offsetTop] = [self.bbox.left, self.bbox.top].map((pixels) => pixels / window.devicePixelRatio)
    links.replaceChildren(...data.dots.filter(({ atMs }) => atMs >= data.fromMs && atMs <= data.toMs).map((dot) => h(dot.href ? 'a' : 'span', {
      href: dot.href,
      tabindex: '-1',
      'aria-hidden': true, // the table has them
      title: `${format(dot.value)} at ${clock(dot.atMs)}${dot.href ? '' : ', its trace is not stored'}`,
      style: { left: `${offsetLeft + self.valToPos(dot.atMs, 'x')}px`, top: `${offsetTop + self.valToPos(dot.value, 'y')}px` }
    })))
  }

  // The table is made only while it is open, since it has an element for each number.
  function fillTable () {
    if (!details.open || filled === data) return
    filled = data
    const held = document.activeElement
    const { scrollTop } = box
    const rows = at.toReversed().slice(0, CELLS_MAX / (data.lines.length + 1))
    box.replaceChildren(
      table('.wide-table', label, ['Time', ...data.lines.map((each) => `#${text(each.label, 60)}`)], rows.map((index) => [clock(data.atMs[index]).slice(0, 8), ...data.lines.map(({ values }) => textOf(values[index]))])),
      rows.length < at.length ? h('p.remark', `The newest ${rows.length} of ${at.length} times.`) : '',
      data.dots.length === 0 ? '' : table('.wide-table', `${label}: traces`, ['Time', '#Value', 'Trace'], data.dots.map((dot) => [clock(dot.atMs), format(dot.value), dot.href ? h('a', { href: dot.href }, text(dot.label, 40)) : 'not stored'])))
    box.scrollTop = scrollTop
    if (held.pathname && !held.isConnected) box.querySelector(`a[href="${held.getAttribute('href')}"]`)?.focus({ preventScroll: true })
  }
}

const CHOOSE = Infinity // not a step

let Plot
const charts = new Set()
const colours = new Map()

// uPlot draws on a canvas, which needs the value of a variable in the current theme. An element is asked for it, once for each theme.
function colour (name) {
  if (!colours.has(name)) {
    const probe = h('span', { style: { color: `var(${name})` } })
    document.body.append(probe)
    colours.set(name, getComputedStyle(probe).color)
    probe.remove()
  }
  return colours.get(name)
}

function themeChanged () {
  colours.clear()
  for (const redraw of charts) redraw()
}

new MutationObserver(themeChanged).observe(document.documentElement, { attributeFilter: ['data-theme'] })
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', themeChanged)

function kindOf ({ lines }) {
  return JSON.stringify(lines.map(({ label, colour, bars }) => [label, colour, bars]))
}
