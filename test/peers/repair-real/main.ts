/**
 * Measures `builtin:repair` on bugs that are planted in real packages:
 * `npm run repair:real [-- --half=first|second --bugs=N --only=part --seconds=60 --jobs=1
 * --json=file --cache=folder]`. With all bugs of a half, fails when the figures are below the bars
 * of `table.ts`. Packages are fetched with `npm` and `apt-get download`.
 *
 * `--draw --seed=N` draws the half anew, `--stops=N` stops N runs in the middle instead, and
 * `--check` only runs the tests of the packages as they are.
 */
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { bugsPath, HALVES, interleaved, pinnedBugs, type Bug, type Half } from './bug.js'
import { fetched } from './cache.js'
import { draw } from './draw.js'
import { PACKAGES, type RealPackage } from './packages.js'
import { stops } from './stops.js'
import { passes, runSuite, suiteCommand } from './suite.js'
import { belowBars, formatted, lineFor, summarized } from './table.js'
import { trial, type TrialResult } from './trial.js'

const { values } = parseArgs({
  options: {
    half: { type: 'string', default: 'first' }, bugs: { type: 'string' },
    only: { type: 'string', default: '' }, seconds: { type: 'string', default: '60' },
    jobs: { type: 'string', default: '1' }, json: { type: 'string' },
    cache: { type: 'string', default: join(tmpdir(), 'runwright-repair-real') },
    stops: { type: 'string' }, draw: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false }, seed: { type: 'string', default: '1' },
  },
})
const half = HALVES.find((name) => name === values.half)
if (half === undefined) throw new TypeError(`--half must be first or second, got ${values.half}`)
const jobs = numberOf('jobs', values.jobs)
const seconds = numberOf('seconds', values.seconds)
const { cache, only, seed } = values
const packages = PACKAGES.filter(({ name }) => name.includes(only))

function numberOf(name: string, text: string): number {
  const number = Number(text)
  if (number >= 1) return number
  throw new TypeError(`--${name} must be a number of at least 1, got ${text}`)
}

/** Does something for each of a list, several at a time. */
async function forEach<T>(items: readonly T[], act: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items]
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await act(next)
  }
  await Promise.all(Array.from({ length: jobs }, work))
}

async function check(): Promise<void> {
  await forEach(packages, async (one) => {
    const result = await runSuite(one.runner, suiteCommand(one), await fetched(one, cache))
    const good = passes(result)
    const { passed, failed, seconds: took } = result
    console.log(
      `${good ? 'passes' : 'FAILS '} ${one.name} ${one.version}, ${one.runner}: ` +
        `${passed} passed, ${failed} failed, ${took.toFixed(1)} s`,
    )
    if (good) return
    console.log(result.output.slice(-1500))
    process.exitCode = 1
  })
}

async function drawHalf(into: Half): Promise<void> {
  const wanted = values.bugs === undefined ? 36 : numberOf('bugs', values.bugs)
  const other = into === 'first' ? 'second' : 'first'
  const taken = pinnedBugs(other)
  const told = (text: string): void => console.log(text)
  const path = values.json ?? bugsPath(into)
  const found = (bugs: readonly Bug[]): Promise<void> =>
    writeFile(path, `${JSON.stringify(bugs, null, 1)}\n`)
  const bugs = await draw({ packages, cache, seed, wanted, jobs, taken, told, found })
  console.log(`${bugs.length} bugs of ${new Set(bugs.map((bug) => bug.package)).size} packages`)
}

const packageOf = (bug: Bug): RealPackage => PACKAGES.find(({ name }) => name === bug.package)!

async function measure(bugs: readonly Bug[], isWhole: boolean): Promise<void> {
  const results: TrialResult[] = []
  await forEach(bugs, async (bug) => {
    const result = await trial(packageOf(bug), bug, cache, seconds)
    results.push(result)
    console.log(lineFor(result))
  })
  const order = new Map(bugs.map((bug, at) => [bug, at]))
  results.sort((a, b) => order.get(a.bug)! - order.get(b.bug)!)
  console.log(`\n${formatted(results)}`)
  const summary = summarized(results)
  if (values.json !== undefined) {
    await writeFile(values.json, `${JSON.stringify({ half, summary, results }, null, 1)}\n`)
  }
  const below = belowBars(summary)
  for (const text of below) console.log(`below the bar: ${text}`)
  if (isWhole && below.length > 0) process.exitCode = 1
}

if (values.check) await check()
else if (values.draw) await drawHalf(half)
else {
  const all = interleaved(pinnedBugs(half))
  const most = values.bugs === undefined ? Infinity : numberOf('bugs', values.bugs)
  const chosen = all.filter((bug) => bug.package.includes(only)).slice(0, most)
  if (chosen.length === 0) throw new Error(`no bug of the ${half} half is in ${only}`)
  if (values.stops === undefined) await measure(chosen, chosen.length === all.length)
  else {
    const leftovers = await stops(chosen, packageOf, {
      count: numberOf('stops', values.stops), seed, cache, seconds, jobs,
    })
    if (leftovers > 0) process.exitCode = 1
  }
}
