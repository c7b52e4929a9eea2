// A small picture of counts over time: a bar for each time slot. An SVG, because it takes its colour from the text around it.

import { clock, plural } from './text.mjs'

const SLOTS = 60
const HEIGHT = 20
const LEAST = 2 // the height of the lowest bar
const SVG = 'http://www.w3.org/2000/svg'

/** @param {{ atMs: number, count: number }[]} histogram */
export function spark (histogram, { nowMs, slotMs }) {
  const svg = document.createElementNS(SVG, 'svg')
  const path = document.createElementNS(SVG, 'path')
  for (const [name, value] of Object.entries({ class: 'spark', viewBox: `0 0 ${SLOTS} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': spoken(histogram, slotMs) })) svg.setAttribute(name, value)
  const most = Math.max(...histogram.map(({ count }) => count))
  const last = Math.floor(nowMs / slotMs)
  path.setAttribute('d', histogram.map(({ atMs, count }) => {
    const height = Math.max(LEAST, count / most * HEIGHT)
    return `M${SLOTS - 1 - last + Math.floor(atMs / slotMs)} ${HEIGHT}v${-height}h.8v${height}z`
  }).join(''))
  svg.append(path)
  return svg
}

function spoken (histogram, slotMs) {
  const minutes = `in ${Math.ceil(SLOTS * slotMs / 60_000)} min`
  if (histogram.length === 0) return `No requests ${minutes}`
  const sum = histogram.reduce((total, { count }) => total + count, 0)
  const highest = histogram.reduce((a, b) => b.count > a.count ? b : a)
  return `${plural(sum, 'request')} ${minutes}, at most ${highest.count} in ${Math.round(slotMs / 1000)} s, at ${clock(highest.atMs).slice(0, 8)}`
}
