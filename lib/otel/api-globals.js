'use strict'

// Registers with @opentelemetry/api: one façade for the whole process, in whatever slots are free, for as long
// as an application with light-trace is open.
//
//   trace.getTracer('x').startSpan()  ->  façade  ->  the app of the active request, else the first open app
//   context.with(), propagation.inject()  ->  façade  ->  our AsyncLocalStorage, our W3C code

const { REQUEST_KEY } = require('../context/keys')
const { processState } = require('../runtime/process-state')
const { ContextManager, SlotContextManager, foreignManager } = require('./context-manager')
const { ApiTracerProvider } = require('./api-tracer')
const { slots, fillSlot, emptySlot, clearSlots } = require('./slots')
const { findApi, loadEsm } = require('./api-version')
const { useRootOf } = require('./root-context')

const SETTERS = { trace: 'setGlobalTracerProvider', context: 'setGlobalContextManager', propagation: 'setGlobalPropagator', metrics: 'setGlobalMeterProvider' }

const PROXIES_MAX = 8

const facade = processState.facade ?? makeFacade()
processState.facade = facade

/** The context manager that is registered with the API now, else our own. */
const activeManager = new SlotContextManager(facade.context)

// The last application is gone without a close.
const forgotten = new FinalizationRegistry(() => { if (processState.openApps.isEmpty) release() })

/**
 * Opens `tracer` to the users of the API, until `closeApp`.
 * @param {Tracer} tracer
 * @param {boolean} register whether free slots are filled
 * @returns {Promise<void> | null} where there is something to wait for
 */
function openApp (tracer, register) {
  processState.openApps.add(tracer)
  forgotten.register(tracer)
  if (tracer.metrics !== null && facade.metrics === undefined) facade.metrics = makeMeterFacade()
  return register ? fill(tracer) : null
}

function closeApp (tracer) {
  if (!processState.openApps.all().includes(tracer)) return
  processState.openApps.delete(tracer)
  if (processState.openApps.isEmpty) release()
}

function fill ({ report, metrics }) {
  const sealed = slots()?.version
  const api = findApi(sealed)
  if (api.version === '') return null
  if (api.other !== undefined) {
    report.once('LT_WARN_API_VERSION', `two versions of @opentelemetry/api are in use, ${api.version} and ${api.other}: light-trace registers with neither`)
    return null
  }
  if (sealed === undefined) processState.hasSealed = true
  for (const slot of Object.keys(SETTERS)) {
    if (isOurs(slot) || (slot === 'metrics' && metrics === null)) continue
    const holder = nameOf(slots()?.[slot])
    if (holder !== '') report.info(`the ${slot} slot of @opentelemetry/api is taken by ${holder}`)
    else put(slot, api)
  }
  return loadEsm(api.path)?.then(connectEsm) ?? null
}

/** Shows a copy of the API that the slot was filled without to our tracers, as `put` does before. */
function connectEsm (copy) {
  useRootOf(copy)
  if (copy === undefined || !isOurs('trace')) return
  const { trace } = slots()
  emptySlot('trace')
  copy.trace.getTracerProvider().setDelegate?.(facade.trace)
  slots().trace = trace
}

// Through the API where it is loaded. Tracers that were fetched from it before wait in a proxy of the copy
// they came from, which a copy shows as long as the slot is free.
function put (slot, { version, copies }) {
  if (slot === 'trace') for (const { trace } of copies) trace.getTracerProvider().setDelegate?.(facade.trace)
  if (copies.length === 0) fillSlot(slot, facade[slot], version)
  else copies[0][slot]?.[SETTERS[slot]]?.(facade[slot])
}

/** Gives back what still is ours; what somebody else has put there since is not touched. */
function release () {
  const { copies } = findApi(undefined)
  for (const slot of Object.keys(SETTERS)) {
    if (!isOurs(slot)) continue
    // The API makes a new proxy when its provider is disabled: tracers fetched from now on wait for the next provider.
    if (slot === 'trace') for (const { trace } of copies) trace.disable()
    emptySlot(slot)
  }
  if (processState.hasSealed) clearSlots()
  processState.hasSealed = false
}

function isOurs (slot) {
  const held = slots()?.[slot]
  return held !== undefined && held !== null && (slot === 'trace' ? delegateOf(held) : held) === facade[slot]
}

/** The meter provider of an SDK that is registered with the API, or null. Ours and no-ops do not count. */
function foreignMeterProvider () {
  const held = slots()?.metrics
  if (held === undefined || held === null || held === facade.metrics) return null
  return typeof held.getMeter === 'function' && held.constructor?.name !== 'NoopMeterProvider' ? held : null
}

/** The tracer provider of an SDK that is registered with the API, or null. Ours and no-ops do not count. */
function foreignProvider () {
  const held = slots()?.trace
  if (held === undefined || held === null) return null
  const provider = delegateOf(held)
  return provider === facade.trace || typeof provider?.getTracer !== 'function' || isNoop(provider) ? null : provider
}

// A proxy may stand for another proxy.
function delegateOf (held) {
  try {
    let provider = held
    for (let depth = 0; depth < PROXIES_MAX && typeof provider.getDelegate === 'function'; depth++) {
      if (isNoop(provider)) break
      provider = provider.getDelegate()
    }
    return provider
  } catch {
    return undefined
  }
}

// The API does not export its no-op; a fresh proxy of the same class delegates to it.
function isNoop (provider) {
  if (provider.constructor?.name === 'NoopTracerProvider') return true
  try {
    return provider !== facade.trace && typeof provider.getDelegate === 'function' && new provider.constructor().getDelegate() === provider.getDelegate()
  } catch {
    return false
  }
}

function nameOf (held) {
  if (held === undefined || held === null) return ''
  const name = delegateOf(held)?.constructor?.name
  return typeof name === 'string' && name !== '' ? name : 'another package'
}

function makeFacade () {
  const context = new ContextManager()
  return {
    context,
    trace: new ApiTracerProvider((active) => active.getValue(REQUEST_KEY)?.tracer ?? processState.openApps.first(), new SlotContextManager(context)),
    propagation: {
      inject: (...args) => current().inject(...args),
      extract: (...args) => current().extract(...args),
      fields: () => current().fields()
    }
  }
}

/** The API has no proxy for meters: instruments ask which application is open when they record. */
function makeMeterFacade () {
  const { MeterProvider } = require('../metrics/meter-provider')
  const provider = new MeterProvider(() => {
    for (const { metrics } of processState.openApps.all()) if (metrics !== null && metrics !== undefined) return metrics.registry
    return null
  })
  return provider
}

function current () {
  return processState.openApps.first()?.propagator ?? require('./w3c-propagator').W3C
}

/**
 * Who reads and writes the headers of requests and calls, where that is not our own W3C code. Null is the usual case, in
 * which none of the others is loaded.
 */
function propagatorFor (settings, report) {
  const held = slots()?.propagation
  const { propagators } = settings
  if ((held ?? facade.propagation) === facade.propagation && propagators.length === 2 && propagators[0] === 'tracecontext' && propagators[1] === 'baggage') return null
  return require('./propagators').propagatorFor(settings, report, facade.propagation)
}

module.exports = { openApp, closeApp, foreignProvider, foreignMeterProvider, meterFacade: () => facade.metrics, foreignManager: () => foreignManager(facade.context), activeManager, ApiTracerProvider, propagatorFor }
