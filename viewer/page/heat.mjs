// Draws latency over time: a column for each time slot, a row for each duration bucket, and darker cells for more requests.

import { h } from './dom.mjs'
import { duration, plural } from './text.mjs'

const SLOTS_MIN = 18

/** @param {{ histogram: { atMs, counts: number[], errors: number }[] }} route */
export function heat (route, { buckets, slotMs, nowMs, slots, isNarrowed }, { width = 180, height = 28 } = {}) {
  if (route.histogram.length === 0) return h('span.quiet', 'No requests')
  const canvas = h('canvas.heat', { role: 'img', 'aria-label': spoken(route, buckets, isNarrowed), style: { width: `${width}px`, height: `${height}px` } })
  const scale = window.devicePixelRatio || 1
  canvas.width = width * scale
  canvas.height = height * scale
  document.getElementById('main').append(canvas) // its colours come from the style sheet, which applies only to elements in the page
  draw(canvas, route.histogram, { rows: buckets.length + 1, slots, last: Math.floor(nowMs / slotMs), slotMs })
  canvas.remove()
  return canvas
}

function draw (canvas, histogram, { rows, slots, last, slotMs }) {
  const pen = canvas.getContext('2d')
  const { color, caretColor } = getComputedStyle(canvas)
  const most = Math.max(1, ...histogram.flatMap(({ counts }) => counts))
  const column = canvas.width / slots
  const strip = Math.max(2, canvas.height / 14) // failed requests, at the bottom
  const row = (canvas.height - strip) / rows
  for (const { atMs, counts, errors } of histogram) {
    const x = (slots - 1 - (last - Math.floor(atMs / slotMs))) * column
    if (x < 0) continue
    pen.fillStyle = color
    for (const [bucket, number] of counts.entries()) {
      if (number === 0) continue
      pen.globalAlpha = 0.25 + 0.75 * Math.log1p(number) / Math.log1p(most)
      pen.fillRect(x, canvas.height - strip - (bucket + 1) * row, Math.max(1, column - 1), Math.max(1, row))
    }
    pen.globalAlpha = 1
    pen.fillStyle = caretColor
    if (errors > 0) pen.fillRect(x, canvas.height - strip, Math.max(1, column - 1), strip)
  }
}

/** The number of time slots in the pictures of these routes: from the first request on, and at least SLOTS_MIN. */
export function slotsOf ({ routes, slotMs, nowMs }) {
  const first = Math.min(nowMs, ...routes.map(({ histogram }) => histogram[0]?.atMs ?? nowMs))
  return Math.max(SLOTS_MIN, Math.floor(nowMs / slotMs) - Math.floor(first / slotMs) + 1)
}

function spoken ({ histogram }, buckets, isNarrowed) {
  const sums = new Array(buckets.length + 1).fill(0)
  for (const { counts } of histogram) for (const [bucket, number] of counts.entries()) sums[bucket] += number
  const parts = sums.flatMap((number, bucket) => number === 0
    ? []
    : [`${plural(number, 'request')} ${bucket < buckets.length ? `up to ${duration(buckets[bucket])}` : `over ${duration(buckets.at(-1))}`}`])
  return `Latency ${isNarrowed ? 'over time' : 'in the last ten minutes'}: ${parts.join(', ') || 'no requests'}`
}
