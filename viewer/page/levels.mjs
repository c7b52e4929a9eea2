// The levels of log lines.

import { LEVELS } from '../otlp/names.js'
import { h } from './dom.mjs'
import { select } from './fields.mjs'

/** The level of a line, in the level's colour. */
export function levelMark (level) {
  return h('span', { class: `level l-${level}` }, level || 'log')
}

/** A select for the lowest level that is shown. @param {string[][]} more options: value and label */
export function levelSelect (value, changed, ...more) {
  return select('Level', changed, [['', 'All lines'], ...LEVELS.slice(1, -1).map((level) => [level, `Lines ≥ ${level}`]), ...more], value)
}

/** The rank of a level. A line without a level counts as info. */
export function rankOf (level) {
  return LEVELS.indexOf(level || 'info')
}
