'use strict'

// How the figures of a request have moved: bench/results/history.json, to which each `npm run docs:figures` adds what
// bench/results/instructions.json has anew.

const { HEADLINE_NODE } = require('../cases')
const { table } = require('./markdown')

const CASES = {
  real: 'a real request',
  'real-unsampled': 'that its caller did not sample',
  delivered: 'hello world, delivered',
  unsampled: 'hello world, not sampled'
}

module.exports = { withLatest, historyTable }

/** @param {{ date: string, figures: Record<string, { over: number, commit: string }> }[]} history oldest first */
function withLatest (history, instructions) {
  const { rows, date } = instructions.nodes[HEADLINE_NODE]
  const figures = Object.fromEntries(rows.filter(({ name }) => name in CASES).map(({ name, over, commit }) => [name, { over: Math.round(over.median), commit: commit.slice(0, 7) }]))
  const last = history.at(-1)?.figures ?? {}
  const isNew = Object.entries(figures).some(([name, { over }]) => over !== last[name]?.over)
  return isNew ? [...history, { date: date.slice(0, 10), figures }] : history
}

function historyTable (history) {
  const cell = (name) => ({ figures, before }) => {
    const figure = figures[name]
    if (figure === undefined) return ''
    const text = `+${figure.over.toLocaleString('en')}`
    return figure.over === before[name]?.over ? text : `**${text}** at ${figure.commit}`
  }
  return table(
    [['published', ({ date }) => date], ...Object.entries(CASES).map(([name, title]) => [title, cell(name), 'right'])],
    history.map((entry, index) => ({ ...entry, before: history[index - 1]?.figures ?? {} })).reverse()
  )
}
