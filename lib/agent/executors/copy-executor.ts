import { mkdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Executor } from '../executor.js'
import { onOwnFiles } from '../exhaustion.js'
import { BubblewrapExecutor, bubblewrapProblem } from './bubblewrap.js'
import { ProcessExecutor } from './process.js'

/** What package managers have downloaded, in a home folder: sandboxes can read it. */
const DOWNLOADS: readonly string[] = [
  '.npm', '.cache/pip', '.cache/uv', '.cache/yarn', '.yarn/berry/cache', '.cache/pnpm',
  '.local/share/pnpm/store', '.cargo/registry', '.cargo/git', 'go/pkg/mod', '.m2/repository',
  '.gradle/caches', '.gradle/wrapper', '.nuget/packages', '.cache/ms-playwright',
  '.cache/puppeteer', '.cache/Cypress',
]

/** Variables that name a folder of tools or downloads in a home folder, where it exists. */
const TOOL_VARIABLES: Readonly<Record<string, string>> = {
  CARGO_HOME: '.cargo', RUSTUP_HOME: '.rustup', PYENV_ROOT: '.pyenv', NVM_DIR: '.nvm',
  VOLTA_HOME: '.volta', BUN_INSTALL: '.bun', DENO_DIR: '.cache/deno', GOMODCACHE: 'go/pkg/mod',
  npm_config_cache: '.npm', PIP_CACHE_DIR: '.cache/pip', GRADLE_USER_HOME: '.gradle',
  PYTHONUSERBASE: '.local',
}

/**
 * Returns a function that finds the strongest executor for commands in a copy, once. In place of
 * plain processes that is bubblewrap, where it works, with the same network, shell and variables;
 * otherwise they get a home folder and a temporary folder of their own, beside the copy. An
 * executor of the host stays as it is.
 */
export function copyExecutor(
  executor: Executor,
  closed: readonly string[],
): () => Promise<Executor> {
  let found: Promise<Executor> | undefined
  return async () => {
    found ??= strongestFor(executor, closed)
    try {
      return await found
    } catch (error) {
      // The machine had no room for a process: it may have later.
      found = undefined
      throw error
    }
  }
}

async function strongestFor(executor: Executor, closed: readonly string[]): Promise<Executor> {
  if (executor instanceof ProcessExecutor) {
    const options = { ...executor.options, network: true }
    const home = homedir()
    const readOnly = DOWNLOADS.map((path) => join(home, path))
    const problem = await bubblewrapProblem(options)
    if (problem === null) return new BubblewrapExecutor({ ...options, closed, readOnly })
  }
  const mounts = (await executor.mountsFolders?.()) ?? false
  return mounts || !OWN.has(executor.name) ? executor : withOwnHome(executor)
}

/** Those whose processes have the home folder of this one. */
const OWN: ReadonlySet<string> = new Set(['process'])

function withOwnHome(executor: Executor): Executor {
  return {
    name: executor.name,
    killMarked: (mark) => executor.killMarked(mark),
    run: async (command, options) => {
      const { isolated } = options
      if (isolated === undefined) return await executor.run(command, options)
      const place = dirname(isolated.root)
      const own = { HOME: join(place, '.home'), TMPDIR: join(place, '.tmp') }
      await onOwnFiles('no home folder for a command can be made', async () => {
        for (const path of Object.values(own)) await mkdir(path, { recursive: true, mode: 0o700 })
      })
      const env = { ...toolVariables(), ...own, ...options.env }
      return await executor.run(command, { ...options, env })
    },
  }
}

function toolVariables(): Record<string, string> {
  const home = homedir()
  const missing = Object.entries(TOOL_VARIABLES).filter(([name]) => process.env[name] === undefined)
  return Object.fromEntries(missing.map(([name, folder]) => [name, join(home, folder)]))
}
