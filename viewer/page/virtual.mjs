// A list of, for example, ten thousand rows, in which only visible rows have elements. All rows have the same height. A row that stays visible
// keeps its element.

import { h } from './dom.mjs'

const OVERSCAN = 6
const INDENT_MAX = 24

/**
 * @param {HTMLElement} scroller the element that scrolls
 * @param {(index: number) => HTMLElement} render
 */
export function virtualRows (scroller, render) {
  const body = h('div.rows', { role: 'rowgroup' })
  scroller.append(body)
  const shown = new Map()
  let count = 0
  let scheduled = false
  // Read when the browser has just computed them. Otherwise reading them would force a layout of the page.
  let height, room, above
  let top = 0

  const measure = () => {
    height = Number.parseFloat(getComputedStyle(scroller).getPropertyValue('--row'))
    above = body.offsetTop
    room = scroller.clientHeight - above
  }
  const place = (index) => {
    const element = render(index)
    element.id = `r${index}`
    element.role = 'row'
    element.ariaRowIndex = index + 2
    element.style.transform = `translateY(${index * height}px)`
    shown.set(index, element)
    return element
  }
  const draw = () => {
    scheduled = false
    const first = Math.max(0, Math.floor(top / height) - OVERSCAN)
    const last = Math.min(count - 1, Math.ceil((top + room) / height) + OVERSCAN)
    for (const [index, element] of shown) {
      if (index >= first && index <= last) continue
      element.remove()
      shown.delete(index)
    }
    const fresh = document.createDocumentFragment()
    for (let index = first; index <= last; index++) if (!shown.has(index)) fresh.append(place(index))
    body.append(fresh)
  }
  const schedule = () => {
    top = scroller.scrollTop
    if (scheduled) return
    scheduled = true
    requestAnimationFrame(draw)
  }
  scroller.addEventListener('scroll', schedule, { passive: true })
  const resized = new ResizeObserver(() => {
    const before = height
    measure()
    if (before === height) schedule()
    else rows.update(count)
  })
  resized.observe(scroller)

  const rows = {
    /** Redraws all visible rows. */
    update (newCount) {
      if (!(height > 0)) measure()
      count = newCount
      scroller.ariaRowCount = count + 1
      for (const element of shown.values()) element.remove()
      shown.clear()
      body.style.height = `${count * height}px`
      top = Math.max(0, Math.min(top, count * height - room))
      draw()
    },
    show (index) {
      if (index < 0) return
      const at = index * height
      const wanted = at < top ? at : Math.max(top, at + height - room)
      if (wanted === top) return
      top = scroller.scrollTop = wanted
      draw()
    },
    /** Redraws one row, if it is visible. */
    redraw (index) {
      shown.get(index)?.replaceWith(place(index))
    },
    /** Says which row the keyboard is on. */
    point (index) {
      if (index < 0) scroller.removeAttribute('aria-activedescendant')
      else scroller.setAttribute('aria-activedescendant', `r${index}`)
    },
    /** Redraws the row that was selected and the one that is. */
    select (before, index) {
      rows.redraw(before)
      rows.show(index)
      rows.redraw(index)
      rows.point(index)
    },
    /** The number of rows by which a key moves, or undefined for other keys. */
    move ({ key }) {
      const page = Math.max(1, Math.floor(room / height) - 1)
      return { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[key]
    },
    close () {
      resized.disconnect()
    }
  }
  return rows
}

/** The heads of a grid. @param {[name: string, column: string][]} columns @param {Node} [more] another head */
export function gridHead (columns, more) {
  return h('div.head', { role: 'row', 'aria-rowindex': 1 }, columns.map(([name, column]) => h(`div.${column}`, { role: 'columnheader' }, name)), more)
}

/** A cell of a grid. @param {string} column its class */
export function gridCell (column, ...children) {
  const cell = h(`div.${column}`, ...children)
  cell.role = 'gridcell'
  return cell
}

/** The properties that indent the name in a row of a tree. */
export function indent ({ depth }) {
  return { style: { '--depth': Math.min(depth, INDENT_MAX) } }
}
