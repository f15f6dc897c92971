/**
 * Measures the trees of checkpoints:
 *
 *     node --conditions=runwright-source --import tsx test/bench/agent/checkpoints.ts [--json FILE]
 *
 * A folder of FILES (default 10 000) files with 50 MB of source text is captured into the objects
 * of a FileStore: first, TURNS times (default 5) unchanged, and CHECKPOINTS times (default 1 000)
 * after a small edit. What the main thread does is told apart by `/proc/self/task`, so this needs
 * Linux; a block of the event loop is the processor time of one turn. Then a folder of ENTRIES
 * (default 200 000) empty files.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { FileStore, type ObjectStore } from 'runwright/agent'
import { TrackedFolder } from '../../../lib/agent/workspace/tracked-folder.js'
import { Random } from '../../helpers/random.js'
import { rowText, versionsOf, writeResults } from '../report.mjs'
import type { Row } from '../results.js'

const FILES = Number(process.env['FILES'] ?? 10_000)
const TURNS = Number(process.env['TURNS'] ?? 5)
const CHECKPOINTS = Number(process.env['CHECKPOINTS'] ?? 1_000)
const ENTRIES = Number(process.env['ENTRIES'] ?? 200_000)
const FILE_BYTES = 5_000
const FILES_PER_FOLDER = 15
/** Files changed less than two seconds ago are read again. */
const SETTLED_MS = 2_100

const { values: flags } = parseArgs({ options: { json: { type: 'string' } } })
const scratch = mkdtempSync(join(tmpdir(), 'runwright-checkpoints-'))
process.on('exit', () => rmSync(scratch, { recursive: true, force: true }))
const random = new Random(1)
const rows: Row[] = []

/** Milliseconds of processor time that the main thread, and that all others, have had. */
function cpu(): { readonly main: number; readonly others: number } {
  const times = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1')
  const main = Number(times.split(' ')[0])
  const { user, system } = process.cpuUsage()
  return { main: main / 1e6, others: (user + system) / 1e3 - main / 1e6 }
}

interface Cost {
  readonly ms: number
  readonly main: number
  readonly others: number
  /** Most processor time of the main thread in one turn of its event loop. */
  readonly block: number
}

async function costOf(work: () => Promise<unknown>): Promise<Cost> {
  let block = 0
  let isDone = false
  const began = cpu()
  let last = began.main
  const watch = (): void => {
    const { main } = cpu()
    block = Math.max(block, main - last)
    if (isDone) return
    // Not what watching itself takes.
    last = cpu().main
    setImmediate(() => setTimeout(watch, 1))
  }
  watch()
  const started = performance.now()
  await work()
  isDone = true
  const ms = performance.now() - started
  watch()
  const ended = cpu()
  return { ms, main: ended.main - began.main, others: ended.others - began.others, block }
}

function row(
  scenario: string,
  contender: string,
  values: readonly number[],
  unit: string,
  bar?: number,
): void {
  const sorted = values.toSorted((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)]!
  const figures = { median, min: sorted[0]!, max: sorted.at(-1)! }
  const goal = bar === undefined ? null : `<= ${bar}`
  const met = bar === undefined ? null : median <= bar
  const one = { scenario, contender, ...figures, unit, ratio: null, cpu: null, bar: goal, met }
  rows.push(one)
  console.log(`${scenario}: ${rowText(one, 40).trimStart()}`)
}

/** Lines of real source, from which files are put together. */
function sourceLines(): readonly string[] {
  const lib = fileURLToPath(new URL('../../../lib', import.meta.url))
  return readdirSync(lib, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .flatMap((name) => readFileSync(join(lib, name), 'utf8').split('\n'))
}

function makeFiles(folder: string): readonly string[] {
  const lines = sourceLines()
  const folders = ['.']
  for (let i = 1; i < FILES / FILES_PER_FOLDER; i++) {
    folders.push(join(random.pick(folders.slice(0, 60)), `folder${i}`))
  }
  for (const path of folders) mkdirSync(join(folder, path), { recursive: true })
  return Array.from({ length: FILES }, (_, i) => {
    const bytes = FILE_BYTES * 2 * random.next() ** 2 * 1.5
    // Whole passages, so that it packs as well as source does.
    let text = ''
    while (text.length < bytes) {
      const from = random.integer(0, lines.length - 1)
      text += `${lines.slice(from, from + 40).join('\n')}\n`
    }
    const path = join(folders[i % folders.length]!, `module${i}.ts`)
    writeFileSync(join(folder, path), text.slice(0, bytes))
    return path
  })
}

function edit(path: string): void {
  const lines = readFileSync(path, 'utf8').split('\n')
  lines.splice(random.integer(0, lines.length), 1, `  const changed = ${random.integer(0, 1e9)}`)
  writeFileSync(path, lines.join('\n'))
}

const settle = () => new Promise((resolve) => setTimeout(resolve, SETTLED_MS))
const diskOf = (path: string, ...flag: string[]): number =>
  Number(execFileSync('du', ['-s', '-B1', ...flag, path], { encoding: 'utf8' }).split('\t')[0]) / 1e6

const store = new FileStore({ directory: join(scratch, 'data') })
await store.open()
const objects: ObjectStore = store.objects!
{
  const folder = join(scratch, 'project')
  mkdirSync(folder)
  const files = makeFiles(folder)
  await settle()
  const tracked = new TrackedFolder()
  let previous: string | null = null
  const capture = async (): Promise<void> => {
    previous = (await tracked.capture(folder, objects, { previous })).checkpoint_id
  }
  const what = `${FILES} files, ${diskOf(folder, '--apparent-size').toFixed(0)} MB`
  const first = await costOf(capture)
  row(what, 'first capture, all threads', [first.main + first.others], 'ms')
  row(what, 'first capture, elapsed', [first.ms], 'ms')
  row(what, 'first capture, longest block', [first.block], 'ms', 20)
  const looks: Cost[] = []
  for (let turn = 0; turn < TURNS; turn++) looks.push(await costOf(capture))
  row(what, 'unchanged, CPU of the worker', looks.map(({ others }) => others), 'ms', 150)
  row(what, 'unchanged, CPU of the main thread', looks.map(({ main }) => main), 'ms')
  row(what, 'unchanged, longest block', looks.map(({ block }) => block), 'ms', 20)
  const trees = await costOf(() => tracked.manifest(folder))
  row(what, 'as a tree, longest block', [trees.block], 'ms', 20)
  const edits: Cost[] = []
  for (let i = 0; i < CHECKPOINTS; i++) {
    edit(join(folder, random.pick(files)))
    edits.push(await costOf(capture))
  }
  row(what, 'after an edit, all threads', edits.map(({ main, others }) => main + others), 'ms')
  row(what, 'after an edit, longest block', [Math.max(...edits.map(({ block }) => block))], 'ms', 20)
  const data = join(scratch, 'data/objects')
  row(what, `${CHECKPOINTS} checkpoints, blocks on disk`, [diskOf(data)], 'MB', 60)
  row(what, `${CHECKPOINTS} checkpoints, bytes`, [diskOf(data, '--apparent-size')], 'MB')
  await tracked[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
}
{
  const folder = join(scratch, 'many')
  for (let i = 0; i < ENTRIES; i++) {
    const path = join(folder, `${i % 1_000}`, `file${i}.txt`)
    if (i < 1_000) mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, '')
  }
  await settle()
  const tracked = new TrackedFolder()
  let previous: string | null = null
  const capture = async (): Promise<void> => {
    previous = (await tracked.capture(folder, objects, { previous })).checkpoint_id
  }
  const before = process.memoryUsage().rss
  const what = `${ENTRIES} entries`
  const first = await costOf(capture)
  row(what, 'first capture, all threads', [first.main + first.others], 'ms')
  const again = await costOf(capture)
  row(what, 'unchanged, all threads', [again.main + again.others], 'ms')
  row(what, 'memory of both', [(process.memoryUsage().rss - before) / 1e6], 'MB')
  const tree = await costOf(() => tracked.manifest(folder))
  row(what, 'as a tree, longest block', [tree.block], 'ms')
  await tracked[Symbol.asyncDispose]()
}
await store.close()
if (flags.json !== undefined) {
  writeResults(flags.json, { name: 'checkpoints', versions: versionsOf([]), rows })
}
if (rows.some(({ met }) => met === false)) process.exitCode = 1
