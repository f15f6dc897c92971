/** The copies that an engine gives to tools, on the executors, in place and in a run's own copy. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import {
  bubblewrapProblem, defineTool, type EngineOptions, type JsonObject, type ToolContext,
} from 'runwright/agent'
import { testWorkspaceCopies, type OpenedCopies } from 'runwright/agent/testing'
import { untilAborted } from '../../helpers/abort.js'
import { openEngine, scratch, testProvider } from '../../helpers/engine.js'

/** Opens a run whose model calls a tool again and again; each call hands its context out. */
async function openRun(
  t: TestContext,
  options: Partial<EngineOptions>,
  request: JsonObject = {},
): Promise<OpenedCopies> {
  const parent = scratch(t)
  const cwd = join(parent, 'project')
  mkdirSync(cwd)
  writeFileSync(join(cwd, 'a.txt'), 'one\n')
  let arrived: (context: ToolContext) => void = () => undefined
  let leave: () => void = () => undefined
  const call = (): Promise<ToolContext> => new Promise((resolve) => (arrived = resolve))
  const tool = defineTool({
    name: 'hold', description: 'Holds a call open.', effect: 'read', startsProcess: true,
    parameters: { type: 'object' },
    execute: async (_, context) => {
      const over = new Promise<void>((resolve) => (leave = resolve))
      untilAborted(context.signal).catch(leave)
      arrived(context)
      await over
      return 'over'
    },
  })
  const { engine } = await openEngine(t, {
    cwd, tools: [tool], ...options,
    providers: [testProvider(() => ({ calls: [{ tool: 'hold', args: {} }] }))],
  })
  const first = call()
  const { details } = await engine.create({ goal: 'hold', check: 'false', cwd, ...request })
  const { copies, workspace } = await first
  return {
    copies,
    folder: workspace.root,
    next: async () => {
      const coming = call()
      leave()
      return (await coming).copies
    },
    abort: () => void engine.abort(details.run_id),
  }
}

testWorkspaceCopies('an engine', (t) => openRun(t, {}))

testWorkspaceCopies('an engine with an isolated run', (t) =>
  openRun(t, { checkpoints: 'auto', workspaceFolder: scratch(t) }, { workspace: 'isolated' }))

testWorkspaceCopies(
  'an engine with bubblewrap', (t) => openRun(t, { executor: 'bubblewrap' }),
  { skip: (await bubblewrapProblem()) ?? undefined },
)
