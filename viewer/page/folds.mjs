// Folds similar calls that follow each other in the waterfall, as an N+1 makes them: they become the children of a new row, which is closed
// until the user opens it. Calls that failed, took much longer or have notes or events are not folded.

import { sum } from './numbers.mjs'

const FOLD_FROM = 5
const SLOW_TIMES = 10 // of the median

/** @param {object[]} rows in display order, as in the answer of GET /api/traces/<id>/rows */
export function folded (rows) {
  return runsOf(rows, isAlike).flatMap((calls) => {
    if (calls.length < FOLD_FROM) return calls
    const longest = SLOW_TIMES * medianOf(calls)
    const isSlow = ({ duration }) => duration > longest
    return runsOf(calls, (first, call) => isSlow(first) === isSlow(call)).flatMap((part) => part.length < FOLD_FROM || isSlow(part[0]) ? part : fold(part))
  })
}

function runsOf (rows, belongs) {
  const runs = []
  for (const row of rows) {
    const run = runs.at(-1)
    if (run !== undefined && belongs(run[0], row)) run.push(row)
    else runs.push([row])
  }
  return runs
}

function isAlike (first, row) {
  return isPlainCall(first) && isPlainCall(row) && nameOf(first) === nameOf(row) && ['depth', 'kind', 'service', 'statement'].every((key) => first[key] === row[key])
}

function isPlainCall ({ below, kind, status, events, afterResponse, neverEnded, calls }) {
  return below === 0 && (kind === 'CLIENT' || kind === 'PRODUCER') && status !== 'ERROR' && !(events || afterResponse || neverEnded || calls)
}

function nameOf ({ group, name }) {
  return group ?? name
}

function medianOf (calls) {
  return calls.map(({ duration }) => duration).sort((a, b) => a - b)[calls.length >> 1]
}

function fold (calls) {
  const [first] = calls
  const end = calls.reduce((last, { start, duration }) => Math.max(last, start + duration), 0)
  const { parent, depth, kind, system, service, start } = first
  const head = {
    id: `${first.id}-fold`,
    parent,
    depth,
    below: calls.length,
    fold: calls.length,
    name: nameOf(first),
    kind,
    system,
    service,
    start,
    duration: end - start,
    self: sum(calls.map(({ duration }) => duration)),
    longest: calls.reduce((most, { duration }) => Math.max(most, duration), 0),
    critical: calls.flatMap(({ critical }) => critical ?? []),
    status: 'UNSET'
  }
  return [head, ...calls.map((call) => ({ ...call, depth: depth + 1 }))]
}
