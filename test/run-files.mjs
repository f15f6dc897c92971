/**
 * Runs test files:
 *
 *     node test/run.mjs [--slow | --all | --peers] [part of a path]… [!part of a path]… [--flag]…
 *
 * 1. The name of a file says when it runs: `*.slow.test.ts` with --slow or --all, `*.full.test.ts`
 *    in `.ci/full`, and all others by default. Parts of paths choose among all files, and parts
 *    after a `!` exclude files. Finding no file or running no test is a failure.
 * 2. --peers runs those under test/peers instead, which need other packages and programs.
 * 3. Files run as bundles (see compile.mjs), several in one process. Those called `*.alone.test.ts`
 *    or `*.alone.slow.test.ts`, and those with peers, have a process of their own. A single file
 *    also runs by `node --conditions=runwright-source --import tsx FILE`.
 * 4. Other flags go to Node, such as --test-name-pattern. With --test-reporter=spec it prints every
 *    test.
 */
import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compile, sourcesIn } from './compile.mjs'
import { startServices } from './peers/services/start.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

/** Files that share a process, at most: slow ones, and others. */
const GROUPS = [4, 24]

const words = process.argv.slice(2)
const [slow, all, peers] = ['--slow', '--all', '--peers'].map((flag) => words.includes(flag))
const flags = words.filter((word) => /^-(?!-(peers|all|slow)$)/.test(word))
const parts = words.filter((word) => !/^[-!]/.test(word))
const excluded = words.filter((word) => word.startsWith('!')).map((word) => word.slice(1))

const files = sourcesIn(peers ? 'test/peers' : 'test').filter(isChosen).sort()
if (files.length === 0) {
  console.error(`no test file matches ${parts.join(' ') || 'test/**/*.test.ts'}`)
  process.exit(1)
}
const compiled = await compile(peers ? files.map((path) => [path]) : groups())
const services = peers ? await startServices() : undefined
const reporter = join(root, 'test/reporter.mjs')
const isReported = flags.some((flag) => flag.startsWith('--test-reporter'))
const child = spawn(
  process.execPath,
  [
    '--test',
    // Tests often wait for disks and programs.
    `--test-concurrency=${availableParallelism() + 1}`,
    // For a test and for a process. It ends what hangs: on a busy machine, the file that follows
    // the guides took more than 900 s.
    `--test-timeout=${peers || slow || all ? 1_800_000 : 300_000}`,
    ...(isReported ? [] : [`--test-reporter=${reporter}`]),
    ...flags,
    ...compiled.entries,
  ],
  {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      FORCE_COLOR: '0',
      RUNWRIGHT_COMPILED: compiled.folder,
      ...services?.env,
    },
  },
)
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) {
  process.on(signal, () => void child.kill(signal))
}
let end = ''
child.stdout.setEncoding('utf8')
child.stdout.on('data', (/** @type {string} */ chunk) => {
  process.stdout.write(chunk)
  end = (end + chunk).slice(-1000)
})
child.on('close', async (code, signal) => {
  await services?.end()
  rmSync(compiled.folder, { recursive: true, force: true })
  const ran = /^[1-9]\d* passed|^\d+ passed, [1-9]|^ℹ tests [1-9]|^# tests [1-9]/m.test(end)
  if (!ran) console.error('no test ran')
  process.exitCode = signal !== null || !ran ? 1 : (code ?? 1)
})

/** @param {string} path */
function isChosen(path) {
  if (!path.endsWith('.test.ts')) return false
  if (excluded.some((part) => path.includes(part))) return false
  if (parts.length > 0 && !parts.some((part) => path.includes(part))) return false
  const [, tier] = /\.(slow|full)\.test\.ts$/.exec(path) ?? []
  if (tier === 'full') return parts.some((part) => part.includes('.full'))
  if (slow) return tier === 'slow'
  return tier === undefined || all || peers || parts.length > 0
}

/** The files of each process: slow ones first, which take the longest. */
function groups() {
  const isSlow = (/** @type {string} */ path) => /\.(slow|full)\.test\.ts$/.test(path)
  const isAlone = (/** @type {string} */ path) => path.includes('.alone.')
  const alone = files.filter(isAlone).map((path) => [path])
  const shared = files.filter((path) => !isAlone(path))
  const kinds = [shared.filter(isSlow), shared.filter((path) => !isSlow(path))]
  const together = kinds.flatMap((kind, at) => {
    const size = GROUPS[at] ?? 1
    const count = Math.ceil(kind.length / size)
    return Array.from({ length: count }, (_, i) => kind.slice(i * size, (i + 1) * size))
  })
  return [...together, ...alone]
}
