import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { checkArguments, type JsonObject } from 'runwright/agent'
import { builtinTools } from '../../../lib/agent/tools/builtin.js'
import { HeldTimers } from '../../helpers/held-timers.js'
import { png } from '../../helpers/images.js'
import { toolContext } from './tool-context.js'
import { toolNamed, call } from './builtin-calls.js'

test('seven tools are built in, each with its effect', () => {
  assert.deepEqual(
    builtinTools().map(({ name, effect, startsProcess }) => [name, effect, startsProcess ?? false]),
    [
      ['bash', 'unsafe', true],
      ['read_file', 'read', false],
      ['write_file', 'idempotent', false],
      ['edit_file', 'idempotent', false],
      ['list_files', 'read', false],
      ['search_files', 'read', false],
      ['update_plan', 'read', false],
    ],
  )
})

test('arguments are checked; one message tells the model everything that is wrong', async (t) => {
  assert.equal(
    checkArguments(toolNamed('bash'), { cmd: 'ls', timeout_ms: '5' }),
    'bash was not run, because its arguments are invalid:\n' +
      '- command is required\n' +
      '- cmd is not a known field\n' +
      '- timeout_ms must be an integer from 1 to 600000, got "5"\n' +
      'Call bash again with corrected arguments (its fields: command, timeout_ms).',
  )
  const { exitCode } = await toolNamed('bash').execute({ cmd: 'ls' }, await toolContext(t))
  assert.equal(exitCode, 1)
})

test('bash runs in the workspace and returns both outputs and the exit code', async (t) => {
  const context = await toolContext(t, { 'a.txt': 'x' })
  assert.equal(
    await call(context, 'bash', { command: 'ls; echo no >&2; exit 3' }),
    '3: a.txt\nno\n',
  )
  assert.equal(await call(context, 'bash', { command: 'pwd' }), `0: ${context.root}\n`)
})

test('bash says when a command was ended by its time limit', async (t) => {
  const context = await toolContext(t)
  const pipe = join(context.root, 'pipe')
  execFileSync('mkfifo', [pipe])
  using limits = new HeldTimers(54_321)
  const running = call(context, 'bash', {
    command: 'echo begun; echo > pipe; exec sleep 60',
    timeout_ms: 54_321,
  })
  await readFile(pipe)
  limits.fire()
  assert.equal(await running, '124: begun\n[ended because it took longer than 54321 ms]')
})

test('read_file returns the text unchanged, or some lines of it', async (t) => {
  const context = await toolContext(t, { 'a.txt': '1\r\n2\n\n4', empty: '' })
  assert.equal(await call(context, 'read_file', { path: 'a.txt' }), '0: 1\r\n2\n\n4')
  assert.equal(await call(context, 'read_file', { path: 'a.txt', offset: 2, limit: 2 }), '0: 2\n\n')
  assert.equal(await call(context, 'read_file', { path: 'a.txt', offset: 4 }), '0: 4')
  assert.equal(await call(context, 'read_file', { path: 'empty' }), '0: ')
  assert.equal(
    await call(context, 'read_file', { path: 'a.txt', offset: 5 }),
    '1: a.txt has 4 lines; offset 5 is beyond them',
  )
})

test('read_file returns at most 64 kB and says how to read on', async (t) => {
  const line = `${'x'.repeat(99)}\n`
  const context = await toolContext(t, { big: line.repeat(2_000), one: 'ä'.repeat(100_000) })
  const shown = await call(context, 'read_file', { path: 'big' })
  assert.ok(shown.length < 66_000)
  const next = Number(/offset (\d+) …\]$/.exec(shown)?.[1])
  assert.match(shown, /\[… lines 653 to 2000 of 2000 are left out; read on with offset 653 .\]$/)
  assert.ok(
    (await call(context, 'read_file', { path: 'big', offset: next })).startsWith(`0: ${line}`),
  )
  const one = await call(context, 'read_file', { path: 'one' })
  assert.match(one, /^0: ä+\n\[… the rest of line 1 is left out/)
  assert.ok(Buffer.byteLength(one) < 66_000)
})

test('read_file gives back an image, whatever its name, unless it is too large', async (t) => {
  const large = png(2, 2, 3_750_001)
  const context = await toolContext(t, { 'shot.dat': png(), 'large.png': large })
  const { output, exitCode, files } = await toolNamed('read_file').execute(
    { path: 'shot.dat' }, context,
  )
  assert.deepEqual([output, exitCode], ['', 0])
  assert.deepEqual(files?.map(({ name, data }) => [name, Buffer.from(data as Uint8Array)]), [
    ['shot.dat', png()],
  ])
  const refused = await call(context, 'read_file', { path: 'large.png' })
  assert.match(refused, /^1: large\.png is not UTF-8/)
})

test('read_file refuses binary files and missing ones', async (t) => {
  const context = await toolContext(t, { bin: Buffer.from([1, 0, 2]), latin: Buffer.from([0xe4]) })
  assert.match(
    await call(context, 'read_file', { path: 'bin' }),
    /^1: bin is not UTF-8 text \(3 bytes\)/,
  )
  assert.match(await call(context, 'read_file', { path: 'latin' }), /^1: latin is not UTF-8 text/)
  assert.equal(await call(context, 'read_file', { path: 'none' }), '1: none does not exist')
  assert.match(await call(context, 'read_file', { path: '../x' }), /^1: \.\.\/x leads outside/)
  assert.match(await call(context, 'read_file', { path: '.' }), /^1: \. is a folder/)
})

test('write_file reports the change with its diff', async (t) => {
  const context = await toolContext(t, { 'a.txt': 'old\n' })
  const args = { path: 'a.txt', content: 'new\n' }
  const { output, exitCode, changes } = await toolNamed('write_file').execute(args, context)
  assert.equal(`${exitCode}: ${output}`, '0: replaced a.txt: 4 bytes')
  assert.deepEqual(changes, [
    {
      path: 'a.txt',
      change: 'modified',
      added_lines: 1,
      removed_lines: 1,
      diff: '--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n',
      before_sha256: hash('sha256', 'old\n'),
      after_sha256: hash('sha256', 'new\n'),
    },
  ])
  assert.equal(
    await call(context, 'write_file', { path: 'd/b', content: 'ä' }),
    '0: created d/b: 2 bytes',
  )
  assert.match(
    await call(context, 'write_file', { path: '.git/config', content: '' }),
    /^1: .*neither read nor written/,
  )
})

for (const { name, args, gives, leaves } of [
  {
    name: 'the only occurrence',
    args: { old_text: 'b', new_text: 'B' },
    gives: /^0: edited f: \+1 -1 lines$/,
    leaves: 'a B\na\na\n',
  },
  {
    name: 'a selected occurrence',
    args: { old_text: 'a', new_text: 'A', occurrence: 2 },
    gives: /^0/,
    leaves: 'a b\nA\na\n',
  },
  {
    name: 'all occurrences',
    args: { old_text: 'a', new_text: 'aa', occurrence: 0 },
    gives: /^0: edited f in 3 places/,
    leaves: 'aa b\naa\naa\n',
  },
  {
    name: 'text with nothing',
    args: { old_text: ' b', new_text: '' },
    gives: /^0/,
    leaves: 'a\na\na\n',
  },
  {
    name: 'text that does not occur',
    args: { old_text: 'zzz', new_text: '' },
    gives: /^1: old_text was not found in f\. Read the file again/,
    leaves: null,
  },
  {
    name: 'text that differs in white space',
    args: { old_text: 'a  b', new_text: '' },
    gives: /^1: .* Line 1 differs from its first line only in white space\./,
    leaves: null,
  },
  {
    name: 'text that occurs several times',
    args: { old_text: 'a', new_text: 'x' },
    gives: /^1: old_text occurs 3 times in f \(lines 1, 2, 3\)/,
    leaves: null,
  },
  {
    name: 'an occurrence too far',
    args: { old_text: 'a', new_text: 'x', occurrence: 4 },
    gives: /^1: occurrence is 4, but old_text occurs 3 times in f$/,
    leaves: null,
  },
  {
    name: 'text with itself',
    args: { old_text: 'a', new_text: 'a' },
    gives: /^1: .*nothing to change/,
    leaves: null,
  },
  {
    name: 'text with special characters',
    args: { old_text: 'b', new_text: '$& $1 \\n' },
    gives: /^0/,
    leaves: 'a $& $1 \\n\na\na\n',
  },
]) {
  test(`edit_file replaces ${name}, or says why it does not`, async (t) => {
    const before = 'a b\na\na\n'
    const context = await toolContext(t, { f: before })
    assert.match(await call(context, 'edit_file', { path: 'f', ...args } as JsonObject), gives)
    assert.equal(readFileSync(join(context.root, 'f'), 'utf8'), leaves ?? before)
  })
}

test('edit_file keeps the line endings of a file with CRLF', async (t) => {
  const context = await toolContext(t, { f: 'a\r\nb\r\nc\r\n' })
  await call(context, 'edit_file', { path: 'f', old_text: 'a\nb\n', new_text: 'x\ny\nz\n' })
  assert.equal(readFileSync(join(context.root, 'f'), 'utf8'), 'x\r\ny\r\nz\r\nc\r\n')
})

for (const { name, args, mistake } of [
  {
    name: 'write_file',
    args: { path: 'f', content: 'new' },
    mistake: { path: '../f', content: '' },
  },
  {
    name: 'edit_file',
    args: { path: 'f', old_text: 'old', new_text: 'new' },
    mistake: { path: 'f', old_text: 'zzz', new_text: '' },
  },
]) {
  test(`${name} can verify after a crash whether it was done`, async (t) => {
    const tool = toolNamed(name)
    const context = await toolContext(t, { f: 'old' })
    const plan = await tool.plan!(args, context)
    assert.deepEqual(Object.keys(plan), ['before', 'after'])
    assert.equal(await tool.verify!(args, plan, context), 'undone')
    await tool.execute(args, context)
    assert.equal(await tool.verify!(args, plan, context), 'done')
    await context.workspace.writeFile('f', 'something else')
    assert.equal(await tool.verify!(args, plan, context), 'unknown')
    const hopeless = await tool.plan!(mistake, context)
    assert.notEqual(await tool.verify!(mistake, hopeless, context), 'done')
  })
}

test('write_file of a new file is verified by its absence and its content', async (t) => {
  const tool = toolNamed('write_file')
  const context = await toolContext(t)
  const args = { path: 'new', content: 'x' }
  const plan = await tool.plan!(args, context)
  assert.equal(plan['before'], null)
  assert.equal(await tool.verify!(args, plan, context), 'undone')
  await tool.execute(args, context)
  assert.equal(await tool.verify!(args, plan, context), 'done')
})

test('list_files returns one path per line, folders with a slash', async (t) => {
  const context = await toolContext(t, { 'a/b/c.txt': '', 'z.txt': '', 'node_modules/x': '' })
  const passedOver = '[… passed over: node_modules; give a folder as path to see it …]'
  assert.equal(await call(context, 'list_files', {}), `0: a/\nz.txt\n${passedOver}`)
  assert.equal(
    await call(context, 'list_files', { recursive: true }),
    `0: a/\na/b/\na/b/c.txt\nz.txt\n${passedOver}`,
  )
  assert.equal(await call(context, 'list_files', { path: 'a/b' }), '0: a/b/c.txt')
  mkdirSync(join(context.root, 'hollow'))
  assert.equal(await call(context, 'list_files', { path: 'hollow' }), '0: (empty)')
  assert.match(await call(context, 'list_files', { path: '..' }), /^1: \.\. leads outside/)
  assert.match(await call(context, 'list_files', { path: 'z.txt' }), /^1: z\.txt is not a folder/)
})

test('a name with a line break is one quoted line', async (t) => {
  const context = await toolContext(t, { 'a\nb': 'hit' })
  assert.equal(await call(context, 'list_files', {}), '0: "a\\nb"')
  assert.equal(await call(context, 'search_files', { pattern: 'hit' }), '0: "a\\nb":1:hit')
})

const SOURCES = {
  'src/a.js': 'let total = 1\n// Total: a.b\r\n',
  'src/b.js': 'nothing here\n',
  'src/c.bin': Buffer.from([0, ...Buffer.from('total')]),
  'top.txt': 'axb a.b\n',
}

for (const { args, gives } of [
  { args: { pattern: 'total' }, gives: '0: src/a.js:1:let total = 1' },
  {
    args: { pattern: 'TOTAL', case_sensitive: false },
    gives: '0: src/a.js:1:let total = 1\nsrc/a.js:2:// Total: a.b',
  },
  { args: { pattern: 'a.b' }, gives: '0: src/a.js:2:// Total: a.b\ntop.txt:1:axb a.b' },
  { args: { pattern: '^a.b', regex: true }, gives: '0: top.txt:1:axb a.b' },
  {
    args: { pattern: '(?i)^LET\\b|b$', regex: true, path: 'src' },
    gives: '0: src/a.js:1:let total = 1\nsrc/a.js:2:// Total: a.b',
  },
  { args: { pattern: '\\p{Lu}otal', regex: true }, gives: '0: src/a.js:2:// Total: a.b' },
  { args: { pattern: 'axb', path: 'top.txt' }, gives: '0: top.txt:1:axb a.b' },
  { args: { pattern: 'zzz' }, gives: '0: no matches in 3 files' },
]) {
  test(`search_files ${JSON.stringify(args)}`, async (t) => {
    assert.equal(
      await call(await toolContext(t, SOURCES), 'search_files', args as JsonObject),
      gives,
    )
  })
}

test('search_files says what is wrong with a pattern or a path', async (t) => {
  const context = await toolContext(t, SOURCES)
  assert.match(
    await call(context, 'search_files', { pattern: '(', regex: true }),
    /^1: the pattern cannot be used as a regular expression: .*; correct it, or leave out regex/,
  )
  assert.match(
    await call(context, 'search_files', { pattern: 'a\nb' }),
    /^1: files are searched line by line/,
  )
  assert.equal(
    await call(context, 'search_files', { pattern: 'a', path: 'none' }),
    '1: none does not exist',
  )
  assert.match(
    await call(context, 'search_files', { pattern: 'a', path: '/etc' }),
    /^1: .*leads outside/,
  )
})

test('search_files does not follow links', async (t) => {
  const context = await toolContext(t, { f: 'none' })
  symlinkSync('/etc', join(context.root, 'etc'))
  assert.equal(await call(context, 'search_files', { pattern: 'root' }), '0: no matches in 1 file')
})

test('search_files returns 200 matches, shortens long lines, and names the limit', async (t) => {
  const files = {
    long: `${'x'.repeat(5_000)}needle${'y'.repeat(5_000)}\n`,
    many: 'needle\n'.repeat(500),
  }
  const lines = (
    await call(await toolContext(t, files), 'search_files', { pattern: 'needle' })
  ).split('\n')
  assert.equal(lines.length, 201)
  assert.match(lines[0] ?? '', /^0: long:1:…x+needley+…$/)
  assert.ok((lines[0] ?? '').length < 330)
  assert.match(lines.at(-1) ?? '', /there are more matches/)
})

test('an aborted search rejects with the reason of its signal', async (t) => {
  const controller = new AbortController()
  const context = await toolContext(t, SOURCES, controller.signal)
  controller.abort(new Error('enough'))
  await assert.rejects(call(context, 'search_files', { pattern: 'a' }), /enough/)
})
