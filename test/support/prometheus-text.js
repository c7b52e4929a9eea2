'use strict'

// Checks a metrics text against the rules of Prometheus' parser. Returns a list of errors, which is empty for a valid text.
// test/metrics-servers also checks with promtool and the real servers.

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{((?:[^"}]|"(?:[^"\\\n]|\\[\\"n])*")*)\})? (NaN|[+-]Inf|-?[\d.]+(?:e[+-]\d+)?)( # .*)?$/
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)",?/y
const SUFFIXES = { gauge: [''], info: ['_info'], counter: ['_total', '_created'], histogram: ['_bucket', '_sum', '_count', '_created'] }

function faultsIn (text, isOpenMetrics = false) {
  const lines = text.split('\n')
  const faults = lines.pop() === '' ? [] : ['no line feed at the end']
  if (isOpenMetrics && lines.pop() !== '# EOF') faults.push('no end')
  const families = new Set()
  const seen = new Set()
  let names = []
  for (const line of lines) {
    const head = /^# (HELP|TYPE|UNIT) ([a-zA-Z_:][\w:]*)(?: ([^\n]*))?$/.exec(line)
    if (head !== null) {
      const [, what, name, type] = head
      if (what !== 'TYPE') continue
      names = SUFFIXES[type].map((suffix) => isOpenMetrics || type !== 'counter' || suffix === '_created' ? `${name}${suffix}` : name)
      for (const taken of new Set([name, ...names])) families.has(taken) ? faults.push(`family ${taken}: twice`) : families.add(taken)
      continue
    }
    const sample = SAMPLE.exec(line)
    if (sample === null) {
      faults.push(`${line}: no sample`)
      continue
    }
    const [, name, labels = ''] = sample
    if (!names.includes(name)) faults.push(`${line}: not in its family`)
    const pairs = labelsOf(labels)
    if (pairs === null) faults.push(`${line}: no labels`)
    const keys = new Set()
    for (const [key] of pairs ?? []) {
      if (keys.has(key) || key.startsWith('__')) faults.push(`${line}: label ${key}`)
      keys.add(key)
    }
    const id = `${name}{${(pairs ?? []).filter(([, value]) => value !== '').map(([key, value]) => `${key}="${value}"`).sort()}}`
    if (seen.has(id)) faults.push(`${line}: twice`)
    seen.add(id)
  }
  return faults
}

function labelsOf (text) {
  const pairs = []
  for (LABEL.lastIndex = 0; LABEL.lastIndex < text.length;) {
    const found = LABEL.exec(text)
    if (found === null) return null
    pairs.push([found[1], found[2]])
  }
  return pairs
}

module.exports = { faultsIn }
