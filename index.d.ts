/// <reference types="node" />

import { MeterProvider, Attributes, Context, Link, Span, SpanKind, SpanOptions, Tracer, TracerProvider } from '@opentelemetry/api'
import { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'

type LightTracePlugin = FastifyPluginCallback<lightTrace.LightTraceOptions>

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * The request's trace context and store. It is always an object. On ignored routes, before light-trace's own
     * hook, and when tracing is disabled, its span is a non-recording one.
     */
    readonly trace: lightTrace.RequestTrace
  }

  interface FastifyInstance {
    /** This app's tracer, and statistics about its spans. */
    readonly lightTrace: lightTrace.LightTraceInstance
  }

  interface FastifyContextConfig {
    /**
     * How this route is traced. `false` switches its spans off; the request context stays.
     * @throws LT_ERR_OPTION_UNKNOWN, LT_ERR_OPTION_INVALID when the route is added
     */
    trace?: boolean | lightTrace.RouteTraceOptions | undefined
  }
}

declare namespace lightTrace {
  /**
   * The types of what `request.trace.get` and `set` hold. Augment it to type them; without that, any key is allowed.
   * ```ts
   * declare module 'light-trace' {
   *   interface LightTraceStore { user: User }
   * }
   * ```
   */
  export interface LightTraceStore {
    // Empty on purpose, to be extended by users of this module.
  }

  export type StoreKey = [keyof LightTraceStore] extends [never] ? string | symbol : keyof LightTraceStore
  export type StoreValue<K> = K extends keyof LightTraceStore ? LightTraceStore[K] : any
  export type Store = [keyof LightTraceStore] extends [never] ? Record<string | symbol, any> : Partial<LightTraceStore>

  /** `request.trace`; `lightTrace.current()` returns it too. */
  export interface RequestTrace {
    /** The request's SERVER span, with all methods of the API's `Span`. If there is none, a non-recording span. */
    readonly span: Span
    /** 32 lowercase hex digits. */
    readonly traceId: string
    /** 16 lowercase hex digits: the id of `span`. */
    readonly spanId: string
    /** Whether the trace is sampled; outgoing headers say the same. */
    readonly sampled: boolean
    /** W3C Trace Context level 2: `00-<traceId>-<spanId>-<flags>`, or '' without a trace. For outgoing calls use `inject`. */
    readonly traceparent: string
    /** A value of this request's store, or undefined. */
    get<K extends StoreKey> (key: K): StoreValue<K> | undefined
    /** Sets a value in this request's store. */
    set<K extends StoreKey> (key: K, value: StoreValue<K>): void
    /** The whole store of this request. */
    readonly store: Store
    /**
     * Runs `fn` as a child span of the running one. The span ends when `fn` returns, or when the promise that it
     * returns settles. What it throws or rejects with is recorded and passed on. Where the running span is not sampled, nothing
     * is recorded, and `fn` is usually given that span itself.
     */
    withSpan<T> (name: string, fn: (span: Span) => T): T
    withSpan<T> (name: string, options: SpanOptions, fn: (span: Span) => T): T
    /**
     * For errors that your application handles itself, so that Fastify does not see them (a filter, a router inside of a
     * handler): records an `exception` event on the request's span, `error.type` if the response is 4xx or 5xx, and the status ERROR if it is 5xx.
     * An error that Fastify catches too is recorded once. Does nothing once the response is closed. Never throws.
     * Semantic conventions: Recording errors on spans.
     */
    fail (error: unknown): void
    /**
     * Asks for this request to be exported, with its children, though it is not sampled. Its spans get `light_trace.kept: reason`.
     * Works where the option `keep` or `recorder` is set, within `keep.maxPerSecond`; else, and once the response is closed, it does nothing. Never throws.
     * @param reason at most 64 characters @default 'application'
     */
    keep (reason?: string): void
    /** Runs `fn` in this request's context, for places where Node has lost it. Returns what `fn` returns. */
    run<A extends unknown[], T> (fn: (...args: A) => T, ...args: A): T
    /** Returns a function that runs `fn` in this request's context, from wherever it is called. */
    bind<F extends (...args: any[]) => any> (fn: F): F
    /**
     * Sets `traceparent`, and `tracestate` and `baggage` if there are any, on the headers of an outgoing call: a plain
     * object or a `Headers`. The parent is the active span: the request's
     * own, or the one around this code. Returns the headers.
     */
    inject (): Record<string, string>
    inject<H extends object> (headers: H): H
  }

  export interface LightTraceInstance {
    /** Starts spans of your own. It works outside of requests and before the app is ready, too. */
    readonly tracer: Tracer
    /** For instrumentations and libraries that ask for one. */
    readonly tracerProvider: TracerProvider
    /**
     * Sends what is queued now. Resolves when all of it is delivered or dropped; never rejects.
     * @param options.timeoutMs milliseconds after which it resolves in any case; default: `closeTimeoutMs`
     */
    flush (options?: { timeoutMs?: number | undefined }): Promise<void>
    /** What has happened to the spans so far. `ended = accepted + unsampled + recorded` at every moment. */
    stats (): LightTraceStats
    /**
     * Exports what the option `recorder` has: all spans of requests that were not sampled which ended in the last `seconds`, or end in
     * the second after the call, and were not exported yet. They get `light_trace.kept: 'snapshot'` and no threshold. One at a
     * time: a call while one is under way gets that one. It keeps the process alive, for 31 s at most. Never rejects; zeros without a recorder.
     * @param options.seconds how far back @default recorder.seconds
     * @param options.reason becomes `light_trace.snapshot.reason`; at most 64 characters @default 'application'
     * @returns how many spans were handed to the exporter, and how many were overwritten before it took them
     */
    snapshot (options?: { seconds?: number | undefined, reason?: string | undefined }): Promise<{ spans: number, missed: number }>
    /** `lightTrace.run` for this application, where there are several in the process: that takes the one that opened first. */
    run: typeof import('.').run
    /**
     * All metrics as text for Prometheus: format 0.0.4, or OpenMetrics 1.0. '' where metrics are off. Never rejects.
     * @param options.openMetrics with exemplars and units
     */
    metrics (options?: { openMetrics?: boolean | undefined }): Promise<string>
    /** For meters of your own. Where metrics are off its instruments record nothing. */
    readonly meterProvider: MeterProvider
  }

  /** Where spans go: `native` is OTLP over HTTP; `sdk` means that an OpenTelemetry SDK makes them. See docs/interop.md. */
  export type Mode = 'native' | 'console' | 'otlp/stdout' | 'none' | 'processors' | 'sdk' | 'disabled' | (string & {})

  export interface LightTraceStats {
    mode: Mode
    spans: {
      started: number
      ended: number
      /** Calls that `outbound.fold` has put into the span of others: neither started nor ended. */
      folded: number
      /** Ended, and neither sampled nor kept. */
      unsampled: number
      /** Now in the ring of the option `recorder`, neither accepted nor unsampled yet. */
      recorded: number
      /** Requests, of the unsampled, that `keep` asked for and `keep.maxPerSecond` left out. */
      notKept: number
      /** `= handedOver + delivered + rejected + thinned + sum(dropped) + queued + inFlight` */
      accepted: number
      /** Passed to span processors or an SDK. */
      handedOver: number
      /** Acknowledged by the collector. */
      delivered: number
      /** Refused by the collector in a partial success. */
      rejected: number
      /** Gave way in a full buffer to others, which say in their trace state for how many they stand. */
      thinned: number
      /** By reason; docs/reliability.md lists the reasons. */
      dropped: Record<string, number>
      /** Waiting to be sent. */
      queued: number
      inFlight: number
      /** Sent more than once. */
      retried: number
    }
    buffer: {
      /** Bytes that are allocated for undelivered spans now. */
      bytes: number
      maxBytes: number
    }
    exports: {
      ok: number
      failed: number
    }
    /** The last failure of an export, without secrets. */
    lastError: string | null
    /** Only with the option `recorder`. */
    recorder?: {
      /** Bytes of its ring that are allocated. */
      bytes: number
      maxBytes: number
      /** How far back it reaches now. */
      seconds: number
    }
    /** Only where log lines are exported or held, or exceptions are log records. */
    logs?: {
      /** `accepted = delivered + rejected + sum(dropped) + queued + inFlight` */
      records: Pick<LightTraceStats['spans'], 'accepted' | 'delivered' | 'rejected' | 'dropped' | 'queued' | 'inFlight' | 'retried'>
      exports: { ok: number, failed: number }
      lastError: string | null
      /** Held lines that made room for later ones. Only with `logs.buffer`. */
      forgotten?: number
    }
    /** Only where metrics are on. */
    metrics?: {
      /** In memory now, of all metrics. */
      series: number
      /** Names of the metrics that have reached the limit of 2,000 series. */
      overflowed: string[]
      /** Series that the last text for Prometheus had to leave out: another one has their name and labels there. */
      scrapeDropped: number
      /** Data points, each counted in every export. */
      points: { delivered: number, rejected: number, dropped: number }
      exports: { ok: number, failed: number }
      lastError: string | null
    }
  }

  /** The parts of an OpenTelemetry SDK's SpanProcessor that are used (SDK 2.x and 3.x). */
  export interface SpanProcessor {
    onStart (span: any, parentContext: Context): void
    onEnding?(span: any): void
    onEnd (span: any): void
    forceFlush (): Promise<void>
    shutdown (): Promise<void>
  }

  /** The parts of an OpenTelemetry SDK's Sampler that are used. */
  export interface Sampler {
    shouldSample (context: Context, traceId: string, spanName: string, spanKind: SpanKind, attributes: Attributes, links: Link[]): {
      /** 0 NOT_RECORD, 1 RECORD, 2 RECORD_AND_SAMPLED */
      decision: number
      attributes?: Readonly<Attributes> | undefined
      traceState?: any
    }
  }

  /**
   * 'always_on', 'always_off', a ratio from 0 to 1, or a rate. If there is a parent, its sampled flag decides.
   * A ratio and a rate write their threshold into the trace state, `ot=th:…`:
   * https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/
   */
  export type SamplerOption = 'always_on' | 'always_off' | number | RateOptions | Sampler

  /** A number of traces per second that the routes share: rare routes are sampled whole, busy ones share the rest. */
  export interface RateOptions {
    /** Traces per second that start here, 0 or more. Requests whose callers have decided are not counted. */
    perSecond: number
  }

  /**
   * A path: `'/health'` is that path; `*` stands for anything, including slashes. A RegExp is tested against the path
   * without its query. A function must return at once.
   */
  export type IgnorePattern = string | RegExp | ((request: FastifyRequest) => boolean)

  export type IgnoreOption = IgnorePattern | IgnorePattern[]

  // options:start: npm run docs:tables writes this, from lib/config/table.js and scripts/options-text.js
  /** OTLP over HTTP with protobuf. Missing members come from the OTEL_EXPORTER_OTLP_* variables. */
  export interface ExporterOptions {
    /**
     * The URL to send to, used as it is. If it has no path, `/v1/traces` is added. User and password in it become an `authorization`
     * header.
     * @default OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT + v1/traces, http://localhost:4318/v1/traces
     */
    url?: string | URL | undefined
    /**
     * An object, a Map or Headers. Added to the headers of the variables, and wins over them. Never logged.
     * @default OTEL_EXPORTER_OTLP_HEADERS
     */
    headers?: Record<string, string> | Iterable<[string, string]> | undefined
    /**
     * `'none'`, `'gzip'` or `'zstd'`, which run off the main thread. zstd needs Node 22.15; before it, and for a collector that refuses it
     * (400 or 415), it is gzip.
     * @default OTEL_EXPORTER_OTLP_COMPRESSION, 'none'
     */
    compression?: 'none' | 'gzip' | 'zstd' | undefined
    /** Milliseconds for one attempt, from its start to the end of the answer. 0 is no limit. @default OTEL_EXPORTER_OTLP_TIMEOUT, 10000 */
    timeoutMs?: number | undefined
    /** Certificate authorities to trust: PEM, or the path of a file. Read once. @default OTEL_EXPORTER_OTLP_CERTIFICATE, Node's own */
    ca?: string | Buffer | undefined
    /** A client certificate for mTLS: PEM, or the path of a file. Read once. @default OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE */
    cert?: string | Buffer | undefined
    /** The key of the client certificate: PEM, or the path of a file. Read once. @default OTEL_EXPORTER_OTLP_CLIENT_KEY */
    key?: string | Buffer | undefined
    /**
     * Headers that look like credentials are not sent over `http:` to another machine, unless this is `true`. `authorization`, `api-key`
     * and names with `token` are among them.
     * @default OTEL_EXPORTER_OTLP_INSECURE, false
     */
    insecureHeaders?: boolean | undefined
  }

  /** Which unsampled requests are exported all the same. */
  export interface KeepOptions {
    /** Export unsampled requests that end with an error. @default false */
    errors?: boolean | undefined
    /** Export unsampled requests whose client left before the response was there. Any stranger can send such requests. @default false */
    aborted?: boolean | undefined
    /** Export unsampled requests that take longer than this many milliseconds. @default Infinity */
    slowerThanMs?: number | undefined
    /**
     * Export unsampled requests for which the application calls `request.trace.keep(reason)`. It does so with the others, too: this is for
     * `keep` without any of them.
     * @default false
     */
    asked?: boolean | undefined
    /**
     * About how many requests per second `keep` exports at most. Beyond it some are exported, and say for how many they stand
     * (docs/sampling.md).
     * @default 100
     */
    maxPerSecond?: number | undefined
  }

  /** What the recorder holds, and when it gives it away by itself; see docs/sampling.md. */
  export interface RecorderOptions {
    /** Bytes of spans, beside `buffer.maxBytes`; the oldest are overwritten. @default 8388608 */
    maxBytes?: number | undefined
    /** How many seconds a snapshot reaches back, unless it is asked for with a number of its own. @default 10 */
    seconds?: number | undefined
    /** About so many answers of 5xx within a second make a snapshot. `0`: none do. @default 0 */
    errorsPerSecond?: number | undefined
    /** With `blockedLoop`: a blocked event loop makes a snapshot. @default false */
    blockedLoop?: boolean | undefined
  }

  /** What is slow, see docs/slow.md. */
  export interface SlowOptions {
    /**
     * Milliseconds; 0: each request. Requests that failed or are kept say it from 20 ms on.
     * @default keep.slowerThanMs, LIGHT_TRACE_SLOW_AFTER_MS, 250
     */
    afterMs?: number | undefined
  }

  /** Child spans of Fastify's own stages. */
  export type SpansOptions = {
    /**
     * A child span around the handler, also around a not-found handler of your own; that one begins with the hooks before it and ends when
     * the response is closed.
     * @default false
     */
    handler?: boolean | undefined
    /**
     * A child span for each of these stages that has hooks: `onRequest`, `preParsing`, `preValidation`, `preHandler`, `preSerialization`,
     * `onSend`, `onResponse`, `onError`.
     * @default []
     */
    hooks?: LifecycleHook[] | undefined
  }

  export type LifecycleHook =
    'onRequest' | 'preParsing' | 'preValidation' | 'preHandler' | 'preSerialization' | 'onSend' | 'onResponse' | 'onError'

  /** How the events of a TracingChannel of `node:diagnostics_channel` become spans. */
  export interface ChannelOptions {
    /** The kind of its spans. @default 'client' */
    kind?: 'internal' | 'server' | 'client' | 'producer' | 'consumer' | SpanKind | undefined
    /** The name of its spans. @default the name of the channel */
    name?: string | ((context: any) => string) | undefined
    /** Attributes of its spans. */
    attributes?: Attributes | ((context: any) => Attributes) | undefined
  }

  /** Which calls share a span, see docs/outbound.md. */
  export interface FoldOptions {
    /** How many of the calls under one span that do the same have spans of their own, 1 or more. @default 10 */
    after?: number | undefined
  }

  /** Spans and trace headers for outgoing calls, see docs/outbound.md. */
  export interface OutboundOptions {
    /** Trace `node:http`, `node:https` and `node:http2`. @default true */
    http?: boolean | undefined
    /** Trace `fetch` and every client of undici. @default true */
    undici?: boolean | undefined
    /** Trace libraries that publish diagnostics channels. @default true */
    libraries?: boolean | undefined
    /**
     * Channels of your own, `{ 'my-lib:op': { kind, name, attributes } }`, and those of libraries that are only traced if you name them.
     * `true` is for one that light-trace knows.
     */
    channels?: Record<string, ChannelOptions | true> | undefined
    /** `(url) => boolean`: which calls get the headers `traceparent`, `tracestate` and `baggage`. @default all */
    propagateTo?: ((url: string) => boolean) | undefined
    /** Record the document of a GraphQL operation as `graphql.document`, with `?` for its values. @default false */
    graphqlDocuments?: boolean | undefined
    /**
     * `{ after: 10 }`: of the calls under one span that do the same, record the first ten, and one span for the others (docs/outbound.md).
     * `true`: ten.
     * @default false
     */
    fold?: FoldOptions | boolean | undefined
  }

  /** See docs/logs.md. Levels are names of the logger's. */
  export interface LogsOptions {
    /**
     * `true`, `'otlp'`, `'otlp/stdout'`, `'console'` (a line of text for each record), or an object as `exporter` (docs/options.md) takes
     * it. `true`: where spans go.
     * @default OTEL_LOGS_EXPORTER, false
     */
    export?: boolean | 'otlp' | 'otlp/stdout' | 'console' | 'none' | ExporterOptions | undefined
    /** The least level that is exported: `'info'`. @default the logger's */
    level?: string | undefined
    /** The least level that is exported of requests that are not sampled. @default 'warn' */
    unsampledLevel?: string | undefined
    /** How many lines of one level are exported in a second. @default 10000 */
    maxPerSecond?: number | undefined
    /** The least level of lines that are held, and printed if the request fails. */
    buffer?: string | undefined
  }

  /** When the event loop counts as blocked, see docs/slow.md. */
  export interface BlockedLoopOptions {
    /** For how many milliseconds the event loop has to be blocked, 20 or more. @default 100 */
    afterMs?: number | undefined
  }

  /** What waits to be sent, see docs/reliability.md. */
  export interface BufferOptions {
    /** Bytes allocated for spans that are not yet delivered. @default 33554432 */
    maxBytes?: number | undefined
    /**
     * Milliseconds that a span may wait for others. The first ones wait 2 ms, the next 4 ms, and so on up to this.
     * @default OTEL_BSP_SCHEDULE_DELAY, 1000
     */
    flushDelayMs?: number | undefined
  }

  /** See docs/metrics.md. The names and units of metrics are those of OpenTelemetry's semantic conventions. */
  export interface MetricsOptions {
    /** `'otlp'`, `'otlp/stdout'`, `'none'`, or an object as `exporter` takes it. @default OTEL_METRICS_EXPORTER, as exporter */
    exporter?: 'otlp' | 'otlp/stdout' | 'none' | ExporterOptions | undefined
    /** A path on which Prometheus can scrape. Requests for it are neither traced nor counted. */
    path?: string | undefined
    /** Event loop, garbage collection, heap, CPU and memory. @default false */
    runtime?: boolean | undefined
    /**
     * `(request, reply) => attributes`: more attributes of `http.server.request.duration`, asked for when the request has ended. Each
     * different set is a series; over 2,000 they are counted together as `otel.metric.overflow`.
     */
    attributes?: ((request: FastifyRequest, reply: FastifyReply) => Attributes) | undefined
    /** Bounds of `http.server.request.duration`, in seconds, ascending. @default those of the conventions, 0.005 to 10 */
    buckets?: number[] | undefined
    /**
     * `'explicit'` buckets, or `'exponential'` ones, of base 2.
     * @default OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION, 'explicit'
     */
    histograms?: 'explicit' | 'exponential' | undefined
    /**
     * `'cumulative'`, `'delta'` or `'lowmemory'`: whether OTLP reports sums since the start, or differences.
     * @default OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE, 'cumulative'
     */
    temporality?: 'cumulative' | 'delta' | 'lowmemory' | undefined
    /**
     * `'trace_based'`, `'always_on'` or `'always_off'`: which measurements are kept as examples, with the ids of their trace and span.
     * @default OTEL_METRICS_EXEMPLAR_FILTER, 'trace_based'
     */
    exemplars?: 'trace_based' | 'always_on' | 'always_off' | undefined
    /** `http.server.active_requests`. @default false */
    activeRequests?: boolean | undefined
    /** `http.server.request.body.size` and `http.server.response.body.size`, in bytes. @default false */
    bodySizes?: boolean | undefined
    /**
     * Milliseconds from one export to the next, 100 at least; `Infinity` is never, but for flushes and the end. The first comes after half
     * to one and a half of it, so that a fleet that starts at once does not export at once.
     * @default OTEL_METRIC_EXPORT_INTERVAL, 60000
     */
    intervalMs?: number | undefined
  }

  /** How much a span may hold. More is dropped and counted on the span. */
  export interface LimitsOptions {
    /** Attributes of a span. light-trace's own come first. @default OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT, OTEL_ATTRIBUTE_COUNT_LIMIT, 128 */
    attributes?: number | undefined
    /**
     * Characters of a string value. Longer ones are cut.
     * @default OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT, OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT, 16384
     */
    attributeValueLength?: number | undefined
    /** Events of a span. @default OTEL_SPAN_EVENT_COUNT_LIMIT, 128 */
    events?: number | undefined
    /** Links of a span. @default OTEL_SPAN_LINK_COUNT_LIMIT, 128 */
    links?: number | undefined
  }

  /**
   * The options of `app.register(lightTrace, options)`. They win over the OTEL_* variables.
   * @throws LT_ERR_OPTION_UNKNOWN for a name that resembles one of these, with that one. Other names are a warning:
   *   fastify-cli and @fastify/autoload hand their users' flags to every plugin.
   * @throws LT_ERR_OPTION_INVALID for a value that cannot be used; the message says what was received
   */
  export interface LightTraceOptions {
    /**
     * The name of your service, `service.name`. Without it: `OTEL_SERVICE_NAME`, then `service.name` in `OTEL_RESOURCE_ATTRIBUTES`, then
     * the name in your package.json, then `npm_package_name` (which npm sets for its scripts), then `unknown_service:node`.
     * @default found out
     */
    serviceName?: string | undefined
    /**
     * More attributes of the resource, such as `deployment.environment.name`. They win over those of `OTEL_RESOURCE_ATTRIBUTES` and those
     * that light-trace finds out.
     * @default {}
     */
    resource?: Attributes | undefined
    /**
     * Where spans go: `'otlp'`, `'otlp/stdout'` (OTLP as lines of JSON on standard output), `'console'` (trees on standard output),
     * `'none'`, or an object that describes an OTLP exporter.
     * @default OTEL_TRACES_EXPORTER, 'otlp'
     */
    exporter?: 'otlp' | 'otlp/stdout' | 'console' | 'none' | ExporterOptions | undefined
    /** An array of span processors of OpenTelemetry's SDK 2.x or 3.x. Spans go through them instead of the exporter. */
    spanProcessors?: SpanProcessor[] | undefined
    /** A tracer provider of OpenTelemetry's SDK, which then makes the spans. `false`: never use the one that is registered globally. */
    tracerProvider?: TracerProvider | false | undefined
    /** Register with `@opentelemetry/api` where nothing else is registered, so that `trace.getTracer()` works. @default true */
    registerGlobals?: boolean | undefined
    /**
     * `'always_on'`, `'always_off'`, a ratio from 0 to 1, `{ perSecond: 50 }`, or a Sampler of the SDK. A caller's sampled flag wins.
     * @default OTEL_TRACES_SAMPLER, 'always_on'
     */
    sampler?: SamplerOption | undefined
    /**
     * `{ errors, aborted, slowerThanMs, asked, maxPerSecond }`: export unsampled requests that failed, were slow, or that the application
     * asks for. `true`: those that failed. See docs/sampling.md.
     * @default false
     */
    keep?: KeepOptions | boolean | undefined
    /**
     * `{ maxBytes, seconds, errorsPerSecond, blockedLoop }`: hold the last spans of unsampled requests. `true` is `{}`. See
     * docs/sampling.md. `lightTrace.snapshot()` and `request.trace.keep()` export them.
     * @default false
     */
    recorder?: RecorderOptions | boolean | undefined
    /**
     * From how many milliseconds on a request's span says what it waited for (docs/slow.md). Without it: `keep.slowerThanMs`, then
     * `LIGHT_TRACE_SLOW_AFTER_MS`, then 250. `false`: never. The attributes are `light_trace.time.*`.
     * @default { afterMs: 250 }
     */
    slow?: SlowOptions | boolean | undefined
    /** An upper bound for sampled requests per second, including those whose callers set the sampled flag. @default Infinity */
    maxSampledPerSecond?: number | undefined
    /**
     * The path of a JSON file whose `sampler`, `keep`, `ignore` and `logs` hold in place of these options, and from each change of it on.
     * It is read again at once on SIGHUP. A file that is wrong changes nothing, and is logged.
     */
    configFile?: string | undefined
    /**
     * Requests that get no spans: a path (`'/health'`, `'/assets/*'`), a RegExp, a function `(request) => boolean`, or an array of these.
     * They keep their context.
     * @default OTEL_FASTIFY_IGNORE_PATHS
     */
    ignore?: IgnoreOption | undefined
    /**
     * `false` or `(request) => boolean`: do not continue the caller's trace. Start a new one and link to the caller's span.
     * @default true
     */
    trustIncoming?: boolean | ((request: FastifyRequest) => boolean) | undefined
    /** Request headers to record. Headers that carry credentials are never recorded. @default [] */
    requestHeaders?: string[] | undefined
    /** Response headers to record. Headers that carry credentials are never recorded. @default [] */
    responseHeaders?: string[] | undefined
    /**
     * More names of query parameters whose values are recorded as `REDACTED`, or a function that decides about all of them. This holds for
     * `url.query` and for the `url.full` of outgoing calls. Names are compared without case and separators; a function receives each name,
     * decoded.
     * @default []
     */
    redactQuery?: string[] | ((name: string) => boolean) | undefined
    /** `(request) => string`: the name of the request's span, instead of `GET /users/:id`. */
    spanName?: ((request: FastifyRequest) => string) | undefined
    /** `(request) => attributes` to start the request's span with. */
    attributes?: ((request: FastifyRequest) => Attributes) | undefined
    /**
     * Attributes that leave the process in no span, event, link, log record or metric: keys such as `'client.address'`, or prefixes such as
     * `'network.peer.*'`. Of log records also members of attributes by their path, such as `req.remoteAddress`. `service.name` and
     * `telemetry.sdk.*` stay.
     * @default []
     */
    omitAttributes?: string[] | undefined
    /** `(span, request)`: called when the request's span has started. */
    onStart?: ((span: Span, request: FastifyRequest) => void) | undefined
    /** `(span, request, reply)`: called just before the request's span ends. */
    onEnd?: ((span: Span, request: FastifyRequest, reply: FastifyReply) => void) | undefined
    /** What each request's store starts with: an object, which is copied, or `(request) => object`. See docs/context.md. */
    store?: Store | ((request: FastifyRequest) => Store) | undefined
    /** Child spans for the handler and for stages of Fastify's lifecycle. `true`: the handler. @default { handler: false, hooks: [] } */
    spans?: SpansOptions | boolean | undefined
    /**
     * Spans and trace headers for outgoing calls (docs/outbound.md); also `channels` and `propagateTo`. `true`: these defaults. `false`:
     * none.
     * @default { http: true, undici: true, libraries: true, graphqlDocuments: false, fold: false }
     */
    outbound?: OutboundOptions | boolean | undefined
    /**
     * Spans for requests that never reach light-trace's hook, too: a bad URL, an app that is closing. HTTP/1 only, and not if light-trace
     * is registered in a child scope. These spans have no `http.route`, and only the functions `ignore` and `trustIncoming` are called for
     * them.
     * @default false
     */
    unrouted?: boolean | undefined
    /**
     * Where the route is declared, as `code.file.path` and `code.line.number` of the request's span. `true` under `npx light-trace app.js`
     * and with a collector of `light-trace/testing` (docs/recipes.md). A stack is taken once for each route that is declared after
     * light-trace is loaded, and nothing per request.
     * @default false
     */
    codeLocation?: boolean | undefined
    /**
     * Whether an error that was thrown is recorded where the answer is 4xx: an `exception` event and `error.type`. `false` for services
     * with floods of 4xx. The span's status stays unset.
     * @default true
     */
    clientErrors?: boolean | undefined
    /**
     * `trace_id`, `span_id` and `trace_flags` on the lines of `request.log`. See docs/recipes.md. An object: exported lines (docs/logs.md)
     * too, `logs.export`, `logs.level`, `logs.unsampledLevel`, `logs.maxPerSecond`, `logs.buffer`.
     * @default true
     */
    logs?: LogsOptions | boolean | undefined
    /**
     * `'server-timing'`: send the trace id to the caller in this response header. It is appended to the metrics of the application:
     * `trace;desc=…` (W3C Trace Context level 3) and `traceparent;desc="…"`.
     * @default false
     */
    replyHeader?: 'server-timing' | false | undefined
    /**
     * Keys of a trusted caller's baggage that become attributes of the request's span: `['tenant.id']`. At most 256 characters of each, and
     * never in place of an attribute that is there for another reason.
     * @default []
     */
    baggage?: string[] | undefined
    /**
     * `true` or `{ afterMs: 100 }`: the line that blocked the event loop (docs/slow.md), on the requests that waited for it. A worker
     * watches the event loop while requests are open.
     * @default LIGHT_TRACE_BLOCKED_LOOP, false
     */
    blockedLoop?: BlockedLoopOptions | boolean | undefined
    /**
     * How many bytes undelivered spans may take, and how long a span may wait for others to be sent with it. A full buffer is thinned
     * (docs/reliability.md).
     * @default { maxBytes: 33554432, flushDelayMs: 1000 }
     */
    buffer?: BufferOptions | undefined
    /**
     * How many milliseconds `app.close()` waits for a collector that does not answer. A collector that refuses the connection is given up
     * at once.
     * @default 5000
     */
    closeTimeoutMs?: number | undefined
    /**
     * `true`, or an object: count the requests, sampled or not. See docs/metrics.md. `OTEL_METRICS_EXPORTER` switches them on, too.
     * @default false
     */
    metrics?: MetricsOptions | boolean | undefined
    /**
     * How much a span may hold. More is dropped, and counted on the span.
     * @default { attributes: 128, attributeValueLength: 16384, events: 128, links: 128 }
     */
    limits?: LimitsOptions | undefined
  }

  /** A route's `config.trace`. For missing members the plugin's options hold. */
  export type RouteTraceOptions = {
    /** A string, or `(request) => string`. */
    spanName?: string | ((request: FastifyRequest) => string) | undefined
    /** An object, or `(request) => attributes`. Added to those of the option `attributes`. */
    attributes?: Attributes | ((request: FastifyRequest) => Attributes) | undefined
    /** Like the option `spans`, and instead of it. */
    spans?: SpansOptions | boolean | undefined
    /** Like the option `sampler`, and instead of it. */
    sampler?: SamplerOption | undefined
    /** Like the option `slow`, and instead of it. `{ afterMs: 0 }`: each request of the route. */
    slow?: SlowOptions | boolean | undefined
    /** `false`: metrics (docs/metrics.md) do not count this route. @default true */
    metrics?: boolean | undefined
    /** Like the option `ignore`; `true` is the same as `trace: false`. */
    ignore?: boolean | IgnoreOption | undefined
  }
  // options:end

  /** The error that `register` and adding a route throw. Codes are stable, messages are not. */
  export interface LightTraceError extends Error {
    name: 'LightTraceError'
    code: 'LT_ERR_OPTION_UNKNOWN' | 'LT_ERR_OPTION_INVALID'
  }

  /** The `request.trace` of the running request, anywhere in its asynchronous flow. Outside of requests: undefined. */
  export function current (): RequestTrace | undefined

  /**
   * Spans for the queries of this object: a Client or Pool of pg, a MongoClient that has not connected yet, a knex
   * instance, or a `sql` of postgres. Of ioredis: spans also for commands that are sent before the connection is ready. Nothing
   * else is changed. Returns the object, for a `sql` one that stands for it; throws `LT_ERR_OPTION_INVALID` for anything else.
   */
  export function traceClient<C extends object> (client: C): C

  /**
   * A handler for function platforms that freeze the process when it has answered: it settles when the spans of the
   * invocation are delivered, when an attempt to do so has failed, or after `timeoutMs`. Once a collector has been silent for
   * `timeoutMs`, it waits for 50 ms at most until the collector takes spans again. What the handler returns or throws is passed on.
   * On AWS Lambda the request's span gets `faas.*` attributes, and X-Ray's span as its parent where that samples and the
   * caller has sent no `traceparent`. On Vercel the answer does not wait: the platform's `waitUntil` is asked.
   * @param options.timeoutMs milliseconds to wait at most. @default 1000, or what the invocation has left
   * @throws LT_ERR_OPTION_INVALID if `app` is not a Fastify application or `handler` not a function
   */
  export function flushAfter<H extends (...args: any[]) => unknown> (app: { ready (): unknown, server: object }, handler: H, options?: { timeoutMs?: number | undefined }):
    (...args: Parameters<H>) => Promise<Awaited<ReturnType<H>>>

  export interface JobOptions {
    /** @default 'process' */
    name?: string | undefined
    /** A SpanKind of `@opentelemetry/api`. @default SpanKind.CONSUMER */
    kind?: number | undefined
    attributes?: Attributes | undefined
    /** Link to the producer's span and start a trace of its own, in place of going on under it. @default false */
    link?: boolean | undefined
  }

  /**
   * Runs `fn(trace)` in a span for work that no request has brought, such as a job of a queue, in the trace of its
   * producer. `trace` is what `lightTrace.current()` answers meanwhile. The span ends with the function, or with the
   * promise it returns; what is thrown is recorded and passed on. Without an open application `fn` runs untraced.
   * @param carrier what the producer's `request.trace.inject()` made: an object or a Map with `traceparent`, `tracestate`, `baggage`
   * @throws LT_ERR_OPTION_INVALID, LT_ERR_OPTION_UNKNOWN
   */
  export function run<T> (carrier: unknown, fn: (trace: RequestTrace) => T): T
  export function run<T> (carrier: unknown, options: JobOptions, fn: (trace: RequestTrace) => T): T

  export const lightTrace: typeof import('.')
  export { lightTrace as default }
}

declare function lightTrace (...params: Parameters<LightTracePlugin>): ReturnType<LightTracePlugin>

export = lightTrace
