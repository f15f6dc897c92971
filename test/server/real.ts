import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { MemoryStore, type EngineOptions, type ModelRequest } from 'runwright/agent'
import { repairModel } from 'runwright/repair'
import type { RunServiceOptions } from 'runwright/server'
import { scratch, testProvider, type Said } from '../helpers/engine.js'
import { openService, type Opened } from './open-service.js'

/** A service over the real engine, and the folders that its runs work in. */
export interface Real extends Opened {
  /** A root with `ok` (a folder), `file`, `out` (a link that leaves the root) and `in` (a link). */
  readonly root: string
  /** A folder outside every root. */
  readonly outside: string
}

/** Opens a service whose model answers with a function; the test's end closes everything. */
export async function openReal(
  t: TestContext,
  options: {
    readonly answer?: (request: ModelRequest, call: number) => Said | Promise<Said>
    readonly engine?: Partial<EngineOptions>
    readonly service?: Omit<RunServiceOptions, 'engine'>
  } = {},
): Promise<Real> {
  const root = scratch(t)
  const outside = scratch(t)
  mkdirSync(join(root, 'ok'))
  writeFileSync(join(root, 'file'), 'x')
  symlinkSync(outside, join(root, 'out'))
  symlinkSync(join(root, 'ok'), join(root, 'in'))
  const opened = await openService({
    ...options.service,
    engine: {
      store: new MemoryStore(),
      roots: [root],
      providers: [
        testProvider(options.answer ?? (() => ({ text: 'nothing to do' }))), repairModel(),
      ],
      defaultModel: 'test:m',
      ...options.engine,
    },
  })
  t.after(() => opened[Symbol.asyncDispose]())
  return Object.assign(opened, { root, outside })
}

/** A turn that runs a command. */
export function shell(command: string): Said {
  return { calls: [{ tool: 'bash', args: { command } }] }
}
