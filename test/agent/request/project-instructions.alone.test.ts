/** Has texts that another test could take for secrets, so it has a process of its own. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { Redactor } from '../../../lib/agent/redaction/redactor.js'
import { readProjectInstructions } from '../../../lib/agent/request/instructions.js'
import { withinSecrets } from '../../../lib/agent/workspace/left-out.js'
import { scratch } from '../../helpers/engine.js'

const SECRET = 'correct-horse-battery'
const KEY = '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----\n'

interface World {
  /** The root; its folder `a/b` is the one of the run. */
  readonly root: string
  readonly at: (path: string, content?: string | Uint8Array) => string
  readonly read: (
    rules?: { readonly closed?: readonly string[]; readonly neverStore?: readonly string[] },
    roots?: readonly string[],
  ) => ReturnType<typeof readProjectInstructions>
}

function world(t: TestContext): World {
  const outer = scratch(t)
  const root = join(outer, 'root')
  const at: World['at'] = (path, content) => {
    const file = join(root, path)
    mkdirSync(dirname(file), { recursive: true })
    if (content !== undefined) writeFileSync(file, content)
    return file
  }
  at('a/b/x')
  const read: World['read'] = ({ closed = [], neverStore = [] } = {}, roots = [root]) =>
    readProjectInstructions(join(root, 'a/b'), roots, {
      closed,
      holdsSecrets: withinSecrets({ neverStore }),
      redactor: new Redactor([SECRET]),
    })
  return { root, at, read }
}

const whole = (path: string, text: string, bytes = Buffer.byteLength(text)): object =>
  ({ path, text, bytes, truncated: false })

test('the file of the folder comes before those above it', async (t) => {
  const { at, read } = world(t)
  assert.equal(await read(), null)
  at('AGENTS.md', 'root\n')
  assert.deepEqual(await read(), whole('../../AGENTS.md', 'root\n'))
  at('a/AGENTS.md', 'a\n')
  assert.deepEqual(await read(), whole('../AGENTS.md', 'a\n'))
  at('a/b/AGENTS.md', 'b\n')
  assert.deepEqual(await read(), whole('AGENTS.md', 'b\n'))
})

test('no folder above the root is looked into', async (t) => {
  const { at, read, root } = world(t)
  at('../AGENTS.md', 'outside\n')
  at('AGENTS.md', 'root\n')
  assert.equal(await read({}, [join(root, 'a')]), null)
  assert.equal(await read({}, [join(root, 'a/b'), join(root, 'c')]), null)
  assert.deepEqual(await read({}, [join(root, 'a/b'), root]), whole('../../AGENTS.md', 'root\n'))
})

type Rules = Parameters<World['read']>[0]

/** What is passed over: then the file above counts. Some return rules of the host. */
const passedOver: Readonly<
  Record<string, (given: World, t: TestContext) => void | Promise<void> | Rules>
> = {
  'a folder': ({ at }) => void mkdirSync(at('a/b/AGENTS.md')),
  'a pipe, which nobody writes to': ({ at }) => void execFileSync('mkfifo', [at('a/b/AGENTS.md')]),
  'a socket': async ({ at }, t) => {
    const server = createServer().listen(at('a/b/AGENTS.md'))
    t.after(() => server.close())
    await new Promise((resolve) => server.once('listening', resolve))
  },
  'a device': ({ at }) => symlinkSync('/dev/zero', at('a/b/AGENTS.md')),
  'a link out of the root': ({ at }) => symlinkSync('/etc/passwd', at('a/b/AGENTS.md')),
  'a link to another folder of the root': ({ at }) => {
    at('c/text', 'of others\n')
    symlinkSync('../../c/text', at('a/b/AGENTS.md'))
  },
  'a link through a folder that is a link out': ({ at }) => {
    symlinkSync('/etc', at('a/b/etc'))
    symlinkSync('etc/passwd', at('a/b/AGENTS.md'))
  },
  'a link that leads nowhere': ({ at }) => symlinkSync('nowhere', at('a/b/AGENTS.md')),
  'a link that leads to itself': ({ at }) => symlinkSync('AGENTS.md', at('a/b/AGENTS.md')),
  'a link to settings of git': ({ at }) => {
    at('a/b/.git/config', 'token\n')
    symlinkSync('.git/config', at('a/b/AGENTS.md'))
  },
  'a link to a file of secrets': ({ at }) => {
    at('a/b/.env', 'password\n')
    symlinkSync('.env', at('a/b/AGENTS.md'))
  },
  'a file that the host does not want to be stored': ({ at }) => {
    at('a/b/AGENTS.md', 'text\n')
    return { neverStore: ['b/*', '/AGENTS.md'] }
  },
  'a link to a file that the host does not want to be stored': ({ at }) => {
    at('a/b/data/customers', 'text\n')
    symlinkSync('data/customers', at('a/b/AGENTS.md'))
    return { neverStore: ['data/**'] }
  },
  'a file in a closed folder': ({ at, root }) => {
    at('a/b/AGENTS.md', 'text\n')
    return { closed: [join(root, 'a/b')] }
  },
  'a private key': ({ at }) => void at('a/b/AGENTS.md', KEY),
  'binary content': ({ at }) => void at('a/b/AGENTS.md', 'a\0b'),
  'UTF-16': ({ at }) => void at('a/b/AGENTS.md', Buffer.from('\ufefftext', 'utf16le')),
  'nothing': ({ at }) => void at('a/b/AGENTS.md', ''),
  'blank lines': ({ at }) => void at('a/b/AGENTS.md', ' \n\t\n'),
}
for (const [what, make] of Object.entries(passedOver)) {
  const skip = process.platform === 'win32' && /link|pipe|socket|device/.test(what)
  test(`${what} is passed over`, { skip }, async (t) => {
    const given = world(t)
    given.at('a/AGENTS.md', 'above\n')
    const rules = (await make(given, t)) ?? {}
    // Rules of the host for `AGENTS.md` mean the one above as well.
    const isAll = JSON.stringify(rules).includes('/AGENTS.md')
    assert.deepEqual(await given.read(rules), isAll ? null : whole('../AGENTS.md', 'above\n'))
  })
}

test('a file without the right to read it is passed over', async (t) => {
  if (process.getuid?.() === 0) return t.skip('root may read everything')
  const { at, read } = world(t)
  chmodSync(at('a/b/AGENTS.md', 'text\n'), 0)
  assert.equal(await read(), null)
})

test('a link to another file of the folder is followed', async (t) => {
  const { at, read } = world(t)
  at('a/b/docs/agents.txt', 'text\n')
  symlinkSync('docs/agents.txt', at('a/b/AGENTS.md'))
  assert.deepEqual(await read(), whole('AGENTS.md', 'text\n'))
})

test('bytes that are no UTF-8 are replaced, and a byte order mark is left out', async (t) => {
  const { at, read } = world(t)
  at('a/b/AGENTS.md', Buffer.concat([Buffer.from('\ufeff'), Buffer.from('caf\xe9\n', 'latin1')]))
  assert.deepEqual(await read(), whole('AGENTS.md', 'caf\ufffd\n', 8))
})

test('secrets are removed', async (t) => {
  const { at, read } = world(t)
  at('a/b/AGENTS.md', `Sign in with ${SECRET}.\n`)
  assert.equal((await read())?.text, 'Sign in with [secret removed].\n')
})

const LIMIT = 32_768
for (const [what, content, text] of [
  ['as large as may be', `${'x'.repeat(LIMIT - 1)}\n`, null],
  ['larger by a line', `${'x'.repeat(LIMIT - 1)}\ny`, `${'x'.repeat(LIMIT - 1)}\n`],
  ['cut within a line', `${'line\n'.repeat(8_000)}`, 'line\n'.repeat(6_553)],
  ['of one line', 'x'.repeat(LIMIT + 1), 'x'.repeat(LIMIT)],
  ['cut between characters', `${'é'.repeat(LIMIT)}`, 'é'.repeat(LIMIT / 2)],
  ['cut in the middle of a character', `x${'é'.repeat(LIMIT)}`, `x${'é'.repeat(LIMIT / 2 - 1)}`],
  ['cut within a secret', `a\n${'x'.repeat(LIMIT - 12)} ${SECRET}\n`, 'a\n'],
  [
    'of one line, cut within a secret',
    `${'x'.repeat(LIMIT - 9)} ${SECRET}`,
    `${'x'.repeat(LIMIT - 9)} `,
  ],
  [
    'cut within a private key',
    `a\n${KEY.slice(0, 28)}${'MIIEvQIBADANBg\n'.repeat(3_000)}`,
    'a\n',
  ],
] as const) {
  test(`of a file ${what}, the whole lines that fit are used`, async (t) => {
    const { at, read } = world(t)
    at('a/b/AGENTS.md', content)
    const found = await read()
    assert.equal(found?.truncated, text !== null)
    assert.equal(found?.bytes, Buffer.byteLength(content))
    assert.ok(found?.text === (text ?? content), `${found?.text.length} characters`)
  })
}

test('of a huge file, no more is read than is used', async (t) => {
  const { at, read } = world(t)
  truncateSync(at('a/b/AGENTS.md', 'line\n'.repeat(10_000)), 2 ** 40)
  const found = await read()
  assert.deepEqual([found?.text.length, found?.bytes], [6_553 * 5, 2 ** 40])
  truncateSync(at('a/b/AGENTS.md', 'text'), 2 ** 40)
  assert.equal(await read(), null) // NUL follows
})
