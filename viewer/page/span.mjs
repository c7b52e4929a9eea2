// The panel beside the waterfall: everything about one span.

import { get, getText, tracePath } from './api.mjs'
import { attributes, attributesSection, lineContent, lineSource, section, title, valueOf, wholeOf } from './attributes.mjs'
import { bdi, button, copy, fact, h, iconButton, idButton, linkButton, problem } from './dom.mjs'
import { levelMark } from './levels.mjs'
import { criticalMs, repeatText, requestName } from './request-line.mjs'
import { foldText } from './waterfall.mjs'
import { WAITS, WAIT_MEANINGS, block, clock, count, duration, line, plural } from './text.mjs'

const STACK = /stacktrace$|\bstack\b/

// How to make one call of many, by the system of the calls. Other systems with statements have SQL.
const ANY = 'WHERE id = ANY($1)'
const BATCHES = { postgresql: ANY, cockroachdb: ANY, redis: 'MGET or a pipeline', mongodb: '$in', elasticsearch: '_mget' }

/**
 * @param {{ summary, row, show: (spanId: string) => void, close: () => void }} options
 * @returns {Promise<Node[]>}
 */
export async function spanPanel ({ summary, row, show, close }) {
  const closer = iconButton('close', 'Close the panel', close)
  if (row.missing) return [title(h('h2', 'Parent not received'), closer), missing(row)]
  if (row.fold !== undefined) return fold(row, summary, closer, show)
  const path = `/api${tracePath(summary.id)}/${row.line === undefined ? 'spans' : 'lines'}/${row.id}`
  let span
  try {
    span = await get(path)
  } catch (error) {
    return [title(h('h2', line(row.name)), closer), problem(error.message)]
  }
  if (row.line !== undefined) return logLine(span, row, path, closer, show)
  const whole = wholeOf(path)
  const exceptions = span.events.filter(({ name }) => name === 'exception')
  return [
    title(h('h2', bdi(span.name || 'no name')), closer),
    h('p.sub', bdi(span.service || 'no service name', 80), ` · ${span.kind.toLowerCase()}`, span.scope.name === '' ? '' : [' · ', bdi(`${span.scope.name} ${span.scope.version}`.trim(), 80)]),
    h('dl.facts', facts(span, row)),
    span.status.code === 'ERROR' && (span.status.message !== '' || exceptions.length === 0) && h('p.error-line', h('b', 'Failed'), ' ', bdi(span.status.message, 1000)),
    ...notes(span, row, show),
    span.repeats && section('Repeated calls', span.repeats.count, repeated(span.repeats, span.durationMs)),
    span.blocked && section('Blocked event loop', undefined, await blockedLoop(span.blocked)),
    ...exceptions.map((event) => exception(event, span.status.code === 'ERROR', whole((full) => valueOf(full.events[span.events.indexOf(event)], 'exception.stacktrace')))),
    attributesSection('Attributes', span, whole, span.dropped.attributes, true, true),
    (span.events.length > exceptions.length || span.dropped.events > 0) && section('Events', span.events.length, events(span), span.dropped.events),
    (span.links.length > 0 || span.dropped.links > 0) && section('Links', span.links.length, links(span, summary, show), span.dropped.links),
    attributesSection('Resource', span, whole, 0, false, true),
    section('Ids', undefined, ids(span, summary), 0, false),
    h('div.actions', button('Copy subtree as text', async () => copy(await getText(`/api${tracePath(summary.id)}/text`, { span: span.id }), 'Subtree')))
  ].filter(Boolean)
}

function logLine (record, row, path, closer, show) {
  return [
    title(h('h2', levelMark(record.level), ' Log line'), closer),
    lineSource(record),
    h('dl.facts', fact('At', `+${duration(row.start)}`), fact('Clock', clock(record.timeMs)), row.above && fact('Span', linkButton(line(row.above.name, 60) || 'not received', () => show(row.above.id)))),
    ...lineContent(record, path)
  ]
}

function missing (row) {
  return h('div',
    h('p', 'The spans below name this span as their parent, but it has not been received. Its row is filled when it arrives.'),
    h('p', 'It may be on its way, not sampled or lost. Its service may also send its spans to another place.'),
    h('dl.facts', fact('Span', line(row.id)), fact('Below it', plural(row.below, 'span'))))
}

// Calls that the page folded. If light-trace reported them, the details are in the span that made them.
async function fold (row, summary, closer, show) {
  const parent = row.above === undefined || row.above.missing ? null : await get(`/api${tracePath(summary.id)}/spans/${row.above.id}`).catch(() => null)
  const repeats = parent?.repeats
  const isReported = repeats && (row.name === repeats.shape || row.name === `${repeats.system} ${repeats.shape}`)
  return [
    title(h('h2', bdi(row.name)), closer),
    h('p.remark', `${foldText(row)}. The right and left arrow keys expand and collapse them.`),
    row.above && h('dl.facts', fact('Made by', linkButton(line(row.above.name, 60) || 'a span that was not received', () => show(row.above.id)))),
    isReported && section('Repeated calls', repeats.count, repeated(repeats, parent.durationMs))
  ].filter(Boolean)
}

/** What was repeated, and how to avoid it. */
function repeated (repeats, durationMs) {
  const { system, statements, more, savedMs } = repeats
  const how = Object.hasOwn(BATCHES, system) ? BATCHES[system] : statements.length > 0 ? 'WHERE id IN (…)' : 'a call that takes a list'
  const isWrite = /^(?:\S+ )?(?:INSERT|UPDATE|DELETE|SET|DEL|HSET)\b/i.test(repeats.shape)
  return [
    h('p', h('bdi', repeatText({ ...repeats, savedMs: 0 })), '.'),
    statements.map(({ text, count: calls }) => h('pre', { tabindex: '0', 'aria-label': 'Statement' }, statements.length + more > 1 ? h('b', `${count(calls)} × `) : '', block(text).text)),
    more > 0 && h('p.quiet', `and ${plural(more, 'more statement')}`),
    h('p', isWrite ? 'Write them with one call: a statement with several rows, or a batch.' : ['Load them with one call: ', h('code', how), '. In resolvers and similar code, DataLoader collects the ids.']),
    savedMs > 0 && h('p', `That could save up to ${duration(savedMs)} of ${duration(durationMs)}.`)
  ].filter(Boolean)
}

function facts (span, row) {
  const critical = criticalMs(row)
  return [
    fact('Duration', duration(span.durationMs)),
    fact('Own time', duration(row.self)),
    critical > 0 && fact('Critical', duration(critical)),
    ...(row.waits ?? []).map((ms, i) => ms > 0 && fact(h('span', { title: WAIT_MEANINGS[i] }, h('i', { class: `dot w${i}` }), WAITS[i]), duration(ms))),
    fact('Starts at', `+${duration(row.start)}`),
    fact('Clock', clock(span.startMs))
  ].filter(Boolean)
}

function notes (span, row, show) {
  const note = (...text) => h('p.remark', ...text)
  return [
    row.shift !== undefined && note(`Its times were moved by ${duration(row.shift)}, because the clock of this service differs from its caller’s clock.`),
    row.cycle && note('Its parent is one of its descendants, so it is shown as a root.'),
    row.afterResponse && note('It ended after its request: a promise was not awaited, or the work was meant to continue.'),
    row.neverEnded && note('It was never ended. It was still open when the application ended.'),
    row.late && note('It arrived more than two seconds after the root.'),
    span.same?.length > 0 && note(`Its id is used ${span.same.length + 1} times in this trace, also by `, ...span.same.map((each) => linkButton(line(each.name, 60), () => show(each.id))))
  ].filter(Boolean)
}

// All requests that were open during the same blocked loop. The request whose code blocked the loop comes first.
async function blockedLoop ({ id, culprit, text, code }) {
  const { traces } = await get('/api/traces', { q: id, limit: 50 }).catch(() => ({ traces: [] }))
  traces.sort((a, b) => (b.id === culprit) - (a.id === culprit))
  return [
    h('p.place', ...withPlace(line(text, 600), code)),
    h('ol.events', traces.map((trace) => h('li', h('a', { href: tracePath(trace.id) }, ...requestName(trace)), ' ', duration(trace.durationMs), trace.id === culprit && h('b', ' blocked it'))))
  ]
}

// The sentence. Its file and line are a link to the editor if the file is on the viewer's machine.
function withPlace (text, code) {
  const place = code?.open && `${line(code.file, 600)}:${code.line}`
  const at = place ? text.indexOf(place) : -1
  return at < 0 ? [h('bdi', text)] : [h('bdi', text.slice(0, at)), h('a', { href: code.open, title: 'Open in the editor' }, h('bdi', place)), text.slice(at + place.length)]
}

function exception (event, failed, whole) {
  const of = (name) => valueOf(event, `exception.${name}`)
  const stack = block(of('stacktrace'))
  const cut = event.attributes.find(({ key }) => key === 'exception.stacktrace')?.cut
  return h('section.exception', { 'aria-label': 'Exception' },
    h('h3', { class: failed ? 'bad' : 'mild' }, bdi(of('type') ?? 'Exception', 120), h('span.quiet', ` at +${duration(event.at)}`)),
    h('p', bdi(of('message'), 2000)),
    stack.text !== '' && h('pre', { tabindex: '0', 'aria-label': 'Stack' }, ...stack.text.split('\n').map((row) =>
      h('span', { class: /node_modules|node:|^(?!\s*at )/.test(row) ? 'quiet' : '' }, `${row}\n`))),
    stack.text !== '' && h('div.actions', button('Copy stack', async () => copy(cut ? await whole() : of('stacktrace'), 'Stack'))))
}

function events (span) {
  return h('ol.events', span.events.filter(({ name }) => name !== 'exception').map((event) =>
    h('li', h('span.num.quiet', `+${duration(event.at)}`), ' ', bdi(event.name),
      event.attributes.length > 0 && attributes(event.attributes.filter(({ key }) => !STACK.test(key)), 'Attributes of the event', () => async () => ''),
      event.dropped > 0 && h('p.remark', `${plural(event.dropped, 'attribute')} dropped`))))
}

function links (span, summary, show) {
  return h('ul.links', span.links.map((each) => {
    const label = `span ${line(each.span, 16)} of trace ${line(each.trace, 32)}`
    return h('li',
      each.trace === summary.id
        ? linkButton(`span ${line(each.span, 16)} of this trace`, () => show(each.span))
        : each.held
          ? h('a', { href: tracePath(each.trace, { span: each.span }) }, label)
          : h('span.quiet', `${label}, not received`),
      each.attributes.length > 0 && attributes(each.attributes, 'Attributes of the link', () => async () => ''))
  }))
}

function ids (span, summary) {
  const id = (name, text) => text !== '' && h('tr', h('th', { scope: 'row' }, name), h('td', idButton(text, name)))
  return h('table.attributes', h('caption.sr', 'Ids'), h('tbody',
    ...[id('Trace', summary.id), id('Span', span.id), id('Parent', span.parent ?? ''), id('Trace state', span.traceState ?? '')].filter(Boolean)))
}
