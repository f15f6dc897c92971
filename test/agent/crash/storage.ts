/** The stores that pass the tests of crashes, and processes over them that die. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { FileStore, MemoryStore, type RunStore } from 'runwright/agent'
import { keepOpen, scratch } from '../../helpers/engine.js'
import { Children, KILLS, type Ending, type Mortal } from '../../helpers/kill.js'
import { hookFiles, mortalClock, MortalProcess } from '../../helpers/mortal-process.js'
import * as programs from './programs.js'
import type { DrivePlan } from './scenario.js'

/** A store and folders that processes use one after the other. */
export interface Place {
  /** Folder for the folders of runs. */
  readonly root: string
  /** Folder for copies of these. */
  readonly copies: string
  /** Drives runs in a process that dies at a step, from 1, or ends by itself if that is 0. */
  drive(plan: DrivePlan, dieAt: number): Promise<Ending>
  /** The same for a tree of runs. */
  driveTree(plan: programs.TreePlan, dieAt: number): Promise<Ending>
  /** The store of an engine of the test; unless it is shared, every process before is over. */
  next(): Promise<RunStore>
}

export interface Storage {
  readonly name: string
  /** True if several processes can have it at the same time. */
  readonly isShared: boolean
  /** Deaths that a test makes, about. */
  readonly deaths: number
  /** Makes new storage. */
  place(t: TestContext): Promise<Place>
}

/** A place whose processes are children, which can be killed from outside. */
export interface KillablePlace extends Place {
  /** Starts a child that begins with its first line of input. */
  start(plan: DrivePlan): Mortal
  /** Ends the leases of children that were killed, before the next one begins. */
  bury(): Promise<void>
}

export interface KillableStorage extends Storage {
  place(t: TestContext): Promise<KillablePlace>
}

/** Folders for runs and for their copies. */
export function foldersIn(t: TestContext): Pick<Place, 'root' | 'copies'> {
  const folder = scratch(t)
  const folders = { root: join(folder, 'work'), copies: join(folder, 'copies') }
  for (const path of Object.values(folders)) mkdirSync(path)
  return folders
}

/** Appends and changes of files, at which a process in memory may die. */
const WRITES = [
  'append', 'link', 'mkdir', 'rename', 'rmdir', 'symlink', 'unlink', 'writeFile',
] as const

/**
 * A `MemoryStore` that outlives its processes. They all live in the process of the test: a dead one
 * gets no more answers from the store and the file system, and its timers have ended.
 */
export const memoryStorage: Storage = {
  name: 'a MemoryStore',
  isShared: false,
  deaths: Math.ceil(KILLS / 2),
  async place(t) {
    const disk = new MemoryStore()
    await disk.open()
    return {
      ...foldersIn(t),
      next: () => Promise.resolve(keepOpen(disk)),
      // Before and after each append are two steps, as in a child.
      drive: async (plan, dieAt) => {
        const mortal = new MortalProcess(disk, () => dieAt % 2 === 0, ['append'])
        if (dieAt > 0) mortal.dieAfter(Math.ceil(dieAt / 2))
        const ending = await live(t, mortal, (host) => programs.drive(plan, host))
        return { ...ending, steps: 2 * ending.steps }
      },
      driveTree: async (plan, dieAt) => {
        const mortal = new MortalProcess(disk, () => dieAt % 2 === 0, WRITES)
        if (dieAt > 0) mortal.dieAfter(dieAt)
        return await live(t, mortal, (host) => programs.driveTree(plan, host))
      },
    }
  },
}

/** Runs a program in a process that may die. */
async function live(
  t: TestContext,
  mortal: MortalProcess,
  program: (host: programs.Host) => Promise<void>,
): Promise<Ending> {
  t.after(() => mortal.bury())
  const lines: string[] = []
  const host = {
    store: mortal.store,
    clock: mortalClock(mortal.died),
    life: {
      begin: () => undefined,
      say: (line: string) => void (mortal.isOver || lines.push(line)),
    },
  }
  using _ = hookFiles()
  const ended = mortal.run(() => program(host)).then(() => null)
  const signal = await Promise.race([ended, mortal.died.then(() => 'SIGKILL' as const)])
  return { signal, steps: signal === null ? mortal.calls : 0, lines, stderr: '' }
}

const children = new Children<typeof import('./children.js')>(
  new URL('children.ts', import.meta.url),
)

/** A `FileStore` whose processes are children. */
export const fileStorage: KillableStorage = {
  name: 'a FileStore',
  isShared: false,
  deaths: KILLS,
  place(t) {
    const directory = join(scratch(t), 'data')
    return Promise.resolve({
      ...foldersIn(t),
      next: () => Promise.resolve(new FileStore({ directory })),
      drive: (plan, dieAt) => children.run('drive', { ...plan, directory }, { dieAt }),
      driveTree: (plan, dieAt) => children.run('driveTree', { ...plan, directory }, { dieAt }),
      start: (plan) => children.start(t, 'drive', { ...plan, directory }, { waits: true }),
      bury: () => Promise.resolve(),
    })
  },
}
