/**
 * The requests about what a run did to its folder, and to a live run: their schemas, used both to
 * validate and to document them.
 *
 * @module
 */
import type { JsonSchema } from '../schema.js'
import type { MessageDelivery } from '../events.js'
import { MAY_CHANGE, START_REQUEST_SCHEMA, type StartRequest } from './start-request.js'

/** What to restore. */
export interface RestoreRequest {
  readonly checkpoint_id: string
  /** @defaultValue all that differ */
  readonly paths?: readonly string[] | undefined
  /** Overwrite what others changed meanwhile. @defaultValue false */
  readonly force?: boolean | undefined
}

/** Which changes of an isolated run to apply. */
export interface ApplyRequest {
  /** @defaultValue all that the run changed and is not held back */
  readonly paths?: readonly string[] | undefined
  /** Also apply the files that the verdict does not cover. @defaultValue false */
  readonly include_held_back?: boolean | undefined
  /** Only tell what would be done. @defaultValue false */
  readonly dry_run?: boolean | undefined
  /** Overwrite what others changed meanwhile. @defaultValue false */
  readonly force?: boolean | undefined
}

/** What a fork begins with, and in what it differs: any other field of a start request. */
export interface ForkRequest
  extends Partial<
    Omit<StartRequest, 'attempts' | 'goal' | 'check' | 'holdout' | 'images' | 'setup'>
  > {
  /**
   * The end of the log, the start, or the end of an iteration, by its number or by any event of it.
   *
   * @defaultValue 'end'
   */
  readonly at?:
    'end' | 'start' | { readonly iteration: number } | { readonly seq: number } | undefined
  /** Told to the model first; at most 32 KiB. */
  readonly message?: string | undefined
}

/** Text for the model of a run. */
export interface MessageRequest {
  /** At most 32 KiB. */
  readonly text: string
  /** @defaultValue 'next_turn' */
  readonly deliver?: MessageDelivery | undefined
}

/** What changes of the request of a run that has not ended. */
export interface RunUpdate {
  /** In place of the list before; empty for none. */
  readonly may_change: readonly string[]
}

/** Bytes of a message to a run. */
export const MESSAGE_BYTES = 32_768

/** Files that one request may name. */
const MAX_PATHS = 10_000

function pathsOf(description: string): JsonSchema {
  return {
    type: 'array',
    minItems: 1,
    maxItems: MAX_PATHS,
    items: { type: 'string', minLength: 1, maxLength: 4096 },
    description,
  }
}

const force: JsonSchema = {
  type: 'boolean',
  default: false,
  description: 'Overwrite what others changed meanwhile.',
}

/** Gives the folder the content of a checkpoint. */
export const RESTORE_SCHEMA: JsonSchema = {
  type: 'object',
  title: 'RestoreRequest',
  required: ['checkpoint_id'],
  additionalProperties: false,
  properties: {
    checkpoint_id: { type: 'string', minLength: 64, maxLength: 64 },
    paths: pathsOf('Only these files. Default: all that differ.'),
    force,
  },
}

/** Brings the changes of an isolated run into its `cwd`. */
export const APPLY_SCHEMA: JsonSchema = {
  type: 'object',
  title: 'ApplyRequest',
  additionalProperties: false,
  properties: {
    paths: pathsOf('Only these files. Default: all that the run changed and is not held back.'),
    include_held_back: {
      type: 'boolean',
      default: false,
      description: 'Also the files that the verdict does not cover.',
    },
    dry_run: {
      type: 'boolean',
      default: false,
      description: 'Only tell what would be done.',
    },
    force,
  },
}

const {
  attempts: _, check: __, goal: ___, holdout: ____, images: _____, setup: ______, ...startFields
} = START_REQUEST_SCHEMA.properties ?? {}

/** Starts a run from a point of another one. */
export const FORK_SCHEMA: JsonSchema = {
  type: 'object',
  title: 'ForkRequest',
  additionalProperties: false,
  properties: {
    ...startFields,
    at: {
      anyOf: [
        { type: 'string', enum: ['end', 'start'] },
        {
          type: 'object',
          required: ['iteration'],
          additionalProperties: false,
          properties: { iteration: { type: 'integer', minimum: 0 } },
        },
        {
          type: 'object',
          required: ['seq'],
          additionalProperties: false,
          properties: { seq: { type: 'integer', minimum: 1 } },
        },
      ],
      default: 'end',
      description: 'The end of an iteration, by its number or by any event of it.',
    },
    message: {
      type: 'string',
      minLength: 1,
      maxLength: MESSAGE_BYTES,
      description: 'Told to the model first.',
    },
  },
}

/** Text for the model of a run that has not ended. */
export const MESSAGE_SCHEMA: JsonSchema = {
  type: 'object',
  title: 'MessageRequest',
  required: ['text'],
  additionalProperties: false,
  properties: {
    text: { type: 'string', minLength: 1, maxLength: MESSAGE_BYTES },
    deliver: {
      type: 'string',
      enum: ['next_turn', 'next_iteration'],
      default: 'next_turn',
      description: 'Heard before the next model call, or before the first one of an iteration.',
    },
  },
}

/** Changes the request of a run that has not ended. */
export const UPDATE_SCHEMA: JsonSchema = {
  type: 'object',
  title: 'RunUpdate',
  required: ['may_change'],
  additionalProperties: false,
  properties: { may_change: MAY_CHANGE },
}
