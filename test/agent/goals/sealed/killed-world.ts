import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { processExecutor, type JsonObject } from 'runwright/agent'
import { bundleWithWorkers } from '../../../helpers/bundle.js'
import { scratch } from '../../../helpers/engine.js'
import { put } from '../holdout/world.js'

/** What a child does, as its first argument. */
export interface KilledPlan {
  /** Folder of the store. */
  readonly directory: string
  readonly root: string
  /** Where copies are made: beside those of isolated runs, or in a temporary folder. */
  readonly place: 'beside' | 'temporary'
  readonly request: JsonObject
  /** What the model does in its only iteration. */
  readonly command: string
  /**
   * Null: not by itself. Otherwise while that copy is made, when it has as many files, or while it
   * is removed, when so few are left. Copies are counted from 1.
   */
  readonly dies: {
    readonly what: 'making' | 'removing'
    readonly copy: number
    readonly files: number
  } | null
}

/** When a check is under way, in the order of a run. */
export const MOMENTS = ['first', 'in place', 'sealed', 'new tests', 'held-out'] as const
export type Moment = (typeof MOMENTS)[number]

/** What a test of the project tells. */
interface Told {
  /** The folder that the test is in. */
  readonly root: string
  readonly who: 'visible' | 'held-out'
  readonly isFixed: boolean
  readonly hasNewTest: boolean
}

/** How a child ended that was not killed. */
export interface KilledEnd {
  readonly runId: string
  readonly status: string
  readonly end_reason: string
  readonly goal_reason: string
  readonly assurance: JsonObject
  /** Iteration and verdict of each. */
  readonly checks: readonly (readonly [iteration: number, achieved: boolean])[]
  /** Numbers of the evaluations of held-out tests. */
  readonly evaluations: readonly number[]
  readonly recoveries: number
}

/** Of a project whose tests say by a connection when they run, and wait for an answer. */
const TELL = `
const { existsSync } = require('node:fs')
const { connect } = require('node:net')
const { dirname, join } = require('node:path')
const { add } = require('../lib/add.js')
const root = dirname(__dirname)
exports.tell = (who) => new Promise((resolve, reject) => {
  const hasNewTest = existsSync(join(root, 'test/new.test.js'))
  const told = { root, who, isFixed: add(1, 2) === 3, hasNewTest }
  const socket = connect(require('./port.json'), '127.0.0.1')
  socket.on('error', reject)
  socket.write(JSON.stringify(told) + '\\n')
  socket.once('data', () => resolve(socket.destroy()))
})
`

const testOf = (name: string, who: Told['who']): string => `
const test = require('node:test')
const assert = require('node:assert')
const { add } = require('../lib/add.js')
const { tell } = require('../test/tell.js')
test('${name}', async () => {
  await tell('${who}')
  assert.equal(add(1, 2), 3)
})
`

/** A run whose process is killed, and those that take it over. */
export class KilledWorld {
  readonly directory: string
  readonly root: string
  /** The temporary folder of all children. */
  readonly temporary: string
  readonly #t: TestContext
  readonly #script: string
  readonly #env: NodeJS.ProcessEnv
  readonly #server: Server
  #onTold: (moment: Moment, socket: Socket) => void = () => undefined

  private constructor(t: TestContext, folder: string, hasSandbox: boolean) {
    this.#t = t
    this.directory = join(folder, 'data')
    this.root = join(folder, 'work')
    this.temporary = join(folder, 'tmp')
    const programs = join(folder, 'programs')
    for (const path of [this.root, this.temporary, programs]) mkdirSync(path)
    if (!hasSandbox) {
      writeFileSync(join(programs, 'bwrap'), '#!/bin/sh\nexit 1\n')
      chmodSync(join(programs, 'bwrap'), 0o755)
    }
    const PATH = `${programs}:${process.env['PATH']}`
    this.#env = { ...process.env, TMPDIR: this.temporary, PATH }
    this.#script = bundleWithWorkers(new URL('killed-child.ts', import.meta.url), folder)
    this.#server = createServer((socket) => {
      socket.on('error', () => undefined)
      createInterface({ input: socket }).once('line', (line) => {
        this.#onTold(this.#momentOf(JSON.parse(line) as Told), socket)
      })
    })
  }

  /** `files`: how many there are besides those of the project, so that a copy takes its time. */
  static async open(
    t: TestContext,
    { hasSandbox, files = 0 }: { readonly hasSandbox: boolean; readonly files?: number },
  ): Promise<KilledWorld> {
    const world = new KilledWorld(t, scratch(t), hasSandbox)
    world.#server.listen(0, '127.0.0.1')
    await once(world.#server, 'listening')
    t.after(() => world.#server.close())
    const { port } = world.#server.address() as AddressInfo
    const more = Array.from({ length: files }, (_, i) => [`data/${i % 20}/${i}.txt`, `${i}\n`])
    put(world.root, {
      ...Object.fromEntries(more) as Record<string, string>,
      'package.json': '{ "type": "commonjs" }\n',
      'lib/add.js': 'exports.add = (a, b) => a - b\n',
      'test/tell.js': TELL,
      'test/port.json': String(port),
      'test/add.test.js': testOf('adds', 'visible'),
    })
    return world
  }

  #momentOf({ root, who, isFixed, hasNewTest }: Told): Moment {
    if (who === 'held-out') return 'held-out'
    if (root === this.root) return 'in place'
    if (!isFixed) return 'first'
    return hasNewTest ? 'new tests' : 'sealed'
  }

  /** The folder in which copies are made, or would be. */
  get copies(): string {
    return join(this.directory, 'workspaces/.sealed')
  }

  /** All that is left: copies, and files of processes in the temporary folder. */
  left(): readonly string[] {
    const copies = existsSync(this.copies) ? readdirSync(this.copies) : []
    return [...copies, ...readdirSync(this.temporary)]
  }

  #plan({ place = 'beside', dies = null }: Partial<KilledPlan>): KilledPlan {
    const { directory, root } = this
    const end = 'END_OF_FILE'
    const command =
      `printf 'exports.add = (a, b) => a + b' > lib/add.js\n` +
      `cat > test/new.test.js <<'${end}'\n${testOf('is new', 'visible')}\n${end}`
    const holdout = {
      files: { 'held/more.test.js': testOf('is held out', 'held-out') },
      command: 'node --test held/more.test.js',
    }
    const request = { goal: 'shell: node --test test/', max_iterations: 2, holdout }
    return { directory, root, place, dies, request, command }
  }

  #start(plan: KilledPlan): ChildProcess {
    const words = [this.#script, JSON.stringify(plan)]
    const stdio = ['ignore', 'pipe', 'inherit'] as const
    const child = spawn(process.execPath, words, { stdio: [...stdio], env: this.#env })
    this.#t.after(() => void child.kill('SIGKILL'))
    return child
  }

  /**
   * Starts a process and kills it at a moment; resolves once it is dead, and so is the process of
   * its check. All that it tells before is in `before`.
   */
  async killAt(moment: Moment, options: Partial<KilledPlan> = {}): Promise<readonly Moment[]> {
    const before: Moment[] = []
    const child = this.#start(this.#plan(options))
    const ended = once(child, 'exit')
    const reached = new Promise<Socket>((resolve) => {
      this.#onTold = (told, socket) => {
        if (told === moment) return resolve(socket)
        before.push(told)
        socket.write('go\n')
      }
    })
    const first = await Promise.race([reached, ended])
    if (Array.isArray(first)) throw new Error(`it ended (${first.join()}) after ${before.join()}`)
    // Held by the process of the check alone.
    const closed = once(first as Socket, 'close')
    child.kill('SIGKILL')
    await Promise.all([closed, ended])
    return before
  }

  /** Starts a process that goes on to the end; null when it died by itself. */
  async goOn(options: Partial<KilledPlan> = {}): Promise<KilledEnd | null> {
    this.#onTold = (_, socket) => void socket.write('go\n')
    const child = this.#start(this.#plan(options))
    let output = ''
    child.stdout!.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
    const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
    if (signal === 'SIGKILL') return null
    if (code !== 0) throw new Error(`a child ended with ${code ?? signal}: ${output}`)
    return JSON.parse(output) as KilledEnd
  }
}

/** Asserts that a run was achieved as if nothing had happened, and that nothing is left of it. */
export async function assertWhole(
  world: KilledWorld,
  end: KilledEnd | null,
): Promise<KilledEnd> {
  assert.ok(end !== null, 'it went on to the end')
  const { runId, status, end_reason, assurance, checks, goal_reason } = end
  assert.deepEqual([status, end_reason], ['achieved', 'goal_achieved'], goal_reason)
  assert.deepEqual(assurance, { by: 'tests', sealed: true, canaries: true, holdout: true })
  assert.deepEqual(checks, [[0, false], [1, true]], 'one check of each iteration')
  assert.deepEqual(world.left(), [], 'no copy, no report and no pipe is left')
  assert.equal(await processExecutor().killMarked(runId), 0, 'no process of the run is left')
  return end
}
