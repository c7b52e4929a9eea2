/** What this browser keeps; a browser may forbid it. */
export function remembered (name) {
  try {
    return localStorage.getItem(name)
  } catch {
    return null
  }
}

export function remember (name, value) {
  try {
    localStorage.setItem(name, value)
  } catch {}
}
