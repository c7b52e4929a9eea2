'use strict'

// What a terminal and an assistant read of metrics, from a running viewer.

const { metricsText, metricText, separatingKeys } = require('../views/metric-text')

const LAST_DEFAULT = '15m'
const POINTS = 90

/** @param {import('./client').Client} client @param {{ service?: string, isJson?: boolean }} [options] @returns {Promise<string>} */
async function listMetrics (client, { service, isJson = false } = {}) {
  const answer = await client.json('/api/metrics')
  return isJson ? JSON.stringify(answer) : metricsText(answer, service)
}

/**
 * Without `by`, every attribute separates series.
 * @param {import('./client').Client} client
 * @param {{ name: string, service?: string, by?: string, last?: string, isJson?: boolean }} options
 * @returns {Promise<string>}
 */
async function getMetric (client, { name, service, by, last = LAST_DEFAULT, isJson = false }) {
  const query = new URLSearchParams({ name, last, points: String(POINTS), by: by ?? separatingKeys(await client.json('/api/metrics'), name).join(',') })
  if (service !== undefined) query.set('service', service)
  const answer = await client.json(`/api/metrics/data?${query}`)
  return isJson ? JSON.stringify(answer) : metricText(answer)
}

module.exports = { listMetrics, getMetric }
