'use strict'

// Summarises the rounds of each case: median, minimum and maximum of each figure, and of the difference to the baseline in the same
// round.

const { spread } = require('../run/statistics')

module.exports = summarise

// measured: the result of run() → [{ name, label, node, versions, figures, over, relativeRps, spans, faults }]
function summarise (measured) {
  const byName = new Map(measured.map((entry) => [entry.testCase.name, entry]))
  return measured.map((entry) => summariseCase(entry, byName.get(baselineOf(entry.testCase))))
}

function baselineOf ({ name, against = 'bare' }) {
  return name === against ? undefined : against
}

function summariseCase ({ testCase, node, versions, rounds }, baseline) {
  const of = (pick) => spread(rounds.map(pick))
  const overOf = (combine) => baseline ? spread(rounds.map((round, i) => combine(round, baseline.rounds[i]))) : null
  return {
    name: testCase.name,
    label: testCase.label,
    node,
    versions,
    cpuMicrosPerRequest: of((round) => round.cpuMicrosPerRequest),
    overMicros: overOf((round, base) => round.cpuMicrosPerRequest - base.cpuMicrosPerRequest),
    requestsPerSecond: of((round) => round.requestsPerSecond),
    relativeRps: overOf((round, base) => round.requestsPerSecond / base.requestsPerSecond),
    relativeCpu: overOf((round, base) => round.cpuMicrosPerRequest / base.cpuMicrosPerRequest),
    latencyP99Ms: of((round) => round.latencyMs.p99),
    rssMB: of((round) => round.rssMB),
    overRssMB: overOf((round, base) => round.rssMB - base.rssMB),
    serverBusy: of((round) => round.serverBusy),
    loadBusy: of((round) => round.loadBusy),
    spans: { created: sum(rounds, ({ spans }) => spans.created ?? 0), received: sum(rounds, ({ spans }) => spans.received) },
    requests: sum(rounds, (round) => round.requests),
    faults: rounds.flatMap((round, i) => round.faults.map((sentence) => `round ${i + 1}: ${sentence}`))
  }
}

function sum (rounds, pick) {
  return rounds.reduce((total, round) => total + pick(round), 0)
}
