import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeChanges } from '../../../lib/agent/workspace/render-changes.js'
import { Random } from '../../helpers/random.js'
import { file, type ModelFile } from '../../helpers/tree-model.js'
import { both, described, lines } from './rendered-changes.js'

const KEY = ['-----BEGIN RSA PRIVATE KEY-----', ...Array.from({ length: 24 }, (_, i) => `${'MIIEow'.repeat(10)}${i}ab`), '-----END RSA PRIVATE KEY-----', ''].join('\n')

test('a line of a private key is not shown, wherever the change and however long the file', async () => {
  const random = new Random(3)
  for (let round = 0; round < 40; round++) {
    // Some keys lie where the text is divided for the search.
    const isDivided = round % 4 === 0
    const above = isDivided ? 'above it\n'.repeat(14_500) : lines(random.integer(0, 9_000), 'above ')
    const below = lines(random.integer(0, 12_000), 'below ')
    const before = `${above}${KEY}${below}`
    const at = before.indexOf('\n', above.length + random.integer(-10, KEY.length + 10)) + 1
    const after = `${before.slice(0, at)}changed\n${before.slice(at)}`
    for (const [old, now] of [[before, after], [after, before]] as const) {
      const [one] = await described({ a: file(old) }, { a: file(now) })
      const shown = one!.diff!.split('\n').filter((line) => !line.startsWith('-'))
      // Without its own end, what is removed is no key.
      const isHidden = (old === before ? one!.diff! : shown.join('\n')).includes('MIIEow')
      assert.ok(!isHidden, one!.diff!)
      assert.equal(one!.redacted, one!.diff !== (await raw(old, now)), `round ${round}`)
    }
  }
})

async function raw(before: string, after: string): Promise<string> {
  const { diffText } = await import('../../../lib/agent/workspace/diff.js')
  return diffText(before, after, { before: 'a/a', after: 'b/a' }, 1e7).diff
}

test('beyond 2 MiB of diffs, and 2000 changes, diffs and changes are left out', async () => {
  const big = (word: string): ModelFile => file(`${word}${'x'.repeat(300)}\n`.repeat(2_500))
  const files = Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`f${i}`, big(`${i}`)]))
  const some = await described({}, { ...files, z: file('z\n') })
  assert.deepEqual(some.map(({ diff }) => diff !== null), [true, true, false, false, false, true])
  assert.deepEqual(some.map(({ additions }) => additions), [2_500, 2_500, 2_500, 2_500, 2_500, 1])
  const many = Object.fromEntries(Array.from({ length: 2_003 }, (_, i) => [`f${i}`, file('')]))
  const { changes, contentOf } = both({}, many)
  const { changes: listed, more } = await describeChanges(changes, contentOf)
  assert.deepEqual([listed.length, more], [2_000, 3])
})
