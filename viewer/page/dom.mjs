// All elements are made here. Text is added only as text nodes, and a link may lead only to this page or to a file in an editor, so that
// no value can become a script.

import { within } from './numbers.mjs'
import { line } from './text.mjs'

/**
 * @param {string} tag `name.class.class`
 * @param {...any} children The first may be the element's properties: on… are listeners, style is a map of properties, all others are attributes;
 *   false omits an attribute, except of aria.
 */
export function h (tag, ...children) {
  const [name, ...classes] = tag.split('.')
  const element = document.createElement(name)
  if (classes.length > 0) element.className = classes.join(' ')
  if (children[0]?.constructor === Object) for (const [name, value] of Object.entries(children.shift())) set(element, name, value)
  element.append(...children.flat(3).filter((child) => child !== undefined && child !== null && child !== false))
  return element
}

function set (element, name, value) {
  const isState = name.startsWith('aria-') // has values true and false
  if (value === undefined || value === null || (value === false && !isState)) return
  if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
  else if (name === 'style') for (const [property, to] of Object.entries(value)) element.style.setProperty(property, to)
  else if (name === 'href' && !/^(?:#|(?:vscod(?:e|e-insiders|ium)|cursor|windsurf|zed):\/\/file\/|\/(?!\/))/.test(value)) throw new Error(`Bug: a link to ${value}`)
  else element.setAttribute(name, value === true && !isState ? '' : value)
}

/** A sender's text in one line. The direction in which it is written ends with it. */
export function bdi (text, max) {
  return h('bdi', line(text, max))
}

const ICONS = {
  back: 'M10 3 5 8l5 5',
  close: 'm4 4 8 8M12 4l-8 8',
  sun: 'M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  moon: 'M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5Z',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  play: 'M5 3.5v9l7-4.5Z',
  search: 'M7 3a4 4 0 1 0 0 8 4 4 0 0 0 0-8M10 10l3.5 3.5',
  up: 'm4 10 4-4 4 4',
  down: 'm4 6 4 4 4-4',
  help: 'M6 6a2 2 0 1 1 2.8 1.8c-.5.3-.8.7-.8 1.4M8 11.6v.2',
  clock: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M8 5v3l2 1.5',
  load: 'M8 10V2M5 5l3-3 3 3M3 13h10'
}
const SVG = 'http://www.w3.org/2000/svg'

export function icon (name) {
  return drawn(ICONS[name])
}

/** A picture of one line, in the size of an icon. */
export function drawn (d) {
  return svg('svg', { viewBox: '0 0 16 16', width: '16', height: '16', 'aria-hidden': true, class: 'icon' }, svg('path', { d }))
}

/** An element of SVG. */
export function svg (name, props, ...children) {
  const element = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(props)) set(element, key, value)
  element.append(...children)
  return element
}

export function button (label, onclick, props) {
  return h('button', { type: 'button', onclick, ...props }, label)
}

export function iconButton (name, label, onclick, props) {
  return button(icon(name), onclick, { class: 'bare', 'aria-label': label, title: label, ...props })
}

/** The head of a view: its name, a back button, and a line that describes what it shows. */
export function viewHead (title, below, back) {
  return h('div.view-head', h('div.title', back && iconButton('back', ...back), h('h1', title)), below && h('p.sub', below))
}

/** A region that scrolls, also by keyboard. */
export function scrolling (label, padded) {
  return h('div', { class: padded ? 'scroll pad' : 'scroll', tabindex: '0', role: 'region', 'aria-label': label })
}

/** A name and its value, in a list of facts. */
export function fact (label, value, bad) {
  return h('div', h('dt', label), h('dd', { class: bad ? 'bad' : undefined }, value))
}

/** A table with a caption for screen readers. Cells are nodes or text; numeric columns start with `#`. @param {string} classes `.class.class` */
export function table (classes, caption, columns, rows) {
  const props = columns.map((name) => ({ class: name.startsWith('#') && 'num' }))
  return tableOf(classes, caption,
    columns.map((name, index) => h('th', { scope: 'col', ...props[index] }, name.replace('#', ''))),
    rows.map((cells) => h('tr', cells.map((value, index) => h('td', props[index], value)))))
}

/** A table of these heads and rows. */
export function tableOf (classes, caption, heads, rows) {
  return h(`table${classes}`, h('caption.sr', caption), h('thead', h('tr', heads)), h('tbody', rows))
}

export function problem (message) {
  return h('p.problem', { role: 'alert' }, message)
}

/** A button that looks like a link. */
export function linkButton (label, onclick, props) {
  return button(label, onclick, { class: 'link', ...props })
}

/** An id, which a click copies. */
export function idButton (id, what) {
  return button(line(id), () => copy(id, what), { class: 'id', title: 'Copy' })
}

/** Redraws the content of an element. What had the focus has it again if its data-key is there again. */
export function redrawn (element, draw) {
  const { key } = element.contains(document.activeElement) ? document.activeElement.dataset : {}
  draw()
  if (key !== undefined) keyed(element, key)?.focus({ preventScroll: true })
}

/** The element that has this data-key. */
export function keyed (element, key) {
  return element.querySelector(`[data-key="${CSS.escape(key)}"]`)
}

/** Whether a click is to open something in this page, not in another tab or window. */
export function isPlain (event) {
  return event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
}

/** Calls `act` after the current content of the page has been painted. */
export function afterPaint (act) {
  requestAnimationFrame(() => setTimeout(act))
}

/** Moves the focus from one of these elements to the next or, with -1, the previous one; at first to the first. @returns {Element | undefined} where it is */
export function focusNext (elements, step) {
  const all = [...elements]
  const next = all[within(0, all.findIndex((each) => each.contains(document.activeElement)) + step, all.length - 1)]
  next?.focus()
  return next
}

/** Shows a message for a moment, and announces it to screen readers. */
export function say (message) {
  const toast = document.getElementById('said')
  toast.textContent = message
  toast.classList.add('shown')
  clearTimeout(say.timer)
  say.timer = setTimeout(() => toast.classList.remove('shown'), 2500)
}

export async function copy (text, what) {
  try {
    await navigator.clipboard.writeText(text)
    say(`${what} copied`)
  } catch {
    const area = h('textarea.sr', { 'aria-hidden': true })
    area.value = text
    document.body.append(area)
    area.select()
    say(document.execCommand('copy') ? `${what} copied` : 'The browser did not let the page copy')
    area.remove()
  }
}
