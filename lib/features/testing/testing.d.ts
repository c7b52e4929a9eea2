import { Attributes, Context } from '@opentelemetry/api'
import { RequestTrace, SpanProcessor, Store } from '../../..'

/** A finished span as a plain object. Times are milliseconds since the Unix epoch. */
export interface CollectedSpan {
  name: string
  kind: 'INTERNAL' | 'SERVER' | 'CLIENT' | 'PRODUCER' | 'CONSUMER'
  /** 32 lowercase hex digits. */
  traceId: string
  /** 16 lowercase hex digits. */
  spanId: string
  parentSpanId: string | undefined
  traceFlags: number
  traceState: string
  attributes: Attributes
  status: { code: 'UNSET' | 'OK' | 'ERROR', message: string }
  events: Array<{ name: string, time: number, attributes: Attributes, droppedAttributesCount: number }>
  links: Array<{ traceId: string, spanId: string, attributes: Attributes, droppedAttributesCount: number }>
  resource: Attributes
  scope: { name: string, version: string }
  startTime: number
  endTime: number
  /** Milliseconds. */
  duration: number
  droppedAttributesCount: number
  droppedEventsCount: number
  droppedLinksCount: number
}

/** A log record as a plain object. */
export interface CollectedLog {
  /** Milliseconds since the Unix epoch. */
  time: number
  /** OpenTelemetry's: 9 is info, 13 warn, 17 error. */
  severityNumber: number
  severityText: string
  /** '' for a line, 'exception' for an exception. */
  eventName: string
  body: unknown
  attributes: Record<string, unknown>
  /** '' outside of requests. */
  traceId: string
  spanId: string
  traceFlags: number
}

/** A data point: one series of a metric, with what was recorded to it since the application is ready. */
export interface CollectedPoint {
  attributes: Attributes
  /** Of sums and gauges. */
  value?: number
  /** Of histograms. */
  count?: number
  sum?: number
  min?: number
  max?: number
  /** Of explicit buckets: the bounds, and one count more than those. Of exponential ones: the counts alone. */
  bounds?: number[]
  counts?: number[]
  /** Of exponential buckets. */
  scale?: number
  zeroCount?: number
  offset?: number
  /** The measurements of sampled spans that were kept. */
  exemplars: Array<{ value: number, traceId: string, spanId: string }>
}

/** A metric as a plain object. */
export interface CollectedMetric {
  name: string
  description: string
  unit: string
  kind: 'sum' | 'gauge' | 'histogram' | 'exponentialHistogram'
  isMonotonic: boolean
  scope: { name: string, version: string }
  points: CollectedPoint[]
}

/** What each request may do. What is not given is not checked; there is no bound on time. */
export interface Budget {
  /** The most calls of one shape (what is called, with which command, where) that one parent makes, one after the other. */
  repeats?: number | undefined
  /**
   * The most calls of each kind: `{ redis: 5, http: 2 }`. A kind is `db.system.name`, `messaging.system` or `rpc.system` as the
   * spans have it, `http`, or `other`.
   */
  calls?: Record<string, number> | undefined
  /** false: no span goes on after the response of its request: it ends later, or never. */
  afterResponse?: boolean | undefined
  /** false: every span that was started has ended. */
  open?: boolean | undefined
}

/** What the error of `check` has in `findings`. */
export interface Finding {
  rule: 'repeats' | 'calls' | 'afterResponse' | 'open'
  /** `GET /users/:id`, or the name of a span that is no request over HTTP. */
  route: string
  message: string
  allowed: number | boolean
  found: number
}

/**
 * An in-memory collector for tests: `app.register(lightTrace, { spanProcessors: [collector] })`. It can be given to
 * an OpenTelemetry SDK's provider too.
 *
 * A span ends when its response is closed, which may be after the client has it; `spans`, `tree` and `check`
 * wait for that.
 */
export interface Collector extends SpanProcessor {
  onStart (span: any, parentContext?: Context): void
  onEnd (span: any): void
  forceFlush (): Promise<void>
  shutdown (): Promise<void>
  /** The finished spans, in the order in which they started, once none is running. */
  spans (): Promise<CollectedSpan[]>
  /**
   * The same as one readable picture: a line for each span, children two spaces under their parent. One that is
   * still running after `timeoutMs` ends with `(running)`.
   */
  tree (): Promise<string>
  /**
   * Rejects with an error, code `LT_ERR_CHECK`, where a request did more than it may: its message shows the tree with
   * the lines marked, its `findings` say it as data. For any test runner: `await collector.check({ repeats: 3 })`. Rejects with
   * a TypeError for a budget that is wrong or cannot fail.
   */
  check (budget: Budget): Promise<void>
  /** The log records of an application with `logs.export`, once no span is running. Unless `exporter` is set in code, they are sent nowhere else. */
  logs (): Promise<CollectedLog[]>
  /** The metrics of an application with `metrics` on, once no span is running. Unless `exporter` is set in code, they are sent nowhere else. */
  metrics (): Promise<CollectedMetric[]>
  /** Called by an application with `metrics` on. */
  useMetrics (read: () => Promise<CollectedMetric[]>): void
  /** Forgets what was collected, and what is running. */
  reset (): void
}

/**
 * A new, empty collector.
 * @param options.timeoutMs how long `spans` and `tree` wait for running spans, in milliseconds; 5000 by default
 */
export function createCollector (options?: { timeoutMs?: number | undefined }): Collector

/**
 * Runs `fn` as if inside of a request whose store holds a copy of `values`, and returns what it returns: for
 * tests of code that reads `lightTrace.current()`. Nothing is traced.
 */
export function withRequest<T> (values: Store, fn: (trace: RequestTrace) => T): T
