import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  NO_USAGE, type JsonObject, type Message, type Model, type ModelProvider, type RunRecord,
  type ToolCall,
} from 'runwright/agent'

/** The run that a child drives. */
export interface DrivePlan {
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

/** The goal of every run, met by the last calls of the script. */
export const GOAL = 'shell: grep -q two a && test -f done'

/** Calls of idempotent tools, each of which must have succeeded exactly once. */
const IDEMPOTENT: readonly string[] = ['w1', 'e1', 'w2']
/** The endless command. */
const HANG = 'h1'

type Call = Omit<ToolCall, 'call_id'> & { readonly call_id: string }
const call = (call_id: string, tool: string, args: JsonObject): Call => ({ call_id, tool, args })

/** The exit code of a call that was stopped. */
export const STOPPED = 130
/** Ends the id of a call that is made again. */
const AGAIN = '-again'

const isRepeat = (calls: readonly ToolCall[]): boolean =>
  calls.some(({ call_id }) => call_id.endsWith(AGAIN))

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

/** The calls of the last turn that were stopped, once more; commands write another line then. */
function repeatsOf(messages: readonly Message[]): readonly Call[] {
  const turn = messages.findLast(({ role }) => role === 'assistant')
  const calls = turn?.role === 'assistant' ? turn.calls : []
  const stopped = messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1)
  return calls.flatMap(({ call_id, tool, args }) => {
    const isStopped = stopped.some((one) =>
      one.role === 'tool' && one.call_id === call_id && one.exit_code === STOPPED)
    if (!isStopped) return []
    const { command } = args
    const again = `${call_id}${AGAIN}`
    const isCommand = typeof command === 'string'
    return [call(again, tool, isCommand ? { command: command.replace(call_id, again) } : args)]
  })
}

/**
 * A model that follows the script, and repeats calls that an engine has stopped as it was closed.
 * It depends only on the conversation.
 */
export function scenario(hangs: boolean): ModelProvider {
  const turns = script(hangs)
  const model: Model = {
    name: 'crash:m',
    isLanguageModel: false,
    contextWindow: null,
    prices: null,
    complete: ({ messages }) => {
      const made = messages.filter((one) => one.role === 'assistant' && !isRepeat(one.calls))
      const repeats = repeatsOf(messages)
      const calls = repeats.length > 0 ? repeats : (turns[made.length] ?? [])
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
    // An edit that had been made when it was stopped cannot be made again.
    if (exit_code === STOPPED || call_id === `e1${AGAIN}`) continue
    if (IDEMPOTENT.includes(call_id.replace(AGAIN, ''))) {
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
