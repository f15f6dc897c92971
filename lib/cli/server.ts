/**
 * One service over a file store as a program: opened, mounted on a server of its own, announced,
 * and drained on a signal. What names its settings, arguments or variables, is the caller's.
 *
 * @module
 */
import { mkdir } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import { FileStore } from '../agent/index.js'
import { asError, describeError } from '../internal/errors.js'
import { shellWord } from '../internal/text.js'
import {
  bearerKeys,
  createRunService,
  drainOnSignal,
  type RunService,
} from '../server/index.js'
import { CommandError, UsageError } from './command-line.js'
import { openDemo, type Demo } from './demo.js'
import { cannotWrite } from './folders.js'
import { openOwnKey, type Keys, type OwnKey } from './keys.js'
import { DEFAULT_MODEL, modelProviders } from './models.js'
import { printError, printLine } from './print.js'

export interface ServerSettings {
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  /** Folder of all data: the runs are in `runs` below it, copies for the demo in `demo`. */
  readonly data: string
  /** The first is the default folder of runs. */
  readonly roots: readonly string[]
  /** Null: only programs of this machine may call. */
  readonly keys: Keys | null
  readonly model: string | undefined
  /** The goal and, where it is not the first root, the folder of the request that is shown. */
  readonly example: { readonly goal: string; readonly cwd?: string }
  /** What messages call the settings. */
  readonly names: SettingNames
  /** Makes folders besides the one of the data, before anything is opened. */
  readonly makeFolders?: () => Promise<void>
  /** Called with the service before it listens. */
  readonly prepare?: (service: RunService) => Promise<void>
}

export interface SettingNames {
  readonly port: string
  readonly host: string
  readonly data: string
  readonly keys: string
  /** What to type for a key that the server makes. */
  readonly autoKeys: string
}

/** A server that listens. */
export interface RunningServer {
  /** Without a slash at its end. */
  readonly url: string
  /** Lines that say where it listens, and how to start a run. */
  readonly lines: readonly string[]
}

/**
 * Starts a server, which a signal ends: unfinished runs continue at the next start. A second signal
 * ends the process at once.
 *
 * @throws Error whose message says which setting to change.
 */
export async function startServer(settings: ServerSettings): Promise<RunningServer> {
  let service: RunService | undefined
  try {
    const { own, demo } = await openData(settings)
    service = await openService(settings, own, demo).catch(badSetting)
    await settings.prepare?.(service)
    const server = createServer(service.handler)
    service.attach(server)
    await listen(server, settings)
    drainOnSignal(service, [server], {
      graceMs: 0,
      onDrain: () => printLine('stopping; unfinished runs continue at the next start'),
    })
    const url = urlOf(server, settings)
    return { url, lines: announcement(url, settings, own) }
  } catch (error) {
    await service?.close({ graceMs: 0 })
    throw explained(error, settings)
  }
}

interface OpenedData {
  /** The key that the server makes itself; null for other keys, and for none. */
  readonly own: OwnKey | null
  readonly demo: Demo | null
}

async function openData(settings: ServerSettings): Promise<OpenedData> {
  const { data, keys, names, makeFolders } = settings
  const runs = join(data, 'runs')
  try {
    await makeFolders?.()
    await mkdir(runs, { recursive: true, mode: 0o700 })
    // The folder of the store is closed to the tools of runs.
    const own = keys === 'auto' ? await openOwnKey(join(runs, 'api-key')) : null
    return { own, demo: await openDemo(join(data, 'demo')) }
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw cannotWrite(data, names.data, error)
  }
}

async function openService(
  settings: ServerSettings,
  own: OwnKey | null,
  demo: Demo | null,
): Promise<RunService> {
  const { data, model } = settings
  const roots = demo === null ? settings.roots : [...settings.roots, demo.folder]
  const keys = own === null ? settings.keys : { operator: own.key }
  const service: RunService = await createRunService({
    engine: {
      store: new FileStore({ directory: join(data, 'runs'), onWarning }),
      roots,
      defaultModel: model ?? DEFAULT_MODEL,
      providers: modelProviders(),
    },
    authorize: keys === null || keys === 'auto' ? undefined : bearerKeys(keys),
    demo: demo === null ? undefined : () => demo.prepare(service.engine),
  })
  return service
}

/** What a service refuses to open with is one of the settings: a key, a folder, a model. */
export function badSetting(error: Error & { readonly code?: string }): never {
  const isSetting = error instanceof TypeError || error.code === 'ERR_AGENT_MODEL'
  throw isSetting ? new UsageError(error.message) : error
}

/** One line for each thing that is found to be damaged, now or later. */
export function onWarning({ message }: Error): void {
  printError(message)
}

function listen(server: Server, { port, host }: ServerSettings): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
}

function urlOf(server: Server, { port, host }: ServerSettings): string {
  const address = server.address()
  const actual = typeof address === 'object' && address !== null ? address.port : port
  return `http://${nameToCall(host)}:${actual}`
}

function announcement(url: string, settings: ServerSettings, own: OwnKey | null): string[] {
  const { example, keys, host, names } = settings
  const type = `-H 'content-type: application/json'`
  const held = own === null ? 'YOUR_KEY' : `$(cat ${shellWord(own.path)})`
  const key = keys === null ? '' : ` -H "authorization: Bearer ${held}"`
  const body = shellWord(JSON.stringify(example))
  const lines = [
    `runwright listening on ${url}`,
    `start a run: curl -sS ${url}/api/runs ${type}${key} -d ${body}`,
    `watch it: ${url}/${own === null ? '' : `#key=${own.key}`}`,
  ]
  if (own !== null) lines.push(`the key is in ${own.path}; to change it, remove it and restart`)
  if (isWildcard(host)) lines.push('listening on all addresses of this machine')
  if (keys === null) lines.push(...withoutKeys(names))
  return lines
}

function withoutKeys({ keys, autoKeys }: SettingNames): string[] {
  return [
    `${keys} is not set:`,
    '- all programs on this machine may call, also the commands of a run: gates are not binding',
    '- a proxy or tunnel that adds no header of its own cannot be told from a local caller: ' +
      'use none',
    `${autoKeys} makes a key and prints a link with it.`,
  ]
}

/** Whether `host` means all addresses, so that it is not one to call. */
function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}

function nameToCall(host: string): string {
  if (isWildcard(host)) return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}

/** The error, in words that name the setting to change where one can help. */
function explained(error: unknown, { host, port, names }: ServerSettings): Error {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE') {
    const hint = `set ${names.port} to another one (0 picks a free one)`
    return new Error(`port ${port} is in use on ${host}; ${hint}`)
  }
  if (code === 'EACCES') {
    return new Error(`not allowed to listen on ${host}:${port}; set ${names.port} to 1024 or above`)
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new UsageError(`${names.host} ${host} is not an address of this machine`)
  }
  if (code?.startsWith('ERR_AGENT_STORE') === true) {
    return new Error(`${describeError(error)} (${names.data})`)
  }
  return asError(error)
}
