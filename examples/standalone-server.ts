/**
 * The whole service as one program: `npm start`.
 *
 * Settings come from the environment; `npm start -- --help` lists them. It works with no key and no
 * network: the model is then `builtin:repair`, a program that repairs code by trying small patches.
 */
import { cp, mkdir, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { homedir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { FileStore, isTerminal, providersFromEnvironment } from 'runwright/agent'
import {
  bearerKeys,
  createRunService,
  drainOnSignal,
  type BearerKey,
  type RunService,
} from 'runwright/server'

const HELP = `The agent run service: REST, event streams and a dashboard. Settings are environment variables:

  PORT                  8000; 0 picks a free one
  HOST                  127.0.0.1; beside this machine's own addresses, set RUNWRIGHT_API_KEYS as well
  RUNWRIGHT_DATA        where runs are kept: $XDG_STATE_HOME/runwright, else ~/.local/state/runwright
  RUNWRIGHT_ROOTS       folders in which runs may work, "${delimiter}" between; the first is the default.
                        Unless set: a copy of the demo project, and the current directory
  RUNWRIGHT_API_KEYS    alice=key,bob=key, 16 characters or more each. Unless set, only programs of
                        this machine may call, a run's own commands included
  RUNWRIGHT_MODEL       model of requests that name none: builtin:repair, which needs no network

Each of these makes a provider's models available: OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY,
GEMINI_API_KEY, OLLAMA_HOST. For example: OPENAI_API_KEY=… RUNWRIGHT_MODEL=openai:gpt-5-mini npm start
`

interface Settings {
  readonly host: string
  readonly port: number
  readonly data: string
  /** Null: a scratch copy of the demo project, and the current directory. */
  readonly roots: readonly string[] | null
  readonly keys: { readonly [id: string]: BearerKey } | null
  readonly model: string | undefined
}

/** A setting that cannot be used; the message is all that the user needs. */
class SettingError extends Error {}

function readSettings(env: NodeJS.ProcessEnv): Settings {
  const port = env['PORT'] ?? '8000'
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw new SettingError(`PORT must be a number from 0 to 65535, got ${JSON.stringify(port)}`)
  }
  const state = env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state')
  const roots = env['RUNWRIGHT_ROOTS']?.split(delimiter).filter((root) => root !== '')
  if (roots?.length === 0) throw new SettingError('RUNWRIGHT_ROOTS names no folder')
  return {
    host: env['HOST'] || '127.0.0.1',
    port: Number(port),
    data: resolve(env['RUNWRIGHT_DATA'] || join(state, 'runwright')),
    roots: roots?.map((root) => resolve(root)) ?? null,
    keys: readKeys(env['RUNWRIGHT_API_KEYS']),
    model: env['RUNWRIGHT_MODEL'] || undefined,
  }
}

/** `alice=key,bob=key`; a key without a name belongs to `operator`. */
function readKeys(text: string | undefined): Settings['keys'] {
  if (text === undefined) return null
  const keys: { [id: string]: string[] } = {}
  for (const entry of text.split(',').map((part) => part.trim())) {
    const [, id = 'operator', key = ''] = /^(?:([\w.-]+)=)?(.*)$/.exec(entry) ?? []
    if (key === '')
      throw new SettingError('RUNWRIGHT_API_KEYS must be name=key pairs with commas between')
    keys[id] = [...(keys[id] ?? []), key]
  }
  return Object.fromEntries(Object.entries(keys).map(([id, list]) => [id, { key: list }]))
}

const demoProject = fileURLToPath(new URL('./demo-project', import.meta.url))

async function openService(
  settings: Settings,
): Promise<{ service: RunService; demo: string | null }> {
  const { data, keys, model } = settings
  const demo = settings.roots === null ? join(data, 'demo-project') : null
  try {
    await mkdir(demo ?? data, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new SettingError(`cannot write to RUNWRIGHT_DATA (${data}): ${messageOf(error)}`)
  }
  const service = await createRunService({
    engine: {
      store: new FileStore({ directory: join(data, 'runs') }),
      roots: settings.roots ?? [demo as string, process.cwd()],
      defaultModel: model,
      providers: providersFromEnvironment(process.env),
    },
    authorize: keys === null ? undefined : bearerKeys(keys),
  })
  if (demo !== null) await refreshDemo(service, demo)
  return { service, demo }
}

/** Puts the planted bugs back, unless a run that has not ended works on them. */
async function refreshDemo({ engine }: RunService, demo: string): Promise<void> {
  const { runs } = await engine.list({ status: ['pending', 'running', 'awaiting_human'] })
  const details = await Promise.all(runs.map(({ run_id }) => engine.get(run_id)))
  if (details.some(({ cwd, status }) => cwd === demo && !isTerminal(status))) return
  await rm(demo, { recursive: true, force: true })
  await cp(demoProject, demo, { recursive: true })
}

function listen(server: Server, { port, host }: Settings): Promise<void> {
  return new Promise((done, failed) => {
    server.once('error', failed)
    server.listen(port, host, () => {
      server.removeListener('error', failed)
      done()
    })
  })
}

function greet(server: Server, settings: Settings, demo: string | null): void {
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : settings.port
  const host = nameToCall(settings.host)
  const url = `http://${host}:${port}`
  const request = demo === null ? { goal: 'auto' } : { goal: 'node-test', cwd: demo }
  const key = settings.keys === null ? '' : ` -H 'authorization: Bearer YOUR_KEY'`
  const body = JSON.stringify(request).replaceAll("'", String.raw`'\''`)
  console.log(`runwright listening on ${url}`)
  console.log(
    `start a first run: curl -sS ${url}/api/runs -H 'content-type: application/json'${key} -d '${body}'`,
  )
  console.log(`watch it: ${url}/`)
  if (isWildcard(settings.host)) console.log('it listens on all addresses of this machine')
  if (settings.keys === null) {
    console.log(
      'no RUNWRIGHT_API_KEYS: only this machine may call, and the commands of a run can reach the API' +
        ' and answer their own gate. Gates bind only with keys.',
    )
  }
}

/** Says where to listen, and is no address to call. */
function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

function nameToCall(host: string): string {
  if (isWildcard(host)) return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

function explain(error: unknown, { host, port }: Partial<Settings>): string {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'EADDRINUSE')
    return `port ${port} is in use on ${host}; set PORT to another one (0 picks one)`
  if (code === 'EACCES')
    return `not allowed to listen on ${host}:${port}; set PORT to 1024 or above`
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `HOST ${host} is no address of this machine`
  return messageOf(error)
}

async function main(): Promise<void> {
  let settings: Partial<Settings> = {}
  let service: RunService | undefined
  try {
    const given = (settings = readSettings(process.env))
    const opened = await openService(given)
    service = opened.service
    const server = createServer(service.handler)
    service.attach(server)
    await listen(server, given)
    drainOnSignal(service, [server], {
      graceMs: 0,
      onDrain: () => console.log('stopping; runs that have not ended go on at the next start'),
    })
    greet(server, given, opened.demo)
  } catch (error) {
    console.error(`runwright: ${explain(error, settings)}`)
    await service?.close({ graceMs: 0 })
    process.exitCode = 1
  }
}

const [argument] = process.argv.slice(2)
if (argument === undefined) await main()
else if (argument === '--help' || argument === '-h') process.stdout.write(HELP)
else {
  console.error(
    `runwright: there is no argument ${argument}; settings are environment variables, see --help`,
  )
  process.exitCode = 1
}
