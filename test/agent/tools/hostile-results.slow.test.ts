/** Whatever a tool of a host returns, the run goes on, and its model learns what was wrong. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineTool, type Tool } from 'runwright/agent'
import { openEngine, runToEnd, testProvider } from '../../helpers/engine.js'

const circular: Record<string, unknown> = {}
circular['self'] = circular
const detached = new Uint8Array(8)
structuredClone(detached.buffer, { transfer: [detached.buffer] })

const WHAT = 'a tool returns {output: string, exitCode: number}. What it did is done'
const NO_OUTPUT = `own failed: it returned an object whose \`output\` is no string; ${WHAT}`
const NO_CODE = `own failed: it returned an \`exitCode\` that is no whole number; ${WHAT}`

for (const [name, returned, output, exitCode = 1] of [
  ['null', null, `own failed: it returned null, not an object; ${WHAT}`],
  ['nothing', undefined, `own failed: it returned undefined, not an object; ${WHAT}`],
  ['a bigint', 5n, `own failed: it returned bigint, not an object; ${WHAT}`],
  ['a symbol', Symbol('x'), `own failed: it returned symbol, not an object; ${WHAT}`],
  ['a function', () => 1, `own failed: it returned function, not an object; ${WHAT}`],
  ['a date', new Date(0), NO_OUTPUT],
  ['a map', new Map(), NO_OUTPUT],
  ['a list', ['x'], NO_OUTPUT],
  ['an object', { a: 1 }, NO_OUTPUT],
  ['a circle', circular, NO_OUTPUT],
  ['a number as output', { output: 5, exitCode: 0 }, NO_OUTPUT],
  ['no exit code', { output: 'x' }, NO_CODE],
  ['NaN as exit code', { output: 'x', exitCode: NaN }, NO_CODE],
  ['a fraction as exit code', { output: 'x', exitCode: 1.5 }, NO_CODE],
  ['text as exit code', { output: 'x', exitCode: '0' }, NO_CODE],
  ['too large an exit code', { output: 'x', exitCode: 1e20 }, NO_CODE],
  ['text as changes', { output: 'x', exitCode: 0, changes: 'x' },
    `own failed: it returned \`changes\` that are no list; ${WHAT}`],
  ['a getter that throws', { get output() { throw new Error('no') } }, 'own failed: no'],
  ['a file without its memory',
    { output: 'x', exitCode: 0, files: [{ mediaType: 'text/plain', data: detached }] },
    'x\n[a file that cannot be read]', 0],
  ['more than is known', { output: 'x', exitCode: 3, more: circular }, 'x', 3],
] as const) {
  test(`a tool that returns ${name} fails, and the run goes on`, async (t) => {
    const tool = defineTool({
      name: 'own', description: 'works', parameters: { type: 'object' }, effect: 'unsafe',
      execute: () => Promise.resolve(returned as never),
    })
    const bare: Tool = { ...tool, name: 'bare', execute: () => Promise.resolve(returned as never) }
    const calls = ['own', 'bare'].map((one) => ({ tool: one, args: {} }))
    const { engine } = await openEngine(t, {
      tools: [tool, bare], providers: [testProvider((_, n) => (n > 0 ? {} : { calls }))],
    })
    const goal = 'shell: false'
    const { details, events } = await runToEnd(engine, { goal, max_iterations: 1 })
    assert.equal(details.end_reason, 'max_iterations')
    const results = events.flatMap((one) => (one.kind === 'tool_result' ? [one.payload] : []))
    assert.deepEqual(
      results.map(({ exit_code, output }) => [exit_code, output]),
      [[exitCode, output], [exitCode, output.replace(/^own/, 'bare')]],
    )
  })
}
