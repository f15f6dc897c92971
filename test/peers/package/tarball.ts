import { execFile } from 'node:child_process'
import { cpSync, symlinkSync } from 'node:fs'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../../helpers/markdown.js'

const run = promisify(execFile)
/** What neither the build nor the package needs. */
const LEFT_OUT = new Set(['.git', 'node_modules', 'dist', 'coverage', 'test', 'docs/api'])
/** A `dist` that was built from these sources, so that each file need not do so again. */
const BUILT = process.env['RUNWRIGHT_BUILT']

/** Builds the package into a folder. */
export async function buildInto(dist: string): Promise<void> {
  if (BUILT === undefined) await run(process.execPath, [join(root, 'build.mjs'), dist])
  else cpSync(BUILT, dist, { recursive: true })
}

/**
 * `npm pack` of this clone, with the build that goes before it, into a folder; returns the path of
 * the tarball. It runs in a copy of the clone, since other test files build at the same time.
 */
export async function packInto(folder: string): Promise<string> {
  const clone = join(folder, 'clone')
  const filter = (path: string): boolean => !LEFT_OUT.has(relative(root, path))
  cpSync(root, clone, { recursive: true, filter })
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'))
  if (BUILT !== undefined) await buildInto(join(clone, 'dist'))
  const scripts = BUILT === undefined ? [] : ['--ignore-scripts']
  const { stdout } = await run('npm', ['pack', clone, '--json', '--loglevel=error', ...scripts], {
    cwd: folder,
  })
  // The build may print lines of its own.
  const [packed] = JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as [{ filename: string }]
  return join(folder, packed.filename)
}
