// The page: the view of each address, the keys that work in every view, and the events of the server.

import { liveConnection } from './api.mjs'
import { isPlain, problem, say } from './dom.mjs'
import { intervalControl } from './interval.mjs'
import { whenReleased } from './pointer.mjs'
import { shell } from './shell.mjs'
import { requestsView } from './requests.mjs'
import { traceView } from './trace.mjs'
import { routesView, routeView } from './routes.mjs'
import { exceptionsView } from './exceptions.mjs'
import { compareView } from './compare.mjs'
import { logsView } from './logs.mjs'
import { lostView } from './lost.mjs'
import { metricsView } from './metrics.mjs'
import { servicesView } from './services.mjs'

// Addresses are permanent: each can be reloaded and shared.
const VIEWS = [
  [/^\/traces\/([^/]+)$/, traceView],
  [/^\/routes$/, (page) => page.params.has('route') ? routeView(page) : routesView(page)],
  [/^\/flame$/, routeView],
  [/^\/exceptions$/, exceptionsView],
  [/^\/compare$/, compareView],
  [/^\/lost$/, lostView],
  [/^\/logs$/, logsView],
  [/^\/metrics$/, metricsView],
  [/^\/services$/, servicesView],
  [/^\//, requestsView]
]

const main = document.getElementById('main')
const time = intervalControl((interval) => app.narrow(interval))
document.getElementById('state').before(time.element)
let view
let address

const app = {
  opened: undefined, // the id of the trace that was opened last
  ahead: undefined, // the first rows of a trace, if the page was loaded with them
  /** Goes to an address of the page. */
  go (path) {
    history.pushState({ inside: true }, '', time.carried(path))
    open()
  },
  /** The parameters of the time interval, for requests to the server: { last }, { from, to } or {}. */
  get interval () { return time.params },
  /** Whether not all time is shown. */
  get isNarrowed () { return Object.keys(time.params).length > 0 },
  /** Opens the page again, with another time interval. */
  narrow (interval) {
    time.set(interval)
    const params = new URLSearchParams(location.search)
    for (const name of ['from', 'to', 'last']) params.delete(name)
    app.go(`${location.pathname}${params.size > 0 ? `?${params}` : ''}`)
  },
  /** Goes back to the previous view, or to the requests if the user came from another site. */
  back () {
    if (history.state?.inside) history.back()
    else app.go('/')
  },
  /** Changes the address to match the open view, which has already changed. */
  rename (path) {
    history.replaceState(history.state, '', time.carried(path))
    address = location.pathname + location.search
  },
  title (text) {
    document.title = text === '' ? 'light-trace' : `${text} · light-trace`
  }
}

// The server sends the page of a trace with the trace's first rows.
const rows = document.getElementById('rows')
if (rows) {
  app.ahead = JSON.parse(rows.textContent)
  rows.remove()
}

const chrome = shell(app)
const live = liveConnection((event, data) => {
  chrome.connected(event !== 'lost')
  if (event === 'stats') chrome.stats(data)
  else if (data.stats) chrome.stats(data.stats)
  whenReleased(() => view?.live?.(event, data))
})
app.follow = live.follow

function open () {
  if (address === location.pathname + location.search && view !== undefined) return view.hash?.()
  address = location.pathname + location.search
  view?.close?.()
  main.replaceChildren()
  time.read(location)
  const [format, make] = VIEWS.find(([format]) => format.test(location.pathname))
  const page = { app, host: main, params: new URLSearchParams(location.search), id: safeDecode(format.exec(location.pathname)[1]) }
  view = make(page)
  chrome.current(location.pathname, time.carried)
  if (view.follow) live.follow(view.follow)
}

function safeDecode (text = '') {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[href^="/"]')
  if (!link || !isPlain(event)) return
  if (link.hasAttribute('download') || link.pathname.startsWith('/api/')) return
  event.preventDefault()
  app.go(link.pathname + link.search + link.hash)
  if (link.closest('nav') === null) main.focus({ preventScroll: true })
})

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
  if (document.querySelector('dialog[open], :popover-open') !== null) return
  const typing = event.target.closest?.('input, select, textarea') !== null
  if (event.key === 'Escape' && typing) {
    event.target.blur()
    view?.focus?.()
    return
  }
  if (typing) return
  const act = { '?': chrome.help, '/': view?.search }[event.key] ?? chrome.viewAt(event.key - 1)
  if (act !== undefined) {
    event.preventDefault()
    return act()
  }
  if (view?.key?.(event) === true) event.preventDefault()
})

window.addEventListener('popstate', open)
window.addEventListener('unhandledrejection', ({ reason }) => say(String(reason?.message ?? reason)))
window.addEventListener('error', ({ message }) => main.prepend(problem(`The page has failed: ${message}`)))
open()
