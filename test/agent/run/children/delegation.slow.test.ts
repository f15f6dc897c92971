import assert from 'node:assert/strict'
import { test } from 'node:test'
import { payloads, runToEnd } from '../../../helpers/engine.js'
import { filesIn, writeFiles } from '../../../helpers/files.js'
import { openFamily, writes, type Brain } from './support.js'

/** Delegates parts with its first turn, all at once. */
function delegates(...parts: readonly (readonly [file: string, word: string])[]): Brain {
  return ({ messages }, turn) => {
    const first = messages[0]
    const goal = first?.role === 'user' ? first.text : ''
    const part = /Goal: write (\S+) (\S+)/.exec(goal)
    if (part !== null) return writes(`${part[1]}.txt`, `${part[2]}\n`)({ messages } as never, turn)
    if (turn > 0) return { text: 'done' }
    const calls = parts.map(([file, word]) => ({
      tool: 'delegate',
      args: { goal: `write ${file} ${word}`, check: `grep -q ${word} ${file}.txt` },
    }))
    return { calls, tokens: [1, 1] }
  }
}

test('delegates of one turn work at once, and their changes come back', async (t) => {
  const { engine, cwd } = await openFamily(
    t,
    { boss: delegates(['a', 'one'], ['b', 'two'], ['c', 'three']) },
    { maxConcurrentRuns: 1 },
  )
  writeFiles(cwd, { 'start.txt': 'start\n' })
  const { events, details } = await runToEnd(engine, {
    goal: 'shell: grep -q one a.txt && grep -q two b.txt && grep -q three c.txt',
    delegation: { depth: 1, children: 3 },
    max_iterations: 2,
  })
  assert.deepEqual(filesIn(cwd), {
    'a.txt': 'one\n', 'b.txt': 'two\n', 'c.txt': 'three\n', 'start.txt': 'start\n',
  })
  assert.equal(details.status, 'achieved')
  assert.equal(details.delegates, 3)
  assert.deepEqual(payloads(events, 'delegate_ended').map(({ status }) => status), [
    'achieved', 'achieved', 'achieved',
  ])
  for (const { output } of payloads(events, 'tool_result')) assert.match(output, /achieved/)
})
