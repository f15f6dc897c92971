/** The repair fixtures: projects whose tests pass, and bugs to plant in them one at a time. */
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import { cp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ModelRequest, ModelTurn } from 'runwright/agent'
import {
  builtinRepair, drive, type DriveResult, FIXTURES, runCommand, scratchCopy,
} from './driver.js'

export interface Bug {
  readonly name: string
  readonly file: string
  readonly find: string
  readonly replace: string
  readonly repairable?: boolean
}

export interface Fixture {
  readonly project: string
  readonly check: string
  readonly needs?: string
  readonly bugs: readonly Bug[]
}

/**
 * Every fixture is a project whose tests pass, and a list of bugs to plant in it, one at a time.
 */
export const fixtures: readonly Fixture[] = readdirSync(FIXTURES).map((project) => {
  const fixture = JSON.parse(
    readFileSync(join(FIXTURES, project, 'fixture.json'), 'utf8'),
  ) as Fixture
  return { ...fixture, project }
})

/** Why the check of a project cannot run here, or false. */
export async function missing({ needs }: Fixture): Promise<string | false> {
  if (needs === undefined) return false
  const { exitCode } = await runCommand(`python3 -m ${needs} --version`, FIXTURES)
  return exitCode === 0 ? false : `${needs} is not installed`
}

/** As a project has it: sandboxes show no packages of other folders. */
async function installTsx(folder: string): Promise<void> {
  const packages = fileURLToPath(new URL('../..', import.meta.resolve('tsx')))
  for (const name of ['tsx', 'esbuild', '@esbuild'])
    await cp(join(packages, name), join(folder, 'node_modules', name), { recursive: true })
}

/** Copies a project, plants a bug, asserts that the check fails, and runs the repair. */
export async function repair(
  fixture: Fixture,
  bug: Bug,
  options: { readonly onTurn?: (request: ModelRequest, turn: ModelTurn) => void } = {},
): Promise<
  DriveResult & {
    readonly broken: string
    readonly after: string
    readonly touchedTests: boolean
  }
> {
  const original = join(FIXTURES, fixture.project)
  await using copy = await scratchCopy(original)
  await rm(join(copy.path, 'fixture.json'))
  if (fixture.check.includes('--import tsx')) await installTsx(copy.path)
  const file = join(copy.path, bug.file)
  const sound = await readFile(file, 'utf8')
  const broken = sound.replace(bug.find, () => bug.replace)
  if (bug.repairable !== false) assert.notEqual(broken, sound, 'the bug is planted')
  await writeFile(file, broken)
  const result = await drive({
    model: builtinRepair(),
    cwd: copy.path,
    check: fixture.check,
    ...options,
  })
  assert.ok(result.turns > 0, 'the check failed with the bug')
  const changed = (
    await runCommand(
      'diff -rq -x fixture.json -x node_modules -x ".*" -x __pycache__ ' +
        `'${original}' '${copy.path}'`,
      copy.path,
    )
  ).output
  const touchedTests = changed
    .split('\n')
    .some((line) => /test|spec/.test(line.replace(FIXTURES, '')))
  return { ...result, broken, after: await readFile(file, 'utf8'), touchedTests }
}
