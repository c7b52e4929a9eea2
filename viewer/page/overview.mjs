// The overview above the requests: how many started when, and how many failed. An interval that is chosen in it narrows every page.

import { get } from './api.mjs'
import { chart } from './chart.mjs'
import { h, linkButton } from './dom.mjs'
import { nameOf } from './interval.mjs'
import { sum } from './numbers.mjs'
import { whenReleased } from './pointer.mjs'
import { count, plural } from './text.mjs'

const EVERY_MS = 1000
const SLIDE_MS = 10_000 // the last minutes go on without requests, too

/**
 * @param {{ app, params: () => object, loaded: (answer: object) => void }} options params: the filter of the requests; loaded: called with each answer of the server
 */
export function overview ({ app, params, loaded }) {
  const figure = chart({ label: 'Requests over time', format: count, height: 84, onSelect: narrow })
  const note = h('div.overview-note')
  const element = h('section.overview', { 'aria-label': 'Requests over time', hidden: true }, figure.element, note)
  let slotMs = 1
  let timer
  let slider
  let loading = false
  let again = false
  let closed = false
  figure.element.addEventListener('pointerdown', touched)
  return { element, load, soon, close }

  async function load () {
    again = loading
    if (loading || closed) return
    clearTimeout(timer)
    clearTimeout(slider)
    timer = undefined
    if (app.interval.last) slider = setTimeout(load, SLIDE_MS)
    loading = true
    const startedAt = performance.now()
    try {
      const answer = await get('/api/traces/overview', params())
      whenReleased(() => !closed && draw(answer))
    } catch {
      element.hidden = true // the list shows the error
    } finally {
      loading = false
      if (again && !closed) soon(performance.now() - startedAt)
    }
  }

  // A search in many requests takes a while, so the pause between two grows with it.
  function soon (tookMs = 0) {
    timer ??= setTimeout(load, EVERY_MS + 4 * tookMs)
  }

  function draw (answer) {
    slotMs = answer.slotMs
    const total = sum(answer.requests)
    element.hidden = total + answer.earlier + answer.later === 0 && !app.isNarrowed
    const some = (values) => values.map((value) => value === 0 ? null : value)
    const hasFailed = answer.failed.some((number) => number > 0)
    figure.set({
      fromMs: answer.atMs[0],
      toMs: answer.atMs.at(-1) + slotMs,
      atMs: answer.atMs,
      lines: [{ label: 'Requests', values: some(answer.requests), colour: '--hue-0', bars: true }, ...(hasFailed ? [{ label: 'Failed', values: some(answer.failed), colour: '--bad', bars: true }] : [])]
    })
    drawNote(answer)
    loaded(answer)
  }

  function drawNote ({ earlier, later, incomplete }) {
    const focused = note.contains(document.activeElement)
    note.replaceChildren(...[
      app.isNarrowed && h('span', nameOf(app.interval)),
      app.isNarrowed && linkButton('Show all', () => app.narrow({})),
      earlier > 0 && h('span.quiet', `${plural(earlier, 'request')} started earlier`),
      later > 0 && h('span.quiet', `${plural(later, 'request')} started later`),
      incomplete && h('span.quiet', 'The newest requests only: the search took too long')
    ].filter(Boolean))
    if (focused) note.querySelector('button')?.focus()
  }

  // Whole slots, because that is what can be seen.
  function narrow (fromMs, toMs) {
    const byKeyboard = figure.element.contains(document.activeElement)
    app.narrow({ from: Math.floor(fromMs / slotMs) * slotMs, to: (Math.floor(toMs / slotMs) + 1) * slotMs - 1 })
    if (byKeyboard) document.getElementById('interval').focus()
  }

  // uPlot listens to the mouse only, and ignores events without a movement. A finger that moves sideways does the same.
  function touched (event) {
    const { target, pointerId, pointerType } = event
    if (pointerType === 'mouse' || !target.classList.contains('u-over')) return
    const send = (type, { clientX, clientY }) => target.dispatchEvent(new window.MouseEvent(type, { clientX, clientY, movementX: 1, buttons: 1, bubbles: true }))
    const over = new AbortController()
    const on = (name, listener) => target.addEventListener(name, (event) => event.pointerId === pointerId && listener(event), { signal: over.signal })
    target.setPointerCapture(pointerId)
    send('mousemove', event)
    send('mousedown', event)
    on('pointermove', (event) => send('mousemove', event))
    for (const name of ['pointerup', 'pointercancel']) on(name, (event) => { over.abort(); send('mouseup', event) })
  }

  function close () {
    clearTimeout(timer)
    clearTimeout(slider)
    closed = true
    figure.close()
  }
}
