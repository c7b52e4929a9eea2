// Ten thousand rows of which only those in sight exist. Rows have one height; one that stays in sight keeps its element.

const OVERSCAN = 6

/**
 * @param {HTMLElement} scroller what scrolls
 * @param {{ rowHeight: () => number, render: (index: number) => HTMLElement, below?: () => number }} options
 */
export function virtualRows (scroller, { rowHeight, render }) {
  const body = document.createElement('div')
  body.className = 'rows'
  body.setAttribute('role', 'rowgroup')
  scroller.append(body)
  const shown = new Map()
  let count = 0
  let height = rowHeight()
  let scheduled = false

  const draw = () => {
    scheduled = false
    const top = scroller.scrollTop - body.offsetTop
    const first = Math.max(0, Math.floor(top / height) - OVERSCAN)
    const last = Math.min(count - 1, Math.ceil((top + scroller.clientHeight) / height) + OVERSCAN)
    for (const [index, element] of shown) {
      if (index >= first && index <= last) continue
      element.remove()
      shown.delete(index)
    }
    const fresh = document.createDocumentFragment()
    for (let index = first; index <= last; index++) {
      if (shown.has(index)) continue
      const element = render(index)
      element.style.transform = `translateY(${index * height}px)`
      shown.set(index, element)
      fresh.append(element)
    }
    body.append(fresh)
  }
  const schedule = () => {
    if (scheduled) return
    scheduled = true
    requestAnimationFrame(draw)
  }
  scroller.addEventListener('scroll', schedule, { passive: true })
  const resized = new ResizeObserver(() => {
    if (height === rowHeight()) return schedule()
    height = rowHeight()
    rows.update(count)
  })
  resized.observe(scroller)

  const rows = {
    /** Draws all of them anew. */
    update (newCount) {
      count = newCount
      for (const element of shown.values()) element.remove()
      shown.clear()
      body.style.height = `${count * height}px`
      draw()
    },
    show (index) {
      if (index < 0) return
      const above = body.offsetTop
      const top = index * height
      const room = scroller.clientHeight - above
      if (top < scroller.scrollTop) scroller.scrollTop = top
      else if (top + height > scroller.scrollTop + room) scroller.scrollTop = top + height - room
      draw()
    },
    /** Draws one anew, if it is in sight. */
    redraw (index) {
      if (!shown.has(index)) return
      const element = render(index)
      element.style.transform = `translateY(${index * height}px)`
      shown.get(index).replaceWith(element)
      shown.set(index, element)
    },
    page: () => Math.max(1, Math.floor((scroller.clientHeight - body.offsetTop) / height) - 1),
    close () {
      resized.disconnect()
    }
  }
  return rows
}

export function cssNumber (element, name) {
  return Number.parseFloat(getComputedStyle(element).getPropertyValue(name))
}
