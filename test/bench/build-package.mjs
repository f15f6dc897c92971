/** Builds the package as it is shipped, for the benchmarks. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Builds the package into a scratch folder, which is removed when this process exits. The sample
 * records of the tests, which are not shipped, are added as `samples.js`.
 *
 * @returns {string} The folder.
 */
export function buildPackage() {
  const built = mkdtempSync(join(tmpdir(), 'runwright-bench-'))
  process.on('exit', () => rmSync(built, { recursive: true, force: true }))
  const { status, stdout, stderr } = spawnSync(process.execPath, [
    join(root, 'build.mjs'),
    join(built, 'dist'),
  ])
  if (status !== 0) throw new Error(`the package does not build:\n${stdout}${stderr}`)
  const dist = join(built, 'dist')
  writeFileSync(join(built, 'package.json'), '{"type":"module"}')
  const { buildSync } = createRequire(createRequire(import.meta.url).resolve('tsx/package.json'))(
    'esbuild',
  )
  const samples = join(root, 'lib/agent/testing/sample-records.ts')
  buildSync({
    entryPoints: [samples],
    bundle: true,
    format: 'esm',
    platform: 'node',
    outfile: join(dist, 'samples.js'),
  })
  return dist
}
