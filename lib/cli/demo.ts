/**
 * The demo of a server: runs that repair copies of a small project with faults, in a folder of
 * their own.
 *
 * @module
 */
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RunStatus, StartRequest } from '../agent/index.js'
import type { ServiceEngine } from '../server/index.js'

/** Where the package has the project, seen from the sources and from the built program alike. */
const PROJECT = join(dirname(fileURLToPath(import.meta.url)), '../../examples/demo-project')

/** Copies of runs that have ended which are kept, so that their files can be looked at. */
const KEPT = 5

const LIVE: readonly RunStatus[] = ['pending', 'running', 'awaiting_human']

/** A demo whose folder is there. */
export interface Demo {
  /** The root of its runs. */
  readonly folder: string
  /**
   * Makes a fresh copy of the project, and clears old ones away.
   *
   * @returns the request that starts its run.
   */
  readonly prepare: (engine: ServiceEngine) => Promise<StartRequest>
}

/** Makes the folder of the demo; null where the package has lost its examples. */
export async function openDemo(path: string): Promise<Demo | null> {
  if (!existsSync(join(PROJECT, 'package.json'))) return null
  await mkdir(path, { recursive: true, mode: 0o700 })
  const folder = await realpath(path)
  return {
    folder,
    prepare: async (engine) => {
      const numbers = await copiesIn(folder)
      await clear(folder, numbers.slice(0, -KEPT + 1), engine)
      const cwd = join(folder, nameOf((numbers.at(-1) ?? 0) + 1))
      await copyProject(cwd)
      return { goal: 'node-test', cwd, model_name: 'builtin:repair', metadata: { name: 'Demo' } }
    },
  }
}

function nameOf(number: number): string {
  return `library-${number}`
}

/** The numbers of the copies, the oldest first. */
async function copiesIn(folder: string): Promise<number[]> {
  const found = (await readdir(folder)).map((name) => /^library-(\d{1,15})$/.exec(name)?.[1])
  return found.flatMap((number) => number ?? []).map(Number).sort((a, b) => a - b)
}

/** Removes copies in which no run works, or is about to. */
async function clear(
  folder: string,
  numbers: readonly number[],
  engine: ServiceEngine,
): Promise<void> {
  for (const number of numbers) {
    const cwd = join(folder, nameOf(number))
    const { runs } = await engine.list({ cwd, status: LIVE, limit: 1 })
    if (runs.length === 0) await rm(cwd, { recursive: true, force: true })
  }
}

/** Contents only: files of an installed package may be read-only. */
async function copyProject(to: string): Promise<void> {
  await mkdir(to)
  const entries = await readdir(PROJECT, { recursive: true, withFileTypes: true })
  for (const entry of entries.filter((one) => one.isDirectory())) {
    await mkdir(pathOf(entry, to), { recursive: true })
  }
  for (const entry of entries.filter((one) => one.isFile())) {
    await writeFile(pathOf(entry, to), await readFile(join(entry.parentPath, entry.name)))
  }
}

function pathOf({ parentPath, name }: { parentPath: string; name: string }, to: string): string {
  return join(to, relative(PROJECT, parentPath), name)
}
