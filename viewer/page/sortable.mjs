// A table whose heads sort it.

import { button, h, tableOf } from './dom.mjs'

/**
 * @param {object} options
 * @param {string} options.classes `.class.class`
 * @param {string} options.caption for screen readers
 * @param {[label: string, key: string, title?: string][]} options.columns
 * @param {Node[]} [options.more] heads after those
 * @param {object[]} options.rows
 * @param {{ by: string, down: boolean }} options.order changed in place
 * @param {() => void} options.changed
 * @param {(row: object) => Node} render makes the element of a row
 */
export function sortableTable ({ classes, caption, columns, more = [], rows, order, changed }, render) {
  const { by, down } = order
  const head = ([label, key, title]) => h('th', { scope: 'col', class: `${isText(key) ? '' : 'num'} k-${key}`, title, 'aria-sort': key === by ? (down ? 'descending' : 'ascending') : undefined },
    button(label, () => {
      order.down = key === by ? !down : !isText(key)
      order.by = key
      changed()
    }, { class: 'sort', 'data-key': `sort ${key}` }))
  const sorted = rows.toSorted((a, b) => (down ? -1 : 1) * (isText(by) ? a[by].localeCompare(b[by]) : (a[by] ?? 0) - (b[by] ?? 0)))
  return tableOf(`.wide-table${classes}`, caption, [columns.map(head), more], sorted.map(render))
}

/** Whether a column has texts. These are sorted upwards at first, and numbers downwards. */
export function isText (key) {
  return ['name', 'route', 'service'].includes(key)
}
