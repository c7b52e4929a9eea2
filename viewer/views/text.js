'use strict'

// Formats a trace as text for a terminal, a chat or an assistant.
//
//   GET /users/:id  500  12.5 ms  shop  4bf92f3577b34da6a3ce929d0e0e4736
//
//   SERVER GET /users/:id           12.5 ms  500 ERROR TypeError: x is undefined
//     slow: 9.8 ms waiting, 2.6 ms busy event loop
//     waited 612 ms while another request blocked the event loop at search (/app/search.js:14), trace 0af7651916cd43dd8448eb211c80319c
//     WARN  +1.2 ms  no such user  user=7
//     CLIENT GET                     8.2 ms  200  stock

const { readEvents, readMessage, readSpan, kindName } = require('../otlp/span-detail')
const { plain } = require('../otlp/attributes')
const { EXCEPTION } = require('../otlp/span-facts')
const { STATUS_ERROR } = require('../otlp/names')
const { summaryOf } = require('../store/summary')
const { blockedOf, blockedText } = require('./blocked')
const { callName } = require('./call-name')
const { clockText } = require('./clock')
const { layOut } = require('./layout')
const { lineText, withLines } = require('./log-lines')
const { plural, safeText } = require('./safe-text')
const { repeatsOf, repeatText, marksOf } = require('./repeats')
const { waitsOf, waitText } = require('./waits')

const ROWS_MAX = 2000
const INDENT_MAX = 60
const NAME_WIDTH_MAX = 72
const VALUE_MAX = 300
const ATTRIBUTES_MAX = 500 // of a span and its events, or of a log line
const REST_MAX = 160 // of a line's attributes

const noPaint = (style, text) => text

/**
 * @param {import('../store/trace').Trace} trace
 * @param {{ span?: string, attributes?: boolean, paint?: (style: 'error' | 'warn' | 'dim' | 'bold', text: string) => string }} [options]
 *   `span`: show only this span and everything below it; `attributes`: add a line for each attribute; `paint`: colours for a terminal
 */
function textOf (trace, { span, attributes = false, paint = noPaint } = {}) {
  const nodes = part(withLines(trace, layOut(trace).nodes), span)
  const shown = nodes.slice(0, ROWS_MAX)
  const base = shown[0]?.depth ?? 0
  const service = trace.entry?.origin.service
  const labels = shown.map((node) => '  '.repeat(Math.min(node.depth - base, INDENT_MAX)) + (node.line === undefined ? labelOf(node) : ''))
  const width = Math.min(NAME_WIDTH_MAX, labels.reduce((widest, { length }) => Math.max(widest, length), 0))
  const lines = [headOf(summaryOf(trace), paint), '']
  for (const [i, node] of shown.entries()) {
    if (node.line !== undefined) {
      lines.push(labels[i] + lineOf(node, shown[0], paint))
      if (attributes) lines.push(...valueLines(node.line.read().attributes, labels[i].length + 2, paint))
      continue
    }
    lines.push(`${labels[i].padEnd(width)}  ${node.span === null ? '' : factsOf(node, service, paint)}`.trimEnd())
    if (node.span === null) continue
    const indent = labels[i].search(/\S/) + 2
    for (const sentence of sentencesOf(node)) lines.push(' '.repeat(indent) + sentence)
    if (attributes) lines.push(...attributeLines(node.span, indent, paint))
  }
  if (nodes.length > shown.length) lines.push(`… ${plural(nodes.length - shown.length, trace.lines.length > 0 ? 'more row' : 'more span')}`)
  lines.push(...lossesOf(trace))
  return lines.join('\n') + '\n'
}

/** The sentences below a span: what light-trace found out about it. */
function sentencesOf ({ span, below }) {
  const waits = waitsOf(span)
  const repeats = below === 0 ? undefined : repeatsOf(span)
  const blocked = blockedOf(span)
  return [
    ...waits === undefined ? [] : [`slow: ${waitText(waits, duration)}`],
    ...repeats === undefined ? [] : [repeatText(repeats, duration)],
    ...blocked === null ? [] : [blockedText(blocked, duration)]
  ]
}

function part (nodes, id) {
  if (id === undefined) return nodes
  const at = nodes.findIndex((node) => node.id === id)
  return at === -1 ? [] : nodes.slice(at, at + nodes[at].below + 1)
}

/** The first line: request, status, duration, service and trace id. */
function headOf (summary, paint = noPaint) {
  const name = safeText(summary.path !== null && summary.method !== null && summary.route === null ? `${summary.method} ${summary.path}` : summary.name)
  const status = summary.status ?? (summary.state === 'error' ? 'ERROR' : 'ok')
  return [
    paint('bold', name),
    summary.state === 'error' ? paint('error', String(status)) : status,
    duration(summary.durationMs),
    safeText(summary.service || 'unknown service'),
    paint('dim', summary.id)
  ].join('  ')
}

function labelOf ({ span, cycle }) {
  if (span === null) return '(parent not received)'
  return `${kindName(span.kind)} ${safeText(callName(span).name)}${cycle ? ' (its own ancestor)' : ''}`
}

function factsOf (node, service, paint) {
  const { span } = node
  const facts = [duration(span.durationMs).padStart(9)]
  if (span.code !== 0) facts.push(span.code)
  const exception = exceptionOf(span)
  if (span.status === STATUS_ERROR) facts.push(paint('error', `ERROR ${exception || safeText(readMessage(span.bytes, span.from, span.to))}`.trimEnd()))
  else if (exception !== '') facts.push(exception) // for example with a 4xx, which leaves the span's status unset
  if (span.late) facts.push('late')
  const { afterResponse, neverEnded, calls } = marksOf(span)
  if (neverEnded || afterResponse) facts.push(paint('warn', neverEnded ? 'never ended' : 'after the response'))
  if (calls !== undefined) facts.push(plural(calls, 'call'))
  const clock = clockText(node, duration)
  if (clock !== undefined) facts.push(clock)
  if (span.origin.service !== service) facts.push(paint('dim', safeText(span.origin.service)))
  return facts.join('  ')
}

const PAINTS = { fatal: 'error', error: 'error', warn: 'warn', debug: 'dim', trace: 'dim' }

function lineOf ({ line, start }, first, paint) {
  const { level, text, rest } = lineText(line)
  const name = (level || 'log').toUpperCase()
  const after = start - first.start
  const attributes = rest === '' ? '' : `  ${paint('dim', safeText(rest, REST_MAX))}`
  return `${PAINTS[level] === undefined ? name : paint(PAINTS[level], name)}  ${after < 0 ? '' : '+'}${duration(after)}  ${safeText(text, VALUE_MAX)}${attributes}`
}

function exceptionOf ({ bytes, from, to, events }) {
  const exception = events === 0 ? undefined : readEvents(bytes, from, to).find(({ name }) => name === EXCEPTION)
  if (exception === undefined) return ''
  const value = (key) => exception.attributes.find((attribute) => attribute.key === key)?.value ?? ''
  return safeText(`${value('exception.type')}: ${value('exception.message')}`)
}

function attributeLines ({ bytes, from, to }, indent, paint) {
  const { attributes, events } = readSpan(bytes, from, to)
  return valueLines(attributes.concat(events.flatMap((event) => event.attributes.map((attribute) => ({ ...attribute, of: event.name })))), indent, paint)
}

function valueLines (attributes, indent, paint) {
  const left = attributes.length - ATTRIBUTES_MAX
  return [
    ...attributes.slice(0, ATTRIBUTES_MAX).map((attribute) => {
      const value = plain(attribute)
      const text = safeText(typeof value === 'string' ? value : JSON.stringify(value), VALUE_MAX)
      return `${attribute.of === undefined ? '' : `[${safeText(attribute.of)}] `}${safeText(attribute.key)}: ${text}`
    }),
    ...left > 0 ? [`… and ${left.toLocaleString('en')} more`] : []
  ].map((line) => paint('dim', ' '.repeat(indent) + line))
}

function lossesOf ({ orphans, duplicates, dropped }) {
  const losses = []
  if (orphans > 0) losses.push(`${orphans} ${orphans === 1 ? 'span has a parent that was' : 'spans have parents that were'} not received`)
  if (dropped > 0) losses.push(`${dropped} ${dropped === 1 ? 'span was' : 'spans were'} not kept: the trace is too large`)
  if (duplicates > 0) losses.push(`${duplicates} ${duplicates === 1 ? 'span was' : 'spans were'} received twice`)
  return losses.length === 0 ? [] : ['', ...losses]
}

function duration (ms) {
  if (ms < 0) return `-${duration(-ms)}`
  if (ms >= 3_600_000) return `${Math.floor(ms / 3_600_000)} h ${Math.floor(ms % 3_600_000 / 60_000)} m`
  if (ms >= 10_000) return `${(ms / 1000).toFixed(1)} s`
  return ms >= 100 ? `${ms.toFixed(0)} ms` : ms >= 1 ? `${ms.toFixed(1)} ms` : `${ms.toFixed(3)} ms`
}

module.exports = { textOf, headOf, duration }
