/** The service in a NestJS 11 app on its Express platform, below /agents. */
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import 'reflect-metadata'
import { MemoryStore } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { createRunService } from 'runwright/server'

const service = await createRunService({
  basePath: '/agents',
  engine: {
    store: new MemoryStore(),
    roots: [process.cwd()],
    providers: [repairModel()],
    defaultModel: 'builtin:repair',
  },
})

class HelloController {
  hello(): string {
    return 'hello from the host'
  }
}
// Without decorator syntax, which Node's own TypeScript support cannot parse.
Controller()(HelloController)
Get('hello')(
  HelloController.prototype,
  'hello',
  Object.getOwnPropertyDescriptor(HelloController.prototype, 'hello')!,
)

class AppModule {}
Module({ controllers: [HelloController] })(AppModule)

const app = await NestFactory.create(AppModule, { logger: ['error'] })
app.use('/agents', service.handler)
service.attach(app.getHttpServer())
await app.listen(Number(process.env['PORT'] ?? 8000), '127.0.0.1')
console.log(`${await app.getUrl()}/agents/`)
process.once('SIGTERM', () => void service.close().finally(() => app.close()))
