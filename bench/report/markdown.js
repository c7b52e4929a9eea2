'use strict'

// Makes markdown tables.

module.exports = { table, withSpread, replaceBetween }

// columns: [[title, (row) => text, 'right'?]]
function table (columns, rows) {
  const lines = [
    columns.map(([title]) => title),
    columns.map(([, , side]) => side === 'right' ? '---:' : '---'),
    ...rows.map((row) => columns.map(([, cell]) => cell(row)))
  ]
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

// [median, minimum, maximum], or [median, low, high]
function withSpread ([median, least, greatest], digits) {
  return `${median.toFixed(digits)} (${least.toFixed(digits)}…${greatest.toFixed(digits)})`
}

// Replaces the text between <!-- name:start --> and <!-- name:end --> with `content`; throws if they are missing.
function replaceBetween (text, name, content) {
  const [start, end] = [`<!-- ${name}:start -->`, `<!-- ${name}:end -->`]
  const from = text.indexOf(start)
  const to = text.indexOf(end)
  if (from === -1 || to < from) throw new Error(`no ${start} … ${end}`)
  return `${text.slice(0, from + start.length)}\n${content}\n${text.slice(to)}`
}
