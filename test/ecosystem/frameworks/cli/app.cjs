'use strict'

// An app for fastify-cli, as `fastify generate` creates it. It loads plugins/ first, then routes/.

const path = require('node:path')
const autoload = require('@fastify/autoload')
const fp = require('fastify-plugin')

module.exports = fp(async function (app, options) {
  app.register(autoload, { dir: path.join(__dirname, 'plugins'), options: { ...options } })
  app.register(autoload, { dir: path.join(__dirname, 'routes'), options: { ...options } })
})

module.exports.options = { trustProxy: true } // read because of --options
