// The filter of requests and of log lines. Its fields are the parameters of the API, both in the page's address and in requests to the server.

import { conditionOf, conditionText, isCondition } from '../store/condition.js'
import { get } from './api.mjs'
import { bdi, button, h, icon } from './dom.mjs'
import { line } from './text.mjs'

const SINGLE = ['status', 'route', 'service', 'q', 'unrouted', 'exception']
const STATUSES = [['', 'Any status'], ['error', 'Failed'], ['2xx', '2xx'], ['3xx', '3xx'], ['4xx', '4xx'], ['5xx', '5xx']]
const DURATIONS = [['', 'Any duration'], ['1', '≥ 1 ms'], ['10', '≥ 10 ms'], ['50', '≥ 50 ms'], ['100', '≥ 100 ms'], ['500', '≥ 500 ms'], ['1000', '≥ 1 s'], ['5000', '≥ 5 s']]
const TYPING_MS = 200
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
  const search = searchField(filter, changed, { label: 'Search, or attribute = value', hints: REQUEST_HINTS, more: otherChips, hidden: (text) => text === shortest(filter) })
  const status = select('Status', STATUSES, filter.status, (value) => { filter.status = value })
  const took = select('Duration', DURATIONS, msOf(shortest(filter)), (ms) => {
    filter.where = filter.where.filter((text) => text !== shortest(filter))
    if (ms !== '') filter.where.push(atLeast(ms))
    search.draw()
  })
  const route = select('Route', [['', 'Any route']], filter.route, (value) => { filter.route = value }, fill)
  const service = select('Service', [['', 'Any service']], filter.service, (value) => { filter.service = value }, fill)
  const element = h('div.filter', { role: 'search' }, search.field, status, route, service, took, search.chips)
  fill()

  return {
    element,
    active: () => Object.keys(filterParams(filter)).length > 0,
    focus () {
      fill()
      search.focus()
    },
    /** @returns {boolean} false if there was nothing to clear */
    clear () {
      if (Object.keys(filterParams(filter)).length === 0) return false
      for (const name of SINGLE) filter[name] = ''
      filter.where = []
      for (const each of [status, took, route, service]) each.value = ''
      for (const each of [status, took, route, service]) each.classList.remove('set')
      search.draw()
      return true
    }
  }

  function select (label, options, value, choose, onfocus) {
    const element = h('select', { 'aria-label': label, onchange: () => { choose(element.value); changed() }, onfocus })
    fillSelect(element, options, value)
    return element
  }

  // Loads the names of routes and services, and again when the user is about to choose one.
  async function fill () {
    const { routes } = await get('/api/routes')
    fillSelect(route, [['', 'Any route'], ...unique(routes.filter(({ unrouted }) => !unrouted).map(({ route }) => route))], filter.route)
    fillSelect(service, [['', 'Any service'], ...unique(routes.map(({ service }) => service))], filter.service)
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
  const input = h('input', {
    type: 'search', id: 'search', placeholder: label, 'aria-label': label, 'aria-describedby': 'hint', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', oninput: typed, onkeydown: pressed
  })
  const chips = h('div.chips')
  let timer
  draw()

  return {
    field: h('div.search', icon('search'), input, h('kbd', { 'aria-hidden': 'true' }, '/'), hint),
    chips,
    draw,
    close: () => clearTimeout(timer),
    focus () {
      input.focus()
      input.select()
    }
  }

  function typed () {
    clearTimeout(timer)
    explain()
    // `tenant=ac` is searched as text while it is typed. Other conditions wait for Enter.
    if (!/^\s*(?:!|\S+?\s*(?:[!<>~]|\s=))/.test(input.value)) timer = setTimeout(search, TYPING_MS)
  }

  function search () {
    clearTimeout(timer)
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
    clearTimeout(timer)
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

function fillSelect (select, options, value) {
  if (value !== '' && !options.some(([each]) => each === value)) options.push([value, value])
  select.replaceChildren(...options.map(([each, label]) => h('option', { value: each, selected: each === value }, line(label, 80))))
  select.value = value
  select.classList.toggle('set', value !== '')
}

function unique (names) {
  return [...new Set(names)].filter((name) => name !== '').sort().slice(0, 500).map((name) => [name, name])
}
