'use strict'

// Fastify alone, after `list`, the paths of some files in a JSON file, has been loaded. See run/startup-floors.js.

module.exports = ({ list }) => {
  for (const file of require(list)) require(file)
  return { fastify: {} }
}
