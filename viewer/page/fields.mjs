// Selects and search fields.

import { button, h, icon } from './dom.mjs'
import { count, line } from './text.mjs'

const TYPING_MS = 200

/**
 * @param {string} label
 * @param {(value: string) => void} chosen
 * @param {string[][]} [options] value and label
 * @param {string} [value]
 */
export function select (label, chosen, options = [], value) {
  const element = h('select', { 'aria-label': label, onchange: () => { mark(element); chosen(element.value) } })
  fillSelect(element, options, value)
  return element
}

/** Gives a select its options. The chosen value is kept as an option if it is not one of them. */
export function fillSelect (element, options, value = '') {
  const all = value === '' || options.some(([each]) => each === value) ? options : [...options, [value, value]]
  element.replaceChildren(...all.map(([each, label]) => h('option', { value: each, selected: each === value }, line(label, 80))))
  mark(element)
}

/** The options of a select that chooses one of these names. @param {string} any the label for all of them */
export function namesOf (any, names) {
  return [['', any], ...[...new Set(names)].filter(Boolean).sort().slice(0, 500).map((name) => [name, name])]
}

function mark (element) {
  element.classList.toggle('set', element.value !== '')
}

/** A search field. @param {any[]} more what else belongs to it */
export function searchInput (label, props, ...more) {
  const input = h('input', { type: 'search', placeholder: label, 'aria-label': label, autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', ...props })
  return {
    input,
    element: h('div.search', icon('search'), input, h('kbd', { 'aria-hidden': true }, '/'), more),
    focus () {
      input.focus()
      input.select()
    }
  }
}

/** Calls `act` when the user stops typing. */
export function whenTyped (act) {
  let timer
  const stop = () => clearTimeout(timer)
  return {
    stop,
    typed () {
      stop()
      timer = setTimeout(act, TYPING_MS)
    }
  }
}

/** Buttons of which one is chosen. @param {Record<string, string>} options keys and labels */
export function choice (label, options, chosen) {
  return h('div.choice', { role: 'group', 'aria-label': label }, Object.entries(options).map(([key, text]) => button(text, () => chosen(key))))
}

/** Shows which of these buttons is chosen. */
export function press (group, index) {
  for (const [i, each] of [...group.children].entries()) each.ariaPressed = i === index
}

/** A button that pauses a list. */
export function pauseButton (pause) {
  const element = button('', pause)
  draw(false)
  return { element, draw }

  /** @param {number} [held] what came meanwhile */
  function draw (paused, held = 0) {
    element.replaceChildren(icon(paused ? 'play' : 'pause'), paused ? `Resume${held > 0 ? ` (${count(held)} new)` : ''}` : 'Pause')
    element.ariaPressed = paused
  }
}
