/** `runwright [serve]`: the service and its dashboard for the current folder. */
import { spawn } from 'node:child_process'
import { UsageError, type Arguments, type CommandSpec } from './command-line.js'
import { dataFolder, projectFolder } from './folders.js'
import { readKeys, type Keys } from './keys.js'
import { DEFAULT_MODEL } from './models.js'
import { printError, printLine } from './print.js'
import { startServer, type SettingNames } from './server.js'

export const SERVE: CommandSpec = {
  usage: 'runwright [serve] [options]',
  about: 'Starts the agent run service and its dashboard for the current folder.',
  options: {
    root: {
      value: '<folder>',
      many: true,
      about: [
        'folder in which runs may work, default the current one; may be',
        'given several times, and the first is the default of runs',
      ],
    },
    port: { value: '<number>', about: ['default 8000; 0 picks a free port'] },
    host: {
      value: '<address>',
      about: ['default 127.0.0.1; other machines may call only with --keys'],
    },
    data: {
      value: '<folder>',
      about: [
        'where runs are stored; default one folder per project in',
        '$XDG_STATE_HOME/runwright or ~/.local/state/runwright',
      ],
    },
    model: {
      value: '<name>',
      about: [
        'model of runs that name none; default $RUNWRIGHT_MODEL or',
        DEFAULT_MODEL,
      ],
    },
    keys: {
      value: '<keys>',
      about: [
        'auto makes a key, keeps it and prints a link with it; or',
        'alice=key,bob=key, better in $RUNWRIGHT_API_KEYS, which other',
        'programs cannot read. Without keys only this machine may call',
      ],
    },
    open: { about: ['open the dashboard in the browser'] },
  },
  more: `Ctrl-C stops it: runs that have not ended continue at the next start.
A second one ends it at once.

Each of these variables makes the models of a provider available: OPENAI_API_KEY, OPENAI_BASE_URL,
ANTHROPIC_API_KEY, GEMINI_API_KEY, OLLAMA_HOST.

One run in the terminal, without a server: runwright run --help`,
}

const NAMES: SettingNames = {
  port: '--port',
  host: '--host',
  data: '--data',
  keys: '--keys',
  autoKeys: '--keys auto',
}

/** Resolves when the server listens; it runs until a signal ends it. */
export async function serve(args: Arguments): Promise<void> {
  const [word] = args.words
  if (word !== undefined) throw new UsageError(`serve takes no ${word}; folders: --root ${word}`)
  const given = args.all('root')
  const roots = given.length === 0
    ? [projectFolder(undefined, '--root')]
    : given.map((folder) => projectFolder(folder, '--root'))
  const data = dataFolder(args.get('data'), roots[0]!)
  const model = modelName(args)
  const { url, lines } = await startServer({
    host: args.get('host') ?? '127.0.0.1',
    port: portNumber(args),
    data,
    roots,
    keys: keysOf(args),
    model,
    example: { goal: 'auto' },
    names: NAMES,
  })
  // Whoever reads the output may have seen enough.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
  for (const line of lines) printLine(line)
  printLine(`runs work in ${roots.join(', ')}; their data is in ${data}`)
  if (model === undefined) {
    const what = 'needs no network, and mends small faults only'
    printLine(`their model is ${DEFAULT_MODEL}, which ${what}: see --model`)
  }
  if (args.has('open')) openBrowser(`${url}/`)
}

/** Undefined for the default. */
export function modelName(args: Arguments): string | undefined {
  return args.get('model') ?? (process.env['RUNWRIGHT_MODEL'] || undefined)
}

function portNumber(args: Arguments): number {
  const port = args.number('port') ?? 8000
  if (port <= 65_535) return port
  throw new UsageError(`--port must be a number from 0 to 65535, got ${port}`)
}

function keysOf(args: Arguments): Keys | null {
  const given = args.get('keys')
  if (given === undefined) {
    const variable = process.env['RUNWRIGHT_API_KEYS']
    return variable === undefined ? null : readKeys(variable, 'RUNWRIGHT_API_KEYS')
  }
  const keys = readKeys(given, '--keys')
  if (keys !== 'auto') {
    printError('other programs can read --keys in the list of processes: see RUNWRIGHT_API_KEYS')
  }
  return keys
}

/** Without a key in the address, which the list of processes would show. */
function openBrowser(url: string): void {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open'
  const child = spawn(program, [url], { stdio: 'ignore', detached: true })
  child.on('error', ({ message }) => printError(`no browser could be opened: ${message}`))
  child.unref()
}
