'use strict'

/** A logger that keeps each message with its code in the list `logged`. */
function tellingLogger () {
  const logged = []
  const logger = { level: 'warn', child: () => logger, logged }
  for (const level of ['trace', 'debug', 'info', 'error', 'fatal']) logger[level] = () => {}
  logger.warn = (fields, message) => logged.push([fields?.code, message])
  return logger
}

module.exports = { tellingLogger }
