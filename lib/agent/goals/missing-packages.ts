/**
 * Finds out before a run starts that its check needs packages and none are installed. Only what is
 * certain counts: others start as they are.
 *
 * @module
 */
import { dirname, join } from 'node:path'
import { GoalError } from '../errors.js'
import { packagesOf } from '../workspace/lock-files.js'
import { readFolder } from '../workspace/read-folder.js'
import { readCheckScript } from './check-script.js'
import { shellCommands } from './shell-commands.js'
import { packageDependencies, packageScripts } from './shipped/workspace-facts.js'
import { readRegularFile } from './small-file.js'

/** Lock files, and what installs their packages. */
const LOCKS: ReadonlyMap<string, string> = new Map([
  ['package-lock.json', 'npm ci'],
  ['npm-shrinkwrap.json', 'npm ci'],
  ['pnpm-lock.yaml', 'pnpm install --frozen-lockfile'],
  ['yarn.lock', 'yarn install'],
])
const MAX_LOCK_BYTES = 16 * 1024 * 1024
/** Entries that are looked at in one folder. */
const MAX_ENTRIES = 1_000
/** Yarn finds packages by these files, wherever they lie. */
const PLUG_AND_PLAY: ReadonlySet<string> = new Set(['.pnp.cjs', '.pnp.js', '.pnp.loader.mjs'])
/** Options by which a program works with packages of another folder, or downloads some. */
const ELSEWHERE = new RegExp(
  '^(?:--(?:prefix|cwd|dir|workspaces?|filter|global|yes|package)(?:=.*)?|-[Cgpwy])$',
)
/** What installs packages in a script of the check. */
const INSTALLS = /\b(?:npm|pnpm|yarn|bun)\s+(?:ci|i|install|add|clean-install)\b/

/**
 * Throws if a command is a script of a package manager or a program of a package, and no packages
 * are installed in the folder or one above, although its lock file names some.
 *
 * @throws {@link GoalError} `dependencies_missing`
 */
export async function assertInstalled(command: string, cwd: string): Promise<void> {
  if (!(await usesPackages(command, cwd))) return
  const lock = await lockOf(cwd)
  if (lock === null || (await isInstalled(cwd))) return
  if (INSTALLS.test((await readCheckScript(command, cwd)).text)) return
  throw new GoalError(
    'dependencies_missing',
    `the packages that ${lock} names are not installed: install them, or give ` +
      `\`setup: "${LOCKS.get(lock)}"\`; \`setup: "true"\` starts without them`,
  )
}

/** True if nothing but an installed package, or a script of package.json, can be what runs. */
async function usesPackages(command: string, cwd: string): Promise<boolean> {
  const texts = (shellCommands(command)[0]?.words ?? []).map(({ text }) => text)
  const [program = '', ...options] = texts.slice(texts.findIndex((text) => !/^\w+=/.test(text)))
  if (options.some((word) => ELSEWHERE.test(word))) return false
  const words = options.filter((word) => !word.startsWith('-'))
  const [name = '', script = ''] = words
  if (/^(?:\.\/)?node_modules\//.test(program === 'node' ? name : program)) return true
  if (program === 'npx') {
    const isLocal = options.includes('--no-install') || options.includes('--no')
    return isLocal || (await packageDependencies(cwd)).includes(name)
  }
  if (!['npm', 'pnpm', 'yarn'].includes(program)) return false
  const scripts = (await packageScripts(cwd)) ?? {}
  if (name === 'run' || name === 'run-script') return Object.hasOwn(scripts, script)
  const isTest = name === 'test' || (program !== 'yarn' && ['t', 'tst'].includes(name))
  return Object.hasOwn(scripts, isTest ? 'test' : program === 'npm' ? '' : name)
}

/** The lock file of the folder, if it names packages. */
async function lockOf(cwd: string): Promise<string | null> {
  for (const name of LOCKS.keys()) {
    const content = await readRegularFile(join(cwd, name), MAX_LOCK_BYTES)
    if (typeof content === 'string') continue
    const reading = packagesOf(name, content.toString('utf8'))
    let next = reading.next()
    while (next.done !== true) next = reading.next()
    return (next.value?.size ?? 0) > 0 ? name : null
  }
  return null
}

/** True if the folder or one above has packages of Node, or a file by which Yarn finds them. */
async function isInstalled(cwd: string): Promise<boolean> {
  for (let folder = cwd; ; folder = dirname(folder)) {
    const [entries, packages] = await Promise.all([
      readFolder(folder, MAX_ENTRIES), readFolder(join(folder, 'node_modules'), MAX_ENTRIES),
    ])
    if (entries.some(({ name }) => PLUG_AND_PLAY.has(name))) return true
    if (packages.some(({ name }) => !name.startsWith('.') || name === '.pnpm')) return true
    if (folder === dirname(folder)) return false
  }
}
