import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryStore, defineTool, type DelegateResult, type ToolContext } from 'runwright/agent'
import { keepOpen, payloads, runToEnd } from '../../../helpers/engine.js'
import { filesIn } from '../../../helpers/files.js'
import { openFamily } from './support.js'
import { PARAMETERS, caller, part, run } from './started-runs.js'

test('a tool starts runs one after the other, each with the files of those before', async (t) => {
  const { cwd, output, events } = await run(t, async ({ startRun }) => {
    const one = await startRun(part('a', 'one'))
    const two = await startRun({ goal: 'write b two', check: 'grep -q one a.txt && test -e b.txt' })
    return `${one.status} ${two.status}`
  })
  assert.equal(output, 'achieved achieved')
  assert.deepEqual(filesIn(cwd), { 'a.txt': 'one\n', 'b.txt': 'two\n', 'start.txt': 'start\n' })
  assert.equal(payloads(events, 'files_changed').length, 2)
})

test('a tool starts runs that work at the same time, with one slot', async (t) => {
  const { cwd, output } = await run(t, async ({ startRun }) => {
    const all = await Promise.all([
      startRun(part('a', 'one')), startRun(part('b', 'two')), startRun(part('c', 'three')),
    ])
    return all.map(({ status }) => status).join(' ')
  })
  assert.equal(output, 'achieved achieved achieved')
  assert.deepEqual(Object.keys(filesIn(cwd)), ['a.txt', 'b.txt', 'c.txt', 'start.txt'])
})

test('while the service shuts down, a run that is started gets its slot before queued runs', async (t) => {
  const store = keepOpen(new MemoryStore())
  let queued = ''
  let closed: Promise<void> | undefined
  const tool = defineTool({
    name: 'work', description: 'works', parameters: PARAMETERS,
    execute: async (_, { startRun }) => {
      queued = (await engine.create({ goal: 'shell: true' })).details.run_id
      closed = engine.close({ graceMs: 20_000 })
      return (await startRun(part('a', 'one'))).status
    },
  })
  const { engine } = await openFamily(
    t, { m: caller }, { store, tools: [tool], maxConcurrentRuns: 1, cwdPolicy: 'allow' },
  )
  const { events } = await runToEnd(engine, {
    goal: 'shell: false', max_iterations: 1, delegation: { depth: 1, children: 1 },
  })
  await closed
  assert.equal(payloads(events, 'tool_result')[0]?.output, 'achieved')
  assert.equal((await store.head(queued))?.details.status, 'pending')
})

test('what both sides changed is told, and stays as it is', async (t) => {
  const results: DelegateResult[] = []
  const { cwd } = await run(t, async ({ startRun }) => {
    results.push(...(await Promise.all([startRun(part('a', 'one')), startRun(part('a', 'two'))])))
    return 'over'
  })
  assert.deepEqual(results.map(({ conflicts }) => conflicts.length).sort(), [0, 1])
  const winner = results.find(({ conflicts }) => conflicts.length === 0)
  assert.equal(filesIn(cwd)['a.txt'], results[0] === winner ? 'one\n' : 'two\n')
})

test('a run is not started by a call that is over, nor beyond the limits', async (t) => {
  let late: ToolContext['startRun'] | undefined
  const { output, details } = await run(t, async ({ startRun }) => {
    late = startRun
    const settled = await Promise.allSettled([
      startRun(part('a', 'one')), startRun(part('b', 'two')), startRun(part('c', 'three')),
      startRun(part('d', 'four')), startRun(part('e', 'five')),
    ])
    return settled.map((one) => (one.status === 'rejected' ? String(one.reason) : 'ok')).join('\n')
  })
  assert.match(output, /^ok\nok\nok\nok\nDelegationError: this run has started 4 others/)
  assert.equal(details.delegates, 4)
  await assert.rejects(late!(part('a', 'one')), { code: 'ERR_AGENT_DELEGATION', message: /over/ })
})

test('what is asked of a run is checked', async (t) => {
  const { output } = await run(t, async ({ startRun }) => {
    const bad: unknown[] = [
      {}, { goal: '' }, { goal: 'x', cwd: '/' }, { goal: 'no check' }, { goal: 'x', check: 7 },
      { goal: 'x', check: 'true', model_name: 'test' },
    ]
    const settled = await Promise.allSettled(bad.map((one) => startRun(one as { goal: string })))
    return settled.map((one) => (one.status === 'rejected' ? String(one.reason) : 'ok')).join('\n')
  })
  const lines = output.split('\n')
  assert.equal(lines.length, 6)
  for (const line of lines) assert.match(line, /Error: /)
})

test('a plan starts no run, and may forget that it has tried', async (t) => {
  const tool = defineTool({
    name: 'work', description: 'works', parameters: PARAMETERS, effect: 'idempotent',
    plan: async (_, { startRun }) => {
      void startRun(part('b', 'two'))
      return { refused: await startRun(part('a', 'one')).then(() => 'started', String) }
    },
    verify: async () => 'undone',
    execute: async (_, { startRun }) => (await startRun(part('c', 'three'))).status,
  })
  const { engine, cwd } = await openFamily(t, { m: caller }, { tools: [tool] })
  const { details, events } = await runToEnd(engine, {
    goal: 'shell: false', max_iterations: 1, delegation: { depth: 1, children: 4 },
  })
  assert.equal(payloads(events, 'tool_result')[0]?.output, 'achieved')
  assert.equal(details.delegates, 1)
  assert.deepEqual(Object.keys(filesIn(cwd)), ['c.txt'])
})

test('delegates of an isolated run see its files, and their changes come into its copy', async (t) => {
  const { cwd, output, details } = await run(
    t,
    async ({ run: command, startRun }) => {
      await command('echo own > own.txt')
      const { status } = await startRun({
        goal: 'write a one', check: 'grep -q own own.txt && grep -q one a.txt',
      })
      const { output: text } = await command('cat own.txt a.txt')
      return `${status} ${text}`
    },
    { workspace: 'isolated', goal: 'shell: grep -q one a.txt' },
  )
  assert.equal(output, 'achieved own\none\n')
  assert.deepEqual(filesIn(cwd), { 'start.txt': 'start\n' })
  assert.deepEqual([details.status, details.changes], ['achieved', 'pending'])
})

test('what a run starts spends its budget', async (t) => {
  const { details, events } = await run(
    t,
    async ({ startRun }) => {
      const results = await Promise.all([
        startRun({ goal: 'write a one', check: 'false' }),
        startRun({ goal: 'write b two', check: 'false' }),
      ])
      return results.map(({ status }) => status).join(' ')
    },
    { max_total_tokens: 5, max_iterations: 3 },
  )
  assert.equal(details.end_reason, 'token_budget')
  const used = payloads(events, 'delegate_ended').map(({ usage }) => usage.input_tokens)
  assert.ok(details.usage.input_tokens >= used.reduce((sum, one) => sum + one, 0))
  assert.ok(details.final_state.total_tokens < 20, String(details.final_state.total_tokens))
})
