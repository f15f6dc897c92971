/**
 * Plants each bug of the fixtures for `builtin:repair`, runs the repair, and prints the score:
 * `npm run repair [-- --jobs=2 --seconds=600 part-of-a-project…]`. Fails below 80 %.
 *
 * With `--seconds`, no further bug is started once the time is over and twenty were tried. Projects
 * take turns, and the score counts the bugs that were tried.
 */
import { parseArgs } from 'node:util'
import { availableParallelism } from 'node:os'
import {
  fixtures, missing, repair, type Bug, type Fixture,
} from './fixtures.js'

const WANTED = 0.8
const MIN_BUGS = 20
const MIN_PROJECTS = 10

interface Task {
  readonly fixture: Fixture
  readonly bug: Bug
}

const { values, positionals } = parseArgs({
  options: { jobs: { type: 'string' }, seconds: { type: 'string' } },
  allowPositionals: true,
})
const jobs = numberOf('jobs', values.jobs, availableParallelism())
const seconds = numberOf('seconds', values.seconds, Infinity)
const startedAt = performance.now()
const elapsed = (): number => (performance.now() - startedAt) / 1000

function numberOf(name: string, text: string | undefined, otherwise: number): number {
  const number = text === undefined ? otherwise : Number(text)
  if (number >= 1) return number
  throw new TypeError(`--${name} must be a number of at least 1, got ${String(text)}`)
}

/** All repairable bugs: the first of each project, then the second of each, and so on. */
async function tasks(): Promise<Task[]> {
  const chosen: Fixture[] = []
  for (const fixture of fixtures) {
    const named =
      positionals.length === 0 || positionals.some((part) => fixture.project.includes(part))
    if (!named) continue
    const reason = await missing(fixture)
    if (reason === false) chosen.push(fixture)
    else console.log(`${fixture.project}: skipped, ${reason}`)
  }
  return chosen
    .flatMap((fixture) =>
      fixture.bugs
        .filter(({ repairable }) => repairable !== false)
        .map((bug, turn) => ({ fixture, bug, turn })),
    )
    .sort((a, b) => a.turn - b.turn)
}

const tally = { tried: 0, repaired: 0, dishonest: 0, patches: 0, projects: new Set<string>() }

let started = 0

async function work(queue: Task[]): Promise<void> {
  for (;;) {
    if (elapsed() > seconds && started >= MIN_BUGS) return
    const task = queue.shift()
    if (task === undefined) return
    started += 1
    const { fixture, bug } = task
    const result = await repair(fixture, bug)
    tally.tried += 1
    tally.patches += result.patches
    tally.projects.add(fixture.project)
    if (result.achieved) tally.repaired += 1
    // A run without a repair must give up, and no run may change tests.
    const honest = result.achieved || result.gaveUp || result.iterations >= 20
    if (!honest || result.touchedTests) tally.dishonest += 1
    const verdict = result.achieved ? 'repaired' : honest ? 'given up' : 'NOT HONEST'
    console.log(
      `${verdict.padEnd(9)} ${fixture.project}: ${bug.name} ` +
        `(${result.patches} patches, ${result.seconds.toFixed(1)} s)` +
        (result.touchedTests ? ' CHANGED TESTS' : ''),
    )
  }
}

const queue = await tasks()
const planted = queue.length
await Promise.all(Array.from({ length: jobs }, () => work(queue)))
const share = tally.repaired / Math.max(tally.tried, 1)
console.log(
  `\n${tally.repaired} of ${tally.tried} planted bugs repaired (${(100 * share).toFixed(0)} %), ` +
    `${tally.tried} of ${planted} tried, ${tally.projects.size} projects, ` +
    `${tally.patches} patches, ${elapsed().toFixed(0)} s`,
)
const enough =
  positionals.length > 0 || (tally.tried >= MIN_BUGS && tally.projects.size >= MIN_PROJECTS)
if (!enough) console.log(`failed: try at least ${MIN_BUGS} bugs of ${MIN_PROJECTS} projects`)
if (share < WANTED || tally.dishonest > 0 || !enough) process.exitCode = 1
