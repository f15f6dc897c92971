/**
 * Which changed files the programs of a workspace name: those of the check, its scripts, and the
 * code, as it is now and as it was at the start.
 *
 * @module
 */
import { posix } from 'node:path'
import { LongWork } from '../../../internal/time.js'
import { pythonPlugins } from '../runner-files.js'
import { languageOf } from './file-kinds.js'
import type { ListedFile } from './list-files.js'
import { Mentions } from './mentions.js'
import { optionalFilesIn, optionalInShell } from './presence.js'
import { ReferenceFinder } from './references.js'

/** The texts of a workspace in which a run has changed some files. */
export interface Texts {
  /** The command with the scripts that it leads to, as they were at the start. */
  readonly script: string
  readonly files: readonly ListedFile[]
  /** As the run left it; null for what is no text. */
  now(path: string): Promise<string | null>
  /** As at the start; null also for a new file. */
  atStart(path: string): Promise<string | null>
  readonly signal: AbortSignal
}

/** What the workspace refers to. */
export interface WhoNames {
  /** The command and its scripts. */
  readonly script: Mentions
  /** Other programs of the check, as at the start. */
  readonly check: Mentions
  /** Tests among them. */
  readonly tests: Mentions
  /** What programs of the check look for, and can do without. */
  readonly optional: Mentions
  /** Settings of tools. */
  readonly settings: Mentions
  /** Code, and the entries of packages. */
  readonly codeAtStart: Mentions
  readonly codeNow: Mentions
  readonly hasCode: boolean
}

/** On which side a program is. */
export type Side = 'test' | 'settings' | 'check' | 'code'

/**
 * Finds who names the files `changed`. Each text is read once.
 *
 * @param sideOf tells the side of a program, by its path and its text
 */
export async function whoNames(
  changed: Iterable<string>,
  texts: Texts,
  sideOf: (path: string, text: string) => Side,
): Promise<WhoNames> {
  const finder = await ReferenceFinder.to({ paths: changed })
  const found = {
    script: new Mentions(), check: new Mentions(), tests: new Mentions(), optional: new Mentions(),
    settings: new Mentions(), codeAtStart: new Mentions(), codeNow: new Mentions(), hasCode: false,
  }
  found.script.add(await finder.find('', texts.script, 'shell'))
  found.settings.add(await finder.find('', loadedBy(texts.script), 'python'))
  const optional = optionalInShell(texts.script).join('\n')
  if (optional !== '') found.optional.add(await finder.find('', optional, 'shell'))
  const work = new LongWork()
  for (const { path, kind } of texts.files) {
    if (work.isDue) await work.next()
    texts.signal.throwIfAborted()
    const language = languageOf(path)
    const isManifest = posix.basename(path) === 'package.json'
    const isProgram = language !== 'data' || posix.extname(path) === ''
    const isText = isManifest || isProgram || sideOf(path, '') === 'settings'
    if (kind !== 'file' || !isText) continue
    const [before, now] = [await texts.atStart(path), await texts.now(path)]
    if (isManifest) {
      const named = partsOf(before ?? '{}')
      found.codeAtStart.add(await finder.find(path, named.entries, 'javascript'))
      found.codeNow.add(await finder.find(path, partsOf(now ?? '{}').entries, 'javascript'))
      found.settings.add(await finder.find(path, named.settings, 'javascript'))
      continue
    }
    const old = before === null ? null : await finder.find(path, before, language)
    if (old !== null) {
      const side = sideOf(path, before!)
      if (side === 'code') found.codeAtStart.add(old)
      else found.check.add(old)
      if (side === 'test') found.tests.add(old)
      if (side === 'settings' && language !== 'make') {
        found.settings.add(old)
        found.settings.add(await finder.find(path, loadedBy(before!), 'python'))
      }
      if (side === 'code' && language !== 'data') found.hasCode = true
      if (side !== 'code') {
        const isShell = language === 'shell' || language === 'make'
        const parts = (isShell ? optionalInShell : optionalFilesIn)(before!).join('\n')
        if (parts !== '') found.optional.add(await finder.find(path, parts, language))
        continue
      }
    }
    if (now === null) continue
    const isCode = old !== null || sideOf(path, now) === 'code'
    if (isCode) found.codeNow.add(now === before ? old! : await finder.find(path, now, language))
  }
  return found
}

const LOADS =
  /(?<![\w-])(?:-r|--require|--import|--(?:experimental-)?loader)[ =]{0,9}["']?([\w./@-]{1,200})/g

/** What options and settings have Node and pytest load before the tests, line by line. */
function loadedBy(text: string): string {
  const found = [...pythonPlugins(text), ...[...text.matchAll(LOADS)].map(([, name]) => name!)]
  return found.map((name) => `'${name}'`).join('\n')
}

const NOT_SETTINGS = ['scripts', 'files', 'workspaces']
const ENTRIES = ['main', 'module', 'browser', 'types', 'bin', 'exports', 'imports']

/** The strings of a manifest, line by line: its entries, and what tools find in it. */
function partsOf(text: string): { readonly entries: string; readonly settings: string } {
  const parts = { entries: [] as string[], settings: [] as string[] }
  try {
    const all = Object.entries({ ...(JSON.parse(text) as object) })
    for (const [key, value] of all) {
      const shown = JSON.stringify(value) ?? ''
      if (ENTRIES.includes(key)) parts.entries.push(shown)
      else if (!NOT_SETTINGS.includes(key)) parts.settings.push(shown)
    }
  } catch {
    // Tools would not read it either.
  }
  return { entries: parts.entries.join('\n'), settings: parts.settings.join('\n') }
}
