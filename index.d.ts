/// <reference types="node" />

import { MeterProvider, Attributes, Context, Link, Span, SpanKind, SpanOptions, Tracer, TracerProvider } from '@opentelemetry/api'
import { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'

type LightTracePlugin = FastifyPluginCallback<lightTrace.LightTraceOptions>

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * The request's trace context and store. Always an object. Its span records nothing on ignored routes, before light-trace's
     * hook, and when tracing is off.
     */
    readonly trace: lightTrace.RequestTrace
  }

  interface FastifyInstance {
    /** The application's tracer, and statistics about its spans. */
    readonly lightTrace: lightTrace.LightTraceInstance
  }

  interface FastifyContextConfig {
    /**
     * How this route is traced. `false` turns its spans off; the request context still works.
     * @throws LT_ERR_OPTION_UNKNOWN, LT_ERR_OPTION_INVALID when the route is added
     */
    trace?: boolean | lightTrace.RouteTraceOptions | undefined
  }
}

declare namespace lightTrace {
  /**
   * Types the values of `request.trace.get` and `set` if you augment it. Otherwise any key is allowed.
   * ```ts
   * declare module 'light-trace' {
   *   interface LightTraceStore { user: User }
   * }
   * ```
   */
  export interface LightTraceStore {
    // Empty: users of this module augment it.
  }

  export type StoreKey = [keyof LightTraceStore] extends [never] ? string | symbol : keyof LightTraceStore
  export type StoreValue<K> = K extends keyof LightTraceStore ? LightTraceStore[K] : any
  export type Store = [keyof LightTraceStore] extends [never] ? Record<string | symbol, any> : Partial<LightTraceStore>

  /** The type of `request.trace` and `lightTrace.current()`. */
  export interface RequestTrace {
    /** The request's SERVER span, with all methods of the API's `Span`. A non-recording span if the request has none. */
    readonly span: Span
    /** 32 lowercase hex digits. */
    readonly traceId: string
    /** The id of `span`: 16 lowercase hex digits. */
    readonly spanId: string
    /** Whether the trace is sampled, as outgoing headers report it. */
    readonly sampled: boolean
    /** `00-<traceId>-<spanId>-<flags>` (W3C Trace Context level 2), or '' without a trace. Use `inject` for outgoing calls. */
    readonly traceparent: string
    /** Returns a value of this request's store, or undefined. */
    get<K extends StoreKey> (key: K): StoreValue<K> | undefined
    /** Sets a value in this request's store. */
    set<K extends StoreKey> (key: K, value: StoreValue<K>): void
    /** The whole store of this request. */
    readonly store: Store
    /**
     * Runs `fn` in a child span of the active span, and returns what `fn` returns. The span ends when `fn` returns, or when its
     * promise settles. An error is recorded and rethrown. If the active span is not sampled, nothing is recorded; `fn` usually
     * receives that span.
     * @throws LT_ERR_USAGE without a function
     */
    withSpan<T> (name: string, fn: (span: Span) => T): T
    withSpan<T> (name: string, options: SpanOptions, fn: (span: Span) => T): T
    /**
     * Records an error that your application handles itself, for example in a filter or in a router inside a handler: an
     * `exception` event on the request's span, `error.type` if the response is 4xx or 5xx, and the status ERROR if it is 5xx.
     * If Fastify catches the error too, it is recorded once. Does nothing after the response is closed. Never throws.
     */
    fail (error: unknown): void
    /**
     * Exports this request and its children even if it is not sampled. Their spans get `light_trace.kept: reason`.
     * Requires the option `keep`, and counts towards `keep.maxPerSecond`. Does nothing after the response is closed. Never throws.
     * @param reason up to 64 characters @default 'application'
     */
    keep (reason?: string): void
    /** Runs `fn` in this request's context, where Node has lost it. Returns what `fn` returns. */
    run<A extends unknown[], T> (fn: (...args: A) => T, ...args: A): T
    /** Returns a function that always runs `fn` in this request's context. */
    bind<F extends (...args: any[]) => any> (fn: F): F
    /**
     * Sets `traceparent`, and `tracestate` and `baggage` if present, on the headers of an outgoing call: a plain object or
     * `Headers`. The parent is the active span. Returns the headers.
     */
    inject (): Record<string, string>
    inject<H extends object> (headers: H): H
  }

  export interface LightTraceInstance {
    /** For your own spans, also outside of requests and before the application is ready. */
    readonly tracer: Tracer
    /** For instrumentations and libraries that need a provider. */
    readonly tracerProvider: TracerProvider
    /**
     * Sends what is queued now. Resolves when all of it is delivered or dropped. Never rejects.
     * @param options.timeoutMs maximum wait in milliseconds @default buffer.closeTimeoutMs
     */
    flush (options?: { timeoutMs?: number | undefined }): Promise<void>
    /** Counts what has happened to the spans. At every moment, `ended = accepted + unsampled + recorded`. */
    stats (): LightTraceStats
    /**
     * Exports what `keep.recorder` holds: spans of unsampled requests that ended in the last `seconds`, or end within a second of
     * the call, and were not exported before. They get `light_trace.kept: 'snapshot'` and no sampling threshold. Snapshots do not
     * overlap: a call during a snapshot returns that snapshot. Keeps the process alive for up to 31 s. Never rejects.
     * @param options.seconds how far back @default keep.recorder.seconds
     * @param options.reason the attribute `light_trace.snapshot.reason`, up to 64 characters @default 'application'
     * @returns how many spans went to the exporter, and how many were overwritten first; zeros without a recorder
     */
    snapshot (options?: { seconds?: number | undefined, reason?: string | undefined }): Promise<{ spans: number, missed: number }>
    /** Like `lightTrace.run`, for this application. With several in a process, `lightTrace.run` uses the one that opened first. */
    run: typeof import('.').run
    /**
     * Returns all metrics as text for Prometheus, or '' if metrics are off. Never rejects.
     * @param options.openMetrics OpenMetrics 1.0, with exemplars and units, instead of format 0.0.4 @default false
     */
    metrics (options?: { openMetrics?: boolean | undefined }): Promise<string>
    /** Creates your own meters. If metrics are off, their instruments record nothing. */
    readonly meterProvider: MeterProvider
  }

  /** Where spans go. `native`: OTLP over HTTP. `sdk`: an OpenTelemetry SDK creates them. See docs/interop.md. */
  export type Mode = 'native' | 'console' | 'otlp/stdout' | 'none' | 'processors' | 'sdk' | 'disabled' | (string & {})

  export interface LightTraceStats {
    mode: Mode
    spans: {
      started: number
      ended: number
      /** Calls that `outbound.fold` aggregated into another span: neither started nor ended. */
      folded: number
      /** Ended, but neither sampled nor kept. */
      unsampled: number
      /** Held by `keep.recorder` now; not counted as accepted or unsampled yet. */
      recorded: number
      /** Unsampled requests that `keep.maxPerSecond` left out. */
      notKept: number
      /** `= handedOver + delivered + rejected + thinned + sum(dropped) + queued + inFlight` */
      accepted: number
      /** Passed to span processors or an SDK. */
      handedOver: number
      /** Acknowledged by the collector. */
      delivered: number
      /** Refused by the collector in a partial success. */
      rejected: number
      /** Dropped from a full buffer; the rest carry an adjusted sampling threshold. */
      thinned: number
      /** By reason. docs/reliability.md lists the reasons. */
      dropped: Record<string, number>
      /** Waiting to be sent. */
      queued: number
      inFlight: number
      /** Sent more than once. */
      retried: number
    }
    buffer: {
      /** Bytes allocated for undelivered spans now. */
      bytes: number
      maxBytes: number
    }
    exports: {
      ok: number
      failed: number
    }
    /** The last export failure, without secrets. */
    lastError: string | null
    /** Only with `keep.recorder`. */
    recorder?: {
      /** Bytes allocated for the recorder now. */
      bytes: number
      maxBytes: number
      /** How many seconds it covers now. */
      seconds: number
    }
    /** Only if log lines are exported or held, or exceptions are log records. */
    logs?: {
      /** `accepted = delivered + rejected + sum(dropped) + queued + inFlight` */
      records: Pick<LightTraceStats['spans'], 'accepted' | 'delivered' | 'rejected' | 'dropped' | 'queued' | 'inFlight' | 'retried'>
      exports: { ok: number, failed: number }
      lastError: string | null
      /** Held lines dropped in favor of later ones. Only with `logs.buffer`. */
      forgotten?: number
    }
    /** Only if metrics are on. */
    metrics?: {
      /** Series of all metrics in memory now. */
      series: number
      /** Metrics that have reached the limit of 2,000 series. */
      overflowed: string[]
      /** Series dropped from the last text for Prometheus: their name and labels were taken. */
      scrapeDropped: number
      /** Data points, counted in every export. */
      points: { delivered: number, rejected: number, dropped: number }
      exports: { ok: number, failed: number }
      lastError: string | null
    }
  }

  /** A SpanProcessor of OpenTelemetry SDK 2.x or 3.x: the members that light-trace uses. */
  export interface SpanProcessor {
    onStart (span: any, parentContext: Context): void
    onEnding?(span: any): void
    onEnd (span: any): void
    forceFlush (): Promise<void>
    shutdown (): Promise<void>
  }

  /** A Sampler of an OpenTelemetry SDK: the members that light-trace uses. */
  export interface Sampler {
    shouldSample (context: Context, traceId: string, spanName: string, spanKind: SpanKind, attributes: Attributes, links: Link[]): {
      /** 0 NOT_RECORD, 1 RECORD, 2 RECORD_AND_SAMPLED */
      decision: number
      attributes?: Readonly<Attributes> | undefined
      traceState?: any
    }
  }

  /**
   * 'always_on', 'always_off', a ratio from 0 to 1, a rate, or an SDK sampler. A parent's sampled flag takes precedence.
   * Ratios and rates write their threshold into the trace state, `ot=th:…`:
   * https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/
   */
  export type SamplerOption = 'always_on' | 'always_off' | number | RateOptions | Sampler

  /** Traces per second. Rare routes are sampled fully; busy routes share the rest. */
  export interface RateOptions {
    /** Traces started per second, 0 or more. Requests with a sampling decision of their caller are not counted. */
    perSecond: number
  }

  /**
   * A path, in which `*` matches anything, slashes included; a RegExp, tested against the path without its query; or a
   * function. The function must return a boolean, not a promise.
   */
  export type IgnorePattern = string | RegExp | ((request: FastifyRequest) => boolean)

  export type IgnoreOption = IgnorePattern | IgnorePattern[]

  // options:start: npm run docs:tables writes this, from lib/config/table.js and scripts/options-text.js
  /** OTLP over HTTP with protobuf. OTEL_EXPORTER_OTLP_* variables set the members that are left out. */
  export interface ExporterOptions {
    /**
     * URL of the collector. If it has no path, light-trace appends `/v1/traces`. A user and password in it become an `authorization`
     * header.
     * @default OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT + v1/traces, http://localhost:4318/v1/traces
     */
    url?: string | URL | undefined
    /** An object, Map or Headers. Overrides the same headers from variables. Never logged. @default OTEL_EXPORTER_OTLP_HEADERS */
    headers?: Record<string, string> | Iterable<[string, string]> | undefined
    /**
     * `'none'`, `'gzip'` or `'zstd'`, off the main thread. zstd falls back to gzip before Node 22.15, and if the collector rejects it (400
     * or 415).
     * @default OTEL_EXPORTER_OTLP_COMPRESSION, 'none'
     */
    compression?: 'none' | 'gzip' | 'zstd' | undefined
    /** Milliseconds for one attempt, response included. `0`: no limit. @default OTEL_EXPORTER_OTLP_TIMEOUT, 10000 */
    timeoutMs?: number | undefined
    /** Trusted certificate authorities: PEM or a file path. Read once. @default OTEL_EXPORTER_OTLP_CERTIFICATE, Node's own */
    ca?: string | Buffer | undefined
    /** Client certificate for mTLS: PEM or a file path. Read once. @default OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE */
    cert?: string | Buffer | undefined
    /** Key of the client certificate: PEM or a file path. Read once. @default OTEL_EXPORTER_OTLP_CLIENT_KEY */
    key?: string | Buffer | undefined
    /**
     * `true`: send credential headers over `http:` to other machines too. `authorization`, `api-key` and names with `token` are among them.
     * @default OTEL_EXPORTER_OTLP_INSECURE, false
     */
    insecureHeaders?: boolean | undefined
  }

  /** Which unsampled requests are exported anyway. See docs/sampling.md. */
  export interface KeepOptions {
    /** Export unsampled requests that fail. @default false */
    errors?: boolean | undefined
    /** Export unsampled requests whose client disconnects before the response. Any client can cause this. @default false */
    aborted?: boolean | undefined
    /** Export unsampled requests that are slow (`slow.afterMs`). @default false */
    slow?: boolean | undefined
    /**
     * Export unsampled requests for which your code calls `request.trace.keep(reason)`. Always on with `errors`, `aborted`, `slow` or
     * `recorder`.
     * @default false
     */
    asked?: boolean | undefined
    /**
     * Approximate maximum number of kept requests per second. Beyond it, light-trace exports a sample, with an adjusted sampling threshold
     * (docs/sampling.md).
     * @default 100
     */
    maxPerSecond?: number | undefined
    /**
     * Holds the latest spans of unsampled requests in memory (docs/sampling.md). `true`: `{}`. Not allowed in `configFile`.
     * `lightTrace.snapshot()` and `request.trace.keep()` export them.
     * @default false
     */
    recorder?: RecorderOptions | boolean | undefined
  }

  /** What the recorder holds, and when it takes a snapshot by itself. See docs/sampling.md. */
  export interface RecorderOptions {
    /** Memory for recorded spans in bytes, in addition to `buffer.maxBytes`. New spans overwrite the oldest. @default 8388608 */
    maxBytes?: number | undefined
    /** How many seconds a snapshot covers by default. @default 10 */
    seconds?: number | undefined
    /** Take a snapshot after about this many 5xx responses in a second. `0`: never. @default 0 */
    errorsPerSecond?: number | undefined
    /** Take a snapshot when the event loop is blocked. Requires `slow.blockedLoop`. @default false */
    blockedLoop?: boolean | undefined
  }

  /** When a request is slow, and what is recorded about it. See docs/slow.md. */
  export interface SlowOptions {
    /**
     * Minimum duration of a slow request, in milliseconds. Its span records what it waited for (docs/slow.md). Failed and kept requests
     * record this from 20 ms. `0`: every request. The attributes are `light_trace.time.*`.
     * @default LIGHT_TRACE_SLOW_AFTER_MS, 250
     */
    afterMs?: number | undefined
    /**
     * Records the line that blocked the event loop (docs/slow.md) on the requests that waited for it. `true`: `{ afterMs: 100 }`. A worker
     * watches the event loop while requests are open.
     * @default LIGHT_TRACE_BLOCKED_LOOP, false
     */
    blockedLoop?: BlockedLoopOptions | boolean | undefined
  }

  /** Headers and baggage to record, and the header to send to clients. */
  export interface HeadersOptions {
    /** Request headers to record, except credential headers. @default [] */
    request?: string[] | undefined
    /** Response headers to record, except credential headers. @default [] */
    response?: string[] | undefined
    /**
     * Baggage keys to record on the request's span: `['tenant.id']`. Only from trusted callers, at most 256 characters a value. Never
     * replaces other attributes.
     * @default []
     */
    baggage?: string[] | undefined
    /**
     * Send the trace id to the client in the `server-timing` response header. Existing entries stay. It adds `trace;desc=…` (W3C Trace
     * Context level 3) and `traceparent;desc="…"`.
     * @default false
     */
    serverTiming?: boolean | undefined
  }

  /** Which spans a request has, and what they record. */
  export type SpansOptions = {
    /**
     * A child span for the handler, or for your not-found handler. The span of a not-found handler starts with the hooks before it and ends
     * when the response closes.
     * @default false
     */
    handler?: boolean | undefined
    /**
     * A child span for each of these stages that has hooks: `onRequest`, `preParsing`, `preValidation`, `preHandler`, `preSerialization`,
     * `onSend`, `onResponse`, `onError`.
     * @default []
     */
    hooks?: LifecycleHook[] | undefined
    /**
     * Spans for requests that never reach a hook of light-trace, such as a bad URL. HTTP/1 only, and only if light-trace is registered at
     * the root. These spans have no `http.route`; only the functions `ignore` and `trustIncoming` are called for them.
     * @default false
     */
    unrouted?: boolean | undefined
    /**
     * Record where the route is declared as `code.file.path` and `code.line.number`. On under `npx light-trace app.js` and with a
     * `light-trace/testing` collector. light-trace captures one stack trace for each route declared after it is loaded, and none per
     * request.
     * @default false
     */
    codeLocation?: boolean | undefined
    /**
     * Record what was thrown if the response is 4xx: an `exception` event and `error.type`. `false` suits services with many 4xx responses.
     * The span's status stays unset.
     * @default true
     */
    clientErrors?: boolean | undefined
  }

  export type LifecycleHook =
    'onRequest' | 'preParsing' | 'preValidation' | 'preHandler' | 'preSerialization' | 'onSend' | 'onResponse' | 'onError'

  /** How events of a TracingChannel (`node:diagnostics_channel`) become spans. */
  export interface ChannelOptions {
    /** Kind of its spans. @default 'client' */
    kind?: 'internal' | 'server' | 'client' | 'producer' | 'consumer' | SpanKind | undefined
    /** Name of its spans. @default the channel's name */
    name?: string | ((context: any) => string) | undefined
    /** Attributes of its spans. */
    attributes?: Attributes | ((context: any) => Attributes) | undefined
  }

  /** Which calls share a span. See docs/outbound.md. */
  export interface FoldOptions {
    /** How many identical calls under a span get their own spans, 1 or more. @default 10 */
    after?: number | undefined
  }

  /** Spans and trace headers for outgoing calls. See docs/outbound.md. */
  export interface OutboundOptions {
    /** Trace `node:http`, `node:https` and `node:http2`. @default true */
    http?: boolean | undefined
    /** Trace `fetch` and every undici client. @default true */
    undici?: boolean | undefined
    /** Trace libraries that publish diagnostics channels. @default true */
    libraries?: boolean | undefined
    /** Your own channels, `{ 'my-lib:op': { kind, name, attributes } }`. `true` turns on a library's channel that is off by default. */
    channels?: Record<string, ChannelOptions | true> | undefined
    /** `(url) => boolean`: which calls get `traceparent`, `tracestate` and `baggage` headers. @default all */
    propagateTo?: ((url: string) => boolean) | undefined
    /** Record the GraphQL operation as `graphql.document`, with `?` for its values. @default false */
    graphqlDocuments?: boolean | undefined
    /**
     * Record the first identical calls under a span, and aggregate the rest (docs/outbound.md) into one span. `true`: `{ after: 10 }`.
     * @default false
     */
    fold?: FoldOptions | boolean | undefined
  }

  /** Exported and held log lines. Levels are the logger's. See docs/logs.md. */
  export interface LogsOptions {
    /** Add `trace_id`, `span_id` and `trace_flags` to `request.log` lines. @default true */
    ids?: boolean | undefined
    /**
     * `true` (where spans go), `'otlp'`, `'otlp/stdout'`, `'console'` (a line of text per record), or an object like `exporter`
     * (docs/options.md).
     * @default OTEL_LOGS_EXPORTER, false
     */
    export?: boolean | 'otlp' | 'otlp/stdout' | 'console' | 'none' | ExporterOptions | undefined
    /** Minimum level to export, for example `'info'`. @default the logger's */
    level?: string | undefined
    /** Minimum level to export from unsampled requests. @default 'warn' */
    unsampledLevel?: string | undefined
    /** Maximum number of lines exported per second and level. @default 10000 */
    maxPerSecond?: number | undefined
    /**
     * Lowest level to hold, for example `'debug'`. light-trace holds a request's lines from this level up to the logger's own, and prints
     * them only if the request fails or is slow.
     * @default false
     */
    buffer?: string | false | undefined
  }

  /** When the event loop counts as blocked. See docs/slow.md. */
  export interface BlockedLoopOptions {
    /** Shortest block to record, in milliseconds; 20 or more. @default 100 */
    afterMs?: number | undefined
  }

  /** Memory and delay for undelivered spans. See docs/reliability.md. */
  export interface BufferOptions {
    /** Memory for undelivered spans, in bytes. @default 33554432 */
    maxBytes?: number | undefined
    /**
     * Maximum milliseconds that spans wait to be exported. The wait starts at 2 ms and doubles each time.
     * @default OTEL_BSP_SCHEDULE_DELAY, 1000
     */
    flushDelayMs?: number | undefined
    /**
     * Maximum milliseconds that `app.close()` waits for an unresponsive collector. If the connection is refused, it does not wait.
     * @default 5000
     */
    closeTimeoutMs?: number | undefined
  }

  /** Metrics, with the names and units of OpenTelemetry's semantic conventions. See docs/metrics.md. */
  export interface MetricsOptions {
    /** `'otlp'`, `'otlp/stdout'`, `'none'`, or an object like `exporter`. @default OTEL_METRICS_EXPORTER, like exporter */
    exporter?: 'otlp' | 'otlp/stdout' | 'none' | ExporterOptions | undefined
    /** Path for Prometheus to scrape. Requests to it are neither traced nor counted. */
    path?: string | undefined
    /** Record event loop, garbage collection, heap, CPU and memory. @default false */
    runtime?: boolean | undefined
    /**
     * `(request, reply) => attributes`: more attributes for `http.server.request.duration`. Called after the request ends. Each set is a
     * series. Beyond 2,000 series, `otel.metric.overflow` counts the rest.
     */
    attributes?: ((request: FastifyRequest, reply: FastifyReply) => Attributes) | undefined
    /** Ascending bucket bounds of `http.server.request.duration`, in seconds. @default semantic conventions: 0.005 to 10 */
    buckets?: number[] | undefined
    /** Bucket type: `'explicit'` or `'exponential'`. @default OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION, 'explicit' */
    histograms?: 'explicit' | 'exponential' | undefined
    /**
     * OTLP temporality: `'cumulative'`, `'delta'` or `'lowmemory'`.
     * @default OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE, 'cumulative'
     */
    temporality?: 'cumulative' | 'delta' | 'lowmemory' | undefined
    /**
     * Measurements to export as exemplars, with trace and span ids: `'trace_based'`, `'always_on'` or `'always_off'`.
     * @default OTEL_METRICS_EXEMPLAR_FILTER, 'trace_based'
     */
    exemplars?: 'trace_based' | 'always_on' | 'always_off' | undefined
    /** Record `http.server.active_requests`. @default false */
    activeRequests?: boolean | undefined
    /** Record `http.server.request.body.size` and `http.server.response.body.size`. @default false */
    bodySizes?: boolean | undefined
    /**
     * Milliseconds between exports, 100 or more. `Infinity`: only on flush and close. The first export comes after 0.5 to 1.5 intervals, so
     * that a fleet does not export at once.
     * @default OTEL_METRIC_EXPORT_INTERVAL, 60000
     */
    intervalMs?: number | undefined
  }

  /** Maximum size of a span, and maximum sampled requests per second. Anything beyond a limit is dropped and counted. */
  export interface LimitsOptions {
    /**
     * Maximum attributes of a span. light-trace's own take precedence.
     * @default OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT, OTEL_ATTRIBUTE_COUNT_LIMIT, 128
     */
    attributes?: number | undefined
    /**
     * Maximum characters of a string value. Longer strings are truncated.
     * @default OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT, OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT, 16384
     */
    attributeValueLength?: number | undefined
    /** Maximum events of a span. @default OTEL_SPAN_EVENT_COUNT_LIMIT, 128 */
    events?: number | undefined
    /** Maximum links of a span. @default OTEL_SPAN_LINK_COUNT_LIMIT, 128 */
    links?: number | undefined
    /** Maximum sampled requests per second, including those sampled by callers. @default Infinity */
    sampledPerSecond?: number | undefined
  }

  /**
   * Options of `app.register(lightTrace, options)`. They override the OTEL_* variables.
   * @throws LT_ERR_OPTION_UNKNOWN for a name that resembles an option; the message suggests that option. Other unknown names are
   *   ignored, with a warning: fastify-cli and @fastify/autoload pass their flags to every plugin.
   * @throws LT_ERR_OPTION_INVALID for an invalid value; the message shows the value received
   */
  export interface LightTraceOptions {
    /**
     * `false`: no spans, metrics or exported log lines from this application. The request context still works, and an incoming
     * `traceparent` is passed on. Overrides `OTEL_SDK_DISABLED`, which covers the whole process.
     * @default true
     */
    enabled?: boolean | undefined
    /**
     * Sets `service.name`. Default: the first of `OTEL_SERVICE_NAME`, `service.name` in `OTEL_RESOURCE_ATTRIBUTES`, the name in your
     * package.json, `npm_package_name`, `faas.name` and `unknown_service:node`.
     * @default detected
     */
    serviceName?: string | undefined
    /**
     * More resource attributes, for example `deployment.environment.name`. They override `OTEL_RESOURCE_ATTRIBUTES` and detected
     * attributes.
     * @default {}
     */
    resource?: Attributes | undefined
    /**
     * Where spans go: `'otlp'`, `'otlp/stdout'` (one line of OTLP JSON per export), `'console'` (a tree per request), `'none'`, or OTLP
     * settings.
     * @default OTEL_TRACES_EXPORTER, 'otlp'
     */
    exporter?: 'otlp' | 'otlp/stdout' | 'console' | 'none' | ExporterOptions | undefined
    /**
     * Span processors of OpenTelemetry SDK 2.x or 3.x. They replace the exporter, unless you also set `exporter` in code: then both receive
     * the spans.
     */
    spanProcessors?: SpanProcessor[] | undefined
    /** An OpenTelemetry SDK provider that creates the spans. `false`: ignore the globally registered provider. */
    tracerProvider?: TracerProvider | false | undefined
    /** Register with `@opentelemetry/api` if nothing else has, so that `trace.getTracer()` works. @default true */
    registerGlobals?: boolean | undefined
    /**
     * `'always_on'`, `'always_off'`, a ratio from 0 to 1, `{ perSecond: 50 }`, or an SDK Sampler. A caller's sampled flag takes precedence
     * over all but the Sampler.
     * @default OTEL_TRACES_SAMPLER, 'always_on'
     */
    sampler?: SamplerOption | undefined
    /** Exports unsampled requests (docs/sampling.md) that failed or were slow. `true`: `{ errors: true }`. @default false */
    keep?: KeepOptions | boolean | undefined
    /**
     * Defines when a request is slow, and what its span then records. `keep.slow` exports slow requests; `logs.buffer` prints their log
     * lines. `false`: no request is slow.
     * @default { afterMs: 250 }
     */
    slow?: SlowOptions | boolean | undefined
    /**
     * Path of a JSON file that overrides some of these options while the application runs. It is read again after each change and on
     * SIGHUP. A missing or invalid file is ignored, with a warning.
     */
    configFile?: string | undefined
    /**
     * Requests that get no span: a path (`'/health'`, `'/assets/*'`), a RegExp, a function `(request) => boolean`, or an array of these.
     * Their context still works.
     * @default OTEL_FASTIFY_IGNORE_PATHS
     */
    ignore?: IgnoreOption | undefined
    /**
     * Continue the caller's trace. `false`, or a function `(request) => boolean` that returns `false`: start a new trace, linked to the
     * caller's span.
     * @default true
     */
    trustIncoming?: boolean | ((request: FastifyRequest) => boolean) | undefined
    /**
     * Headers to record, baggage to record, and the `server-timing` response header.
     * @default { request: [], response: [], baggage: [], serverTiming: false }
     */
    headers?: HeadersOptions | undefined
    /**
     * More query parameters to record as `REDACTED`: an array of names, or a function that replaces the built-in list. Applies to
     * `url.query`, and to the `url.full` of outgoing calls. Names are compared without case and separators; a function receives each
     * decoded name.
     * @default []
     */
    redactQuery?: string[] | ((name: string) => boolean) | undefined
    /** `(request) => string`: the name of the request's span, instead of `GET /users/:id`. */
    spanName?: ((request: FastifyRequest) => string) | undefined
    /** Initial attributes of each request's span: an object, which costs nothing per request, or `(request) => attributes`. */
    attributes?: Attributes | ((request: FastifyRequest) => Attributes) | undefined
    /**
     * Attributes to leave out of everything that light-trace exports: keys such as `'client.address'`, or prefixes such as
     * `'network.peer.*'`. See docs/privacy.md. In log records, nested members too, by their path: `req.remoteAddress`. `service.name` and
     * `telemetry.sdk.*` stay.
     * @default []
     */
    omitAttributes?: string[] | undefined
    /**
     * Attributes of the request's span to copy to its child spans (docs/recipes.md) and exported log records: `['tenant.id']`. The value is
     * the one set when the child ends or the line is logged. Own attributes with the same key stay. No effect for requests that are neither
     * sampled nor kept, with `tracerProvider`, for jobs (`run`), `root: true` spans and metrics, nor across `app.inject`.
     * @default []
     */
    inheritAttributes?: string[] | undefined
    /** `(span, request)`: called after the request's span starts. */
    onStart?: ((span: Span, request: FastifyRequest) => void) | undefined
    /** `(span, request, reply)`: called just before the request's span ends. */
    onEnd?: ((span: Span, request: FastifyRequest, reply: FastifyReply) => void) | undefined
    /** Initial content of each request's store (docs/context.md): an object, which is copied, or `(request) => object`. */
    store?: Store | ((request: FastifyRequest) => Store) | undefined
    /** Which spans a request has, and what they record. `true`: `{ handler: true }`. @default {} */
    spans?: SpansOptions | boolean | undefined
    /** Spans and trace headers for outgoing calls (docs/outbound.md). `false`: none. @default {} */
    outbound?: OutboundOptions | boolean | undefined
    /**
     * Puts trace ids on log lines (docs/recipes.md), and exports or holds lines (docs/logs.md). `true`: `{ ids: true }`. `false`: neither
     * ids nor export, even if `OTEL_LOGS_EXPORTER` is set.
     * @default { ids: true }
     */
    logs?: LogsOptions | boolean | undefined
    /** Memory and delay for undelivered spans. A full buffer is thinned (docs/reliability.md). @default {} */
    buffer?: BufferOptions | undefined
    /**
     * Counts all requests, sampled or not: metrics (docs/metrics.md). `true`: `{}`. `OTEL_METRICS_EXPORTER` turns them on too.
     * @default false
     */
    metrics?: MetricsOptions | boolean | undefined
    /** Maximum size of a span, and maximum sampled requests per second. Anything beyond a limit is dropped and counted. @default {} */
    limits?: LimitsOptions | undefined
  }

  /** A route's `config.trace`. The plugin's options apply to members that are left out. */
  export type RouteTraceOptions = {
    /** A string, or `(request) => string`. */
    spanName?: string | ((request: FastifyRequest) => string) | undefined
    /** An object, or `(request) => attributes`. Added to those of the option `attributes`. */
    attributes?: Attributes | ((request: FastifyRequest) => Attributes) | undefined
    /** `handler` and `hooks`. Replaces the option `spans`. */
    spans?: Pick<SpansOptions, 'handler' | 'hooks'> | boolean | undefined
    /** Replaces the option `sampler`. */
    sampler?: SamplerOption | undefined
    /** `afterMs`. Replaces the option `slow`. */
    slow?: Pick<SlowOptions, 'afterMs'> | boolean | undefined
    /** `false`: metrics (docs/metrics.md) ignore this route. @default true */
    metrics?: boolean | undefined
    /** Like the option `ignore`. `true` means `trace: false`. */
    ignore?: boolean | IgnoreOption | undefined
  }
  // options:end

  /** The error that `register`, adding a route, and `check` of light-trace/testing throw. Codes are stable; messages can change. */
  export interface LightTraceError extends Error {
    name: 'LightTraceError'
    code: 'LT_ERR_OPTION_UNKNOWN' | 'LT_ERR_OPTION_INVALID' | 'LT_ERR_CHECK'
  }

  /** Returns the `request.trace` of the current request, or undefined outside of requests. */
  export function current (): RequestTrace | undefined

  /**
   * Traces the queries of a pg Client or Pool, a MongoClient before it connects, a knex instance, or a postgres `sql`. For ioredis,
   * commands sent before the connection is ready keep their request. Returns the object; for a `sql`, a wrapper to use instead.
   * @throws LT_ERR_OPTION_INVALID for anything else
   */
  export function traceClient<C extends object> (client: C): C

  /**
   * Wraps a handler for platforms that freeze the process after a response. The wrapper settles when the invocation's spans are
   * delivered, when sending them fails, or after `timeoutMs`. After a timeout, it waits at most 50 ms until the collector responds
   * again. It returns or throws what the handler does.
   * On AWS Lambda, the request's span gets `faas.*` attributes. X-Ray's span becomes its parent if X-Ray samples and the caller
   * sends no `traceparent`. On Vercel, the response does not wait: the wrapper uses `waitUntil`.
   * @param options.timeoutMs maximum wait in milliseconds @default 1000, or the time the invocation has left
   * @throws LT_ERR_OPTION_INVALID if `app` is not a Fastify application or `handler` is not a function
   */
  export function flushAfter<H extends (...args: any[]) => unknown> (app: { ready (): unknown, server: object }, handler: H, options?: { timeoutMs?: number | undefined }):
    (...args: Parameters<H>) => Promise<Awaited<ReturnType<H>>>

  export interface JobOptions {
    /** @default 'process' */
    name?: string | undefined
    /** A SpanKind of `@opentelemetry/api`. @default SpanKind.CONSUMER */
    kind?: number | undefined
    attributes?: Attributes | undefined
    /** Start a new trace and link to the producer's span, instead of continuing the producer's trace. @default false */
    link?: boolean | undefined
  }

  /**
   * Runs `fn(trace)` in a span for work outside of requests, such as a queue job, in the producer's trace. Returns what `fn`
   * returns. `lightTrace.current()` returns `trace` meanwhile. The span ends when `fn` returns, or when its promise settles. An
   * error is recorded and rethrown. Without an open application, `fn` runs untraced.
   * @param carrier what the producer's `request.trace.inject()` returned: an object or Map with `traceparent`, `tracestate`, `baggage`
   * @throws LT_ERR_OPTION_INVALID, LT_ERR_OPTION_UNKNOWN
   */
  export function run<T> (carrier: unknown, fn: (trace: RequestTrace) => T): T
  export function run<T> (carrier: unknown, options: JobOptions, fn: (trace: RequestTrace) => T): T

  export const lightTrace: typeof import('.')
  export { lightTrace as default }
}

declare function lightTrace (...params: Parameters<LightTracePlugin>): ReturnType<LightTracePlugin>

export = lightTrace
