// A small picture of counts over time: a bar for each time slot. An SVG, because it takes its colour from the text around it.

import { svg } from './dom.mjs'
import { sum } from './numbers.mjs'
import { clock, plural } from './text.mjs'

const SLOTS = 60
const HEIGHT = 20
const LEAST = 2 // the height of the lowest bar

/** @param {{ atMs: number, count: number }[]} histogram */
export function spark (histogram, { nowMs, slotMs }) {
  const most = Math.max(...histogram.map(({ count }) => count))
  const last = Math.floor(nowMs / slotMs)
  const bars = histogram.map(({ atMs, count }) => {
    const height = Math.max(LEAST, count / most * HEIGHT)
    return `M${SLOTS - 1 - last + Math.floor(atMs / slotMs)} ${HEIGHT}v${-height}h.8v${height}z`
  })
  return svg('svg', { class: 'spark', viewBox: `0 0 ${SLOTS} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': spoken(histogram, slotMs) }, svg('path', { d: bars.join('') }))
}

function spoken (histogram, slotMs) {
  const minutes = `in ${Math.ceil(SLOTS * slotMs / 60_000)} min`
  if (histogram.length === 0) return `No requests ${minutes}`
  const total = sum(histogram.map(({ count }) => count))
  const highest = histogram.reduce((a, b) => b.count > a.count ? b : a)
  return `${plural(total, 'request')} ${minutes}, at most ${highest.count} in ${Math.round(slotMs / 1000)} s, at ${clock(highest.atMs).slice(0, 8)}`
}
