/** Reads a value from localStorage, which a browser may forbid. */
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
