import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import {
  chmodSync, chownSync, closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync,
  realpathSync, rmSync, symlinkSync, writeFileSync,
} from 'node:fs'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { bubblewrapExecutor, bubblewrapProblem } from 'runwright/agent'
import { findProgram } from '../../../lib/agent/executors/environment.js'

/** What `sandbox-probe.mjs` reports. */
interface Found {
  readonly written: readonly string[]
  readonly writableMounts: readonly string[]
  readonly setuidMounts: readonly string[]
  readonly escapes: readonly string[]
  readonly readable: readonly string[]
}

/** Devices without a state of their own, and terminals that the sandbox makes. */
const DEVICES = [
  '/dev/full', '/dev/null', '/dev/random', '/dev/tty', '/dev/urandom', '/dev/zero',
]
/** Folders of the sandbox's own, which end with it. */
const PRIVATE = ['/dev/pts', '/dev/shm', '/tmp', '/var/tmp']

const NOBODY = 65534
const RUN_PROBE = 'exec "$NODE" --input-type=module -e "$JS"'

/** As root, a `bwrap` first on PATH that becomes an ordinary user. */
function becomeNobody(t: TestContext): void {
  const folder = mkdtempSync(join(tmpdir(), 'nobody-'))
  const [bwrap, mkfifo] = ['bwrap', 'mkfifo'].map(findProgram)
  const become = `setpriv --reuid ${NOBODY} --regid ${NOBODY} --clear-groups`
  const program = join(folder, 'bwrap')
  writeFileSync(program, `#!/bin/sh\nexec ${become} ${bwrap} "$@"\n`, { mode: 0o755 })
  symlinkSync(mkfifo ?? '', join(folder, 'mkfifo'))
  chmodSync(folder, 0o755)
  // Tool chains of root are not for others.
  const before = { PATH: process.env['PATH'], HOME: process.env['HOME'] }
  Object.assign(process.env, { PATH: folder, HOME: '/home/nobody' })
  t.after(() => {
    Object.assign(process.env, before)
    rmSync(folder, { recursive: true })
  })
}

const problem = await bubblewrapProblem()
const cannotBecome = process.geteuid?.() === 0 ? false : 'only root can become another user'

for (const { who, uid, skip } of [
  { who: 'this user', uid: process.geteuid?.() ?? 0, skip: problem ?? false },
  { who: 'an ordinary user', uid: NOBODY, skip: problem ?? cannotBecome },
]) {
  test(`a sandbox of ${who} can write only what the executor says`, { skip }, async (t) => {
    if (uid !== process.geteuid?.()) becomeNobody(t)
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'probe-')))
    t.after(() => rmSync(folder, { recursive: true }))
    chmodSync(folder, 0o755)
    const [cwd, writable] = [join(folder, 'cwd'), join(folder, 'writable')]
    const closed = join(cwd, 'data')
    for (const path of [cwd, writable, closed]) {
      mkdirSync(path)
      chownSync(path, uid, process.getegid?.() ?? 0)
    }
    writeFileSync(join(closed, 'journal'), 'top secret')
    const name = `probe-${randomUUID()}`
    // A socket without a file: it belongs to the network namespace.
    const server = createServer().listen({ path: `\0${name}` })
    await once(server, 'listening')
    t.after(() => server.close())
    const descriptor = openSync(cwd, 'r')
    t.after(() => closeSync(descriptor))

    const { output } = await bubblewrapExecutor({ closed: [closed] }).run(RUN_PROBE, {
      cwd,
      cwdDescriptor: descriptor,
      env: {
        PATH: '/usr/bin:/bin:/usr/sbin:/sbin',
        PROBE: name,
        HOST_PID: String(process.pid),
        NODE: process.execPath,
        JS: readFileSync(new URL('sandbox-probe.mjs', import.meta.url), 'utf8'),
      },
      timeoutMs: 60_000,
      maxOutputBytes: 4 * 1024 * 1024,
      mark: name,
      writable: [writable],
      signal: new AbortController().signal,
    })
    assert.match(output, /^\{/)
    const found = JSON.parse(output) as Found
    // What the probe made in its own folders is not in the host's folders of the same names.
    const onHost = found.written.filter((path) => existsSync(join(path, name)))
    for (const path of onHost) rmSync(join(path, name))
    assert.deepEqual(onHost.sort(), [cwd, writable])
    const allowed = [...DEVICES, ...PRIVATE, homedir(), cwd, writable]
    const isAllowed = (path: string): boolean =>
      allowed.some((own) => path === own || path.startsWith(`${own}/`))
    assert.deepEqual(found.written.filter((path) => !isAllowed(path)), [])
    assert.deepEqual([...found.writableMounts].sort(), allowed.sort())
    assert.deepEqual(found.setuidMounts, [])
    assert.deepEqual(found.escapes, [])
    assert.deepEqual(found.readable, [])
  })
}
