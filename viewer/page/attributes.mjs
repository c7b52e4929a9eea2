// What the panels of spans and log lines show alike: a title, sections, attributes, and long values.

import { LENGTH_MAX, conditionText } from '../store/condition.js'
import { get, query } from './api.mjs'
import { bdi, copy, h, linkButton } from './dom.mjs'
import { LINE_MAX, block, count, line, textOf } from './text.mjs'

const VALUE_SHOWN = 2000
const VALUE_MAX = 200_000

export function title (heading, closer) {
  return h('div.title', heading, closer)
}

export function section (name, size, content, dropped = 0, open = true) {
  return h('details', { open }, h('summary', h('h3', name), size === undefined ? '' : h('span.quiet', ` ${count(size)}`)),
    content,
    dropped > 0 && h('p.remark', `${count(dropped)} more ${dropped === 1 ? 'was' : 'were'} dropped before the span was sent.`))
}

/** The value of an attribute. */
export function valueOf ({ attributes }, key) {
  return attributes.find((each) => each.key === key)?.value
}

/** Loads long values, which the first answer has cut. @param {string} path of the record in the API */
export function wholeOf (path) {
  return (pick) => async () => textOf(pick(await get(path, { full: '1' })))
}

/** The line below the title of a log line. */
export function lineSource ({ service, scope, event }) {
  return h('p.sub', bdi(service || 'no service name', 80), ' · ', bdi(`${scope.name} ${scope.version} ${event}`.trim(), 120))
}

/** The message and the attributes of a log line. */
export function lineContent (record, path) {
  const whole = wholeOf(path)
  return [h('div.message', value(record.body, whole(({ body }) => body.value))), attributesSection('Attributes', record, whole, record.dropped)]
}

/** All attributes of a span or a log line, or of its resource. @param {'Attributes' | 'Resource'} name */
export function attributesSection (name, record, whole, dropped, open, filter) {
  const key = name.toLowerCase()
  return section(name, record[key].length, attributes(record[key], name, (index) => whole((full) => full[key][index].value), filter), dropped, open)
}

/** @param {(index: number) => () => Promise<string>} whole loads a value that was cut */
export function attributes (list, caption, whole, filter = false) {
  if (list.length === 0) return h('p.quiet', 'None')
  return h('table.attributes', h('caption.sr', caption), h('tbody', list.map((each, index) => {
    const text = textOf(each.value)
    const condition = conditionText({ key: each.key, attribute: true, op: '=', value: text })
    const shown = value(each, whole(index))
    return h('tr',
      h('th', { scope: 'row' }, bdi(each.key, 120)),
      h('td', { class: `v-${each.type}` }, each.open ? h('a', { href: each.open, title: 'Open in the editor' }, shown) : shown,
        filter && text.length <= LINE_MAX && condition.length <= LENGTH_MAX && h('a.filter-by', { href: '/' + query({ where: condition }), 'aria-label': `Requests with ${line(each.key, 120)} = ${line(text, 60)}`, title: 'Requests with this value' }, '=')))
  })))
}

function value ({ value, cut }, whole) {
  const text = textOf(value)
  if (text === '') return h('span.quiet', 'empty')
  const shown = block(text, VALUE_SHOWN)
  const host = h('bdi.value', shown.text)
  if (shown.left === 0 && !cut) return host
  const all = async () => cut ? await whole() : text
  const copyAll = () => linkButton('Copy all', async () => copy(await all(), 'Value'))
  const more = h('span.cut', cut ? '… cut ' : `… ${count(shown.left)} more characters `,
    linkButton('Show more', async () => {
      const { text, left } = block(await all(), VALUE_MAX)
      host.textContent = text
      more.replaceChildren(left > 0 ? `… ${count(left)} more characters are not shown ` : '', copyAll())
    }), ' ', copyAll())
  return h('div', host, more)
}
