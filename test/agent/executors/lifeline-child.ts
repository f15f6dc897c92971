/**
 * Runs commands that never end and hold pipes of a folder open: `main` a tool server and a command
 * of each executor, `worker` a command of a thread. Lines on standard input make it end the thread,
 * or kill the lifeline's keeper. Writes whether there is a sandbox, and a line when there is
 * another keeper.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setImmediate } from 'node:timers/promises'
import { isMainThread, Worker } from 'node:worker_threads'
import {
  bubblewrapExecutor, bubblewrapProblem, processExecutor, type Executor,
} from 'runwright/agent'
import { openStdioChannel } from '../../../lib/agent/mcp/stdio.js'

const folder = process.argv[2] ?? '.'

/** The leader, and three others: one ignores SIGTERM, one has no mark, one has left the group. */
const COMMAND = `exec 9> "$PIPE"; echo held >&9
  (trap "" TERM HUP; echo held >&9; sleep 600; true) &
  env -i sh -c 'echo held >&9; sleep 60; true' &
  setsid sh -c 'echo held >&9; sleep 600; true' &
  wait`

function start(executor: Executor, pipe: string): void {
  void executor.run(COMMAND, {
    cwd: folder,
    env: { PIPE: pipe },
    timeoutMs: 600_000,
    maxOutputBytes: 1_000,
    mark: `${folder}-${pipe}`,
    writable: [],
    signal: new AbortController().signal,
  })
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

async function serve(): Promise<void> {
  start(processExecutor(), 'main')
  const sandboxed = (await bubblewrapProblem()) === null
  process.stdout.write(`${sandboxed}\n`)
  if (sandboxed) start(bubblewrapExecutor(), 'main')
  const server = { command: '/bin/sh', args: ['-c', COMMAND], cwd: folder, env: { PIPE: 'main' } }
  const listener = { onMessage: () => undefined, onClose: () => undefined, onWait: () => undefined }
  await openStdioChannel('server', server, 1_000, listener)
  const worker = new Worker(process.argv[1] ?? '', { argv: [folder] })
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === 'end the thread') await worker.terminate()
    if (line !== 'kill the keeper') continue
    // That of the thread ends once it has killed what it held.
    while (keepers().length !== 1) await setImmediate()
    const killed = keepers()
    for (const id of killed) process.kill(id, 'SIGKILL')
    while (keepers().every((id) => killed.includes(id))) await setImmediate()
    process.stdout.write('there is another one\n')
  }
}

if (isMainThread) await serve()
else start(processExecutor(), 'worker')
