'use strict'

/**
 * Fastify's `logger` option. `isSync`: each log call writes its line. Otherwise the lines of one turn share a write, and how many do
 * depends on how soon a thread has written the previous lines. Under valgrind that is random, and a matter of thousands of instructions
 * per request.
 * @param {true | { level?: string, isSync?: boolean }} options
 */
module.exports = ({ level = 'info', isSync = false }) => {
  if (!isSync) return { level, file: '/dev/null' }
  const pino = require('pino') // Fastify loads it too if there is a logger
  return { level, stream: pino.destination({ dest: '/dev/null', sync: true }) }
}
