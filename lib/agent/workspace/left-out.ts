/**
 * What is never part of a tree.
 *
 * 1. Passed over, because it is no work of the run: version control, dependencies, caches, and the
 *    service's own temporary files. {@link isPassedOver} decides by the name. Checkpoints name all
 *    but the last.
 * 2. Left out and named: what holds secrets by its name, by a glob of the host or by how it begins,
 *    and what is too large, too much, neither file nor link, or unreadable.
 *
 * Restoring and applying leave all of it alone: see {@link outsideTree}.
 *
 * @module
 */
import type { LeftOut, LeftOutReason, Tree } from '../tree.js'
import { compileGlobs, type PathMatcher } from './globs.js'
import { isGitFolder } from './git-names.js'
import { SKIPPED_FOLDERS } from './skipped-folders.js'

/** What trees of a folder hold. */
export interface TreeRules {
  /** Folders that do not exist for runs. @defaultValue none */
  readonly closed?: readonly string[] | undefined
  /** Files that are left out besides those known to hold secrets, as globs. @defaultValue none */
  readonly neverStore?: readonly string[] | undefined
  /** Let files with secrets, and those of `neverStore`, be part of trees. @defaultValue false */
  readonly storeSecretFiles?: boolean | undefined
  /**
   * Bytes of content that are stored for one run, the smallest files first. Beyond that only what
   * changed since the run's first capture is stored, up to four times as much. @defaultValue 256
   * MiB
   */
  readonly budgetBytes?: number | undefined
  /** Bytes of the largest file. @defaultValue 32 MiB */
  readonly fileBytes?: number | undefined
  /** Files and links. @defaultValue 200 000 */
  readonly entries?: number | undefined
}

/** The rules with every default filled in. */
export type AllTreeRules = { readonly [K in keyof TreeRules]-?: Exclude<TreeRules[K], undefined> }

/** Files and links of one tree, and folders in folders, at most. */
export const MAX_TREE_ENTRIES = 200_000
export const MAX_TREE_DEPTH = 64
/** Paths named per reason, and their length together: every checkpoint's event holds them. */
export const MAX_NAMED = 1_000
const MAX_NAMED_LENGTH = 128 * 1024
const MAX_PASSED_OVER = 100

/** The rules with every default filled in. */
export function allRules(rules: TreeRules): AllTreeRules {
  return {
    closed: rules.closed ?? [],
    neverStore: rules.neverStore ?? [],
    storeSecretFiles: rules.storeSecretFiles ?? false,
    budgetBytes: rules.budgetBytes ?? 256 * 1024 ** 2,
    fileBytes: rules.fileBytes ?? 32 * 1024 ** 2,
    entries: Math.min(rules.entries ?? MAX_TREE_ENTRIES, MAX_TREE_ENTRIES),
  }
}

/** True for a name that is passed over, be it a folder, a file or a link. */
export function isPassedOver(name: string): boolean {
  return SKIPPED_FOLDERS.has(name) || isGitFolder(name) || isTemporary(name)
}

/** True for the name of a file that the service is writing, see `files.ts`. */
export function isTemporary(name: string): boolean {
  return TEMPORARY.test(name)
}

const TEMPORARY = /^\.runwright-[0-9a-f]{16}\.tmp$/

/** Names that say that something holds secrets, as files or as folders. */
const SECRET_NAMES: ReadonlySet<string> = new Set([
  '.npmrc', '.netrc', '_netrc', '.pypirc', '.git-credentials', '.pgpass', 'pgpass.conf', '.my.cnf',
  '.htpasswd', '.dockercfg', '.dockerconfigjson', '.s3cfg', '.boto', '.vault-token', '.terraformrc',
  'terraform.rc', 'credentials.tfrc.json', '.ssh', '.gnupg', '.aws', '.kube',
  'application_default_credentials.json',
])
/** `.env` with anything behind it, and keys by the names that programs give them. */
const SECRET_NAME = /^\.env|^id_(?:rsa|dsa|ecdsa|ed25519|xmss)(?:_sk)?$/
/** Files of keys and stores of keys. */
const KEY_FILE = /\.(?:pem|key|p8|p12|pfx|pkcs12|keystore|jks|ppk|kdbx)$/

/** True for a name that says that a file holds secrets, in any case. */
export function isSecretName(name: string): boolean {
  const plain = name.toLowerCase()
  return SECRET_NAMES.has(plain) || SECRET_NAME.test(plain) || KEY_FILE.test(plain)
}

/** Bytes at the start of a file that show whether it is a private key. */
const KEY_START = 200
const PRIVATE_KEY =
  /^(?:\xef\xbb\xbf)?\s*(?:-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key)/

/** True for content that begins as private keys do. */
export function isPrivateKey(content: Uint8Array): boolean {
  const first = content[0] ?? 0
  // Spaces, '-', 'P', or a byte order mark: most files are told by their first byte.
  if (first > 0x20 && ![0x2d, 0x50, 0xef].includes(first)) return false
  return PRIVATE_KEY.test(Buffer.from(content.subarray(0, KEY_START)).toString('latin1'))
}

/**
 * Tells what holds secrets by its path or name. A glob without a slash counts in every folder, and
 * one that names a folder leaves out all of it.
 */
export function secretPaths(rules: AllTreeRules): (path: string, name: string) => boolean {
  if (rules.storeSecretFiles) return () => false
  const globs = rules.neverStore.map(anywhere)
  const isGlobbed: PathMatcher = globs.length === 0 ? () => false : compileGlobs(globs)
  return (path, name) => isSecretName(name) || isGlobbed(path)
}

/** Tells of a path whether it is, or lies in, something that {@link secretPaths} tells. */
export function withinSecrets(rules: TreeRules): (path: string) => boolean {
  const isSecret = secretPaths(allRules(rules))
  return (path) => {
    const parts = path.split('/')
    return parts.some((name, i) => isSecret(parts.slice(0, i + 1).join('/'), name))
  }
}

function anywhere(glob: string): string {
  const sign = glob.startsWith('!') ? '!' : ''
  const plain = glob.slice(sign.length).replace(/^\/|\/$/g, '')
  return glob.includes('/', sign.length) && !/^[^/]*\/$/.test(glob)
    ? `${sign}${plain}`
    : `${sign}**/${plain}`
}

/** Counts what is left out, and keeps the first paths. */
export class LeftOutPaths {
  readonly #reasons: Map<LeftOutReason, { count: number; left: number; readonly paths: string[] }> =
    new Map()

  /** A folder counts once, with all that it holds. */
  add(reason: LeftOutReason, path: string): void {
    const found = this.#reasons.get(reason) ?? { count: 0, left: MAX_NAMED_LENGTH, paths: [] }
    this.#reasons.set(reason, found)
    found.count += 1
    const most = reason === 'passed_over' ? MAX_PASSED_OVER : MAX_NAMED
    if (found.paths.length === most || found.left < path.length) return
    found.left -= path.length
    found.paths.push(path || '.')
  }

  list(): readonly LeftOut[] {
    return [...this.#reasons]
      .map(([reason, { count, paths }]) => ({ reason, count, paths: paths.toSorted() }))
      .sort((a, b) => (a.reason < b.reason ? -1 : 1))
  }
}

/** False for reasons that only checkpoints list. */
export function isOfTree({ reason }: LeftOut): boolean {
  return reason !== 'passed_over' && reason !== 'hard_link'
}

/** What trees leave out for such reasons; null if it is too much to be named. */
export function pathsLeftOut(leftOut: readonly LeftOut[]): readonly string[] | null {
  const found = leftOut.filter((it) => isOfTree(it) && it.reason !== 'budget')
  const isCut = found.some(({ count, paths }) => count > paths.length)
  return isCut ? null : found.flatMap(({ paths }) => paths)
}

/**
 * Tells of which paths a tree says nothing, although they may exist: they, or a folder that they
 * lie in, were passed over or left out. When more was left out than is named, that may be any path
 * that the tree does not have.
 */
export function outsideTree(tree: Tree): (path: string) => boolean {
  const reasons = tree.leftOut.filter(({ reason }) => reason !== 'budget')
  const isCut = reasons.some(({ count, paths }) => count > paths.length)
  const named = new Set(reasons.flatMap(({ paths }) => paths))
  return (path) => {
    if (tree.entries.has(path)) return false
    if (isCut || named.has('.')) return true
    let above = ''
    return path.split('/').some((name) => {
      above = above === '' ? name : `${above}/${name}`
      return named.has(above) || isPassedOver(name)
    })
  }
}
