import { Controller, Get, Injectable, Module, NotFoundException, Param, ParseIntPipe } from '@nestjs/common'
import { current } from 'light-trace'

@Injectable()
export class CatsService {
  private readonly names = ['Tom', 'Felix']

  /** A provider needs no request scope: `current()` returns the running request. */
  find (id: number) {
    return current()?.withSpan('find cat', async (span) => {
      span.setAttribute('cat.id', id)
      if (id === 13) throw new RangeError('a black cat')
      const name = this.names[id]
      if (name === undefined) throw new NotFoundException('no such cat')
      return { id, name }
    })
  }
}

@Controller('cats')
export class CatsController {
  constructor (private readonly cats: CatsService) {}

  @Get(':id')
  one (@Param('id', ParseIntPipe) id: number) {
    return this.cats.find(id)
  }
}

@Module({ controllers: [CatsController], providers: [CatsService] })
export class CatsModule {}
