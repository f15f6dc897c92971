/**
 * Settings above the folder of a run, which those in it name (`"extends": "../base.json"`). They
 * are not in its copies, and not in its baseline; so they are compared by content on their own.
 *
 * @module
 */
import { join, posix } from 'node:path'
import { hash } from '../../../internal/hash.js'

import { readRegularFile } from '../small-file.js'
import { isConfiguration } from './file-kinds.js'
import { TextReader } from './read-texts.js'

const MAX_FILES = 50
const MAX_SETTINGS = 200
/** Names that are looked for, whether or not there is such a file. */
const MAX_NAMES = 1_000
const MAX_BYTES = 512 * 1024
const ABOVE = /(?<![\w./@-])(?:\.\/)?((?:\.\.\/)+[\w@.+/-]{1,200})/g
const SETTINGS =
  /(?:^|\/)(?:package\.json|pyproject\.toml|setup\.cfg|tox\.ini|\w*[Mm]akefile|[\w.-]+\.mk)$/
const EXTENSIONS = ['', '.json', '.js', '.cjs', '.mjs', '.ts', '/tsconfig.json']

/**
 * The SHA-256 of each file above `cwd` that a command, or settings among `files`, name, and those
 * that such files name in turn; by relative path. Packages are no settings.
 */
export async function settingsAbove(
  cwd: string,
  script: string,
  files: readonly string[],
): Promise<Readonly<Record<string, string>>> {
  const texts = new TextReader(cwd)
  const found = new Map<string, string>()
  const names = new Set<string>()
  const note = async (text: string, folder: string): Promise<void> => {
    for (const [, named] of text.matchAll(ABOVE)) {
      const path = posix.join(folder, named!)
      if (!path.startsWith('../') || path.split('/').includes('node_modules')) continue
      if (names.size >= MAX_NAMES || names.has(path)) continue
      names.add(path)
      for (const extension of EXTENSIONS) {
        if (found.size >= MAX_FILES || found.has(path + extension)) break
        const content = await contentOf(cwd, path + extension)
        if (content === null) continue
        found.set(path + extension, hash('sha256', content))
        await note(content.toString('utf8'), posix.dirname(path + extension))
        break
      }
    }
  }
  await note(script, '.')
  const settings = files.filter((path) => SETTINGS.test(path) || isConfiguration(path))
  for (const path of settings.slice(0, MAX_SETTINGS)) {
    await note((await texts.read(path)) ?? '', posix.dirname(path))
  }
  return Object.fromEntries(found)
}

/** How these files differ now: a phrase for each. */
export async function settingsChanges(
  cwd: string,
  before: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const changes: string[] = []
  for (const [path, known] of Object.entries(before)) {
    const content = await contentOf(cwd, path)
    if (content === null) changes.push(`${path} was deleted`)
    else if (hash('sha256', content) !== known) changes.push(`${path} was modified`)
  }
  return changes
}

async function contentOf(cwd: string, path: string): Promise<Buffer | null> {
  const content = await readRegularFile(join(cwd, path), MAX_BYTES, 0)
  return typeof content === 'string' ? null : content
}
