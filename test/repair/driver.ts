/** Runs a model on a copy of a project, in an engine with the shipped tools. */
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { TestContext } from 'node:test'
import {
  MemoryStore, RunEngine,
  type AgentEvent, type EngineOptions, type Model, type ModelRequest, type ModelTurn,
  type RunDetails, type ToolCall,
} from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import { scratch } from '../helpers/engine.js'

export interface DriveOptions {
  readonly model: Model
  /** Folder to repair in place. */
  readonly cwd: string
  readonly check: string
  /** @defaultValue 20 */
  readonly maxIterations?: number
  /** Called with each request and its turn. */
  readonly onTurn?: (request: ModelRequest, turn: ModelTurn) => void | Promise<void>
  /** Called before each call, for tests that disturb the run. */
  readonly beforeCall?: (call: ToolCall) => Promise<void>
  /** Of the engine; without checkpoints and sealed checks, which have tests of their own. */
  readonly engine?: Partial<EngineOptions>
}

export interface DriveResult {
  readonly achieved: boolean
  /** True when the model has nothing left to try. */
  readonly gaveUp: boolean
  readonly iterations: number
  readonly turns: number
  /** Patches that were given to be tried. */
  readonly patches: number
  readonly lastText: string
  readonly details: RunDetails
  readonly events: readonly AgentEvent[]
  readonly seconds: number
}

/** A new instance of the model. */
export function builtinRepair(): Model {
  return repairModel().create('repair')
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
): Promise<{ output: string; exitCode: number }> {
  return new Promise((settle) => {
    const env: NodeJS.ProcessEnv = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }
    // The outer test runner must not receive the reports of the inner one.
    for (const name of ['NODE_TEST_CONTEXT', 'NODE_OPTIONS', 'FORCE_COLOR', 'NODE_V8_COVERAGE'])
      delete env[name]
    const child = spawn('/bin/sh', ['-c', command], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
    child.on('close', (code) => settle({ output, exitCode: code ?? 137 }))
  })
}

/** Runs `model` until the goal is achieved, the model gives up, or no iteration is left. */
export async function drive(options: DriveOptions): Promise<DriveResult> {
  const { beforeCall, check, cwd, maxIterations = 20, model, onTurn } = options
  const started = performance.now()
  let [turns, patches, lastText] = [0, 0, '']
  const watched: Model = {
    name: 'repair:driven',
    isLanguageModel: false,
    contextWindow: null,
    prices: model.prices,
    readsWholeOutputs: true,
    complete: async (request) => {
      const turn = await model.complete(request)
      await onTurn?.(request, turn)
      turns += 1
      lastText = turn.message.text
      for (const call of turn.message.calls) {
        patches += (call.args['patches'] as readonly unknown[] | undefined)?.length ?? 0
        await beforeCall?.(call)
      }
      return turn
    },
  }
  const engine = await RunEngine.open({
    store: new MemoryStore(),
    roots: [cwd],
    checkpoints: 'off',
    sealedChecks: 'off',
    providers: [repairModel(), {
      id: 'repair', description: 'a driven model', isLanguageModel: false, suggestions: [],
      create: () => watched,
    }],
    defaultModel: 'repair:driven',
    ...options.engine,
  })
  try {
    const goal = { goal: 'make the check pass', check, cwd, max_iterations: maxIterations }
    const created = await engine.create(goal)
    const events: AgentEvent[] = []
    for await (const batch of await engine.subscribe(created.details.run_id)) {
      for (const { json } of batch) events.push(JSON.parse(json) as AgentEvent)
    }
    const details = await engine.get(created.details.run_id)
    const { iteration, status } = details
    return {
      achieved: status === 'achieved',
      gaveUp: lastText.startsWith('No candidate left'),
      iterations: iteration,
      turns, patches, lastText, details, events,
      seconds: (performance.now() - started) / 1000,
    }
  } finally {
    await engine.close()
  }
}

export function writeFiles(cwd: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(cwd, path, '..'), { recursive: true })
    writeFileSync(join(cwd, path), text)
  }
}

/** Repairs a project of these files; `calls` are those of the run, in order. */
export async function repairFiles(
  t: TestContext,
  files: Readonly<Record<string, string>>,
  check = 'node --test',
  maxIterations = 20,
): Promise<{ readonly cwd: string; readonly result: DriveResult; readonly calls: ToolCall[] }> {
  const cwd = scratch(t)
  writeFiles(cwd, files)
  const calls: ToolCall[] = []
  const result = await drive({
    model: builtinRepair(),
    cwd,
    check,
    maxIterations,
    beforeCall: (call) => {
      calls.push(call)
      return Promise.resolve()
    },
  })
  return { cwd, result, calls }
}

export const FIXTURES: string = resolve(
  dirname(new URL(import.meta.url).pathname),
  '../fixtures/repair',
)
