'use strict'

// Of bench/calls.

const { table } = require('./markdown')
const { provenance } = require('./tables')

// Of the reference machine, on which bare Fastify takes 9.6 µs : the targets for calls are for it.
const TARGETS = { fetch: 1.5, 'redis GET': 1 }
const REFERENCE_BARE_MICROS = 9.6

const LABELS = { 'light-trace': 'light-trace', 'undici-instrumentation': '@opentelemetry/instrumentation-undici, SDK 2.x' }

function callsTable (result) {
  const { rows, rounds, counted, bareFastifyMicros, redis } = result
  const scale = bareFastifyMicros / REFERENCE_BARE_MICROS
  return [
    table([
      ['call', ({ workload }) => workload],
      ['traced by', ({ tracer }) => LABELS[tracer]],
      ['untraced, CPU µs', ({ untraced }) => untraced.toFixed(2), 'right'],
      ['traced', ({ traced }) => traced.toFixed(2), 'right'],
      ['over', ({ over: { median, low, high } }) => `**${median.toFixed(2)}** (${low.toFixed(2)}…${high.toFixed(2)})`, 'right'],
      ['in the calmest tenth', ({ overP10 }) => overP10.toFixed(2), 'right'],
      ['target, scaled', ({ workload, tracer }) => tracer === 'light-trace' && workload in TARGETS ? `≤ ${TARGETS[workload]}, here ${(TARGETS[workload] * scale).toFixed(1)}` : '', 'right']
    ], rows),
    '',
    `${rounds} slices of each kind. Untraced and traced are their tenth percentiles; over is the median of the differences between a traced slice and the untraced one beside it, and where that lies with 95 % confidence. Every one of ${counted.received} spans delivered and received, traceparent checked by the called server. ` +
    `${redis ? '' : 'No redis-server here: a Redis GET was not measured. '}` +
    `Bare Fastify, called by these requests, took ${bareFastifyMicros.toFixed(1)} µs here and ${REFERENCE_BARE_MICROS} µs on the machine that the targets are for: a scale of ${scale.toFixed(2)}. ` +
    provenance(result)
  ].join('\n')
}

module.exports = { callsTable }
