import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import type { LeftOut } from 'runwright/agent'
import { bytesOfName } from '../../../lib/internal/bytes.js'
import {
  encodeFolder, FolderReader, MalformedTree, type FolderEntry,
} from '../../../lib/agent/workspace/tree-objects.js'
import { Random } from '../../helpers/random.js'

const sha = (text: string): string => hash('sha256', text)

const NAMES = [
  'a', 'a-b', 'a.b', 'a0', 'b', '\u{1f600}', '\uffee', '\udcff', 'é', ' ', '~', '-', '__proto__',
  'long'.repeat(63), '..x', '\\', '*', '\n',
]

function randomFolder(random: Random): FolderEntry[] {
  const names = NAMES.filter(() => random.chance(0.5))
  return names.map((name): FolderEntry => {
    const kind = random.pick(['file', 'link', 'folder'] as const)
    if (kind === 'folder') {
      return { name, kind, mode: random.pick([0o755, 0o700, 0]), sha256: sha(name) }
    }
    const mode = kind === 'link' ? 0o777 : random.pick([0o644, 0o755, 0, 0o777])
    const size = random.pick([0, 1, 127, 128, 16_384, 2 ** 32, Number.MAX_SAFE_INTEGER])
    return { name, kind, mode, size, sha256: sha(name), isStored: random.chance(0.8) }
  })
}

function randomLeftOut(random: Random): LeftOut[] {
  return (['budget', 'kind', 'secret'] as const).flatMap((reason) => {
    if (random.chance(0.5)) return []
    const paths = random.chance(0.5) ? ['a/b', '.', 'c\udcff'] : ['x']
    return [{ reason, count: paths.length, paths }]
  })
}

function read(bytes: Uint8Array): { entries: FolderEntry[]; leftOut: readonly LeftOut[] | null } {
  const reader = new FolderReader(bytes)
  return { entries: [...reader.entries()], leftOut: reader.leftOut }
}

const pathBytes = ({ name, kind }: FolderEntry): Buffer =>
  bytesOfName(kind === 'folder' ? `${name}/` : name)

test('a folder has one object, whatever the order of its entries', () => {
  const random = new Random(3)
  for (let round = 0; round < 50; round++) {
    const entries = randomFolder(random)
    const leftOut = random.chance(0.5) ? randomLeftOut(random) : undefined
    const bytes = encodeFolder(entries, leftOut)
    const shuffled = entries.toSorted(() => random.next() - 0.5)
    assert.deepEqual(encodeFolder(shuffled, leftOut), bytes)
    const found = read(bytes)
    assert.deepEqual(found.leftOut, leftOut ?? null)
    const inOrder = entries.toSorted((a, b) => Buffer.compare(pathBytes(a), pathBytes(b)))
    assert.deepEqual(found.entries, inOrder)
  }
})

test('what is read as a folder is what that folder would be stored as', () => {
  const random = new Random(5)
  let accepted = 0
  let refused = 0
  for (let round = 0; round < 20; round++) {
    const bytes = encodeFolder(
      randomFolder(random).slice(0, 4),
      round % 2 === 0 ? undefined : randomLeftOut(random),
    )
    for (let change = 0; change < 60; change++) {
      const damaged = Uint8Array.from(bytes)
      const at = random.integer(0, bytes.length - 1)
      damaged[at] = random.pick([0, 1, 4, 5, 0x2e, 0x2f, 0x7f, 0x80, 0xff, damaged[at]! ^ 1])
      const cut = random.chance(0.1) ? damaged.subarray(0, at) : damaged
      try {
        const { entries, leftOut } = read(cut)
        if (cut[0] === 1) continue // never written
        assert.deepEqual(encodeFolder(entries, leftOut ?? undefined), Buffer.from(cut))
        accepted += 1
      } catch (error) {
        assert.ok(error instanceof MalformedTree, String(error))
        refused += 1
      }
    }
  }
  assert.ok(accepted > 100 && refused > 100, `${accepted} accepted, ${refused} refused`)
})

const HASH = '00'.repeat(32)
const file = (name: string, tag = '01'): string =>
  `${tag}${(name.length / 2).toString(16).padStart(2, '0')}${name}0000${HASH}`

for (const [what, hex, reason] of [
  ['nothing', '', /cut off/],
  ['a version to come', '0346', /version/],
  ['version 0', '0046', /version/],
  ['another kind of object', '0247', /no folder/],
  ['an unknown kind of entry', `0246${file('61', '03')}`, /unknown kind/],
  ['a folder that is not stored', `0246${file('61', '04')}`, /unknown kind/],
  ['an empty name', `0246${file('')}`, /order/],
  ['the folder itself', `0246${file('2e')}`, /no file can have/],
  ['the folder above', `0246${file('2e2e')}`, /no file can have/],
  ['a path', `0246${file('612f62')}`, /no file can have/],
  ['a NUL', `0246${file('6100')}`, /no file can have/],
  ['the same name twice', `0246${file('61')}${file('61')}`, /order/],
  ['names out of order', `0246${file('62')}${file('61')}`, /order/],
  ['a file and a folder of one name', `0246${file('61')}${file('612d')}000161${HASH}`, /same name/],
  ['a number with a zero at its end', `0246018100610000${HASH}`, /number/],
  ['a mode with more than permissions', `0246010161800800${HASH}`, /number/],
  ['a folder with more than permissions', `02460001618008${HASH}`, /number/],
  ['a size that is no safe integer', `0246010161${'00'}${'ff'.repeat(8)}01${HASH}`, /number/],
  ['a name that is cut off', '02460105', /cut off/],
  ['a hash that is cut off', `02460101610000${'00'.repeat(31)}`, /cut off/],
  ['a name of 2000 bytes', `024601d00f${'61'.repeat(2000)}`, /number/],
  ['a path above among what was left out', '02540103010104' + '2e2e2f61', /no valid path/],
  ['an absolute path among what was left out', '02540103010102' + '2f61', /no valid path/],
  ['nothing left out, for a reason', '0254010300', /cut off|name what/],
  ['more left out than named', '0254010305010161', /name what/],
  ['an unknown reason', '02540109010161', /reason/],
  ['reasons out of order', `0254020301010161` + '0101010161', /reason/],
] as const) {
  test(`the object of a folder cannot have ${what}`, () => {
    assert.throws(() => read(Buffer.from(hex, 'hex')), (error: Error) => {
      assert.equal(error.name, 'MalformedTree')
      assert.match(error.message, reason)
      return true
    })
  })
}
