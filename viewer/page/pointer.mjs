// While a button of the mouse is down nothing is redrawn: an element that is replaced between down and up gets no click.

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

/** Calls it now, or as soon as the button is up. */
export function whenReleased (act) {
  if (pressed) waiting.push(act)
  else act()
}
