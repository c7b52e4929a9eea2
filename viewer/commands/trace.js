'use strict'

// npx light-trace trace <id>

const { Client } = require('./client')
const { printTrace } = require('./terminal')

async function trace ({ operand, options }) {
  const client = new Client(options)
  const json = await client.text(`/api/traces/${encodeURIComponent(operand)}`)
  process.stdout.write(options.json === true ? `${json}\n` : printTrace(json, { attributes: options.attributes === true }))
}

module.exports = { trace }
