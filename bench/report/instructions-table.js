'use strict'

// Makes tables of instructions per request.

const { KINDS } = require('../instructions/callgrind')

const FUNCTIONS_SHOWN = 40

module.exports = { consoleRows, functionRows }

function consoleRows (rows) {
  return rows.map(({ name, total, over, change, processes, compiler, ...kinds }) => ({
    case: name,
    instructions: `${Math.round(total.median)} ±${rounded(total.halfWidth)}`,
    over: over ? `${signed(over.median)} ±${rounded(over.halfWidth)}` : '',
    'of which JS / builtins / GC / native': over && Number.isFinite(over.javascript) ? KINDS.map((kind) => signed(over[kind])).join(' / ') : '', // absent if the baseline was read from a file
    ...(change && { 'change by this tree': signed(change.median) }),
    compiler: Math.round(compiler),
    processes,
    spans: kinds.spans ? `${kinds.spans.delivered} of ${kinds.spans.created}` : ''
  }))
}

/** The functions that grew or shrank most, for each case and its baseline. */
function functionRows (rows) {
  const baseOf = (row) => row.functionsBefore ? { name: row.name, functions: row.functionsBefore } : rows.find(({ name }) => name === (row.before ?? row.against)) // undefined if the baseline was read from a file
  return rows.filter((row) => (row.over || row.change) && baseOf(row) !== undefined).map((row) => {
    const base = baseOf(row)
    const names = new Set([...row.functions.keys(), ...base.functions.keys()])
    const differences = Array.from(names, (name) => {
      const [here, there] = [row.functions.get(name) ?? 0, base.functions.get(name) ?? 0]
      return { function: name.slice(0, 110), more: Math.round(here - there), here: Math.round(here), there: Math.round(there) }
    })
    differences.sort((a, b) => Math.abs(b.more) - Math.abs(a.more))
    return { name: `${row.name}, over ${base.name}`, rows: differences.slice(0, FUNCTIONS_SHOWN) }
  })
}

function rounded (halfWidth) {
  return halfWidth === Infinity ? '?' : Math.round(halfWidth)
}

function signed (value) {
  return `${value < 0 ? '' : '+'}${Math.round(value)}`
}
