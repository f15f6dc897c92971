/**
 * Held-out tests: tests of the goal that the run can never read. What they are, what hosts and
 * requests write, and their limits.
 *
 * @module
 */
import { checkOptions, type OptionKinds } from '../../../internal/options.js'
import { isStorable, MUST_BE_STORABLE } from '../../../internal/text.js'
import type { JsonSchema, SchemaViolation } from '../../schema.js'

/** What the model hears when they fail: that they do, or how many of how many. */
export type HoldoutTell = 'verdict' | 'count'

/** Held-out tests as requests write them. */
export type HoldoutRequest = {
  /** The text of each file by its path in the folder of the run; it may replace one there. */
  readonly files: { readonly [path: string]: string }
  /** The shell command that runs them, in a copy of the folder that has the files. */
  readonly command: string
  /** @defaultValue 'verdict' */
  readonly tell?: HoldoutTell
  /** How many of them may be skipped, at most a million. @defaultValue 0 */
  readonly allowed_skips?: number
}

/** Held-out tests as hosts give them: with `files`, or with a `folder` that has them. */
export interface Holdout extends Omit<HoldoutRequest, 'files' | 'tell' | 'allowed_skips'> {
  /** The text of each file by its path in the folder of the run; it may replace one there. */
  readonly files?: HoldoutRequest['files'] | undefined
  /**
   * A folder of this machine, by absolute path, which no run can reach: neither below nor above a
   * folder that runs may work in. Its files are read when a run is created.
   */
  readonly folder?: string | undefined
  /** What the model hears when they fail. @defaultValue 'verdict' */
  readonly tell?: HoldoutTell | undefined
  /** How many of them may be skipped, at most a million. @defaultValue 0 */
  readonly allowed_skips?: number | undefined
}

const HOLDOUT: OptionKinds<Holdout> = {
  files: 'object', folder: 'string', tell: 'string', allowed_skips: 'number',
  command: 'string! the command that runs the held-out tests',
}

/** Held-out tests as the engine has them in memory. */
export interface HeldOutTests {
  /** By paths with `/` that are relative to the folder of the run. */
  readonly files: ReadonlyMap<string, Uint8Array>
  readonly command: string
  readonly tell: HoldoutTell
  /** Null in runs of earlier versions: any number. */
  readonly allowedSkips: number | null
}

/** What an evaluation needs of its run. */
export interface HoldoutRun {
  /** How often they were evaluated so far. */
  readonly evaluations: () => number
  /** @throws {@link StoreError} when they cannot be read. */
  readonly tests: () => Promise<HeldOutTests>
  /** Resolves once it is durable that the evaluation of this number begins. */
  readonly begin: (number: number) => Promise<void>
}

/** How often the held-out tests of one run are evaluated: each time tells something about them. */
export const MAX_EVALUATIONS = 3
/** Files of one run. */
export const MAX_FILES = 1_000
/** Bytes of all files of one run, with their paths. */
export const MAX_BYTES: number = 8 * 1024 * 1024
const MAX_PATH_BYTES = 1_024
const MAX_COMMAND_BYTES = 32_768
const MAX_SKIPS = 1_000_000

const TELL: readonly unknown[] = ['verdict', 'count']

/** The field `holdout` of a start request. */
export const HOLDOUT_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['files', 'command'],
  additionalProperties: false,
  properties: {
    files: {
      type: 'object',
      maxProperties: MAX_FILES,
      additionalProperties: { type: 'string' },
      description:
        'The text of each file by its path in `cwd`: at most 8 MiB, and the host may bound ' +
        'requests more tightly.',
    },
    command: {
      type: 'string',
      minLength: 1,
      maxLength: MAX_COMMAND_BYTES,
      description: 'Shell command that runs them, such as `node --test held-out/*.test.js`.',
    },
    tell: {
      type: 'string',
      enum: ['verdict', 'count'],
      default: 'verdict',
      description: 'What the model hears when they fail: that they do, or how many.',
    },
    allowed_skips: {
      type: 'integer',
      minimum: 0,
      maximum: MAX_SKIPS,
      default: 0,
      description: 'How many of them may be skipped, as their runner reports it.',
    },
  },
  description:
    'Tests that the run can never read, and that must pass as well: see "Held-out tests" in the ' +
    'documentation. They are evaluated at most three times.',
}

/**
 * What is wrong with held-out tests as a request writes them; nothing of them is quoted, not even
 * their paths. An empty list means that they are a {@link HoldoutRequest}.
 */
export function holdoutViolations(value: unknown): readonly SchemaViolation[] {
  if (!isObject(value)) return [{ pointer: '/holdout', detail: 'must be an object' }]
  const violations: SchemaViolation[] = []
  const report = (field: string, detail: string): void => {
    violations.push({ pointer: `/holdout${field}`, detail })
  }
  const { allowed_skips: skips = 0, command, files, tell } = value
  const known = Object.keys(HOLDOUT_SCHEMA.properties ?? {})
  if ('folder' in value) report('/folder', 'can only be named by the host: send `files`')
  else if (Object.keys(value).some((name) => !known.includes(name)))
    report('', `must have no fields but ${known.join(', ')}`)
  if (!isCommand(command)) {
    const detail = 'must be a command of 1 to 32768 bytes without NUL or half of a character'
    report('/command', detail)
  }
  if (tell !== undefined && !TELL.includes(tell)) report('/tell', 'must be "verdict" or "count"')
  if (!Number.isInteger(skips) || (skips as number) < 0 || (skips as number) > MAX_SKIPS) {
    report('/allowed_skips', `must be an integer from 0 to ${MAX_SKIPS}`)
  }
  const problem = 'folder' in value ? null : filesProblem(files)
  if (problem !== null) report('/files', problem)
  return violations
}

/** @throws TypeError that says what is wrong with the held-out tests of a host. */
export function checkHoldout(given: Holdout): void {
  checkOptions(given, HOLDOUT, 'holdout')
  const { allowed_skips = 0, command, files, folder, tell } = given
  if ((files === undefined) === (folder === undefined))
    throw new TypeError('holdout must have either files or a folder')
  // A folder is read when a run is created.
  const request = { allowed_skips, command, files: files ?? { any: '' } }
  const [wrong] = holdoutViolations({ ...request, ...(tell !== undefined && { tell }) })
  if (wrong === undefined) return
  throw new TypeError(`${wrong.pointer.slice(1).replaceAll('/', '.')} ${wrong.detail}`)
}

/** Valid held-out tests of a request. */
export function heldOutTests(request: HoldoutRequest): HeldOutTests {
  const { allowed_skips: allowedSkips = 0, command, files, tell = 'verdict' } = request
  const contents = Object.entries(files).map(([path, text]) => [path, Buffer.from(text)] as const)
  return { files: new Map(contents), command, tell, allowedSkips }
}

function isCommand(value: unknown): value is string {
  if (typeof value !== 'string' || value.trim() === '' || !isStorable(value)) return false
  return Buffer.byteLength(value) <= MAX_COMMAND_BYTES
}

function filesProblem(files: unknown): string | null {
  if (!isObject(files)) return 'must be an object of texts by path'
  const entries = Object.entries(files)
  const notText = entries.findIndex(([, text]) => typeof text !== 'string')
  if (notText >= 0) return `file ${notText + 1} must be a text`
  const unfit = entries.findIndex(([, text]) => !isStorable(text as string))
  if (unfit >= 0) return `file ${unfit + 1} ${MUST_BE_STORABLE}`
  const sizes = entries.map(([path, text]) => [path, Buffer.byteLength(text as string)] as const)
  return sizesProblem(sizes)
}

/** What is wrong with the paths or sizes of files; null for nothing. No path is quoted. */
export function sizesProblem(sizes: readonly (readonly [string, number])[]): string | null {
  if (sizes.length === 0) return 'must have at least one file'
  if (sizes.length > MAX_FILES) return `must be at most ${MAX_FILES} files`
  const bytes = sizes.reduce((sum, [path, size]) => sum + Buffer.byteLength(path) + size, 0)
  if (bytes > MAX_BYTES) return `must be at most ${MAX_BYTES / 1024 / 1024} MiB in all`
  const wrong = sizes.findIndex(([path]) => !isPath(path))
  if (wrong >= 0) {
    return (
      `the path of file ${wrong + 1} must be relative, with / between its parts, and none of ` +
      'these may be ., .., .git or node_modules'
    )
  }
  // File systems exist that take these for the same name.
  const names = sizes.map(([path]) => path.normalize('NFC').toLowerCase())
  const files = new Set(names)
  if (files.size < names.length) return 'two files must not have the same path'
  const isFolder = names.some((name) => foldersOf(name).some((folder) => files.has(folder)))
  return isFolder ? 'a file must not lie in another file' : null
}

function isPath(path: string): boolean {
  const isShort = path !== '' && Buffer.byteLength(path) <= MAX_PATH_BYTES
  if (!isShort || /[\\\p{Cc}\p{Cs}]/u.test(path)) return false
  if (/^[a-z]:/i.test(path)) return false
  return path.split('/').every((part) => part !== '' && !NEVER.has(part.toLowerCase()))
}

/** `.git` is replaced in the copy, and `node_modules` may be mounted over what is written there. */
const NEVER: ReadonlySet<string> = new Set(['.', '..', '.git', 'node_modules'])

function foldersOf(path: string): readonly string[] {
  const parts = path.split('/')
  return parts.slice(1).map((_, i) => parts.slice(0, i + 1).join('/'))
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
