import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { processExecutor } from 'runwright/agent'
import { Children } from '../../../helpers/kill.js'
import { World } from '../../../helpers/world.js'
import type { KilledEnd, KilledPlan } from './killed-children.js'

const children = new Children<typeof import('./killed-children.js')>(
  new URL('killed-children.ts', import.meta.url),
)

/** When a check is under way, in the order of a run. */
export const MOMENTS = ['first', 'in place', 'sealed', 'held-out'] as const
export type Moment = (typeof MOMENTS)[number]

/** What a test of the project tells. */
interface Told {
  /** The folder that the test is in. */
  readonly root: string
  readonly who: 'visible' | 'held-out'
  readonly isFixed: boolean
}

/** Of a project whose tests say by a connection when they run, and wait for an answer. */
const TELL = `
const { connect } = require('node:net')
const { dirname } = require('node:path')
const { add } = require('../lib/add.js')
const root = dirname(__dirname)
exports.tell = (who) => new Promise((resolve, reject) => {
  const told = { root, who, isFixed: add(1, 2) === 3 }
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
export class KilledRun extends World {
  /** The temporary folder of all children. */
  readonly temporary: string
  readonly #t: TestContext
  readonly #env: NodeJS.ProcessEnv
  readonly #server: Server
  #onTold: (moment: Moment, socket: Socket) => void = () => undefined

  private constructor(t: TestContext, hasSandbox: boolean) {
    super(t)
    this.#t = t
    this.temporary = join(this.top, 'tmp')
    const programs = join(this.top, 'programs')
    for (const path of [this.temporary, programs]) mkdirSync(path)
    if (!hasSandbox) {
      writeFileSync(join(programs, 'bwrap'), '#!/bin/sh\nexit 1\n')
      chmodSync(join(programs, 'bwrap'), 0o755)
    }
    const PATH = `${programs}:${process.env['PATH']}`
    this.#env = { ...process.env, TMPDIR: this.temporary, PATH }
    this.#server = createServer((socket) => {
      socket.on('error', () => undefined)
      createInterface({ input: socket }).once('line', (line) => {
        this.#onTold(this.#momentOf(JSON.parse(line) as Told), socket)
      })
    })
    this.after(() => void this.#server.close())
  }

  /** `files`: how many there are besides those of the project, so that a copy takes its time. */
  static async start(
    t: TestContext,
    { hasSandbox, files = 0 }: { readonly hasSandbox: boolean; readonly files?: number },
  ): Promise<KilledRun> {
    const run = new KilledRun(t, hasSandbox)
    run.#server.listen(0, '127.0.0.1')
    await once(run.#server, 'listening')
    const { port } = run.#server.address() as AddressInfo
    const more = Array.from({ length: files }, (_, i) => [`data/${i % 20}/${i}.txt`, `${i}\n`])
    run.write({
      ...Object.fromEntries(more) as Record<string, string>,
      'package.json': '{ "type": "commonjs" }\n',
      'lib/add.js': 'exports.add = (a, b) => a - b\n',
      'test/tell.js': TELL,
      'test/port.json': String(port),
      'test/add.test.js': testOf('adds', 'visible'),
    })
    return run
  }

  #momentOf({ root, who, isFixed }: Told): Moment {
    if (who === 'held-out') return 'held-out'
    if (root === this.cwd) return 'in place'
    return isFixed ? 'sealed' : 'first'
  }

  /** Names of what is left: copies, and files of processes in the temporary folder. */
  left(): readonly string[] {
    const copies = join(this.data, 'workspaces/.sealed')
    return [...(existsSync(copies) ? readdirSync(copies) : []), ...readdirSync(this.temporary)]
  }

  #plan({ place = 'beside', dies = null }: Partial<KilledPlan>): KilledPlan {
    const { data: directory, cwd: root } = this
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

  /**
   * Starts a process and kills it at a moment; resolves once it is dead, and so is the process of
   * its check. All that it tells before is in `before`.
   */
  async killAt(moment: Moment, options: Partial<KilledPlan> = {}): Promise<readonly Moment[]> {
    const before: Moment[] = []
    const child = children.start(this.#t, 'drive', this.#plan(options), { env: this.#env })
    const reached = new Promise<Socket>((resolve) => {
      this.#onTold = (told, socket) => {
        if (told === moment) return resolve(socket)
        before.push(told)
        socket.write('go\n')
      }
    })
    const socket = await Promise.race([reached, child.ended.then(() => null)])
    assert.ok(socket !== null, `it ended after ${before.join()}`)
    // Held by the process of the check alone.
    const closed = once(socket, 'close')
    child.kill()
    await Promise.all([closed, child.ended])
    return before
  }

  /** Starts a process that goes on to the end; null when it died by itself. */
  async goOn(options: Partial<KilledPlan> = {}): Promise<KilledEnd | null> {
    this.#onTold = (_, socket) => void socket.write('go\n')
    const { signal, lines } = await children.run('drive', this.#plan(options), { env: this.#env })
    return signal === null ? (JSON.parse(lines[0] ?? '') as KilledEnd) : null
  }
}

/** Asserts that a run was achieved as if nothing had happened, and that nothing is left of it. */
export async function assertWhole(
  run: KilledRun,
  end: KilledEnd | null,
): Promise<KilledEnd> {
  assert.ok(end !== null, 'it went on to the end')
  const { runId, status, end_reason, assurance, checks, goal_reason } = end
  assert.deepEqual([status, end_reason], ['achieved', 'goal_achieved'], goal_reason)
  assert.deepEqual(assurance, { by: 'tests', sealed: true, canaries: true, holdout: true })
  assert.deepEqual(checks, [[0, false], [1, true]], 'one check of each iteration')
  assert.deepEqual(run.left(), [], 'no copy, no report and no pipe is left')
  assert.equal(await processExecutor().killMarked(runId), 0, 'no process of the run is left')
  return end
}
