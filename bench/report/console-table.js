'use strict'

// The summary as text: median, and least…greatest where a reader needs to see how steady it is.

module.exports = consoleTable

const COLUMNS = [
  ['case', (row) => row.name],
  ['CPU µs/req', (row) => withSpread(row.cpuMicrosPerRequest, 2)],
  ['over', (row) => row.against ?? ''],
  ['µs', (row) => withSpread(row.overMicros, 2)],
  ['rps', (row) => fixed(row.requestsPerSecond, 0)],
  ['rel.', (row) => fixed(row.relativeRps, 2)],
  ['p50 ms', (row) => fixed(row.latencyP50Ms, 2)],
  ['p99', (row) => fixed(row.latencyP99Ms, 2)],
  ['p99.9', (row) => fixed(row.latencyP999Ms, 2)],
  ['loop p99', (row) => fixed(row.eventLoopDelayP99Ms, 1)],
  ['RSS MB', (row) => fixed(row.rssMB, 0)],
  ['created', (row) => row.spans.created],
  ['delivered', (row) => row.spans.delivered],
  ['received', (row) => row.spans.received],
  ['dropped', (row) => row.spans.dropped],
  ['busy s/l', (row) => `${fixed(row.serverBusy, 2)}/${fixed(row.loadBusy, 2)}`]
]

function consoleTable (rows) {
  const cells = [COLUMNS.map(([title]) => title), ...rows.map((row) => COLUMNS.map(([, cell]) => String(cell(row))))]
  const widths = COLUMNS.map((_, column) => Math.max(...cells.map((line) => line[column].length)))
  const lines = cells.map((line) => line.map((cell, column) => column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column])).join('  '))
  for (const { name, also, overAlsoMicros } of rows) {
    if (also) lines.push(`${name} over ${also}: ${withSpread(overAlsoMicros, 2)} µs`)
  }
  for (const { name, faults } of rows) {
    if (faults.length > 0) lines.push('', `INVALID ${name}:`, ...faults.slice(0, 8).map((sentence) => `  ${sentence}`))
  }
  return lines.join('\n')
}

function fixed (figure, digits) {
  return figure === null ? '' : figure.median.toFixed(digits)
}

function withSpread (figure, digits) {
  return figure === null ? '' : `${figure.median.toFixed(digits)} (${figure.min.toFixed(digits)}…${figure.max.toFixed(digits)})`
}
