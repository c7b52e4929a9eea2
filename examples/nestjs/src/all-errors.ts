import { Catch, type ArgumentsHost } from '@nestjs/common'
import { BaseExceptionFilter } from '@nestjs/core'
import { current } from 'light-trace'

/** Nest answers errors itself, so Fastify never sees them. This filter records them on the request's span. */
@Catch()
export class AllErrors extends BaseExceptionFilter {
  catch (error: unknown, host: ArgumentsHost) {
    current()?.fail(error)
    super.catch(error, host)
  }
}
