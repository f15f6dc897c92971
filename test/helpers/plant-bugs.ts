import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { NO_USAGE, type Model, type ModelProvider } from 'runwright/agent'

const BROKEN = `export function contains(range, n) {
  return n >= range.from && n > range.to
}
export function size(range) {
  return range.to + range.from
}
`
const FIXED = BROKEN.replace('n > range.to', 'n < range.to').replace('range.to + ', 'range.to - ')

/**
 * Creates a project of one module with two bugs, which take `builtin:repair` a few iterations.
 *
 * @returns `project`.
 */
export function plantBugs(project: string): string {
  mkdirSync(join(project, 'test'), { recursive: true })
  writeFileSync(join(project, 'package.json'), '{"type":"module","scripts":{"test":"node --test"}}')
  writeFileSync(join(project, 'range.js'), BROKEN)
  writeFileSync(
    join(project, 'test', 'range.test.js'),
    `import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contains, size } from '../range.js'
test('contains what lies between', () => assert.equal(contains({ from: 2, to: 5 }, 3), true))
test('does not contain what lies above', () => assert.equal(contains({ from: 2, to: 5 }, 6), false))
test('does not contain its end', () => assert.equal(contains({ from: 2, to: 5 }, 5), false))
test('has a size', () => assert.equal(size({ from: 2, to: 5 }), 3))
`,
  )
  return project
}

/** Fixes the bugs. */
export function repairBugs(project: string): void {
  writeFileSync(join(project, 'range.js'), FIXED)
}

/** Reads the module in the first iteration and fixes it in the second: a gate may lie between. */
const model: Model = {
  name: 'two:steps',
  isLanguageModel: false,
  contextWindow: null,
  prices: { input: 0, output: 0, as_of: '2026-01-01' },
  async complete({ messages, run }) {
    const call_id = `call-${messages.length}`
    const path = 'range.js'
    const call =
      run.iteration === 1
        ? { call_id, tool: 'read_file', args: { path } }
        : { call_id, tool: 'write_file', args: { path, content: FIXED } }
    const calls = messages.at(-1)?.role === 'tool' ? [] : [call]
    const message = { role: 'assistant' as const, text: `Iteration ${run.iteration}.`, calls }
    return {
      message,
      reasoning: '',
      usage: NO_USAGE,
      stop: calls.length > 0 ? 'tool_calls' : 'end',
    }
  },
}

/** The provider of the model `two:steps`. */
export const twoSteps: ModelProvider = {
  id: 'two',
  description: 'looks, then repairs',
  isLanguageModel: false,
  suggestions: ['steps'],
  create: () => model,
}
