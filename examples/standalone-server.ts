/**
 * The whole service as one program: `npm start`.
 *
 * Settings are environment variables; `npm start -- --help` lists them. Without any, it needs
 * neither key nor network: the model is `builtin:repair`, a program that repairs code by trying
 * small patches.
 */
import { randomBytes } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { cp, link, lstat, mkdir, open, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { homedir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { escapeInvisible, FileStore, isTerminal, providersFromEnvironment } from 'runwright/agent'
import {
  bearerKeys,
  createRunService,
  drainOnSignal,
  type BearerKey,
  type RunService,
} from 'runwright/server'

const HELP = `The agent run service: REST, event streams and a dashboard.

Settings are environment variables:

  PORT                  default 8000; 0 picks a free port
  HOST                  default 127.0.0.1; to accept calls from other machines, also set
                        RUNWRIGHT_API_KEYS
  RUNWRIGHT_DATA        folder for the data of runs; default $XDG_STATE_HOME/runwright or
                        ~/.local/state/runwright
  RUNWRIGHT_ROOTS       folders in which runs may work, separated by "${delimiter}"; the first is
                        the default. Without it: a copy of the demo project, and the current
                        directory
  RUNWRIGHT_API_KEYS    auto makes a key at the first start, keeps it in RUNWRIGHT_DATA, and prints
                        a link with it; or alice=key,bob=key with at least 16 characters per key.
                        Without it, only programs on this machine may call, including the
                        commands of a run
  RUNWRIGHT_MODEL       model for requests without one; default builtin:repair, which needs no
                        network

Each of these variables makes the models of a provider available: OPENAI_API_KEY, OPENAI_BASE_URL,
ANTHROPIC_API_KEY, GEMINI_API_KEY, OLLAMA_HOST. Example:

  OPENAI_API_KEY=… RUNWRIGHT_MODEL=openai:gpt-5-mini npm start
`

interface Settings {
  readonly host: string
  readonly port: number
  readonly data: string
  /** Null: a scratch copy of the demo project, and the current directory. */
  readonly roots: readonly string[] | null
  /** `auto`: one key, in a file that the server makes. */
  readonly keys: { readonly [id: string]: BearerKey } | 'auto' | null
  readonly model: string | undefined
}

/** An invalid setting; the message is shown without a stack trace. */
class SettingError extends Error {}

function readSettings(env: NodeJS.ProcessEnv): Settings {
  const port = env['PORT'] ?? '8000'
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw new SettingError(`PORT must be a number from 0 to 65535, got ${JSON.stringify(port)}`)
  }
  const state = env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state')
  const roots = env['RUNWRIGHT_ROOTS']?.split(delimiter).filter((root) => root !== '')
  if (roots?.length === 0) throw new SettingError('RUNWRIGHT_ROOTS must name at least one folder')
  return {
    host: env['HOST'] || '127.0.0.1',
    port: Number(port),
    data: resolve(env['RUNWRIGHT_DATA'] || join(state, 'runwright')),
    roots: roots?.map((root) => resolve(root)) ?? null,
    keys: readKeys(env['RUNWRIGHT_API_KEYS']),
    model: env['RUNWRIGHT_MODEL'] || undefined,
  }
}

/** `auto`, or `alice=key,bob=key`; a key without a name belongs to `operator`. */
function readKeys(text: string | undefined): Settings['keys'] {
  if (text === undefined) return null
  if (text.trim() === 'auto') return 'auto'
  const keys: { [id: string]: string[] } = {}
  for (const entry of text.split(',').map((part) => part.trim())) {
    const [, id = 'operator', key = ''] = /^(?:([\w.-]+)=)?(.*)$/.exec(entry) ?? []
    if (key === '') {
      throw new SettingError('RUNWRIGHT_API_KEYS must be name=key pairs, separated by commas')
    }
    keys[id] = [...(keys[id] ?? []), key]
  }
  return Object.fromEntries(Object.entries(keys).map(([id, list]) => [id, { key: list }]))
}

/** The server's own key, and the file that keeps it. */
interface OwnKey {
  readonly key: string
  readonly path: string
}

/** Reads the server's own key, and makes it first if there is none. */
async function openOwnKey(path: string): Promise<OwnKey> {
  for (;;) {
    const key = await readOwnKey(path)
    if (key !== null) return { key, path }
    const draft = `${path}-${randomBytes(8).toString('hex')}`
    const content = `${randomBytes(32).toString('base64url')}\n`
    await writeFile(draft, content, { flag: 'wx', mode: 0o600, flush: true })
    try {
      // Fails when another process was first, whose key then counts.
      await link(draft, path)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    } finally {
      await rm(draft)
    }
  }
}

/** Null when there is no file. */
async function readOwnKey(path: string): Promise<string | null> {
  const unsafe = (problem: string): SettingError =>
    new SettingError(`${path} ${problem}; remove it, and the next start makes a new key`)
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const file = await open(path, flags).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null
    throw unsafe(error.code === 'ELOOP' ? 'is a link' : `cannot be read (${error.code})`)
  })
  if (file === null) return null
  try {
    const problem = problemOfKeyFile(await file.stat())
    if (problem !== null) throw unsafe(problem)
    const key = (await file.readFile('utf8')).trim()
    if (!/^[\w-]{16,}$/.test(key)) throw unsafe('does not contain a key')
    return key
  } finally {
    await file.close()
  }
}

function problemOfKeyFile(stats: Stats): string | null {
  if (!stats.isFile() || stats.size > 1_000) return 'is not a file with a key'
  if (stats.uid !== process.getuid?.()) return 'belongs to another user'
  return (stats.mode & 0o077) === 0 ? null : 'is open to other users of this machine'
}

const demoProject = fileURLToPath(new URL('./demo-project', import.meta.url))

interface Opened {
  readonly service: RunService
  readonly demo: string | null
  readonly own: OwnKey | null
}

async function openService(settings: Settings): Promise<Opened> {
  const { data, model } = settings
  const demo = settings.roots === null ? join(data, 'demo-project') : null
  const runs = join(data, 'runs')
  let own: OwnKey | null = null
  let { keys } = settings
  try {
    await mkdir(demo ?? data, { recursive: true, mode: 0o700 })
    if (demo !== null && (await lstat(demo)).isSymbolicLink()) {
      // It is emptied below, which must not happen to a folder of somebody else.
      throw new SettingError(`${demo} is a link; remove it, and the next start makes a folder`)
    }
    await mkdir(runs, { recursive: true, mode: 0o700 })
    if (keys === 'auto') {
      // The folder of the store is closed to the tools of runs.
      own = await openOwnKey(join(runs, 'api-key'))
      keys = { operator: own.key }
    }
  } catch (error) {
    if (error instanceof SettingError) throw error
    throw new SettingError(`cannot write to RUNWRIGHT_DATA (${data}): ${messageOf(error)}`)
  }
  const service = await createRunService({
    engine: {
      store: new FileStore({ directory: runs, onWarning }),
      roots: settings.roots ?? [demo as string, process.cwd()],
      defaultModel: model,
      providers: providersFromEnvironment(process.env),
    },
    authorize: keys === null ? undefined : bearerKeys(keys),
  })
  if (demo !== null) await refreshDemo(service, demo)
  return { service, demo, own }
}

/** One line for each thing that is found to be damaged, now or later. */
function onWarning({ message }: Error): void {
  printError(message)
}

/** One line, in which nothing controls the terminal. */
function printError(message: string): void {
  console.error(`runwright: ${escapeInvisible(message.replaceAll('\n', ' '))}`)
}

/** Restores the planted bugs, unless a run that has not ended uses the copy. */
async function refreshDemo({ engine }: RunService, demo: string): Promise<void> {
  const { runs } = await engine.list({ status: ['pending', 'running', 'awaiting_human'] })
  const details = await Promise.all(runs.map(({ run_id }) => engine.get(run_id)))
  if (details.some(({ cwd, status }) => cwd === demo && !isTerminal(status))) return
  // The folder itself stays: another server, which is about to be refused, may look for it now.
  const left = await readdir(demo)
  for (const name of left) await rm(join(demo, name), { recursive: true, force: true })
  await cp(demoProject, demo, { recursive: true, dereference: true })
}

function listen(server: Server, { port, host }: Settings): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
}

function printUsage(server: Server, settings: Settings, { demo, own }: Opened): void {
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : settings.port
  const host = nameToCall(settings.host)
  const url = `http://${host}:${port}`
  const request = demo === null ? { goal: 'auto' } : { goal: 'node-test', cwd: demo }
  const type = `-H 'content-type: application/json'`
  const held = own === null ? 'YOUR_KEY' : `$(cat ${quoted(own.path)})`
  const key = settings.keys === null ? '' : ` -H "authorization: Bearer ${held}"`
  const body = quoted(JSON.stringify(request))
  console.log(`runwright listening on ${url}`)
  console.log(`start a run: curl -sS ${url}/api/runs ${type}${key} -d ${body}`)
  console.log(`watch it: ${url}/${own === null ? '' : `#key=${own.key}`}`)
  if (own !== null) console.log(`the key is in ${own.path}; to change it, remove it and restart`)
  if (isWildcard(settings.host)) console.log('listening on all addresses of this machine')
  if (settings.keys === null) console.log(WITHOUT_KEYS)
}

const WITHOUT_KEYS = `RUNWRIGHT_API_KEYS is not set:
- all programs on this machine may call, also the commands of a run: gates are not binding
- a proxy or tunnel that adds no header of its own cannot be told from a local caller: use none
RUNWRIGHT_API_KEYS=auto makes a key and prints a link with it.`

/** As one word of a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** Whether `host` means all addresses, so that it is not one to call. */
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
  if (code === 'EADDRINUSE') {
    return `port ${port} is in use on ${host}; set PORT to another one (0 picks a free one)`
  }
  if (code === 'EACCES') {
    return `not allowed to listen on ${host}:${port}; set PORT to 1024 or above`
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return `HOST ${host} is not an address of this machine`
  }
  return messageOf(error)
}

async function main(): Promise<void> {
  let settings: Partial<Settings> = {}
  let service: RunService | undefined
  try {
    const read = (settings = readSettings(process.env))
    const opened = await openService(read)
    service = opened.service
    const server = createServer(service.handler)
    service.attach(server)
    await listen(server, read)
    drainOnSignal(service, [server], {
      graceMs: 0,
      onDrain: () => console.log('stopping; unfinished runs continue at the next start'),
    })
    printUsage(server, read, opened)
  } catch (error) {
    printError(explain(error, settings))
    await service?.close({ graceMs: 0 })
    process.exitCode = 1
  }
}

const [argument] = process.argv.slice(2)
if (argument === undefined) await main()
else if (argument === '--help' || argument === '-h') process.stdout.write(HELP)
else {
  printError(`unknown argument ${argument}; settings are environment variables, see --help`)
  process.exitCode = 1
}
