// The time interval that narrows every page: its control in the bar at the top, and its parameters in the page's address.

import { LAST } from '../store/last.js'
import { button, h, icon } from './dom.mjs'
import { clock } from './text.mjs'

const CHOICES = [[{}, 'All time'], [{ last: '5m' }, 'Last 5 min'], [{ last: '15m' }, 'Last 15 min'], [{ last: '1h' }, 'Last hour']]
const UNITS = { s: 's', m: 'min', h: 'h' }
// The pages of one trace have no interval. They keep the one of the page before, for the way back.
const HAVE_NONE = /^\/(?:traces|compare|lost)\b/

/** @param {(interval: object) => void} narrow called with `{ last }`, `{ from, to }` or `{}` */
export function intervalControl (narrow) {
  const label = h('span')
  const opener = h('button', { type: 'button', id: 'interval', popovertarget: 'interval-menu' }, icon('clock'), label)
  const choices = CHOICES.map(([interval, name]) => button(name, () => choose(interval)))
  const from = time('From')
  const to = time('To')
  const problem = h('p.bad', { role: 'alert' })
  const menu = h('div', { id: 'interval-menu', popover: '', role: 'dialog', 'aria-label': 'Time interval', ontoggle: opened },
    h('div.choices', choices),
    h('form', { onsubmit: custom }, from.element, to.element, problem, h('button', 'Apply')))
  let interval = {}
  draw()

  return {
    element: h('div.interval', opener, menu),
    /** The parameters of the open page for requests to the server. */
    get params () { return interval },
    /** Takes the interval from the page's address. */
    read ({ pathname, search }) {
      const has = !HAVE_NONE.test(pathname)
      opener.hidden = !has
      if (has) interval = intervalOf(new URLSearchParams(search))
      draw()
    },
    set (next) { interval = next },
    carried
  }

  /** The address with the interval, if that page has one. */
  function carried (path) {
    const url = new URL(path, location.origin)
    if (HAVE_NONE.test(url.pathname)) return path
    if (!['from', 'to', 'last'].some((name) => url.searchParams.has(name))) for (const [name, value] of Object.entries(interval)) url.searchParams.set(name, value)
    return url.pathname + url.search + url.hash
  }

  function draw () {
    const text = nameOf(interval)
    label.textContent = text
    opener.ariaLabel = `Time interval: ${text}`
    opener.title = text
    opener.classList.toggle('set', Object.keys(interval).length > 0)
    for (const [index, each] of choices.entries()) each.ariaPressed = JSON.stringify(CHOICES[index][0]) === JSON.stringify(interval)
  }

  function opened ({ newState }) {
    if (newState !== 'open') return
    const { bottom, right } = opener.getBoundingClientRect()
    menu.style.top = `${bottom + 4}px`
    menu.style.left = `${Math.max(8, right - menu.offsetWidth)}px`
    problem.textContent = ''
    from.set(interval.from)
    to.set(interval.to)
    choices.find((each) => each.ariaPressed === 'true')?.focus()
  }

  function choose (next) {
    menu.hidePopover()
    narrow(next)
  }

  function custom (event) {
    event.preventDefault()
    const next = { ...from.get(), ...to.get() }
    if (next.from > next.to) problem.textContent = '“From” must not be later than “To”.'
    else choose(next)
  }
}

function intervalOf (params) {
  const last = params.get('last')
  if (LAST.test(last ?? '')) return { last }
  const given = ['from', 'to'].filter((name) => /^\d{1,15}$/.test(params.get(name) ?? '')).map((name) => [name, Number(params.get(name))])
  const interval = Object.fromEntries(given)
  return interval.from > interval.to ? {} : interval
}

/** @param {{ from?: number, to?: number, last?: string }} interval */
export function nameOf ({ from, to, last }) {
  const choice = CHOICES.find(([each]) => each.last === last)
  if (last !== undefined) return choice?.[1] ?? `Last ${parseInt(last)} ${UNITS[last.at(-1)]}`
  if (from === undefined && to === undefined) return CHOICES[0][1]
  if (to === undefined) return `From ${moment(from)}`
  return from === undefined ? `Until ${moment(to)}` : `${moment(from)} – ${moment(to, from)}`
}

// Without the date if that is of today, or of the other end.
function moment (ms, other = Date.now()) {
  const date = new Date(ms)
  if (date.toDateString() === new Date(other).toDateString()) return clock(ms).slice(0, 8)
  return Number.isNaN(date.getTime()) ? '–' : `${localIso(date).slice(0, 10)} ${clock(ms).slice(0, 8)}`
}

function time (name) {
  const input = h('input', { type: 'datetime-local', step: '1' })
  return {
    element: h('label', h('span', name), input),
    set: (ms) => { input.value = ms === undefined ? '' : localIso(new Date(ms)) },
    // The end of an interval belongs to it, up to the last millisecond of its second.
    get: () => input.value === '' ? {} : { [name.toLowerCase()]: new Date(input.value).getTime() + (name === 'To' ? 999 : 0) }
  }
}

function localIso (date) {
  return Number.isNaN(date.getTime()) ? '' : new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}
