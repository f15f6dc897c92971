/** How a sandbox shows `node_modules` that are mounted into a copy. */
import assert from 'node:assert/strict'
import {
  existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { bubblewrapExecutor, bubblewrapProblem } from '../../../lib/agent/executors/bubblewrap.js'
import { PackageMounts } from '../../../lib/agent/executors/package-mounts.js'
import type { IsolatedCopy } from '../../../lib/agent/executor.js'
import { scratch } from '../../helpers/engine.js'
import { writeFiles, type Files } from '../../helpers/files.js'

const skip = (await bubblewrapProblem()) ?? false

/** An original with packages, a copy with empty places for them, and what runs in the copy. */
function world(t: TestContext, files: Files, places: readonly string[] = ['node_modules']) {
  const top = scratch(t)
  const [original, root, data] = ['original', 'copies/copy', 'data'].map((name) => join(top, name))
  writeFiles(original!, files)
  writeFiles(data!, { secret: 'secret' })
  for (const place of places) {
    mkdirSync(join(original!, place), { recursive: true })
    mkdirSync(join(root!, place), { recursive: true })
  }
  const isolated: IsolatedCopy = {
    root: root!,
    original: original!,
    readOnly: places.map((path) => ({ from: join(original!, path), to: join(root!, path) })),
  }
  const run = async (command: string): Promise<readonly string[]> => {
    const executor = bubblewrapExecutor({ closed: [data!, join(top, 'copies')] })
    const { output } = await executor.run(`{ ${command}; } 2>&1`, {
      cwd: root!, isolated, env: {}, timeoutMs: 60_000, maxOutputBytes: 100_000,
      mark: 'packages', writable: [], signal: new AbortController().signal,
    })
    return output.split('\n').slice(0, -1)
  }
  return { original: original!, root: root!, data: data!, run }
}

const PACKAGES: Files = {
  'node_modules/a/index.js': 'module.exports = "a"',
  'node_modules/@scope/b/index.js': 'module.exports = "b"',
  'node_modules/.bin/tool': '#!/bin/sh\necho tool\n',
  'node_modules/.package-lock.json': '{}',
  'node_modules/.cache/poisoned/x.js': 'x',
  'node_modules/.vite/deps/x.js': 'x',
}

test('packages are seen, and cannot be changed', { skip }, async (t) => {
  const { original, run } = world(t, PACKAGES)
  symlinkSync('a', join(original, 'node_modules/linked'))
  const output = await run(`node -p 'require("a") + require("@scope/b") + require("linked")'
    cat node_modules/.package-lock.json; echo; ls -A node_modules
    echo x > node_modules/a/index.js; echo x > node_modules/.package-lock.json
    mkdir node_modules/new; rm node_modules/linked; mv node_modules/a node_modules/c`)
  assert.deepEqual(output.slice(0, -5), [
    'aba', '{}', '.bin', '.cache', '.package-lock.json', '.vite', '.vite-temp', '@scope', 'a',
    'linked',
  ])
  for (const line of output.slice(-5)) assert.match(line, /Read-only file system|busy/)
})

test('caches are empty and writable, and end with the command', { skip }, async (t) => {
  const { original, root, run } = world(t, PACKAGES)
  const names = ['.cache', '.vite', '.vite-temp']
  for (const name of names) {
    const folder = `node_modules/${name}`
    assert.deepEqual(await run(`ls -A ${folder}; echo y > ${folder}/y; cat ${folder}/y`), ['y'])
    assert.deepEqual(await run(`ls -A ${folder}`), [])
  }
  assert.deepEqual(readdirSync(join(root, 'node_modules')), [])
  assert.ok(!existsSync(join(original, 'node_modules/.vite-temp')))
})

test('caches that are links are not followed', { skip }, async (t) => {
  const { original, data, run } = world(t, { 'node_modules/a/index.js': '' })
  symlinkSync('a', join(original, 'node_modules/.vite'))
  symlinkSync(data, join(original, 'node_modules/.cache'))
  const output = await run('touch node_modules/.vite/x node_modules/.cache/x; ls -A node_modules/*')
  assert.deepEqual(output, ['index.js'])
  assert.deepEqual(readdirSync(data), ['secret'])
})

test('links lead where they lead in the sandbox', { skip }, async (t) => {
  const { original, data, run } = world(t, PACKAGES)
  symlinkSync(data, join(original, 'node_modules/hidden'))
  symlinkSync('--version', join(original, 'node_modules/option'))
  symlinkSync('.bin/tool', join(original, 'node_modules/inner'))
  const output = await run(`cat node_modules/hidden/secret; readlink node_modules/option
    cat node_modules/inner`)
  assert.match(output[0]!, /No such file or directory/)
  assert.deepEqual(output.slice(1), ['--version', '#!/bin/sh', 'echo tool'])
})

test('names and targets that are not UTF-8 make it one mount', { skip }, async (t) => {
  for (const odd of ['name', 'target']) {
    const { original, run } = world(t, PACKAGES)
    const bytes = Buffer.concat([Buffer.from(`${original}/node_modules/x`), Buffer.from([0xff])])
    if (odd === 'name') writeFileSync(bytes, '')
    else symlinkSync(Buffer.from([0x61, 0xff]), join(original, 'node_modules/x'))
    const output = await run(`node -p 'require("a")'; ls -A node_modules | wc -l
      ls -A node_modules/.cache node_modules/.vite; touch node_modules/.vite/x
      mkdir node_modules/.vite-temp; touch node_modules/a/x`)
    assert.deepEqual(output.slice(0, 5).map((line) => line.trim()), [
      'a', '7', 'node_modules/.cache:', '', 'node_modules/.vite:',
    ])
    assert.equal(output.length, 7)
    for (const line of output.slice(5)) assert.match(line, /Read-only file system/)
  }
})

test('other names are mounted as they are', { skip }, async (t) => {
  const names = ['a b', '-x', 'a\nb', 'ü', '"', '$(x)']
  const files = names.map((name) => [`node_modules/${name}/index.js`, `exports.x = 1`])
  const { run } = world(t, Object.fromEntries(files))
  const found = await run(`node -p 'JSON.stringify(fs.readdirSync("node_modules").sort())'`)
  assert.deepEqual(JSON.parse(found[0]!), [...names, '.cache', '.vite', '.vite-temp'].sort())
})

test('with more than 400 entries, it is one mount with empty caches', { skip }, async (t) => {
  const many = Array.from({ length: 399 }, (_, i) => [`node_modules/p${i}/index.js`, ''])
  const { original, run } = world(t, {
    ...Object.fromEntries(many), 'node_modules/.vite/deps/x.js': 'x', 'node_modules/last/x': '',
  })
  const look = 'mkdir node_modules/.vite-temp/x && touch node_modules/.vite/y; ls -A node_modules/.vite'
  assert.deepEqual(await run(look), ['y'])
  writeFiles(original, { 'node_modules/one-more/x': '' })
  const [problem, ...rest] = await run(`${look}; touch node_modules/.vite/y`)
  assert.match(problem!, /No such file or directory/)
  assert.deepEqual(rest, [])
})

test('several folders share the limit, nested ones included', { skip }, async (t) => {
  const places = ['node_modules', 'packages/a/node_modules', 'packages/b/node_modules']
  const files = places.flatMap((place, at) =>
    Array.from({ length: [390, 20, 5][at]! }, (_, i) => [`${place}/p${i}/index.js`, `${at}`]))
  const { run } = world(t, Object.fromEntries(files), places)
  const output = await run(places.map((place) =>
    `cat ${place}/p4/index.js; echo; mkdir ${place}/.vite-temp/x && echo made`).join('; '))
  assert.deepEqual(output.map((line) => line.replace(/^mkdir:.*/, 'not made')),
    ['0', 'made', '1', 'not made', '2', 'made'])
})

test('no descriptor of an entry reaches the command, and none stays open', { skip }, async (t) => {
  const { run } = world(t, PACKAGES)
  const open = (): number => readdirSync('/proc/self/fd').length
  await run('true')
  const before = open()
  const output = await run('for i in 4 5 6 7 8 9 10 11 12; do readlink /proc/self/fd/$i; done')
  assert.deepEqual(output.filter((line) => line.includes('node_modules')), [])
  assert.equal(open(), before)
})

test('what takes the place of an entry after the look is not mounted', { skip }, async (t) => {
  const { original, root, data } = world(t, PACKAGES)
  using packages = new PackageMounts(4)
  const place = join(root, 'node_modules')
  const args = packages.argumentsFor({ from: join(original, 'node_modules'), to: place })
  renameSync(join(original, 'node_modules/a'), join(original, 'node_modules/b'))
  symlinkSync(data, join(original, 'node_modules/a'))
  const { spawnSync } = await import('node:child_process')
  const { stdout } = spawnSync(
    'bwrap', ['--ro-bind', '/', '/', ...args, 'ls', '-A', `${place}/a`],
    { stdio: ['ignore', 'pipe', 'inherit', 'ignore', ...packages.descriptors], encoding: 'utf8' },
  )
  assert.equal(stdout, 'index.js\n')
})

test('a folder that was replaced is not mounted', (t) => {
  const { original, root, data } = world(t, PACKAGES)
  const mount = { from: join(original, 'node_modules'), to: join(root, 'node_modules') }
  rmSync(mount.from, { recursive: true })
  symlinkSync(data, mount.from)
  using packages = new PackageMounts(4)
  assert.deepEqual(packages.argumentsFor(mount), [])
  renameSync(original, join(original, '../moved'))
  symlinkSync('moved', original)
  assert.deepEqual(packages.argumentsFor(mount), [])
  assert.deepEqual(packages.descriptors, [])
})
