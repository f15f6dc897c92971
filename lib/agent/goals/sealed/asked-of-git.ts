/**
 * What a check asks git for, as git itself tells it in the copy: files of commits that a script
 * names (`git show main:want.txt`), and files that are in no commit and that git is not told to
 * ignore. A run may make commits, branches and tags, and ignore what it makes itself.
 *
 * @module
 */
import type { AskedOfGit } from '../../check-files.js'
import { isDelivered, isNeverOfChecks, isPage, languageOf } from './file-kinds.js'
import { indexOf } from './git-index.js'
import { existingIn } from './file-states.js'

/** A copy in which commands can be run. */
interface Copy {
  readonly root: string
  /** What a command prints; null when it fails. */
  output(command: string): Promise<string | null>
}

const ASKS_FOR_FILE = new RegExp(
  '\\bgit((?: -C [\\w./-]{1,200})?) (?:show|cat-file (?:-p|blob)) ["\']?' +
    '([\\w./@~^-]{1,100}):([\\w./@-]{1,300})',
  'g',
)
const ASKS_FOR_UNTRACKED = /\bgit\b[^\n]{0,100}(?:--exclude-standard|\bstatus\b|\badd\b|\bclean\b)/
const LIST = 'git -c core.quotePath=false ls-files --others --exclude-standard'
const MAX_QUESTIONS = 20
const MAX_UNTRACKED = 2_000

/** True if the script asks git for committed or untracked files. */
export function asksForFiles(script: string): boolean {
  return questionsIn(script).size > 0 || ASKS_FOR_UNTRACKED.test(script)
}

function questionsIn(script: string): ReadonlySet<string> {
  const questions = new Set<string>()
  for (const [, folder, commit, path] of script.matchAll(ASKS_FOR_FILE)) {
    // Code may be committed as well as changed.
    if (languageOf(path!) !== 'data' || isDelivered(path!) || isPage(path!)) continue
    if (questions.size < MAX_QUESTIONS) questions.add(`git${folder} rev-parse ${commit}:${path}`)
  }
  return questions
}

/** Asks git in a copy; undefined for a check that asks nothing of this kind. */
export async function askGit(copy: Copy, script: string): Promise<AskedOfGit | undefined> {
  if (!asksForFiles(script)) return undefined
  const questions = questionsIn(script)
  const asksForUntracked = ASKS_FOR_UNTRACKED.test(script)
  const committed: Record<string, string> = {}
  for (const question of questions) {
    const name = await copy.output(question)
    if (name !== null) committed[question.slice(question.lastIndexOf(' ') + 1)] = name.trim()
  }
  const list = asksForUntracked ? await copy.output(LIST) : null
  const paths = (list ?? '').split('\n').filter((path) => path !== '' && !isNeverOfChecks(path))
  return { committed, untracked: paths.slice(0, MAX_UNTRACKED) }
}

/** How the answers differ in a later copy: a phrase for each. */
export async function changedAnswers(
  copy: Copy,
  script: string,
  before: AskedOfGit,
): Promise<readonly string[]> {
  const now = await askGit(copy, script)
  const changes: string[] = []
  for (const [name, object] of Object.entries(before.committed)) {
    if (now?.committed[name] !== object) changes.push(`${name} was modified in git`)
  }
  const seen = new Set(now?.untracked)
  const hidden = before.untracked.filter((path) => !seen.has(path))
  const index = hidden.length === 0 ? null : await indexOf(copy.root)
  for (const path of await existingIn(copy.root, hidden)) {
    if (index?.has(path) !== true) changes.push(`${path} was hidden from git`)
  }
  return changes
}
