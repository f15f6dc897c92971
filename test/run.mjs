/**
 * Runs test files:
 *
 *     node test/run.mjs [--all | --slow | --peers] [part of a path]… [!part of others]… [--flag]…
 *
 * 1. Lists the .test.ts files under test itself (except peers, bench, types and fixtures; with
 *    --peers only those under test/peers): shell globs skip folders silently. Finding no file or
 *    running no test is a failure.
 * 2. Leaves out the tests of `slow-tests.mjs`, unless --all, --peers or a part of a path is given.
 *    An entry of that list that names no test of the files that run is a failure, so the list
 *    cannot rot (but where a newer Node does not tell which tests it has left out).
 *    With --slow, the same of the files in that list alone. A part of a path after a `!` leaves out
 *    those files, which the caller runs in another way.
 *    Files called *.slow.test.ts are left out and run as a whole, and need no entry there.
 * 3. Leaves out *.full.test.ts, which `.ci/full` runs, unless a part of a path names them.
 * 4. Files run compiled (see compile.mjs), several in one process: starting Node and loading the
 *    library takes longer than most files do. A single file also runs by
 *    `node --conditions=runwright-source --import tsx FILE`.
 */
import { spawn } from 'node:child_process'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compile } from './compile.mjs'
import { ownProcess, slowTests, wholeFiles } from './slow-tests.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const notHere = new Set(['peers', 'bench', 'types', 'fixtures', 'node_modules'])

/** Files that share a process, at most. */
const GROUP = 24

/** @param {string} folder @returns {string[]} */
function testFiles(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return notHere.has(entry.name) ? [] : testFiles(path)
    return entry.name.endsWith('.test.ts') ? [path] : []
  })
}

const words = process.argv.slice(2)
const peers = words.includes('--peers')
const flags = words.filter((word) => /^-(?!-(peers|all|slow)$)/.test(word))
const parts = words.filter((word) => !/^[-!]/.test(word))
const others = words.filter((word) => word.startsWith('!')).map((word) => word.slice(1))
const isLeftOut = (/** @type {string} */ path) => others.some((part) => path.includes(part))
const slow = words.includes('--slow')
const all = words.includes('--all') || slow
const slowFiles = new Set([...slowTests.map(({ file }) => file), ...Object.keys(wholeFiles)])
const leaveOut = !all && !peers && parts.length === 0
/** Milliseconds for a test and for a process; programs that peers' tests start may start slowly. */
const timeout = peers ? 900_000 : 300_000
const files = testFiles(join(root, peers ? 'test/peers' : 'test'))
  .map((path) => relative(root, path))
  .filter((path) => !slow || slowFiles.has(path) || path.endsWith('.slow.test.ts'))
  .filter((path) => !leaveOut || !(path in wholeFiles || path.endsWith('.slow.test.ts')))
  .filter((path) => !isLeftOut(path))
  .filter((path) =>
    parts.length === 0 ? !path.includes('.full.') : parts.some((part) => path.includes(part)),
  )
  .sort()
if (files.length === 0) {
  console.error(`no test file matches ${parts.join(' ') || 'test/**/*.test.ts'}`)
  process.exit(1)
}

/**
 * Writes one entry file for each group of files, and returns their paths. Files that take a process
 * of their own come first: they are the longest.
 *
 * @param {string} folder
 */
function writeGroups(folder) {
  const alone = (/** @type {string} */ file) =>
    file in ownProcess ||
    file.endsWith('.alone.test.ts') ||
    file.endsWith('.slow.test.ts') ||
    (!leaveOut && slowFiles.has(file))
  const shared = files.filter((file) => !alone(file))
  const groups = files.filter(alone).map((file) => [file])
  while (shared.length > 0) groups.push(shared.splice(0, GROUP))
  return groups.map((group, index) => {
    const entry = join(folder, `group-${index}.mjs`)
    const lines = group.map((file) => `import './${file.replace(/ts$/, 'js')}'`)
    writeFileSync(entry, `${lines.join('\n')}\n`)
    return entry
  })
}

/** The pattern of names that are run. Node 20 also matches the root, which must not pass for a test. */
function fastNames() {
  const names = slowTests.map(({ name }) => name.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&'))
  return `--test-name-pattern=/^(?!(?:<root>|${names.join('|')})$)/`
}

// The tests of peers start programs that bring loaders of their own, each in its own way.
const compiled = peers ? null : await compile()
const paths = compiled === null ? files : writeGroups(compiled)
const loader =
  compiled === null
    ? ['--conditions=runwright-source', '--import', 'tsx']
    : ['--enable-source-maps']
const env = {
  ...process.env,
  FORCE_COLOR: '0',
  ...(compiled === null ? {} : { RUNWRIGHT_COMPILED: compiled }),
}
const child = spawn(
  process.execPath,
  [
    ...loader,
    '--test',
    // Most tests often wait: for programs, disks, browsers. The slow ones keep a core busy.
    `--test-concurrency=${availableParallelism() + (leaveOut || peers ? 1 : 0)}`,
    `--test-timeout=${timeout}`,
    '--test-reporter=spec',
    ...(leaveOut ? [fastNames()] : []),
    ...flags,
    ...paths,
  ],
  { cwd: root, stdio: ['ignore', 'pipe', 'inherit'], env },
)
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) {
  process.on(signal, () => void child.kill(signal))
}
let ran = 0
let rest = ''
const chosen = flags.some((flag) => flag.startsWith('--test-name-pattern'))
const expected = slowTests.filter(({ file }) =>
  parts.length === 0 ? !isLeftOut(file) : files.includes(file),
)
const missing = new Set(peers || chosen ? [] : expected.map(({ name }) => name))
/** What Node 20 writes behind the name of a test that it leaves out; newer lines skip it silently. */
const LEFT_OUT = '# test name does not match pattern'
let namesAll = !leaveOut
child.stdout.setEncoding('utf8')
child.stdout.on('data', (chunk) => {
  const lines = (rest + chunk).split('\n')
  rest = lines.pop() ?? ''
  for (const line of lines) {
    const [, name] = /^\S (.+) \([\d.]+ms\)/.exec(line) ?? []
    if (name !== undefined) missing.delete(name)
    ran = Number(/^ℹ tests (\d+)$/.exec(line)?.[1] ?? ran)
    if (line.endsWith(LEFT_OUT)) namesAll = true
    else process.stdout.write(`${line}\n`)
  }
})
child.on('close', (code, signal) => {
  process.stdout.write(rest)
  if (compiled !== null) rmSync(compiled, { recursive: true, force: true })
  if (ran === 0) console.error('no test ran')
  if (leaveOut) console.log(`${slowTests.length} slow tests left out: npm run test:all has them`)
  const unknown = namesAll ? [...missing] : []
  for (const name of unknown) console.error(`in test/slow-tests.mjs, but no test: ${name}`)
  process.exitCode = signal !== null || ran === 0 || unknown.length > 0 ? 1 : (code ?? 1)
})
