'use strict'

// npm run test:metrics [-- test files]
//
// Metrics and log records against what others have built: a Prometheus server that scrapes the path and answers queries, a current one that
// takes OTLP, promtool, rotel as an OTLP collector, and the SDK's
// instrumentations of HTTP, which counts the same requests, and of pino, which reads the same lines.
// Installs what is missing.

const { installRotel, installPrometheus, installPrometheusOtlp, installPeers } = require('./collectors/install')
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
      METRICS_PEERS: await installPeers()
    },
    timeoutS: 120
  })
})
