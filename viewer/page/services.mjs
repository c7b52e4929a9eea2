// Services: a map of who calls whom, the same as tables, and the figures of what is selected.

import { rateText } from '../views/rate.js'
import { get, query } from './api.mjs'
import { bdi, button, drawn, h, iconButton, keyed, linkButton, redrawn, scrolling, svg, table, viewHead } from './dom.mjs'
import { fillSelect, select } from './fields.mjs'
import { facts, failures, wayButtons, ways } from './figures.mjs'
import { inTurn, onNews } from './live.mjs'
import { count, duration, line, percent, plural, short } from './text.mjs'

const SIDES = [['', 'what it calls, and what calls it'], ['calls', 'what it depends on'], ['callers', 'what depends on it']]
const KINDS = { service: 'service', client: 'sends no spans', db: 'database', host: 'host', messaging: 'queue' }
const SHAPES = {
  service: 'M3 2.5h10v11H3zM6 6h4M6 9h4',
  client: 'M8 2.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5M3 13.5c0-5 10-5 10 0',
  db: 'M3 4c0-2 10-2 10 0v8c0 2-10 2-10 0zM3 4c0 2 10 2 10 0',
  host: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M2 8h12M8 2c-4 3-4 9 0 12M8 2c4 3 4 9 0 12',
  messaging: 'M2 4h12v8H2zM2 4l6 5 6-5'
}

export function servicesView ({ app, host, params }) {
  const state = { of: params.get('of') ?? '', side: params.get('side') ?? '' }
  const load = inTurn(loadNow)
  let chosen = chosenIn(params)
  let data
  let placed
  let shownOnce = false
  let at // the data-key of the item of the map that the keyboard is on
  const narrow = matchMedia('(max-width: 600px)')
  const body = scrolling('Services', true)
  const map = h('section.map-box', { 'aria-label': 'Map' })
  const list = h('section', { id: 'tables', 'aria-label': 'Tables', tabindex: '-1' })
  const panel = h('aside.panel', { 'aria-label': 'Selected', hidden: true })
  const node = select('Only what belongs to', (value) => narrowTo(value, state.side))
  const side = select('Which side', (value) => narrowTo(state.of, value), SIDES)
  const note = h('p.remark')
  app.title('Services')
  host.append(
    viewHead('Services', 'Who calls whom, in the stored traces. On each line: rate, median time, and in red the share that failed.'),
    h('div.tools', node, side, h('span.gap'), linkButton('Table', () => list.focus())),
    h('div.trace-body', body, panel))
  arrange()
  narrow.addEventListener('change', arrange)
  node.addEventListener('focus', fill)
  fill()
  load()
  return {
    follow: {},
    live: onNews(load, 'routes'),
    close: () => narrow.removeEventListener('change', arrange),
    focus: () => body.focus(),
    search: () => node.focus(),
    key: ({ key }) => key === 'Escape' && leave()
  }

  async function loadNow () {
    const { of, side } = state
    const answer = await get('/api/services', { of, side, ...app.interval, layout: Math.max(1, body.parentElement.clientWidth) })
    if (of !== state.of || side !== state.side) return // another choice was made meanwhile, and is loading
    data = answer
    redrawn(host, draw)
  }

  // On a narrow screen the tables come first, because a map is wider than the screen.
  function arrange () {
    body.replaceChildren(note, ...(narrow.matches ? [list, map] : [map, list]))
  }

  async function fill () {
    const { nodes } = await get('/api/services', app.interval)
    const known = nodes.map((each) => [each.id, nameOf(each)]).sort(([, a], [, b]) => a.localeCompare(b))
    fillSelect(node, [['', 'Everything'], ...known], state.of)
    mark()
  }

  function mark () {
    node.value = state.of
    side.value = state.side
    side.disabled = state.of === ''
    for (const each of [node, side]) each.classList.toggle('set', each.value !== '' && !each.disabled)
  }

  function narrowTo (of, which) {
    state.of = of
    state.side = of === '' ? '' : which
    mark()
    rename()
    loadNow()
  }

  function rename () {
    app.rename('/services' + query({ ...state, ...chosen }))
  }

  function leave () {
    if (chosen !== null) choose(null)
    else if (state.of !== '') narrowTo('', '')
    else app.go('/')
    return true
  }

  function choose (what) {
    chosen = what
    rename()
    if (data !== undefined) redrawn(host, draw)
  }

  function draw () {
    note.textContent = [
      data.more > 0 && `${plural(data.more, 'call')} of what is less busy ${data.more === 1 ? 'is' : 'are'} not shown.`,
      data.incomplete && 'These are the newest traces only: there are more than could be read in time.'
    ].filter(Boolean).join(' ')
    note.hidden = note.textContent === ''
    const byId = new Map(data.nodes.map((each) => [each.id, each]))
    if (data.nodes.length === 0) {
      map.replaceChildren(h('p.nothing', state.of === '' ? 'No trace has arrived yet.' : 'No stored trace has this.'))
      list.replaceChildren()
    } else {
      setPlaces(byId)
      drawMap(byId)
      list.replaceChildren(...tables(byId))
    }
    drawPanel(byId)
  }

  // While only figures change, the map keeps its places.
  function setPlaces (byId) {
    const edges = new Map(data.edges.map((each) => [edgeKey(each), each]))
    const shape = [...byId.keys(), ...edges.keys()].sort().join('\n')
    if (placed?.shape !== shape) placed = { shape, ...data.layout }
    for (const each of placed.nodes) each.node = byId.get(each.id)
    for (const each of placed.edges) each.edge = edges.get(edgeKey(each))
  }

  function drawMap (byId) {
    const { width, height, dense, nodes, edges } = placed
    const on = ({ from, to }) => chosen !== null && (chosen.node === undefined ? from === chosen.caller && to === chosen.callee : from === chosen.node || to === chosen.node)
    const some = edges.some(({ edge }) => on(edge))
    const lines = edges.map((each) => svg('g', { class: `edge-line ${each.edge.errors > 0 ? 'bad' : ''} ${on(each.edge) ? 'on' : some ? 'off' : ''}` },
      svg('path', { d: each.path }), svg('path', { d: each.head, class: 'arrow' }), svg('path', { d: each.path, class: 'hit', onclick: () => choose(edgeChoice(each.edge)) })))
    const boxes = nodes.map((each) => itemOf(each.node.id, nodeKey(each.node.id), {
      class: `node is-${each.node.kind}`,
      title: `${line(nameOf(each.node))}\n${described(each.node)}`,
      'aria-pressed': chosen?.node === each.node.id,
      style: { left: `${each.x}px`, top: `${each.y}px`, height: `${each.height}px` },
      onclick: () => choose({ node: each.node.id })
    }, [drawn(SHAPES[each.node.kind]), h('span.words', bdi(each.node.name || 'no name', 60), h('small', below(each.node)))]))
    const labels = edges.map((each) => itemOf(each.edge, edgeKey(each.edge), {
      class: `edge ${on(each.edge) ? 'on' : ''}`,
      title: `${line(nameOf(byId.get(each.edge.from)))} → ${line(nameOf(byId.get(each.edge.to)))}\n${described(each.edge)}`,
      'aria-pressed': chosen?.caller === each.edge.from && chosen?.callee === each.edge.to,
      style: { left: `${each.x}px`, top: `${each.y}px` },
      onclick: () => choose(edgeChoice(each.edge))
    }, [h('span.sr', `${line(nameOf(byId.get(each.edge.from)))} calls ${line(nameOf(byId.get(each.edge.to)))}, `), h('span', `${rateText(each.edge.perSecond)} · ${short(each.edge.p50Ms)}`), each.edge.errors > 0 && h('span.bad', [percent(each.edge.errors / each.edge.calls), h('span.sr', ' failed')])]))
    const group = h('div', {
      class: `map ${dense ? 'dense' : ''}`,
      role: 'group',
      'aria-label': 'Arrow keys go along the calls, Enter shows the figures',
      style: { width: `${width}px`, height: `${height}px` },
      onkeydown: move
    }, svg('svg', { width, height, 'aria-hidden': true }, ...lines), boxes, labels)
    map.replaceChildren(group)
    const first = shownOnce ? undefined : map.querySelector('[aria-pressed=true]')
    shownOnce = true
    first?.scrollIntoView({ block: 'nearest', inline: 'center' })
    const stop = (at !== undefined && keyed(group, at)) || group.querySelector('.node')
    stop.tabIndex = 0
  }

  // One stop for the Tab key: within the map, the arrow keys move.
  function itemOf (id, key, props, content) {
    return button(content, undefined, { tabindex: '-1', 'data-key': key, onfocus: ({ currentTarget }) => stopAt(currentTarget, key), ...props })
  }

  function stopAt (element, key) {
    at = key
    for (const each of map.querySelectorAll('[tabindex="0"]')) each.tabIndex = -1
    element.tabIndex = 0
  }

  function move (event) {
    const next = event.key.startsWith('Arrow') ? nextOf(event.key.slice(5)) : undefined
    if (next === undefined) return
    event.preventDefault()
    event.stopPropagation()
    const element = keyed(map, next)
    element.focus({ preventScroll: true })
    element.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }

  function nextOf (direction) {
    const step = { Up: -1, Down: 1 }[direction]
    const nodeAt = placed.nodes.findIndex(({ id }) => nodeKey(id) === at)
    if (nodeAt !== -1) {
      const { left, right } = placed.nodes[nodeAt]
      if (step !== undefined) return placed.nodes[nodeAt + step] && nodeKey(placed.nodes[nodeAt + step].id)
      const edge = placed.edges[direction === 'Right' ? right : left]
      return edge && edgeKey(edge)
    }
    const edgeAt = placed.edges.findIndex((edge) => edgeKey(edge) === at)
    if (edgeAt === -1) return undefined
    if (step !== undefined) return placed.edges[edgeAt + step] && edgeKey(placed.edges[edgeAt + step])
    return nodeKey(placed.edges[edgeAt][direction === 'Right' ? 'right' : 'left'])
  }

  function tables (byId) {
    const pick = (label, key, what) => linkButton(bdi(label, 80), () => choose(what), { 'data-key': `row ${key}` })
    const numbers = (each, number) => [count(number), rateText(each.perSecond), each.errors === 0 ? '–' : h('span.bad', failures(each, number)), duration(each.p50Ms), duration(each.p99Ms)]
    return [
      h('h2', 'Calls'),
      table('.wide-table.calls', 'Calls', ['From', 'To', '#Calls', '#Rate', '#Failed', '#p50', '#p99', 'Show'], data.edges.map((edge) => [
        line(nameOf(byId.get(edge.from)), 80), pick(nameOf(byId.get(edge.to)), edgeKey(edge), edgeChoice(edge)), ...numbers(edge, edge.calls), ways(edge, edgeKey(edge), nameOf(byId.get(edge.to)))
      ])),
      h('h2', 'Services, databases and hosts'),
      table('.wide-table.calls.nodes', 'Services, databases and hosts', ['Name', 'Kind', '#Requests', '#Rate', '#Failed', '#p50', '#p99', 'Show'], data.nodes.map((each) => [
        pick(nameOf(each), nodeKey(each.id), { node: each.id }), KINDS[each.kind], ...numbers(each, each.requests), ways(each, nodeKey(each.id), nameOf(each))
      ]))
    ]
  }

  function drawPanel (byId) {
    const edge = chosen !== null && data.edges.find(({ from, to }) => from === chosen.caller && to === chosen.callee)
    const node = chosen !== null && byId.get(chosen.node)
    panel.hidden = !edge && !node
    if (panel.hidden) return
    const head = (title) => h('div.title', h('h2', title), iconButton('close', 'Close', () => choose(null)))
    const links = (each, where) => h('div.actions',
      where && h('a.button', { href: '/' + query(where), 'data-key': 'requests' }, 'Its requests'),
      wayButtons(['Slowest', each.slowest], ['Last failed', each.failed]))
    if (edge) {
      const [from, to] = [byId.get(edge.from), byId.get(edge.to)]
      panel.replaceChildren(head([bdi(nameOf(from), 120), ' → ', bdi(nameOf(to), 120)]), facts(edge, 'Calls', edge.calls, 'Rate'), links(edge, { where: [...from.where, ...to.where] }))
      return
    }
    const calls = (label, edges, other) => edges.length > 0 && [h('h3', label), h('ul.links', edges.map((each) => h('li',
      linkButton(bdi(nameOf(byId.get(each[other])), 80), () => choose(edgeChoice(each)), { 'data-key': `panel ${edgeKey(each)}` }),
      h('span.quiet', ` ${plural(each.calls, 'call')}, ${short(each.p50Ms)}`), each.errors > 0 && h('span.bad', ` ${count(each.errors)} failed`))))]
    const only = (which, label) => (state.of !== node.id || state.side !== which) && button(label, () => narrowTo(node.id, which), { 'data-key': `only ${which}` })
    panel.replaceChildren(...[
      head(bdi(nameOf(node), 120)), h('p.sub', KINDS[node.kind]),
      facts(node, node.kind === 'service' ? 'Requests' : 'Calls', node.requests, 'Rate'),
      links(node, node.where.length > 0 && { where: node.where }),
      h('div.actions', only('calls', 'What it depends on'), only('callers', 'What depends on it')),
      calls('Calls', data.edges.filter(({ from }) => from === node.id), 'to'),
      calls('Called by', data.edges.filter(({ to }) => to === node.id), 'from')
    ].flat().filter(Boolean))
  }
}

function chosenIn (params) {
  if (params.has('node')) return { node: params.get('node') }
  return params.has('caller') ? { caller: params.get('caller'), callee: params.get('callee') } : null
}

function edgeChoice ({ from, to }) {
  return { caller: from, callee: to }
}

function nodeKey (id) {
  return `node ${id}`
}

function edgeKey ({ from, to }) {
  return `edge ${from} → ${to}`
}

function nameOf ({ name, system }) {
  return system === '' || system === 'http' || system === name ? name || 'no name' : `${system} ${name}`
}

function below ({ kind, system, requests, errors }) {
  if (kind !== 'service') return system === '' || kind === 'host' ? KINDS[kind] : line(system, 30)
  return errors > 0 ? h('span.bad', `${count(errors)} of ${count(requests)} failed`) : plural(requests, 'request')
}

function described ({ calls, requests, errors, perSecond, p50Ms, p99Ms }) {
  return [
    calls === undefined ? plural(requests, 'request') : plural(calls, 'call'), rateText(perSecond), p50Ms !== null && `median ${duration(p50Ms)}, p99 ${duration(p99Ms)}`, errors > 0 && `${count(errors)} failed`
  ].filter(Boolean).join(', ')
}
