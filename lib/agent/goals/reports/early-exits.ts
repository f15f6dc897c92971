/**
 * Plain scripts as checks (`node check.js`, `python check.py`): code under test that ends the
 * process with code 0 makes them succeed before they have checked anything.
 *
 * 1. A module in NODE_OPTIONS and a `sitecustomize` on PYTHONPATH watch the first process that runs
 *    a script of the workspace, behind npm, make or a shell too; they remove themselves from the
 *    environment there, so that programs which a check starts are not watched.
 * 2. Whoever ends the process is the innermost function of the workspace on the stack: a library
 *    ends it for whom it was called by.
 * 3. An end is written down only if it is not the script's own; what belongs to the check is known
 *    to the reader alone ({@link scriptEnds}).
 *
 * 4. Scripts of Node get canaries as well, and a read-only node:assert.
 *
 * Lines of `exits/<time>-<pid>.jsonl` are `[nonce, script, file, how, isRunner]`, with null for the
 * file when the script failed and its failure was swallowed. A runner is told by its name.
 *
 * @module
 */
import { join } from 'node:path'

import { readFolder } from '../../workspace/read-folder.js'
import { brokenAssertions, silencedCanaries } from '../compare-tests.js'
import { shellCommands } from '../shell-commands.js'
import { readRegularFile } from '../small-file.js'
import { CANARIES } from './assert-canaries.js'
import { ASSERT_LOCK } from './assert-lock.js'
import { CANARY_FOLDER, readCanaries } from './canaries.js'
import { FUNCTION_PLACES } from './function-places.js'
import { NODE_EXITS, PYTHON_EXITS } from './exit-watchers.js'
import { textLines } from './text-lines.js'
import type { CanaryReport, Deed, ReportInjection, ReportPlace } from './types.js'

const MAX_FILES = 1_000
const MAX_FILE_BYTES = 64 * 1024
const FOLDER = 'exits'

/** An end of a script that was not its own. */
interface Exit {
  readonly script: string
  readonly file: string | null
  readonly how: string
  readonly isRunner: boolean
}

/** What makes scripts of Node and Python tell who ended them. */
export function injectExitWatchers({ folder, nonce, root }: ReportPlace): ReportInjection {
  const options = `--require=${join(folder, 'exits.cjs')}`
  const fill = (source: string): string =>
    source
      .replaceAll('@NONCE@', nonce)
      .replace('@HERE@', () => JSON.stringify(folder))
      .replace('@ROOT@', () => JSON.stringify(root))
      .replace('@OPTIONS@', () => JSON.stringify(options))
  return {
    files: {
      'exits.cjs': fill(NODE_EXITS),
      'sitecustomize.py': fill(PYTHON_EXITS),
      'assert-lock.cjs': ASSERT_LOCK,
      'canaries.cjs': fill(CANARIES),
      'places.cjs': fill(FUNCTION_PLACES),
      [`${CANARY_FOLDER}/.keep`]: '',
      [`${FOLDER}/.keep`]: '',
    },
    env: { NODE_OPTIONS: options, PYTHONPATH: folder },
  }
}

/** Programs that run no other one, whatever their arguments are. */
const RUNS_NO_OTHER: ReadonlySet<string> = new Set([
  ...['true', 'false', ':', 'exit', 'test', '[', 'echo'],
  ...['cat', 'cmp', 'diff', 'grep', 'head', 'ls', 'tail', 'wc'],
])

/** False if a command certainly runs no script that could be watched. */
export function mayRunScripts(command: string): boolean {
  // Signs with which the shell defines, expands or redirects something; quotes around line breaks.
  if (/[`$\\(){}<>]/.test(command)) return true
  if (/["']/.test(command) && command.includes('\n')) return true
  return shellCommands(command).some(
    ({ runs, words: [program] }) => runs && !RUNS_NO_OTHER.has(program?.text ?? ''),
  )
}

/** How the scripts of a check ended. */
export interface ScriptEnds {
  /** Why a check that succeeded proves nothing; null when they came to their own end. */
  readonly problem: string | null
  readonly deeds: readonly Deed[]
}

/** `isOfCheck` tells which files belong to the check: they may end it; no other script is one. */
export async function scriptEnds(
  place: ReportPlace,
  isOfCheck: (path: string) => boolean,
): Promise<ScriptEnds> {
  const exits = await readExits(join(place.folder, FOLDER), place.nonce)
  const canaries = await readCanaries(place)
  if (exits === 'invalid' || typeof canaries === 'string') {
    return { problem: 'the report of who ended the check was tampered with', deeds: [] }
  }
  return { problem: problemOf(exits, canaries, isOfCheck), deeds: canaries.deeds }
}

function problemOf(
  exits: readonly Exit[],
  canaries: CanaryReport,
  isOfCheck: (path: string) => boolean,
): string | null {
  for (const { script, file, how, isRunner } of exits) {
    if ((!isRunner && !isOfCheck(script)) || (file !== null && isOfCheck(file))) continue
    return file === null
      ? `${script} failed, and ${how}`
      : `${file} ended ${script} with ${how} before its end`
  }
  const silenced = canaries.unfinished.filter((script) => script === '*' || isOfCheck(script))
  return brokenAssertions(canaries) ?? silencedCanaries({ silenced })
}

async function readExits(folder: string, nonce: string): Promise<readonly Exit[] | 'invalid'> {
  const exits: Exit[] = []
  const entries = await readFolder(folder, MAX_FILES)
  for (const { name } of entries) {
    if (!name.endsWith('.jsonl')) continue
    const content = await readRegularFile(join(folder, name), MAX_FILE_BYTES)
    if (typeof content === 'string') return 'invalid'
    for (const line of textLines(content.toString('utf8'))) {
      if (line === '') continue
      const [mark, script, file, how, isRunner = false] = parse(line)
      const isExit = typeof script === 'string' && typeof how === 'string'
      if (mark !== nonce || !isExit || (file !== null && typeof file !== 'string')) return 'invalid'
      exits.push({ script, file, how, isRunner: isRunner === true })
    }
  }
  return entries.length >= MAX_FILES ? 'invalid' : exits
}

function parse(line: string): readonly unknown[] {
  try {
    const parsed: unknown = JSON.parse(line)
    return Array.isArray(parsed) ? parsed : []
  } catch {
    return []
  }
}
