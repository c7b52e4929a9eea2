'use strict'

// Imports OTLP JSON from a file: one object, or one object per line.

const { Malformed } = require('../otlp/proto-reader')
const { requestFromJson, logsFromJson } = require('../otlp/json-request')

/** @returns {{ spans: number, lines: number, traces: number, dropped: number, ids: string[] }} @throws Malformed, and then imports nothing */
function importText (store, text) {
  const requests = documentsOf(text).map(({ json, line }) => {
    try {
      return [requestFromJson(json), logsFromJson(json)]
    } catch (error) {
      if (error instanceof Malformed && line !== undefined) error.message = `line ${line}: ${error.message}`
      throw error
    }
  })
  const result = { spans: 0, lines: 0, dropped: 0 }
  const ids = new Set()
  for (const [request, logs] of requests) {
    const { spans, dropped } = store.receive(request, (touched) => { for (const { id } of touched.keys()) ids.add(id) })
    result.spans += spans
    result.dropped += dropped
    if (logs.length === 0) continue
    const lines = store.receiveLines(logs)
    result.lines += lines.kept
    result.dropped += lines.dropped
  }
  return { ...result, traces: ids.size, ids: [...ids] }
}

function documentsOf (text) {
  text = text.replace(/^\ufeff/, '').trimEnd()
  const whole = parsed(text)
  if (whole !== undefined) return (Array.isArray(whole) ? whole : [whole]).map((json) => ({ json }))
  return text.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return []
    const json = parsed(line)
    if (json === undefined) throw new Malformed(`line ${i + 1} is not JSON`)
    return [{ json, line: i + 1 }]
  })
}

function parsed (text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

module.exports = { importText }
