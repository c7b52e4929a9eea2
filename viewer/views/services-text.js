'use strict'

// The answer of GET /api/services as text.
//
//   shop  service  120 requests  3 failed  1.2/s  p50 7.0 ms  p99 40.0 ms
//     → postgresql db:5432/shop  240 calls  2.4/s  p50 2.1 ms  p99 8.0 ms  slowest <trace id>
//     ← clients  120 calls  3 failed  …  failed <trace id>
//
//   Rates are over 60.0 s.

const { rateText } = require('./rate')
const { plural, safeText } = require('./safe-text')
const { duration } = require('./text')

const NAMES_MAX = 20

function servicesText ({ nodes, edges, overMs, more, incomplete }, of) {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const heads = nodes.filter((node) => node.kind === 'service' || isCalled(node, of))
  const parts = heads.map((node) => [
    `${nameOf(node)}  ${node.kind}  ${plural(node.requests, 'request')}${figures(node)}`,
    ...edges.filter(({ from }) => from === node.id).map((edge) => `  → ${callOf(edge, byId.get(edge.to))}`),
    ...edges.filter(({ to, from }) => to === node.id && from !== to).map((edge) => `  ← ${callOf(edge, byId.get(edge.from))}`)
  ].join('\n'))
  if (more > 0) parts.push(`… and ${plural(more, 'call')} that ${more === 1 ? 'is' : 'are'} not shown`)
  if (overMs !== null) parts.push(`Rates are over ${duration(overMs)}.`)
  if (incomplete) parts.push('… of the newest traces only: there are more than could be read in time')
  return parts.join('\n\n')
}

/** The answer has no nodes: says which services there are. @param {object[]} nodes of the whole map @param {string} [of] what was asked for */
function noServicesText (nodes, of) {
  if (nodes.length === 0) return 'No trace has been received yet.'
  const isKnown = of === undefined || nodes.some((node) => isCalled(node, of))
  const names = nodes.filter(({ kind }) => kind === 'service').map(nameOf)
  return `No trace ${isKnown ? 'is of this time' : 'has this service'}. The services are: ${names.slice(0, NAMES_MAX).join(', ')}${names.length > NAMES_MAX ? ', …' : '.'}`
}

function isCalled ({ id, name }, of) {
  return id === of || name === of
}

function nameOf ({ name, system }) {
  return safeText(system === '' || system === name ? name || 'no name' : `${system} ${name}`)
}

function callOf (edge, node) {
  return `${nameOf(node)}  ${plural(edge.calls, 'call')}${figures(edge)}${edge.slowest === null ? '' : `  slowest ${edge.slowest}`}${edge.failed === null ? '' : `  failed ${edge.failed}`}`
}

function figures ({ errors, perSecond, p50Ms, p99Ms }) {
  return `${errors > 0 ? `  ${errors} failed` : ''}${p50Ms === null ? '' : `  ${rateText(perSecond)}  p50 ${duration(p50Ms)}  p99 ${duration(p99Ms)}`}`
}

module.exports = { noServicesText, servicesText }
