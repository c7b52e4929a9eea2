// Tables of the results of the thirty requests with each tracer.

export const NAMES = {
  'light-trace': 'light-trace',
  'fastify-otel': '@fastify/otel',
  'node-sdk': 'NodeSDK and @fastify/otel',
  'dd-trace': 'dd-trace'
}
const EXAMPLE = 'a query with a token'
const NOTHING = '–'
// The rows that users of another tracer need most.
const ON_PAGE = ['a parameter', 'a route with a prefix and two hooks', 'no route', 'an error with status 404', 'an error', 'a stream that breaks', 'a client that disconnects', 'a call by `fetch`']
const NOT_COMPARED = /^(?:_|process_id$|runtime-id$|language$|service$|span\.kind$|component$)/ // internal tags of dd-trace

/** The tables of spans.md. @param {Map<string, object[]>} served setup → its requests, as serve() returns them @returns {string} */
export function allTables (served) {
  return [spanTable(served), exampleTable(served), otherTable(served)].join('\n\n')
}

/** The tables of docs/migration.md. */
export function pageTables (served) {
  return [spanTable(served, ON_PAGE), otherTable(served)].join('\n\n')
}

function spanTable (served, only = served.get('light-trace').map(({ name }) => name)) {
  return table(['request', ...headings(served)], only.map((name) => [name, ...columns(served, (requests) => spansIn(find(requests, name)))]))
}

function spansIn ({ spans }) {
  const server = spans.find(({ kind }) => kind === 'SERVER')
  const more = spans.length - (server === undefined ? 0 : 1)
  const cell = server === undefined ? 'none' : `\`${server.name}\`${server.isError ? ' ERROR' : ''}`
  return more === 0 ? cell : `${cell} + ${more}`
}

// Values that differ from run to run are replaced by a description.
function exampleTable (served) {
  const attributes = columns(served, (requests) => serverSpan(requests, EXAMPLE).attributes)
  const names = [...new Set(attributes.flatMap(Object.keys))].filter((name) => !NOT_COMPARED.test(name)).sort()
  return table(['attribute', ...headings(served)], names.map((name) => [`\`${name}\``, ...attributes.map((of) => valueIn(name, of[name]))]))
}

function valueIn (name, value) {
  if (value === undefined) return NOTHING
  return /port$/.test(name) ? 'the port' : `\`${String(value).replace(/:\d+\//, ':3000/')}\``
}

function otherTable (served) {
  return table(['', ...headings(served)], [
    ['`setAttribute` of the active span sets', ...columns(served, (requests) => ownersOf(requests, 'an attribute by the API', ({ attributes }) => 'user.id' in attributes))],
    ['an error is recorded on', ...columns(served, (requests) => ownersOf(requests, 'an error', ({ events }) => events.includes('exception')))],
    ['a span made with the API is a child of', ...columns(served, parentOfOwnSpan)],
    ['a log line has', ...columns(served, idsInLog)],
    ['a call by `fetch` sends `traceparent`', ...columns(served, (requests) => find(requests, 'a call by `fetch`').calls.every(({ traceparent }) => traceparent !== undefined) ? 'yes' : 'no')]
  ])
}

function ownersOf (requests, name, has) {
  return find(requests, name).spans.filter(has).map(label).sort().join(', ') || 'no span'
}

function parentOfOwnSpan (requests) {
  const { spans } = find(requests, 'a span made with the API')
  const own = spans.find(({ name }) => name === 'price')
  const parent = spans.find(({ spanId }) => spanId === own?.parentSpanId)
  return parent === undefined ? NOTHING : label(parent)
}

// The file or function name after the dash is left out.
function label ({ kind, name }) {
  return kind === 'SERVER' ? 'the SERVER span' : `\`${name.split(' - ')[0]}\``
}

function idsInLog (requests) {
  const line = find(requests, 'a log line').lines.filter((line) => line.includes('from the handler')).map((line) => JSON.parse(line))[0]
  const ids = Object.keys(line).filter((key) => /^(?:trace_|span_|dd$)/.test(key))
  return ids.length === 0 ? NOTHING : ids.map((id) => `\`${id}\``).join(', ')
}

function find (requests, name) {
  return requests.find((request) => request.name === name)
}

function serverSpan (requests, name) {
  return find(requests, name).spans.find(({ kind }) => kind === 'SERVER')
}

function columns (served, cell) {
  return [...served.values()].map(cell)
}

function headings (served) {
  return [...served.keys()].map((name) => NAMES[name])
}

function table (heading, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [line(heading), `|${'---|'.repeat(heading.length)}`, ...rows.map(line)].join('\n')
}
