/** Trees whose engine is closed, at every moment that matters to them. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { defineTool, type AgentEvent, type RunDetails, type Tool } from 'runwright/agent'
import { follow, payloads } from '../../helpers/engine.js'
import { filesIn, writeFiles } from '../../helpers/files.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { openFamily, writes, type Brain } from '../run/children/support.js'
import { STOPPED } from './scenario.js'
import type { Storage } from './storage.js'

const GOAL = 'shell: grep -q good answer.txt && grep -q two other.txt'
/** Longer than anything here takes: the tree ends within it. */
const GRACE_MS = 600_000

const PARTS = [
  { goal: 'one', check: 'grep -q good answer.txt' },
  { goal: 'two', check: 'grep -q two other.txt' },
]

/** Makes calls again that an engine has stopped as it was closed. */
function persistent(brain: Brain): Brain {
  return (request, turn) => {
    const { messages } = request
    const last = messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1)
    const isStopped = last.some((one) => one.role === 'tool' && one.exit_code === STOPPED)
    return brain(request, isStopped ? 0 : turn)
  }
}

/** Lets two runs write a file each: by the tool that it has for that. */
function lead(tool: string): Brain {
  return (request, turn) => {
    const [first] = request.messages
    const text = first?.role === 'user' ? first.text : ''
    if (text.includes('Goal: one')) return writesOne(request, turn)
    if (text.includes('Goal: two')) return writesTwo(request, turn)
    if (turn > 0) return { text: 'done' }
    const each = tool === 'delegate' ? PARTS : [{}]
    return { calls: each.map((args) => ({ tool, args })) }
  }
}

const writesOne = persistent(writes('answer.txt', 'good\n'))
const writesTwo = persistent(writes('other.txt', 'two\n'))

/** An own tool that starts both. */
const startsBoth: Tool = defineTool({
  name: 'start_both',
  description: 'Starts two runs.',
  parameters: { type: 'object', properties: {} },
  effect: 'idempotent',
  plan: () => Promise.resolve({}),
  verify: () => Promise.resolve('undone'),
  async execute(_, { startRun }) {
    const runs = await Promise.all(PARTS.map((part) => startRun(part)))
    return runs.map(({ status }) => status).join(' ')
  },
})

interface Shut {
  readonly details: RunDetails
  readonly events: readonly AgentEvent[]
  readonly cwd: string
}

/** Closes the engine at an event of the root, and lets another one bring the tree to its end. */
async function shut(
  t: TestContext,
  storage: Storage,
  request: object,
  at: (event: AgentEvent) => boolean,
  graceMs: number,
): Promise<Shut> {
  const place = await storage.place(t)
  const folders = { cwd: place.root, copies: place.copies }
  writeFiles(folders.cwd, { 'answer.txt': 'none\n', 'other.txt': 'none\n' })
  const models = { lead: lead('delegate'), own: lead('start_both'), all: writesAll }
  const options = { ...folders, tools: [startsBoth] }
  const first = await openFamily(t, models, { ...options, store: await place.next() })
  let closed: Promise<void> | undefined
  const reached = new Promise<void>((resolve) => {
    first.engine.observe(({ details, events }) => {
      if (details.role !== 'root' || closed !== undefined || !events.some(at)) return
      closed = first.engine.close({ graceMs })
      resolve()
    })
  })
  const root = (await first.engine.create({ goal: GOAL, ...request })).details.run_id
  await reached
  // The runs that a tree starts while its engine closes are begun by the other processes of a
  // shared store, and by the engine itself in its own one.
  if (!storage.isShared) await closed
  const next = await openFamily(t, models, { ...options, store: await place.next() })
  await closed
  const events = await follow(next.engine, root)
  return { details: await next.engine.get(root), events, cwd: folders.cwd }
}

const writesAll: Brain = persistent((_, turn) =>
  turn === 0
    ? {
        calls: [
          { tool: 'write_file', args: { path: 'answer.txt', content: 'good\n' } },
          { tool: 'write_file', args: { path: 'other.txt', content: 'two\n' } },
        ],
      }
    : { text: 'done' },
)

const DELEGATES = { delegation: { children: 2 }, max_iterations: 1 }
const REQUESTS = {
  attempts: { model_name: 'test:all', attempts: { count: 2 }, max_iterations: 1 },
  delegates: { ...DELEGATES, model_name: 'test:lead' },
  'an own tool': { ...DELEGATES, model_name: 'test:own' },
} as const

const MOMENTS: Readonly<Record<keyof typeof REQUESTS, readonly AgentEvent['kind'][]>> = {
  attempts: ['run_started', 'attempt_started', 'attempt_ended', 'attempt_chosen', 'files_changing'],
  delegates: ['tool_started', 'delegate_started', 'files_changing', 'files_changed', 'delegate_ended'],
  'an own tool': ['tool_started', 'delegate_started', 'files_changing', 'delegate_ended'],
}

/** Registers the hand-over of trees for a kind of store. */
export function testTreeHandOver(storage: Storage): void {
  for (const [what, kinds] of Object.entries(MOMENTS))
    for (const kind of kinds)
      for (const [how, graceMs] of [['at once', 0], ['with time', GRACE_MS]] as const)
        test(`a shutdown ${how} at ${kind} loses nothing of ${what} in ${storage.name}`, async (t) => {
          const request = REQUESTS[what as keyof typeof REQUESTS]
          const isMoment = (one: AgentEvent): boolean => one.kind === kind
          const { details, events, cwd } = await shut(t, storage, request, isMoment, graceMs)
          assertInvariants(events)
          assert.equal(details.status, 'achieved', details.final_state.goal_reason)
          assert.deepEqual(filesIn(cwd), { 'answer.txt': 'good\n', 'other.txt': 'two\n' })
          for (const { conflicts, status } of payloads(events, 'delegate_ended'))
            assert.deepEqual([status, conflicts], ['achieved', []])
          for (const { exit_code, output } of payloads(events, 'tool_result'))
            assert.equal(exit_code, 0, output)
          for (const { skipped } of payloads(events, 'files_changed')) assert.deepEqual(skipped, [])
          const attempts = payloads(events, 'attempt_started')
          const started = [...attempts, ...payloads(events, 'delegate_started')]
          assert.equal(new Set(started.map(({ run_id }) => run_id)).size, 2)
          assert.equal(started.length, 2)
          if (what === 'attempts') assert.equal(details.changes, 'applied')
        })
}
