/** All mutations of a file: Stryker's, and those of this folder. */
import { spawnSync } from 'node:child_process'
import { Instrumenter, type InstrumentResult } from '@stryker-mutator/instrumenter'
import type { Mutation } from './bug.js'
import { ownMutations } from './operators.js'
import type { RealPackage } from './packages.js'

const MAX_OUTPUT = 64 * 1024 * 1024

export function own(language: RealPackage['language'], path: string, text: string): Mutation[] {
  if (language === 'javascript') return ownMutations(path, text)
  const program = new URL('operators.py', import.meta.url).pathname
  const options = { input: text, encoding: 'utf8', maxBuffer: MAX_OUTPUT } as const
  const { status, stdout, stderr } = spawnSync('python3', [program], options)
  if (status !== 0) throw new Error(`${path}: ${stderr}`)
  return JSON.parse(stdout) as Mutation[]
}

const nothing = (): void => {}
const SILENT = {
  trace: nothing, debug: nothing, info: nothing, warn: nothing, error: nothing, fatal: nothing,
  isTraceEnabled: () => false, isDebugEnabled: () => false, isInfoEnabled: () => false,
  isWarnEnabled: () => false, isErrorEnabled: () => false, isFatalEnabled: () => false,
}

/** What Stryker would try, with the places and texts that it reports. */
export async function strykers(path: string, text: string): Promise<Mutation[]> {
  const instrument = (excludedMutations: string[]): Promise<InstrumentResult> =>
    new Instrumenter(SILENT).instrument(
      [{ name: path, mutate: true, content: text }],
      { plugins: null, excludedMutations, ignorers: [], noHeader: true },
    )
  // It stumbles over methods whose names are string literals.
  const { mutants } = await instrument([]).catch(() => instrument(['StringLiteral']))
  const starts = [0]
  for (const line of text.split('\n')) starts.push(starts.at(-1)! + line.length + 1)
  return mutants.map(({ mutatorName, replacement, location: { start, end } }) => {
    const offset = starts[start.line]! + start.column
    const original = text.slice(offset, starts[end.line]! + end.column)
    return { operator: mutatorName, offset, original, replacement }
  })
}
