'use strict'

// Makes the table of bench/RESULTS.md from bench/results/viewer.json.

const { table } = require('./markdown')
const { provenance } = require('./tables')

const MIB = 2 ** 20

/**
 * @param {object} result bench/results/viewer.json
 * @param {object | null} page bench/results/viewer-page.json; null if no browser was available
 */
function viewerTable (result, page) {
  const { start, seen, ingest, memory, largeTrace, sizes } = result
  const { many } = memory
  const rows = [
    ['From the command to listening, without Node\'s own start', `${ms(start.overMs)} (Node itself ${ms(start.nodeMs)})`, '0.3 s'],
    ['From a response until an open page receives its trace', `${ms(seen.medianMs)}, at most ${ms(seen.mostMs)} in ${seen.requests} requests`, '0.3 s'],
    ['Spans received per second of one core, while a page is open', `${thousands(ingest.perCpuSecond)}, none lost without being counted`, '20,000'],
    [`Memory held after ${thousands(memory.traces)} traces`, `${mib(memory.heldBytes)} of ${mib(memory.maxBytes)}; the process ${mib(memory.rssAfter)}`, '64 MiB of traces'],
    ...many === undefined ? [] : [[`… of ${thousands(many.series)} series of an hour and ${thousands(many.lines)} log lines, with \`--max-bytes ${many.limit}\``, `${mib(many.heldBytes)}; the process ${mib(many.rssAfter)}`, mib(many.maxBytes)]], // not measured yet
    [`The rows of a trace of ${thousands(largeTrace.spans)} spans`, `${ms(largeTrace.rowsMs)}, ${(largeTrace.bytes / MIB).toFixed(1)} MiB`, ''],
    ['The package, installed', `${mb(sizes.packageBytes)}, of which the viewer ${mb(sizes.viewerBytes)}; its dependency ${mb(sizes.dependencyBytes)}`, '1.94 MB'],
    ['The page', sizes.pageBytes === null ? '' : `${(sizes.pageBytes / 1000).toFixed(0)} KB`, '180 KB']
  ]
  if (page !== null) rows.splice(2, 0, ...pageRows(page))
  return [
    table([['', ([name]) => name], ['measured', ([, figure]) => figure, 'right'], ['promised', ([, , bound]) => bound, 'right']], rows),
    '',
    `Medians. Spans per second are per second of the viewer's CPU time. ${provenance(result, `commit ${result.commit.slice(0, 7)}`)}`,
    ...(page === null ? [] : ['', `The page: Chromium ${page.chromium} on a ${page.machine}${page.realTime ? ', measured at real-time priority' : ''}, ${page.date.slice(0, 10)}.`])
  ].join('\n')
}

function pageRows ({ spans, firstPaintMs, allRowsMs, emptyPaintMs, scrolling, mainThread, metrics, lines, seenMs }) {
  return [
    ['… until the page shows its row, in Chromium', `${ms(seenMs.median)}, at most ${ms(seenMs.max)} in ${seenMs.count} requests`, '0.3 s'],
    [`First paint of a trace of ${thousands(spans)} spans`, `${ms(firstPaintMs.median)}, at best ${ms(firstPaintMs.min)}; ${ms(mainThread.loadMs.median)} of CPU in the page`, '0.2 s'],
    ...emptyPaintMs === undefined ? [] : [['… of an empty page, for comparison', ms(emptyPaintMs.median), '']], // not measured yet
    ...allRowsMs === undefined ? [] : [['… until all of its rows are available', ms(allRowsMs.median), '']], // not measured yet
    ['A frame while scrolling through it, CPU in the page', `${ms(mainThread.scrollFrameMs.median)}, at most ${ms(mainThread.scrollFrameMs.max)}`, 'under 50 ms'],
    ['Tasks longer than 50 ms while scrolling', `${scrolling.longTasks} in ${scrolling.frames} frames`, '0'],
    ...[[scrolling, spans, 'spans'], [metrics, metrics?.series, 'series of metrics, while new values arrive'], [lines, lines?.lines, 'log lines, while new ones arrive']]
      .filter(([measured]) => measured?.frameMs !== undefined) // not measured yet
      .map(([{ frameMs }, count, what]) => [`95th percentile of a frame: scrolling ${thousands(count)} ${what}`, `${ms(frameMs.p95)}, median ${ms(frameMs.median)}`, 'under 50 ms'])
  ]
}

function ms (value) {
  return `${value.toFixed(0)} ms`
}

function mb (bytes) {
  return `${(bytes / 1e6).toFixed(2)} MB`
}

function mib (bytes) {
  return bytes === undefined ? '?' : `${(bytes / MIB).toFixed(0)} MiB`
}

function thousands (value) {
  const rounded = value >= 1e6 ? value : Math.round(value / 1000) * 1000
  return Math.round(rounded).toLocaleString('en')
}

module.exports = { viewerTable }
