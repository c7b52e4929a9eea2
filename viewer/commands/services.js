'use strict'

// npx light-trace services [name]

const { Client } = require('./client')
const { servicesText } = require('../views/services-text')

async function services ({ operand, options }) {
  const map = await new Client(options).json(`/api/services${operand === undefined ? '' : `?${new URLSearchParams({ of: operand })}`}`)
  process.stdout.write(`${options.json === true ? JSON.stringify(map) : servicesText(map, operand)}\n`)
}

module.exports = { services }
