/**
 * A program that starts what the test files of one run share: a PostgreSQL server, and a browser of
 * each kind. `test/run.mjs` starts it, and it prints its address. It starts a service when a test
 * file first asks for it, and ends all of them once its standard input has ended: also when the
 * runner was killed. A test file that runs alone finds no address in its environment, and starts
 * what it needs itself.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A service, what test files are told about it, and how it ends. */
interface Service {
  readonly told: unknown
  end(): Promise<void>
}

async function startService(path: string): Promise<Service> {
  const [name, appearance = ''] = path.split('/')
  if (name === 'postgres') {
    const { SHARED_SETTINGS, startPostgres } = await import('../postgres/postgres.js')
    const postgres = await startPostgres(SHARED_SETTINGS)
    return { told: postgres.connection, end: () => postgres.remove() }
  }
  if (name === 'browser') {
    const { launchServer } = await import('../server/browser.js')
    const browser = await launchServer(JSON.parse(decodeURIComponent(appearance)))
    return { told: browser.wsEndpoint(), end: () => browser.close() }
  }
  throw new Error(`there is no service ${path}`)
}

const started = new Map<string, Promise<Service>>()
const server = createServer((request, response) => {
  const path = request.url!.slice(1)
  const service = started.get(path) ?? startService(path)
  started.set(path, service)
  service.then(
    ({ told }) => response.end(JSON.stringify(told)),
    (error: unknown) => response.writeHead(500).end(String(error)),
  )
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
process.stdin.resume()
await once(process.stdin, 'end')
await Promise.allSettled(
  [...started.values()].map(async (service) => await (await service).end()),
)
process.exit()
