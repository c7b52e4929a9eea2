// The rows of the log page, newest first. Fastify writes a line when a request arrives and another when it is answered: these two are one row.

import { bdi, button, focusNext, h, icon, isPlain } from './dom.mjs'
import { levelMark } from './levels.mjs'
import { statusMark } from './request-line.mjs'
import { clock, duration, line } from './text.mjs'

const TEXT_MAX = 2000

/**
 * @param {HTMLElement} body
 * @param {{ show: (order: string, other?: string) => void, address: (order: string) => string }} options `other`: the order of the first line, if the
 *   row is of two
 */
export function logRows (body, { show, address }) {
  const rows = new Map() // by orders, so that a row that stays keeps its focus

  return { draw, mark, key, focus: (order) => linkOf(order)?.focus(), otherOf: (order) => [...rows.values()].find((row) => row.order === order)?.other }

  function draw (lines, every) {
    const wanted = new Map((every ? lines.map((each) => ({ line: each })) : folded(lines)).map((each) => [`${each.line.order} ${each.line.row} ${each.first?.order}`, each]))
    const focused = body.contains(document.activeElement) ? document.activeElement.dataset.order : undefined
    for (const [key, { element }] of rows) {
      if (wanted.has(key)) continue
      element.remove()
      rows.delete(key)
    }
    let next = body.firstChild
    for (const [key, each] of wanted) {
      if (!rows.has(key)) rows.set(key, rowOf(each))
      const { element } = rows.get(key)
      if (element === next) next = next.nextSibling
      else body.insertBefore(element, next)
    }
    if (focused !== undefined && document.activeElement === document.body) linkOf(focused)?.focus()
  }

  function rowOf ({ line: last, first }) {
    const order = String(last.order)
    if (first === undefined) return { order, element: h('div.log-row', link(last, textOf(last))) }
    const other = String(first.order)
    const both = h('div.both', { hidden: true })
    const name = line(`${first.request.method} ${first.request.url}`, 120)
    const twist = button(icon('play'), () => {
      both.hidden = !both.hidden
      both.replaceChildren(...both.hidden ? [] : [link(last, textOf(last), other), link(first, textOf(first))])
      twist.ariaExpanded = !both.hidden
    }, { class: 'bare', 'aria-expanded': false, 'aria-label': `Both lines of ${name}` })
    return { order, other, element: h('div.log-row', twist, link(last, requestText(first.request, last.request), other), both) }
  }

  function link (each, content, other) {
    const order = String(each.order)
    return h('a.log', { href: address(order), 'data-order': order, 'data-other': other, onclick: (event) => opened(event, order, other) },
      h('time.quiet', clock(each.timeMs)), levelMark(each.level), h('span.what', content), h('bdi.whose.quiet', line(each.service, 60)))
  }

  // Without this, the page would open its address again, and scroll to the top.
  function opened (event, order, other) {
    if (!isPlain(event)) return
    event.preventDefault()
    event.stopPropagation()
    show(order, other)
  }

  /** The row that has a line: its own row, or the row of the request. */
  function linkOf (order) {
    return body.querySelector(`[data-order="${CSS.escape(order)}"], [data-other="${CSS.escape(order)}"]`)
  }

  function mark (order) {
    for (const each of body.querySelectorAll('[aria-current]')) each.ariaCurrent = null
    if (order !== '') linkOf(order)?.setAttribute('aria-current', true)
  }

  /** The arrow keys move between rows, and expand those of two lines. The panel follows. */
  function key ({ key }, follow) {
    if (document.activeElement.closest('.panel')) return false
    const direction = { ArrowDown: 1, ArrowUp: -1 }[key]
    if (direction !== undefined) {
      const next = focusNext(body.querySelectorAll('.log'), direction)
      if (follow && next !== undefined) show(next.dataset.order, next.dataset.other)
      return true
    }
    const twist = document.activeElement.closest('.log-row')?.querySelector('[aria-expanded]')
    if (!['ArrowLeft', 'ArrowRight'].includes(key) || !body.contains(twist)) return false
    if ((twist.ariaExpanded === 'true') === (key === 'ArrowLeft')) {
      if (document.activeElement.closest('.both')) twist.focus()
      twist.click()
    }
    return true
  }
}

// Each end of a request with the nearest start before it. Lines of a request that has only one of the two stay as they are.
function folded (lines) {
  const starts = new Map()
  const firsts = new Map() // by the order of the last line
  for (const each of lines.toReversed()) {
    const { request } = each
    if (request === undefined) continue
    if (!starts.has(request.of)) starts.set(request.of, [])
    if (request.method !== undefined) starts.get(request.of).push(each)
    else if (starts.get(request.of).length > 0) firsts.set(each.order, starts.get(request.of).pop())
  }
  const hidden = new Set([...firsts.values()].map(({ order }) => order))
  return lines.filter(({ order }) => !hidden.has(order)).map((each) => ({ line: each, first: firsts.get(each.order) }))
}

function textOf ({ text, rest }) {
  return [bdi(text, TEXT_MAX), ' ', h('bdi.quiet', line(rest, TEXT_MAX))]
}

function requestText ({ method, url }, { status, durationMs }) {
  return [h('span.method', line(method, 12)), ' ', bdi(url, TEXT_MAX), ' ', statusMark(status, { 'aria-label': `status ${status}`, role: 'img' }), ' ', h('span.took', duration(durationMs))]
}
