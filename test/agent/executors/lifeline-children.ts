import { readdirSync, readFileSync } from 'node:fs'
import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import {
  bubblewrapExecutor, bubblewrapProblem, processExecutor, type Executor,
} from 'runwright/agent'
import { openStdioChannel } from '../../../lib/agent/mcp/stdio.js'
import type { Life } from '../../helpers/mortal-child.js'

export interface LifelinePlan {
  readonly folder: string
  /** The words that run {@link holdInThread}: the program and its argument. */
  readonly thread: readonly string[]
}

/** The leader, and three others: one ignores SIGTERM, one has no mark, one has left the group. */
const COMMAND = `exec 9> "$PIPE"; echo held >&9
  (trap "" TERM HUP; echo held >&9; sleep 600; true) &
  env -i sh -c 'echo held >&9; sleep 60; true' &
  setsid sh -c 'echo held >&9; sleep 600; true' &
  wait`

const options = {
  timeoutMs: 600_000,
  maxOutputBytes: 1_000,
  writable: [],
  signal: new AbortController().signal,
}

function start(executor: Executor, cwd: string, pipe: string): void {
  void executor.run(COMMAND, { ...options, cwd, env: { PIPE: pipe }, mark: `${cwd}-${pipe}` })
}

/** The children of this process that keep lifelines, of its threads as well. */
function keepers(): readonly number[] {
  const ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return ids.map(Number).filter((id) => {
    try {
      const parent = /\) [^Z] (\d+)/.exec(readFileSync(`/proc/${id}/stat`, 'latin1'))?.[1]
      const line = readFileSync(`/proc/${id}/cmdline`, 'latin1')
      return Number(parent) === process.pid && line.endsWith('\0runwright-lifeline\0')
    } catch {
      return false // It has ended.
    }
  })
}

/**
 * Runs commands that never end and hold the pipe `main` of a folder open: a tool server and a
 * command of each executor; and one of a thread. Says whether there is a sandbox. Lines make it end
 * the thread, or kill the lifeline's keeper, after which it says when there is another keeper.
 */
export async function holdCommands({ folder, thread }: LifelinePlan, life: Life): Promise<void> {
  start(processExecutor(), folder, 'main')
  const sandboxed = (await bubblewrapProblem()) === null
  life.say(`${sandboxed}`)
  if (sandboxed) start(bubblewrapExecutor(), folder, 'main')
  const server = { command: '/bin/sh', args: ['-c', COMMAND], cwd: folder, env: { PIPE: 'main' } }
  const listener = { onMessage: () => undefined, onClose: () => undefined, onWait: () => undefined }
  await openStdioChannel('server', server, 1_000, listener)
  const [program = '', ...argv] = thread
  const worker = new Worker(program, { argv })
  for (let line = await life.line(); line !== undefined; line = await life.line()) {
    if (line === 'end the thread') await worker.terminate()
    if (line !== 'kill the keeper') continue
    // That of the thread ends once it has killed what it held.
    while (keepers().length !== 1) await setImmediate()
    const killed = keepers()
    for (const id of killed) process.kill(id, 'SIGKILL')
    while (keepers().every((id) => killed.includes(id))) await setImmediate()
    life.say('there is another one')
  }
}

/** Runs such a command in a thread, with the pipe `worker`. */
export async function holdInThread({ folder }: { readonly folder: string }): Promise<void> {
  start(processExecutor(), folder, 'worker')
}

/** Starts a command in a folder, says its process group, and holds it in `onStart` for ever. */
export async function holdOnStart(
  { folder }: { readonly folder: string },
  life: Life,
): Promise<void> {
  await processExecutor().run('echo > ran', {
    ...options,
    cwd: folder,
    env: {},
    mark: 'held',
    onStart: async (pgid) => {
      life.say(`${pgid}`)
      await new Promise(() => undefined)
    },
  })
}
