/**
 * Measures what an attempt costs that does nothing, beside the copy of its folder:
 *
 *     node --conditions=runwright-source --import tsx test/bench/agent/attempts.ts [--json FILE]
 *
 * A run with one attempt is started TURNS times (default 101) in a folder of FILES files (default
 * 20), with a `FileStore`: in memory where there is `/dev/shm`, unless TMPDIR names a folder. The
 * model has nothing to say, and nothing is checked, so that no process is started: what passes in
 * the log of the parent from `attempt_started` to `attempt_ended` is what an attempt costs by
 * itself. Before each one, the folder is copied as for any isolated run that begins at a
 * checkpoint: what was copied is compared with it. How long the copy takes alone is told as well.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { FileStore, RunEngine, type AgentEvent, type ModelProvider } from 'runwright/agent'
import { ScriptedModel } from 'runwright/agent/testing'
import { IsolatedFolders } from '../../../lib/agent/isolation/isolated-folders.js'
import { TrackedFolder } from '../../../lib/agent/workspace/tracked-folder.js'
import { rowText, versionsOf, writeResults } from '../report.mjs'
import type { Row } from '../results.js'

const FILES = Number(process.env['FILES'] ?? 20)
const TURNS = Number(process.env['TURNS'] ?? 101)
/** The first ones load code, start threads, and run code that the compiler has not seen often. */
const WARM_UP = 100

const { values: flags } = parseArgs({ options: { json: { type: 'string' } } })
const memory = process.env['TMPDIR'] === undefined && existsSync('/dev/shm')
const scratch = mkdtempSync(join(memory ? '/dev/shm' : tmpdir(), 'runwright-attempts-'))
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))

const project = join(scratch, 'project')
for (let i = 0; i < FILES; i++) {
  const folder = join(project, i % 2 === 0 ? 'src' : 'test')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, `${i}.js`), `export const n = ${i}\n`.repeat(100))
}

const model = new ScriptedModel([{ text: 'There is nothing to do.' }], { name: 'script:idle' })
const provider: ModelProvider = {
  id: 'script',
  description: 'a script',
  isLanguageModel: false,
  suggestions: [],
  create: () => model,
}
const engine = await RunEngine.open({
  store: new FileStore({ directory: join(scratch, 'data') }),
  roots: [project],
  providers: [provider],
  defaultModel: 'script:idle',
  // Never called: nothing changes.
  judgeModel: 'script:idle',
})

/** What something takes: of the clock, and of the processors. */
interface Cost {
  readonly ms: number
  readonly cpuUs: number
}

function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return user + system
}

/** What the attempt of a run takes. */
async function attempted(): Promise<Cost> {
  const request = { goal: 'Do it.', max_iterations: 1, attempts: { count: 1 } }
  const { details } = await engine.create(request)
  let cost: Cost = { ms: 0, cpuUs: 0 }
  let [began, cpu] = [0, process.cpuUsage()]
  for await (const batch of await engine.subscribe(details.run_id)) {
    for (const { json } of batch) {
      const { kind, ts } = JSON.parse(json) as AgentEvent
      if (kind === 'attempt_started') [began, cpu] = [ts, process.cpuUsage()]
      if (kind === 'attempt_ended') cost = { ms: (ts - began) * 1_000, cpuUs: cpuSince(cpu) }
    }
  }
  return cost
}

const folders = new IsolatedFolders({
  folder: join(scratch, 'copies'),
  maxBytes: 2 ** 30,
  closed: [join(scratch, 'data')],
})

/** Of the folder, as the first comparison finds it. */
let checkpointId: string | undefined

async function compare(path: string): Promise<readonly string[]> {
  await using tracked = new TrackedFolder()
  const { checkpoint_id } = await tracked.find(path)
  checkpointId ??= checkpoint_id
  if (checkpoint_id !== checkpointId) throw new Error('the copy is not what was copied')
  return []
}

/** What the copy of a run takes. */
async function copied(fill?: typeof compare): Promise<Cost> {
  const [began, cpu] = [performance.now(), process.cpuUsage()]
  await folders.create('copy', project, { mounts: false, fill })
  const cost = { ms: performance.now() - began, cpuUs: cpuSince(cpu) }
  await folders.remove('copy')
  return cost
}

const whole: Cost[] = []
const alone: Cost[] = []
const copies: Cost[] = []
for (let turn = -WARM_UP; turn < TURNS; turn++) {
  const bare = await copied()
  const copy = await copied(compare)
  const attempt = await attempted()
  if (turn < 0) continue
  alone.push(bare)
  copies.push(copy)
  whole.push(attempt)
}
await engine.close()

const rows: Row[] = []

const median = (sorted: readonly number[]): number => sorted[Math.floor(sorted.length / 2)]!

/** @param most the target; a contender without one is only shown */
function row(contender: string, costs: readonly Cost[], most?: number): void {
  const sorted = costs.map(({ ms }) => ms).sort((a, b) => a - b)
  rows.push({
    scenario: `an attempt that does nothing, ${FILES} files`,
    contender,
    median: median(sorted),
    min: sorted[0]!,
    max: sorted.at(-1)!,
    unit: 'ms',
    ratio: null,
    cpu: median(costs.map(({ cpuUs }) => cpuUs).sort((a, b) => a - b)),
    bar: most === undefined ? null : `<= ${most} ms`,
    met: most === undefined ? null : median(sorted) <= most,
  })
  console.log(rowText(rows.at(-1)!))
}

const beside = whole.map(({ ms, cpuUs }, i) => ({
  ms: ms - copies[i]!.ms,
  cpuUs: cpuUs - copies[i]!.cpuUs,
}))
row('the attempt', whole)
row('the copy of its folder alone', alone)
row('the copy, compared with its checkpoint', copies)
row('the attempt without the copy', beside, 5)
if (flags.json !== undefined) {
  writeResults(flags.json, { name: 'attempts', versions: versionsOf([]), rows })
}
