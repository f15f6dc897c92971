/**
 * What the model of a new run is told besides its goal: by the host, and by its project. All of it
 * is found once, when the run is created, and frozen in its log.
 *
 * @module
 */
import { lstat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { frozen } from '../../internal/freeze.js'
import { InstructionsError, WorkspaceError } from '../errors.js'
import type { RunOwner, RunRequest } from '../events.js'
import { throwIfExhausted } from '../exhaustion.js'
import type { FrozenInstructions, ProjectInstructions } from '../instructions.js'
import type { Redactor } from '../redaction/redactor.js'
import { readStart } from '../workspace/files.js'
import { isPrivateKey } from '../workspace/left-out.js'
import { confine, isInside } from '../workspace/paths.js'

/** A run that is about to be created, as the functions get it that a host gives. */
export interface RequestedRun {
  readonly request: RunRequest
  /** Null for callers without one. */
  readonly principal: RunOwner | null
}

/** The option `instructions` of {@link EngineOptions}; null for none. */
export type InstructionsOption =
  string | ((run: RequestedRun) => string | null | Promise<string | null>)

/** The option `systemPrompt` of {@link EngineOptions}. */
export type SystemPromptOption = (run: RequestedRun) => string | Promise<string>

/** Bytes of a text of the host. */
const MAX_BYTES = 131_072

/** What finding instructions needs of its engine. */
export interface InstructionsContext {
  readonly instructions: InstructionsOption | undefined
  readonly systemPrompt: SystemPromptOption | undefined
  readonly projectInstructions: boolean
  /** Folders that do not exist for runs. */
  readonly closed: readonly string[]
  /** Tells of which files no content may be in the log. */
  readonly holdsSecrets: (path: string) => boolean
  readonly redactor: Redactor
}

/**
 * What a new run freezes.
 *
 * @param roots folders of which one contains that of the run
 * @throws {@link InstructionsError} when the host gives no usable text.
 */
export async function findInstructions(
  request: RunRequest,
  roots: readonly string[],
  context: InstructionsContext,
  owner: RunOwner,
): Promise<FrozenInstructions> {
  const { instructions, redactor, systemPrompt } = context
  const isNobody = owner.id === null && owner.tenant === null
  const run = { request, principal: isNobody ? null : owner }
  const system = systemPrompt && (await textOf('systemPrompt', systemPrompt, run))
  const host =
    typeof instructions === 'function'
      ? await textOf('instructions', instructions, run)
      : instructions
  return {
    ...(system !== undefined && { system: redactor.text(system) }),
    ...(host !== undefined && { host: redactor.text(host) }),
    ...(await projectPart(request, roots, context)),
  }
}

/** What a fork freezes: what its source did, and the project's text anew if its request says so. */
export async function forkedInstructions(
  request: RunRequest,
  { project, ...ofHost }: FrozenInstructions,
  isReadAnew: boolean,
  roots: readonly string[],
  context: InstructionsContext,
): Promise<FrozenInstructions> {
  if (isReadAnew) return { ...ofHost, ...(await projectPart(request, roots, context)) }
  const isKept = context.projectInstructions && request.project_instructions !== false
  return { ...ofHost, ...(isKept && project !== undefined && { project }) }
}

async function projectPart(
  { cwd, project_instructions, workspace }: RunRequest,
  roots: readonly string[],
  context: InstructionsContext,
): Promise<Pick<FrozenInstructions, 'project'>> {
  const isOff = !context.projectInstructions || project_instructions === false
  if (isOff || workspace === 'none') return {}
  const project = await readProjectInstructions(cwd, roots, context)
  return project === null ? {} : { project }
}

/** @throws {@link InstructionsError} */
async function textOf(
  option: 'instructions' | 'systemPrompt',
  given: (run: RequestedRun) => unknown,
  run: RequestedRun,
): Promise<string | undefined> {
  let text: unknown
  try {
    // A copy: what the host does with it changes no run.
    text = await given(frozen(structuredClone(run)))
  } catch (cause) {
    throw new InstructionsError(`${option}(run) of the host threw an error`, { cause })
  }
  if (text === null && option === 'instructions') return undefined
  const problem = textProblem(text)
  if (problem === null) return text as string
  throw new InstructionsError(`${option}(run) of the host must return ${problem}`)
}

/** What a text of the host must be; null if it is. */
export function textProblem(text: unknown): string | null {
  if (typeof text !== 'string') return `a text, got ${text === null ? 'null' : typeof text}`
  if (text.trim() === '') return 'a text that is not blank'
  if (text.includes('\0')) return 'a text without NUL'
  const bytes = Buffer.byteLength(text)
  return bytes <= MAX_BYTES ? null : `a text of at most ${MAX_BYTES} bytes, got ${bytes}`
}

/**
 * The `AGENTS.md` of a project. A repository may be hostile, so
 *
 * 1. only folders from the one of the run up to its root are looked into;
 * 2. a file must really lie in the folder in which it was found: a link that leads out of it, which
 *    a run could not read either, is passed over, and so are files of secrets and what is no text;
 * 3. no more is read than is used.
 */

const NAME = 'AGENTS.md'
/** Bytes of a file that are used. */
const MAX_FILE_BYTES = 32_768

interface Rules {
  /** Folders that do not exist for runs. */
  readonly closed: readonly string[]
  /** Tells of which files no content may be in the log. */
  readonly holdsSecrets: (path: string) => boolean
  readonly redactor: Redactor
}

/** That of the folder, else the nearest one above it that is in a root; null for none. */
export async function readProjectInstructions(
  cwd: string,
  roots: readonly string[],
  rules: Rules,
): Promise<ProjectInstructions | null> {
  let [folder, path] = [cwd, NAME]
  while (roots.some((root) => isInside(folder, root))) {
    const found = await readIn(folder, rules)
    if (found !== null) return { path, ...found }
    const above = dirname(folder)
    if (above === folder) break
    folder = above
    path = `../${path}`
  }
  return null
}

async function readIn(
  folder: string,
  { closed, holdsSecrets, redactor }: Rules,
): Promise<Omit<ProjectInstructions, 'path'> | null> {
  try {
    await lstat(join(folder, NAME)) // usually there is none, and all else costs more
    const confinement = await confine(folder, undefined, closed)
    const { content, size: bytes, path } = await readStart(confinement, NAME, MAX_FILE_BYTES)
    const isSecret = [NAME, path].some(holdsSecrets) || isPrivateKey(content)
    if (isSecret || content.includes(0)) return null
    const truncated = bytes > content.length
    const text = new TextDecoder().decode(content, { stream: truncated })
    const shown = truncated ? wholeLines(text, redactor) : redactor.text(text)
    return shown.trim() === '' ? null : { text: shown, bytes, truncated }
  } catch (error) {
    throwIfExhausted(error)
    if (error instanceof WorkspaceError || (error as NodeJS.ErrnoException).code !== undefined)
      return null
    throw error
  }
}

/** The whole lines of a text whose end is cut, unless it has but one; without secrets. */
function wholeLines(text: string, redactor: Redactor): string {
  const shown = redactor.part(text, 0, text.length, true)
  const end = shown.lastIndexOf('\n')
  return end > 0 ? shown.slice(0, end + 1) : shown
}
