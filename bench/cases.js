'use strict'

// The cases, as data.
//
// name      what --cases takes
// label     what tables say
// setup     server/setups/<setup>.js
// options   handed to the setup
// env       of the server process; {sink} is the sink's URL for this case, {down} one that nobody listens on
// against   the case that the difference is taken to, measured in the same round; none: 'bare'
// spans     how many spans a request makes; { ratio } where it is a matter of chance
// delivers  true: spans lost make the round invalid, they are not just counted
// route     a name in routes.js; none: hello
// headers   sent with each request
// load      { connections, pipelining, rate } over the run's own
// node      the Node major; none: the headline's
// sets      which sets of cases it belongs to

const HEADLINE_NODE = 24
const LIGHT_TRACE = { setup: 'light-trace', env: { OTEL_EXPORTER_OTLP_ENDPOINT: '{sink}' } }

const cases = [
  { name: 'bare', label: 'Fastify', setup: 'bare', spans: 0, sets: ['quick', 'headline'] },
  { name: 'als-floor', label: '+ one AsyncLocalStorage', setup: 'als-floor', spans: 0, sets: ['quick', 'headline'] },
  { name: 'request-context', label: '+ @fastify/request-context', setup: 'request-context', spans: 0, sets: ['headline'] },
  { ...LIGHT_TRACE, name: 'lighttrace-100', label: 'light-trace, every request', spans: 1, delivers: true, sets: ['quick', 'headline'] }
]

module.exports = { cases, HEADLINE_NODE }
