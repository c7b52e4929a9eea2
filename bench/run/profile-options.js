'use strict'

const { parseArgs } = require('node:util')

/**
 * The options of a bench's command line. Those that are numbers are its profile, which its results file names.
 * @param {Record<string, number>} numbers with their defaults
 * @param {object} others as `parseArgs` of node:util takes them; --publish is always there
 * @returns {{ profile: Record<string, number>, values: object }}
 */
function readProfileOptions (numbers, others = {}) {
  const names = Object.keys(numbers)
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string', default: String(numbers[name]) }]))
  const { values } = parseArgs({ options: { publish: { type: 'boolean', default: false }, ...options, ...others } })
  return { profile: Object.fromEntries(names.map((name) => [name, Number(values[name])])), values }
}

module.exports = { readProfileOptions }
