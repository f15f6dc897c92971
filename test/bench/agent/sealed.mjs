/**
 * Measures sealed checks, beside checks in place:
 *
 *     node test/bench/agent/sealed.mjs [node:test | pytest] [--json FILE]
 *
 * Two projects of 5 000 files, see `sealed-project.mjs`, each with a run that finds one test
 * failing, mends the code and achieves its goal. Contenders take turns (TURNS, default 7): the same
 * engine without sealed checks, with them in bubblewrap, and with them as plain processes. Times
 * are those of the checks, from the moment a check begins until its verdict is there; `first` is
 * the first check of a run, `last` the one before it is achieved, which is one in place and a
 * sealed one. runwright is measured as the built package, or that in the folder RUNWRIGHT.
 *
 * On a machine that does other things too, look at the minima, and at processor time: that of this
 * process, and that of the programs that it starts. A *turn* is the longest processor time of the
 * main thread between two timers, which is more than the event loop can have been blocked.
 *
 * Everything is below TMPDIR. On ext4 without a journal (then `/proc/fs/jbd2` is empty), the kernel
 * looks at each inode that was freed in the last minutes whenever it makes a file
 * (`recently_deleted`), and each turn here removes thousands: its times are those of that search.
 */
import {
  mkdtempSync, openSync, readFileSync, readSync, realpathSync, rmSync, writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { buildPackage } from '../build-package.mjs'
import { rowText, versionsOf, writeResults } from '../report.mjs'
import { makeProject, projects } from './sealed-project.mjs'

const { values: flags, positionals: words } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'string' } },
})
const TURNS = Number(process.env.TURNS ?? 7)
/** The bar: so much of the check's own time, and so many milliseconds more. */
const [MORE, EXTRA_MS] = [1.3, 400]
const MAX_TURN_MS = 20

const built = process.env.RUNWRIGHT ?? buildPackage()
const { bubblewrapProblem, MemoryStore, NO_USAGE, processExecutor, RunEngine } = await import(
  pathToFileURL(join(built, 'agent/index.js')).href
)
const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-sealed-bench-')))
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))

const scheduled = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r')
const text = Buffer.alloc(64)

/** Milliseconds of processor time that the main thread has had. */
function cpuOfMain() {
  const length = readSync(scheduled, text, 0, text.length, 0)
  return Number.parseInt(text.latin1Slice(0, length), 10) / 1e6
}

/** The same of this process, and of programs that have ended: in ticks of 10 ms. */
function cpu() {
  const { user, system } = process.cpuUsage()
  const stat = readFileSync('/proc/self/stat', 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return { own: (user + system) / 1e3, programs: (Number(fields[13]) + Number(fields[14])) * 10 }
}

/** Follows the checks of an engine by its spans. */
class Watch {
  /** Costs of the checks since the run began. */
  checks = []
  #began = null
  #timer

  startSpan(span) {
    if (!span.name.startsWith('check ')) return
    const rss = process.memoryUsage.rss()
    this.#began = { at: performance.now(), cpu: cpu(), turn: 0, rss, peak: rss, looks: 0 }
    this.#look(cpuOfMain())
  }

  addEvent() {}

  endSpan(span) {
    if (!span.name.startsWith('check ')) return
    const { at, cpu: before, turn, rss, peak } = this.#began
    clearTimeout(this.#timer)
    const after = cpu()
    this.checks.push({
      ms: performance.now() - at,
      own: after.own - before.own,
      programs: after.programs - before.programs,
      turn,
      memory: (peak - rss) / 1e6,
    })
  }

  /** Seldom enough to cost next to nothing. */
  #look(before) {
    this.#timer = setTimeout(() => {
      const began = this.#began
      const now = cpuOfMain()
      began.turn = Math.max(began.turn, now - before)
      began.looks += 1
      if (began.looks % 10 === 0) began.peak = Math.max(began.peak, process.memoryUsage.rss())
      this.#look(now)
    }, 2)
  }
}

function provider(path, text) {
  const model = {
    name: 'bench:m',
    isLanguageModel: false,
    contextWindow: null,
    prices: null,
    complete: async ({ messages }) => {
      const isOver = messages.at(-1).role === 'tool'
      const command = `cat > '${path}' <<'END'\n${text}END\n`
      const calls = isOver ? [] : [{ call_id: 'c1', tool: 'bash', args: { command } }]
      const message = { role: 'assistant', text: 'mend', calls }
      return { message, reasoning: '', usage: NO_USAGE, stop: isOver ? 'end' : 'tool_calls' }
    },
  }
  return {
    id: 'bench', description: 'a script', isLanguageModel: false, suggestions: ['m'],
    create: () => model,
  }
}

/** One of the host's own, which is used as it is. */
function plainProcesses() {
  const executor = processExecutor()
  return {
    name: executor.name,
    run: (command, options) => executor.run(command, options),
    killMarked: (mark) => executor.killMarked(mark),
  }
}

async function openContender(root, project, name) {
  const watch = new Watch()
  const engine = await RunEngine.open({
    store: new MemoryStore(),
    roots: [root],
    checkpoints: 'off',
    sealedChecks: name === 'in place' ? 'off' : 'require',
    executor: name === 'sealed, plain processes' ? plainProcesses() : 'process',
    defaultModel: 'bench:m',
    providers: [provider(...project.fixed)],
    tracer: watch,
  })
  return { name, engine, watch, first: [], last: [] }
}

async function turnOf({ engine, watch, first, last }, root, project) {
  const [path] = project.fixed
  const before = readFileSync(join(root, path))
  watch.checks = []
  const { details } = await engine.create({ goal: project.goal, cwd: root, max_iterations: 1 })
  const events = await engine.subscribe(details.run_id)
  for await (const _ of events);
  writeFileSync(join(root, path), before)
  const { status, final_state: state } = await engine.get(details.run_id)
  if (status !== 'achieved' || watch.checks.length !== 2) {
    throw new Error(`${details.goal}: ${status}, ${state.goal_reason}`)
  }
  first.push(watch.checks[0])
  last.push(watch.checks[1])
}

const rows = []

function show(scenario, contender, values, unit, reference = null, bar = null) {
  const sorted = values.toSorted((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)]
  const ratio = reference === null ? null : median / reference
  const met = bar === null ? null : median <= bar.most
  const figures = { median, min: sorted[0], max: sorted.at(-1), unit, ratio, cpu: null }
  rows.push({ scenario, contender, ...figures, bar: bar?.text ?? null, met })
  console.log(rowText(rows.at(-1), 44))
}

const medianOf = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

for (const [runner, project] of Object.entries(projects)) {
  if (words.length > 0 && !words.includes(runner)) continue
  const root = join(scratch, project.goal)
  makeProject(root, project)
  const names = ['in place', 'sealed, plain processes']
  if ((await bubblewrapProblem()) === null) names.splice(1, 0, 'sealed, bubblewrap')
  else console.log('bubblewrap does not work here, and is not measured')
  const contenders = []
  for (const name of names) contenders.push(await openContender(root, project, name))
  // The first turn fills caches of the system, and is not counted.
  for (let turn = -1; turn < TURNS; turn++) {
    for (const contender of turn % 2 === 0 ? contenders : contenders.toReversed()) {
      if (turn === 0) Object.assign(contender, { first: [], last: [] })
      await turnOf(contender, root, project)
    }
  }
  for (const which of ['first', 'last']) {
    const scenario = `${runner}, ${which} check`
    console.log(`\n${scenario}`)
    const own = medianOf(contenders[0][which].map(({ ms }) => ms))
    for (const contender of contenders) {
      const { name } = contender
      const isSealed = name !== 'in place'
      const of = (key) => contender[which].map((check) => check[key])
      const most = MORE * own + EXTRA_MS
      const bar = { most, text: `<= ${MORE}x + ${EXTRA_MS} ms` }
      const hasBar = isSealed && which === 'first'
      show(scenario, name, of('ms'), 'ms', isSealed ? own : null, hasBar ? bar : null)
      show(scenario, `${name}: CPU of runwright`, of('own'), 'ms')
      // What runs in a sandbox has another parent.
      if (!name.includes('bubblewrap')) {
        show(scenario, `${name}: CPU of programs`, of('programs'), 'ms')
      }
      const turn = isSealed ? { most: MAX_TURN_MS, text: `<= ${MAX_TURN_MS} ms` } : null
      show(scenario, `${name}: longest turn`, of('turn'), 'ms', null, turn)
      show(scenario, `${name}: memory`, of('memory'), 'MB')
    }
  }
  for (const { engine } of contenders) await engine.close()
}
if (flags.json !== undefined) {
  writeResults(flags.json, { name: 'sealed', versions: versionsOf([]), rows })
}
if (rows.some(({ met }) => met === false)) process.exitCode = 1
