'use strict'

// Registers with @opentelemetry/api. One facade for the whole process fills the free slots while an application with light-trace is open.
//
//   trace.getTracer('x').startSpan()  ->  facade  ->  the app of the active request, else the first open app
//   context.with(), propagation.inject()  ->  facade  ->  our AsyncLocalStorage, our W3C code

const { REQUEST_KEY } = require('../context/trace-context.js')
const { processState } = require('../runtime/process-state.js')
const { attempt } = require('../runtime/report.js')
const { ApiTracerProvider, ContextManager, slotContextManager, foreignManager, slots, fillSlot, clearSlots, findApi, loadEsm, useRootOf } = require('./api-facade.js')
const propagators = require('./propagators.js')

const SETTERS = {
  trace: 'setGlobalTracerProvider',
  context: 'setGlobalContextManager',
  propagation: 'setGlobalPropagator',
  metrics: 'setGlobalMeterProvider'
}

const HTTP_INSTRUMENTATION = '@opentelemetry/instrumentation-http' // the scope name of its spans

const PROXIES_MAX = 8 // how many proxies are followed to a provider. A proxy may return itself

const facade = processState.facade ?? makeFacade()
processState.facade = facade

/** The context manager that is registered with the API now, else our own. */
const activeManager = slotContextManager(facade.context)

let esmCopy // the ES module copy of the API, if the application has one besides the CommonJS copy

// An application may be garbage-collected without being closed.
const forgotten = new FinalizationRegistry(releaseIfLast)

/**
 * Makes `tracer` available through the API until `closeApp`.
 * @param {Tracer} tracer @param {boolean} register whether to fill free slots
 * @returns {Promise<void> | null} a promise if the caller must wait, else null
 */
function openApp (tracer, register) {
  processState.openApps.add(tracer)
  forgotten.register(tracer)
  if (tracer.observer !== null) facade.metrics ??= tracer.observer.makeMeterFacade()
  return register ? fill(tracer) : null
}

function closeApp (tracer) {
  processState.openApps.delete(tracer)
  releaseIfLast()
}

function fill ({ report, observer }) {
  const registeredVersion = slots()?.version
  const api = findApi(registeredVersion)
  if (api.version === '') return null
  if (api.other !== undefined) {
    report.warn('LT_WARN_API_VERSION', `two versions of @opentelemetry/api are loaded, ${api.version} and ${api.other}: light-trace registers with neither`)
    return null
  }
  if (registeredVersion === undefined) processState.hasSealed = true
  for (const slot of Object.keys(SETTERS)) {
    if (isOurs(slot) || (slot === 'metrics' && observer === null)) continue
    const occupant = slots()?.[slot] ?? null
    if (occupant === null) put(slot, api)
    else report.info(`the ${slot} slot of @opentelemetry/api is already used by ${delegateOf(occupant)?.constructor?.name || 'another package'}`)
  }
  return loadEsm(api.path)?.then(connectEsm) ?? null
}

/** Connects the tracers of a copy of the API that was loaded after the slot was filled. `put` does this for copies loaded before. */
function connectEsm (copy) {
  esmCopy = copy
  useRootOf(copy)
  if (copy === undefined || !isOurs('trace')) return
  const { trace } = slots()
  delete slots().trace
  copy.trace.getTracerProvider().setDelegate?.(facade.trace)
  slots().trace = trace
}

// Registers through the API if it is loaded. Tracers that were fetched before wait in a proxy; `getTracerProvider` returns that proxy only
// while the slot is free.
function put (slot, { version, copies }) {
  if (slot === 'trace') for (const { trace } of copies) trace.getTracerProvider().setDelegate?.(facade.trace)
  if (copies.length === 0) fillSlot(slot, facade[slot], version)
  else copies[0][slot]?.[SETTERS[slot]]?.(facade[slot])
}

/** If no application is open, empties the slots that are still ours. */
function releaseIfLast () {
  if (processState.openApps.first() !== undefined) return
  const { copies } = findApi(undefined)
  for (const slot of Object.keys(SETTERS)) {
    if (!isOurs(slot)) continue
    // `disable` makes the API create a new proxy, so that tracers fetched from now on wait for the next provider.
    if (slot === 'trace') for (const { trace } of copies) trace.disable()
    delete slots()[slot]
  }
  if (processState.hasSealed) clearSlots()
  processState.hasSealed = false
}

function isOurs (slot) {
  const held = slots()?.[slot] ?? null
  return held !== null && (slot === 'trace' ? delegateOf(held) : held) === facade[slot]
}

/** The meter provider of an SDK that is registered with the API. Null if it is ours or a no-op. */
function foreignMeterProvider () {
  const held = slots()?.metrics
  return typeof held?.getMeter === 'function' && held !== facade.metrics && !isNoopMeters(held) ? held : null
}

/** The tracer provider of an SDK that is registered with the API. Null if it is ours, a no-op or a proxy without a provider. */
function foreignProvider () {
  const provider = delegateOf(slots()?.trace)
  return typeof provider?.getTracer === 'function' && provider !== facade.trace && !isEmpty(provider) && !isNoop(provider) ? provider : null
}

/** The provider behind the API's proxy, which may delegate to another proxy. */
function delegateOf (held) {
  return attempt(() => {
    let provider = held
    for (let i = 0; i < PROXIES_MAX && typeof provider?.getDelegate === 'function' && !isEmpty(provider); i++) provider = provider.getDelegate()
    return provider
  })
}

// Whether a proxy has no provider: then it delegates to the same no-op as a new proxy of its class.
function isEmpty (proxy) {
  return attempt(() => typeof proxy.getDelegate === 'function' && new proxy.constructor().getDelegate() === proxy.getDelegate()) === true
}

// The API does not export the classes of its no-ops, and a minifier changes their names. So compare with a no-op from a copy of the API.
function isNoop (provider) {
  const { trace } = slots()
  const proxies = knownCopies().map((copy) => copy.ProxyTracerProvider)
  if (trace !== provider) proxies.push(trace.constructor) // the proxy may come from a copy that we do not know
  return proxies.some((Proxy) => attempt(() => new Proxy().getDelegate().constructor === provider.constructor) === true)
}

const answers = new WeakMap() // the results of `isNoopMeters`, because it searches files for the copies

function isNoopMeters (provider) {
  if (!answers.has(provider)) {
    const meter = attempt(() => provider.getMeter('light-trace'))
    answers.set(provider, meter !== undefined && knownCopies().some((copy) => attempt(() => copy.createNoopMeter()) === meter))
  }
  return answers.get(provider)
}

function knownCopies () {
  const { copies } = findApi(undefined)
  return esmCopy === undefined ? copies : [...copies, esmCopy]
}

function makeFacade () {
  const context = new ContextManager()
  return {
    context,
    trace: new ApiTracerProvider(tracerIn, slotContextManager(context)),
    propagation: {
      inject: (...args) => current().inject(...args),
      extract: (...args) => current().extract(...args),
      fields: () => current().fields()
    }
  }
}

/** @param {Context} context */
function tracerIn (context) {
  const request = /** @type {RequestContext | undefined} */ (context.getValue(REQUEST_KEY))
  return request?.tracer ?? processState.openApps.first()
}

function current () {
  return processState.openApps.first()?.propagator ?? propagators.W3C
}

module.exports = {
  HTTP_INSTRUMENTATION,
  openApp,
  closeApp,
  foreignProvider,
  foreignMeterProvider,
  meterFacade: () => facade.metrics,
  foreignManager: () => foreignManager(facade.context),
  activeManager,
  ApiTracerProvider,
  propagatorFor: (settings, report) => propagators.propagatorFor(settings, report, facade.propagation)
}
