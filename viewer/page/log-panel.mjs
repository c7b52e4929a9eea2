// The panel beside the log lines: everything about one line, or about the two lines of a request.

import { get, tracePath } from './api.mjs'
import { lineContent, lineSource, title, valueOf } from './attributes.mjs'
import { fact, h, iconButton, problem } from './dom.mjs'
import { levelMark } from './levels.mjs'
import { clock, duration, line } from './text.mjs'

/** @param {() => void} close */
export function linePanel (close) {
  const element = h('aside.panel', { 'aria-label': 'Log line', tabindex: '-1', hidden: true })
  let shown = ''
  return { element, show }

  /** @param {string} order of the line, or '' for none. @param {string} [other] the order of the first line of the same request */
  async function show (order, other) {
    const wanted = order === '' ? '' : `${order} ${other ?? ''}`
    if (wanted === shown) return
    shown = wanted
    element.hidden = order === ''
    if (order === '') return element.replaceChildren()
    const content = await contentOf(order, other).catch((error) => [h('h2', 'Log line'), problem(error.message)])
    if (wanted !== shown) return
    const [heading, ...rest] = content
    element.replaceChildren(title(heading, iconButton('close', 'Close the panel', close)), ...rest)
    element.scrollTop = 0
  }
}

async function contentOf (order, other) {
  const [record, first] = await Promise.all([order, other].map((each) => each === undefined ? undefined : get(pathOf(each))))
  return [
    h('h2', levelMark(record.level), first ? ' Request' : ' Log line'),
    lineSource(record),
    h('dl.facts',
      fact('Clock', clock(record.timeMs)),
      first && fact('Status', line(valueOf(record, 'res')?.statusCode, 10)),
      first && fact('Duration', duration(valueOf(record, 'responseTime')))),
    h('div.actions', record.row !== null
      ? h('a.button', { href: tracePath(record.trace, { span: record.row }) }, 'Show in its trace')
      : record.trace !== null && h('p.quiet', 'Its trace is not stored.')),
    ...lineContent(record, pathOf(order)),
    ...(first ? lineContent(first, pathOf(other)) : [])
  ]
}

function pathOf (order) {
  return `/api/logs/${encodeURIComponent(order)}`
}
