'use strict'

// Decides what makes a round invalid. A rival that drops spans is valid: its row says how many. A round is invalid if the server and the
// sink disagree about the number.

module.exports = findFaults
module.exports.plausible = plausible

function findFaults ({ testCase, sent, counts, received, check }) {
  const faults = []
  const fault = (condition, sentence) => { if (condition) faults.push(sentence) }

  fault(sent.requests === 0, 'no request got a response')
  fault(sent.failed > 0, `${sent.failed} requests failed`)
  fault(received.unreadable > 0, `${received.unreadable} bodies could not be read`)
  for (const sentence of check.faults) faults.push(sentence)

  if (!counts) {
    fault(received.spans > 0, `${received.spans} spans came from a case that creates none`)
    return faults
  }

  const { created, delivered, handedOver = 0, rejected, dropped, waiting } = counts
  fault(created !== handedOver + delivered + rejected + dropped + waiting,
    `${created} spans created, but ${handedOver} handed over + ${delivered} delivered + ${rejected} rejected + ${dropped} dropped + ${waiting} waiting`)
  fault(received.spans !== (counts.exported ?? delivered), `${counts.exported ?? delivered} spans delivered by the server's count, ${received.spans} by the sink's`)
  fault(testCase.delivers && received.spans !== created, `${created} spans created, ${received.spans} received`)
  fault(received.spans > 0 && check.checked === 0, 'no span was checked')
  fault(!plausible(testCase.spans, created, sent.requests), `${created} spans created by ${sent.requests} requests`)
  return faults
}

// A number: exactly that many per request. { least }: at least that many. { ratio }: within five standard deviations.
function plausible (spans, created, requests) {
  if (typeof spans === 'number') return created === spans * requests
  if (spans.least) return created >= spans.least * requests
  const expected = requests * spans.ratio
  return Math.abs(created - expected) <= 5 * Math.sqrt(expected) + 5
}
