import { join } from 'node:path'

import { throwIfExhausted } from '../../exhaustion.js'
import { readFolder } from '../../workspace/read-folder.js'
import { compileGlobs } from '../../workspace/globs.js'
import { readSmallFile } from '../small-file.js'

const MAX_ENTRIES = 20_000
const MAX_DEPTH = 12

/** True when the folder holds one of these files, as readable text. */
export async function hasFile(cwd: string, names: readonly string[]): Promise<boolean> {
  for (const name of names) if ((await readSmallFile(join(cwd, name))) !== null) return true
  return false
}

/** The file nearest to the top that a glob matches, outside dependencies and hidden folders. */
export async function findFile(cwd: string, globs: readonly string[]): Promise<string | null> {
  const matches = compileGlobs(globs)
  let entriesSeen = 0
  let level = ['']
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth++) {
    const below: string[] = []
    for (const folder of level) {
      const entries = await readFolder(join(cwd, folder), MAX_ENTRIES + 1)
      for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
        entriesSeen += 1
        if (entriesSeen > MAX_ENTRIES) return null
        const path = folder === '' ? entry.name : `${folder}/${entry.name}`
        if (entry.isDirectory()) {
          if (!entry.name.startsWith('.') && !SKIPPED.has(entry.name)) below.push(path)
        } else if (entry.isFile() && matches(path)) return path
      }
    }
    level = below
  }
  return null
}

const SKIPPED = new Set([
  'node_modules', '__pycache__', 'venv', 'dist', 'build', 'target', 'coverage',
])

/** The scripts of package.json: null without a package.json, undefined when it cannot be parsed. */
export async function packageScripts(
  cwd: string,
): Promise<Readonly<Record<string, unknown>> | null | undefined> {
  const text = await readSmallFile(join(cwd, 'package.json'))
  if (text === null) return null
  try {
    const parsed: unknown = JSON.parse(text.replace(/^\uFEFF/, ''))
    const scripts = (parsed as { scripts?: unknown } | null)?.scripts
    return typeof scripts === 'object' && scripts !== null ? { ...scripts } : {}
  } catch {
    return undefined
  }
}

/** Names of the dependencies in package.json, those for development included. */
export async function packageDependencies(cwd: string): Promise<readonly string[]> {
  try {
    const parsed: unknown = JSON.parse((await readSmallFile(join(cwd, 'package.json'))) ?? '{}')
    const { dependencies, devDependencies } = parsed as Record<string, object | undefined>
    return Object.keys({ ...dependencies, ...devDependencies })
  } catch (error) {
    throwIfExhausted(error)
    return []
  }
}

/** True for a test script other than the placeholder of `npm init`. */
export function isTestScript(script: unknown): script is string {
  return typeof script === 'string' && script.trim() !== '' && !script.includes('no test specified')
}

/** Targets of the makefile, or null without one. */
export async function makeTargets(cwd: string): Promise<readonly string[] | null> {
  for (const name of ['GNUmakefile', 'makefile', 'Makefile']) {
    const rules = (await readSmallFile(join(cwd, name)))?.matchAll(
      /^([\w./ -][\w./ \t-]*)::?(?!=)/gm,
    )
    if (rules !== undefined) return [...rules].flatMap((match) => match[1]!.trim().split(/\s+/))
  }
  return null
}
