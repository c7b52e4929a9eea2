// Shows what was lost, and where: in the viewer, on the way to it, or in the app.

import { get } from './api.mjs'
import { bdi, h, scrolling, table, viewHead } from './dom.mjs'
import { sum } from './numbers.mjs'
import { bytes, count, line } from './text.mjs'

const REASONS = {
  evicted: 'removed with its whole trace to make room for newer traces',
  trace_too_large: 'one trace may use half of the memory',
  resource_too_large: 'its resource and scope were larger than 64 KiB',
  ids: 'it had no valid ids',
  malformed: 'the message could not be read',
  too_large: 'the message was larger than 64 MiB',
  media_type: 'it was neither protobuf nor JSON',
  method: 'it was no call or path of OTLP',
  protocol: 'it was not gRPC, and came to the port for gRPC',
  connections: 'too many connections were open',
  encoding: 'its compression is unknown or broken',
  busy: 'too many messages arrived at once',
  aborted: 'the sender closed the connection early',
  origin: 'a web page of another origin sent it'
}

// Of `stats().spans.dropped` in an app: docs/reliability.md. An app may report others.
export const APP_REASONS = {
  __proto__: null,
  queue_full: 'the buffer was full, the oldest first',
  thinned: 'the buffer was full, whole traces at random',
  too_large: 'over 4 MiB, or half of the buffer, also without attributes, events and links',
  non_retryable: 'the collector refused them',
  shutdown_deadline: 'the app closed before the collector accepted them',
  after_shutdown: 'they ended after the app was closed',
  no_memory: 'the process had no memory for them',
  not_encoded: 'a bug in light-trace',
  exporter_none: 'exporter: \'none\''
}

const METRIC_REASONS = {
  series: 'there are 2,000 series, or no memory for more',
  malformed: 'the point breaks the rules of its kind, or is too large',
  resource_too_large: REASONS.resource_too_large,
  not_finite: 'the value is infinite or not a number',
  evicted: 'slots of 10 seconds that were removed to make room for newer ones'
}

export function lostView ({ app, host }) {
  const body = scrolling('Lost', true)
  app.title('Lost')
  host.append(viewHead('What was lost', 'Spans and log lines that were created but are missing here, and spans that arrived late, twice or without their parent.'), body)
  load()
  return { follow: {}, live: (event, data) => ['stats', 'hello', 'greeting'].includes(event) && draw(data.stats ?? data) }

  async function load () {
    draw(await get('/api/stats'))
  }

  function draw (stats) {
    body.replaceChildren(
      h('h2', 'In the viewer'),
      figures('In the viewer', [
        ['Spans received', count(stats.received.spans), 'in ' + count(stats.received.requests) + ' messages, ' + bytes(stats.received.bytes)],
        ['Spans stored', count(stats.spans), `${count(stats.traces)} traces, ${bytes(stats.bytes)} of ${bytes(stats.maxBytes)}`],
        ...reasons('Spans dropped', stats.dropped.reasons),
        ['Log lines stored', count(stats.lines.held), `of ${count(stats.lines.received)} received`],
        ...reasons('Log lines dropped', stats.lines.dropped),
        ['Metrics stored', `${count(stats.metrics.series)} series`, `of ${count(stats.metrics.points)} points received, ${bytes(stats.metrics.bytes)}`],
        ...reasons('Points and slots of metrics dropped', stats.metrics.dropped, METRIC_REASONS),
        ['Traces removed to make room', count(stats.evicted.traces), 'the oldest first'],
        ['Spans that arrived after their trace was removed', count(stats.evicted.after), 'they start the trace again']
      ]),
      h('h2', 'On the way to the viewer'),
      figures('On the way to the viewer', [
        ...reasons('Messages refused', stats.refused.reasons),
        ['Orphans', count(stats.orphans), 'stored spans whose parent was not received'],
        ['Late', count(stats.late), 'stored spans that arrived more than two seconds after their root'],
        ['Duplicates', count(stats.duplicates), 'spans that were received again and not stored']
      ]),
      ...stats.apps.flatMap((each) => [
        h('h2', 'In the app ', bdi(each.service, 60), h('span.quiet', ` ${each.pid}`)),
        figures('In the app', [
          ...(each.untracedLibraries.length === 0 ? [] : [['Libraries that are not traced', line(each.untracedLibraries.join(', '), 200), 'pass the client or pool to lightTrace.traceClient() once']]),
          ...reasons('Spans dropped', each.dropped, APP_REASONS),
          ['Spans rejected by the receiver', count(each.rejected), ''],
          ['Spans not sampled', count(each.unsampled), 'the sampler left them out'],
          ['Spans waiting to be sent', count(each.queued), ''],
          ...(each.lastError === null ? [] : [['Last error', line(each.lastError, 200), '']])
        ])
      ]))
  }
}

function reasons (label, byReason, texts = REASONS) {
  const total = sum(Object.values(byReason))
  return [[label, count(total), total === 0 ? '' : 'by reason:'], ...Object.entries(byReason).filter(([, number]) => number > 0).map(([reason, number]) =>
    [h('span.indent', line(reason.replaceAll('_', ' '), 60)), count(number), texts[reason] ?? ''])]
}

function figures (caption, rows) {
  return table('.figures', caption, ['What', '#Number', 'Explanation'], rows)
}
