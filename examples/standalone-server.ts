/**
 * The whole service as one program: `npm start`.
 *
 * Settings are environment variables; `npm start -- --help` lists them. Without any, it needs
 * neither key nor network: the model is `builtin:repair`, a program that repairs code by trying
 * small patches. It is `runwright serve` with a project of its own to try it on.
 */
import { cp, lstat, mkdir, readdir, rm } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isTerminal } from 'runwright/agent'
import type { RunService } from 'runwright/server'
import { CommandError } from '../lib/cli/command-line.js'
import { stateFolder } from '../lib/cli/folders.js'
import { readKeys } from '../lib/cli/keys.js'
import { printError } from '../lib/cli/print.js'
import { startServer, type ServerSettings } from '../lib/cli/server.js'

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

const NAMES = {
  port: 'PORT',
  host: 'HOST',
  data: 'RUNWRIGHT_DATA',
  keys: 'RUNWRIGHT_API_KEYS',
  autoKeys: 'RUNWRIGHT_API_KEYS=auto',
}

const demoProject = fileURLToPath(new URL('./demo-project', import.meta.url))

function readSettings(env: NodeJS.ProcessEnv): ServerSettings {
  const port = env['PORT'] ?? '8000'
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw new Error(`PORT must be a number from 0 to 65535, got ${JSON.stringify(port)}`)
  }
  const data = resolve(env['RUNWRIGHT_DATA'] || stateFolder('RUNWRIGHT_DATA'))
  const roots = env['RUNWRIGHT_ROOTS']?.split(delimiter).filter((root) => root !== '')
  if (roots?.length === 0) throw new Error('RUNWRIGHT_ROOTS must name at least one folder')
  const keys = env['RUNWRIGHT_API_KEYS']
  const demo = join(data, 'demo-project')
  return {
    host: env['HOST'] || '127.0.0.1',
    port: Number(port),
    data,
    keys: keys === undefined ? null : readKeys(keys, 'RUNWRIGHT_API_KEYS'),
    model: env['RUNWRIGHT_MODEL'] || undefined,
    names: NAMES,
    ...(roots === undefined
      ? {
          roots: [demo, process.cwd()],
          example: { goal: 'node-test', cwd: demo },
          makeFolders: () => makeDemo(demo),
          prepare: (service) => refreshDemo(service, demo),
        }
      : { roots: roots.map((root) => resolve(root)), example: { goal: 'auto' } }),
  }
}

async function makeDemo(demo: string): Promise<void> {
  await mkdir(demo, { recursive: true, mode: 0o700 })
  if (!(await lstat(demo)).isSymbolicLink()) return
  // It is emptied below, which must not happen to a folder of somebody else.
  throw new CommandError(`${demo} is a link; remove it, and the next start makes a folder`, 1)
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

const [argument] = process.argv.slice(2)
try {
  if (argument === '--help' || argument === '-h') process.stdout.write(HELP)
  else if (argument !== undefined) {
    throw new Error(`unknown argument ${argument}; settings are environment variables, see --help`)
  } else {
    const { lines } = await startServer(readSettings(process.env))
    for (const line of lines) console.log(line)
  }
} catch (error) {
  printError(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
