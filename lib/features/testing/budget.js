'use strict'

// Budgets: what a request may do. They limit its calls of each kind, sequential calls of the same shape, spans that continue after its
// response, and spans that never end. Only spans are checked: `light-trace/testing` gets them from the tracer,
// `npx light-trace check` from a file.

const { relative } = require('node:path')
const { boolean, count, inWords, isObject, LightTraceError, nearestName, object } = require('../../config/checks.js')
const { oneLine } = require('../../export/stdout.js')
const { drawTree, spanLabel } = require('../console.js')
const { counted } = require('../../runtime/report.js')

// Kinds of calls that a budget may name even if no span has them: those of light-trace and of OpenTelemetry's conventions.
const KNOWN_KINDS = [
  'http', 'other', 'redis', 'postgresql', 'mysql', 'mariadb', 'mongodb', 'sqlite', 'microsoft.sql_server', 'oracle.db', 'cassandra', 'clickhouse', 'cockroachdb',
  'couchbase', 'elasticsearch', 'opensearch', 'memcached', 'neo4j', 'aws.dynamodb', 'kafka', 'rabbitmq', 'aws_sqs', 'aws.sns', 'gcp_pubsub', 'nats', 'pulsar', 'grpc'
]
const TREES_MAX = 3
const LINES_MAX = 200

const checkShape = object({ repeats: count, calls: checkCalls, afterResponse: boolean, open: boolean })

function checkCalls (path, value) {
  return object(Object.fromEntries((isObject(value) ? Object.keys(value) : []).map((kind) => [kind, count])))(path, value)
}

/**
 * @param {unknown} value `{ repeats, calls: { redis: 5 }, afterResponse: false, open: false }`; missing members are not checked
 * @throws TypeError
 */
function readBudget (value, path = '') {
  const { repeats, calls = {}, afterResponse, open } = shapeOf(path, value)
  if (repeats === undefined && Object.keys(calls).length === 0 && afterResponse !== false && open !== false) {
    throw wrongBudget(`${path === '' ? 'the budget' : `\`${path}\``} allows everything: give repeats, calls, afterResponse: false or open: false`)
  }
  return { repeats: repeats ?? Infinity, calls, afterResponse: afterResponse ?? true, open: open ?? true }
}

function shapeOf (path, value) {
  try {
    return checkShape(path, value)
  } catch (error) {
    throw wrongBudget(error.message, error.code)
  }
}

/** @param {Code} code */
function wrongBudget (message, code = 'LT_ERR_OPTION_INVALID') {
  return Object.assign(new TypeError(message), { code })
}

/** Rejects unknown kinds, because a limit for them could never fail. @throws TypeError */
function checkKinds (calls, requests, path = 'calls') {
  const known = new Set(KNOWN_KINDS)
  for (const { calls: own } of requests) for (const { kind } of own) known.add(kind)
  for (const kind of Object.keys(calls)) {
    if (known.has(kind)) continue
    const nearest = nearestName(kind, [...known])
    throw wrongBudget(`\`${path}.${kind}\`: no calls of this kind, ${nearest === undefined ? `known kinds are ${inWords([...known])}` : `did you mean \`${nearest}\`?`}`, 'LT_ERR_OPTION_UNKNOWN')
  }
}

/**
 * What a span calls, or null if the span is not a call.
 * @returns {{ kind: string, name: string, shape: string } | null} name: without the port, which is random for a test's server
 */
function callOf ({ kind, name, attributes }) {
  if (kind !== 'CLIENT' && kind !== 'PRODUCER') return null
  const text = (...keys) => String(keys.map((key) => attributes[key]).find((value) => value !== undefined) ?? '')
  const host = text('server.address', 'net.peer.name')
  const of = (kind, name) => ({ kind, name, shape: `${name} ${host}:${text('server.port', 'net.peer.port')}` })
  const system = text('db.system.name', 'db.system', 'messaging.system', 'rpc.system.name', 'rpc.system')
  if (system !== '') {
    const what = text('db.query.summary') || name
    return of(system, what.startsWith(system) ? what : `${system} ${what}`)
  }
  const method = text('http.request.method', 'http.method')
  if (method === '') return of('other', name)
  return of('http', `${method} ${host}${pathShape(text('url.template') || text('url.full', 'http.url'))}`)
}

// `/items/7` and `/items/8` have the same shape: a segment with a digit is treated as an id.
function pathShape (url) {
  const [, path = ''] = /^(?:[a-z]+:\/\/[^/?#]*)?([^?#]*)/i.exec(url)
  return path.split('/').map((part) => /\d/.test(part) && !/^v\d{1,2}$/.test(part) ? '*' : part).join('/')
}

/** The number of calls that a span represents. */
function callsIn ({ attributes }) {
  const folded = Number(attributes['light_trace.fold.count'])
  return folded > 1 ? folded : 1
}

/**
 * Groups spans into requests. The root of a request is a SERVER or CONSUMER span, or a span whose parent is missing; the request
 * includes the spans below it, down to the next root.
 * @param {object[]} spans as `collector.spans()` returns them
 * @returns {Array<{ root: object, route: string, spans: object[], calls: object[], isCut: boolean }>} spans: without the root; calls: without
 *   calls inside a call of the same kind, such as a driver's below a query builder's; isCut: whether the root's parent is missing
 */
function requestsOf (spans) {
  const byId = new Map(spans.map((span) => [span.traceId + span.spanId, span]))
  const parentOf = (span) => span.parentSpanId === span.spanId ? undefined : byId.get(span.traceId + span.parentSpanId)
  const owners = new Map()
  const requests = new Map()
  for (const span of spans) {
    const root = ownerOf(span, parentOf, owners)
    if (!requests.has(root)) requests.set(root, { root, route: routeOf(root), spans: [], calls: [], isCut: false })
    const request = requests.get(root)
    const parent = parentOf(span)
    if (span === root) request.isCut = Boolean(span.parentSpanId) && parent === undefined && !isEntry(span)
    else request.spans.push(span)
    const call = callOf(span)
    if (call !== null && (parent === undefined || callOf(parent)?.kind !== call.kind)) request.calls.push({ ...call, span, parent })
  }
  return [...requests.values()]
}

function isEntry ({ kind }) {
  return kind === 'SERVER' || kind === 'CONSUMER'
}

function ownerOf (span, parentOf, owners) {
  const way = []
  let at = span
  while (at !== undefined && !owners.has(at)) {
    owners.set(at, at) // ends the loop if parents form a cycle
    way.push(at)
    at = isEntry(at) ? undefined : parentOf(at)
  }
  const owner = owners.get(at) ?? way.at(-1)
  for (const each of way) owners.set(each, owner)
  return owner
}

/** 'GET /users/:id', or the span's name if it is not an HTTP request. */
function routeOf ({ kind, name, attributes }) {
  const route = attributes['http.route']
  const method = attributes['http.request.method'] ?? attributes['http.method']
  return kind !== 'SERVER' || route === undefined || method === undefined ? name : `${method} ${route}`
}

/**
 * What exceeds the budget in a request.
 * @returns {Array<{ rule: string, route: string, message: string, allowed: number | boolean, found: number, marked: Map<object, string> }>}
 */
function findingsOf ({ root, route, spans, calls, isCut }, budget) {
  const findings = []
  const add = (rule, message, allowed, found, marked, mark) => {
    findings.push({ rule, route, message: oneLine(`${route}: ${message}`), allowed, found, marked: new Map(marked.map((span) => [span, mark])) })
  }
  for (const [kind, allowed] of Object.entries(budget.calls)) {
    const own = calls.filter((call) => call.kind === kind).map(({ span }) => span)
    const found = own.reduce((sum, span) => sum + callsIn(span), 0)
    if (found > allowed) add('calls', `${kind}: ${counted(found, 'call')}, ${allowed} allowed`, allowed, found, own, kind)
  }
  for (const { name, under, alike } of repeatedCalls(root, calls)) {
    const found = inSequence(alike)
    if (found > budget.repeats) add('repeats', `${name} repeated ${found} times in sequence${under}, ${budget.repeats} allowed`, budget.repeats, found, alike, 'repeated')
  }
  const all = [root, ...spans]
  // light-trace marks these spans; those of other tracers are recognised by their times. A span that never ended counts as late too.
  const end = root.kind === 'SERVER' ? endOf(root) : Infinity
  const late = all.filter((span) => span.attributes['light_trace.after_response'] === true || endOf(span) > end)
  if (!budget.afterResponse && late.length > 0) add('afterResponse', `${counted(late.length, 'span')} continued after the response`, false, late.length, late, 'after the response')
  // A file contains a span that never ended only if light-trace ended it with its application. Otherwise the span is missing, and its
  // children have no parent.
  const running = all.filter(isOpen)
  const orphan = 'its parent never ended or was lost'
  if (!budget.open && running.length > 0) add('open', `${counted(running.length, 'span')} never ended`, false, running.length, running, 'never ended')
  else if (!budget.open && isCut) add('open', orphan, false, 1, [root], orphan)
  return findings
}

/** The calls of the same shape and parent. */
function * repeatedCalls (root, calls) {
  for (const [parent, own] of groups(calls, ({ parent }) => parent)) {
    const under = parent === undefined || parent === root ? '' : ` under ${parent.kind} ${parent.name}`
    for (const alike of groups(own, ({ shape }) => shape).values()) yield { name: alike[0].name, under, alike: alike.map(({ span }) => span) }
  }
}

function groups (list, keyOf) {
  const map = new Map()
  for (const item of list) {
    const key = keyOf(item)
    if (!map.has(key)) map.set(key, [])
    map.get(key).push(item)
  }
  return map
}

/** The maximum number of these spans that did not overlap. */
function inSequence (spans) {
  let number = 0
  let end = -Infinity
  for (const span of spans.toSorted((a, b) => endOf(a) - endOf(b))) {
    const calls = callsIn(span)
    if (calls > 1) number += calls // a folded span's times cover all of its calls, and other calls may lie between them
    else if (span.startTime >= end) {
      number++
      end = endOf(span)
    }
  }
  return number
}

/** Whether a span never ended: it is running, or was ended only by the end of its application. */
function isOpen ({ running, attributes }) {
  return running === true || attributes['light_trace.never_ended'] === true
}

function endOf (span) {
  return isOpen(span) ? Infinity : span.endTime
}

/** The findings as text, with the trees in which they were found and marks on their lines. */
function report (findings, spans) {
  const lines = [...groups(findings, ({ message }) => message)].map(([message, alike]) => alike.length === 1 ? message : `${message} (in ${alike.length} requests)`)
  const traces = groups(findings, ({ marked }) => marked.keys().next().value.traceId)
  const trees = [...traces].slice(0, TREES_MAX).map(([traceId, own]) => treeOf(spans.filter((span) => span.traceId === traceId), own))
  if (traces.size > TREES_MAX) trees.push(`... and ${counted(traces.size - TREES_MAX, 'more tree')}`)
  return `${lines.join('\n')}\n\n${trees.join('\n\n')}`
}

function treeOf (spans, findings) {
  const lines = drawTree(spans, (span) => {
    const marks = new Set(findings.flatMap(({ marked }) => marked.get(span) ?? []))
    const { kind, name, status, attributes } = span
    const label = spanLabel({ kind, name: callOf(span)?.name ?? name, status: status.code, errorType: attributes['error.type'] })
    const folded = callsIn(span) > 1 ? ` (${callsIn(span)} calls)` : ''
    return `${label}${folded}${oneLine(declaredAt(attributes))}${marks.size === 0 ? '' : `  <-- ${[...marks].join(', ')}`}`
  }).split('\n')
  if (lines.length > LINES_MAX) lines.splice(LINES_MAX, lines.length, `... and ${lines.length - LINES_MAX} more lines`)
  return lines.map((line) => `  ${line}`).join('\n')
}

function declaredAt ({ 'code.file.path': file, 'code.line.number': line }) {
  return typeof file === 'string' ? `  (${relative(process.cwd(), file)}:${line})` : ''
}

/** @throws a LightTraceError that shows what exceeds the budget */
function checkSpans (spans, budget) {
  const requests = requestsOf(spans)
  checkKinds(budget.calls, requests)
  if (spans.length === 0) throw new LightTraceError('LT_ERR_CHECK', 'nothing to check: no spans were collected. Add the collector to spanProcessors and make a request first')
  const findings = requests.flatMap((request) => findingsOf(request, budget))
  if (findings.length === 0) return
  throw Object.assign(new LightTraceError('LT_ERR_CHECK', `over budget\n${report(findings, spans)}`), {
    findings: findings.map(({ rule, route, message, allowed, found }) => ({ rule, route, message, allowed, found }))
  })
}

module.exports = { readBudget, checkKinds, checkSpans, callOf, callsIn, requestsOf, findingsOf, report }
