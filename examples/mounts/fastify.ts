/** The service in a Fastify 5 app, below /agents. */
import fastify from 'fastify'
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

const app = fastify({ forceCloseConnections: 'idle' })
// Runs before Fastify parses bodies. Other paths than /agents continue to the app's routes.
app.addHook('onRequest', (request, reply, done) => {
  service.handler(request.raw, reply.raw, () => done())
})
app.get('/hello', () => 'hello from the host')

service.attach(app.server)
console.log(`${await app.listen({ port: Number(process.env['PORT'] ?? 8000) })}/agents/`)
process.once('SIGTERM', () => void service.close().finally(() => app.close()))
