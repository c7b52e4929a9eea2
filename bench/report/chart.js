'use strict'

// The chart of the README: what each way of tracing adds to a request, drawn by Vega-Lite.

const { README_ROWS } = require('./tables')
const { row } = require('../targets')

module.exports = drawChart

// → SVG text
async function drawChart (result) {
  const [vega, vegaLite] = await Promise.all([import('vega'), import('vega-lite')])
  const { spec } = vegaLite.compile(chartOf(result))
  const view = new vega.View(vega.parse(spec), { renderer: 'none' })
  const svg = await view.toSVG()
  view.finalize()
  return svg + '\n'
}

function chartOf (result) {
  const values = README_ROWS.map((name) => row(result, name))
    .filter((r) => r?.overMicros && r.faults.length === 0)
    .map((r) => ({ label: r.label, micros: Math.max(0, r.overMicros.median), ours: r.name.startsWith('lighttrace') }))
    .sort((a, b) => a.micros - b.micros)
  return {
    background: 'white',
    padding: 12,
    width: 520,
    height: { step: 26 },
    title: { text: `CPU µs per request over bare Fastify (Node ${result.node.slice(1)})`, anchor: 'start', fontSize: 14 },
    data: { values },
    encoding: {
      y: { field: 'label', type: 'nominal', sort: values.map(({ label }) => label), title: null, axis: { labelLimit: 0, labelFontSize: 12, ticks: false, domain: false } },
      x: { field: 'micros', type: 'quantitative', title: null, axis: { grid: true, gridColor: '#eee', domain: false, ticks: false } }
    },
    layer: [
      { mark: { type: 'bar', cornerRadiusEnd: 2 }, encoding: { color: { field: 'ours', type: 'nominal', scale: { domain: [true, false], range: ['#0a7d4f', '#b9bfc6'] }, legend: null } } },
      { mark: { type: 'text', align: 'left', dx: 4, fontSize: 12 }, encoding: { text: { field: 'micros', type: 'quantitative', format: '.2f' } } }
    ],
    config: { view: { stroke: null }, font: 'system-ui, sans-serif' }
  }
}
