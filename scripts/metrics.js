'use strict'

// npm run test:metrics [-- test files]
//
// Metrics against what others have built: a Prometheus server that scrapes the path and answers queries, a current one that
// takes OTLP, promtool, rotel as an OTLP collector, and the SDK's instrumentation of HTTP, which counts the same requests.
// Installs what is missing.

const { installRotel, installPrometheus, installPrometheusOtlp, installHttpInstrumentation } = require('./collectors/install')
const { withServers, runTests } = require('./with-servers')

withServers(async () => {
  const prometheus = await installPrometheus()
  return runTests({
    folder: 'test/metrics-servers',
    env: {
      METRICS_PROMETHEUS: prometheus,
      METRICS_PROMTOOL: prometheus.replace(/prometheus$/, 'promtool'),
      METRICS_PROMETHEUS_OTLP: await installPrometheusOtlp(),
      METRICS_ROTEL: await installRotel(),
      METRICS_PEERS: await installHttpInstrumentation()
    },
    timeoutS: 120
  })
})
