'use strict'

// npx light-trace trace <id>

const { Client } = require('./client')
const { printStatistics, printTrace } = require('./terminal')

async function trace ({ operand, options }) {
  const client = new Client(options)
  const path = `/api/traces/${encodeURIComponent(operand)}`
  if (options.by !== undefined) {
    const json = await client.text(`${path}/statistics?by=${options.by}`)
    return void process.stdout.write(options.json === true ? `${json}\n` : printStatistics(JSON.parse(json)))
  }
  const json = await client.text(path)
  process.stdout.write(options.json === true ? `${json}\n` : printTrace(json, { attributes: options.attributes === true }))
}

module.exports = { trace }
