/**
 * What a sandboxed command sees, as arguments of bubblewrap. A sandbox starts empty and contains
 * only what is named here, so a forgotten path is missing rather than exposed.
 *
 * @module
 */
import { lstat, readlink, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { unreadable } from '../exhaustion.js'
import type { IsolatedCopy } from '../executor.js'
import type { PackageMounts } from './package-mounts.js'

export interface SandboxPlan {
  readonly cwd: string
  readonly home: string | undefined
  readonly path: string
  readonly network: boolean
  readonly readOnly: readonly string[]
  readonly writable: readonly string[]
  readonly closed: readonly string[]
  readonly isolated?: IsolatedCopy | undefined
  /** Null where bubblewrap takes no descriptors: `node_modules` is one mount by its path then. */
  readonly packages: PackageMounts | null
}

/** Programs, libraries and their data: the same for all users. */
const SYSTEM = [
  '/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/opt', '/nix/store',
]

/** Files of /etc that programs need. Not all of /etc, which holds keys and passwords. */
const SETTINGS = [
  'passwd', 'group', 'nsswitch.conf', 'hosts', 'host.conf', 'hostname', 'services', 'protocols',
  'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'alternatives', 'localtime', 'timezone',
  'mime.types', 'magic', 'ssl/certs', 'ssl/openssl.cnf', 'ca-certificates', 'ca-certificates.conf',
  'pki/tls/certs', 'pki/ca-trust', 'crypto-policies', 'java', 'fonts', 'terminfo', 'os-release',
  'debian_version', 'profile', 'bash.bashrc', 'gitconfig', 'inputrc',
]

/** Tool chains in a home folder; none of these folders holds keys. */
const TOOL_CHAINS = [
  '.pyenv', '.rustup', '.nvm', '.volta', '.bun/bin', '.deno/bin', '.asdf', '.sdkman/candidates',
  '.cargo/bin', '.local/bin', '.local/pipx/venvs', 'go/bin',
]

/** Entries of /proc that show or drive the machine rather than the sandbox. */
const MACHINE = [
  'acpi', 'asound', 'interrupts', 'kcore', 'key-users', 'keys', 'latency_stats', 'sched_debug',
  'scsi', 'timer_list', 'timer_stats',
]

/** The arguments before `--`. */
export async function sandboxArguments(plan: SandboxPlan): Promise<readonly string[]> {
  const home = plan.home === undefined || !isAbsolute(plan.home) ? null : resolve(plan.home)
  const resolver = plan.network ? ['resolv.conf'] : []
  return [
    ...['--die-with-parent', '--unshare-pid', '--unshare-ipc', '--unshare-uts'],
    ...['--unshare-cgroup-try', '--cap-drop', 'ALL'],
    ...(plan.network ? [] : ['--unshare-net']),
    ...(await Promise.all(SYSTEM.map(systemFolder))).flat(),
    ...[...SETTINGS, ...resolver].flatMap((name) => bind('--ro-bind-try', `/etc/${name}`)),
    ...(await processes()),
    ...['--dev', '/dev', '--tmpfs', '/dev/shm', '--remount-ro', '/dev'],
    ...['--tmpfs', '/tmp', '--tmpfs', '/var/tmp', '--dir', '/run'],
    ...(home === null || home === '/' ? [] : ['--tmpfs', home]),
    ...(await mounts(plan, home)),
    ...(await hidden(plan)),
    ...['--remount-ro', '/', '--chdir', plan.cwd],
  ]
}

/**
 * Closed folders behind empty ones; for a run in a copy the original as well, and on top of them
 * the copy. What hides is made read-only at the end, when there is a place for the copy in it.
 */
async function hidden({ closed, isolated, packages }: SandboxPlan): Promise<readonly string[]> {
  if (isolated === undefined)
    return (await outermostOf(closed)).flatMap((path) => ['--tmpfs', path, '--remount-ro', path])
  const { root, original, readOnly } = isolated
  const outer = await outermostOf([...closed, original])
  return [
    ...outer.flatMap((path) => ['--tmpfs', path]),
    ...bind('--bind', root),
    ...(await mountable(readOnly)).flatMap((mount) =>
      packages?.argumentsFor(mount) ?? ['--ro-bind-try', mount.from, mount.to],
    ),
    ...outer.flatMap((path) => ['--remount-ro', path]),
  ]
}

/** Real paths of existing ones: in one that is hidden, there is no place for another one. */
async function outermostOf(paths: readonly string[]): Promise<readonly string[]> {
  const real = await Promise.all(paths.map((path) => realpath(path).catch(unreadable)))
  const existing = new Set(real.filter((path) => path !== null))
  return [...existing].filter(
    (path) => ![...existing].some((other) => other !== path && isInside(path, other)),
  )
}

/**
 * Those that are folders at both ends, reached through no link: bubblewrap would follow one at
 * `from`, put there by who works in the original, into what is hidden, and one at `to`, made by an
 * earlier command, out of the sandbox, where it would make a folder.
 */
async function mountable(mounts: IsolatedCopy['readOnly']): Promise<IsolatedCopy['readOnly']> {
  const isFolder = async (path: string): Promise<boolean> =>
    (await realpath(`${path}/.`).catch(unreadable)) === path
  const found = mounts.map(async ({ from, to }) => (await isFolder(from)) && (await isFolder(to)))
  const isFine = await Promise.all(found)
  return mounts.filter((_, i) => isFine[i])
}

/**
 * /proc of the sandbox's own processes, read-only as a whole: the settings of the machine in it
 * (`/proc/sys`) belong to root, who needs no capability to write them.
 */
async function processes(): Promise<readonly string[]> {
  const hidden = MACHINE.map(async (name) => {
    const path = `/proc/${name}`
    const stats = await lstat(path).catch(unreadable)
    if (stats === null) return []
    return stats.isDirectory() ? await mask(path) : ['--ro-bind', '/dev/null', path]
  })
  return ['--proc', '/proc', ...(await Promise.all(hidden)).flat(), '--remount-ro', '/proc']
}

function bind(option: string, path: string): readonly string[] {
  return [option, path, path]
}

/** A system folder, or the link that stands for it (`/bin` → `usr/bin`). */
async function systemFolder(path: string): Promise<readonly string[]> {
  const stats = await lstat(path).catch(unreadable)
  if (stats === null) return []
  if (!stats.isSymbolicLink()) return bind('--ro-bind', path)
  return ['--symlink', await readlink(path), path]
}

/** Deeper paths are mounted later, so that outer ones do not hide them; so are writable ones. */
async function mounts(plan: SandboxPlan, home: string | null): Promise<readonly string[]> {
  const readable = [...(await programFolders(plan.path, home)), ...plan.readOnly]
  const all = [
    ...readable.map((path) => ({ path, option: '--ro-bind-try' })),
    ...[...plan.writable, plan.cwd].map((path) => ({ path, option: '--bind' })),
  ]
  const depth = (path: string): number => (path === '/' ? 0 : path.split('/').length)
  const sorted = all.sort((a, b) => depth(a.path) - depth(b.path))
  return sorted.flatMap(({ path, option }) => bind(option, path))
}

/** Folders of PATH, this Node's own folder, and tool chains in the home folder. */
async function programFolders(path: string, home: string | null): Promise<readonly string[]> {
  const node = dirname(dirname(await realpath(process.execPath)))
  const chains = home === null ? [] : TOOL_CHAINS.map((name) => join(home, name))
  const wanted = [...path.split(':').filter(isAbsolute), node, ...chains]
  return [...new Set(wanted.map((folder) => resolve(folder)))].filter((folder) => {
    // A home folder, or a folder above it, holds more than programs.
    const tooMuch = folder === '/' || (home !== null && isInside(home, folder))
    return !tooMuch && !SYSTEM.some((system) => isInside(folder, system))
  })
}

function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

/** Hides an existing folder behind an empty one. */
async function mask(path: string): Promise<readonly string[]> {
  const real = await realpath(path).catch(unreadable)
  return real === null ? [] : ['--tmpfs', real, '--remount-ro', real]
}
