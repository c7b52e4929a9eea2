'use strict'

// Starts both services, each in its own process, and stops them on SIGINT and SIGTERM.

const { fork } = require('node:child_process')
const { join } = require('node:path')

const services = ['stock.js', 'shop.js'].map((file) => fork(join(__dirname, file)))

for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => { for (const service of services) service.kill('SIGTERM') })
