import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { ModelRequest, ModelTurn } from 'runwright/agent'
import { builtinRepair, drive, FIXTURES, scratchCopy } from './driver.js'
import { fixtures, repair } from './fixtures.js'

test('a bug that no small patch repairs is given up, and the files are unchanged', async () => {
  const fixture = fixtures.find(({ project }) => project === 'unfinished')!
  const result = await repair(fixture, fixture.bugs[0]!)
  assert.equal(result.achieved, false)
  assert.equal(result.gaveUp, true)
  assert.match(
    result.lastText,
    /^No candidate left: 1 of 2 tests still fails \(.+\)\. \d+ patches were tried in \d+ place/,
  )
  assert.equal(result.after, result.broken)
})

test('the same conversation gives the same turns, from new and old instances', async () => {
  const fixture = fixtures.find(({ project }) => project === 'text')!
  const seen: { request: ModelRequest; turn: ModelTurn }[] = []
  await repair(fixture, fixture.bugs[3]!, {
    onTurn: (request, turn) => void seen.push({ request, turn }),
  })
  assert.ok(seen.length > 4)
  const old = builtinRepair()
  for (const { request, turn } of seen) {
    const copy = structuredClone(request.messages)
    assert.deepEqual(await builtinRepair().complete({ ...request, messages: copy }), turn)
    assert.deepEqual(await old.complete({ ...request, messages: copy }), turn)
    assert.deepEqual(await old.complete(request), turn, 'asked again')
  }
  // An instance that is further ahead goes back.
  assert.deepEqual(await old.complete(seen[2]!.request), seen[2]!.turn)
})

test('a run continues in a new instance where the old one stopped', async () => {
  const fixture = fixtures.find(({ project }) => project === 'cache')!
  const bug = fixture.bugs[1]!
  await using copy = await scratchCopy(join(FIXTURES, fixture.project))
  const file = join(copy.path, bug.file)
  await writeFile(
    file,
    (await readFile(file, 'utf8')).replace(bug.find, () => bug.replace),
  )
  const first = builtinRepair()
  let turns = 0
  const result = await drive({
    cwd: copy.path,
    check: fixture.check,
    model: {
      ...first,
      name: first.name,
      isLanguageModel: false,
      contextWindow: null,
      prices: first.prices,
      complete: (request) => (turns++ < 4 ? first : builtinRepair()).complete(request),
    },
  })
  assert.equal(result.achieved, true, result.lastText)
})

test('when another program changes the sources, the search restarts and keeps that', async () => {
  const fixture = fixtures.find(({ project }) => project === 'unfinished')!
  await using copy = await scratchCopy(join(FIXTURES, fixture.project))
  const file = join(copy.path, 'src/levenshtein.js')
  let trials = 0
  const repaired = `export function levenshtein(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(next[j - 1] + 1, row[j] - 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1))
    }
    row = next
  }
  return row[b.length]
}
`
  const result = await drive({
    model: builtinRepair(),
    cwd: copy.path,
    check: fixture.check,
    // During the search a person writes the algorithm, with one wrong sign.
    beforeCall: async ({ tool }) => {
      if (tool === 'try_patches' && ++trials === 3) await writeFile(file, repaired)
    },
  })
  assert.equal(result.achieved, true, result.lastText)
  assert.equal(await readFile(file, 'utf8'), repaired.replace('row[j] - 1', 'row[j] + 1'))
})

test('without a check command or the required tools it gives up at once', async () => {
  const request = (check: string | null, tools: readonly string[]): ModelRequest => ({
    system: '',
    messages: [{ role: 'user', text: 'goal' }],
    signal: new AbortController().signal,
    tools: tools.map((name) => ({ name, description: '', parameters: { type: 'object' } })),
    run: { run_id: 'r', iteration: 1, turn: 0, goal: 'goal', check, cwd: '/' },
  })
  for (const [given, text] of [
    [
      request(null, ['try_patches', 'read_file', 'edit_file', 'list_files']),
      /^No candidate left: this goal has no check command/,
    ],
    [
      request('node --test', ['bash']),
      /^No candidate left: the tools list_files, read_file, try_patches, edit_file are not offered/,
    ],
  ] as const) {
    const turn = await builtinRepair().complete(given)
    assert.match(turn.message.text, text)
    assert.equal(turn.stop, 'refusal')
    assert.deepEqual(turn.message.calls, [])
  }
})

test('a turn that is aborted before it starts rejects with the signal’s reason', async () => {
  const reason = new Error('enough')
  const signal = AbortSignal.abort(reason)
  await assert.rejects(
    builtinRepair().complete({
      system: '',
      messages: [],
      tools: [],
      signal,
      run: { run_id: 'r', iteration: 1, turn: 0, goal: 'goal', check: 'node --test', cwd: '/' },
    }),
    reason,
  )
})
