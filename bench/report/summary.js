'use strict'

// Rounds → what is shown: per case the median, least and greatest of each figure, and of the
// difference to its baseline in the same round.

const { spread } = require('../run/statistics')

module.exports = summarise

// measured: what run() gives → [{ name, label, against, node, versions, figures, over, relativeRps, spans, faults }]
function summarise (measured) {
  const byName = new Map(measured.map((entry) => [entry.testCase.name, entry]))
  return measured.map((entry) => summariseCase(entry, byName.get(baselineOf(entry.testCase))))
}

function baselineOf ({ name, against = 'bare' }) {
  return name === against ? undefined : against
}

function summariseCase ({ testCase, node, versions, rounds, rate }, baseline, second) {
  const of = (pick) => spread(rounds.map(pick))
  const overOf = (combine, base = baseline) => base ? spread(rounds.map((round, i) => combine(round, base.rounds[i]))) : null
  return {
    name: testCase.name,
    label: testCase.label,
    against: baseline?.testCase.name ?? null,
    node,
    versions,
    rate,
    cpuMicrosPerRequest: of((round) => round.cpuMicrosPerRequest),
    overMicros: overOf(cpuDifference),
    also: second?.testCase.name ?? null,
    overAlsoMicros: second ? overOf(cpuDifference, second) : null,
    requestsPerSecond: of((round) => round.requestsPerSecond),
    relativeRps: overOf((round, base) => round.requestsPerSecond / base.requestsPerSecond),
    relativeCpu: overOf((round, base) => round.cpuMicrosPerRequest / base.cpuMicrosPerRequest),
    relativeP99: overOf((round, base) => round.latencyMs.p99 / base.latencyMs.p99),
    latencyP50Ms: of((round) => round.latencyMs.p50),
    latencyP99Ms: of((round) => round.latencyMs.p99),
    latencyP999Ms: of((round) => round.latencyMs.p999),
    eventLoopDelayP99Ms: of((round) => round.eventLoopDelayP99Ms),
    rssMB: of((round) => round.rssMB),
    overRssMB: overOf((round, base) => round.rssMB - base.rssMB),
    serverBusy: of((round) => round.serverBusy),
    loadBusy: of((round) => round.loadBusy),
    spans: sumSpans(rounds),
    requests: sum(rounds, (round) => round.requests),
    faults: rounds.flatMap((round, i) => round.faults.map((sentence) => `round ${i + 1}: ${sentence}`))
  }
}

function cpuDifference (round, base) {
  return round.cpuMicrosPerRequest - base.cpuMicrosPerRequest
}

function sumSpans (rounds) {
  return {
    created: sum(rounds, ({ spans }) => spans.created ?? 0),
    delivered: sum(rounds, ({ spans }) => spans.exported ?? spans.delivered ?? 0),
    dropped: sum(rounds, ({ spans }) => (spans.dropped ?? 0) + (spans.droppedLater ?? 0)),
    waiting: sum(rounds, ({ spans }) => spans.waiting ?? 0),
    received: sum(rounds, ({ spans }) => spans.received),
    checked: sum(rounds, ({ spans }) => spans.checked)
  }
}

function sum (rounds, pick) {
  return rounds.reduce((total, round) => total + pick(round), 0)
}
