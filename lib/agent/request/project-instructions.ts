/**
 * The `AGENTS.md` of a project. A repository may be hostile, so
 *
 * 1. only folders from the one of the run up to its root are looked into;
 * 2. a file must really lie in the folder in which it was found: a link that leads out of it, which
 *    a run could not read either, is passed over, and so are files of secrets and what is no text;
 * 3. no more is read than is used.
 *
 * @module
 */
import { lstat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { WorkspaceError } from '../errors.js'
import { throwIfExhausted } from '../exhaustion.js'
import type { ProjectInstructions } from '../instructions.js'
import type { Redactor } from '../redaction/redactor.js'
import { readStart } from '../workspace/files.js'
import { isPrivateKey } from '../workspace/left-out.js'
import { confine, isInside } from '../workspace/paths.js'

const NAME = 'AGENTS.md'
/** Bytes of a file that are used. */
const MAX_BYTES = 32_768

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
    const { content, size: bytes, path } = await readStart(confinement, NAME, MAX_BYTES)
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
