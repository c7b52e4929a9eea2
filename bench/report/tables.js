'use strict'

// Makes the tables of targets, sizes and start-up, and the end of a caption.

const { table } = require('./markdown')
const { targets, judge } = require('../targets')
const { codeOf } = require('../run/code')

module.exports = { startupTable, targetsTable, sizesTable, provenance }

function targetsTable (results) {
  return table([
    ['', ({ target }) => target.label],
    ['target', ({ target }) => bound(target), 'right'],
    ['measured', ({ target, measured }) => measured ? amount(target, measured) : 'not measured', 'right'],
    ['', ({ verdict }) => verdict === 'missed' ? '**missed**' : verdict],
    ['why', ({ target, verdict }) => verdict === 'missed' || verdict === 'within the interval' ? target.why : '']
  ], targets.map((target) => ({ target, ...judge(target, results) })))
}

function bound ({ atMost, atLeast, unit }) {
  if (atMost !== undefined) return `≤ ${Number(atMost.toFixed(2)).toLocaleString('en')} ${unit}`
  return atLeast === undefined ? 'published' : `≥ ${atLeast} ${unit}`
}

function amount ({ unit, digits = 1 }, { median, min, max }) {
  const shown = (value) => value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  return `${shown(median)}${max > min ? ` (${shown(min)}…${shown(max)})` : ''} ${unit}`
}

const SIZES = {
  lighttrace: 'light-trace + fastify-plugin',
  api: '@opentelemetry/api (the peer)',
  'sdk2-by-hand': 'SDK 2.x by hand',
  'fastify-otel': '@fastify/otel',
  'nodesdk-http': 'NodeSDK: http + @fastify/otel',
  'nodesdk-auto': 'NodeSDK: auto-instrumentations + @fastify/otel'
}

// Results of run/installed-size.js.
function sizesTable ({ installedBytes }) {
  return table([
    ['', (name) => SIZES[name]],
    ['installed (MB)', (name) => (installedBytes[name] / 1e6).toFixed(2), 'right']
  ], Object.keys(SIZES))
}

// Results of startup.js. Its first case is Fastify alone.
function startupTable ({ rows, major, date, ...code }) {
  const list = Object.values(rows)
  const over = (until) => (row) => {
    const [, more, share] = row[until]
    return row === list[0] ? '' : `${millions(more)} (${(100 * share).toFixed(1)} %)`
  }
  return [
    table([
      ['', ({ label }) => label],
      ['until ready, in millions', ({ ready: [own] }) => millions(own), 'right'],
      ['more than Fastify', over('ready'), 'right'],
      ['until the first response', ({ answered: [own] }) => millions(own), 'right'],
      ['more than Fastify', over('answered'), 'right']
    ], list),
    '',
    `Instructions of a start, less those of a Node process that does nothing: the middle of two starts under callgrind. Node ${major}, ${date.slice(0, 10)}, ${codeOf([code])}.`
  ].join('\n')
}

function millions (instructions) {
  return (instructions / 1e6).toFixed(0)
}

/** The end of a caption. `counted`: the code versions of the rows, if they come from several. */
function provenance ({ machine, node, date, dirty, ...code }, counted = codeOf([code])) {
  return `Node ${node.replace('v', '')}, ${machine}, ${date.slice(0, 10)}, ${counted}${dirty ? ' (with uncommitted changes)' : ''}.`
}
