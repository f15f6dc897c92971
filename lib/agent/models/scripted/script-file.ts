/**
 * Reads script files, `{"turns": [...]}` and perhaps a `summary`, checked by a schema before the
 * first turn is played.
 *
 * @module
 */
import { closeSync, constants, fstatSync, openSync, readSync, realpathSync } from 'node:fs'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import { parseJson } from '../../../internal/json.js'
import { ModelError } from '../../errors.js'
import { checkSchema } from '../../check-schema.js'
import type { JsonSchema } from '../../schema.js'
import type { ScriptedTurn } from './script.js'

/** What a script file holds. */
export interface Script {
  readonly turns: readonly ScriptedTurn[]
  /** Answers each request for a summary; without it, the model is not asked for any. */
  readonly summary?: ScriptedTurn
}

const MAX_SCRIPT_BYTES = 4 * 1024 * 1024

const count: JsonSchema = { type: 'integer', minimum: 0 }
const text: JsonSchema = { type: 'string' }
const texts: JsonSchema = { anyOf: [text, { type: 'array', items: text }] }

function record(
  properties: Readonly<Record<string, JsonSchema>>,
  required: readonly string[] = [],
): JsonSchema {
  return { type: 'object', properties, required, additionalProperties: false }
}

const TURN_SCHEMA: JsonSchema = record({
  text,
  reasoning: text,
  calls: {
    type: 'array',
    maxItems: 128,
    items: record(
      {
        tool: text,
        args: { type: 'object' },
        call_id: { type: 'string', minLength: 1 },
        error: text,
      },
      ['tool'],
    ),
  },
  usage: record({
    input_tokens: count,
    output_tokens: count,
    cached_tokens: count,
    reasoning_tokens: count,
  }),
  stop: {
    type: 'string',
    enum: ['end', 'tool_calls', 'length', 'refusal', 'content_filter', 'other'],
  },
  delay_ms: { type: 'integer', minimum: 0, maximum: 600_000 },
  error: record({
    code: {
      type: 'string',
      enum: [
        'ERR_AGENT_MODEL',
        'ERR_AGENT_MODEL_AUTH',
        'ERR_AGENT_MODEL_RATE_LIMIT',
        'ERR_AGENT_MODEL_QUOTA',
        'ERR_AGENT_MODEL_CONTEXT',
        'ERR_AGENT_MODEL_FILTER',
        'ERR_AGENT_MODEL_PROTOCOL',
      ],
    },
    message: text,
    retryable: { type: 'boolean' },
    retry_after_ms: count,
    model_mistake: { type: 'boolean' },
    times: count,
  }),
  expect: record({
    messages_at_least: count,
    iteration: count,
    turn: count,
    system_contains: texts,
    last_user_contains: texts,
    last_tool_result_contains: texts,
    last_tool_exit_code: { type: 'integer' },
    tool_results: count,
    tools_include: { type: 'array', items: text },
  }),
})

const SCRIPT_SCHEMA: JsonSchema = record(
  {
    description: text,
    turns: {
      type: 'array',
      maxItems: 10_000,
      items: TURN_SCHEMA,
    },
    summary: TURN_SCHEMA,
  },
  ['turns'],
)

/**
 * Parses and checks a script.
 *
 * @param source - the script's name in errors.
 * @throws `ModelError` with a pointer to what is invalid.
 */
export function parseScript(json: string, source: string): Script {
  const value = parseJson(json)
  if (value === undefined) throw problem(`${source} is not JSON`)
  const [violation] = checkSchema(SCRIPT_SCHEMA, value)
  if (violation !== undefined)
    throw problem(`${source}: ${violation.pointer || '/'} ${violation.detail}`)
  return value as unknown as Script
}

/**
 * Reads a script file inside a folder. Its real path must lie inside the real path of the folder,
 * so that a request cannot reach another file of the host by `..`, an absolute path or a symbolic
 * link.
 *
 * @throws `ModelError` when the folder has no such file, or the file is not a valid script.
 */
export function readScriptFile(folder: string, file: string): Script {
  const source = `scripted:${file}`
  const missing = (): ModelError =>
    problem(`there is no file for ${source} in the host's folder of scripts`)
  if (file === '' || file.includes('\0') || isAbsolute(file)) throw missing()
  let descriptor: number
  try {
    const root = realpathSync(folder)
    const path = realpathSync(resolve(root, file))
    const inside = relative(root, path)
    if (inside === '' || inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside))
      throw missing()
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch {
    throw missing()
  }
  try {
    const status = fstatSync(descriptor)
    if (!status.isFile()) throw missing()
    if (status.size > MAX_SCRIPT_BYTES)
      throw problem(`${source} is larger than ${MAX_SCRIPT_BYTES} bytes`)
    const content = Buffer.alloc(status.size)
    const length = readSync(descriptor, content, 0, status.size, 0)
    return parseScript(content.toString('utf8', 0, length), source)
  } finally {
    closeSync(descriptor)
  }
}

function problem(message: string): ModelError {
  return new ModelError('ERR_AGENT_MODEL', message, { retryable: false })
}
