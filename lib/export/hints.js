'use strict'

// What was probably meant, where the exporter's URL leads to something else than an OTLP receiver.

// Ports of web pages and of other protocols, beside the receivers.
const PORTS = new Map([
  ['3000', "3000 is Grafana's page"],
  ['3200', "3200 is Tempo's query API"],
  ['4317', '4317 is gRPC'],
  ['8888', "8888 is the Collector's own metrics"],
  ['9090', '9090 is Prometheus'],
  ['9411', "9411 is Zipkin's"],
  ['13133', "13133 is the Collector's health check"],
  ['16686', "16686 is Jaeger's page"],
  ['55679', "55679 is the Collector's zPages"]
])

/**
 * @param {Outcome} outcome
 * @param {URL} url the exporter's
 * @returns {string} '' or a clause that begins with a semicolon
 */
function hintOf ({ error, status, format }, { port, pathname }) {
  // What talks HTTP/2 from the first byte is most likely the gRPC port next door.
  if (error?.code === 'EBADMSG' || format === 'grpc') return `; OTLP over HTTP usually is port 4318, ${PORTS.get(port) ?? '4317 is gRPC'}`
  if (error !== null) return ''
  if (status === 407) return '; user and password of the proxy belong into its URL'
  if (format === 'html') return `; that is a web page: OTLP over HTTP usually is port 4318, path /v1/traces${PORTS.has(port) ? `; ${PORTS.get(port)}` : ''}`
  if (status < 404 || status > 405) return ''
  if (PORTS.has(port)) return `; OTLP over HTTP usually is port 4318; ${PORTS.get(port)}`
  return pathname.endsWith('/v1/traces') ? '' : '; the path of OTLP for traces usually is /v1/traces'
}

module.exports = { hintOf }
