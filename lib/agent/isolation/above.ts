import { lstat, readdir, readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { unreadable } from '../exhaustion.js'
import { isInside } from '../workspace/paths.js'

/** What programs look for in the folders above the one they work in. */
const FOUND_ABOVE = [
  'node_modules', 'pyproject.toml', 'pytest.ini', 'tox.ini', 'setup.cfg', 'conftest.py',
  'Cargo.toml', 'go.mod', 'go.work',
]
/** Where packages are below the folder with `bin`, and files of packages that lie elsewhere. */
const PYTHON = /^python3/
const PACKAGES = ['site-packages', 'dist-packages']
const EDITABLE = /^__editable__|\.(pth|egg-link)$/

/**
 * The packages that Node finds above a package of a monorepo: the nearest `node_modules` in the
 * folders above; null when there is none. A copy lies in a closed folder, and so does what was
 * copied with it.
 */
export async function packagesAbove(
  cwd: string,
  closed: readonly string[],
): Promise<string | null> {
  if (!(await isThere(join(cwd, 'package.json')))) return null
  const outside = closed.filter((path) => !isInside(cwd, path))
  for (const folder of above(cwd)) {
    const packages = join(folder, 'node_modules')
    const stats = await lstat(packages).catch(unreadable)
    if (stats?.isDirectory() !== true) continue
    return outside.some((path) => isInside(packages, path)) ? null : packages
  }
  return null
}

/** Why programs may find in a copy what is not part of it. */
export async function problemsAbove(folder: string): Promise<readonly string[]> {
  const paths = [folder, ...above(folder)].flatMap((parent) =>
    FOUND_ABOVE.map((name) => join(parent, name)),
  )
  const areThere = await Promise.all(paths.map(isThere))
  const found = paths.filter((_, i) => areThere[i])
  if (found.length === 0) return []
  return [
    `Programs that look in the folders above find ${found.join(', ')} there, which is not part ` +
      'of the copy: set workspaceFolder to a folder outside of any project.',
  ]
}

/**
 * Why Python may import the original in a copy: it is installed as editable into an environment
 * elsewhere that is on PATH, or for the user.
 */
export async function installedElsewhere(cwd: string): Promise<readonly string[]> {
  const ends = ['/', '\n', '"', "'"].map((end) => cwd + end)
  const programs = (process.env['PATH'] ?? '').split(delimiter).filter(isAbsolute)
  const found: string[] = []
  for (const prefix of new Set([...programs.map(dirname), join(homedir(), '.local')])) {
    if (isInside(prefix, cwd)) continue
    const versions = (await namesIn(join(prefix, 'lib'))).filter((name) => PYTHON.test(name))
    for (const version of versions) {
      for (const folder of PACKAGES.map((name) => join(prefix, 'lib', version, name))) {
        for (const name of (await namesIn(folder)).filter((file) => EDITABLE.test(file))) {
          const content = await readFile(join(folder, name), 'utf8').catch(unreadable)
          const text = `${content ?? ''}\n`
          if (ends.some((path) => text.includes(path))) found.push(join(folder, name))
        }
      }
    }
  }
  if (found.length === 0) return []
  return [
    `Python gets to the original, not to the copy, by ${found.join(', ')}: create a virtual ` +
      'environment in the folder.',
  ]
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return ((await readdir(folder).catch(unreadable)) ?? []).sort()
}

function above(folder: string): readonly string[] {
  const parent = dirname(folder)
  return parent === folder ? [] : [parent, ...above(parent)]
}

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(unreadable)) !== null
}
