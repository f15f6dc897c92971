/** What the model hears when files are taken back while its run waits. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { MemoryStore, StoreError, type Message, type RunRecord } from 'runwright/agent'
import { nextTurn } from '../../../lib/internal/time.js'
import { follow, openEngine, scratch, testProvider } from '../../helpers/engine.js'
import { assertInvariants } from '../../helpers/invariants.js'
import { partedCalls } from '../crash/talk.js'

const NOTICE = /^A human has given these files the content of an earlier checkpoint: (.*)\. Read/

/** A store whose process dies when a restore has been done and is about to be confirmed. */
class DyingStore extends MemoryStore {
  dies = false

  override async append(runId: string, records: readonly RunRecord[]): Promise<void> {
    if (this.dies && records.some(({ kind }) => kind === 'files_changed'))
      throw new StoreError('ERR_AGENT_STORE_LOCKED', 'the process is dead')
    await super.append(runId, records)
  }
}

for (const gate of ['iteration', 'tool'] as const) {
  for (const by of ['the process that was asked', 'the next one'] as const) {
    test(`the next call after a gate (${gate}) names what ${by} has restored, once`, async (t) => {
      const cwd = scratch(t)
      for (const name of ['a', 'b', 'c']) writeFileSync(join(cwd, name), 'old\n')
      const store = new DyingStore()
      const asked: (readonly Message[])[] = []
      const provider = testProvider(({ messages, run }) => {
        asked.push([...messages])
        assert.deepEqual(partedCalls(messages), [])
        const write = (path: string) => ({ tool: 'write_file', args: { path, content: 'new\n' } })
        const paths = run.iteration === 1 ? ['a', 'b'] : ['c']
        return run.turn === 0 ? { calls: paths.map(write) } : {}
      })
      const options = { cwd, store, providers: [provider], checkpoints: 'auto' } as const
      const { engine } = await openEngine(t, { ...options, gateTimeoutMs: null })
      const { details } = await engine.create({
        goal: 'shell: false', max_iterations: 2, hitl_enabled: true,
        ...(gate === 'tool' && { approval: 'writes' }),
      })
      const runId = details.run_id
      const isGate = (iteration: number) => (one: { kind: string; iteration: number }) =>
        one.kind === 'human_check_required' && one.iteration === iteration
      let gates = 0
      await follow(engine, runId, (event) => {
        if (event.kind !== 'human_check_required') return false
        gates += 1
        const isLast = gate === 'tool' ? isGate(2)(event) : isGate(1)(event)
        const { gate_id } = event.payload
        if (!isLast) void engine.resume(runId, { decision: 'approve', gate_id })
        return isLast
      })
      assert.ok(gates > 0)
      const [start] = await engine.workspaces.checkpoints(runId)
      const request = { checkpoint_id: start!.checkpoint_id }
      let heir = engine
      if (by === 'the next one') {
        store.dies = true
        await assert.rejects(engine.workspaces.restore(runId, request))
        store.dies = false
        const same = new Proxy(store, {
          get(target, name) {
            if (name === 'open' || name === 'close') return () => Promise.resolve()
            const value = Reflect.get(target, name) as unknown
            return typeof value === 'function' ? value.bind(target) : value
          },
        })
        ;({ engine: heir } = await openEngine(t, { ...options, store: same, gateTimeoutMs: null }))
        while ((await store.head(runId))?.operation !== null) await nextTurn()
      } else await engine.workspaces.restore(runId, request)
      const before = asked.length
      for (;;) {
        const { gate: open } = await heir.get(runId)
        if (open === null) break
        await heir.resume(runId, { decision: 'approve', gate_id: open.gate_id })
        await follow(heir, runId, ({ kind, seq }) => kind === 'model_turn' && seq > 0)
        if (asked.length > before) break
        await nextTurn()
      }
      while (asked.length === before) await nextTurn()
      const notices = asked[before]!.flatMap((one) => {
        const found = one.role === 'user' ? NOTICE.exec(one.text) : null
        return found === null ? [] : [found[1]]
      })
      assert.deepEqual(notices, ['a, b'])
      assertInvariants(await heir.events(runId, { after: 0, limit: 1_000 }), false)
      await heir.abort(runId).catch(() => undefined)
      await follow(heir, runId)
    })
  }
}
