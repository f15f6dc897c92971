/** Trees in memory, on the disk, and by chance. */
import { hash } from 'node:crypto'
import {
  chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync,
  writeFileSync,
} from 'node:fs'
import type { LeftOut, Tree, TreeEntry } from '../../lib/agent/tree.js'
import { comparePaths } from '../../lib/agent/workspace/net-changes.js'
import { bytesOfName, nameOfBytes } from '../../lib/internal/bytes.js'
import type { Random } from './random.js'

/** A file or link: its content or target. */
export interface ModelFile {
  readonly content: Buffer
  readonly mode: number
  readonly link?: boolean
}

/** Files and links by path. */
export type Model = ReadonlyMap<string, ModelFile>

export function file(content: string | Buffer, mode = 0o644): ModelFile {
  return { content: Buffer.from(content), mode }
}

export function link(target: string | Buffer): ModelFile {
  return { content: Buffer.from(target), mode: 0o777, link: true }
}

export function entryOf({ content, mode, link }: ModelFile): TreeEntry {
  return {
    kind: link === true ? 'link' : 'file',
    mode,
    sha256: hash('sha256', content),
    size: content.length,
  }
}

export function treeOf(model: Model, leftOut: readonly LeftOut[] = []): Tree {
  const paths = [...model.keys()].sort(comparePaths)
  return { entries: new Map(paths.map((path) => [path, entryOf(model.get(path)!)])), leftOut }
}

/** Gives the contents of all these models. */
export function contentsOf(...models: readonly Model[]): (entry: TreeEntry) => Promise<Buffer> {
  const contents = new Map<string, Buffer>()
  for (const model of models) {
    for (const { content } of model.values()) contents.set(hash('sha256', content), content)
  }
  return (entry) => {
    const content = contents.get(entry.sha256)
    return content === undefined
      ? Promise.reject(new Error(`no content ${entry.sha256}`))
      : Promise.resolve(content)
  }
}

/** Writes the files of a model into a folder. */
export function writeModel(folder: string, model: Model): void {
  for (const [path, { content, mode, link }] of model) {
    const at = diskPath(folder, path)
    const above = at.subarray(0, at.lastIndexOf('/'))
    mkdirSync(above, { recursive: true })
    if (link === true) symlinkSync(content, at)
    else {
      writeFileSync(at, content)
      chmodSync(at, mode)
    }
  }
}

/** Removes a file, and the folders above that are empty then. */
export function removeFile(folder: string, path: string): void {
  rmSync(diskPath(folder, path), { recursive: true, force: true })
}

export function diskPath(folder: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(`${folder}/`), bytesOfName(path)])
}

/** Reads all files and links below a folder, and with `folders` its folders as well. */
export function readModel(folder: string): Map<string, ModelFile> {
  const model = new Map<string, ModelFile>()
  const walk = (above: Buffer, prefix: string): void => {
    for (const name of readdirSync(above, { encoding: 'buffer' })) {
      const at = Buffer.concat([above, Buffer.from('/'), name])
      const path = `${prefix}${nameOfBytes(name)}`
      const stats = lstatSync(at)
      if (stats.isDirectory()) walk(at, `${path}/`)
      else if (stats.isSymbolicLink()) {
        model.set(path, { content: readlinkSync(at, 'buffer'), mode: 0o777, link: true })
      } else model.set(path, { content: readFileSync(at), mode: stats.mode & 0o777 })
    }
  }
  walk(Buffer.from(folder), '')
  return model
}

/** The folders below a folder. */
export function foldersOf(folder: string): string[] {
  const found: string[] = []
  const walk = (above: Buffer, prefix: string): void => {
    for (const entry of readdirSync(above, { encoding: 'buffer', withFileTypes: true })) {
      if (!entry.isDirectory()) continue
      const path = `${prefix}${nameOfBytes(entry.name)}`
      found.push(path)
      walk(diskPath(folder, path), `${path}/`)
    }
  }
  walk(Buffer.from(folder), '')
  return found.sort()
}

/** One line per file, for comparing. */
export function listing(model: Model): readonly string[] {
  return [...model]
    .map(([path, { content, mode, link }]) => {
      const text = content.length > 200 ? hash('sha256', content) : content.toString('latin1')
      const kind = link === true ? 'link' : mode.toString(8)
      return `${JSON.stringify(path)} ${kind} ${JSON.stringify(text)}`
    })
    .sort()
}

const NAMES = [
  'a', 'b', 'c', 'd e', 'tab\t', '"q"', 'back\\slash', 'ümläut', '\udcff\udc80raw', 'x\ny', '😀',
  '~', '#', '[x]', ' lead', 'trail ', "it's", '%20', '-dash', 'ca\udcc3fe', '\u00a0', '\ue000',
]

/** A random path of at most four names, from few names so that paths collide. */
export function randomPath(random: Random, names: readonly string[] = NAMES): string {
  const depth = random.pick([1, 1, 2, 2, 3, 4])
  return Array.from({ length: depth }, () => random.pick(names)).join('/')
}

/** Content of every kind: text, without newline at the end, CRLF, Latin-1, binary, empty. */
export function randomContent(random: Random): Buffer {
  const lines = Array.from({ length: random.integer(0, 30) }, () => `${random.pick(WORDS)}`)
  switch (random.integer(0, 9)) {
    case 0:
      return Buffer.alloc(0)
    case 1:
      return Buffer.from(lines.join('\r\n'))
    case 2:
      return randomBytes(random, random.integer(0, 400), 0)
    case 3:
      return randomBytes(random, random.integer(1, 90), 1)
    case 4:
      return Buffer.from(lines.join('\n'))
    case 5:
      return Buffer.concat([Buffer.from(lines.join('\n')), Buffer.of(0, 10, 0)])
    default:
      return Buffer.from(lines.map((line) => `${line}\n`).join(''))
  }
}

function randomBytes(random: Random, length: number, least: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.integer(least, 255)))
}

const WORDS = [
  'alpha', 'beta', 'gamma', '', ' ', '\t', '--- a/x', '+++ b/x', '@@ -1 +1 @@', '-- ', 'diff --git',
  '\\ No newline at end of file', 'trailing  ', 'caf\u00e9', '+', '-', '}', 'return', 'x'.repeat(300),
]

export function randomFile(random: Random): ModelFile {
  if (random.chance(0.08)) return link(random.pick(['a', 'b/c', 'nowhere', 'caf\u00e9']))
  return file(randomContent(random), random.pick([0o644, 0o644, 0o644, 0o755]))
}

/** A random tree in which no file lies where another path needs a folder. */
export function randomModel(
  random: Random,
  size: number,
  names?: readonly string[],
): Map<string, ModelFile> {
  const model = new Map<string, ModelFile>()
  for (let i = 0; i < size; i++) put(model, randomPath(random, names), randomFile(random))
  return model
}

/** Puts a file into a model; what is in its way is removed. */
export function put(model: Map<string, ModelFile>, path: string, value: ModelFile): void {
  for (const other of [...model.keys()]) {
    if (other.startsWith(`${path}/`) || path.startsWith(`${other}/`)) model.delete(other)
  }
  model.set(path, value)
}

/** A random edit of some of the files. */
export function randomEdits(
  random: Random,
  before: Model,
  edits: number,
  names?: readonly string[],
): Map<string, ModelFile> {
  const model = new Map(before)
  for (let i = 0; i < edits; i++) {
    const paths = [...model.keys()]
    const path = paths.length === 0 ? 'a' : random.pick(paths)
    const old = model.get(path) ?? file('')
    switch (random.integer(0, 6)) {
      case 0:
        model.delete(path)
        break
      case 1:
        if (model.delete(path)) put(model, randomPath(random, names), old)
        break
      case 2:
        put(model, randomPath(random, names), randomFile(random))
        break
      case 3:
        if (old.link !== true) model.set(path, { ...old, mode: old.mode ^ 0o111 })
        break
      case 4:
        model.set(path, randomFile(random))
        break
      default:
        if (old.link !== true) model.set(path, { ...old, content: editLines(random, old.content) })
    }
  }
  return model
}

/** Changes, removes or adds a few lines. */
export function editLines(random: Random, content: Buffer): Buffer {
  const lines = content.toString('latin1').split('\n')
  for (let i = random.integer(1, 3); i > 0; i--) {
    const at = random.integer(0, lines.length - 1)
    const replaced = random.integer(0, 2)
    const word = (): string => random.pick(['new', 'two', ''])
    const added = Array.from({ length: random.integer(0, 2) }, word)
    lines.splice(at, replaced, ...added)
  }
  return Buffer.from(lines.join('\n'), 'latin1')
}
