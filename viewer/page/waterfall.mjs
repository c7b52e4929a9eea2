// The waterfall: one row for each span or log line. Only visible rows have elements. The rows come from the server in display order. What is
// collapsed, selected, found and zoomed to is kept here by span id, so that it survives when the trace grows.

import { clockText } from '../views/clock.js'
import { bdi, h, say } from './dom.mjs'
import { folded } from './folds.mjs'
import { levelMark, rankOf } from './levels.mjs'
import { remember, remembered } from './memory.mjs'
import { within } from './numbers.mjs'
import { criticalMs, repeatText } from './request-line.mjs'
import { count, duration, line, plural, short, waitText } from './text.mjs'
import { gridCell, gridHead, indent, virtualRows } from './virtual.mjs'

const HUES = 7
const NAME_WIDTH = 'light-trace name width'
const TICKS = 5 // the ruler shows at most twice as many
const SIGNS = { SERVER: '⇥', CLIENT: '↗', PRODUCER: '⇢', CONSUMER: '⇠', INTERNAL: '·' }

/** @param {{ opened: (row) => void, moved: (row) => void, found: (state: { at: number, of: number, name: string } | null) => void }} on */
export function waterfall (on) {
  const ruler = h('div.ruler', { role: 'columnheader', 'aria-label': 'Time', title: 'Drag to zoom, Escape to zoom out' })
  const splitter = h('div.splitter', { role: 'separator', tabindex: '0', 'aria-orientation': 'vertical', 'aria-label': 'Width of the names', 'aria-valuemin': '15', 'aria-valuemax': '75' })
  const element = h('div.grid.fall', { role: 'treegrid', tabindex: '0', 'aria-label': 'Spans', 'aria-colcount': '3' },
    gridHead([['Span', 'name'], ['Duration', 'took']], ruler))
  const wrapper = h('div.fall-box', element, splitter)
  const collapsed = new Set()
  const folds = new Set() // folds that were seen, so that one that the user opened stays open
  let all = []
  let rows = []
  let data
  let chosen
  let from = 0
  let to = 1
  let zoomed = false
  let needle = ''
  let matches = [] // the rows that have the needle
  let least = 0 // lowest level of the lines that are shown
  const list = virtualRows(element, render)
  ruler.addEventListener('pointerdown', dragZoom)
  nameWidth(wrapper, splitter)

  return {
    element: wrapper,
    show (answer) {
      data = answer
      chosen ??= answer.rows[0]?.id
      all = folded(answer.rows)
      connect(all)
      for (const { id, fold } of all) {
        if (fold === undefined || folds.has(id)) continue
        folds.add(id)
        collapsed.add(id)
      }
      if (!zoomed) setRange(...rangeOf(all, answer.durationMs))
      refresh()
      search()
    },
    leastLevel (name) {
      least = name === 'none' ? Infinity : name === '' ? 0 : rankOf(name)
      if (data === undefined) return
      refresh()
      search()
    },
    selected: () => all.find(({ id }) => id === chosen),
    select,
    focus: () => element.focus({ preventScroll: true }),
    key,
    find (text) {
      needle = text.trim().toLowerCase()
      refresh()
      search()
      if (matches.length > 0 && !matches.some(({ id }) => id === chosen)) nextFound(1)
    },
    nextFound,
    zoomOut () {
      if (!zoomed) return false
      zoomed = false
      setRange(...rangeOf(all, data.durationMs))
      refresh()
      return true
    },
    close: list.close
  }

  function refresh () {
    rows = []
    for (const row of all) row.inside = 0
    for (const row of all.toReversed()) {
      row.hidden = row.line !== undefined && (rankOf(row.line) < least || (needle !== '' && !isFound(row)))
      if (row.above !== undefined && !row.hidden) row.above.inside += row.inside + 1
    }
    for (let index = 0; index < all.length; index++) {
      if (all[index].hidden) continue
      rows.push(all[index])
      if (collapsed.has(all[index].id)) index += all[index].below
    }
    element.ariaBusy = data.more > 0
    list.update(rows.length)
    if (data.more > 0) element.ariaRowCount = rows.length + 1 + data.more
    point()
  }

  function setRange (start, end) {
    from = start
    to = end > start ? end : start + 0.001
    const step = roundStep((to - from) / TICKS)
    const ticks = []
    for (let at = Math.ceil(from / step) * step; at < to - step / 3; at += step) ticks.push(at)
    ruler.replaceChildren('Time', ...ticks.map((at) => h('span.tick', { style: { left: `${(at - from) / (to - from) * 100}%` } }, short(at))))
  }

  function select (id) {
    const row = all.find((row) => row.id === id)
    if (row === undefined) return false
    chosen = id
    let opened = false
    for (let above = row.above; above !== undefined; above = above.above) opened = collapsed.delete(above.id) || opened
    if (opened) refresh()
    list.show(rows.indexOf(row))
    mark()
    tellFound()
    return true
  }

  function search () {
    matches = needle === '' ? [] : all.filter((row) => !row.hidden && isFound(row))
    tellFound()
  }

  function tellFound () {
    if (needle === '') return on.found(null)
    const at = matches.findIndex(({ id }) => id === chosen)
    on.found({ at: at + 1, of: matches.length, name: matches[at]?.name ?? '' })
  }

  function mark () {
    point()
    for (const each of element.querySelectorAll('[aria-selected]')) each.ariaSelected = each.id === element.getAttribute('aria-activedescendant')
  }

  function point () {
    list.point(rows.findIndex(({ id }) => id === chosen))
  }

  function key (event) {
    const index = rows.findIndex(({ id }) => id === chosen)
    const row = rows[index]
    const move = list.move(event)
    if (move !== undefined) return go(within(0, index + move, rows.length - 1))
    if (event.key === 'e') return step(1, failed, 'No span has failed')
    if (event.key === 'E') return step(-1, failed, 'No span has failed')
    if (row === undefined) return false
    if (event.key === 'ArrowRight') return row.inside === 0 ? true : collapsed.has(row.id) ? toggle(row) : go(index + 1)
    if (event.key === 'ArrowLeft') return row.inside > 0 && !collapsed.has(row.id) ? toggle(row) : goUp(row)
    if (event.key === 'Enter' && document.activeElement === element) return open(row)
    if (event.key === 'z') return zoomTo(row.start, row.start + row.duration)
    return false
  }

  function go (index) {
    if (rows[index] === undefined) return true
    element.focus({ preventScroll: true })
    select(rows[index].id)
    on.moved(rows[index])
    return true
  }

  function goUp (row) {
    if (row.above !== undefined) go(rows.indexOf(row.above))
    return true
  }

  function open (row) {
    on.opened(row)
    return true
  }

  function toggle (row) {
    if (!collapsed.delete(row.id)) collapsed.add(row.id)
    refresh()
    return true
  }

  function step (direction, fits, nothing) {
    const index = all.findIndex(({ id }) => id === chosen)
    for (let tried = 1; tried <= all.length; tried++) {
      const row = all[(index + direction * tried + all.length * 2) % all.length]
      if (row.hidden || !fits(row)) continue
      select(row.id)
      on.moved(row)
      return true
    }
    say(nothing)
    return true
  }

  function isFound (row) {
    return needle !== '' && row.missing !== true && row.fold === undefined && `${row.name}\n${row.rest ?? ''}\n${data.services[row.service] ?? ''}\n${row.message ?? ''}\n${row.id}`.toLowerCase().includes(needle)
  }

  function nextFound (direction) {
    if (matches.length > 0) step(direction, isFound)
  }

  function zoomTo (start, end) {
    zoomed = true
    const margin = (end - start) * 0.02 || 0.001
    setRange(start - margin, end + margin)
    refresh()
    return true
  }

  function dragZoom (event) {
    const { left, width } = ruler.getBoundingClientRect()
    const at = ({ clientX }) => from + (to - from) * within(0, (clientX - left) / width, 1)
    const start = at(event)
    ruler.setPointerCapture(event.pointerId)
    ruler.addEventListener('pointerup', (last) => {
      const range = [start, at(last)].sort((a, b) => a - b)
      if (range[1] - range[0] > (to - from) / 100) zoomTo(...range)
    }, { once: true })
  }

  function render (index) {
    const row = rows[index]
    const isOpen = row.inside > 0 ? !collapsed.has(row.id) : undefined
    const classes = ['row', row.status === 'ERROR' && 'failed', row.missing && 'missing', row.line !== undefined && 'line', isFound(row) && 'found', row.depth === 0 && 'top'].filter(Boolean).join(' ')
    return h('div', {
      class: classes,
      'aria-level': row.depth + 1,
      'aria-expanded': isOpen,
      'aria-selected': row.id === chosen,
      style: { '--hue': row.status === 'ERROR' ? 'var(--bad)' : `var(--hue-${row.service < 0 ? 'none' : row.service % HUES})` },
      onclick: ({ target }) => { select(row.id); target.closest('.twist') ? toggle(row) : open(row); element.focus({ preventScroll: true }) }
    }, ...(row.line !== undefined ? lineCells(row) : [nameCell(row, isOpen), gridCell('took', row.missing ? '' : duration(row.duration)), barCell(row)]))
  }

  function lineCells (row) {
    const at = (row.start - from) / (to - from) * 100
    return [
      at >= 0 && at <= 100 && h('div.track', { 'aria-hidden': true }, h('div.moment', { style: { left: `${at}%` } })),
      gridCell('name', { ...indent(row), 'aria-colspan': '3', title: line(`${row.name} ${row.rest}`) },
        h('span.twist'), levelMark(row.line), h('span.quiet.num', `${row.start < 0 ? '' : '+'}${duration(row.start)}`),
        h('bdi.label', line(row.name)), h('bdi.quiet.rest', line(row.rest)))
    ]
  }

  function nameCell (row, isOpen) {
    const twist = h('span', { class: `twist ${isOpen === undefined ? '' : isOpen ? 'open' : 'shut'}`, 'aria-hidden': true })
    if (row.missing) return gridCell('name', indent(row), twist, h('span.label', 'parent not received'), h('span.quiet.id', line(row.id)))
    return gridCell('name', { ...indent(row), title: line(row.name) },
      twist,
      data.services.length > 1 && h('span.service', { style: { '--hue': `var(--hue-${row.service % HUES})` }, title: line(data.services[row.service]) },
        row.above?.service !== row.service && bdi(data.services[row.service] || 'no name', 24)),
      h('span.sign.quiet', { title: row.system ?? row.kind.toLowerCase(), 'aria-hidden': true }, row.system ? '≡' : SIGNS[row.kind]),
      row.fold !== undefined && h('b.num', `${count(row.fold)} ×`),
      h('bdi.label', line(row.name) || 'no name'),
      row.code !== undefined && row.depth > 0 && h('span.quiet', String(row.code)),
      ...notesOf(row),
      isOpen === false && row.fold === undefined && h('span.pill', `+${count(row.inside)}`))
  }

  function barCell (row) {
    const place = (at) => (at - from) / (to - from) * 100
    const left = Math.max(-1, place(row.start))
    const right = Math.min(101, place(row.start + row.duration))
    const bar = h('div.bar', { style: { left: `${left}%`, width: `${Math.max(0, right - left)}%` } })
    const cell = gridCell('track', { 'aria-label': spoken(row) }, bar)
    if (row.missing) return cell
    bar.style.background = ownTime(row, left, right, place)
    if (row.waits !== undefined) cell.append(waits(row, bar))
    for (const [start, end] of row.critical ?? []) {
      if (place(end) < 0 || place(start) > 100) continue
      cell.append(h('div.path', { style: { left: `${Math.max(0, place(start))}%`, width: `${Math.min(100, place(end)) - Math.max(0, place(start))}%` } }))
    }
    for (const event of row.events ?? []) {
      const at = place(row.start + event.at)
      if (at < 0 || at > 100) continue
      const kind = event.name !== 'exception' ? '' : failed(row) ? 'bad' : 'mild'
      cell.append(h('div', { class: `event ${kind}`, style: { left: `${at}%` }, title: line(`${event.name} ${event.type ?? ''} ${event.message ?? ''}`.trim()) }))
    }
    return cell
  }

  // Shows what a slow request waited for, as parts of its length. The parts do not show when it waited.
  function waits ({ waits }, { style: { left, width } }) {
    return h('div.waits', { style: { left, width }, title: waitText(waits) }, waits.map((ms, i) => h('i', { class: `w${i}`, style: { 'flex-grow': ms } })))
  }

  // The bar is solid where the span itself worked, and pale where it waited for children.
  function ownTime (row, left, right, place) {
    if (row.below === 0 || row.fold !== undefined || row.self >= row.duration) return 'var(--hue)'
    const width = right - left || 1
    const stops = []
    let cursor = left
    for (const [start, end] of covered(row)) {
      const [a, b] = [place(start), place(end)].map((at) => within(left, at, right))
      if (a > cursor) stops.push(`var(--hue) ${share(cursor)} ${share(a)}`)
      stops.push(`var(--pale) ${share(a)} ${share(b)}`)
      cursor = b
    }
    if (cursor < right) stops.push(`var(--hue) ${share(cursor)} 100%`)
    return `linear-gradient(90deg, ${stops.join(',')})`

    function share (at) {
      return `${((at - left) / width * 100).toFixed(3)}%`
    }
  }

  // The times of the children as one list without overlaps. Gaps that a screen cannot show are closed.
  function covered (row) {
    const spans = []
    for (let below = row.index + 1; below <= row.index + row.below && below < all.length; below++) {
      const child = all[below]
      if (child.fold !== undefined) continue // the calls in a fold cover time, but the gaps between them do not
      below += child.below
      const start = Math.max(row.start, child.start)
      const end = Math.min(row.start + row.duration, child.start + child.duration)
      const last = spans.at(-1)
      if (end <= start) continue
      if (last !== undefined && start <= last[1] + (to - from) / 500) last[1] = Math.max(last[1], end)
      else spans.push([start, end])
    }
    return spans
  }
}

// Rounds to 1, 2 or 5 times a power of ten.
function roundStep (about) {
  const power = 10 ** Math.floor(Math.log10(about))
  return power * [1, 2, 5, 10].find((factor) => factor * power >= about * 0.8)
}

// Sets the index and the parent row of each row.
function connect (rows) {
  const open = []
  for (const [index, row] of rows.entries()) {
    row.index = index
    row.above = row.depth > 0 ? open[row.depth - 1] : undefined
    row.folds = 0
    open[row.depth] = row
  }
  for (const row of rows.toReversed()) {
    row.below += row.folds
    if (row.above !== undefined) row.above.folds += row.folds + (row.fold === undefined ? 0 : 1)
  }
}

function failed ({ status }) {
  return status === 'ERROR'
}

function notesOf (row) {
  const note = (label, title) => h('span.flag', { title }, label)
  const clock = clockText(row, duration)
  return [
    row.repeats !== undefined && note(`${count(row.repeats.count)} ×`, repeatText(row.repeats)),
    row.late && note('late', 'Arrived more than two seconds after the root'),
    row.calls !== undefined && note(`${count(row.calls)} calls`, 'This span represents this many similar calls'),
    row.afterResponse && note('after the response', 'Ended after its request'),
    row.neverEnded && note('never ended', 'Was still open when the application ended'),
    row.cycle && note('cycle', 'Its parent is one of its descendants'),
    clock !== undefined && note(clock, 'Moved by this much to fit into its parent, because the clocks differ')
  ].filter(Boolean)
}

/** The description of a row of folded calls. */
export function foldText ({ fold, self, longest }) {
  return `${plural(fold, 'similar call')}, ${duration(self)} in total, the longest ${duration(longest)}`
}

function spoken (row) {
  if (row.missing) return 'The parent of the spans below was not received'
  if (row.fold !== undefined) return foldText(row)
  const critical = criticalMs(row)
  return [
    `starts at ${duration(row.start)}`,
    `own time ${duration(row.self)}`,
    row.waits !== undefined && waitText(row.waits),
    row.repeats !== undefined && repeatText(row.repeats),
    critical > 0 && `on the critical path for ${duration(critical)}`,
    row.status === 'ERROR' && `failed ${line(row.message ?? '')}`,
    row.events !== undefined && plural(row.events.length + (row.moreEvents ?? 0), 'event'),
    row.links > 0 && plural(row.links, 'link')
  ].filter(Boolean).join(', ')
}

/** The time range of all rows. `start` may be before the root's start if clocks differ. */
function rangeOf (rows, durationMs) {
  let start = 0
  for (const row of rows) if (row.start < start) start = row.start
  return [start, start + durationMs]
}

function nameWidth (wrapper, splitter) {
  const set = (percent) => {
    const width = within(15, percent, 75)
    wrapper.style.setProperty('--name', `${width}%`)
    splitter.ariaValueNow = Math.round(width)
    return width
  }
  let width = set(Number(remembered(NAME_WIDTH)) || (matchMedia('(max-width: 700px)').matches ? 52 : 36))
  const keep = (percent) => {
    width = set(percent)
    remember(NAME_WIDTH, width)
  }
  splitter.addEventListener('keydown', (event) => {
    const by = { ArrowLeft: -2, ArrowRight: 2 }[event.key]
    if (by === undefined) return
    event.preventDefault()
    keep(width + by)
  })
  splitter.addEventListener('pointerdown', (event) => {
    event.preventDefault()
    splitter.setPointerCapture(event.pointerId)
    const { left, width: full } = wrapper.getBoundingClientRect()
    const move = ({ clientX }) => keep((clientX - left) / full * 100)
    splitter.addEventListener('pointermove', move)
    splitter.addEventListener('pointerup', () => splitter.removeEventListener('pointermove', move), { once: true })
  })
}
