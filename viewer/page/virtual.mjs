// A list of, for example, ten thousand rows, in which only visible rows have elements. All rows have the same height. A row that stays visible
// keeps its element.

const OVERSCAN = 6

/**
 * @param {HTMLElement} scroller the element that scrolls
 * @param {{ rowHeight: () => number, render: (index: number) => HTMLElement }} options
 */
export function virtualRows (scroller, { rowHeight, render }) {
  const body = document.createElement('div')
  body.className = 'rows'
  body.setAttribute('role', 'rowgroup')
  scroller.append(body)
  const shown = new Map()
  let count = 0
  let scheduled = false
  // Read when the browser has just computed them. Otherwise reading them would force a layout of the page.
  let height, room, above
  let top = 0

  const measure = () => {
    height = rowHeight()
    above = body.offsetTop
    room = scroller.clientHeight - above
  }
  const place = (index) => {
    const element = render(index)
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

export function cssNumber (element, name) {
  return Number.parseFloat(getComputedStyle(element).getPropertyValue(name))
}
