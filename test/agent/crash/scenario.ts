import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  NO_USAGE, type JsonObject, type Model, type ModelProvider, type RunRecord, type ToolCall,
} from 'runwright/agent'

/** The run that a child drives. */
export interface DrivePlan {
  /** Folder of the store. */
  readonly directory: string
  /** Parent of the folders of the runs. */
  readonly root: string
  readonly generation: number
  /** Runs that are live at the start: those of the store, then new ones. */
  readonly runs: number
  readonly request: JsonObject
  /**
   * Until it is killed: a new run for each that ends, and in each run an endless command between
   * its two iterations.
   */
  readonly endless: boolean
}

/** Makes folders for a store and the runs in it. */
export function placeIn(folder: string, name: string): Pick<DrivePlan, 'directory' | 'root'> {
  const root = join(folder, name, 'work')
  mkdirSync(root, { recursive: true })
  return { directory: join(folder, name, 'data'), root }
}

/** The goal of every run, met by the last calls of the script. */
export const GOAL = 'shell: grep -q two a && test -f done'

/** Calls of idempotent tools, each of which must have succeeded exactly once. */
const IDEMPOTENT: readonly string[] = ['w1', 'e1', 'w2']
/** The endless command. */
const HANG = 'h1'

type Call = Omit<ToolCall, 'call_id'> & { readonly call_id: string }
const call = (call_id: string, tool: string, args: JsonObject): Call => ({ call_id, tool, args })

/** Every effect class, in two iterations. Each command appends a line to a file when it runs. */
function script(hangs: boolean): readonly (readonly Call[])[] {
  return [
    [call('r1', 'list_files', {}), call('w1', 'write_file', { path: 'a', content: 'one\n' })],
    [call('b1', 'bash', { command: 'echo b1 >> ran' })],
    [],
    ...(hangs
      ? [[call(HANG, 'bash', { command: 'echo h1 >> ran; echo $$ > pid; exec sleep 600' })]]
      : []),
    [
      call('e1', 'edit_file', { path: 'a', old_text: 'one', new_text: 'two' }),
      call('r2', 'read_file', { path: 'a' }),
      call('b2', 'bash', { command: 'echo b2 >> ran' }),
    ],
    [call('w2', 'write_file', { path: 'done', content: '' })],
  ]
}

/** A model that depends only on the number of its turns in the conversation. */
export function scenario(hangs: boolean): ModelProvider {
  const turns = script(hangs)
  const model: Model = {
    name: 'crash:m',
    isLanguageModel: false,
    contextWindow: null,
    prices: null,
    complete: ({ messages }) => {
      const calls = turns[messages.filter(({ role }) => role === 'assistant').length] ?? []
      return Promise.resolve({
        message: { role: 'assistant', text: '', calls },
        reasoning: '',
        usage: { ...NO_USAGE, input_tokens: 10, output_tokens: 1 },
        stop: 'end',
      })
    },
  }
  return {
    id: 'crash',
    description: 'a script',
    isLanguageModel: false,
    suggestions: [],
    create: () => model,
  }
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
function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter((line) => line !== '')
  } catch {
    return []
  }
}
