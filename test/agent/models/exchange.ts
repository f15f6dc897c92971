import { readFileSync } from 'node:fs'
import type {
  JsonObject,
  Message,
  ModelRequest,
  ModelTurn,
  StreamDecoder,
  ToolSpec,
  WireContext,
} from 'runwright/agent'
import { SseParser } from 'runwright/http'

/** One recorded exchange with a provider. */
export interface Recording {
  readonly request: { readonly path: string; readonly body: JsonObject }
  readonly response: {
    readonly status: number
    readonly headers: Readonly<Record<string, string>>
    readonly body: unknown
  }
}

/** Reads a recording by its file name, without `.json`. */
export function recording(name: string): Recording {
  const file = new URL(`../../fixtures/models/${name}.json`, import.meta.url)
  return JSON.parse(readFileSync(file, 'utf8')) as Recording
}

/** A request for a turn, with defaults for what a test omits. */
export function modelRequest(part: Partial<ModelRequest> = {}): ModelRequest {
  return {
    system: '',
    messages: [{ role: 'user', text: 'Go.' }],
    tools: [],
    signal: new AbortController().signal,
    run: { run_id: 'r', iteration: 1, turn: 0, goal: 'g', check: null, cwd: '/w' },
    ...part,
  }
}

/** A tool with one required text argument. */
export function tool(name: string, argument = 'path'): ToolSpec {
  return {
    name,
    description: `Does ${name}.`,
    parameters: {
      type: 'object',
      properties: { [argument]: { type: 'string' } },
      required: [argument],
      additionalProperties: false,
    },
  }
}

/** A conversation of the goal, one turn with calls, and their results. */
export function afterCalls(
  turn: ModelTurn,
  outputs: readonly { readonly output: string; readonly exit_code?: number }[],
): Message[] {
  return [
    { role: 'user', text: 'Go.' },
    turn.message,
    ...turn.message.calls.map((call, i): Message => ({
      role: 'tool',
      call_id: call.call_id,
      tool: call.tool,
      output: outputs[i]!.output,
      exit_code: outputs[i]!.exit_code ?? 0,
    })),
  ]
}

export const context: WireContext = { model: 'test:model', secrets: ['secret-key-123'] }

/** Decodes a stream that arrives in these pieces. */
export function decodePieces(
  decoder: StreamDecoder,
  pieces: Iterable<Uint8Array>,
): { readonly turn: ModelTurn; readonly visible: string } {
  const parser = new SseParser()
  let visible = ''
  for (const piece of pieces) {
    for (const event of parser.feed(piece)) if (!decoder.done) visible += decoder.push(event)
  }
  return { turn: decoder.finish(), visible }
}

/** The bytes split in two after 0, `step`, 2 x `step`, … bytes. */
export function* cutsInTwo(text: string, step = 1): Generator<Uint8Array[]> {
  const bytes = Buffer.from(text)
  for (let at = 0; at <= bytes.length; at += step) yield [bytes.subarray(0, at), bytes.subarray(at)]
}

/** Deterministic random numbers from 0 to below 1. */
export function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
}

/** Splits the bytes into random pieces, most of them short. */
export function randomPieces(text: string, random: () => number): Uint8Array[] {
  const bytes = Buffer.from(text)
  const pieces: Uint8Array[] = []
  for (let at = 0; at < bytes.length;) {
    const length = random() < 0.5 ? 1 : 1 + Math.floor(random() * 200)
    pieces.push(bytes.subarray(at, at + length))
    at += length
  }
  return pieces
}

/** The stream cut off after 0, `step`, 2 x `step`, … bytes. */
export function* prefixes(text: string, step = 1): Generator<Uint8Array> {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += step) yield bytes.subarray(0, at)
}
