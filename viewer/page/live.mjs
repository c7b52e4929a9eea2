// When a view loads its data again.

/** What a view does with the events of the server: loads again when the connection is there, and after news of this kind. */
export function onNews (load, kind) {
  return (event) => { if ([kind, 'hello', 'greeting', 'reset'].includes(event)) load() }
}

/**
 * Makes loads follow each other. If data changes during a load, it is loaded again after a pause. The pause is as long as the load, because a
 * search may be slow.
 * @param {() => Promise<void>} load
 */
export function inTurn (load) {
  let loading = false
  let again = false
  return async function next () {
    again = loading
    if (loading) return
    loading = true
    const startedAt = performance.now()
    try {
      await load()
    } finally {
      loading = false
      if (again) setTimeout(next, performance.now() - startedAt)
    }
  }
}
