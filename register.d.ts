/**
 * Traces every Fastify application of the process. Use `node --import light-trace/register app.js`, or
 * `import 'light-trace/register'` before Fastify is loaded. Environment variables configure it. If an application registers
 * light-trace itself, the options of that registration apply.
 *
 * Exports nothing. Adds the types of `request.trace` and `app.lightTrace`.
 */
import './index'

export {}
