// The filter of requests. Its fields are the parameters of /api/traces, both in the page's address and in requests to the server.

import { get } from './api.mjs'
import { button, h, icon } from './dom.mjs'
import { line } from './text.mjs'

const SINGLE = ['status', 'route', 'service', 'minMs', 'maxMs', 'q', 'unrouted', 'exception']
const STATUSES = [['', 'Any status'], ['error', 'Failed'], ['2xx', '2xx'], ['3xx', '3xx'], ['4xx', '4xx'], ['5xx', '5xx']]
const DURATIONS = [['', 'Any duration'], ['1', '≥ 1 ms'], ['10', '≥ 10 ms'], ['50', '≥ 50 ms'], ['100', '≥ 100 ms'], ['500', '≥ 500 ms'], ['1000', '≥ 1 s'], ['5000', '≥ 5 s']]
const TYPING_MS = 200

export function filterOf (params) {
  const filter = { attr: params.getAll('attr') }
  for (const name of SINGLE) filter[name] = params.get(name) ?? ''
  return filter
}

export function filterParams (filter) {
  const params = {}
  for (const name of SINGLE) if (filter[name] !== '') params[name] = filter[name]
  if (filter.attr.length > 0) params.attr = filter.attr
  return params
}

/**
 * @param {object} filter changed in place
 * @param {() => void} changed
 */
export function filterBar (filter, changed) {
  const input = h('input', {
    type: 'search', id: 'search', placeholder: 'Search, or attribute=value', 'aria-label': 'Search, or attribute=value', autocomplete: 'off', spellcheck: 'false', oninput: typed, onkeydown: entered
  })
  const status = select('Status', STATUSES, 'status')
  const took = select('Duration', DURATIONS, 'minMs')
  const route = select('Route', [['', 'Any route']], 'route')
  const service = select('Service', [['', 'Any service']], 'service')
  const chips = h('div.chips', null)
  const element = h('div', { class: 'filter', role: 'search' },
    h('label.search', null, icon('search'), input, h('kbd', { 'aria-hidden': 'true' }, '/')),
    status, route, service, took, chips)
  input.value = filter.q
  drawChips()
  fill()

  return {
    element,
    active: () => Object.keys(filterParams(filter)).length > 0,
    focus () {
      fill()
      input.focus()
      input.select()
    },
    /** @returns {boolean} false if there was nothing to clear */
    clear () {
      if (Object.keys(filterParams(filter)).length === 0) return false
      for (const name of SINGLE) filter[name] = ''
      filter.attr = []
      input.value = ''
      for (const [each, name] of [[status, 'status'], [took, 'minMs'], [route, 'route'], [service, 'service']]) each.value = filter[name]
      drawChips()
      return true
    }
  }

  function select (label, options, name) {
    const element = h('select', { 'aria-label': label, onchange: () => { filter[name] = element.value; changed() }, onfocus: name === 'route' || name === 'service' ? fill : undefined })
    choose(element, options, filter[name])
    return element
  }

  // Loads the names of routes and services, and again when the user is about to choose one.
  async function fill () {
    const { routes } = await get('/api/routes')
    choose(route, [['', 'Any route'], ...unique(routes.filter(({ unrouted }) => !unrouted).map(({ route }) => route))], filter.route)
    choose(service, [['', 'Any service'], ...unique(routes.map(({ service }) => service))], filter.service)
  }

  function typed () {
    clearTimeout(typed.timer)
    typed.timer = setTimeout(apply, TYPING_MS)
  }

  function apply () {
    clearTimeout(typed.timer)
    if (filter.q === input.value.trim()) return
    filter.q = input.value.trim()
    changed()
  }

  // Enter turns `user.id=7` into a separate condition.
  function entered (event) {
    if (event.key !== 'Enter') return
    const [, key, value] = /^([^\s=:]+)=(.*)$/.exec(input.value.trim()) ?? []
    if (key !== undefined) {
      filter.attr.push(value === '' ? key : `${key}:${value}`)
      input.value = ''
      filter.q = ''
      clearTimeout(typed.timer)
      drawChips()
      changed()
    } else apply()
    event.preventDefault()
  }

  function drawChips () {
    const chip = (label, remove) => h('span.chip', null, h('bdi', null, line(label, 80)),
      button(icon('close'), () => { remove(); drawChips(); changed(); input.focus() }, { class: 'bare', 'aria-label': `Remove ${line(label, 80)}` }))
    chips.replaceChildren(
      ...filter.attr.map((each) => chip(each.replace(':', ' = '), () => filter.attr.splice(filter.attr.indexOf(each), 1))),
      ...['exception', 'unrouted', 'maxMs'].filter((name) => filter[name] !== '').map((name) =>
        chip({ exception: `exception ${filter.exception}`, unrouted: 'never reached a handler', maxMs: `≤ ${filter.maxMs} ms` }[name], () => { filter[name] = '' })))
  }
}

function choose (select, options, value) {
  if (value !== '' && !options.some(([each]) => each === value)) options.push([value, value])
  select.replaceChildren(...options.map(([each, label]) => h('option', { value: each, selected: each === value }, line(label, 80))))
  select.value = value
  select.classList.toggle('set', value !== '')
}

function unique (names) {
  return [...new Set(names)].filter((name) => name !== '').sort().slice(0, 500).map((name) => [name, name])
}
