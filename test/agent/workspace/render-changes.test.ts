import { atOnce } from '../../../lib/internal/time.js'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CheckpointError, StoreError } from '../../../lib/agent/errors.js'
import { REDACTED } from '../../../lib/internal/errors.js'
import {
  countChanges, describeChanges, holdsSecret, secretsIn,
} from '../../../lib/agent/workspace/render-changes.js'
import { netChanges } from '../../../lib/agent/workspace/net-changes.js'
import { Random } from '../../helpers/random.js'
import {
  contentsOf,
  file,
  link,
  randomEdits,
  randomModel,
  treeOf,
} from '../../helpers/tree-model.js'
import { both, described, lines } from './rendered-changes.js'

test('each kind of change has its lines, modes and diff', async () => {
  assert.deepEqual(
    await described(
      { a: file('1\n2\n'), gone: file('x\n'), old: file('same\n'), bin: file('a\0'), exe: file('e') },
      { a: file('1\ntwo\n'), new: file('y'), moved: file('same\n', 0o755), bin: file('b\0'), exe: file('e', 0o755), l: link('a') },
    ),
    [
      change('a', 'modified', [1, 1], ['100644', '100644'], '--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n 1\n-2\n+two\n'),
      { ...change('bin', 'modified', [0, 0], ['100644', '100644'], ''), binary: true },
      change('exe', 'modified', [0, 0], ['100644', '100755'], ''),
      change('gone', 'deleted', [0, 1], ['100644', null], '--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n'),
      change('l', 'added', [1, 0], [null, '120000'], '--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n'),
      { ...change('moved', 'renamed', [0, 0], ['100644', '100755'], ''), old_path: 'old' },
      change('new', 'added', [1, 0], [null, '100644'], '--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+y\n\\ No newline at end of file\n'),
    ],
  )
})

function change(
  path: string,
  status: string,
  [additions, deletions]: number[],
  [before, after]: (string | null)[],
  diff: string,
) {
  const mode = { before, after }
  const fields = { path, old_path: null, status, mode, additions, deletions }
  return { ...fields, binary: false, diff, redacted: false }
}

const TOKEN = `ghp_${'a1B2c3D4e5F6g7H8i9'.repeat(2)}`

test('secrets are redacted where a diff would show them, and only then is it said so', async () => {
  const far = `token = ${TOKEN}\n${lines(30)}`
  const [changed, hidden, near, removed] = await described(
    { a: file(`x\n${TOKEN}\n`), b: file(far), c: file(`${TOKEN}\n1\n`), d: file(`key: ${TOKEN}`) },
    { a: file(`x\n${TOKEN.replace('a1', 'z9')}\n`), b: file(`${far}more\n`), c: file(`${TOKEN}\n2\n`) },
  )
  assert.deepEqual([changed!.additions, changed!.deletions, changed!.redacted], [1, 1, true])
  assert.equal(changed!.diff, `--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n x\n-${REDACTED}\n+${REDACTED}\n`)
  assert.deepEqual([hidden!.redacted, hidden!.diff!.includes(REDACTED)], [false, false])
  assert.deepEqual([near!.redacted, near!.diff!.includes(` ${REDACTED}`)], [true, true])
  assert.deepEqual([removed!.redacted, removed!.diff!.includes(TOKEN)], [true, false])
})

test('a patch that would show a secret is found by the same rule as a redacted diff', async () => {
  const random = new Random(7)
  const names = ['a', 'b', 'c', 'd']
  for (let round = 0; round < 60; round++) {
    const before = randomModel(random, 6, names)
    const after = randomEdits(random, before, 4, names)
    for (const model of [before, after]) {
      for (const [path, it] of model) {
        if (it.link === true || it.content.includes(0) || !random.chance(0.3)) continue
        const shown = it.content.toString('latin1').split('\n')
        shown.splice(random.integer(0, shown.length), 0, TOKEN)
        model.set(path, { ...it, content: Buffer.from(shown.join('\n'), 'latin1') })
      }
    }
    const changes = atOnce(netChanges(treeOf(before), treeOf(after)))
    const contentOf = contentsOf(before, after)
    const all = (await describeChanges(changes, contentOf)).changes
    const shown = all.filter(({ binary }) => !binary)
    const found = new Set(await secretsIn(changes, contentOf))
    for (const { path, redacted } of shown) assert.equal(found.has(path), redacted, path)
  }
})

test('binary content with a secret is found, wherever in the content', async () => {
  const at = (offset: number): Buffer => {
    const content = Buffer.alloc(500_000, 1)
    content[0] = 0
    content.write(` ${TOKEN} `, offset)
    return content
  }
  for (const offset of [1, 131_050, 131_072, 300_000, 499_000]) {
    const { changes, contentOf } = both({ k: file('k') }, { k: file('k'), b: file(at(offset)) })
    assert.deepEqual(await secretsIn(changes, contentOf), ['b'], `at ${offset}`)
  }
  assert.equal(await holdsSecret(Buffer.alloc(500_000, 1)), false)
})

test('counts are those of the descriptions', async () => {
  const random = new Random(9)
  for (let round = 0; round < 40; round++) {
    const before = randomModel(random, 8)
    const after = randomEdits(random, before, 8)
    const changes = atOnce(netChanges(treeOf(before), treeOf(after)))
    const contentOf = contentsOf(before, after)
    const full = (await describeChanges(changes, contentOf)).changes
    const counted = await countChanges(changes, contentOf)
    assert.deepEqual(
      counted.paths,
      full.map(({ diff: _diff, redacted: _redacted, ...fields }) => fields),
    )
    assert.equal(counted.files, changes.length)
    assert.equal(counted.additions, full.reduce((sum, { additions }) => sum + additions, 0))
  }
})

test('content that is too large or not stored has no diff; damage is an error', async () => {
  const big = file('x\n'.repeat(2_200_000))
  const { changes, contentOf } = both({}, { big, lost: file('lost'), a: file('a') })
  const lost = changes.map((it) =>
    it.path === 'lost' ? { ...it, after: { ...it.after!, stored: false as const } } : it,
  )
  const { changes: shown } = await describeChanges(lost, contentOf)
  assert.deepEqual(
    shown.map(({ path, diff }) => [path, diff === null]),
    [['a', false], ['big', true], ['lost', true]],
  )
  const gone = () => Promise.reject(new CheckpointError('not_kept', 'gone'))
  assert.ok((await describeChanges(changes, gone)).changes.every(({ diff }) => diff === null))
  const damaged = () => Promise.reject(new StoreError('ERR_AGENT_STORE_CORRUPT', 'damaged'))
  await assert.rejects(describeChanges(changes, damaged), { code: 'ERR_AGENT_STORE_CORRUPT' })
})
