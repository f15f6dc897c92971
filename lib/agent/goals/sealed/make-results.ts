/** What makefiles of a check include, and what make would take for a result. @module */
import { posix } from 'node:path'

import { compileGlobs, isLiteral } from '../../workspace/globs.js'
import { makeRules, type MakeRules } from './make-rules.js'
import type { TextReader } from './read-texts.js'

const MAIN = /^(?:GNUmakefile|makefile|Makefile)$/
const MAX_MAKEFILES = 20
const MAX_INCLUDED = 40

/** The rules of makefiles of the check, by the folder in which make runs. */
export async function rulesOfMake(
  baseline: Iterable<string>,
  texts: Pick<TextReader, 'read'>,
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
  texts: Pick<TextReader, 'read'>,
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

/** Files that rules of make say how to make: when they are there, it may take them for made. */
export function targetsOfMake(rules: ReadonlyMap<string, MakeRules>): ReadonlySet<string> {
  const found = new Set<string>()
  for (const [folder, { rules: all }] of rules) {
    for (const { target, hasRecipe } of all) {
      if (isLiteral(target) && hasRecipe) found.add(posix.join(folder, target))
    }
  }
  return found
}
