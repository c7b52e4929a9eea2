'use strict'

// Log lines as OTLP JSON.

module.exports = { sendLogs }

/** Sends { traceId, spanId, at, severity, text, attributes }. */
async function sendLogs (url, ...lines) {
  const logRecords = lines.map(({ at, severity = 9, text, traceId, spanId, attributes = {} }) => ({
    timeUnixNano: `${BigInt(Math.round(at * 1e3))}000`,
    severityNumber: severity,
    body: { stringValue: text },
    traceId,
    spanId,
    attributes: Object.entries(attributes).map(([key, stringValue]) => ({ key, value: { stringValue } }))
  }))
  const body = JSON.stringify({ resourceLogs: [{ resource: { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] }, scopeLogs: [{ scope: { name: 'pino' }, logRecords }] }] })
  const { status } = await fetch(`${url}/v1/logs`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  if (status !== 200) throw new Error(`the viewer answered ${status}`)
}
