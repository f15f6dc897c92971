/**
 * A minimal engine for one model: runs the check, executes the tools on a scratch copy and calls
 * `complete()` until the check passes or the model gives up. Goals, integrity, gates and the log
 * are tested with the real engine.
 */
import { spawn } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import type { Message, Model, ModelRequest, ModelTurn, ToolCall, ToolSpec } from 'runwright/agent'

const TURNS_PER_ITERATION = 8
const MAX_OUTPUT = 16_384

export interface DriveOptions {
  readonly model: Model
  /** Folder to repair in place. */
  readonly cwd: string
  readonly check: string
  /** @defaultValue 20 */
  readonly maxIterations?: number
  readonly runId?: string
  /** Called with each request and its turn. */
  readonly onTurn?: (request: ModelRequest, turn: ModelTurn) => void | Promise<void>
  /** Called before each call, for tests that disturb the run. */
  readonly beforeCall?: (call: ToolCall) => Promise<void>
  /** Messages of a conversation to continue. */
  readonly messages?: readonly Message[]
}

export interface DriveResult {
  readonly achieved: boolean
  /** True when the model has nothing left to try. */
  readonly gaveUp: boolean
  readonly iterations: number
  readonly turns: number
  /** Patches that were tried. */
  readonly patches: number
  readonly lastText: string
  readonly messages: readonly Message[]
  readonly seconds: number
}

/** Copies a fixture into a temporary folder, which disposal removes. */
export async function scratchCopy(
  fixture: string,
): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'repair-'))
  await cp(fixture, path, { recursive: true })
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** Runs a shell line in its own process group; returns its combined output and exit code. */
export function runCommand(
  command: string,
  cwd: string,
  timeoutMs = 120_000,
): Promise<{ output: string; exitCode: number }> {
  return new Promise((settle) => {
    const env: NodeJS.ProcessEnv = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }
    // The outer test runner must not receive the reports of the inner one.
    delete env['NODE_TEST_CONTEXT']
    delete env['NODE_OPTIONS']
    delete env['FORCE_COLOR']
    delete env['NODE_V8_COVERAGE']
    const child = spawn('/bin/sh', ['-c', command], {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    let timedOut = false
    const timer = setTimeout(() => {
      timedOut = true
      process.kill(-child.pid!, 'SIGKILL')
    }, timeoutMs)
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
    child.on('close', (code) => {
      clearTimeout(timer)
      settle({ output: shorten(output), exitCode: timedOut ? 124 : (code ?? 137) })
    })
  })
}

function shorten(text: string): string {
  if (text.length <= MAX_OUTPUT) return text
  const gap = `\n… ${text.length - MAX_OUTPUT} characters left out …\n`
  return text.slice(0, MAX_OUTPUT / 2) + gap + text.slice(-MAX_OUTPUT / 2)
}

const TOOLS: readonly ToolSpec[] = [
  'bash',
  'read_file',
  'write_file',
  'edit_file',
  'list_files',
  'search_files',
].map((name) => ({ name, description: name, parameters: { type: 'object' } }))

/** Runs `model` until the check passes, the model gives up, or no iteration is left. */
export async function drive(options: DriveOptions): Promise<DriveResult> {
  const { model, cwd, check, maxIterations = 20, runId = 'run' } = options
  const started = performance.now()
  const messages: Message[] = [...(options.messages ?? [])]
  let turns = 0
  let patches = 0
  let lastText = ''
  let gaveUp = false
  let verdict = await runCommand(check, cwd)
  if (messages.length === 0) {
    messages.push({
      role: 'user',
      text: `Goal: make the check pass.\nThe check fails:\n${verdict.output}`,
    })
  }
  let iteration = 0
  while (verdict.exitCode !== 0 && !gaveUp && iteration < maxIterations) {
    iteration++
    for (let turn = 0; turn < TURNS_PER_ITERATION; turn++) {
      const request: ModelRequest = {
        system: '',
        messages: [...messages],
        tools: TOOLS,
        signal: new AbortController().signal,
        run: { run_id: runId, iteration, turn, goal: 'test', check, cwd },
      }
      const answer = await model.complete(request)
      await options.onTurn?.(request, answer)
      turns++
      lastText = answer.message.text
      messages.push(answer.message)
      for (const call of answer.message.calls) {
        await options.beforeCall?.(call)
        if (call.tool === 'edit_file') patches++
        const { output, exitCode } = await execute(call, cwd)
        messages.push({
          role: 'tool',
          call_id: call.call_id,
          tool: call.tool,
          output,
          exit_code: exitCode,
        })
      }
      gaveUp = answer.message.calls.length === 0 && answer.stop === 'refusal'
      if (answer.message.calls.length === 0) break
    }
    verdict = await runCommand(check, cwd)
    if (verdict.exitCode !== 0)
      messages.push({ role: 'user', text: `not achieved: the check fails\n${verdict.output}` })
  }
  return {
    achieved: verdict.exitCode === 0,
    gaveUp,
    iterations: iteration,
    turns,
    patches: Math.ceil(patches / 2),
    lastText,
    messages,
    seconds: (performance.now() - started) / 1000,
  }
}

/** Runs a tool call like the shipped tools, but without confinement. */
export async function execute(
  call: ToolCall,
  cwd: string,
): Promise<{ output: string; exitCode: number }> {
  const text = (name: string): string => String(call.args[name] ?? '')
  const path = resolve(cwd, text('path'))
  try {
    if (call.tool === 'bash')
      return await runCommand(text('command'), cwd, Number(call.args['timeout_ms'] ?? 120_000))
    if (call.tool === 'read_file')
      return { output: (await readFile(path, 'utf8')).slice(0, 65_536), exitCode: 0 }
    if (call.tool === 'list_files')
      return { output: (await list(path, cwd)).join('\n'), exitCode: 0 }
    if (call.tool === 'edit_file') {
      const before = await readFile(path, 'utf8')
      const parts = before.split(text('old_text'))
      if (parts.length !== 2)
        return { output: `old_text occurs ${parts.length - 1} times`, exitCode: 1 }
      await writeFile(path, parts.join(text('new_text')))
      return { output: 'edited', exitCode: 0 }
    }
    return { output: `no tool ${call.tool}`, exitCode: 127 }
  } catch (error) {
    return { output: (error as Error).message, exitCode: 1 }
  }
}

async function list(folder: string, root: string): Promise<string[]> {
  const found: string[] = []
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.name === 'node_modules' || entry.name === '.git') continue
    const path = join(folder, entry.name)
    const shown = relative(root, path)
    if (entry.isDirectory()) found.push(`${shown}/`, ...(await list(path, root)))
    else found.push(shown)
  }
  return found.sort()
}

export const FIXTURES: string = resolve(
  dirname(new URL(import.meta.url).pathname),
  '../../fixtures/repair',
)
