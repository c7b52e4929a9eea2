/**
 * `node --import light-trace/register app.js`, or `import 'light-trace/register'` before Fastify is loaded: traces every
 * Fastify 5 application of the process, configured by the environment alone. An application that registers light-trace
 * itself is traced as it says there.
 *
 * Exports nothing; it brings the types of `request.trace` and `app.lightTrace`.
 */
import './index'

export {}
