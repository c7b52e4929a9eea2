'use strict'

/**
 * Fastify's option `logger`. `isSync`: each line is written by the call that logs it. Else the lines of a turn share a write, and
 * how many do depends on how soon a thread has written the ones before: under valgrind a matter of chance, of thousands of
 * instructions a request.
 * @param {true | { level?: string, isSync?: boolean }} options
 */
module.exports = ({ level = 'info', isSync = false }) => {
  if (!isSync) return { level, file: '/dev/null' }
  const pino = require('pino') // Fastify loads it where there is a logger
  return { level, stream: pino.destination({ dest: '/dev/null', sync: true }) }
}
