'use strict'

// The chart of the README: what each way of tracing adds to a request, the rows of its table that were run on the same Node.

const { row } = require('../targets')

module.exports = drawChart

const ROWS = [
  ['light-trace, no request sampled', 'lighttrace-unsampled'],
  ['light-trace, every request', 'lighttrace-100'],
  ['SDK 2.x by hand', 'sdk2-by-hand'],
  ['@fastify/otel', 'fastify-otel'],
  ['NodeSDK: http + @fastify/otel', 'nodesdk-http']
]
const [WIDTH, LEFT, TOP, STEP] = [720, 230, 44, 28]
const BAR_WIDTH_MAX = WIDTH - LEFT - 90 // the figures stand behind the bars

/** → SVG text. @param {object} paired results of bench/paired.js */
function drawChart (paired) {
  const values = ROWS.map(([label, name]) => ({ label, name, micros: Math.max(0, row(paired, name).overKept.median) }))
  const most = Math.max(...values.map(({ micros }) => micros))
  const height = TOP + STEP * values.length + 10
  const title = `CPU time that tracing adds to a request, in µs (Node ${paired.node.slice(1)})`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title" font-family="system-ui, sans-serif" font-size="13" fill="#1f2328">`,
    `<title id="title">${title}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<text x="12" y="26" font-size="15" font-weight="600">${title}</text>`,
    ...values.map((value, i) => bar(value, TOP + STEP * i, BAR_WIDTH_MAX * value.micros / most)),
    '</svg>\n'
  ].join('\n')
}

function bar ({ label, name, micros }, y, width) {
  const color = name.startsWith('lighttrace') ? '#0a7d4f' : '#b9bfc6'
  return [
    `<text x="${LEFT - 10}" y="${y + 16}" text-anchor="end">${label}</text>`,
    `<rect x="${LEFT}" y="${y + 1}" width="${Math.max(1, width).toFixed(1)}" height="20" rx="2" fill="${color}"/>`,
    `<text x="${(LEFT + width + 8).toFixed(1)}" y="${y + 16}">${micros.toFixed(1)}</text>`
  ].join('')
}
