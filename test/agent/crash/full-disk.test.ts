import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { scratch } from '../../helpers/engine.js'
import { programAt } from '../../helpers/programs.js'

test('a run that fills the disk fails with advice; its service and other runs go on', (t) => {
  const mounted = spawnSync('unshare', ['-Urm', 'sh', '-c', 'mount -t tmpfs -o size=1m none /mnt'])
  if (mounted.status !== 0) {
    t.skip('this kernel lets no ordinary user mount a small file system (unshare -Urm)')
    return
  }
  const node = [
    process.execPath,
    ...programAt('test/agent/crash/full-disk-child.ts'),
    '/mnt',
    scratch(t),
  ]
  const command = node.map((word) => `'${word}'`).join(' ')
  const script = `mount -t tmpfs -o size=1m none /mnt && exec ${command}`
  const { status, stdout, stderr } = spawnSync('unshare', ['-Urm', 'sh', '-c', script], {
    encoding: 'utf8',
    cwd: fileURLToPath(new URL('../../..', import.meta.url)),
  })
  assert.equal(status, 0, stderr)
  assert.match(
    stdout,
    /^failed internal_error ERR_AGENT_STORE cannot write to .*: the disk is full; free some space$/m,
  )
  assert.match(stdout, /all there/)
})
