'use strict'

// npx light-trace trace <id>

const { Client } = require('./client')
const { escaped } = require('../views/safe-text')
const { printStatistics, printTrace } = require('./terminal')

async function trace ({ operand, options }) {
  const client = new Client(options)
  const json = await client.text(`/api/traces/${encodeURIComponent(operand)}${options.by === undefined ? '' : `/statistics?by=${options.by}`}`)
  if (options.json === true) process.stdout.write(`${escaped(json)}\n`)
  else process.stdout.write(options.by === undefined ? printTrace(json, { attributes: options.attributes === true }) : printStatistics(JSON.parse(json)))
}

module.exports = { trace }
