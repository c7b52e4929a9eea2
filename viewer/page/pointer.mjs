// Nothing is redrawn while a mouse button is down, because an element that is replaced between down and up gets no click.

let pressed = false
let waiting = []

document.addEventListener('pointerdown', () => { pressed = true }, true)
for (const name of ['pointerup', 'pointercancel']) {
  document.addEventListener(name, () => {
    pressed = false
    const due = waiting
    waiting = []
    setTimeout(() => due.forEach((each) => each())) // after the click
  }, true)
}

/** Calls `act` now, or when the button is released. */
export function whenReleased (act) {
  if (pressed) waiting.push(act)
  else act()
}
