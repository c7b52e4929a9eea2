'use strict'

// npm run test:collector [-- test files]
//
// Installs the collectors that are missing, starts them on free loopback ports, runs test/collector/ against them and
// ends them.

const { installJaeger, installRotel } = require('./collectors/install')
const { startJaeger, startRotel } = require('./collectors/start')
const { startRecorder } = require('./collectors/recorder')
const { withServers, runTests } = require('./with-servers')

withServers(async (open) => {
  const recorder = await open(startRecorder())
  const jaeger = await open(startJaeger(await installJaeger()))
  const rotel = await open(startRotel(await installRotel(), recorder.otlpUrl))
  console.log(`Jaeger: OTLP ${jaeger.tracesUrl}, query ${jaeger.queryUrl}; rotel: OTLP ${rotel.tracesUrl}`)
  return runTests({
    folder: 'test/collector',
    env: {
      COLLECTOR_JAEGER_TRACES: jaeger.tracesUrl,
      COLLECTOR_JAEGER_QUERY: jaeger.queryUrl,
      COLLECTOR_ROTEL_TRACES: rotel.tracesUrl,
      COLLECTOR_ROTEL_QUERY: recorder.queryUrl
    }
  })
})
