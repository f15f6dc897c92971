/** What `npm start` and `npm run demo` start: build/run.mjs. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** A repository of one program and a library of one file, and what runs it. */
function repository(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'build-run-'))
  t.after(() => rmSync(folder, { recursive: true }))
  cpSync(join(root, 'build'), join(folder, 'build'), { recursive: true })
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(join(root, 'node_modules/tsx'), join(folder, 'node_modules/tsx'))
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
    // As a tool does that keeps the times of files.
    utimesSync(join(folder, path), 1_000_000_000, 1_000_000_000)
  }
  write('package-lock.json', '{}')
  write('package.json', JSON.stringify({
    name: 'library', type: 'module', exports: { '.': { 'runwright-source': './lib/index.ts' } },
  }))
  write('lib/index.ts', "export const word: string = 'one'\n")
  write('examples/say.ts', [
    "import { word } from 'library'",
    // In two parts, since this file is compiled as well.
    'console.log(word, process.argv.slice(1).join(), import.' + 'meta.url, Error().stack)',
  ].join('\n'))
  const run = (...flags: string[]): { readonly code: number | null; readonly output: string } => {
    const args = [...flags, join(folder, 'build/run.mjs'), 'examples/say.ts', 'more']
    const { status, stdout, stderr } =
      spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
    return { code: status, output: (stdout + stderr).replaceAll(folder, '') }
  }
  return { folder, write, run }
}

test('a program runs as if its source did', (t) => {
  const { run } = repository(t)
  const { code, output } = run()
  assert.equal(code, 0, output)
  assert.match(output, /^one \/examples\/say\.ts,more file:\/\/\/examples\/say\.ts Error\n/)
  assert.match(run('--enable-source-maps').output, /\/examples\/say\.ts:2:/)
})

for (const [what, path, text] of [
  ['the library', 'lib/index.ts', "export const word: string = 'two'\n"],
  ['the program', 'examples/say.ts', "console.log('two')\n"],
  ['what the program imports', 'examples/word.ts', "export const word: string = 'two'\n"],
] as const) test(`a change of ${what} counts, however old it is`, (t) => {
  const { run, write } = repository(t)
  if (path === 'examples/word.ts') {
    write(path, text.replace('two', 'one'))
    write('examples/say.ts', "import { word } from './word.js'\nconsole.log(word)\n")
  }
  assert.match(run().output, /^one/)
  write(path, text)
  assert.match(run().output, /^two/)
})

test('what is not changed is not compiled again', (t) => {
  const { folder, run } = repository(t)
  assert.match(run().output, /^one/)
  rmSync(join(folder, 'node_modules/tsx'))
  assert.match(run().output, /^one/)
})

test('what cannot be compiled is told, and nothing runs', (t) => {
  const { run, write } = repository(t)
  assert.match(run().output, /^one/)
  write('lib/index.ts', 'export const word: string = \n')
  for (let times = 0; times < 2; times++) {
    const { code, output } = run()
    assert.equal(code, 1)
    assert.match(output, /lib\/index\.ts:2:0/)
    assert.doesNotMatch(output, /^one/m)
  }
})
