import { execFile } from 'node:child_process'
import { cpSync, mkdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { root } from '../../helpers/markdown.js'

const run = promisify(execFile)
/** Beside the build, what `npm pack` looks at. */
const DOCUMENTS = [
  'package.json', 'README.md', 'LICENSE', 'CHANGELOG.md', 'CONTRIBUTING.md', 'docs', 'examples',
]

/**
 * The package as `npm pack` makes it, in a folder; returns the path of the tarball. It is built
 * apart from the clone's own `dist`, since other test files build at the same time.
 */
export async function packInto(folder: string): Promise<string> {
  const source = join(folder, 'source')
  mkdirSync(source)
  const isKept = (path: string): boolean => basename(path) !== 'api'
  for (const name of DOCUMENTS)
    cpSync(join(root, name), join(source, name), { recursive: true, filter: isKept })
  await run(process.execPath, [join(root, 'build.mjs'), join(source, 'dist')])
  const words = ['pack', source, '--ignore-scripts', '--json', '--loglevel=error']
  const { stdout } = await run('npm', words, { cwd: folder })
  const [packed] = JSON.parse(stdout) as [{ filename: string }]
  return join(folder, packed.filename)
}
