import { once } from 'node:events'
import { after, before } from 'node:test'
import { Worker } from 'node:worker_threads'

let app: Worker
export let origin = ''
export let secureOrigin = ''

before(async () => {
  app = new Worker(new URL('../fixtures/http/app-worker.mjs', import.meta.url), { execArgv: [] })
  const [{ port, securePort }] = (await once(app, 'message')) as [
    { port: number; securePort: number },
  ]
  origin = `http://127.0.0.1:${port}`
  secureOrigin = `https://127.0.0.1:${securePort}`
})
after(() => app.terminate())
