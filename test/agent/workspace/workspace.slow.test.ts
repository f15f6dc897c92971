import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { WorkspaceError } from 'runwright/agent'
import { world, text } from './workspace-world.js'

/** The system call renameat2, which swaps two names; not every system has a command for it. */
const RENAMEAT2: Record<string, number> = { x64: 316, arm64: 276 }

test('a folder that is constantly swapped for a link never exposes what is outside', async (t) => {
  const { workspace, root, top } = await world(t)
  for (const [folder, content] of [
    ['swap', 'harmless'],
    ['.git', 'harmless'],
    ['../outside', 'secret'],
  ]) {
    fs.mkdirSync(join(root, folder!, 'sub'), { recursive: true })
    fs.writeFileSync(join(root, folder!, 'sub/secret'), content!)
  }
  fs.symlinkSync('../outside', join(root, 'evil'))
  fs.symlinkSync('.git', join(root, 'evil2'))
  const call = `syscall(${RENAMEAT2[process.arch] ?? -1}, -100, $swap, -100, $evil, 2)`
  const script = `
    $| = 1; my $swap = "swap"; my $evil = "evil";
    die "no renameat2" if ${call} != 0; ${call}; print "ready";
    my @evils = ("evil", "evil2"); while (1) { for $evil (@evils) { ${call}; ${call} } }`
  const swapper = spawn('perl', ['-e', script], { cwd: root, stdio: ['ignore', 'pipe', 'ignore'] })
  const ended = once(swapper, 'close').catch(() => undefined)
  const began = await Promise.race([once(swapper.stdout, 'data'), ended.then(() => null)])
  if (began === null) return t.skip('perl with renameat2 is needed to swap two names at once')
  try {
    let [reads, writes] = [0, 0]
    for (let round = 0; round < 1_000; round++) {
      const [read, written] = await Promise.allSettled([
        text(workspace, 'swap/sub/secret'),
        workspace.writeFile(`swap/sub/new-${round}`, 'x'),
      ])
      if (read.status === 'fulfilled') {
        assert.equal(read.value, 'harmless')
        reads += 1
      } else assert.ok(read.reason instanceof WorkspaceError)
      if (written.status === 'fulfilled') writes += 1
      else assert.ok(written.reason instanceof WorkspaceError)
    }
    assert.deepEqual(fs.readdirSync(join(top, 'outside/sub')), ['secret'])
    assert.deepEqual(fs.readdirSync(join(root, '.git/sub')), ['secret'])
    t.diagnostic(`${reads} of 1000 reads and ${writes} of 1000 writes reached the real folder`)
  } finally {
    swapper.kill('SIGKILL')
    await ended
  }
})
