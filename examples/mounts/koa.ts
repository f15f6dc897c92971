/** The service in a Koa app, below /agents. */
import Koa from 'koa'
import type { AddressInfo } from 'node:net'
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

const app = new Koa()
app.use(async (context, next) => {
  const answered = await new Promise<boolean>((resolve) => {
    context.res.once('close', () => resolve(true))
    service.handler(context.req, context.res, () => resolve(false))
  })
  if (!answered) return next()
  context.respond = false // the service has written the response
})
app.use((context) => {
  if (context.path === '/hello') context.body = 'hello from the host'
})

const server = app.listen(Number(process.env['PORT'] ?? 8000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/agents/`)
})
service.attach(server)
process.once('SIGTERM', () => void service.close().finally(() => server.close()))
