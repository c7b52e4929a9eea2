'use strict'

const { test } = require('tap')
const { resolveRouteOptions } = require('../../lib/config/options')

const UNSET = { off: false, spanName: null, attributes: null, spans: null, sampler: null, slow: null, metrics: true, ignore: null }

test('a route option is absent, false, or what differs from the plugin\'s options', (t) => {
  const name = () => 'x'
  const sampler = { shouldSample () {} }
  const given = [
    [undefined, {}],
    [true, {}],
    [{}, {}],
    [false, { off: true }],
    [{ ignore: true }, { off: true }],
    [{ ignore: false }, {}],
    [{ spanName: 'user' }, { spanName: 'user' }],
    [{ spanName: name }, { spanName: name }],
    [{ attributes: { tier: 'gold', n: undefined } }, { attributes: { tier: 'gold' } }],
    [{ attributes: name }, { attributes: name }],
    [{ spans: { handler: true } }, { spans: { handler: true, hooks: [] } }],
    [{ sampler: 0.5 }, { sampler: { kind: 'ratio', ratio: 0.5, parentBased: true } }],
    [{ sampler }, { sampler }],
    [{ slow: { afterMs: 0 } }, { slow: { afterMs: 0 } }],
    [{ slow: false }, { slow: { afterMs: Infinity } }]
  ]
  for (const [trace, expected] of given) {
    const resolved = resolveRouteOptions(trace)
    t.same(resolved, { ...UNSET, ...expected })
    t.ok(Object.isFrozen(resolved))
  }
  t.equal(resolveRouteOptions({ ignore: '/users/0*' }).ignore({ raw: { url: '/users/007' } }), true)
  t.end()
})

test('an invalid route option throws a coded error that names it', (t) => {
  const wrong = [
    [null, 'LT_ERR_OPTION_INVALID', '`config.trace` must be true, false or an object with spanName, attributes, spans, sampler, slow, metrics, ignore, received null'],
    ['off', 'LT_ERR_OPTION_INVALID', "received 'off'"],
    [[], 'LT_ERR_OPTION_INVALID', 'received an array'],
    [{ attribute: {} }, 'LT_ERR_OPTION_UNKNOWN', 'unknown option `config.trace.attribute`: did you mean `config.trace.attributes`?'],
    [{ spanName: 5 }, 'LT_ERR_OPTION_INVALID', '`config.trace.spanName` must be a non-empty string, received 5'],
    [{ attributes: { a: {} } }, 'LT_ERR_OPTION_INVALID', "`config.trace.attributes['a']`"],
    [{ sampler: 'foo' }, 'LT_ERR_OPTION_INVALID', '`config.trace.sampler`'],
    [{ slow: { afterMs: '1s' } }, 'LT_ERR_OPTION_INVALID', '`config.trace.slow.afterMs`'],
    [{ ignore: 5 }, 'LT_ERR_OPTION_INVALID', '`config.trace.ignore`'],
    [{ spans: { hooks: ['onClose'] } }, 'LT_ERR_OPTION_INVALID', '`config.trace.spans.hooks[0]`']
  ]
  for (const [trace, code, message] of wrong) {
    try {
      resolveRouteOptions(trace)
      t.fail(message)
    } catch (error) {
      t.equal(error.code, code)
      t.ok(error.message.includes(message), `${error.message} includes ${message}`)
    }
  }
  t.end()
})
