'use strict'

// GET /api/traces/<id>/spans/<spanId>: everything about one span.

const { statSync } = require('node:fs')
const { isAbsolute } = require('node:path')
const { readSpan, readScope, readResource, kindName, statusName } = require('../otlp/span-detail')
const { plain } = require('../otlp/attributes')
const { levelName } = require('../otlp/log-record')
const { rounded } = require('../store/summary')
const { blockedOf, blockedText } = require('./blocked')
const { repeatsOf, statementsOf } = require('./repeats')
const { duration } = require('./text')

const TEXT_MAX = 16_384
const SAME_MAX = 20

/**
 * @param {import('../store/trace').Trace} trace
 * @param {import('../store/trace').StoredSpan} stored one of its spans
 * @param {{ full?: boolean, editor?: string | null, isHeld (traceId): boolean }} options
 */
function panelOf (trace, stored, { full = false, editor = null, isHeld }) {
  const span = readSpan(stored.bytes, stored.from, stored.to)
  const scope = readScope(stored.origin.scope)
  const text = (whole) => full ? whole : whole.slice(0, TEXT_MAX)
  const blocked = blockedOf(stored)
  const repeats = repeatsOf(stored)
  const shown = (attributes) => attributes.map((attribute) => shownAttribute(attribute, full))
  return {
    id: span.id,
    parent: stored.parent,
    traceState: text(span.traceState),
    flags: span.flags & 0xff,
    name: text(span.name),
    kind: kindName(span.kind),
    service: stored.origin.service,
    scope: { name: text(scope.name), version: text(scope.version) },
    startMs: stored.startMs,
    durationMs: rounded(stored.durationMs),
    startNano: String(span.startNano),
    endNano: String(span.endNano),
    status: { code: statusName(span.status.code), message: text(span.status.message) },
    attributes: withLink(shown(span.attributes), editor),
    resource: shown(readResource(stored.origin.resource)),
    events: span.events.map(({ name, timeNano, attributes, dropped }) => ({
      name: text(name), at: rounded(Number(timeNano - span.startNano) / 1e6), timeNano: String(timeNano), attributes: shown(attributes), dropped
    })),
    blocked: blocked && { id: blocked.id, culprit: blocked.culprit, text: blockedText(blocked, duration), code: blocked.code && withLinkOf(blocked.code, editor) },
    repeats: repeats === undefined ? null : { ...repeats, ...statementsOf(trace, stored, repeats) },
    links: span.links.map((link) => ({
      trace: link.trace, span: link.span, held: isHeld(link.trace), attributes: shown(link.attributes), dropped: link.dropped
    })),
    dropped: span.dropped,
    same: trace.spans.filter((other) => other !== stored && other.id === stored.id).slice(0, SAME_MAX).map(({ id, name }) => ({ id, name }))
  }
}

/** GET /api/traces/<id>/lines/<row>, GET /api/logs/<order>: everything about one log line. */
function linePanelOf (line, { full = false } = {}) {
  const record = line.read()
  const scope = readScope(line.origin.scope)
  const text = (whole) => full ? whole : whole.slice(0, TEXT_MAX)
  return {
    level: levelName(line.severity),
    severity: { number: record.severity, text: text(record.severityText) },
    service: line.origin.service,
    scope: { name: text(scope.name), version: text(scope.version) },
    event: text(record.eventName),
    timeMs: line.timeMs,
    body: shownAttribute({ key: '', ...record.body }, full),
    attributes: record.attributes.map((attribute) => shownAttribute(attribute, full)),
    dropped: record.dropped
  }
}

/** Adds the URL that opens the handler's file in an editor, if the file is on this machine. */
function withLink (attributes, editor) {
  const file = attributes.find(({ key }) => key === 'code.file.path')
  const line = attributes.find(({ key }) => key === 'code.line.number')?.value
  const open = linkTo(file?.value, line, editor)
  if (open !== undefined) file.open = open
  return attributes
}

function withLinkOf (code, editor) {
  const open = linkTo(code.file, code.line, editor)
  return open === undefined ? code : { ...code, open }
}

function linkTo (file, line, editor) {
  if (editor === null || !isFileHere(file)) return undefined
  const path = encodeURI(file.replaceAll('\\', '/')).replace(/[?#]/g, encodeURIComponent)
  return `${editor}://file${path.startsWith('/') ? '' : '/'}${path}${Number.isInteger(line) ? `:${line}` : ''}`
}

// The path comes from the sender. Two leading slashes would access another machine.
function isFileHere (file) {
  if (typeof file !== 'string' || !isAbsolute(file) || /^[/\\]{2}/.test(file)) return false
  try {
    return statSync(file).isFile()
  } catch {
    return false
  }
}

function shownAttribute (attribute, full) {
  const { type } = attribute
  const key = full ? attribute.key : attribute.key.slice(0, TEXT_MAX)
  const value = plain(attribute)
  if (full) return { key, value, type }
  if (typeof value === 'string' && value.length > TEXT_MAX) return { key, value: value.slice(0, TEXT_MAX), type, cut: true }
  if (typeof value === 'object' && value !== null) {
    const text = JSON.stringify(value)
    if (text.length > TEXT_MAX) return { key, value: text.slice(0, TEXT_MAX), type: 'string', cut: true }
  }
  return { key, value, type }
}

module.exports = { panelOf, linePanelOf }
