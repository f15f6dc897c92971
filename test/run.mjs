/**
 * Runs test files: `node test/run.mjs [--peers] [part of a path]… [--node-flag]…`.
 *
 * Lists the .test.ts files under test itself (but for peers, bench, types and fixtures; with
 * --peers just those under test/peers): a shell's globs skip folders in silence. Finding no file,
 * or running no test, is a failure. The files run compiled, see compile.mjs; one alone runs as well
 * by `node --conditions=runwright-source --import tsx FILE`.
 */
import { spawn } from 'node:child_process'
import { readdirSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compile } from './compile.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const apart = new Set(['peers', 'bench', 'types', 'fixtures', 'node_modules'])

/** @param {string} folder @returns {string[]} */
function testFiles(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return apart.has(entry.name) ? [] : testFiles(path)
    return entry.name.endsWith('.test.ts') ? [path] : []
  })
}

const words = process.argv.slice(2)
const flags = words.filter((word) => word.startsWith('-') && word !== '--peers')
const parts = words.filter((word) => !word.startsWith('-'))
/** Milliseconds for a test and for a file; those with peers wait for programs that may start slowly. */
const timeout = words.includes('--peers') ? 900_000 : 180_000
const files = testFiles(join(root, words.includes('--peers') ? 'test/peers' : 'test'))
  .map((path) => relative(root, path))
  .filter((path) => parts.length === 0 || parts.some((part) => path.includes(part)))
  .sort()
if (files.length === 0) {
  console.error(`no test file matches ${parts.join(' ') || 'test/**/*.test.ts'}`)
  process.exit(1)
}
// The tests of peers start programs that bring loaders of their own, each in its own way.
const compiled = words.includes('--peers') ? null : await compile()
const paths =
  compiled === null ? files : files.map((path) => join(compiled, path.replace(/ts$/, 'js')))
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
    `--test-concurrency=${availableParallelism()}`,
    `--test-timeout=${timeout}`,
    '--test-reporter=spec',
    ...flags,
    ...paths,
  ],
  { cwd: root, stdio: ['ignore', 'pipe', 'inherit'], env },
)
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM']))
  process.on(signal, () => void child.kill(signal))
let ran = 0
let rest = ''
child.stdout.setEncoding('utf8')
child.stdout.on('data', (chunk) => {
  process.stdout.write(chunk)
  const lines = (rest + chunk).split('\n')
  rest = lines.pop()?.slice(-200) ?? ''
  for (const line of lines) ran = Number(/^ℹ tests (\d+)$/.exec(line)?.[1] ?? ran)
})
child.on('close', (code, signal) => {
  if (compiled !== null) rmSync(compiled, { recursive: true, force: true })
  if (ran === 0) console.error('no test ran')
  process.exitCode = signal !== null ? 1 : ran === 0 ? 1 : code ?? 1
})
