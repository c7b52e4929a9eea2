'use strict'

// Formats a trace for this terminal from its OTLP JSON.

const { TraceStore } = require('../store/trace-store')
const { importText } = require('../store/import')
const { textOf } = require('../views/text')
const { statisticsText } = require('../views/trace-statistics')

const STYLES = { error: [31, 39], warn: [33, 39], dim: [2, 22], bold: [1, 22] }

/** @param {string} json OTLP JSON of one trace */
function printTrace (json, { attributes = false } = {}) {
  const store = new TraceStore({ maxBytes: Infinity })
  const { ids } = importText(store, json)
  return ids.length === 0 ? '' : textOf(store.get(ids[0]), { attributes, paint: painter() })
}

/** @param {object} answer of GET /api/traces/<id>/statistics */
function printStatistics (answer) {
  return statisticsText(answer, painter())
}

function painter () {
  return hasColours() ? paint : undefined
}

function hasColours () {
  const { NO_COLOR, FORCE_COLOR } = process.env
  if (NO_COLOR) return false
  return FORCE_COLOR !== undefined && FORCE_COLOR !== '0' ? true : process.stdout.isTTY === true
}

function paint (style, text) {
  const [on, off] = STYLES[style]
  return `\u001b[${on}m${text}\u001b[${off}m`
}

module.exports = { printTrace, printStatistics }
