// Type names for the JSDoc comments of this repository, checked by `npm run test:types` (tsc --checkJs). Not published: the package's
// types are in index.d.ts.

type Context = import('@opentelemetry/api').Context
type Span = import('@opentelemetry/api').Span
type Link = import('@opentelemetry/api').Link
type Meter = import('@opentelemetry/api').Meter
type TextMapPropagator = import('@opentelemetry/api').TextMapPropagator
type SpanProcessor = import('@opentelemetry/sdk-trace-base').SpanProcessor
type FastifyInstance = import('fastify').FastifyInstance
type FastifyRequest = import('fastify').FastifyRequest
type IncomingMessage = import('node:http').IncomingMessage
type Readable = import('node:stream').Readable
type AsyncLocalStorage<T> = import('node:async_hooks').AsyncLocalStorage<T>

type Tracer = import('./tracer').Tracer
type Report = import('./runtime/report').Report
// tsc reports a code that is missing in the table.
type Code = keyof typeof import('./runtime/codes.json')
type Warning = { code: Code, message: string }
type TraceContext = import('./context/trace-context').TraceContext
type IncomingContext = import('./context/trace-context').IncomingContext
type RequestContext = import('./context/request-context').RequestContext
type RouteInfo = import('./span/http-info').RouteInfo
type PeerInfo = import('./span/http-info').PeerInfo
type ServerSpan = import('./span/server-span').ServerSpan
type SpanStarter = import('./span/span-starter').SpanStarter
type AttributeShape = import('./span/attributes').AttributeShape
type Scope = import('./span/recording-span').Scope
type CallInfo = import('./http/conventions').CallInfo
type ExportRequestPrefix = import('./otlp/request').ExportRequestPrefix
type Chunk = import('./export/chunk-buffer').Chunk
type Pipeline = import('./export/pipeline').Pipeline
type RecordedSpan = import('./span/recording-span').RecordingSpan
type SpanSink = {
  accept (span: RecordedSpan): void
  started? (span: RecordedSpan, context: Context): void
  ending? (span: RecordedSpan): void
  discarded? (span: RecordedSpan): void
}
type Exporter = import('./export/exporter').Exporter
type OtlpHttp = import('./export/http/otlp-http').OtlpHttp
type FoldedCall = import('./features/repeated-calls').FoldedCall
type ChildSpan = import('./span/child-span').ChildSpan
type RequestRecord = import('./features/metrics/server-metrics').RequestRecord
/** Ends with the response of a request. */
type RequestEnd = {
  reply: object | null
  readonly isTraced: boolean
  readonly apiSpan: Span
  fail (error: unknown): void
  recordFailure (error: unknown): void
  keepFor (reason: unknown): void
  close (httpStatus: number, unfinished: string): void
}
type MeasuredCall = import('./features/metrics/call-metrics').MeasuredCall
type ForeignRegistry = ReturnType<typeof import('./features/metrics/instruments').foreignRegistry>
type MetricRegistry = import('./features/metrics/registry').MetricRegistry
type Metric = import('./features/metrics/registry').Metric
type MeterProvider = import('./features/metrics/instruments').MeterProvider
type CallMetrics = import('./features/metrics/call-metrics').CallMetrics
type Environment = import('./config/env').Environment
type Outcome = import('./export/http/otlp-http').Outcome

/** A row of the table of options, lib/config/table.js. */
type OptionRow = {
  /** Checks a given value. In a group it checks the whole value, whose settings are resolved elsewhere. */
  check?: ((path: string, value: any) => any) & { read?: OptionRow['read'] }
  /** The default value; null if omitted. */
  default?: any
  /** The environment variables for the option. */
  variables?: string[]
  /** Reads the variables. Defaults to the `read` of the check. */
  read? (variables: string[], env: Environment, context: any): any
  /** Whether `configFile` may change it while the application runs. False excludes a member from its group. */
  live?: boolean
  /** Its names in other libraries. */
  elsewhere?: string[]
  /** Turns a value into the setting. In a group it receives the settings of the members. */
  resolve? (value: any, context: any): any
  /** Makes the row a group. `whenTrue` and `whenFalse` replace `true` and `false`. */
  members?: Record<string, OptionRow>
  /** For a group: added to the error for an unknown member. */
  others?: string
  whenTrue?: any
  whenFalse?: any
}
type SettingsOf<Rows> = {
  readonly [Name in keyof Rows]: Rows[Name] extends { members: infer Members, check?: undefined, resolve?: undefined } ? SettingsOf<Members> : any
}

// Methods of Buffer that @types/node does not declare.
interface Buffer<TArrayBuffer extends ArrayBufferLike = ArrayBufferLike> {
  latin1Slice (start?: number, end?: number): string
  latin1Write (text: string, at?: number, length?: number): number
  hexWrite (text: string, at?: number, length?: number): number
  utf8Write (text: string, at?: number, length?: number): number
}
