// One request in one line: status, method, route, path and notes. The list uses all of it, and the head of a trace uses parts.

import { tracePath } from './api.mjs'
import { h } from './dom.mjs'
import { sum } from './numbers.mjs'
import { clock, count, duration, line, plural } from './text.mjs'
import { gridCell } from './virtual.mjs'

export function requestCells (trace) {
  return [
    gridCell('time', clock(trace.startMs)),
    gridCell('status', statusBadge(trace)),
    gridCell('what', h('span.request', ...requestName(trace)), whyOf(trace)),
    gridCell('service', h('bdi', { title: trace.services.map(({ name }) => line(name)).join(', ') }, line(trace.service || 'no name', 60)), trace.services.length > 1 ? h('span.quiet', ` +${trace.services.length - 1}`) : ''),
    gridCell('took', h('span.length', { style: { '--part': lengthOf(trace.durationMs) } }), h('span', duration(trace.durationMs))),
    gridCell('spans', count(trace.spans)),
    gridCell('flags', ...flagsOf(trace, { tabindex: '-1' }))
  ]
}

// What went wrong. An error of a request that has not failed, such as a 409, is not red.
function whyOf ({ error, state }) {
  return error !== null && h('bdi.why', h('span', { class: state === 'error' ? 'bad' : 'mild' }, line(error.type ?? '', 60)), ' ', line(error.message ?? '', 160))
}

/** The length of the bar for a duration, on a logarithmic scale from 0.1 ms to 100 s. */
function lengthOf (ms) {
  return Math.max(0.03, Math.min(1, (Math.log10(Math.max(ms, 0.1)) + 1) / 6)).toFixed(3)
}

export function statusBadge ({ status, state }) {
  if (status === null || status === undefined) return h('span', { class: `code ${state === 'error' ? 'c5' : 'c0'}` }, state === 'error' ? 'error' : 'ok')
  const kind = state === 'error' ? 'c5' : `c${Math.min(4, Math.floor(status / 100))}`
  return h('span', { class: `code ${kind}` }, String(status), state === 'error' && status < 500 ? h('span.sr', ' failed') : '')
}

/** An HTTP status, in the colour of its class. */
export function statusMark (status, props) {
  return h('span', { class: `code c${Math.floor(status / 100)}`, ...props }, line(status, 10))
}

export function requestName (trace) {
  const [method, ...rest] = (trace.route ?? '').split(' ')
  const path = trace.path ?? ''
  if (trace.route !== null) {
    const route = rest.join(' ')
    return [h('span.method', line(method, 12)), h('bdi.route', line(route)), path === route || path === '' ? '' : h('bdi.path', line(path))]
  }
  if (trace.method !== null && path !== '') {
    return [h('span.method', line(trace.method, 12)), h('bdi.route', line(path)), trace.unrouted ? h('span.path', 'no route') : '']
  }
  return [h('span.method', trace.kind.toLowerCase()), h('bdi.route', line(trace.name || 'no name'))]
}

/** Notes about a trace. A note about one span is a link to that span, whose panel has the details. */
export function flagsOf (trace, props) {
  return notesOf(trace).map(([label, title, span]) => span === undefined
    ? h('span.flag', { title }, label)
    : h('a.flag', { title, href: tracePath(trace.id, { span }), 'data-span': span, ...props }, label))
}

// Each has a short label, a sentence, and the id of the span that it is about.
function notesOf (trace) {
  const { blocked, repeats } = trace
  return [
    blocked !== null && [blocked.role === 'culprit' ? 'blocked the loop' : 'loop blocked', `The event loop was blocked for ${duration(blocked.ms)} ${line(blocked.place)}`.trim(), blocked.span],
    repeats !== null && [`${count(repeats.count)} × ${line(repeats.shape, 40)}`, repeatText(repeats), repeats.span],
    !trace.root && ['no root', 'The root span was not received'],
    trace.errors > 0 && trace.state === 'ok' && [`${count(trace.errors)} failed inside`, 'The request itself did not fail'],
    trace.orphans > 0 && [`${count(trace.orphans)} ${trace.orphans === 1 ? 'orphan' : 'orphans'}`, `The parent of ${plural(trace.orphans, 'span')} was not received`],
    trace.late > 0 && [`${count(trace.late)} late`, `${plural(trace.late, 'span')} arrived more than two seconds after the root`],
    trace.dropped > 0 && [`${count(trace.dropped)} dropped`, `The viewer did not keep ${plural(trace.dropped, 'span')}`]
  ].filter(Boolean)
}

/** The time for which a row of the waterfall is on the critical path. */
export function criticalMs ({ critical = [] }) {
  return sum(critical.map(([start, end]) => end - start))
}

/** The same sentence as in the terminal. */
export function repeatText ({ shape, count: calls, savedMs }) {
  return `${plural(calls, 'call')} in sequence: ${line(shape)}${savedMs > 0 ? `; batching them could save up to ${duration(savedMs)}` : ''}`
}
