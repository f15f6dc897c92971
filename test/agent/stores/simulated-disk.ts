/**
 * An in-memory disk behind the seam of `FileStore` that does everything real ones may do:
 *
 * 1. What was written and not synced may be lost when the power fails: all of it, none, or any
 *    blocks of it. So may names (files created, renamed, removed) until their folder is synced.
 * 2. When a process dies, what it wrote is still there; its descriptors are closed.
 * 3. Any operation may fail, do its work in part, or be the last one before a crash, as the plan of
 *    the process says. Asynchronous operations end later, in an order that a generator picks.
 *
 * @module
 */
import { dirname } from 'node:path'
import type { Disk, FileStat } from '../../../lib/agent/stores/file/disk.js'
import type { Random } from '../../helpers/random.js'
import { SimulatedFile } from './simulated-file.js'

export type OperationKind = Exclude<keyof Disk, 'close' | 'size'>

export interface Operation {
  readonly kind: OperationKind
  readonly path: string
  /** Counts 1, 2, 3, … within the process. */
  readonly number: number
}

/** What happens to an operation instead of its success. */
export type Fault =
  /** It fails; `partly`: some of it has been done, or even all. */
  | { readonly kind: 'error'; readonly code: string; readonly partly: boolean }
  /** The process dies before, or in the middle of it. */
  | { readonly kind: 'crash'; readonly partly: boolean }
  /** The process sleeps before it; {@link SimulatedProcess.onSleep} is called, then it goes on. */
  | { readonly kind: 'sleep' }

/** Chooses the fault of an operation; null for none. */
export type Plan = (operation: Operation) => Fault | null

/** One change of names: each is in force as a whole or not at all. */
type NameChange = readonly (readonly [path: string, file: SimulatedFile | null])[]

/** Code of the error that every operation of a dead process throws. */
export const DEAD = 'EDEAD'

/** What all processes share: files and their names. */
export class SimulatedDisk {
  /** In memory, as programs see them. */
  names: Map<string, SimulatedFile> = new Map()
  #durableNames = new Map<string, SimulatedFile>()
  #changes: NameChange[] = []
  /** Directories, and whether their own names are durable. */
  #directories: Map<string, boolean>
  #files = new Map<number, SimulatedFile>()
  #lastIno = 1

  /** @param root - a directory that exists. */
  constructor(root: string) {
    this.#directories = new Map([[root, true]])
  }

  /** An independent copy in the same state, with the same numbers of files. */
  clone(root: string): SimulatedDisk {
    const copy = new SimulatedDisk(root)
    for (const [ino, file] of this.#files) copy.#files.set(ino, file.clone())
    const twin = (file: SimulatedFile): SimulatedFile => copy.file(file.ino)
    copy.names = new Map([...this.names].map(([path, file]) => [path, twin(file)]))
    const durable = [...this.#durableNames]
    copy.#durableNames = new Map(durable.map(([path, file]) => [path, twin(file)]))
    copy.#changes = this.#changes.map((change) =>
      change.map(([path, file]) => [path, file && twin(file)]),
    )
    copy.#directories = new Map(this.#directories)
    copy.#lastIno = this.#lastIno
    return copy
  }

  file(ino: number): SimulatedFile {
    const file = this.#files.get(ino)
    if (file === undefined) throw new Error(`no file has the number ${ino}`)
    return file
  }

  create(path: string): SimulatedFile {
    if (!this.#directories.has(dirname(path))) throw systemError('ENOENT', path)
    const file = new SimulatedFile(++this.#lastIno)
    this.#files.set(file.ino, file)
    this.change([[path, file]])
    return file
  }

  change(change: NameChange): void {
    apply(this.names, change)
    this.#changes.push(change)
  }

  /** Returns the first directory that was missing. */
  makeDirectory(path: string): string | undefined {
    if (this.#directories.has(path)) return undefined
    const first = this.makeDirectory(dirname(path))
    this.#directories.set(path, false)
    return first ?? path
  }

  list(directory: string): string[] {
    if (!this.#directories.has(directory)) throw systemError('ENOENT', directory)
    const names: string[] = []
    for (const path of this.names.keys()) {
      if (dirname(path) === directory) names.push(path.slice(directory.length + 1))
    }
    for (const path of this.#directories.keys()) {
      if (path !== directory && dirname(path) === directory) {
        names.push(path.slice(directory.length + 1))
      }
    }
    return names
  }

  /** Makes the names in a directory durable. */
  syncDirectory(directory: string): void {
    for (const path of this.#directories.keys()) {
      if (dirname(path) === directory) this.#directories.set(path, true)
    }
    // A file that moves from one directory to another does so at once, and what happened to these
    // names before comes first.
    const paths = new Set<string>()
    const synced = new Set<NameChange>()
    for (const change of this.#changes.toReversed()) {
      if (!change.some(([path]) => dirname(path) === directory || paths.has(path))) continue
      for (const [path] of change) paths.add(path)
      synced.add(change)
    }
    for (const change of this.#changes) if (synced.has(change)) apply(this.#durableNames, change)
    this.#changes = this.#changes.filter((change) => !synced.has(change))
  }

  losePower(random: Random): void {
    const way = random.integer(0, 3)
    const kept =
      way < 2 ? random.integer(0, this.#changes.length) : way === 2 ? this.#changes.length : null
    for (const [index, change] of this.#changes.entries()) {
      if (kept === null ? random.chance(0.5) : index < kept) apply(this.#durableNames, change)
    }
    this.#changes = []
    for (const [path, isDurable] of this.#directories) {
      if (isDurable || random.chance(0.5)) continue
      this.#directories.delete(path)
      for (const name of this.#durableNames.keys()) {
        if (name.startsWith(`${path}/`)) this.#durableNames.delete(name)
      }
    }
    this.names = new Map(this.#durableNames)
    this.#files = new Map([...this.names.values()].map((file) => [file.ino, file]))
    for (const file of this.#files.values()) file.losePower(random)
  }

  /** Damages a file, durably; null removes it. */
  damage(path: string, content: Buffer | null): void {
    if (content !== null) return this.names.get(path)?.damage(content)
    this.names.delete(path)
    this.#durableNames.delete(path)
  }

  /** Sum of the sizes of the files whose paths match. */
  bytesOf(paths: RegExp): number {
    let sum = 0
    for (const [path, { content }] of this.names) if (paths.test(path)) sum += content.length
    return sum
  }
}

function apply(names: Map<string, SimulatedFile>, change: NameChange): void {
  for (const [path, file] of change) {
    if (file === null) names.delete(path)
    else names.set(path, file)
  }
}

function systemError(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: simulated, ${path}`), { code, syscall: 'simulated' })
}

interface Descriptor {
  readonly ino: number
  readonly path: string
}

/** The disk as one process sees it: with descriptors of its own, and faults as planned. */
export class SimulatedProcess implements Disk {
  disk: SimulatedDisk
  /** Called when a fault lets the process sleep; what it does happens meanwhile. */
  onSleep: (operation: Operation) => void = () => {}
  /** Why the process cannot be correct: it used a descriptor that was not open. */
  misuse: string | null = null
  /** True once a truncation or a sync has failed: what was written stays, or may come back. */
  couldNotTakeBack = false
  /** True once the file `tail` could not be written: the end of the journal has no witness. */
  couldNotWitness = false
  #plan: Plan
  readonly #random: Random
  readonly #open = new Map<number, Descriptor>()
  #lastFd = 2
  #operations = 0
  #isDead = false
  #waiting: (() => void)[] = []

  constructor(disk: SimulatedDisk, random: Random, plan: Plan) {
    this.disk = disk
    this.#random = random
    this.#plan = plan
  }

  get operations(): number {
    return this.#operations
  }

  get isDead(): boolean {
    return this.#isDead
  }

  /** True while no asynchronous operation waits for its end. */
  get isQuiet(): boolean {
    return this.#waiting.length === 0
  }

  get openFiles(): readonly string[] {
    return [...this.#open.values()].map(({ path }) => path)
  }

  /** From now on no operation fails. */
  heal(): void {
    this.#plan = () => null
  }

  /** Ends the process: its operations in flight may have had an effect, later ones have none. */
  kill(): void {
    this.#isDead = true
    this.#open.clear()
  }

  makeDirectory(path: string): string | undefined {
    return this.#do('makeDirectory', path, () => this.disk.makeDirectory(path))
  }

  list(directory: string): string[] {
    return this.#do('list', directory, () => this.disk.list(directory))
  }

  stat(path: string): FileStat {
    return this.#do('stat', path, () => {
      const { content, ino, mtimeMs } = this.#find(path)
      return { size: content.length, dev: 1, ino, mtimeMs }
    })
  }

  open(path: string, flags: 'r' | 'r+' | 'w' | 'wx'): number {
    const find = (): SimulatedFile => {
      const known = this.disk.names.get(path)
      if (flags === 'wx' && known !== undefined) throw systemError('EEXIST', path)
      if (flags === 'w' && known !== undefined) known.truncate(0)
      const creates = known === undefined && (flags === 'w' || flags === 'wx')
      return creates ? this.disk.create(path) : this.#find(path)
    }
    const { ino } = this.#do('open', path, find)
    const fd = ++this.#lastFd
    this.#open.set(fd, { ino, path })
    return fd
  }

  close(fd: number): void {
    if (this.#isDead) return
    this.#descriptor(fd)
    this.#open.delete(fd)
  }

  size(fd: number): number {
    if (this.#isDead) throw systemError(DEAD, '')
    return this.#fileOf(fd).content.length
  }

  readNow(fd: number, length: number, position: number): Buffer {
    const { path } = this.#descriptor(fd)
    return this.#do('readNow', path, () => this.#read(fd, length, position))
  }

  read(fd: number, length: number, position: number): Promise<Buffer> {
    const { path } = this.#descriptor(fd)
    return this.#later('read', path, () => () => this.#read(fd, length, position))
  }

  writeNow(fd: number, data: Buffer, position: number): void {
    const { path } = this.#descriptor(fd)
    const effect = (): void => this.#fileOf(fd).write(data, position)
    this.#do('writeNow', path, effect, () => this.#writePart(fd, data, position))
  }

  write(fd: number, data: Buffer, position: number): Promise<void> {
    const { path } = this.#descriptor(fd)
    const begin = (): (() => void) => () => this.#fileOf(fd).write(data, position)
    return this.#later('write', path, begin, () => this.#writePart(fd, data, position))
  }

  sync(fd: number): Promise<void> {
    const { path } = this.#descriptor(fd)
    const begin = (): (() => void) => this.#fileOf(fd).beginSync()
    return this.#later('sync', path, begin, () => this.#fileOf(fd).failSync(this.#random))
  }

  truncate(fd: number, length: number): void {
    const { path } = this.#descriptor(fd)
    this.#do('truncate', path, () => this.#fileOf(fd).truncate(length))
  }

  rename(from: string, to: string): void {
    this.#do('rename', to, () => {
      const file = this.#find(from)
      this.disk.change([[from, null], [to, file]])
    })
  }

  link(existing: string, path: string): void {
    this.#do('link', path, () => {
      const file = this.#find(existing)
      if (this.disk.names.has(path)) throw systemError('EEXIST', path)
      this.disk.change([[path, file]])
    })
  }

  remove(path: string): void {
    this.#do('remove', path, () => {
      if (this.disk.names.has(path)) this.disk.change([[path, null]])
    })
  }

  touch(path: string): Promise<void> {
    const file = this.disk.names.get(path)
    if (file !== undefined && !this.#isDead) file.mtimeMs = Date.now()
    return Promise.resolve()
  }

  syncDirectory(path: string): void {
    this.#do('syncDirectory', path, () => this.disk.syncDirectory(path), () => {})
  }

  syncFolder(path: string): Promise<void> {
    return this.#later('syncFolder', path, () => () => this.disk.syncDirectory(path), () => {})
  }

  /** Performs an operation, unless it fails; `part` is what a failing one may have done. */
  #do<T>(kind: OperationKind, path: string, effect: () => T, part: () => unknown = effect): T {
    const fault = this.#nextFault(kind, path)
    if (fault === null) return effect()
    if (fault.partly) attempt(part)
    throw this.#errorOf(fault, path)
  }

  /** As {@link #do}, later: `begin` is called now and returns what happens at the end. */
  #later<T>(
    kind: OperationKind,
    path: string,
    begin: () => () => T,
    part?: () => void,
  ): Promise<T> {
    let fault: Exclude<Fault, { readonly kind: 'sleep' }> | null
    let end: () => T
    try {
      fault = this.#nextFault(kind, path)
      end = begin()
    } catch (error) {
      return Promise.reject(error as Error)
    }
    return new Promise((resolve, reject) => {
      this.#wait(() => {
        if (this.#isDead) return reject(systemError(DEAD, path))
        if (fault === null) return settle(end, resolve, reject)
        if (fault.kind === 'error' && kind === 'sync') attempt(part ?? end)
        else if (fault.partly) attempt(kind === 'sync' ? end : (part ?? end))
        reject(this.#errorOf(fault, path))
      })
    })
  }

  /** Calls `end` in one of the next turns of the event loop. */
  #wait(end: () => void): void {
    if (this.#random.chance(0.6)) return queueMicrotask(end)
    this.#waiting.push(end)
    if (this.#waiting.length === 1) setImmediate(() => this.#endSome())
  }

  #endSome(): void {
    const { length } = this.#waiting
    const count = this.#random.integer(this.#isDead ? length : 0, length)
    for (let i = 0; i < count; i++) {
      const [end] = this.#waiting.splice(this.#random.integer(0, this.#waiting.length - 1), 1)
      end?.()
    }
    if (this.#waiting.length > 0) setImmediate(() => this.#endSome())
  }

  /** Counts an operation and returns its fault. @throws when the process is dead. */
  #nextFault(
    kind: OperationKind,
    path: string,
  ): Exclude<Fault, { readonly kind: 'sleep' }> | null {
    if (this.#isDead) throw systemError(DEAD, path)
    const operation = { kind, path, number: ++this.#operations }
    const fault = this.#plan(operation)
    if (fault?.kind === 'error' && (kind === 'truncate' || kind === 'sync')) {
      this.couldNotTakeBack = true
    }
    if (fault?.kind === 'error' && kind === 'writeNow' && path.includes('/tail')) {
      this.couldNotWitness = true
    }
    if (fault?.kind !== 'sleep') return fault
    this.onSleep(operation)
    if (this.#isDead) throw systemError(DEAD, path)
    return null
  }

  #errorOf(fault: Exclude<Fault, { readonly kind: 'sleep' }>, path: string): Error {
    if (fault.kind === 'error') return systemError(fault.code, path)
    this.kill()
    return systemError(DEAD, path)
  }

  #find(path: string): SimulatedFile {
    const file = this.disk.names.get(path)
    if (file === undefined) throw systemError('ENOENT', path)
    return file
  }

  #descriptor(fd: number): Descriptor {
    const found = this.#open.get(fd)
    if (found !== undefined) return found
    if (this.#isDead) return { ino: 0, path: '' }
    this.misuse ??= `descriptor ${fd} was used while it was not open`
    throw systemError('EBADF', '')
  }

  #fileOf(fd: number): SimulatedFile {
    return this.disk.file(this.#descriptor(fd).ino)
  }

  #read(fd: number, length: number, position: number): Buffer {
    return this.#fileOf(fd).content.subarray(position, position + length)
  }

  #writePart(fd: number, data: Buffer, position: number): void {
    const part = data.subarray(0, this.#random.integer(0, data.length))
    if (part.length > 0) this.#fileOf(fd).write(part, position)
  }
}

function attempt(effect: () => unknown): void {
  try {
    effect()
  } catch {
    // It had failed anyway.
  }
}

function settle<T>(
  end: () => T,
  resolve: (value: T) => void,
  reject: (error: unknown) => void,
): void {
  try {
    resolve(end())
  } catch (error) {
    reject(error)
  }
}
