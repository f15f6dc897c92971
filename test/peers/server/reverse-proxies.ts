/** Real reverse proxies (Debian's packages) in front of a service on this machine. */
import { once } from 'node:events'
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { MemoryStore } from 'runwright/agent'
import { createRunService, type RunServiceOptions } from 'runwright/server'
import { testProvider } from '../../helpers/engine.js'
import { freePort, startProgram } from '../programs.js'

export type ProxyName = 'nginx' | 'haproxy' | 'apache2'

/** The address of the service in every configuration; replaced by the real one. */
const UPSTREAM = '127.0.0.1:8000'

function scratch(t: TestContext): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-proxy-')))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A service below `/agents`; resolves to its port. */
export async function openService(
  t: TestContext,
  options: Partial<RunServiceOptions>,
): Promise<number> {
  const service = await createRunService({
    basePath: '/agents',
    engine: {
      store: new MemoryStore(),
      roots: [scratch(t)],
      cwdPolicy: 'allow',
      providers: [testProvider(() => ({ text: 'nothing to do' }))],
      defaultModel: 'test:m',
    },
    ...options,
  })
  const server = createServer(service.handler)
  service.attach(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    await service.close({ graceMs: 0 })
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Starts a proxy in front of a service; resolves to its port. */
export async function startProxy(
  t: TestContext,
  proxy: ProxyName,
  config: string,
  upstream: number,
): Promise<number> {
  const folder = scratch(t)
  const port = await freePort()
  const file = join(folder, 'proxy.conf')
  const [text, args] = COMPLETE[proxy](config.replaceAll(UPSTREAM, `127.0.0.1:${upstream}`), {
    folder,
    port,
    file,
  })
  writeFileSync(file, text)
  const child = await startProgram(proxy, args, port)
  t.after(async () => {
    child.kill('SIGKILL')
    await once(child, 'close')
  })
  return port
}

interface Place {
  readonly folder: string
  readonly port: number
  readonly file: string
}

/** From what a recipe says to a whole configuration and the arguments of the program. */
const COMPLETE: Readonly<
  Record<ProxyName, (config: string, place: Place) => [string, readonly string[]]>
> = {
  nginx: (config, { folder, port, file }) => {
    // What stands before the first location belongs to the http block.
    const start = config.indexOf('location ')
    const [http, server] = [config.slice(0, start), config.slice(start)]
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    const paths = temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')
    const text = `daemon off; master_process off; pid ${folder}/pid; error_log stderr;
      events {}
      http {
        access_log off; ${paths}
        ${http}
        server { listen 127.0.0.1:${port}; ${server} location / { return 200 'the host'; } }
      }`
    return [text, ['-e', 'stderr', '-c', file]]
  },
  haproxy: (config, { port, file }) => {
    const [frontend = '', backend = config] = config.includes('\n--\n')
      ? config.split('\n--\n')
      : ['', config]
    const text = `defaults
  mode ${config.includes('mode tcp') ? 'tcp' : 'http'}
  timeout connect 60s
  timeout client 600s
  timeout server 600s
  timeout tunnel 600s
frontend web
  bind 127.0.0.1:${port}
  ${frontend}
  default_backend app
backend app
  ${backend}
`
    return [text, ['-db', '-f', file]]
  },
  apache2: (config, { folder, port, file }) => {
    const modules = [
      ...['mpm_event', 'authz_core', 'proxy', 'proxy_http', 'proxy_wstunnel', 'rewrite'],
      ...['proxy_balancer', 'lbmethod_byrequests', 'slotmem_shm', 'headers'],
    ]
    const text = `ServerRoot ${folder}
ServerName localhost
Listen 127.0.0.1:${port}
PidFile ${folder}/pid
ErrorLog ${folder}/errors
DefaultRuntimeDir ${folder}
User www-data
Group www-data
ServerLimit 1
ThreadsPerChild 16
MaxRequestWorkers 16
${modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
${config}
`
    return [text, ['-X', '-f', file]]
  },
}
