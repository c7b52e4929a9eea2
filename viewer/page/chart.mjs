// A chart of values over time, drawn by uPlot, with the same numbers in a table below it. Its colours are the CSS variables of page.css.
//
//   const figure = chart({ label: 'Latency', format: duration, open: (dot) => app.go(dot.href) })
//   host.append(figure.element)
//   figure.set({ fromMs, toMs, atMs: [], lines: [{ label: 'p50', values: [null, 1.5], colour: '--hue-0' }], dots: [] })
//   figure.close() // when its view closes

import { h, scrolling, table } from './dom.mjs'
import { clock, line as text, number, plural, time, trimmed } from './text.mjs'

export const LINES_MAX = 50
const COLOURS = ['--hue-0', '--hue-2', '--hue-4', '--hue-3', '--hue-1', '--hue-6']
const DASHES = [[], [6, 3], [2, 2], [10, 3, 2, 3]]
const DOTS_MAX = 60
const CELLS_MAX = 3000 // in a table: each cell is an element
const GAP_MS = 150_000 // many applications send their metrics once a minute, so a shorter gap is no gap
const NEAR_PX = 24
const NAMED_MAX = 8 // a chart with more lines shows only the line that the cursor is at

/**
 * @param {object} options
 * @param {string} options.label what the chart shows
 * @param {(value: number) => string} [options.format] of a value, for the axis, the table and the cursor
 * @param {string} [options.group] charts of a group move their cursors together
 * @param {(fromMs: number, toMs: number) => void} [options.onSelect] an interval was chosen with the mouse, or with Shift, the arrow keys and Enter
 * @param {(dot: object) => void} [options.open] a dot was chosen with Enter
 * @param {number} [options.height]
 */
export function chart ({ label, format = number, group, onSelect, open, height = 150 }) {
  const now = h('span.quiet.num')
  const legend = h('ul.chart-legend')
  const plot = h('div.plot', { style: { height: `${height}px` } })
  const links = h('div.exemplars')
  const figures = h('div')
  const details = h('details.chart-table', { ontoggle: fillTable }, h('summary', null, 'Table'), figures)
  const element = h('figure.chart', null, h('figcaption', null, h('span', null, label), now), plot, legend, details)
  let data = { fromMs: 0, toMs: 1, atMs: [], lines: [], dots: [] }
  let made // the uPlot
  let kind // what the uPlot was made for: with other lines it is made anew
  let values = [] // the elements of the legend that show the values at the cursor
  let anchor = null // where a selection by keyboard starts
  let filled // the data that the table shows
  let closed = false
  const observer = new ResizeObserver(fit)
  observer.observe(plot)
  charts.add(redraw)

  return { element, set, close }

  /** @param {{ fromMs, toMs, atMs: number[], lines: { label, values, colour?, dash?, bars? }[], dots?: { atMs, value, label, href? }[] }} next */
  function set (next) {
    data = { dots: [], ...next, lines: next.lines.slice(0, LINES_MAX) }
    // Of more dots than there is room for, those of the highest values are shown.
    if (data.dots.length > DOTS_MAX) data.dots = data.dots.toSorted((a, b) => b.value - a.value).slice(0, DOTS_MAX)
    element.classList.toggle('nothing-drawn', !hasValues())
    if (made === undefined || kind !== kindOf(data)) make()
    else made.setData(columns())
    if (details.open) fillTable()
  }

  function close () {
    closed = true
    observer.disconnect()
    charts.delete(redraw)
    made?.destroy()
  }

  function fit () {
    if (plot.clientWidth === 0) return
    if (made === undefined) make()
    else if (made.width !== plot.clientWidth) made.setSize({ width: plot.clientWidth, height })
  }

  function redraw () {
    made?.redraw(false)
  }

  function hasValues () {
    return data.lines.some(({ values }) => values.some((value) => value !== null && value !== undefined))
  }

  function columns () {
    return [data.atMs, ...data.lines.map(({ values }) => values)]
  }

  function make () {
    if (plot.clientWidth === 0 || data.atMs.length === 0) return
    if (Plot === undefined) return load(() => !closed && make())
    const focused = made !== undefined && document.activeElement === made.over
    made?.destroy()
    kind = kindOf(data)
    drawLegend()
    made = new Plot(options(), columns(), plot)
    made.over.parentElement.append(links)
    if (focused) made.over.focus()
  }

  function options () {
    const many = data.lines.length > NAMED_MAX
    const axis = { stroke: () => colour('--quiet'), font: FONT, ticks: { show: false }, grid: { stroke: () => colour('--line'), width: 1 } }
    return {
      width: plot.clientWidth,
      height,
      ms: 1,
      padding: [8, 10, 0, 0],
      legend: { show: false },
      scales: { x: { range: () => [data.fromMs, data.toMs] }, y: { range: (_, low, high) => rangeOf(low, high, data.dots) } },
      axes: [
        { ...axis, size: 24, gap: 6, space: 60, values: (_, splits, __, ___, step) => splits.map((ms) => step < 60_000 ? clock(ms).slice(0, 8) : time(ms)) },
        { ...axis, size: 58, gap: 6, space: 30, values: (_, splits) => splits.map((value) => trimmed(format(value))) }
      ],
      series: [{}, ...data.lines.map(seriesOf)],
      focus: { alpha: 0.25 },
      cursor: {
        y: false,
        drag: { x: onSelect !== undefined, y: false, setScale: false },
        hover: { prox: NEAR_PX, skip: [undefined, null] },
        focus: { prox: many ? NEAR_PX : -1 },
        points: { size: 7, width: 1.5, one: many, stroke: (_, at) => colour(colourOf(data.lines[at - 1], at - 1)), fill: () => colour('--panel') },
        sync: group && { key: group, scales: ['x', null], filters: { pub: moves, sub: moves } }
      },
      hooks: { ready: [ready], setCursor: [showValues], setSeries: [showFocus], setSelect: [selected], draw: [placeDots] }
    }
  }

  function seriesOf (each, index) {
    const stroke = () => colour(colourOf(each, index))
    return {
      stroke,
      width: 1.5,
      pxAlign: false,
      dash: each.dash ?? DASHES[Math.floor(index / COLOURS.length) % DASHES.length],
      points: { size: 4, width: 1, fill: stroke, space: 1e6 },
      gaps: (self, _, __, ___, gaps) => gaps.filter(([from, to]) => (to - from) / self.bbox.width * (data.toMs - data.fromMs) > GAP_MS),
      ...(each.bars && { fill: stroke, width: 0, points: { show: false }, paths: Plot.paths.bars({ size: [0.9, 60, 1], align: 1 }) })
    }
  }

  function drawLegend () {
    values = data.lines.map(() => h('span.num'))
    const many = data.lines.length > NAMED_MAX
    legend.replaceChildren(...data.lines.map((each, index) => h('li', null,
      h('span.swatch', { style: { background: `var(${colourOf(each, index)})` } }), h('bdi', null, text(each.label, 80)), values[index])))
    legend.classList.toggle('many', many)
    if (many) {
      legend.setAttribute('tabindex', '0')
      legend.setAttribute('aria-label', `Lines of ${label}`)
    } else legend.removeAttribute('tabindex')
  }

  // The plot is a slider for the keyboard and for screen readers: the arrow keys move through time, and the values are announced.
  function ready (self) {
    const { over } = self
    for (const [name, value] of Object.entries({ role: 'slider', tabindex: '0', 'aria-label': label, 'aria-valuemin': '0', 'aria-valuemax': String(Math.max(0, data.atMs.length - 1)) })) over.setAttribute(name, value)
    over.addEventListener('keydown', (event) => { if (press(self, event)) event.preventDefault() })
    over.addEventListener('blur', () => {
      anchor = null
      self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
      move(self, null)
    })
    showValues(self)
  }

  function press (self, { key, shiftKey, ctrlKey, metaKey, altKey }) {
    if (ctrlKey || metaKey || altKey) return false
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[key]
    if (step !== undefined) return stepTo(self, step, shiftKey && onSelect !== undefined)
    if (key === 'Enter' && self.select.width > 0) return choose(self)
    if (key === 'Enter') return openDot(self)
    if (key !== 'Escape' || (self.cursor.idx ?? null) === null) return false
    anchor = null
    self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
    return move(self, null)
  }

  // Goes to the next time for which there is a value.
  function stepTo (self, step, selects) {
    const at = data.atMs.flatMap((_, index) => data.lines.some(({ values }) => (values[index] ?? null) !== null) ? [index] : [])
    if (at.length === 0) return true
    const current = self.cursor.idx ?? null
    const before = current === null ? (step > 0 ? -1 : at.length) : at.findIndex((index) => index >= current)
    const next = Math.max(0, Math.min(at.length - 1, (before === -1 && current !== null ? at.length : before) + step))
    anchor = selects ? anchor ?? current ?? at[next] : null
    move(self, at[next])
    const [from, to] = selects ? [anchor, at[next]].map((index) => self.valToPos(data.atMs[index], 'x')).toSorted((a, b) => a - b) : [0, 0]
    self.setSelect({ left: from, top: 0, width: to - from, height: self.over.clientHeight }, false)
    return true
  }

  function move (self, index) {
    if (index === null) self.setCursor({ left: -10, top: -10 }, true, true)
    else self.setCursor({ left: self.valToPos(data.atMs[index], 'x'), top: self.over.clientHeight / 2 }, true, true)
    return true
  }

  function openDot (self) {
    const { idx = null } = self.cursor
    if (idx === null || open === undefined) return false
    const width = (data.atMs[1] ?? data.toMs) - data.atMs[0]
    const near = data.dots.filter(({ href, atMs }) => href !== undefined && Math.abs(atMs - data.atMs[idx]) <= width).sort((a, b) => b.value - a.value)[0]
    if (near !== undefined) open(near)
    return near !== undefined
  }

  function selected (self) {
    if (self.select.width > 0) choose(self)
  }

  function choose (self) {
    const { left, width } = self.select
    const [fromMs, toMs] = [left, left + width].map((at) => Math.round(self.posToVal(at, 'x')))
    anchor = null
    self.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false)
    if (toMs > fromMs) onSelect(fromMs, toMs)
    return true
  }

  // Shows the values at the cursor, or the last ones without a cursor.
  function showValues (self) {
    const { idx = null, idxs } = self.cursor
    const shown = data.lines.map(({ values }, index) => idx === null ? values.findLast((value) => (value ?? null) !== null) : values[idxs[index + 1]])
    const texts = shown.map((value) => (value ?? null) === null ? '–' : format(value))
    for (const [index, each] of values.entries()) each.textContent = texts[index]
    now.textContent = idx === null ? '' : clock(data.atMs[idx]).slice(0, 8)
    self.over.setAttribute('aria-valuenow', String(idx ?? Math.max(0, data.atMs.length - 1)))
    self.over.setAttribute('aria-valuetext', `${idx === null ? 'Last' : now.textContent}: ${data.lines.slice(0, NAMED_MAX).map((each, index) => `${text(each.label, 40)} ${texts[index]}`).join(', ') || 'no values'}`)
  }

  function showFocus (_, at) {
    for (const [index, each] of [...legend.children].entries()) each.classList.toggle('chosen', index + 1 === at)
    if (at !== null) legend.scrollTop = legend.children[at - 1].offsetTop - legend.offsetTop - 20
  }

  function placeDots (self) {
    const shown = data.dots.filter(({ atMs }) => atMs >= data.fromMs && atMs <= data.toMs)
    while (links.children.length > shown.length) links.lastChild.remove()
    const { offsetLeft, offsetTop } = self.over
    for (const [index, dot] of shown.entries()) {
      const there = links.children[index]
      const each = there !== undefined && there.tagName === (dot.href ? 'A' : 'SPAN') ? there : h(dot.href ? 'a' : 'span', { tabindex: dot.href && '-1', 'aria-hidden': 'true' })
      if (dot.href) each.setAttribute('href', h('a', { href: dot.href }).getAttribute('href'))
      each.title = dotText(dot)
      each.style.left = `${offsetLeft + self.valToPos(dot.atMs, 'x')}px`
      each.style.top = `${offsetTop + self.valToPos(dot.value, 'y')}px`
      if (there === undefined) links.append(each)
      else if (there !== each) there.replaceWith(each)
    }
  }

  function dotText (dot) {
    return `${format(dot.value)} at ${clock(dot.atMs)}${dot.href ? ': open the trace' : ', its trace is not held'}`
  }

  // The table is made only while it is open, since it has an element for each number.
  function fillTable () {
    if (!details.open || filled === data) return
    filled = data
    const held = figures.contains(document.activeElement) ? document.activeElement.getAttribute('data-key') : null
    const top = figures.firstChild?.scrollTop ?? 0
    const rowsMax = Math.max(10, Math.floor(CELLS_MAX / (data.lines.length + 1)))
    const at = data.atMs.map((_, index) => index).reverse().filter((index) => data.lines.some(({ values }) => (values[index] ?? null) !== null))
    const box = scrolling(`${label}: table`)
    box.append(table(label, ['Time', ...data.lines.map((each) => `#${text(each.label, 60)}`)],
      at.slice(0, rowsMax).map((index) => [clock(data.atMs[index]).slice(0, 8), ...data.lines.map(({ values }) => (values[index] ?? null) === null ? '–' : format(values[index]))]), { class: 'wide-table' }))
    if (at.length > rowsMax) box.append(h('p.remark', null, `The newest ${rowsMax} of ${plural(at.length, 'time')}.`))
    const dots = data.dots.length > 0 && table(`Traces of ${label}`, ['Time', '#Value', 'Trace'], data.dots.toSorted((a, b) => b.value - a.value).map((dot) =>
      [clock(dot.atMs), format(dot.value), dot.href ? h('a', { href: dot.href, 'data-key': dot.href }, text(dot.label, 40)) : h('span.quiet', null, 'not held')]), { class: 'wide-table traces' })
    if (dots) box.append(dots)
    figures.replaceChildren(box)
    box.scrollTop = top
    if (held !== null) figures.querySelector(`[data-key="${CSS.escape(held)}"]`)?.focus()
  }
}

let Plot

// Only when the first chart is drawn, since it makes formatters of Intl, which takes as long as drawing a trace.
async function load (then) {
  Plot = (await import('uplot')).default
  then()
}

const FONT = '11px system-ui, "Segoe UI", Roboto, "Noto Sans", sans-serif'
const charts = new Set()
const colours = new Map()

// uPlot draws on a canvas, which needs the value of a variable in the current theme. An element is asked for it, once for each theme.
function colour (name) {
  if (colours.has(name)) return colours.get(name)
  const probe = h('span', { style: { color: `var(${name})` } })
  document.body.append(probe)
  colours.set(name, getComputedStyle(probe).color)
  probe.remove()
  return colours.get(name)
}

function themeChanged () {
  colours.clear()
  for (const redraw of charts) redraw()
}

new MutationObserver(themeChanged).observe(document.documentElement, { attributeFilter: ['data-theme'] })
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', themeChanged)

function colourOf (each, index) {
  return each.colour ?? COLOURS[index % COLOURS.length]
}

function kindOf ({ lines }) {
  return JSON.stringify(lines.map(({ label, colour, dash, bars }) => [label, colour, dash, bars]))
}

function moves (type) {
  return type === 'mousemove' || type === 'mouseleave'
}

// From zero, so that heights can be compared, and up to the highest value or dot.
function rangeOf (low, high, dots) {
  const most = Math.max(high ?? 0, ...dots.map(({ value }) => value))
  const least = Math.min(low ?? 0, 0)
  return [least * 1.1, most > 0 ? most * 1.1 : least < 0 ? 0 : 1]
}
