import assert from 'node:assert/strict'
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import type { TestContext } from 'node:test'
import type { RunRecord } from 'runwright/agent'
import { bundle } from '../../helpers/bundle.js'
import { IDEMPOTENT, type ChildPlan } from './scenario.js'

/** A child that waits for a line on its standard input. */
export type RunChild = ChildProcessByStdio<Writable, Readable, null>

/** A folder for a test of crashes, and the children that crash in it. */
export class CrashWorld {
  readonly folder: string
  readonly #script: string
  readonly #t: TestContext

  constructor(t: TestContext) {
    this.#t = t
    this.folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-crash-')))
    t.after(() => rmSync(this.folder, { recursive: true, force: true }))
    this.#script = bundle(new URL('run-child.ts', import.meta.url), this.folder)
  }

  /** Folders for a store and the runs in it. */
  place(name: string): Pick<ChildPlan, 'directory' | 'root'> {
    const root = join(this.folder, name, 'work')
    mkdirSync(root, { recursive: true })
    return { directory: join(this.folder, name, 'data'), root }
  }

  /** Starts a child; it does nothing until {@link lines} is called. */
  start(plan: ChildPlan): RunChild {
    const words = [this.#script, JSON.stringify(plan)]
    // A process group of its own separates what it leaves running from what the test runs.
    const child = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#t.after(() => void child.kill('SIGKILL'))
    return child
  }
}

/** Lines of a child's standard output until it ends; `ended` has the signal or exit code. */
export async function* linesOf(child: RunChild): AsyncGenerator<readonly string[]> {
  child.stdin.on('error', () => undefined)
  child.stdin.write('go\n')
  for await (const line of createInterface({ input: child.stdout })) yield line.split(' ')
}

/** Resolves with the signal that ended a child; null after exit code 0. */
export async function endOf(child: RunChild): Promise<NodeJS.Signals | null> {
  const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null
  await ended
  if (child.signalCode === null) assert.equal(child.exitCode, 0, 'the child failed')
  return child.signalCode
}

/** Asserts what holds for the workspace and log of a run, however often it crashed. */
export function assertEffects(cwd: string, records: readonly RunRecord[], context: string): void {
  const ran = readLines(join(cwd, 'ran'))
  assert.equal(new Set(ran).size, ran.length, `${context}: no command ran twice: ${ran.join()}`)
  for (const record of records) {
    if (record.kind !== 'tool_result') continue
    const { call_id, exit_code, output } = record.payload
    if (IDEMPOTENT.includes(call_id) && exit_code !== 130) {
      assert.equal(exit_code, 0, `${context}: ${call_id} happened once: ${output}`)
    }
  }
}

/** Lines of a file; none if it does not exist. */
export function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter((line) => line !== '')
  } catch {
    return []
  }
}
