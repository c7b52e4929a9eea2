'use strict'

// Draws the README's chart: the throughput that Fastify keeps with each way of tracing. It is the first column of the README's table,
// with more rows.

module.exports = drawChart

const [WIDTH, LEFT, TOP, STEP] = [720, 310, 44, 28]
const BAR_WIDTH_MAX = WIDTH - LEFT - 70 // leaves room for the figures after the bars

/** → SVG text. @param {object} seeds a table of bench/seeds.js */
function drawChart ({ rows, node, profile: { connections, pipelining } }) {
  const values = rows.map(({ name, label, relativeRps }) => ({ label, name, ratio: relativeRps?.[0] ?? 1 }))
  const most = Math.max(...values.map(({ ratio }) => ratio))
  const height = TOP + STEP * values.length + 10
  const title = `Throughput relative to Fastify, ${connections} connections × ${pipelining} requests (Node ${node.slice(1)})`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title" font-family="system-ui, sans-serif" font-size="13" fill="#1f2328">`,
    `<title id="title">${title}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<text x="12" y="26" font-size="15" font-weight="600">${title}</text>`,
    ...values.map((value, i) => bar(value, TOP + STEP * i, BAR_WIDTH_MAX * value.ratio / most)),
    '</svg>\n'
  ].join('\n')
}

function bar ({ label, name, ratio }, y, width) {
  const color = name.startsWith('lighttrace') ? '#0a7d4f' : '#b9bfc6'
  return [
    `<text x="${LEFT - 10}" y="${y + 16}" text-anchor="end">${label}</text>`,
    `<rect x="${LEFT}" y="${y + 1}" width="${Math.max(1, width).toFixed(1)}" height="20" rx="2" fill="${color}"/>`,
    `<text x="${(LEFT + width + 8).toFixed(1)}" y="${y + 16}">${ratio.toFixed(2)}</text>`
  ].join('')
}
