/** The program on a pseudo-terminal: colours, the progress line, questions, Ctrl-C. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import type { RunDetails } from 'runwright/agent'
import { modelServer, runwright, start, world, type Turn } from '../helpers/cli.js'

const write = (path: string, content: string): Turn => ({
  calls: [{ tool: 'write_file', args: { path, content } }],
})
const isDone = 'shell: grep -q yes done'
const files = { done: 'no\n' }
const turns = [write('done', 'yes\n'), { text: 'It is done.' }]

/** What follows each return of the cursor, without what erases and styles it. */
function linesOf(shown: string): string[] {
  return stripVTControlCharacters(shown).split(/[\r\n]+/)
}

test('on a terminal there are colours and a progress line, which is gone at the end', async (t) => {
  const at = world(t, files)
  const model = await modelServer(t, turns)
  const run = start(t, at, ['run', isDone, ...model.args], { env: model.env, columns: 60 })
  assert.equal(await run.end(), 0, run.out)
  assert.match(run.out, /\x1b\[32mmet\x1b\[39m/)
  assert.match(run.out, /\x1b\[31m-no\x1b\[39m\r\n\x1b\[32m\+yes\x1b\[39m\r\n$/)
  assert.match(run.out, /\x1b\[2miteration 1\/20 · 10 tokens · \d+ s · write_file\x1b\[22m/)
  // It is erased before each line, and drawn again below it.
  assert.doesNotMatch(run.out, /iteration 1\/20[^\r]*\n/)
  const after = run.out.slice(run.out.lastIndexOf('iteration 1/20'))
  assert.match(after, /^iteration 1\/20[^\r]*\r\x1b\[K/)
})

test('without colours, with NO_COLOR, there is a progress line all the same', async (t) => {
  const env = { NO_COLOR: '1' }
  const run = start(t, world(t), ['run', 'shell: true'], { env, columns: 80 })
  assert.equal(await run.end(), 0, run.out)
  assert.doesNotMatch(run.out, /\x1b\[\d*m/)
  assert.match(run.out, /\r\x1b\[K/)
})

test('a terminal that can do nothing gets plain lines', async (t) => {
  const run = start(t, world(t), ['run', 'shell: true'], { env: { TERM: 'dumb' }, columns: 80 })
  assert.equal(await run.end(), 0, run.out)
  assert.doesNotMatch(run.out, /\x1b/)
})

test('lines are cut to the columns of the terminal, also after these change', async (t) => {
  const at = world(t, files)
  const long = 'a word and 表 '.repeat(40)
  const read = { text: long, calls: [{ tool: 'bash', args: { command: `: ${long}` } }] }
  const model = await modelServer(t, [read, { ...read, calls: [] }])
  const args = ['run', 'shell: false', '--max-iterations', '1', '--approve', ...model.args]
  const run = start(t, at, args, { env: model.env, columns: 70 })
  await run.until(/x to abort the run: /)
  const before = run.out
  assert.match(before, / {2}\x1b\[36mmodel {6}\x1b\[39m\x1b\[2ma word and .*…\x1b\[22m\r\n/)
  run.resize(40)
  run.type('a\n')
  assert.equal(await run.end(), 1, run.out)
  const wide = (text: string): number => text.length + (text.match(/表/g) ?? []).length
  const model70 = linesOf(before).find((line) => line.startsWith('  model'))!
  assert.ok(wide(model70) > 60 && wide(model70) <= 70, model70)
  const model40 = linesOf(run.out.slice(before.length)).find((line) => line.startsWith('  model'))!
  assert.ok(wide(model40) > 30 && wide(model40) <= 40, model40)
  // Who decides sees all of the call.
  assert.ok(stripVTControlCharacters(before).replaceAll('\r\n', '\n').includes(long.trim()))
})

for (const [typed, status, code, content] of [
  ['a\n', 'achieved', 0, 'yes\n'],
  ['perhaps\n\nyes\nAPPROVE\n', 'achieved', 0, 'yes\n'],
  ['x\n', 'aborted', 130, 'no\n'],
  ['r\n', 'failed', 1, 'no\n'],
] as const) {
  test(`a call is decided by typing ${JSON.stringify(typed)}`, async (t) => {
    const at = world(t, files)
    const model = await modelServer(t, turns)
    const args = ['run', isDone, '--approve', '--max-iterations', '1', ...model.args]
    const run = start(t, at, args, { env: model.env, columns: 80 })
    await run.until(/x to abort the run: /)
    assert.match(stripVTControlCharacters(run.out), /^write_file\r\n {2}path: done\r\n {2}content:\r\n {4}yes\r\n/m)
    run.type(typed)
    assert.equal(await run.end(), code, run.out)
    assert.match(run.out, new RegExp(`${status}\\S* after 1 iteration`))
    assert.equal(readFileSync(join(at.project, 'done'), 'utf8'), content)
  })
}

test('what was typed before a question answers nothing', async (t) => {
  const at = world(t, files)
  let go = (): void => {}
  const typed = new Promise<void>((resolve) => (go = resolve))
  const model = await modelServer(t, turns, typed)
  const args = ['run', isDone, '--approve', ...model.args]
  const run = start(t, at, args, { env: model.env, columns: 80 })
  await run.until(/· plan/)
  run.type('a\n')
  // The terminal shows what is typed.
  await run.until(/a\r\n/)
  go()
  await run.until(/x to abort the run: /)
  run.type('x\n')
  assert.equal(await run.end(), 130, run.out)
  assert.equal(readFileSync(join(at.project, 'done'), 'utf8'), 'no\n')
})

test('a note reaches the model, and is not taken for an answer', async (t) => {
  const at = world(t, files)
  const model = await modelServer(t, turns)
  const args = ['run', isDone, '--approve', '--json', ...model.args]
  const run = start(t, at, args, { env: model.env, columns: 80 })
  await run.until(/n for a note to the model, x to abort the run: /)
  run.type('n\n')
  await run.until(/note: /)
  const from = run.out.length
  run.type('approve\n')
  await run.until(/x to abort the run: /, from)
  assert.equal(readFileSync(join(at.project, 'done'), 'utf8'), 'no\n')
  run.type('a\n')
  assert.equal(await run.end(), 0, run.out)
  assert.match(run.out, /"kind":"human_check_response".*"feedback":"approve"/)
})

test('after each iteration the change so far is shown, and the next one is approved', async (t) => {
  const at = world(t, files)
  const model = await modelServer(t, [write('done', 'nearly\n'), { text: 'Hm.' }, ...turns])
  const args = ['run', isDone, '--approve', 'iterations', ...model.args]
  const run = start(t, at, args, { env: model.env, columns: 100 })
  await run.until(/a to approve, n for a note to the model, x to abort the run: /)
  assert.match(stripVTControlCharacters(run.out), /\| Iteration 1 of 20[^]*^-no\r\n\+nearly\r\n/m)
  run.type('a\n')
  assert.equal(await run.end(), 0, run.out)
})

test('the end of the input leaves the run at its gate, with 3', async (t) => {
  const at = world(t, files)
  const model = await modelServer(t, turns)
  const args = ['run', isDone, '--approve', ...model.args]
  const run = start(t, at, args, { env: model.env, columns: 80 })
  await run.until(/x to abort the run: /)
  run.type('\x04')
  assert.equal(await run.end(), 3, run.out)
  assert.match(run.out, /run \S+ waits at a gate that nobody can answer here/)
})

test('Ctrl-C at a question aborts the run', async (t) => {
  const at = world(t, files)
  const model = await modelServer(t, turns)
  const args = ['run', isDone, '--approve', ...model.args]
  const run = start(t, at, args, { env: model.env, columns: 80 })
  await run.until(/x to abort the run: /)
  run.type('\x03')
  assert.equal(await run.end(), 130, run.out)
  assert.match(run.out, /aborted\S* after 1 iteration/)
})

test('Ctrl-C aborts the run, and a second one leaves at once', async (t) => {
  const at = world(t)
  const begun = join(at.project, 'begun')
  execFileSync('mkfifo', [begun])
  const command = `trap '' TERM; echo > begun; while :; do sleep 1; done`
  const model = await modelServer(t, [{ calls: [{ tool: 'bash', args: { command } }] }])
  const run = start(t, at, ['run', 'shell: false', ...model.args], { env: model.env, columns: 80 })
  await readFile(begun)
  run.type('\x03')
  await run.until(/leaves at once/)
  // The command ignores SIGTERM, so the run takes two seconds to end; what npm would pass on at
  // once does not count, so Ctrl-C is typed whenever something is shown.
  run.child.stdout!.on('data', () => run.type('\x03'))
  run.type('\x03')
  assert.equal(await run.end(), 130, run.out)
  assert.doesNotMatch(run.out, /aborted\S* after/)
})

test('the changes of an isolated run are applied when that is answered with y', async (t) => {
  const at = world(t, files)
  const model = await modelServer(t, turns)
  const args = ['run', isDone, '--isolated', ...model.args]
  const run = start(t, at, args, { env: model.env, columns: 80 })
  await run.until(/y to apply the changes to .*, n to keep them apart: /)
  assert.equal(readFileSync(join(at.project, 'done'), 'utf8'), 'no\n')
  run.type('y\n')
  assert.equal(await run.end(), 0, run.out)
  assert.match(run.out, /applied: done\r\n$/)
  assert.equal(readFileSync(join(at.project, 'done'), 'utf8'), 'yes\n')
})

test('the name of a folder controls nothing in a question', async (t) => {
  const at = world(t)
  const name = 'shop\x1b]0;title\x07\u202e'
  const folder = join(at.home, name)
  mkdirSync(folder)
  writeFileSync(join(folder, 'done'), 'no\n')
  const model = await modelServer(t, turns)
  const args = ['run', isDone, '--isolated', '--cwd', folder, ...model.args]
  const run = start(t, at, args, { env: model.env, columns: 200 })
  await run.until(/n to keep them apart: /)
  assert.ok(!run.out.includes('\x1b]0;') && !run.out.includes('\u202e'))
  run.type('n\n')
  assert.equal(await run.end(), 0, run.out)
})

test('with output in a file, questions go to the terminal by standard error', async (t) => {
  const at = world(t, files)
  const model = await modelServer(t, turns)
  const words = [...runwright, 'run', isDone, '--approve', '--json', ...model.args]
  const command = ['sh', '-c', `${words.map((word) => `'${word}'`).join(' ')} > out.json`]
  const run = start(t, at, [], { env: model.env, columns: 80, command })
  await run.until(/x to abort the run: /)
  run.type('a\n')
  assert.equal(await run.end(), 0, run.out)
  const lines = readFileSync(join(at.project, 'out.json'), 'utf8').trimEnd().split('\n')
  const parsed = lines.map((line) => JSON.parse(line) as Partial<RunDetails>)
  assert.equal(parsed.at(-1)!.status, 'achieved')
})

test('Ctrl-C in the terminal ends the server', async (t) => {
  const server = start(t, world(t), ['--port', '0'], { columns: 80 })
  await server.until(/see --model/)
  server.type('\x03')
  assert.equal(await server.end(), 0, server.out)
  assert.match(server.out, /stopping; unfinished runs continue at the next start\r\n$/)
})
