/** A bug as it is pinned, how it is planted, and the lists that are pinned. */
import { readFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** One replacement in one text. */
export interface Mutation {
  readonly operator: string
  /** In UTF-16 code units from the start of the text. */
  readonly offset: number
  readonly original: string
  readonly replacement: string
}

export interface Bug extends Mutation {
  readonly package: string
  readonly version: string
  /** Who made it: Stryker, or the operators of this folder. */
  readonly by: 'stryker' | 'own'
  readonly file: string
  readonly line: number
  /** Test files that pass in spite of it and that the repair does not see. */
  readonly heldOut: readonly string[]
}

export const HALVES = ['first', 'second'] as const
export type Half = (typeof HALVES)[number]

/** @throws Error when the text is another one than that for which the mutation was made. */
export function mutated(text: string, { offset, original, replacement }: Mutation): string {
  if (text.slice(offset, offset + original.length) !== original) {
    throw new Error(`no ${JSON.stringify(original)} at ${offset}`)
  }
  return text.slice(0, offset) + replacement + text.slice(offset + original.length)
}

export const lineOf = (text: string, offset: number): number =>
  text.slice(0, offset).split('\n').length

export async function plant(folder: string, bug: Bug): Promise<void> {
  const path = join(folder, bug.file)
  await writeFile(path, mutated(await readFile(path, 'utf8'), bug))
}

export const bugsPath = (half: Half): string =>
  new URL(`bugs-${half}.json`, import.meta.url).pathname

export const pinnedBugs = (half: Half): readonly Bug[] =>
  JSON.parse(readFileSync(bugsPath(half), 'utf8')) as readonly Bug[]

/** The first bug of each package, then the second of each, and so on. */
export function interleaved(bugs: readonly Bug[]): Bug[] {
  const turns = new Map<string, number>()
  const numbered = bugs.map((bug) => {
    const turn = turns.get(bug.package) ?? 0
    turns.set(bug.package, turn + 1)
    return { bug, turn }
  })
  return numbered.sort((a, b) => a.turn - b.turn).map(({ bug }) => bug)
}
