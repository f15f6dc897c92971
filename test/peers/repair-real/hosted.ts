/** Runs the process of `host.ts`, and ends it together with the commands that it started. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { JsonObject, RunStatus } from 'runwright/agent'
import { suiteEnvironment } from './suite.js'

export interface HostOptions {
  readonly cwd: string
  /** Folder of the store, which outlives the process. */
  readonly store: string
  readonly goal: string
  readonly limits: { readonly max_seconds?: number; readonly max_tool_calls?: number }
  readonly abortAfterMs?: number
  /** In place of a new run: the one of an earlier process, which is aborted. */
  readonly cancel?: string
}

export interface ToolCalled {
  readonly tool: string
  readonly args: JsonObject
}

export interface HostResult {
  readonly runId: string
  readonly status: RunStatus
  readonly endReason: string
  readonly reason: string
  /** The last text of the model. */
  readonly said: string
  readonly lastCheck: string
  readonly calls: readonly ToolCalled[]
}

export interface Hosted {
  readonly started: Promise<string>
  /** Null when the process was killed. */
  readonly result: Promise<HostResult | null>
  kill(): void
}

export function host(options: HostOptions): Hosted {
  const program = new URL('host.ts', import.meta.url).pathname
  const child = spawn(
    process.execPath,
    ['--conditions=runwright-source', '--import', 'tsx', program, JSON.stringify(options)],
    {
      cwd: new URL('../../..', import.meta.url).pathname, env: suiteEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  let begun: (runId: string) => void = () => {}
  let stillborn: (why: Error) => void = () => {}
  const started = new Promise<string>((settle, fail) => {
    begun = settle
    stillborn = fail
  })
  let last = ''
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-4000)))
  createInterface({ input: child.stdout }).on('line', (line) => {
    last = line
    const { runId } = JSON.parse(line) as { runId: string }
    begun(runId)
  })
  const result = new Promise<HostResult | null>((settle, fail) => {
    child.on('error', fail)
    child.on('close', (code, signal) => {
      stillborn(new Error(`the engine's process ended before its run began: ${errors}`))
      if (signal === 'SIGKILL') return settle(null)
      if (code !== 0) return fail(new Error(`the engine's process failed: ${errors}`))
      settle(JSON.parse(last) as HostResult)
    })
  })
  started.catch(() => undefined)
  result.catch(() => undefined)
  return { started, result, kill: () => void child.kill('SIGKILL') }
}
