import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { EngineOptions, EventPayloads, JsonObject, RunEngine } from 'runwright/agent'
import { bash, payloads, type Said } from '../../../helpers/engine.js'
import type { Files } from '../../../helpers/files.js'
import { World, type Run } from '../../../helpers/world.js'

/** Of this process: what other tests have on the disk at the same time is not what is searched. */
const OWN = randomBytes(6).toString('hex')

/** Unlike anything else: each in another place of the held-out tests. */
export const MARKERS: { readonly [place in 'content' | 'path' | 'command' | 'output']: string } = {
  content: `Zq7Content${OWN}`,
  path: `Yp3Path${OWN}`,
  command: `Wv5Command${OWN}`,
  output: `Ut9Output${OWN}`,
}

/** `add()` is wrong, and its visible test shows one case. */
export const PROJECT: Files = {
  'package.json': '{ "type": "commonjs" }\n',
  'lib/add.js': 'exports.add = (a, b) => a - b\n',
  'test/add.test.js': `
const test = require('node:test')
const assert = require('node:assert')
const { add } = require('../lib/add.js')
test('adds', () => assert.equal(add(1, 2), 3))
`,
}

export const GOAL = 'shell: node --test test/'

const CASES = [[1, 2, 3], [4, 4, 8], [10, -3, 7], [0, 0, 0]] as const

/** Four cases; what they print when they fail holds a marker. */
export const HELD_OUT: { readonly files: Record<string, string>; readonly command: string } = {
  files: {
    [`held/${MARKERS.path}/add.test.js`]: `
// ${MARKERS.content}
const test = require('node:test')
const assert = require('node:assert')
const { add } = require('../../lib/add.js')
for (const [a, b, sum] of ${JSON.stringify(CASES)})
  test('case ' + a, () => {
    console.log('${MARKERS.output}')
    assert.equal(add(a, b), sum, '${MARKERS.output} in a message')
  })
`,
  },
  command: `node --test held/${MARKERS.path}/ # ${MARKERS.command}`,
}

/** What makes the visible test pass and fails three, two or one of four held-out cases. */
export const WRONG = [
  'exports.add = () => 3\n',
  'exports.add = (a, b) => (b === 2 ? 3 : 0)\n',
  'exports.add = (a, b) => (a === 10 ? 6 : a + b)\n',
] as const
export const RIGHT = 'exports.add = (a, b) => a + b\n'

export interface Outcome extends Run {
  readonly world: World
  readonly engine: RunEngine
  readonly checks: readonly EventPayloads['goal_check'][]
  readonly evaluations: readonly EventPayloads['holdout_evaluation'][]
}

export interface Scenario {
  readonly files?: Files
  /** What `lib/add.js` becomes, in one iteration each; a command where it begins with `$ `. */
  readonly steps?: readonly string[]
  readonly request?: JsonObject
  readonly options?: Partial<EngineOptions>
}

/** A project whose runs do these steps, with sealed copies in a temporary folder. */
export function worldOf(
  t: TestContext,
  { files = PROJECT, steps = [], options = {} }: Omit<Scenario, 'request'> = {},
): World {
  const turns = (_: unknown, call: number): Said => turnOf(steps, call)
  const engine: Partial<EngineOptions> = {
    sealedChecks: 'prefer', checkpoints: 'off', workspaceFolder: undefined, ...options,
  }
  return new World(t, { files, turns, engine })
}

/** Runs a scenario to its end; without its own `holdout`, the run has {@link HELD_OUT}. */
export async function pursue(t: TestContext, scenario: Scenario): Promise<Outcome> {
  const { steps = [], request = {} } = scenario
  const world = worldOf(t, scenario)
  const engine = await world.open()
  const max_iterations = Math.max(1, steps.length)
  const run = await world.run({ goal: GOAL, max_iterations, holdout: HELD_OUT, ...request })
  const checks = payloads(run.events, 'goal_check')
  return {
    world, engine, ...run, checks, evaluations: payloads(run.events, 'holdout_evaluation'),
  }
}

/** The turn of a model that does one step in each iteration. */
export function turnOf(steps: readonly string[], call: number): Said {
  const step = steps[call / 2]
  if (step === undefined || call % 2 === 1) return {}
  return bash(step.startsWith('$ ') ? step.slice(2) : `cat > lib/add.js <<'END'\n${step}END`)
}

/** Every marker, plain and in base64 at each of the three places where it can begin. */
const NEEDLES: readonly Buffer[] = Object.values(MARKERS).flatMap((marker) => [
  Buffer.from(marker),
  Buffer.from([...marker].reverse().join('')),
  ...[0, 1, 2].map((skip) => {
    const coded = Buffer.from(`${'-'.repeat(skip)}${marker}`).toString('base64')
    // Without the characters that depend on what stands before and behind.
    return Buffer.from(coded.slice(skip === 0 ? 0 : 4, -4))
  }),
])

/** Does a marker occur in this? */
export function reveals(what: unknown): boolean {
  const bytes = Buffer.isBuffer(what) ? what : Buffer.from(JSON.stringify(what) ?? '')
  return NEEDLES.some((needle) => bytes.includes(needle))
}

/** Asserts that no file in a folder, and no name of one, has a marker; returns their number. */
export function assertHidden(folder: string): number {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
  for (const entry of names) {
    const path = join(entry.parentPath, entry.name)
    assert.equal(reveals(path), false, path)
    if (entry.isFile()) assert.equal(reveals(readFileSync(path)), false, path)
  }
  return names.length
}
