/** What the dashboard knows of a call of `try_patches`, from its arguments and its result. */
import assert from 'node:assert/strict'
import { test } from 'node:test'

const folder = new URL('../../../lib/server/dashboard/static/', import.meta.url)

interface Patch {
  readonly edits: readonly { path: string; old: string; now: string }[]
  readonly note: string
  readonly outcome: string
  readonly passed: boolean
}
const { triedBy } = (await import(`${folder.href}tried-patches.js`)) as {
  triedBy(
    call: { tool: string; args: unknown },
    output: string | null,
  ): { patches: Patch[]; what: string; summary: string } | null
}

const patch = (n: number): object => ({
  edits: [{ path: `f${n}.js`, old_text: `old ${n}`, new_text: `new ${n}` }],
})
const call = (count: number): { tool: string; args: object } => ({
  tool: 'try_patches',
  args: { patches: Array.from({ length: count }, (_, i) => patch(i + 1)), command: 'node --test' },
})
const HEAD = '3 patches tried, 1 with exit code 0, 0 reached the time limit'

/** The outcomes that are known. */
function outcomes(count: number, ...lines: readonly string[]): readonly string[] {
  return triedBy(call(count), lines.join('\n'))!.patches.map(({ outcome }) => outcome)
}

test('the patches are those of the arguments, and known before there is a result', () => {
  assert.deepEqual(triedBy(call(1), null), {
    patches: [
      {
        edits: [{ path: 'f1.js', old: 'old 1', now: 'new 1' }],
        note: '', outcome: '', passed: false,
      },
    ],
    what: 'tries 1 patch',
    summary: '1 patch',
  })
  assert.equal(triedBy(call(12), 'the command is missing')?.summary, '12 patches')
})

test('a patch with which the exit code is 0 has passed', () => {
  const output = [
    HEAD, 'Without a patch: exit code 0 (9 ms)', 'Patch 1: exit code 01 (9 ms)',
    'Patch 2: exit code 0 (9 ms), same output', 'Patch 3: could not be made: exit code 0 (1 ms)',
  ].join('\n')
  const { patches, summary } = triedBy(call(3), output)!
  assert.deepEqual(patches.map(({ passed }) => passed), [false, true, false])
  assert.equal(summary, '3 patches: 1 passed')
})

test('without a patch, the command runs in a copy', () => {
  const output = 'The command ran as it is, as there is no patch.\nWithout a patch: exit code 0 (9 ms)'
  assert.deepEqual(triedBy(call(0), output), {
    patches: [], what: 'runs a command in a copy', summary: '0 patches',
  })
})

for (const { name, lines, gives } of [
  {
    name: 'with its changes',
    lines: ['Patch 1: exit code 1 (9 ms)', '  @@ -1,1 +1,1 @@', '  -  a', '  ', '  +b', 'Patch 2: not tried'],
    gives: ['exit code 1 (9 ms)\n@@ -1,1 +1,1 @@\n-  a\n\n+b', 'not tried', ''],
  },
  {
    name: 'but not with what is told of lines',
    lines: ['Patch 1: x', '  y', 'Lines run by failing tests, of 1 failing and 2 other ones:', '  a.js'],
    gives: ['x\ny', '', ''],
  },
  {
    name: 'but not from what a command prints',
    lines: ['Without a patch: x', '  Patch 1: exit code 0 (9 ms)', 'Patch 1: y', '  Patch 2: z'],
    gives: ['y\nPatch 2: z', '', ''],
  },
  { name: 'in their order', lines: ['Patch 2: x', 'Patch 1: y'], gives: ['y', '', ''] },
]) {
  test(`each patch has its outcome, ${name}`, () => {
    assert.deepEqual(outcomes(3, HEAD, ...lines), gives)
  })
}

test('whatever the arguments are, nothing is thrown', () => {
  assert.equal(triedBy({ tool: 'edit_file', args: call(1).args }, null), null)
  for (const args of [null, 'x', {}, { patches: {} }])
    assert.equal(triedBy({ tool: 'try_patches', args }, HEAD), null)
  const patches = [null, 7, { edits: 'x' }, { edits: [null, { path: 1 }], note: 2 }]
  const found = triedBy({ tool: 'try_patches', args: { patches } }, null)
  assert.deepEqual(found?.patches.map(({ edits }) => edits.length), [0, 0, 0, 2])
})
