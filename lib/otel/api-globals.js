'use strict'

// Registers with @opentelemetry/api: one facade for the whole process, in the slots that are free, for as long as an
// application with light-trace is open.
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

const HTTP_INSTRUMENTATION = '@opentelemetry/instrumentation-http' // the scope of its spans

const PROXIES_MAX = 8 // that are followed from one to the next: one may return itself

const facade = processState.facade ?? makeFacade()
processState.facade = facade

/** The context manager that is registered with the API now, else our own. */
const activeManager = slotContextManager(facade.context)

let esmCopy // of the API, where the application has one beside that for `require`

// An application may be garbage-collected without having been closed.
const forgotten = new FinalizationRegistry(releaseIfLast)

/**
 * Opens `tracer` to the users of the API, until `closeApp`.
 * @param {Tracer} tracer @param {boolean} register whether free slots are filled
 * @returns {Promise<void> | null} a promise where there is something to wait for
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

/** Connects the tracers of a copy of the API that is loaded after the slot was filled, as `put` does with those before. */
function connectEsm (copy) {
  esmCopy = copy
  useRootOf(copy)
  if (copy === undefined || !isOurs('trace')) return
  const { trace } = slots()
  delete slots().trace
  copy.trace.getTracerProvider().setDelegate?.(facade.trace)
  slots().trace = trace
}

// Through the API if it is loaded. Tracers that were fetched before wait in a proxy, which it returns while the slot is free.
function put (slot, { version, copies }) {
  if (slot === 'trace') for (const { trace } of copies) trace.getTracerProvider().setDelegate?.(facade.trace)
  if (copies.length === 0) fillSlot(slot, facade[slot], version)
  else copies[0][slot]?.[SETTERS[slot]]?.(facade[slot])
}

/** Empties the slots that still are ours, when no application is open. */
function releaseIfLast () {
  if (processState.openApps.first() !== undefined) return
  const { copies } = findApi(undefined)
  for (const slot of Object.keys(SETTERS)) {
    if (!isOurs(slot)) continue
    // The API makes a new proxy when its provider is disabled: tracers fetched from now on wait for the next provider.
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

/** The meter provider of an SDK that is registered with the API, or null for ours and no-ops. */
function foreignMeterProvider () {
  const held = slots()?.metrics
  return typeof held?.getMeter === 'function' && held !== facade.metrics && !isNoopMeters(held) ? held : null
}

/** The same of its tracer provider. */
function foreignProvider () {
  const provider = delegateOf(slots()?.trace)
  return typeof provider?.getTracer === 'function' && provider !== facade.trace && !isEmpty(provider) && !isNoop(provider) ? provider : null
}

/** The provider behind the API's proxy, which may stand for another proxy. */
function delegateOf (held) {
  return attempt(() => {
    let provider = held
    for (let i = 0; i < PROXIES_MAX && typeof provider?.getDelegate === 'function' && !isEmpty(provider); i++) provider = provider.getDelegate()
    return provider
  })
}

// A fresh proxy of the same class delegates to the same no-op.
function isEmpty (proxy) {
  return attempt(() => typeof proxy.getDelegate === 'function' && new proxy.constructor().getDelegate() === proxy.getDelegate()) === true
}

// The API does not export the classes of its no-ops, and a minifier changes their names: a copy of the API is asked for one.
function isNoop (provider) {
  const { trace } = slots()
  const proxies = knownCopies().map((copy) => copy.ProxyTracerProvider)
  if (trace !== provider) proxies.push(trace.constructor) // of a copy that is not known
  return proxies.some((Proxy) => attempt(() => new Proxy().getDelegate().constructor === provider.constructor) === true)
}

const answers = new WeakMap() // of `isNoopMeters`: the copies are looked for in files

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
