/** Whether two versions of a module do the same for inputs that are made of its tests' literals. */
import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RealPackage } from './packages.js'
import { seeded, type Random } from './random.js'
import { suiteEnvironment } from './suite.js'
import { testsOf } from './workspace.js'

const INPUTS = 600
const LITERALS = 400
/** Calls that must return for the comparison to say anything. */
const FEWEST_RETURNS = 20
const LITERAL = /'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|(?<![\w.])\d+(?:\.\d+)?/g

interface Probed {
  readonly returned: number
  /** What each call returned or threw, as text. */
  readonly results: readonly string[]
}

export async function behavesAlike(
  one: RealPackage, right: string, repaired: string, file: string,
): Promise<boolean> {
  const inputs = await inputsFor(one, right)
  const [before, after] = [right, repaired].map((folder) => probe(one, folder, file, inputs))
  if (!before || !after) return false
  return before.returned >= FEWEST_RETURNS &&
    JSON.stringify(before.results) === JSON.stringify(after.results)
}

async function inputsFor(one: RealPackage, folder: string): Promise<unknown[][]> {
  const random = seeded(one.name)
  const texts = await Promise.all(
    (await testsOf(one, folder)).map((path) => readFile(join(folder, path), 'utf8')),
  )
  const literals = random.shuffled(
    [...new Set(texts.flatMap((text) => text.match(LITERAL) ?? []))],
  ).slice(0, LITERALS).map((text) => (/^['"]/.test(text) ? text.slice(1, -1) : Number(text)))
  const known = [...literals, '', 'a', 0, 1, -1, 2.5, true, false, null]
  return Array.from({ length: INPUTS }, () =>
    Array.from({ length: random.below(4) }, () => valueOf(known, random, 2)),
  )
}

function valueOf(known: readonly unknown[], random: Random, depth: number): unknown {
  const kind = depth === 0 ? 0 : random.below(8)
  const some = (): unknown[] =>
    Array.from({ length: random.below(4) }, () => valueOf(known, random, depth - 1))
  if (kind === 6) return some()
  if (kind !== 7) return known[random.below(known.length)]
  const key = (): string => String(known[random.below(known.length)])
  return Object.fromEntries(some().map((value) => [key(), value]))
}

function probe(
  one: RealPackage, folder: string, file: string, inputs: readonly unknown[][],
): Probed | null {
  const isPython = one.language === 'python'
  const [program, name] = isPython ? ['python3', 'probe.py'] : ['node', 'probe.mjs']
  const path = new URL(name, import.meta.url).pathname
  const { status, stdout } = spawnSync(program, [path, file], {
    cwd: folder, input: JSON.stringify(inputs), env: suiteEnvironment(), timeout: 30_000,
    encoding: 'utf8', maxBuffer: 64 * 1024 * 1024,
  })
  if (status !== 0) return null
  return JSON.parse(stdout.replaceAll(folder, '').split('\n').at(-1)!) as Probed
}
