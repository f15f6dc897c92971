/**
 * The start request and the gate answer: their schemas; parsing and defaults of the former.
 *
 * @module
 */
import { type JsonObject, mapTexts, plainCopy } from '../../internal/json.js'
import { storableText } from '../../internal/text.js'
import { InvalidRequestError } from '../errors.js'
import type {
  Approval, ApprovalMode, ApprovalRules, Compaction, RunRequest, WorkspaceMode,
} from '../events.js'
import type { ImagePart, ModelSettings } from '../model.js'
import type { Attempts, ChooseBy, Delegation } from '../run-tree.js'
import {
  HOLDOUT_SCHEMA, holdoutViolations, type HoldoutRequest,
} from '../goals/holdout/held-out-tests.js'
import { checkRequest, prepareSchema } from '../check-schema.js'
import { globViolations } from '../goals/may-change.js'
import {
  decodeBase64, imageType, IMAGE_TYPES, MAX_IMAGE_BYTES, MAX_IMAGES, MAX_IMAGES_BYTES,
} from '../images.js'
import type { JsonSchema, SchemaViolation } from '../schema.js'

/** Bytes of a goal, a command or instructions. */
const GOAL_BYTES = 32_768
/** Bytes of the schema of a result, as JSON. */
const SCHEMA_BYTES = 32_768
/** Characters of feedback at a gate. */
const FEEDBACK_CHARACTERS = 16_384

/** Attempts of a run. */
const MAX_ATTEMPTS = 16
/** Levels of delegates below a run, and how many a run may start. */
export const MAX_DEPTH = 3
export const MAX_CHILDREN = 16

/** Models that may take over, at most. */
const MAX_FALLBACKS = 8

/** Tools that a request may name. */
const MAX_TOOLS = 256

/** Globs that a request may name. */
const MAX_GLOBS = 100

const APPROVAL_MODE: JsonSchema = { type: 'string', enum: ['never', 'writes', 'all'] }

export const MAY_CHANGE: Exclude<JsonSchema, boolean> = {
  type: 'array',
  maxItems: MAX_GLOBS,
  items: { type: 'string', minLength: 1, maxLength: 1_024 },
  description:
    "Files of the check that count as the run's, as globs, and keys of a package.json, as " +
    'package.json#exports. Never what the command runs, or settings of its runner.',
}

/** The schema of a start request, used both to validate and to document it. */
export const START_REQUEST_SCHEMA: JsonSchema = {
  type: 'object',
  title: 'RunStartRequest',
  required: ['goal'],
  additionalProperties: false,
  properties: {
    goal: {
      type: 'string',
      minLength: 1,
      maxLength: GOAL_BYTES,
      description:
        'What the run pursues: a named goal such as node-test, `shell: <command>`, or free text ' +
        'with `check`.',
    },
    cwd: {
      type: 'string',
      minLength: 1,
      maxLength: 4096,
      description:
        "The project's folder, below a root that the host allows the caller; a relative path " +
        'begins at the first root. Default: the first root.',
    },
    model_name: {
      type: 'string',
      minLength: 1,
      maxLength: 256,
      description: 'Name of the language model.',
    },
    fallback_models: {
      type: 'array',
      minItems: 1,
      maxItems: MAX_FALLBACKS,
      items: { type: 'string', minLength: 1, maxLength: 256 },
      description:
        'The models that take over in turn when the one before refuses, fails or takes no ' +
        'conversation of this length. Default: none.',
    },
    images: {
      type: 'array',
      minItems: 1,
      maxItems: MAX_IMAGES,
      items: {
        type: 'object',
        required: ['media_type', 'data'],
        additionalProperties: false,
        properties: {
          media_type: { type: 'string', enum: IMAGE_TYPES },
          data: { type: 'string', minLength: 4, description: 'Base64.' },
        },
      },
      description: 'What the model sees with the goal, if it takes images.',
    },
    max_iterations: {
      type: 'integer',
      minimum: 1,
      maximum: 1000,
      default: 20,
      description: 'Bound on iterations.',
    },
    hitl_enabled: {
      type: 'boolean',
      default: false,
      description: 'Stop at a human gate after each iteration.',
    },
    check: {
      type: 'string',
      minLength: 1,
      maxLength: GOAL_BYTES,
      description: 'Shell command that verifies a free-text goal by its exit code.',
    },
    approval: {
      default: 'never',
      description: 'Which single tool calls wait for a human.',
      anyOf: [
        APPROVAL_MODE,
        {
          type: 'object',
          required: ['tools'],
          additionalProperties: false,
          properties: {
            default: { ...APPROVAL_MODE, default: 'never' },
            tools: {
              type: 'object',
              maxProperties: MAX_TOOLS,
              additionalProperties: { type: 'string', enum: ['never', 'always'] },
              description: 'Exceptions, by the names of tools.',
            },
          },
        },
      ],
    },
    tools: {
      type: 'array',
      minItems: 1,
      maxItems: MAX_TOOLS,
      items: { type: 'string', minLength: 1, maxLength: 64 },
      description: 'The tools that the run may use, by name. Default: all that the host offers.',
    },
    max_total_tokens: {
      type: 'integer',
      minimum: 1,
      description: 'Token budget, input and output.',
    },
    max_cost_usd: { type: 'number', minimum: 0.000001, description: 'Cost budget in US dollars.' },
    max_seconds: {
      type: 'number',
      minimum: 1,
      maximum: 2_592_000,
      description: 'Time budget in seconds of work; waiting for humans does not count.',
    },
    max_tool_calls: { type: 'integer', minimum: 1, description: 'Bound on tool calls that run.' },
    temperature: {
      type: 'number', minimum: 0, maximum: 2,
      description: "Of the model. Default: the host's or the provider's.",
    },
    reasoning_effort: {
      type: 'string',
      enum: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
      description: "How much the model thinks. Default: the host's or the provider's.",
    },
    max_output_tokens: {
      type: 'integer', minimum: 16, maximum: 10_000_000,
      description: "Tokens of one answer. Default: the host's or the provider's.",
    },
    workspace: {
      type: 'string',
      enum: ['in_place', 'isolated', 'none'],
      description:
        'Work in `cwd`, in a private copy of it whose changes are applied later, or, for the ' +
        "goal `result`, in no folder. Default: the host's.",
    },
    checkpoints: {
      type: 'string',
      enum: ['off'],
      description: 'Keep nothing of what the run changes.',
    },
    apply: {
      type: 'string',
      enum: ['on_achieved', 'manual'],
      description:
        'Apply the changes of an isolated run as soon as its goal is achieved? Default: manual, ' +
        'but on_achieved for attempts.',
    },
    sealed_checks: {
      type: 'string',
      enum: ['require', 'prefer', 'off'],
      description:
        "Must the goal be met in a sealed copy too? Only stricter than the host's setting counts.",
    },
    allow_dependency_changes: {
      type: 'boolean',
      description: 'Let the goal be met with other dependencies than at the start.',
    },
    may_change: { ...MAY_CHANGE, minItems: 1 },
    setup: {
      type: 'string',
      minLength: 1,
      maxLength: GOAL_BYTES,
      description:
        'Shell command that runs once before the first check, such as npm ci; if it fails, the ' +
        'run does, too. After a crash in the middle, and in a copy made anew, it runs again.',
    },
    attempts: {
      type: 'object',
      required: ['count'],
      additionalProperties: false,
      description: 'Let several isolated runs attempt the goal, and take the changes of one.',
      properties: {
        count: { type: 'integer', minimum: 1, maximum: MAX_ATTEMPTS },
        models: {
          type: 'array',
          minItems: 1,
          maxItems: MAX_ATTEMPTS,
          items: { type: 'string', minLength: 1, maxLength: 256 },
          description: 'The models of the attempts, in turn. Default: `model_name`.',
        },
        choose: {
          type: 'string',
          enum: ['first', 'smallest', 'human'],
          default: 'first',
          description:
            'The first that achieves the goal; of all that do, the one with the smallest change, ' +
            'or the one that a human chooses.',
        },
      },
    },
    delegation: {
      type: 'object',
      additionalProperties: false,
      description:
        "Let the run start others that work for it, within the host's limits. Default: none.",
      properties: {
        depth: {
          type: 'integer', minimum: 1, maximum: MAX_DEPTH, default: 1,
          description: 'Levels of runs below this one.',
        },
        children: {
          type: 'integer', minimum: 1, maximum: MAX_CHILDREN, default: 4,
          description: 'Runs that each of them may start.',
        },
      },
    },
    instructions: {
      type: 'string',
      minLength: 1,
      maxLength: GOAL_BYTES,
      description: 'What the model is told besides the goal, after what the host tells it.',
    },
    project_instructions: {
      type: 'boolean',
      default: true,
      description: "Give the model the project's `AGENTS.md`? The host may switch this off.",
    },
    compaction: {
      type: 'string',
      enum: ['summary', 'drop'],
      description:
        'What stands in place of turns that no longer fit into the context window: a summary by ' +
        "the model, or nothing. Default: the host's.",
    },
    result_schema: {
      type: 'object',
      description:
        'JSON Schema (2020-12) of an object: the run ends with a `result` that matches it. At ' +
        `most ${SCHEMA_BYTES} bytes.`,
    },
    holdout: HOLDOUT_SCHEMA,
    metadata: {
      type: 'object',
      maxProperties: 32,
      additionalProperties: { type: 'string', maxLength: 2048 },
      description: 'Names and values of your own.',
    },
  },
}

/** The schema of an answer to a gate, used both to validate and to document it. */
export const RESUME_SCHEMA: JsonSchema = {
  type: 'object',
  title: 'ResumeRequest',
  required: ['decision'],
  additionalProperties: false,
  properties: {
    decision: {
      type: 'string',
      enum: ['approve', 'abort', 'reject'],
      description: '`reject` only at a gate for single tool calls.',
    },
    gate_id: {
      type: 'string',
      minLength: 1,
      maxLength: 64,
      description: 'Default: the gate that is open.',
    },
    feedback: { type: 'string', maxLength: FEEDBACK_CHARACTERS, description: 'Told to the model.' },
    attempt: {
      type: 'integer',
      minimum: 1,
      maximum: MAX_ATTEMPTS,
      description: 'At a gate of kind `choice`: the attempt whose changes are taken.',
    },
    edits: {
      type: 'object',
      // As many as one answer of a model may call.
      maxProperties: 128,
      description: 'At a gate for tool calls: changes by call_id.',
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        properties: {
          decision: { type: 'string', enum: ['approve', 'reject'] },
          args: { type: 'object' },
          feedback: { type: 'string', maxLength: FEEDBACK_CHARACTERS },
        },
      },
    },
  },
}

/** A start request as sent, valid by {@link START_REQUEST_SCHEMA}. */
export type StartRequest = {
  readonly goal: string
  /** Never in the log; see `request/holdouts.ts`. */
  readonly holdout?: HoldoutRequest
  readonly attempts?: Pick<Attempts, 'count'> & Partial<Attempts>
  readonly delegation?: Partial<Delegation>
  readonly project_instructions?: boolean
  readonly compaction?: Compaction
  readonly approval?: ApprovalMode | (Partial<ApprovalRules> & Pick<ApprovalRules, 'tools'>)
} & {
  // The others have different forms in requests and logs.
  readonly [K in Exclude<
    keyof RunRequest,
    'goal' | 'attempts' | 'delegation' | 'project_instructions' | 'compaction' | 'approval'
  >]?: NonNullable<RunRequest[K]>
}

/**
 * Validates a start request. {@link completeRequest} adds the defaults later, when folder and model
 * are resolved.
 *
 * @throws {@link InvalidRequestError} with a violation per invalid field.
 */
export function parseStartRequest(value: unknown): StartRequest {
  const request = value as StartRequest
  const violations = [...startViolations(value)]
  if (violations.length === 0) {
    if (request.goal.trim() === '') {
      violations.push({ pointer: '/goal', detail: 'must not be blank' })
    }
    if (request.setup?.trim() === '')
      violations.push({ pointer: '/setup', detail: 'must not be blank' })
    for (const field of ['goal', 'check', 'setup', 'instructions'] as const) {
      if (Buffer.byteLength(request[field] ?? '') > GOAL_BYTES) {
        violations.push({
          pointer: `/${field}`,
          detail: `must be at most ${GOAL_BYTES} bytes long`,
        })
      }
    }
    const unusable =
      request.result_schema === undefined ? null : schemaViolation(request.result_schema)
    if (unusable !== null) violations.push(unusable)
    violations.push(...globViolations(request.may_change ?? []))
  }
  if (violations.length === 0 && request.images !== undefined)
    violations.push(...imageViolations(request.images))
  if (violations.length > 0) throw new InvalidRequestError(violations)
  // Copies: what is frozen does not change with the caller's objects.
  const { images, result_schema } = request
  return {
    ...request,
    ...(images !== undefined && { images: images.map((image) => ({ ...image })) }),
    ...(result_schema !== undefined && { result_schema: structuredClone(result_schema) }),
  }
}

/** What providers would refuse, which would end the run. */
function imageViolations(images: readonly ImagePart[]): readonly SchemaViolation[] {
  let total = 0
  for (const [i, { data, media_type }] of images.entries()) {
    const bytes = decodeBase64(data)
    total += bytes?.length ?? 0
    const type = bytes === null ? null : imageType(bytes)
    const pointer = `/images/${i}`
    if (bytes === null) return [{ pointer: `${pointer}/data`, detail: 'must be base64' }]
    if (type !== media_type) {
      const is = type ?? 'no PNG, JPEG, GIF or WebP'
      return [{ pointer: `${pointer}/media_type`, detail: `must be that of the bytes: ${is}` }]
    }
    if (bytes.length > MAX_IMAGE_BYTES)
      return [{ pointer: `${pointer}/data`, detail: `must be at most ${MAX_IMAGE_BYTES} bytes` }]
  }
  const detail = `must have at most ${MAX_IMAGES_BYTES} bytes together`
  return total > MAX_IMAGES_BYTES ? [{ pointer: '/images', detail }] : []
}

/**
 * What is wrong with the schema of a result; null for one that can be used. It comes from a caller
 * who may be anybody.
 */
export function schemaViolation(given: unknown): SchemaViolation | null {
  const pointer = '/result_schema'
  // Before anything that walks it: it may be of any depth.
  const copy = plainCopy(given, SCHEMA_BYTES, true)
  if (copy.problem !== null) return { pointer, detail: copy.problem }
  if (Buffer.byteLength(JSON.stringify(copy.value)) > SCHEMA_BYTES)
    return { pointer, detail: `must be at most ${SCHEMA_BYTES} bytes long, as JSON` }
  const schema = copy.value as JsonObject
  if (schema['type'] !== 'object')
    return { pointer: `${pointer}/type`, detail: 'must be "object": a result is an object' }
  try {
    prepareSchema(schema, '$', true)
    return null
  } catch (error) {
    return { pointer, detail: `cannot be used: ${(error as Error).message}` }
  }
}

function startViolations(value: unknown): readonly SchemaViolation[] {
  if (typeof value !== 'object' || value === null || !('holdout' in value))
    return checkRequest(START_REQUEST_SCHEMA, value)
  // The violations of a schema quote what is wrong.
  const { holdout, ...rest } = value
  return [...checkRequest(START_REQUEST_SCHEMA, rest), ...holdoutViolations(holdout)]
}

/** How the winner is chosen unless a request says so. */
export const CHOOSE: ChooseBy = 'first'

/** What {@link completeRequest} cannot know of a request. */
export interface ResolvedParts {
  /** Real path of the working directory. */
  readonly cwd: string
  readonly modelName: string
  readonly workspace: WorkspaceMode
  readonly attempts: Attempts | undefined
  readonly delegation: Delegation | undefined
  readonly compaction: Compaction
  /** The names of the models that may take over. */
  readonly fallbacks: readonly string[]
}

/** The settings of a request for its model; undefined when it has none. */
export function settingsOf(request: ModelSettings): ModelSettings | undefined {
  const { temperature, reasoning_effort, max_output_tokens } = request
  if ((temperature ?? reasoning_effort ?? max_output_tokens) === undefined) return undefined
  return {
    ...(temperature !== undefined && { temperature }),
    ...(reasoning_effort !== undefined && { reasoning_effort }),
    ...(max_output_tokens !== undefined && { max_output_tokens }),
  }
}

/** The request with all defaults, to be frozen in the log. */
export function completeRequest(
  request: StartRequest,
  { cwd, modelName, workspace, attempts, delegation, compaction, fallbacks }: ResolvedParts,
): RunRequest {
  const { checkpoints, instructions, sealed_checks, allow_dependency_changes: others } = request
  const apply = request.apply ?? (attempts === undefined ? undefined : 'on_achieved')
  return {
    goal: request.goal,
    cwd,
    model_name: modelName,
    max_iterations: request.max_iterations ?? 20,
    hitl_enabled: request.hitl_enabled ?? false,
    check: request.check ?? null,
    approval: completeApproval(request.approval),
    max_total_tokens: request.max_total_tokens ?? null,
    max_cost_usd: request.max_cost_usd ?? null,
    max_seconds: request.max_seconds ?? null,
    max_tool_calls: request.max_tool_calls ?? null,
    metadata: { ...request.metadata },
    ...settingsOf(request),
    ...(workspace !== 'in_place' && { workspace }),
    ...(checkpoints !== undefined && { checkpoints }),
    ...(apply !== undefined && { apply }),
    ...(sealed_checks !== undefined && { sealed_checks }),
    ...(others === true && { allow_dependency_changes: others }),
    ...(request.may_change !== undefined && { may_change: [...request.may_change] }),
    ...(request.setup !== undefined && { setup: request.setup }),
    ...(attempts !== undefined && { attempts }),
    ...(delegation !== undefined && { delegation }),
    ...(instructions !== undefined && { instructions }),
    ...(request.project_instructions === false && { project_instructions: false }),
    ...(request.tools !== undefined && { tools: [...request.tools] }),
    ...(compaction === 'summary' && { compaction }),
    ...(fallbacks.length > 0 && { fallback_models: fallbacks }),
    ...(request.images !== undefined && { images: [...request.images] }),
    ...(request.result_schema !== undefined && { result_schema: request.result_schema }),
  }
}

/** One without exceptions is a word. */
function completeApproval(given: StartRequest['approval'] = 'never'): Approval {
  if (typeof given === 'string') return given
  const { default: mode = 'never', tools } = given
  return Object.keys(tools).length === 0 ? mode : { default: mode, tools: { ...tools } }
}

/** The start request that results in the same frozen request. */
export function requestAgain(request: RunRequest): JsonObject {
  // Without a folder, there is none to name. Earlier versions took texts that are not storable.
  const given = mapTexts(request, storableText, '')
  const entries = Object.entries(given).filter(([, value]) => value !== null && value !== '')
  // Whatever the host's defaults are by now.
  return { workspace: 'in_place', compaction: 'drop', ...Object.fromEntries(entries) } as JsonObject
}
