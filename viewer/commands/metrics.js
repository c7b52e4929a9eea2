'use strict'

// npx light-trace metrics [name]

const { Client } = require('./client')
const { listMetrics, getMetric } = require('./metric-client')

async function metrics ({ operand, options }) {
  const client = new Client(options)
  const isJson = options.json === true
  const text = operand === undefined ? await listMetrics(client, { isJson }) : await getMetric(client, { name: operand, kind: options.kind, isJson })
  process.stdout.write(`${text}\n`)
}

module.exports = { metrics }
