'use strict'

// Settled processes → tables.

module.exports = { settledRows }

function settledRows (rows) {
  return rows.map(({ name, cpu, user, system, rssMB, requestsToSettle, over, share }) => ({
    case: name,
    'CPU µs': shown(cpu, 2),
    user: shown(user, 2),
    system: shown(system, 2),
    over: over ? shown(over.cpu, 2) : '',
    'CPU, of its baseline': share ? shown(share.cpu, 3) : '',
    'throughput, of its baseline': share ? shown(share.perSecond, 3) : '',
    'RSS MB': shown(rssMB, 0),
    'over, MB': over ? shown(over.rssMB, 0) : '',
    'requests until settled': requestsToSettle
  }))
}

function shown ({ median, halfWidth }, digits) {
  return `${median.toFixed(digits)} ±${Number.isFinite(halfWidth) ? halfWidth.toFixed(digits) : '?'}`
}
