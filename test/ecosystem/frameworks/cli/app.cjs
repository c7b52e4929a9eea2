'use strict'

// What `fastify generate` makes, as an app of fastify-cli: it loads plugins/ first, then routes/.

const path = require('node:path')
const autoload = require('@fastify/autoload')
const fp = require('fastify-plugin')

module.exports = fp(async function (app, options) {
  app.register(autoload, { dir: path.join(__dirname, 'plugins'), options: { ...options } })
  app.register(autoload, { dir: path.join(__dirname, 'routes'), options: { ...options } })
})

module.exports.options = { trustProxy: true } // read because of --options
