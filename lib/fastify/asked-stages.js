'use strict'

// Which stages of a request have a span: those that its route asks for, where they have hooks of the user's.
//
// The plugin's hooks run on every route, so each asks here. What a route says counts instead of the plugin's option. Its
// hooks are known when it is ready: they are read off the route's own object, once for each route.

const { contextSymbol } = require('./routes')

const kAsked = Symbol('light-trace.asked') // in a route's config: the Set of stages that it asks for
const kStages = Symbol('light-trace.stages') // on a route's own object: those of them that have hooks

// Ours have such names, see index.js; Fastify binds hooks to their scope.
const OWN_HOOK = /^(?:bound )*lightTrace/

class AskedStages {
  #instanceWide
  #contextSymbol = undefined
  #isReady = false

  /** @param {Set<string>} instanceWide what the plugin's option asks for */
  constructor (instanceWide) {
    this.#instanceWide = instanceWide
  }

  /** Remembers what a route asks for. */
  ask (route, stages) {
    route.config = { ...route.config, [kAsked]: new Set(stages) } // Fastify copies it once more
  }

  has (request, stage) {
    return this.#of(request).has(stage)
  }

  #of (request) {
    if (!this.#isReady) {
      this.#isReady = true
      this.#contextSymbol = contextSymbol(request)
    }
    const context = this.#contextSymbol === undefined ? undefined : request[this.#contextSymbol]
    if (context === undefined) return this.#askedFor(request.routeOptions.config)
    if (context[kStages] === undefined) {
      const stages = new Set([...this.#askedFor(context.config)].filter((stage) => hasHooks(context[stage])))
      Object.defineProperty(context, kStages, { value: stages, enumerable: false })
    }
    return context[kStages]
  }

  #askedFor (config) {
    return config?.[kAsked] ?? this.#instanceWide
  }
}

/** @param {Function[] | null} hooks of one stage of a route */
function hasHooks (hooks) {
  return Array.isArray(hooks) && hooks.some(({ name }) => !OWN_HOOK.test(name))
}

module.exports = { AskedStages }
