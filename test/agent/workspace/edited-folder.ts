/** A folder and its model in memory, edited at random in the same way. */
import { hash } from 'node:crypto'
import * as fs from 'node:fs'
import { bytesOfName } from '../../../lib/internal/bytes.js'
import type { Random } from '../../helpers/random.js'

/** A file or link. */
export interface ModelEntry {
  readonly kind: 'file' | 'link'
  readonly mode: number
  readonly content: Buffer
}

const NAMES = [
  'a', 'a-b', 'a.ts', 'b', 'src', 'é', '\u{1f600}', '\uffee', '\udcff\udcfe', ' x', '~', '*', 'new\nline',
  '__proto__', 'constructor', '-rf', 'UPPER',
]
const TARGETS = ['a', '../..', '/etc/passwd', 'nowhere', '/', '\udcff']

/** See the comment of this file. */
export class EditedFolder {
  readonly root: string
  readonly files: Map<string, ModelEntry> = new Map()
  readonly #random: Random
  /** Longest first, the top last. */
  #folders: string[] = ['']

  constructor(root: string, random: Random) {
    this.root = root
    this.#random = random
  }

  /** The model by path, in the order of bytes. */
  entries(): [string, { kind: string; mode: number; sha256: string; size: number }][] {
    return [...this.files]
      .sort(([a], [b]) => Buffer.compare(bytesOfName(a), bytesOfName(b)))
      .map(([path, { kind, mode, content }]) => [
        path,
        { kind, mode, sha256: hash('sha256', content), size: content.length },
      ])
  }

  at(path: string): Buffer {
    return Buffer.concat([Buffer.from(`${this.root}/`), bytesOfName(path)])
  }

  /** One random edit. */
  edit(): void {
    const random = this.#random
    const path = random.pick([...this.files.keys(), ''])
    const edits = [
      () => this.#create(),
      () => this.#create(),
      () => this.#makeFolder(),
      () => this.#change(path),
      () => this.#change(path),
      () => this.#rename(path),
      () => this.#chmod(path),
      () => this.#delete(path),
      () => random.chance(0.2) && this.#deleteFolder(),
      () => random.chance(0.3) && this.#renameFolder(),
    ]
    random.pick(edits)()
  }

  #content(): Buffer {
    const random = this.#random
    const bytes = random.pick([0, 0, 1, 10, 100, 5_000, 100_000])
    const text = random.pick(['line\n', '\r\n', '\0\xff', 'é'])
    return Buffer.from(text.repeat(bytes) + random.integer(0, 9), 'latin1').subarray(0, bytes)
  }

  #isFree(path: string): boolean {
    return fs.lstatSync(this.at(path), { throwIfNoEntry: false }) === undefined
  }

  #newPath(): string {
    const folder = this.#random.pick(this.#folders)
    const name = this.#random.pick(NAMES)
    return folder === '' ? name : `${folder}/${name}`
  }

  #create(): void {
    const path = this.#newPath()
    if (!this.#isFree(path)) return
    if (this.#random.chance(0.2)) {
      const content = bytesOfName(this.#random.pick(TARGETS))
      fs.symlinkSync(content, this.at(path))
      this.files.set(path, { kind: 'link', mode: 0o777, content })
    } else this.#write(path, this.#content(), this.#random.pick([0o644, 0o755, 0o600]))
  }

  #write(path: string, content: Buffer, mode: number): void {
    fs.writeFileSync(this.at(path), content)
    fs.chmodSync(this.at(path), mode)
    this.files.set(path, { kind: 'file', mode, content })
  }

  #change(path: string): void {
    const entry = this.files.get(path)
    if (entry?.kind !== 'file') return
    // Often of the same size, which nothing but the times tells.
    const content = this.#random.chance(0.5) ? Buffer.from(entry.content) : this.#content()
    if (content.length > 0) content[content.length - 1]! ^= 1
    if (this.#random.chance(0.3)) fs.unlinkSync(this.at(path))
    const times = fs.lstatSync(this.at(path), { throwIfNoEntry: false })
    this.#write(path, content, entry.mode)
    if (times !== undefined && this.#random.chance(0.3)) {
      fs.utimesSync(this.at(path), times.atime, times.mtime)
    }
  }

  #chmod(path: string): void {
    const entry = this.files.get(path)
    if (entry?.kind === 'file') this.#write(path, entry.content, this.#random.pick([0o644, 0o700]))
  }

  #rename(path: string): void {
    const entry = this.files.get(path)
    const to = this.#newPath()
    if (entry === undefined || !this.#isFree(to)) return
    fs.renameSync(this.at(path), this.at(to))
    this.files.delete(path)
    this.files.set(to, entry)
  }

  #delete(path: string): void {
    if (!this.files.delete(path)) return
    fs.unlinkSync(this.at(path))
  }

  #makeFolder(): void {
    const path = this.#newPath()
    if (!this.#isFree(path) || path.split('/').length > 6) return
    fs.mkdirSync(this.at(path))
    this.#folders.unshift(path)
  }

  #deleteFolder(): void {
    const path = this.#random.pick(this.#folders)
    if (path === '') return
    fs.rmSync(this.at(path), { recursive: true })
    this.#move(path, null)
  }

  #renameFolder(): void {
    const path = this.#random.pick(this.#folders)
    const to = this.#newPath()
    if (path === '' || !this.#isFree(to) || `${to}/`.startsWith(`${path}/`)) return
    fs.renameSync(this.at(path), this.at(to))
    this.#move(path, to)
  }

  /** Folders and files below `from` are below `to` now, or gone. */
  #move(from: string, to: string | null): void {
    const below = (path: string): boolean => path === from || path.startsWith(`${from}/`)
    const moved = (path: string): string => `${to}${path.slice(from.length)}`
    this.#folders = this.#folders.flatMap((path) =>
      below(path) ? (to === null ? [] : [moved(path)]) : [path],
    )
    for (const [path, entry] of [...this.files]) {
      if (!below(path)) continue
      this.files.delete(path)
      if (to !== null) this.files.set(moved(path), entry)
    }
  }
}
