'use strict'

// npx light-trace services [name]

const { Client, problem } = require('./client')
const { jsonText } = require('../views/safe-text')
const { noServicesText, servicesText } = require('../views/services-text')

async function services ({ operand, options }) {
  process.stdout.write(`${await listServices(new Client(options), { of: operand, isJson: options.json === true })}\n`)
}

/**
 * What a terminal and an assistant read of the services, from a running viewer.
 * @param {Client} client
 * @param {{ of?: string, side?: string, last?: string, isJson?: boolean }} [options]
 * @returns {Promise<string>}
 * @throws if nothing is known of `of`
 */
async function listServices (client, { of, isJson = false, ...narrowing } = {}) {
  const map = await client.json(`/api/services?${new URLSearchParams({ ...of !== undefined && { of }, ...narrowing })}`)
  if (isJson) return jsonText(map)
  if (map.nodes.length > 0) return servicesText(map, of)
  const { nodes } = await client.json('/api/services')
  const text = noServicesText(nodes, of)
  if (of !== undefined) throw problem(text)
  return text
}

module.exports = { services, listServices }
