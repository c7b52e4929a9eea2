'use strict'

// npx light-trace check now.jsonl --against main.jsonl --budget budget.json: prints what each route does now that it did not do before, and
// which requests exceed their budget. Only an exceeded budget is a failure, because a change may be intended.

const { readFileSync } = require('node:fs')
const { checkKinds, findingsOf, readBudget, report, requestsOf } = require('../../lib/features/testing/budget')
const { isObject, nearestName } = require('../../lib/config/checks')
const { plain } = require('../otlp/attributes')
const { readSpan, kindName, statusName } = require('../otlp/span-detail')
const { Malformed } = require('../otlp/proto-reader')
const { routesOf, changesOf, contentsOf } = require('../statistics/changes')
const { importText } = require('../store/import')
const { TraceStore } = require('../store/trace-store')
const { escaped, plural } = require('../views/safe-text')
const { UsageError } = require('./arguments')

const OVER_BUDGET = 1
const LINES_MAX = 40 // for each route
// GitHub accepts comments of up to 65,536 characters.
const MARKDOWN_MAX = 60_000

function check ({ operand, options: { against, budget: budgetFile, markdown = false } }) {
  const now = runOf(operand)
  const before = against === undefined ? undefined : runOf(against)
  const hasServices = new Set([now, before].flatMap((run) => [...run?.services ?? []])).size > 1
  const budgets = budgetFile === undefined ? undefined : budgetsOf(budgetFile, now, operand)
  const findings = budgets === undefined ? [] : now.requests.flatMap((request) => findingsOf(request, budgets(request.route)))
  const sections = before === undefined ? [] : compare(routesIn(before, hasServices), routesIn(now, hasServices))
  const head = [
    budgets === undefined ? '' : findings.length === 0 ? `${plural(now.requests.length, 'request')} checked, all within budget.` : `Over budget: ${plural(new Set(findings.map(({ route }) => route)).size, 'route')}.`,
    before === undefined ? '' : sections.length === 0 ? 'No route has changed.' : `Changed: ${plural(sections.length, 'route')}.`,
    ...[now, before].map((run) => run === undefined || run.cut === 0 ? '' : `${run.file}: ${plural(run.cut, 'tree')} not compared, because the parent span is missing.`)
  ].filter((text) => text !== '').join(' ')
  const over = findings.length === 0 ? '' : safeLines(report(findings, now.spans))
  process.stdout.write(markdown ? markdownOf(head, over, sections) : textOf(head, over, sections))
  if (findings.length > 0) process.exitCode = OVER_BUDGET
}

/** Reads the spans of a file, in the form that `collector.spans()` returns in tests. @throws UsageError */
function runOf (file) {
  const store = new TraceStore({ maxBytes: Infinity })
  const text = read(file)
  try {
    const { dropped } = importText(store, text)
    if (dropped > 0) throw new Malformed(`${plural(dropped, 'span')} without valid ids`)
  } catch (error) {
    if (!(error instanceof Malformed)) throw error
    throw new UsageError(`${file}: ${error.message}`)
  }
  const spans = [...store.newestFirst()].reverse().flatMap((trace) => trace.spans.toSorted((a, b) => a.startMs - b.startMs).map(plainSpan))
  if (spans.length === 0) throw new UsageError(`${file} has no spans to check`)
  const requests = requestsOf(spans)
  return { file, spans, requests, services: new Set(spans.map(({ service }) => service)), cut: requests.filter(({ isCut }) => isCut).length }
}

function read (file) {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${error.message}`)
  }
}

function plainSpan ({ bytes, from, to, origin }) {
  const span = readSpan(bytes, from, to)
  const attributes = Object.create(null)
  for (const attribute of span.attributes) attributes[attribute.key] = plain(attribute)
  return {
    traceId: span.traceId,
    spanId: span.id,
    parentSpanId: span.parent === '' ? undefined : span.parent,
    name: span.name,
    kind: kindName(span.kind),
    status: { code: statusName(span.status.code) },
    attributes,
    startTime: Number(span.startNano) / 1e6,
    endTime: Number(span.endNano) / 1e6,
    service: origin.service
  }
}

/**
 * { "repeats": 5, "calls": { "redis": 10 }, "routes": { "GET /orders/:id": { "calls": { "postgresql": 2 } } } }: the keys of
 * collector.check(), for all routes, and in `routes` for single routes, whose own keys win.
 * @returns {(route: string) => object}
 */
function budgetsOf (file, { requests }, checked) {
  const text = read(file)
  try {
    const json = JSON.parse(text)
    if (!isObject(json) || !isObject(json.routes ?? {})) throw new Error('the file and its `routes` must be objects')
    const { routes = {}, ...common } = json
    const known = [...new Set(requests.map(({ route }) => route))]
    const own = new Map(Object.entries(routes).map(([route, budget]) => {
      const path = `routes['${route}']`
      readBudget(budget, path)
      checkKinds(budget.calls ?? {}, requests, `${path}.calls`)
      if (!known.includes(route)) {
        const nearest = nearestName(route, known)
        throw new Error(`${checked} has no request of '${route}'${nearest === undefined ? '' : `; did you mean '${nearest}'?`}`)
      }
      return [route, readBudget({ ...common, ...budget, calls: { ...common.calls, ...budget.calls } })]
    }))
    const forAll = own.size > 0 && Object.keys(common).length === 0 ? undefined : readBudget(common)
    checkKinds(forAll?.calls ?? {}, requests)
    return (route) => own.get(route) ?? forAll ?? NO_BUDGET
  } catch (error) {
    throw new UsageError(`${file}: ${error.message}`)
  }
}

const NO_BUDGET = { repeats: Infinity, calls: {}, afterResponse: true, open: true }

function routesIn ({ requests }, hasServices) {
  return routesOf(requests.map((request) => hasServices ? { ...request, route: `${request.root.service}: ${request.route}` } : request))
}

/** @returns {Array<{ title: string, note: string, lines: string[] }>} a section for each route that changed */
function compare (before, now) {
  return [...new Set([...now.keys(), ...before.keys()])].sort().flatMap((title) => {
    const [was, is] = [before.get(title), now.get(title)]
    if (was === undefined) return [{ title, note: 'new', lines: contentsOf(is).map((line) => `+ ${line}`) }]
    if (is === undefined) return [{ title, note: 'no longer seen', lines: contentsOf(was).map((line) => `- ${line}`) }]
    const lines = changesOf(was, is)
    return lines.length === 0 ? [] : [{ title, note: '', lines }]
  })
}

function textOf (head, over, sections) {
  const parts = sections.map(({ title, note, lines }) => [`${escaped(title)}${note === '' ? '' : ` (${note})`}`, ...shown(lines).map((line) => `  ${line}`)].join('\n'))
  return `${[head, over, ...parts].filter((part) => part !== '').join('\n\n')}\n`
}

function markdownOf (head, over, sections) {
  const parts = sections.map(({ title, note, lines }) => `#### ${code(title)}${note === '' ? '' : ` ${note}`}\n\n${fenced('diff', shown(lines).join('\n'))}`)
  let text = `### light-trace\n\n${safeLines(head)}\n`
  for (const part of [...over === '' ? [] : [fenced('', over)], ...parts]) {
    if (text.length + part.length > MARKDOWN_MAX) return `${text}\n… the rest does not fit here: \`npx light-trace check\` prints everything.\n`
    text += `\n${part}\n`
  }
  return text
}

function shown (lines) {
  const safe = lines.slice(0, LINES_MAX).map(escaped)
  return lines.length > LINES_MAX ? [...safe, `  … ${plural(lines.length - LINES_MAX, 'more line')}`] : safe
}

// The text of spans comes from senders. It must not form lines or Markdown of its own.
function safeLines (text) {
  return text.split('\n').map(escaped).join('\n')
}

function fenced (language, text) {
  return `\`\`\`${language}\n${withoutTicks(text)}\n\`\`\``
}

function code (text) {
  return `\`${withoutTicks(escaped(text))}\``
}

function withoutTicks (text) {
  return text.replaceAll('`', "'")
}

module.exports = { check }
