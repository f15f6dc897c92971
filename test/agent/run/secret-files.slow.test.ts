import assert from 'node:assert/strict'
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { defineTool, MemoryStore, RunEngine } from 'runwright/agent'
import { runToEnd, scratch, testProvider } from '../../helpers/engine.js'

const FILES = ['.env', '.ssh/config', 'data/customers', 'plain']

for (const storeSecretFiles of [false, true]) {
  test(`the log ${storeSecretFiles ? 'has' : 'has no'} content of files with secrets`, async (t) => {
    const cwd = scratch(t)
    for (const folder of ['.ssh', 'data']) mkdirSync(join(cwd, folder))
    for (const path of FILES) writeFileSync(join(cwd, path), `before ${path}\n`)
    const edit = defineTool({
      name: 'edit_all',
      description: 'edits',
      parameters: { type: 'object' },
      effect: 'unsafe',
      changesFiles: true,
      execute: () => {
        for (const path of FILES) appendFileSync(join(cwd, path), 'after\n')
        return 'done'
      },
    })
    const store = new MemoryStore()
    await using engine = await RunEngine.open({
      store,
      roots: [cwd],
      providers: [
        testProvider(({ messages }) =>
          messages.some(({ role }) => role === 'tool')
            ? { text: 'done' }
            : { calls: [{ tool: 'edit_all', args: {} }] },
        ),
      ],
      defaultModel: 'test:m',
      tools: [edit],
      neverStore: ['data/**'],
      storeSecretFiles,
      checkpoints: 'off',
    })
    const { events } = await runToEnd(engine, { goal: 'shell: grep -q after plain', cwd })
    const text = JSON.stringify(events)
    for (const path of FILES) {
      assert.ok(text.includes(`"path":"${path}"`), path)
      assert.equal(text.includes(`before ${path}`), storeSecretFiles || path === 'plain', path)
    }
  })
}
