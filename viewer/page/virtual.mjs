// Ten thousand rows of which only those in sight exist. Rows have one height; one that stays in sight keeps its element.

const OVERSCAN = 6

/**
 * @param {HTMLElement} scroller what scrolls
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
  // Read when the browser has them anyway: asking in between makes it lay out the page at once.
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
    /** Draws all of them anew. */
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
    /** Draws one anew, if it is in sight. */
    redraw (index) {
      shown.get(index)?.replaceWith(place(index))
    },
    /** By how many rows a key goes on, undefined where it does not. */
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
