// Exceptions: the same exception in many requests is one row.

import { get, query } from './api.mjs'
import { button, copy, h, scrolling, viewHead } from './dom.mjs'
import { block, clock, line, plural } from './text.mjs'

export function exceptionsView ({ app, host }) {
  const body = scrolling('Exceptions')
  const opened = new Set()
  let loading = false
  app.title('Exceptions')
  host.append(viewHead('Exceptions', 'One row for each service, type, place and message without its numbers and ids.'), body)
  load()
  return { follow: {}, live: (event) => ['routes', 'hello', 'greeting', 'reset'].includes(event) && load(), key }

  async function load () {
    if (loading) return
    loading = true
    try {
      const { exceptions, more } = await get('/api/exceptions', app.interval)
      const focused = body.contains(document.activeElement) ? document.activeElement.closest('details')?.dataset.key : undefined
      body.replaceChildren(...(exceptions.length === 0 ? [h('p.nothing', null, 'Nothing has failed.')] : exceptions.map(row)),
        more > 0 ? h('p.remark', null, `${plural(more, 'more exception was', 'more exceptions were')} not kept.`) : '')
      if (focused !== undefined) body.querySelector(`[data-key="${CSS.escape(focused)}"] summary`)?.focus()
    } finally {
      loading = false
    }
  }

  function row (each) {
    const details = h('details', { class: 'exception-row', 'data-key': each.key, open: opened.has(each.key), ontoggle: () => details.open ? opened.add(each.key) : opened.delete(each.key) },
      h('summary', null,
        h('span.times.bad', null, `${plural(each.count, 'request')}`),
        h('span.what', null, h('bdi.type', null, line(each.type || 'Error', 80)), ' ', h('bdi', null, line(each.message ?? '', 200))),
        h('span.where.quiet', null, h('bdi', null, line(each.route ?? each.service, 80))),
        h('time.quiet.num', null, clock(each.lastMs))),
      h('div.inside', null,
        h('p.sub', null, `First at ${clock(each.firstMs)}, last at ${clock(each.lastMs)}, in `, h('bdi', null, line(each.service || 'no service name', 60)), each.recorded ? '' : '. No exception was recorded: a span failed with this.'),
        each.stack !== null && h('pre', { tabindex: '0', 'aria-label': 'Stack' }, block(each.stack).text),
        h('div.actions', null,
          h('a', { class: 'button', href: '/' + query({ exception: each.key }) }, `Show ${each.count === 1 ? 'the request' : 'its requests'}`),
          each.traces.length > 0 && h('a', { class: 'button', href: `/traces/${encodeURIComponent(each.traces[0])}` }, 'Open the last one'),
          each.stack !== null && button('Copy stack', () => copy(each.stack, 'Stack')))))
    return details
  }

  // The arrow keys move between rows, and so do e (next) and E (previous).
  function key (event) {
    const direction = { ArrowDown: 1, ArrowUp: -1, e: 1, E: -1 }[event.key]
    if (direction === undefined) return false
    const rows = [...body.querySelectorAll('summary')]
    const next = rows.indexOf(document.activeElement) + direction
    rows[Math.max(0, Math.min(rows.length - 1, next))]?.focus()
    return true
  }
}
