// Requests to the server, and the events that it sends. viewer/api.md describes the API.

export async function get (path, params) {
  const response = await fetch(path + query(params))
  if (!response.ok) throw await failure(response)
  return response.json()
}

export async function getText (path, params) {
  const response = await fetch(path + query(params))
  if (!response.ok) throw await failure(response)
  return response.text()
}

/** @param {Blob} file OTLP JSON, one object or one object per line */
export async function importFile (file) {
  const response = await fetch('/api/import', { method: 'POST', headers: { 'content-type': 'application/json' }, body: file })
  if (!response.ok) throw await failure(response)
  return response.json()
}

async function failure (response) {
  const answer = await response.json().catch(() => ({}))
  return Object.assign(new Error(typeof answer.error === 'string' ? answer.error : `The viewer answered ${response.status}`), { status: response.status })
}

/** @param {object} [params] undefined and empty values are left out, lists are repeated */
export function query (params = {}) {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) {
    for (const each of [value].flat()) if (each !== undefined && each !== null && each !== '') search.append(name, each)
  }
  const text = search.toString()
  return text === '' ? '' : `?${text}`
}

/** The address of a trace. The API has the same under /api. */
export function tracePath (id, params) {
  return `/traces/${encodeURIComponent(id)}${query(params)}`
}

const EVENTS = ['hello', 'traces', 'routes', 'stats', 'logs', 'metrics', 'reset']

/**
 * A connection for the server's events. If it breaks, the browser reconnects. If the server refuses it, the browser gives up, and this
 * function tries again.
 * @param {(event: string, data: object) => void} listen gets the events of the server, and `lost` if the connection is lost. The first
 *   hello after a call of `follow` is passed as `greeting`: only what came while connecting was missed, which is less than with a `hello`.
 */
export function liveConnection (listen) {
  let source
  let current
  let retry
  let asked = true
  const open = () => {
    clearTimeout(retry)
    source?.close()
    if (document.hidden) return
    source = new EventSource('/api/events' + current)
    for (const name of EVENTS) {
      source.addEventListener(name, ({ data }) => {
        listen(asked && name === 'hello' ? 'greeting' : name, JSON.parse(data))
        asked = false
      })
    }
    source.onerror = ({ target }) => {
      if (target !== source) return
      listen('lost', {})
      if (source.readyState === EventSource.CLOSED) retry = setTimeout(open, 2000)
    }
  }
  // A browser has six connections to a server for all tabs, so a hidden tab has none.
  document.addEventListener('visibilitychange', () => current !== undefined && open())
  return {
    /** @param {object} [params] the filter of the traces that are sent */
    follow (params) {
      const wanted = query(params)
      if (wanted === current) return
      current = wanted
      asked = true
      open()
    }
  }
}
