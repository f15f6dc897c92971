import { lstat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isInside } from '../workspace/paths.js'

/** What programs look for in the folders above the one they work in. */
const FOUND_ABOVE = [
  'node_modules', 'pyproject.toml', 'pytest.ini', 'tox.ini', 'setup.cfg', 'conftest.py',
  'Cargo.toml', 'go.mod', 'go.work',
]

/**
 * The packages that Node finds above a package of a monorepo: the nearest `node_modules` in the
 * folders above; null when there is none.
 */
export async function packagesAbove(
  cwd: string,
  closed: readonly string[],
): Promise<string | null> {
  if (!(await isThere(join(cwd, 'package.json')))) return null
  for (const folder of above(cwd)) {
    const packages = join(folder, 'node_modules')
    const stats = await lstat(packages).catch(() => null)
    if (stats?.isDirectory() !== true) continue
    return closed.some((path) => isInside(packages, path)) ? null : packages
  }
  return null
}

/** Why programs may find in a copy what is not part of it. */
export async function problemsAbove(folder: string): Promise<readonly string[]> {
  const found: string[] = []
  for (const parent of [folder, ...above(folder)]) {
    for (const name of FOUND_ABOVE) {
      if (await isThere(join(parent, name))) found.push(join(parent, name))
    }
  }
  if (found.length === 0) return []
  return [
    `Programs that look in the folders above find ${found.join(', ')} there, which is not part ` +
      'of the copy: set workspaceFolder to a folder outside of any project.',
  ]
}

function above(folder: string): readonly string[] {
  const parent = dirname(folder)
  return parent === folder ? [] : [parent, ...above(parent)]
}

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null)) !== null
}
