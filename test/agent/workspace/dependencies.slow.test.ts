import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync, cpSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync,
  realpathSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { WorkspaceError } from '../../../lib/agent/errors.js'
import { removeFolder } from '../../../lib/agent/workspace/copy.js'
import {
  captureDependencies, compareDependencies, dependencyChanges, type DependencyComparison,
} from '../../../lib/agent/workspace/dependencies.js'
import type { DependencyDifferences, FoundDependencies }
  from '../../../lib/agent/workspace/hash-dependencies.js'
import { captureAll, compareAll } from '../../../lib/agent/workspace/hash-dependencies.js'
import { Random } from '../../helpers/random.js'

const never = (): boolean => false

/** A workspace with dependencies. */
class Workspace {
  readonly top: string
  readonly cwd: string

  constructor(t: TestContext, parent: string = tmpdir()) {
    this.top = realpathSync(mkdtempSync(join(parent, 'dependencies-')))
    t.after(() => removeFolder(this.top))
    this.cwd = join(this.top, 'work')
    mkdirSync(this.cwd)
  }

  write(...paths: string[]): this {
    for (const path of paths) {
      mkdirSync(dirname(join(this.cwd, path)), { recursive: true })
      writeFileSync(join(this.cwd, path), `content of ${path}`)
    }
    return this
  }

  link(path: string, target: string): this {
    mkdirSync(dirname(join(this.cwd, path)), { recursive: true })
    symlinkSync(target, join(this.cwd, path))
    return this
  }

  remove(path: string): this {
    rmSync(join(this.cwd, path), { recursive: true })
    return this
  }

  /** In this thread, which is faster. */
  capture(): FoundDependencies {
    return captureAll({ folder: this.cwd, above: null, closed: [] }, never)
  }

  compare(before: FoundDependencies): DependencyDifferences {
    return compareAll({ folder: this.cwd, above: null, closed: [] }, before, never)
  }
}

const USUAL = [
  'package.json', 'src/a.js', 'node_modules/a/index.js', 'node_modules/a/lib/b.js',
  'node_modules/a/node_modules/c/index.js', 'node_modules/@s/b/index.js', 'node_modules/.bin/run',
  'node_modules/.package-lock.json', 'node_modules/.cache/babel/x.json',
  'node_modules/.vite/deps/r.js',
  '.venv/pyvenv.cfg', '.venv/bin/pytest', '.venv/lib/python3.11/site-packages/six.py',
  '.venv/lib/python3.11/site-packages/pytest/main.py',
  'vendor/bundle/ruby/3.1.0/gems/rake-1/rake.rb', '.yarn/cache/a.zip', '.pnp.cjs',
]

const cases: readonly {
  readonly name: string
  readonly change: (work: Workspace) => void
  readonly changes?: readonly string[]
  readonly caches?: readonly string[]
}[] = [
  { name: 'nothing', change: () => undefined },
  { name: 'the work itself', change: (work) => void work.write('src/b.js', 'lib/x.js', 'bin/y') },
  {
    name: 'a file of a package',
    change: ({ cwd }) => writeFileSync(join(cwd, 'node_modules/a/lib/b.js'), 'other'),
    changes: ['node_modules/a was modified'],
  },
  {
    name: 'a file with the same size and times',
    change: ({ cwd }) => {
      const file = join(cwd, 'node_modules/a/index.js')
      writeFileSync(file, readFileSync(file, 'utf8').replace('content', 'CONTENT'))
      utimesSync(file, 1, 1)
    },
    changes: ['node_modules/a was modified'],
  },
  {
    name: 'a nested package, a new file in a scope, and a program',
    change: ({ cwd }) => {
      writeFileSync(join(cwd, 'node_modules/a/node_modules/c/index.js'), '')
      writeFileSync(join(cwd, 'node_modules/@s/b/x.js'), '')
      chmodSync(join(cwd, 'node_modules/.bin/run'), 0o755)
    },
    changes: [
      'node_modules/.bin/run was modified', 'node_modules/@s/b was modified',
      'node_modules/a was modified',
    ],
  },
  {
    name: 'a link in place of a file with the same content',
    change: (work) => {
      work.write('copy.js').remove('node_modules/a/index.js')
      writeFileSync(join(work.cwd, 'copy.js'), 'content of node_modules/a/index.js')
      work.link('node_modules/a/index.js', '../../copy.js')
    },
    changes: ['node_modules/a was modified'],
  },
  {
    name: 'packages that come and go',
    change: (work) => void work.write('node_modules/new/i.js').remove('node_modules/@s/b'),
    changes: ['node_modules/@s/b was removed', 'node_modules/new was added'],
  },
  {
    name: 'folders of dependencies that come and go',
    change: (work) => {
      work.write('test/node_modules/x/i.js', 'test/node_modules/y/i.js', 'env/pyvenv.cfg')
      work.remove('.venv').remove('vendor')
    },
    changes: [
      '.venv was removed', 'env was added', 'test/node_modules was added',
      'vendor/bundle was removed',
    ],
  },
  {
    name: 'a link to a folder of dependencies',
    change: (work) => void work.write('other/x/i.js').link('test/node_modules', '../other'),
    changes: ['test/node_modules was added'],
  },
  {
    name: 'other dependencies',
    change: ({ cwd }) => {
      for (const path of USUAL.slice(10)) writeFileSync(join(cwd, path), '')
    },
    changes: [
      '.pnp.cjs was modified', '.venv/bin/pytest was modified',
      '.venv/lib/python3.11/site-packages/pytest was modified',
      '.venv/lib/python3.11/site-packages/six.py was modified', '.venv/pyvenv.cfg was modified',
      '.yarn/cache/a.zip was modified',
      'vendor/bundle/ruby/3.1.0/gems/rake-1 was modified',
    ],
  },
  {
    name: 'an older folder moved to where a package was',
    change: ({ top, cwd }) => {
      rmSync(join(cwd, 'node_modules/a'), { recursive: true })
      renameSync(join(top, 'old'), join(cwd, 'node_modules/a'))
    },
    changes: ['node_modules/a was modified'],
  },
  {
    name: 'an older folder moved to where the folder of all packages was',
    change: ({ top, cwd }) => {
      renameSync(join(cwd, 'node_modules'), join(top, 'away'))
      mkdirSync(join(top, 'packages'))
      renameSync(join(top, 'old'), join(top, 'packages/a'))
      renameSync(join(top, 'packages'), join(cwd, 'node_modules'))
    },
    changes: [
      'node_modules/.bin/run was removed', 'node_modules/@s/b was removed',
      'node_modules/a was modified',
    ],
  },
  {
    name: 'caches and the state of package managers',
    change: (work) => {
      work.remove('node_modules/.package-lock.json')
      work.write('node_modules/.modules.yaml', 'node_modules/.vite-temp/x.mjs')
      work.write('node_modules/.cache/register/code.json', 'node_modules/.cache/file')
      writeFileSync(join(work.cwd, 'node_modules/.vite/deps/r.js'), 'planted')
      work.write('.venv/lib/python3.11/site-packages/__pycache__/six.cpython-311.pyc')
    },
    caches: [
      'node_modules/.cache/file', 'node_modules/.cache/register', 'node_modules/.vite',
      'node_modules/.vite-temp',
    ],
  },
  {
    name: 'folders with the names of caches elsewhere, and links with their names',
    change: (work) => {
      work.write('node_modules/a/.cache/x.js', 'node_modules/@s/b/.vite/x.js')
      work.link('node_modules/.vitest', '../src')
    },
    changes: [
      'node_modules/.vitest was added', 'node_modules/@s/b was modified',
      'node_modules/a was modified',
    ],
  },
]

for (const { name, change, changes = [], caches = [] } of cases) {
  test(`dependencies are compared after a change of ${name}`, async (t) => {
    const work = new Workspace(t).write(...USUAL)
    mkdirSync(join(work.top, 'old/lib'), { recursive: true })
    writeFileSync(join(work.top, 'old/index.js'), 'other')
    const before = await captureDependencies(work.cwd)
    assert.deepEqual(JSON.parse(JSON.stringify(before)), before)
    change(work)
    const found: DependencyComparison = await compareDependencies(work.cwd, before)
    // What was there is told as well where clocks have not moved on since.
    const old = ['node_modules/.cache/babel', 'node_modules/.vite']
    const planted = found.caches.filter((path) => caches.includes(path) || !old.includes(path))
    assert.deepEqual({ changes: found.changes, caches: planted.sort() }, { changes, caches })
  })
}

test('caches that nobody touched are not told once the clock has moved on', (t) => {
  const work = new Workspace(t).write(...USUAL)
  const before = { ...work.capture(), since: Infinity }
  assert.deepEqual(work.compare(before).caches, [])
})

test('installing the same packages in another order and at another time is no change', (t) => {
  const work = new Workspace(t).write(...USUAL).link('node_modules/.bin/a', '../a/index.js')
  const before = work.capture()
  const whole = { recursive: true, verbatimSymlinks: true }
  cpSync(join(work.cwd, 'node_modules'), join(work.top, 'saved'), whole)
  work.remove('node_modules')
  mkdirSync(join(work.cwd, 'node_modules'))
  for (const name of readdirSync(join(work.top, 'saved')).sort().reverse()) {
    cpSync(join(work.top, 'saved', name), join(work.cwd, 'node_modules', name), whole)
  }
  const { added, removed, modified } = work.compare(before)
  assert.deepEqual({ added, removed, modified }, { added: [], removed: [], modified: [] })
})

test('npm ci and a new virtual environment change nothing', async (t) => {
  const work = new Workspace(t)
  const run = (command: string): string =>
    execFileSync('sh', ['-c', command], { cwd: work.cwd, encoding: 'utf8', stdio: 'pipe' })
  for (const name of ['a', 'b']) {
    mkdirSync(join(work.top, name))
    const json = { name, version: '1.0.0', bin: { [name]: 'cli.js' } }
    writeFileSync(join(work.top, name, 'package.json'), JSON.stringify(json))
    writeFileSync(join(work.top, name, 'cli.js'), '#!/usr/bin/env node\n')
    run(`npm pack --silent ../${name}`)
  }
  const npm = '--offline --no-audit --no-fund --silent --cache ../cache'
  run(`npm install ${npm} ./a-1.0.0.tgz ./b-1.0.0.tgz && python3 -m venv --without-pip .venv`)
  assert.ok(existsSync(join(work.cwd, 'node_modules/.bin/a')))
  const before = await captureDependencies(work.cwd)
  run(`npm ci ${npm} && rm -rf .venv && python3 -m venv --without-pip .venv`)
  assert.deepEqual(await dependencyChanges(work.cwd, before), [])
  run(`rm -rf node_modules && npm install ${npm} ./a-1.0.0.tgz ./b-1.0.0.tgz`)
  assert.deepEqual(await dependencyChanges(work.cwd, before), [])
})

test('a package that lies in the workspace is no dependency, the link to it is one', (t) => {
  const work = new Workspace(t).write('packages/a/index.js', 'packages/b/index.js')
  work.link('node_modules/a', '../packages/a')
  work.link('node_modules/.pnpm/node_modules/b', '../../../packages/b')
  const before = work.capture()
  assert.deepEqual(Object.keys(before.marks).sort(), [
    'node_modules/.pnpm/node_modules/b', 'node_modules/a',
  ])
  work.write('packages/a/index.js', 'packages/a/new.js')
  assert.deepEqual(work.compare(before).modified, [])
  work.remove('node_modules/a').link('node_modules/a', '../packages/b')
  assert.deepEqual(work.compare(before).modified, ['node_modules/a'])
})

test('packages above the workspace count, and a link to a folder of packages outside', async (t) => {
  const work = new Workspace(t).write('src/a.js').link('sub/node_modules', '../../shared')
  for (const path of ['node_modules/x/i.js', 'shared/y/i.js']) {
    mkdirSync(dirname(join(work.top, path)), { recursive: true })
    writeFileSync(join(work.top, path), '1')
  }
  const above = join(work.top, 'node_modules')
  const before = await captureDependencies(work.cwd, { above })
  writeFileSync(join(work.top, 'node_modules/x/i.js'), '2')
  writeFileSync(join(work.top, 'shared/y/i.js'), '2')
  assert.deepEqual(await dependencyChanges(work.cwd, before, { above }), [
    '../node_modules/x was modified', 'sub/node_modules/y was modified',
  ])
})

test('closed folders are not looked at, and odd names are told in one line', async (t) => {
  const work = new Workspace(t).write('data/node_modules/x/i.js', 'node_modules/a\nb/i.js')
  const raw = Buffer.concat([Buffer.from(join(work.cwd, 'node_modules/')), Buffer.of(0xff)])
  writeFileSync(raw, '1')
  const closed = [join(work.cwd, 'data')]
  const before = await captureDependencies(work.cwd, { closed })
  assert.deepEqual(before.folders, ['node_modules'])
  writeFileSync(raw, '2')
  work.remove('node_modules/a\nb').write('data/node_modules/x/j.js')
  const changes = await dependencyChanges(work.cwd, JSON.parse(JSON.stringify(before)), { closed })
  assert.equal(changes.length, 2)
  for (const one of changes) assert.match(one, /^node_modules\/[^\n]+ was (?:modified|removed)$/)
})

test('hashes of an earlier capture count for what nobody touched since', (t) => {
  const work = new Workspace(t).write(...USUAL)
  const job = { folder: work.cwd, above: null, closed: [] }
  const first = captureAll(job, never)
  const made = Object.fromEntries(Object.keys(first.packages!).map((path) => [path, path]))
  const settled = { ...first, since: Infinity, packages: made }
  assert.deepEqual(captureAll({ ...job, known: settled }, never).packages, made)
  work.write('node_modules/a/index.js', 'node_modules/new/i.js').remove('node_modules/@s/b')
  const now = captureAll({ ...job, known: settled }, never).packages!
  const fresh = captureAll(job, never).packages!
  const { 'node_modules/@s/b': _, ...others } = made
  const touched = ['node_modules/a', 'node_modules/new'].map((path) => [path, fresh[path]])
  assert.deepEqual(now, { ...others, ...Object.fromEntries(touched) })
  assert.notEqual(fresh['node_modules/a'], undefined)
  // What changed in the step of the clock of the capture may have changed again.
  const recent = { ...first, since: 0, packages: made }
  assert.deepEqual(captureAll({ ...job, known: recent }, never).packages, fresh)
})

test('beyond the bounds each touched package, or each folder, counts as changed', (t) => {
  const work = new Workspace(t).write(...USUAL)
  const job = { folder: work.cwd, above: null, closed: [] }
  const limits = { hashed: 5, bytes: 1e9, entries: 1_000, packages: 100, added: 100 }
  const touched = captureAll(job, never, limits)
  assert.equal(touched.packages, null)
  const settled = { ...touched, since: Infinity }
  assert.deepEqual(compareAll(job, settled, never).modified, [])
  utimesSync(join(work.cwd, 'node_modules/a/index.js'), 1, 1)
  assert.deepEqual(compareAll(job, settled, never).modified, ['node_modules/a'])

  const coarse = captureAll(job, never, { ...limits, hashed: 1_000, packages: 10 })
  assert.ok(Object.hasOwn(coarse.packages!, 'node_modules'))
  work.write('node_modules/.cache/y/z', 'node_modules/.package-lock.json')
  assert.deepEqual(compareAll(job, coarse, never).modified, [])
  work.write('node_modules/@s/b/new.js')
  assert.deepEqual(compareAll(job, coarse, never).modified, ['node_modules'])

  const tooMany = { message: 'too large' }
  assert.throws(() => captureAll(job, never, { ...limits, entries: 10 }), tooMany)
  const few = { ...limits, packages: 1, added: 1 }
  assert.throws(() => compareAll(job, touched, never, few), tooMany)
})

test('a change in the same moment in which dependencies were looked at is found', (t) => {
  for (const parent of [tmpdir(), '/dev/shm']) {
    const work = new Workspace(t, parent).write('node_modules/a/i.js')
    const file = join(work.cwd, 'node_modules/a/i.js')
    for (let round = 0; round < 100; round++) {
      writeFileSync(file, 'before')
      const before = work.capture()
      writeFileSync(file, 'after!')
      assert.deepEqual(work.compare(before).modified, ['node_modules/a'], `round ${round}`)
    }
  }
})

test('nothing of a package is read again unless it was touched', (t) => {
  const work = new Workspace(t).write(...USUAL)
  const before = { ...work.capture(), since: Infinity }
  const lies = Object.fromEntries(Object.keys(before.packages!).map((path) => [path, 'other']))
  assert.deepEqual(work.compare({ ...before, packages: lies }).modified, [])
  utimesSync(join(work.cwd, 'node_modules/a/index.js'), 1, 1)
  assert.deepEqual(work.compare({ ...before, packages: lies }).modified, ['node_modules/a'])
  assert.deepEqual(work.compare(before).modified, [])
  // It may have changed again in the moment of the newest change.
  const all = Object.keys(lies).sort()
  const { modified } = work.compare({ ...before, since: 0, packages: lies })
  assert.deepEqual(modified.toSorted(), all)
})

test('an abort ends the look, and a folder that is gone is told', async (t) => {
  const work = new Workspace(t).write(...USUAL)
  const abort = new AbortController()
  const reason = new Error('enough')
  const looking = captureDependencies(work.cwd, { signal: abort.signal })
  abort.abort(reason)
  await assert.rejects(looking, reason)
  await assert.rejects(captureDependencies(join(work.cwd, 'gone')), WorkspaceError)
})

const PACKAGE =
  /^((?:node_modules\/(?:@s\/)?|venv\/(?:bin\/|lib\/python3\/(?:site-packages\/)?)?)[^/ ]+)/

/** What a package is, in plain words. */
function described(work: Workspace): Map<string, string> {
  const found = new Map<string, string>()
  const script = `find node_modules venv -mindepth 2 ! -type d \\
    -printf '%p %y %l ' \\( -type f -perm /111 -printf x -o -printf - \\) \\
    \\( -type f -exec sha256sum {} \\; -o -printf '\\n' \\) 2>/dev/null | sort`
  const { stdout } = spawnSync('sh', ['-c', script], { cwd: work.cwd, encoding: 'utf8' })
  for (const line of stdout.split('\n').filter((one) => one !== '')) {
    const [, name] = PACKAGE.exec(line)!
    found.set(name!, `${found.get(name!) ?? ''}${line}\n`)
  }
  return found
}

test('random changes of random packages are found, and nothing else', (t) => {
  for (let seed = 1; seed <= 12; seed++) {
    const random = new Random(seed)
    const work = new Workspace(t, random.chance(0.5) ? tmpdir() : '/dev/shm')
    const packages = [
      'node_modules/a', 'node_modules/b', 'node_modules/@s/c', 'venv/bin/d', 'venv/e',
      'venv/lib/python3/site-packages/f', 'venv/lib/python3/g',
    ]
    const file = (): string =>
      `${random.pick(packages)}/${random.pick(['x', 'y', 'in/x', 'in/y', 'in/deep/z'])}`
    const put = (): void => {
      const path = join(work.cwd, file())
      mkdirSync(dirname(path), { recursive: true })
      rmSync(path, { force: true })
      if (random.chance(0.2)) symlinkSync(random.pick(['x', '../y', '/etc/hosts']), path)
      else writeFileSync(path, String(random.integer(0, 2)))
    }
    work.write('node_modules/a/x', 'venv/e/x')
    for (let i = 0; i < 25; i++) put()
    const before = work.capture()
    const was = described(work)
    for (let i = random.integer(0, 6); i > 0; i--) {
      const path = join(work.cwd, file())
      const dice = random.integer(0, 4)
      if (dice === 0) put()
      else if (lstatSync(path, { throwIfNoEntry: false })?.isFile() !== true) continue
      else if (dice === 1) chmodSync(path, random.pick([0o644, 0o755]))
      else if (dice === 2) writeFileSync(path, String(random.integer(0, 2)))
      else if (dice === 3) rmSync(path)
      else rmSync(dirname(path), { recursive: true, force: true })
    }
    const is = described(work)
    const { added, removed, modified } = work.compare(before)
    const told = `seed ${seed}`
    const addedNow = [...is.keys()].filter((path) => !was.has(path)).sort()
    assert.deepEqual(added.toSorted(), addedNow, told)
    const removedNow = [...was.keys()].filter((path) => !is.has(path)).sort()
    assert.deepEqual(removed.toSorted(), removedNow, told)
    const other = [...is.keys()].filter((path) => was.has(path) && was.get(path) !== is.get(path))
    assert.deepEqual(modified.toSorted(), other.sort(), told)
  }
})
