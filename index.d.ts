/// <reference types="node" />

import { MeterProvider, Attributes, Context, Link, Span, SpanKind, SpanOptions, Tracer, TracerProvider } from '@opentelemetry/api'
import { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'

type LightTracePlugin = FastifyPluginCallback<lightTrace.LightTraceOptions>

declare module 'fastify' {
  interface FastifyRequest {
    /**
     * The request's trace context and store. Always an object, also on ignored routes, before light-trace's own
     * hook and when tracing is disabled: its span is then a non-recording one.
     */
    readonly trace: lightTrace.RequestTrace
  }

  interface FastifyInstance {
    /** The tracer of this app, and what is known about its spans. */
    readonly lightTrace: lightTrace.LightTraceInstance
  }

  interface FastifyContextConfig {
    /**
     * How this route is traced. `false` switches its spans off; its request context stays.
     * @throws LT_ERR_OPTION_UNKNOWN, LT_ERR_OPTION_INVALID when the route is added
     */
    trace?: boolean | lightTrace.RouteTraceOptions
  }
}

declare namespace lightTrace {
  /**
   * What `request.trace.get` and `set` hold. Augment it, and both are typed; until then any key goes.
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

  /** `request.trace` and what `lightTrace.current()` answers. */
  export interface RequestTrace {
    /** The request's SERVER span, with all of the API's methods. Non-recording where there is none. */
    readonly span: Span
    /** 32 lowercase hex digits. */
    readonly traceId: string
    /** 16 lowercase hex digits: the id of `span`. */
    readonly spanId: string
    /** Whether the trace is sampled, as the called services are told. */
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
     * returns settles. What it throws or rejects with is recorded and passed on.
     */
    withSpan<T> (name: string, fn: (span: Span) => T): T
    withSpan<T> (name: string, options: SpanOptions, fn: (span: Span) => T): T
    /**
     * For who answers errors by himself, where Fastify does not see them (a filter, a router inside of a handler):
     * records an `exception` event on the request's span, and if the response is 5xx, `error.type` and the status ERROR.
     * An error that Fastify catches too is recorded once. Does nothing once the response is closed. Never throws.
     * Semantic conventions: Recording errors on spans.
     */
    fail (error: unknown): void
    /** Runs `fn` in this request's context, where Node has lost it. */
    run<A extends unknown[], T> (fn: (...args: A) => T, ...args: A): T
    /** The same function, which will always run in this request's context. */
    bind<F extends (...args: any[]) => any> (fn: F): F
    /**
     * Sets `traceparent`, and `tracestate` and `baggage` where there are any, on the headers of an outgoing call:
     * a plain object or a `Headers`. Each call gets a parent id of its own (W3C Trace Context level 2).
     * Returns the headers.
     */
    inject (): Record<string, string>
    inject<H extends object> (headers: H): H
  }

  export interface LightTraceInstance {
    /** Starts spans of your own, also outside of requests and before the app is ready. */
    readonly tracer: Tracer
    /** For instrumentations and libraries that ask for one. */
    readonly tracerProvider: TracerProvider
    /**
     * Sends what is queued now. Resolves when it was delivered or given up; never rejects.
     * @param options.timeoutMs milliseconds after which it resolves in any case
     */
    flush (options?: { timeoutMs?: number }): Promise<void>
    /** What happened to the spans so far. `ended = accepted + unsampled` at every moment. */
    stats (): LightTraceStats
    /**
     * All metrics as text for Prometheus: format 0.0.4, or OpenMetrics 1.0. '' where metrics are off. Never rejects.
     * @param options.openMetrics with exemplars and units
     */
    metrics (options?: { openMetrics?: boolean }): Promise<string>
    /** For meters of your own. Where metrics are off its instruments record nothing. */
    readonly meterProvider: MeterProvider
  }

  /** How spans leave the process: OTLP, nothing, the console, the given processors, or an OpenTelemetry SDK. */
  export type Mode = 'native' | 'console' | 'none' | 'processors' | 'sdk' | 'disabled' | (string & {})

  export interface LightTraceStats {
    mode: Mode
    spans: {
      started: number
      ended: number
      /** Ended without being sampled or kept. */
      unsampled: number
      /** `= handedOver + delivered + rejected + sum(dropped) + queued + inFlight` */
      accepted: number
      /** To span processors or an SDK. */
      handedOver: number
      /** Acknowledged by the collector. */
      delivered: number
      /** Refused by the collector in a partial success. */
      rejected: number
      /** By reason. */
      dropped: Record<string, number>
      /** Waiting to be sent, with those in the chunk that is being filled. */
      queued: number
      inFlight: number
      /** Sent more than once. */
      retried: number
    }
    buffer: {
      /** Allocated now. */
      bytes: number
      maxBytes: number
    }
    exports: {
      ok: number
      failed: number
    }
    /** The last failure of an export, without any secret. */
    lastError: string | null
    /** Only where metrics are on. */
    metrics?: {
      /** In memory now, of all metrics. */
      series: number
      /** Names of the metrics that have reached the limit of 2,000 series. */
      overflowed: string[]
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
      attributes?: Readonly<Attributes>
      traceState?: any
    }
  }

  /**
   * 'always_on', 'always_off', the ratio of traces, 0 to 1, or a rate. A sampled or unsampled parent decides first.
   * A ratio and a rate write their threshold into the trace state, `ot=th:…`:
   * https://opentelemetry.io/docs/specs/otel/trace/tracestate-probability-sampling/
   */
  export type SamplerOption = 'always_on' | 'always_off' | number | RateOptions | Sampler

  /** So many traces a second, shared over routes: rare routes are taken whole, busy ones share what is left. */
  export interface RateOptions {
    /** Traces a second that start here, 0 or more. Callers that have decided are followed, and not counted. */
    perSecond: number
  }

  /**
   * A path: `'/health'` is that path, `*` stands for anything, slashes included. A RegExp is tested against the
   * path without its query. A function answers at once.
   */
  export type IgnorePattern = string | RegExp | ((request: FastifyRequest) => boolean)

  export type IgnoreOption = IgnorePattern | IgnorePattern[]

  /** OTLP over HTTP with protobuf. What is not given comes from the OTEL_EXPORTER_OTLP_* variables. */
  export interface ExporterOptions {
    /**
     * Used as it is; one without any path gets `/v1/traces`. User and password in it become an Authorization header.
     * @default OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT + '/v1/traces', 'http://localhost:4318/v1/traces'
     */
    url?: string | URL
    /** Added to those of OTEL_EXPORTER_OTLP_HEADERS, and before them. Never logged. */
    headers?: Record<string, string>
    /** @default 'none' */
    compression?: 'none' | 'gzip'
    /** For one attempt, from its start to the end of the answer. 0 is no limit. @default 10000 */
    timeoutMs?: number
    /** The authorities to trust: PEM, or the path of a file, read once. */
    ca?: string | Buffer
    /** The client's certificate for mTLS: PEM, or the path of a file, read once. */
    cert?: string | Buffer
    /** The client's key for mTLS: PEM, or the path of a file, read once. */
    key?: string | Buffer
    /**
     * Send headers that look like credentials (authorization, api-key, …token …) over http: to other machines too.
     * @default OTEL_EXPORTER_OTLP_INSECURE, false
     */
    insecureHeaders?: boolean
  }

  export interface KeepOptions {
    /** Requests that end with an error. @default false */
    errors?: boolean
    /** Requests that take longer, in milliseconds. @default Infinity */
    slowerThanMs?: number
  }

  /** Child spans of Fastify's own stages. */
  export interface SpansOptions {
    /** One around the handler. @default false */
    handler?: boolean
    /** One for each of these stages that has hooks. @default [] */
    hooks?: LifecycleHook[]
  }

  export type LifecycleHook =
    'onRequest' | 'preParsing' | 'preValidation' | 'preHandler' | 'preSerialization' | 'onSend' | 'onResponse' | 'onError'

  /** A TracingChannel of `node:diagnostics_channel` that somebody publishes, as spans. */
  export interface ChannelOptions {
    /** @default 'client' */
    kind?: 'internal' | 'server' | 'client' | 'producer' | 'consumer' | SpanKind
    /** @default the name of the channel */
    name?: string | ((context: any) => string)
    attributes?: Attributes | ((context: any) => Attributes)
  }

  export interface OutboundOptions {
    /** node:http, node:https and node:http2. @default true */
    http?: boolean
    /** fetch and undici. @default true */
    undici?: boolean
    /** Libraries that publish channels themselves. @default true */
    libraries?: boolean
    /** Your own channels, by name; `true` for one that light-trace knows and listens to only when asked. */
    channels?: Record<string, ChannelOptions | true>
    /** Which calls get traceparent, tracestate and baggage. @default all */
    propagateTo?: (url: string) => boolean
    /** Record the document of a GraphQL operation as `graphql.document`, with `?` for its values. @default false */
    graphqlDocuments?: boolean
  }

  export interface BufferOptions {
    /** Bytes allocated for spans that are not yet delivered; over it the oldest are dropped and counted. @default 33554432 */
    maxBytes?: number
    /** Milliseconds that a span may wait for others to go with it. @default OTEL_BSP_SCHEDULE_DELAY, 1000 */
    flushDelayMs?: number
  }

  /** See docs/metrics.md. The names and units of metrics are those of OpenTelemetry's semantic conventions. */
  export interface MetricsOptions {
    /** Where metrics go. @default OTEL_METRICS_EXPORTER, the `exporter` of spans, 'otlp' */
    exporter?: 'otlp' | 'console' | 'none' | ExporterOptions
    /** Serve Prometheus text and OpenMetrics 1.0 on this path, which is neither traced nor counted. @default none */
    path?: string
    /** Event loop, garbage collection, heap, CPU and memory of the process. @default false */
    runtime?: boolean
    /** light-trace's own counters, `otel.sdk.*`. @default true */
    self?: boolean
    /**
     * More attributes of `http.server.request.duration`, asked for when the request has ended. Each different set is a
     * series; over 2,000 they are counted together as `otel.metric.overflow`.
     */
    attributes?: (request: FastifyRequest, reply: FastifyReply) => Attributes
    /** Bounds of `http.server.request.duration` in seconds, ascending. @default those of the conventions, 0.005 to 10 */
    buckets?: number[]
    /** Explicit buckets, or base-2 exponential ones. @default OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION, 'explicit' */
    histograms?: 'explicit' | 'exponential'
    /** What OTLP reports: sums since the start, or differences. @default OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE, 'cumulative' */
    temporality?: 'cumulative' | 'delta' | 'lowmemory'
    /** Which measurements leave the ids of their span. @default OTEL_METRICS_EXEMPLAR_FILTER, 'trace_based' */
    exemplars?: 'trace_based' | 'always_on' | 'always_off'
    /** `false`: server-sent events and other streams do not count. @default true */
    streams?: boolean
    /** `http.server.active_requests`. @default false */
    activeRequests?: boolean
    /** `http.server.request.body.size` and `http.server.response.body.size`, in bytes. @default false */
    bodySizes?: boolean
    /** Milliseconds from one export to the next. @default OTEL_METRIC_EXPORT_INTERVAL, 60000 */
    intervalMs?: number
  }

  /** What a span may hold. What is over it is dropped and counted on the span. */
  export interface LimitsOptions {
    /** @default OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT, OTEL_ATTRIBUTE_COUNT_LIMIT, 128 */
    attributes?: number
    /** Characters. @default OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT, OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT, 16384 */
    attributeValueLength?: number
    /** @default OTEL_SPAN_EVENT_COUNT_LIMIT, 128 */
    events?: number
    /** @default OTEL_SPAN_LINK_COUNT_LIMIT, 128 */
    links?: number
    /** @default OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT, 128 */
    attributesPerEvent?: number
    /** @default OTEL_LINK_ATTRIBUTE_COUNT_LIMIT, 128 */
    attributesPerLink?: number
    /** Child spans held for a request that `keep` may yet export. @default 64 */
    keptChildren?: number
  }

  /**
   * The options of `app.register(lightTrace, options)`. They win over the OTEL_* variables.
   * @throws LT_ERR_OPTION_UNKNOWN for a name that resembles one of these, with that one. Other names are a warning:
   *   fastify-cli and @fastify/autoload hand their users' flags to every plugin.
   * @throws LT_ERR_OPTION_INVALID for a value that cannot be used, with what came
   */
  export interface LightTraceOptions {
    /** @default resource['service.name'], OTEL_SERVICE_NAME, that of OTEL_RESOURCE_ATTRIBUTES, the name in package.json, 'unknown_service:node' */
    serviceName?: string
    /** Attributes of the resource, over those of OTEL_RESOURCE_ATTRIBUTES and those found out. */
    resource?: Attributes
    /** @default OTEL_TRACES_EXPORTER, 'otlp' */
    exporter?: 'otlp' | 'console' | 'none' | ExporterOptions
    /** Spans go through these instead of the exporter (SDK 2.x and 3.x). */
    spanProcessors?: SpanProcessor[]
    /** Spans are made by this one. `false`: never by the global one. */
    tracerProvider?: TracerProvider | false
    /** Register with `@opentelemetry/api` where its slots are free. @default true */
    registerGlobals?: boolean
    /** @default OTEL_TRACES_SAMPLER, 'always_on' */
    sampler?: SamplerOption
    /** Which unsampled requests are exported all the same; `true`: failed ones, `{ errors: true }`. @default off */
    keep?: KeepOptions | boolean
    /** Bounds what callers' sampled flags can cost. @default Infinity */
    maxSampledPerSecond?: number
    /** Requests without spans. @default OTEL_FASTIFY_IGNORE_PATHS, none */
    ignore?: IgnoreOption
    /** `false`: start a new trace and link to the caller's. @default true */
    trustIncoming?: boolean | ((request: FastifyRequest) => boolean)
    /** Request headers to record; those with credentials never are. @default [] */
    requestHeaders?: string[]
    /** Response headers to record; those with credentials never are. @default [] */
    responseHeaders?: string[]
    /**
     * Which parameters of a query have their values replaced by `REDACTED`, in `url.query` and in the `url.full` of
     * outgoing calls: names beside those that are credentials anyway, compared without case and separators, or a
     * function that gets each name, decoded, and decides about all. @default []
     */
    redactQuery?: string[] | ((name: string) => boolean)
    /** The name of the SERVER span, in place of 'GET /users/:id'. */
    spanName?: (request: FastifyRequest) => string
    /** Attributes that the SERVER span starts with. */
    attributes?: (request: FastifyRequest) => Attributes
    onStart?: (span: Span, request: FastifyRequest) => void
    onEnd?: (span: Span, request: FastifyRequest, reply: FastifyReply) => void
    /** What each request's store starts with. */
    store?: Store | ((request: FastifyRequest) => Store)
    /** Child spans of Fastify's own stages; `true`: the handler's. @default none */
    spans?: SpansOptions | boolean
    /** `false`: no spans and no headers for outgoing calls. `true`: as the defaults say. */
    outbound?: OutboundOptions | boolean
    /**
     * Spans also for requests that never reach our hook: a bad URL, no Host, an app that is closing, an answer by a
     * hook that was registered before. HTTP/1 only, without `http.route` and without the functions of these options
     * but `ignore` and `trustIncoming`; not from a registration in a child scope. @default false
     */
    unrouted?: boolean
    /** trace_id, span_id and trace_flags on the lines of `request.log`. @default true */
    logs?: boolean
    /** Tell the caller the trace id in this response header. @default off */
    replyHeader?: 'traceresponse' | 'server-timing' | false
    buffer?: BufferOptions
    /** Milliseconds that `app.close()` waits for a collector that hangs. @default 5000 */
    closeTimeoutMs?: number
    /** Count every request, sampled or not. @default off, unless OTEL_METRICS_EXPORTER says otherwise */
    metrics?: MetricsOptions | boolean
    limits?: LimitsOptions
  }

  /** A route's `config.trace`. What is not given is as the plugin's options say. */
  export interface RouteTraceOptions {
    spanName?: string | ((request: FastifyRequest) => string)
    attributes?: Attributes | ((request: FastifyRequest) => Attributes)
    spans?: SpansOptions | boolean
    sampler?: SamplerOption
    /** `false`: metrics do not count this route. @default true */
    metrics?: boolean
    /** `true` is the same as `trace: false`. */
    ignore?: boolean | IgnoreOption
  }

  /** What `register` and adding a route throw. Codes are stable, messages are not. */
  export interface LightTraceError extends Error {
    name: 'LightTraceError'
    code: 'LT_ERR_OPTION_UNKNOWN' | 'LT_ERR_OPTION_INVALID'
  }

  /** The `request.trace` of the running request anywhere in its asynchronous flow, or undefined outside of one. */
  export function current (): RequestTrace | undefined

  /**
   * Spans for the queries of this object, which must be a Client or Pool of pg: nothing else is changed.
   * Returns the object.
   */
  export function traceClient<C extends object> (client: C): C

  export const lightTrace: typeof import('.')
  export { lightTrace as default }
}

declare function lightTrace (...params: Parameters<LightTracePlugin>): ReturnType<LightTracePlugin>

export = lightTrace
