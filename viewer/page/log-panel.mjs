// The panel beside the log lines: everything about one line, or about the two lines of a request.

import { get, query } from './api.mjs'
import { bdi, fact, h, iconButton } from './dom.mjs'
import { levelMark } from './logs.mjs'
import { attributes, section, title, value } from './span.mjs'
import { clock, duration, line, textOf } from './text.mjs'

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
    const content = await contentOf(order, other).catch((error) => [h('h2', 'Log line'), h('p.problem', { role: 'alert' }, error.message)])
    if (wanted !== shown) return
    const [heading, ...rest] = content
    element.replaceChildren(title(heading, iconButton('close', 'Close the panel', close)), ...rest)
    element.scrollTop = 0
  }
}

async function contentOf (order, other) {
  const [record, first] = await Promise.all([order, other].map((each) => each === undefined ? undefined : get(pathOf(each))))
  const found = (key) => record.attributes.find((each) => each.key === key)?.value
  return [
    h('h2', levelMark(record.level), first ? ' Request' : ' Log line'),
    h('p.sub', bdi(record.service || 'no service name', 80), ' · ', bdi(`${record.scope.name} ${record.scope.version} ${record.event}`.trim(), 120)),
    h('dl.facts', null,
      fact('Clock', clock(record.timeMs)),
      first && fact('Status', line(textOf(found('res')?.statusCode), 10)),
      first && fact('Duration', duration(found('responseTime')))),
    h('div.actions', record.row !== null
      ? h('a.button', { href: `/traces/${encodeURIComponent(record.trace)}${query({ span: record.row })}` }, 'Show in its trace')
      : record.trace !== null && h('p.quiet', 'Its trace is not stored.')),
    ...members(record, order),
    ...(first ? members(first, other) : [])
  ]
}

function members (record, order) {
  const whole = (pick) => async () => textOf(pick(await get(pathOf(order), { full: '1' })))
  return [
    h('div.message', value(record.body, whole((full) => full.body.value))),
    section('Attributes', record.attributes.length, attributes(record.attributes, 'Attributes', (index) => whole((full) => full.attributes[index].value)), record.dropped)
  ]
}

function pathOf (order) {
  return `/api/logs/${encodeURIComponent(order)}`
}
