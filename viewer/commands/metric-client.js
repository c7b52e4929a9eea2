'use strict'

// What a terminal and an assistant read of metrics, from a running viewer.

const { jsonText } = require('../views/safe-text')
const { metricsText, metricText, separatingKeys } = require('../views/metric-text')

const LAST_DEFAULT = '15m'
const POINTS = 90

/** @param {import('./client').Client} client @param {{ service?: string, isJson?: boolean }} [options] @returns {Promise<string>} */
async function listMetrics (client, { service, isJson = false } = {}) {
  const answer = await client.json('/api/metrics')
  return isJson ? jsonText(answer) : metricsText(answer, service)
}

/**
 * Without `by`, every attribute separates series.
 * @param {import('./client').Client} client
 * @param {{ name: string, kind?: string, service?: string, by?: string, last?: string, isJson?: boolean }} options
 * @returns {Promise<string>}
 */
async function getMetric (client, { name, kind, service, by, last = LAST_DEFAULT, isJson = false }) {
  const list = await client.json('/api/metrics')
  const query = new URLSearchParams({ name, last, points: String(POINTS), by: by ?? separatingKeys(list, name, kind).join(',') })
  if (kind !== undefined) query.set('kind', kind)
  if (service !== undefined) query.set('service', service)
  const answer = await client.json(`/api/metrics/data?${query}`)
  return isJson ? jsonText(answer) : metricText(answer, list)
}

module.exports = { listMetrics, getMetric }
