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
  /** As in OpenTelemetry: 9 is info, 13 warn, 17 error. */
  severityNumber: number
  severityText: string
  /** '' for a log line, 'exception' for an exception. */
  eventName: string
  body: unknown
  attributes: Record<string, unknown>
  /** '' outside of requests. */
  traceId: string
  spanId: string
  traceFlags: number
}

/** A data point: one series of a metric, with everything recorded since the application became ready. */
export interface CollectedPoint {
  attributes: Attributes
  /** Of sums and gauges. */
  value?: number
  /** Of histograms. */
  count?: number
  sum?: number
  min?: number
  max?: number
  /** Explicit buckets have bounds, and one more count than bounds. Exponential buckets have only counts. */
  bounds?: number[]
  counts?: number[]
  /** Of exponential buckets. */
  scale?: number
  zeroCount?: number
  offset?: number
  /** Measurements of sampled spans that were kept as examples. */
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

/** What each request may do. Missing members are not checked; durations are never checked. */
export interface Budget {
  /** The maximum number of sequential calls of the same shape (target, command and server) under one parent. */
  repeats?: number | undefined
  /**
   * The maximum number of calls of each kind: `{ redis: 5, http: 2 }`. A kind is the value of a span's `db.system.name`,
   * `messaging.system` or `rpc.system`, or it is `http` or `other`.
   */
  calls?: Record<string, number> | undefined
  /** false: no span may continue after the response of its request. A span that never ends counts too. */
  afterResponse?: boolean | undefined
  /** false: every span must have ended. */
  open?: boolean | undefined
}

/** A member of `findings` of the error of `check`. */
export interface Finding {
  rule: 'repeats' | 'calls' | 'afterResponse' | 'open'
  /** `GET /users/:id`, or the name of a span that is not an HTTP request. */
  route: string
  message: string
  allowed: number | boolean
  found: number
}

/**
 * An in-memory collector for tests: `app.register(lightTrace, { spanProcessors: [collector] })`. It also works as a span processor
 * of an OpenTelemetry SDK's provider.
 *
 * A request's span ends when its response is closed, which may be after the client has received it. `spans`, `tree` and `check`
 * wait for that.
 */
export interface Collector extends SpanProcessor {
  onStart (span: any, parentContext?: Context): void
  onEnd (span: any): void
  forceFlush (): Promise<void>
  shutdown (): Promise<void>
  /** Waits until no span is running, and returns the finished spans in the order of their start. */
  spans (): Promise<CollectedSpan[]>
  /**
   * The same as a readable tree: one line for each span, with children indented by two spaces. The line of a span that is still
   * running after `timeoutMs` ends with `(running)`.
   */
  tree (): Promise<string>
  /**
   * Rejects with the error code `LT_ERR_CHECK` if a request exceeded the budget. The error's message shows the tree with marked
   * lines; its `findings` have the same as data. It works with any test runner: `await collector.check({ repeats: 3 })`. Rejects
   * with a TypeError if the budget is invalid or cannot fail.
   */
  check (budget: Budget): Promise<void>
  /** Waits until no span is running, and returns the log records of an application with `logs.export`. They are not exported unless `exporter` is set in code. */
  logs (): Promise<CollectedLog[]>
  /** Waits until no span is running, and returns the metrics of an application with `metrics` on. They are not exported unless `exporter` is set in code. */
  metrics (): Promise<CollectedMetric[]>
  /** Called by an application with `metrics` on. */
  useMetrics (read: () => Promise<CollectedMetric[]>): void
  /** Discards collected and running spans, and log records. */
  reset (): void
}

/**
 * A new, empty collector.
 * @param options.timeoutMs how long its methods wait for running spans, in milliseconds; 5000 by default
 */
export function createCollector (options?: { timeoutMs?: number | undefined }): Collector

/**
 * Runs `fn` as if inside a request whose store holds a copy of `values`, and returns its result. It is for tests of code that
 * reads `lightTrace.current()`. Nothing is traced.
 */
export function withRequest<T> (values: Store, fn: (trace: RequestTrace) => T): T
