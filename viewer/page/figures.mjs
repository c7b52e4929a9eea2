// What routes, services and calls show alike: their figures, and links to the requests that explain them.

import { rateText } from '../views/rate.js'
import { tracePath } from './api.mjs'
import { fact, h } from './dom.mjs'
import { count, duration, line, percent } from './text.mjs'

/** The number of failures, and their share. */
export function failures ({ errors }, number) {
  return `${count(errors)} · ${percent(errors / number)}`
}

export function facts (each, label, number, rate, ...more) {
  return h('dl.facts.big',
    fact(label, count(number)), fact(rate, rateText(each.perSecond)), fact('Failed', each.errors === 0 ? 'none' : failures(each, number), each.errors > 0),
    each.p50Ms !== null && [fact('p50', duration(each.p50Ms)), fact('p99', duration(each.p99Ms))], more)
}

/** Links to the most useful requests, if there are any. @param {string} key the `data-key` of what they belong to */
export function ways (each, key, name) {
  return h('span.ways', ['slowest', 'failed', 'median'].map((way) => each[way] && h('a', { href: tracePath(each[way]), 'aria-label': `${way} request of ${line(name)}`, 'data-key': `${way} ${key}` }, way)))
}

/** The same links as buttons: [label, id of the trace]. */
export function wayButtons (...links) {
  return links.map(([label, id]) => id && h('a.button', { href: tracePath(id), 'data-key': label }, label))
}
