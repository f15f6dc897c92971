/**
 * Runs test files: `node test/run.mjs [--peers] [part of a path]… [--node-flag]…`.
 *
 * Lists the .test.ts files under test itself (but for peers, bench, types and fixtures; with
 * --peers just those under test/peers): a shell's globs skip folders in silence. Finding no file,
 * or running no test, is a failure.
 */
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

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
const files = testFiles(join(root, words.includes('--peers') ? 'test/peers' : 'test'))
  .map((path) => relative(root, path))
  .filter((path) => parts.length === 0 || parts.some((part) => path.includes(part)))
  .sort()
if (files.length === 0) {
  console.error(`no test file matches ${parts.join(' ') || 'test/**/*.test.ts'}`)
  process.exit(1)
}
const child = spawn(
  process.execPath,
  ['--conditions=runwright-source', '--import', 'tsx', '--test', `--test-concurrency=${availableParallelism()}`, '--test-timeout=180000', '--test-reporter=spec', ...flags, ...files],
  { cwd: root, stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, FORCE_COLOR: '0' } },
)
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
  if (ran === 0) console.error('no test ran')
  process.exitCode = signal !== null ? 1 : ran === 0 ? 1 : code ?? 1
})
