/**
 * What make would take for a result, so that it does not run what makes it: a file called `test`,
 * or one that looks newer than what it is made of.
 *
 * @module
 */
import { lstat } from 'node:fs/promises'
import { join, posix } from 'node:path'

import { unreadable } from '../../exhaustion.js'
import { compileGlobs, isLiteral } from '../../workspace/globs.js'
import { languageOf } from './file-kinds.js'
import { listFiles } from './list-files.js'
import { makeRules, type MakeRules } from './make-rules.js'
import type { TextReader } from './read-texts.js'

const MAIN = /^(?:GNUmakefile|makefile|Makefile)$/
const MAX_MAKEFILES = 20
const MAX_INCLUDED = 40
/** Made by rules that make has by itself. */
const BUILT_IN = '**/*.o'

/** The rules of makefiles of the check, by the folder in which make runs. */
export async function rulesOfMake(
  baseline: Iterable<string>,
  texts: TextReader,
): Promise<ReadonlyMap<string, MakeRules>> {
  const known = new Set(baseline)
  const found = new Map<string, MakeRules>()
  for (const path of known) {
    const folder = posix.dirname(path)
    if (!MAIN.test(posix.basename(path)) || found.size >= MAX_MAKEFILES) continue
    const text = await withIncluded(path, folder, known, texts)
    found.set(folder, makeRules(text))
  }
  return found
}

async function withIncluded(
  path: string,
  folder: string,
  known: ReadonlySet<string>,
  texts: TextReader,
): Promise<string> {
  const all: string[] = []
  const paths = new Set([path])
  // Grows while it is walked.
  for (const one of paths) {
    const text = (await texts.read(one)) ?? ''
    all.push(text)
    for (const [, names] of text.matchAll(/^[-s]?include[ \t](.*)$/gm)) {
      for (const name of names!.trim().split(/\s+/)) {
        const included = posix.join(folder, name)
        if (known.has(included) && paths.size < MAX_INCLUDED) paths.add(included)
      }
    }
  }
  return all.join('\n')
}

/** Is this new file one that a makefile includes where it exists? */
export function includedByMake(
  rules: ReadonlyMap<string, MakeRules>,
): (path: string) => boolean {
  const globs = [...rules].flatMap(([folder, { optional }]) =>
    optional.filter((glob) => /[\w-]{2}/.test(glob)).map((glob) => posix.join(folder, glob)),
  )
  return compileGlobs(globs)
}

/** Targets that make takes for made when they are there, since they are made of nothing. */
export function madeOfNothing(rules: ReadonlyMap<string, MakeRules>): ReadonlySet<string> {
  const found = new Set<string>()
  for (const [folder, { rules: all }] of rules) {
    for (const { target, hasPrerequisites, hasRecipe } of all) {
      if (isLiteral(target) && hasRecipe && !hasPrerequisites) found.add(posix.join(folder, target))
    }
  }
  return found
}

/**
 * Results of make that were made, or changed, since the run started: they may look newer than what
 * they are made of.
 *
 * @param cwd the folder of the run
 * @param since in ms: what has this change time, or a newer one, was made by the run
 */
export async function freshResults(
  cwd: string,
  rules: ReadonlyMap<string, MakeRules>,
  since: number,
  signal?: AbortSignal,
): Promise<readonly string[]> {
  if (rules.size === 0) return []
  const named = new Set<string>()
  const globs: string[] = []
  for (const [folder, { rules: all }] of rules) {
    globs.push(posix.join(folder, BUILT_IN))
    for (const { target, hasPrerequisites } of all) {
      const path = posix.join(folder, target)
      if (!isLiteral(target)) globs.push(path)
      else if (hasPrerequisites) named.add(path)
    }
  }
  const isResult = compileGlobs(globs)
  for (const { path } of await listFiles(cwd, signal)) {
    // Sources that a rule could make may as well be written by people.
    const isSource = languageOf(path) !== 'data' && !/\.(?:o|a|so|class|wasm)$/.test(path)
    if (!isSource && isResult(path)) named.add(path)
  }
  const fresh: string[] = []
  for (const path of named) {
    const stats = await lstat(join(cwd, path)).catch(unreadable)
    const isPlain = stats?.isFile() === true || stats?.isDirectory() === true
    if (isPlain && stats.ctimeMs >= since) fresh.push(path)
  }
  return fresh
}
