import { Attributes, Context, HrTime, Link, SpanContext, SpanKind, SpanStatus } from '@opentelemetry/api'
import { SpanProcessor } from '..'

/** A finished span, as an OpenTelemetry SDK's ReadableSpan. */
export interface CollectedSpan {
  readonly name: string
  readonly kind: SpanKind
  spanContext (): SpanContext
  readonly parentSpanContext?: SpanContext
  readonly startTime: HrTime
  readonly endTime: HrTime
  readonly duration: HrTime
  readonly ended: boolean
  readonly status: SpanStatus
  readonly attributes: Attributes
  readonly events: Array<{ time: HrTime, name: string, attributes?: Attributes, droppedAttributesCount?: number }>
  readonly links: Link[]
  readonly resource: { readonly attributes: Attributes }
  readonly instrumentationScope: { readonly name: string, readonly version?: string, readonly schemaUrl?: string }
  readonly droppedAttributesCount: number
  readonly droppedEventsCount: number
  readonly droppedLinksCount: number
}

/**
 * An in-memory collector for tests: `app.register(lightTrace, { spanProcessors: [collector] })`.
 * A span ends when its response is closed, which may be after the client has it; `spans` and `tree` wait for that.
 */
export interface Collector extends SpanProcessor {
  onStart (span: any, parentContext: Context): void
  onEnd (span: any): void
  /** The finished spans, in the order in which they started, once none is running. */
  spans (): Promise<CollectedSpan[]>
  /** The same as one readable picture: a line for each span, children indented under their parent. */
  tree (): Promise<string>
  /** Forgets what was collected. */
  reset (): void
}

/** A new, empty collector. */
export function createCollector (): Collector
