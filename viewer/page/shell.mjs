// The frame around every view: the bar at the top, the figures at the bottom, help, theme and import.

import { importFile } from './api.mjs'
import { h, iconButton, say, table } from './dom.mjs'
import { remember, remembered } from './memory.mjs'
import { sum } from './numbers.mjs'
import { bytes, count, line, plural } from './text.mjs'

const KEYS = [
  ['/', 'Search, or find a span in the trace'],
  ['↑ ↓', 'Previous, next row'],
  ['← →', 'Collapse, expand'],
  ['Enter', 'Open the request, show the span'],
  ['← → ⇧', 'In a chart: previous, next time, choose an interval'],
  ['e  E', 'Next, previous error'],
  ['z', 'Zoom to the span'],
  ['c', 'Copy the trace as text'],
  ['s', 'Switch between waterfall and statistics'],
  ['p', 'Pause, resume'],
  ['Shift ← →', 'Choose a time in a chart, then Enter'],
  ['Esc', 'Close the panel, zoom out, go back'],
  ['1 2 3 4 5 6', 'Requests, routes, exceptions, logs, metrics, services'],
  ['?', 'This list']
]

/** @returns {{ help, viewAt, connected, current, stats }} */
export function shell (app) {
  const links = [...document.querySelectorAll('nav a')]
  const foot = document.getElementById('foot')
  const state = document.getElementById('state')
  const file = h('input', { type: 'file', accept: '.json,.jsonl,.ndjson,application/json', class: 'sr', tabindex: '-1', 'aria-hidden': true, onchange: () => take([...file.files]) })
  document.getElementById('tools').append(
    file,
    iconButton('load', 'Import OTLP JSON', () => file.click()),
    themeButton(),
    iconButton('help', 'Keyboard shortcuts', help))
  acceptDrops()

  return {
    help,
    /** Goes to a view. @param {number} index in the bar; others do nothing */
    viewAt: (index) => links[index] && (() => app.go(links[index].pathname)),
    connected (connected) {
      const now = connected ? 'live' : 'lost'
      if (state.className === now) return // a screen reader announces each change
      state.className = now
      state.textContent = connected ? 'live' : 'not connected'
    },
    /** @param {(path: string) => string} carried adds the time interval to an address */
    current (path, carried) {
      const first = `/${path.split('/')[1]}`
      const shown = first === '/flame' ? '/routes' : ['/traces', '/compare'].includes(first) ? '/' : first
      for (const link of links) {
        link.toggleAttribute('aria-current', false)
        link.setAttribute('href', carried(link.pathname))
      }
      const link = links.find((each) => each.pathname === shown)
      link?.setAttribute('aria-current', 'page')
      link?.scrollIntoView({ block: 'nearest', inline: 'nearest' }) // a narrow bar scrolls
    },
    stats: (stats) => foot.replaceChildren(...figures(stats))
  }

  async function take (files) {
    for (const each of files) {
      try {
        const { spans, traces, ids } = await importFile(each)
        say(`${plural(spans, 'span')} of ${plural(traces, 'trace')} imported`)
        if (traces === 1 && ids.length === 1) app.go(`/traces/${ids[0]}`)
      } catch (error) {
        say(`${line(each.name, 60)}: ${error.message}`)
      }
    }
    file.value = ''
  }

  function acceptDrops () {
    document.addEventListener('dragover', (event) => event.preventDefault())
    document.addEventListener('drop', (event) => {
      event.preventDefault()
      take([...event.dataTransfer.files])
    })
  }
}

function help () {
  const dialog = h('dialog', { id: 'help', 'aria-labelledby': 'help-title', onclick: ({ target }) => target === dialog && dialog.close(), onclose: () => dialog.remove() },
    h('h2', { id: 'help-title' }, 'Keyboard'),
    table('', 'Keys', ['Key', 'What it does'], KEYS.map(([keys, text]) => [h('span', keys.split(' ').filter(Boolean).map((key) => h('kbd', key))), text])),
    h('form', { method: 'dialog' }, h('button.primary', 'Close')))
  document.body.append(dialog)
  dialog.showModal()
}

function figures (stats) {
  const lost = lossOf(stats)
  const libraries = line([...new Set(stats.apps.flatMap((each) => each.untracedLibraries))].join(', '), 60)
  const missing = [lost > 0 && `${count(lost)} lost`, libraries && `${libraries} not traced`].filter(Boolean).join(', ')
  return [
    h('span', plural(stats.traces, 'trace')),
    h('span', plural(stats.spans, 'span')),
    stats.lines.held > 0 && h('span.wide', plural(stats.lines.held, 'log line')),
    h('span.wide', `${bytes(stats.bytes)} of ${bytes(stats.maxBytes)}`),
    stats.app && h('span.wide.u', `${line(stats.app.command, 60)} ${stats.app.running ? `runs as process ${stats.app.pid}` : 'has ended'}`),
    h('a', { href: '/lost', class: missing === '' ? undefined : 'warn' }, missing || 'nothing lost')
  ].filter(Boolean)
}

/** The number of spans and log lines that were created but lost, in the viewer or in an app. */
export function lossOf (stats) {
  const all = (reasons) => sum(Object.values(reasons ?? {}))
  return stats.dropped.spans + all(stats.lines.dropped) + sum(stats.apps.map((each) => all(each.dropped) + each.rejected))
}

const THEME = 'light-trace theme'

function themeButton () {
  const root = document.documentElement
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const isDark = () => root.dataset.theme ? root.dataset.theme === 'dark' : dark.matches
  const stored = remembered(THEME)
  if (stored === 'dark' || stored === 'light') root.dataset.theme = stored
  const host = h('span')
  const draw = () => {
    const to = isDark() ? 'light' : 'dark'
    host.replaceChildren(iconButton(isDark() ? 'sun' : 'moon', `Switch to ${to}`, () => {
      root.dataset.theme = to
      remember(THEME, to)
      draw()
      host.firstChild.focus()
    }, { id: 'theme' }))
  }
  dark.addEventListener('change', draw)
  draw()
  return host
}
