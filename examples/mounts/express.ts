/** The service in an Express 5 app, below /agents. */
import express from 'express'
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

const app = express()
app.use(express.json()) // works before or after the service
app.use('/agents', service.handler)
app.get('/hello', (_request, response) => {
  response.send('hello from the host')
})

const server = app.listen(Number(process.env['PORT'] ?? 8000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/agents/`)
})
service.attach(server)
process.once('SIGTERM', () => void service.close().finally(() => server.close()))
