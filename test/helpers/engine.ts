import { accessSync, constants, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  MemoryStore,
  NO_USAGE,
  RunEngine,
  type AgentEvent,
  type EngineOptions,
  type EventKind,
  type EventPayloads,
  type JsonObject,
  type Model,
  type ModelProvider,
  type ModelRequest,
  type ModelTurn,
  type RunDetails,
} from 'runwright/agent'
import { repairModel } from 'runwright/repair'

/** A turn of a test's model: text and calls; everything else has a default. */
export interface Said {
  readonly text?: string
  readonly calls?: readonly {
    readonly tool: string
    readonly args: JsonObject
    readonly call_id?: string
  }[]
  readonly tokens?: readonly [input: number, output: number]
  readonly stop?: ModelTurn['stop']
}

/** A turn that runs shell commands, one call for each. */
export function bash(...commands: readonly string[]): Said {
  return { calls: commands.map((command) => ({ tool: 'bash', args: { command } })) }
}

/** A turn that writes files by path, one call for each. */
export function write(files: Readonly<Record<string, string>>): Said {
  return {
    calls: Object.entries(files).map(([path, content]) => ({
      tool: 'write_file', args: { path, content },
    })),
  }
}

/** A provider `test` whose model `test:m` calls a function for each turn. */
export function testProvider(
  answer: (request: ModelRequest, call: number) => Said | Promise<Said>,
): ModelProvider {
  let count = 0
  const model: Model = {
    name: 'test:m',
    isLanguageModel: false,
    contextWindow: null,
    prices: { input: 1, output: 2, as_of: '2026-01-01' },
    complete: async (request) => {
      const call = count++
      return turnOf(await answer(request, call), call)
    },
  }
  return {
    id: 'test',
    description: 'a function of the test',
    isLanguageModel: false,
    suggestions: ['m'],
    create: () => model,
  }
}

function turnOf({ text = '', calls = [], tokens = [0, 0], stop }: Said, count: number): ModelTurn {
  return {
    message: {
      role: 'assistant',
      text,
      calls: calls.map(({ tool, args, call_id }, index) => ({
        call_id: call_id ?? `c${count}_${index}`,
        tool,
        args,
      })),
    },
    reasoning: '',
    usage: { ...NO_USAGE, input_tokens: tokens[0], output_tokens: tokens[1] },
    stop: stop ?? (calls.length > 0 ? 'tool_calls' : 'end'),
  }
}

/** Where clean-up is registered: the context of a test, or a world. */
export interface Cleanups {
  after(end: () => void | Promise<void>): void
}

/** Folders of tests that have ended. */
const ended: string[] = []

/** A thread of a process that was played dead may still be writing: such a folder goes later. */
function removeEnded(): void {
  for (const folder of ended.splice(0)) {
    try {
      rmSync(folder, { recursive: true, force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error
      ended.push(folder)
    }
  }
}
process.on('exit', removeEnded)

/**
 * A scratch folder; `in memory` prefers a file system without a disk. It is removed when the next
 * test asks for a folder, not in a clean-up of its own test: that would run before the engine is
 * closed.
 */
export function scratch(t: Cleanups, medium: 'on disk' | 'in memory' = 'on disk'): string {
  removeEnded()
  const base = medium === 'in memory' && isWritable('/dev/shm') ? '/dev/shm' : tmpdir()
  const folder = realpathSync(mkdtempSync(join(base, 'runwright-test-')))
  t.after(() => void ended.push(folder))
  return folder
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** An engine in a scratch folder; it is closed after the test. */
export async function openEngine(
  t: Cleanups,
  {
    cwd = scratch(t), providers, ...options
  }: Partial<EngineOptions> & { readonly cwd?: string } = {},
): Promise<{ readonly engine: RunEngine; readonly cwd: string }> {
  const engine = await RunEngine.open({
    store: new MemoryStore(),
    roots: [cwd],
    // Their events would be in every log.
    checkpoints: 'off',
    // Each would make a copy twice, which has tests of its own.
    sealedChecks: 'off',
    defaultModel: providers === undefined ? 'builtin:repair' : 'test:m',
    providers: [...(providers ?? []), repairModel()],
    ...options,
  })
  t.after(() => engine.close())
  return { engine, cwd }
}

/** A memory store that survives a close, for the next engine. */
export function keepOpen(store: MemoryStore): MemoryStore {
  return new Proxy(store, {
    get: (target, name) => {
      if (name === 'close') return () => Promise.resolve()
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

/** Follows a run to its end, or to the first event that `until` accepts. */
export async function follow(
  engine: RunEngine,
  runId: string,
  until?: (event: AgentEvent) => boolean,
): Promise<AgentEvent[]> {
  const events: AgentEvent[] = []
  for await (const batch of await engine.subscribe(runId)) {
    for (const { json } of batch) {
      const event = JSON.parse(json) as AgentEvent
      events.push(event)
      if (until?.(event) === true) return events
    }
  }
  return events
}

/** True if a run waits for a human. */
export function atGate({ kind }: AgentEvent): boolean {
  return kind === 'human_check_required'
}

/** Returns the payloads of the events of a kind. */
export function payloads<K extends EventKind>(
  events: readonly AgentEvent[],
  kind: K,
): EventPayloads[K][] {
  const found = events.filter((event) => event.kind === kind)
  return found.map(({ payload }) => payload as EventPayloads[K])
}

/** Creates a run and follows it to its end. */
export async function runToEnd(
  engine: RunEngine,
  request: JsonObject,
): Promise<{ readonly events: AgentEvent[]; readonly details: RunDetails }> {
  const { details } = await engine.create(request)
  const events = await follow(engine, details.run_id)
  return { events, details: await engine.get(details.run_id) }
}
