// The filter of requests and of log lines. Its fields are the parameters of the API, both in the page's address and in requests to the server.

import { conditionOf, conditionText, isCondition } from '../store/condition.js'
import { get } from './api.mjs'
import { bdi, button, h, icon } from './dom.mjs'
import { fillSelect, namesOf, searchInput, select, whenTyped } from './fields.mjs'
import { line } from './text.mjs'

const SINGLE = ['status', 'route', 'service', 'q', 'unrouted', 'exception']
const STATUSES = [['', 'Any status'], ['error', 'Failed'], ['2xx', '2xx'], ['3xx', '3xx'], ['4xx', '4xx'], ['5xx', '5xx']]
const DURATIONS = [['', 'Any duration'], ['1', '≥ 1 ms'], ['10', '≥ 10 ms'], ['50', '≥ 50 ms'], ['100', '≥ 100 ms'], ['500', '≥ 500 ms'], ['1000', '≥ 1 s'], ['5000', '≥ 5 s']]
const CHIP_MAX = 80

const REQUEST_HINTS = [['tenant.id = a', 'also != > >= < <='], ['http.route ~ users', 'contains'], ['!tenant.id', 'does not exist'], ['duration > 100ms', ''], ['status >= 500', ''], ['error', 'failed']]
export const LINE_HINTS = [['tenant.id = a', 'also != > >= < <='], ['body ~ stock', 'contains'], ['!tenant.id', 'does not exist'], ['level >= warn', ''], ['duration > 100ms', 'of its request']]

export function filterOf (params) {
  const filter = { where: params.getAll('where') }
  for (const name of SINGLE) filter[name] = params.get(name) ?? ''
  return filter
}

export function filterParams (filter) {
  const params = {}
  for (const name of SINGLE) if (filter[name] !== '') params[name] = filter[name]
  if (filter.where.length > 0) params.where = filter.where
  return params
}

/**
 * The filter of requests.
 * @param {object} filter changed in place
 * @param {() => void} changed
 */
export function filterBar (filter, changed) {
  let known = [] // the routes
  const search = searchField(filter, changed, { label: 'Search, or attribute = value', hints: REQUEST_HINTS, more: otherChips, hidden: (text) => text === shortest(filter) })
  const [status, route, service] = ['Status', 'Route', 'Service'].map((label) => select(label, (value) => {
    filter[label.toLowerCase()] = value
    changed()
  }))
  const took = select('Duration', (ms) => {
    filter.where = filter.where.filter((text) => text !== shortest(filter))
    if (ms !== '') filter.where.push(atLeast(ms))
    search.draw()
    changed()
  })
  for (const each of [route, service]) each.addEventListener('focus', fill)
  const element = h('div.filter', { role: 'search' }, search.field, status, route, service, took, search.chips)
  drawSelects()
  fill()

  return {
    element,
    active: isActive,
    focus () {
      fill()
      search.focus()
    },
    /** @returns {boolean} false if there was nothing to clear */
    clear () {
      if (!isActive()) return false
      for (const name of SINGLE) filter[name] = ''
      filter.where = []
      drawSelects()
      search.draw()
      return true
    }
  }

  function isActive () {
    return Object.keys(filterParams(filter)).length > 0
  }

  function drawSelects () {
    fillSelect(status, STATUSES, filter.status)
    fillSelect(took, DURATIONS, msOf(shortest(filter)))
    drawNames()
  }

  // Loads the names of routes and services, and again when the user is about to choose one.
  async function fill () {
    known = (await get('/api/routes')).routes
    drawNames()
  }

  function drawNames () {
    fillSelect(route, namesOf('Any route', known.filter(({ unrouted }) => !unrouted).map(({ route }) => route)), filter.route)
    fillSelect(service, namesOf('Any service', known.map(({ service }) => service)), filter.service)
  }

  function otherChips (chip) {
    return ['exception', 'unrouted'].filter((name) => filter[name] !== '').map((name) =>
      chip({ exception: `exception ${filter.exception}`, unrouted: 'never reached a handler' }[name], () => { filter[name] = '' }))
  }
}

function atLeast (ms) {
  return `duration >= ${ms}ms`
}

/** The condition that the choice of a duration stands for, if there is one. */
function shortest ({ where }) {
  return where.find((text) => msOf(text) !== '')
}

function msOf (text) {
  return DURATIONS.find(([ms]) => ms !== '' && atLeast(ms) === text)?.[0] ?? ''
}

/**
 * A search field. Text searches while it is typed. With Enter, a condition becomes a chip. With Backspace in an empty field, the last chip becomes
 * text again.
 * @param {{ where: string[], q: string }} filter changed in place
 * @param {() => void} changed
 * @param {{ label: string, hints: string[][], more?: (chip: Function) => Node[], hidden?: (text: string) => boolean }} options more: other chips; hidden: conditions without a chip
 */
export function searchField (filter, changed, { label, hints, more = () => [], hidden = () => false }) {
  const hint = h('div.hint', { id: 'hint' })
  const typing = whenTyped(search)
  const { input, element, focus } = searchInput(label, { id: 'search', 'aria-describedby': 'hint', oninput: typed, onkeydown: pressed }, hint)
  const chips = h('div.chips')
  draw()
  return { field: element, chips, draw, close: typing.stop, focus }

  function typed () {
    typing.stop()
    explain()
    // `tenant=ac` is searched as text while it is typed. Other conditions wait for Enter.
    if (!/^\s*(?:!|\S+?\s*(?:[!<>~]|\s=))/.test(input.value)) typing.typed()
  }

  function search () {
    typing.stop()
    if (filter.q === input.value.trim()) return
    filter.q = input.value.trim()
    changed()
  }

  function pressed (event) {
    if (event.key === 'Backspace' && input.value === '' && shown().length > 0) {
      const text = shown().at(-1)
      filter.where.splice(filter.where.lastIndexOf(text), 1)
      drawChips()
      input.value = text
      changed()
      event.preventDefault()
    }
    if (event.key !== 'Enter') return
    event.preventDefault()
    const text = input.value.trim()
    const [, key] = /^([^\s"!=<>~]+)\s*=$/.exec(text) ?? [] // `tenant.id=`: it exists
    if (key === undefined && !isCondition(text)) return search()
    try {
      add(conditionText(key === undefined ? conditionOf(text) : { key, attribute: true, op: '' }))
    } catch (error) {
      explain(error.message)
    }
  }

  function add (text) {
    typing.stop()
    if (!filter.where.includes(text)) filter.where.push(text)
    filter.q = ''
    draw()
    changed()
  }

  function draw () {
    input.value = filter.q
    explain()
    drawChips()
  }

  function shown () {
    return filter.where.filter((text) => !hidden(text))
  }

  function drawChips () {
    const chip = (label, remove) => h('span.chip', bdi(label, CHIP_MAX),
      button(icon('close'), () => { remove(); drawChips(); changed(); input.focus() }, { class: 'bare', 'aria-label': `Remove ${line(label, CHIP_MAX)}` }))
    chips.replaceChildren(...shown().map((text) => chip(text, () => filter.where.splice(filter.where.indexOf(text), 1))), ...more(chip))
  }

  /** @param {string} [problem] what is wrong with the condition that was typed */
  function explain (problem) {
    input.toggleAttribute('aria-invalid', problem !== undefined)
    hint.replaceChildren(...(problem !== undefined
      ? [h('p.bad', { role: 'alert' }, line(problem))]
      : [h('p.quiet', 'Type text to search. Enter turns a condition into a filter:'), h('dl', hints.map(([example, meaning]) => h('div', h('dt', h('code', example)), h('dd.quiet', meaning))))]))
  }
}
