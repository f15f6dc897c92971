import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { Random } from '../../helpers/random.js'
import { merge, randomTriple } from './random-merges.js'

const hasGit = spawnSync('git', ['--version']).error === undefined

test('what git merges cleanly is the same here, or a conflict', { skip: !hasGit }, (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'merge-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const found = { merged: 0, conflicts: 0, onlyGit: 0, onlyHere: 0, otherwise: 0 }
  const rounds = Number(process.env['ROUNDS'] ?? 1_000)
  for (let seed = 1; seed <= rounds; seed++) {
    const isDistinct = seed % 4 !== 0
    const texts = randomTriple(new Random(Math.imul(seed, 0x9e3779b1)), isDistinct)
    const [o, a, b] = ['base', 'ours', 'theirs'].map((name, i) => {
      writeFileSync(join(folder, name), texts[i]!, 'latin1')
      return join(folder, name)
    })
    const args = ['merge-file', '-p', a!, o!, b!]
    const git = spawnSync('git', args, { encoding: 'latin1', cwd: folder })
    const theirs = git.status === 0 ? git.stdout : null
    const ours = merge(...texts)
    if (ours === theirs) found[ours === null ? 'conflicts' : 'merged'] += 1
    else {
      found[ours === null ? 'onlyGit' : theirs === null ? 'onlyHere' : 'otherwise'] += 1
      // Where lines repeat, there are several shortest diffs, and each has its own conflicts.
      if (isDistinct) assert.equal(ours, theirs, `seed ${seed}: ${JSON.stringify(texts)}`)
    }
  }
  t.diagnostic(JSON.stringify(found))
  assert.ok(found.otherwise <= rounds / 50, JSON.stringify(found))
})
