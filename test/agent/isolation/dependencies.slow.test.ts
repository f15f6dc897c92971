import assert from 'node:assert/strict'
import {
  chmodSync, existsSync, lstatSync, readFileSync, readlinkSync, writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { attempt, Project } from '../../helpers/isolated.js'
import { wholeTree } from '../../helpers/whole-tree.js'

const has = (program: string): boolean => attempt(`${program} --version`, '/').status === 0
const python = has('python3')

interface Case {
  readonly name: string
  readonly skip?: string | false
  readonly setup: (project: Project) => void
  /** Prints what `changed` holds, found as a dependency. */
  readonly use: string
  /** The file whose content is printed, and how it looks with another word in it. */
  readonly changed: string
  /** Below the top. */
  readonly below?: string
  /** What has to be told. */
  readonly note?: RegExp
}

/** A package of which `main` prints where it is from. */
const pkg = (name: string, more = ''): Record<string, string> => ({
  [`packages/${name}/package.json`]: `{"name":"${name}","version":"1.0.0","main":"index.js"${more}}`,
  [`packages/${name}/index.js`]: 'module.exports = "word"\n',
  [`packages/${name}/cli.js`]: '#!/usr/bin/env node\nconsole.log(require("./index.js"))\n',
})

const ROOT = { 'package.json': '{"name":"root","private":true,"workspaces":["packages/*"]}' }
const REQUIRE = `node -e 'console.log(require("a"))'`

/** A virtual environment, and a package installed into it as editable by these files. */
function editable(files: Readonly<Record<string, string>>): (project: Project) => void {
  return (project) => {
    project.write({ 'src/a/__init__.py': 'WORD = "word"\ndef main(): print(WORD)\n' })
    project.run('python3 -m venv --without-pip .venv && cd .venv && ln -s lib/python3*/site-packages site')
    const script = '#!@/.venv/bin/python3\nfrom a import main\nmain()\n'
    project.write({ '.venv/bin/a': script }, 0o755)
    const info = { 'dir_info': { editable: true }, url: `file://${encodeURI(project.cwd)}` }
    project.write({ '.venv/site/a-1.0.dist-info/direct_url.json': JSON.stringify(info) })
    for (const [path, text] of Object.entries(files)) {
      project.write({ [`.venv/site/${path}`]: text })
    }
  }
}

const FINDER = `import sys
from importlib.machinery import PathFinder
MAPPING = {'a': '@/src/a'}
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        for pkg, place in MAPPING.items():
            if name == pkg:
                return PathFinder.find_spec(name, [place.rpartition('/')[0]])
def install(): sys.meta_path.append(Finder)
`

const PYTHON = `.venv/bin/python -c 'import a; print(a.WORD)' && .venv/bin/a`
const needsPython = python ? false : 'python3 is not installed'

const cases: readonly Case[] = [
  {
    name: 'npm workspaces',
    skip: has('npm') ? false : 'npm is not installed',
    setup: (project) => {
      project.write({ ...ROOT, ...pkg('a', ',"bin":{"a":"cli.js"}'), ...pkg('b') })
      project.write({ 'packages/a/cli.js': readFileSync(join(project.cwd, 'packages/a/cli.js'), 'utf8') }, 0o755)
      project.run('npm install --offline --no-audit --no-fund --cache ../cache')
    },
    use: `${REQUIRE} && node_modules/.bin/a && cd packages/b && ${REQUIRE}`,
    changed: 'packages/a/index.js',
  },
  {
    name: 'workspace links that are absolute, as yarn link makes them',
    setup: (project) => {
      project.write({ ...ROOT, ...pkg('a'), 'node_modules/.yarn-integrity': '{}' })
      project.link({ 'node_modules/a': '@/packages/a', 'node_modules/.bin/a': '@/packages/a/cli.js' })
      project.run('chmod +x packages/a/cli.js')
    },
    use: `${REQUIRE} && node_modules/.bin/a`,
    changed: 'packages/a/index.js',
  },
  {
    name: 'yarn workspaces with links in scopes',
    setup: (project) => {
      project.write({ ...ROOT, ...pkg('a'), 'node_modules/.yarn-state.yml': 'a: "@/packages/a"\n' })
      project.link({ 'node_modules/@scope/a': '../../packages/a', 'packages/b/node_modules/a': '../../a' })
    },
    use: `node -e 'console.log(require("@scope/a"))' && cd packages/b && ${REQUIRE}`,
    changed: 'packages/a/index.js',
  },
  {
    name: 'pnpm with its virtual store',
    setup: (project) => {
      const store = 'node_modules/.pnpm/dep@1.0.0/node_modules'
      project.write({
        ...ROOT, ...pkg('a'), ...pkg('b'), 'pnpm-workspace.yaml': 'packages: ["packages/*"]\n',
        [`${store}/dep/package.json`]: '{"name":"dep","version":"1.0.0","main":"index.js"}',
        [`${store}/dep/index.js`]: 'module.exports = require("a")\n',
        'node_modules/.modules.yaml': 'virtualStoreDir: @/node_modules/.pnpm\n',
        'node_modules/.pnpm-workspace-state-v1.json': '{"projects":{"@/packages/a":{}}}',
      })
      const shim = `#!/bin/sh
export NODE_PATH="@/node_modules/.pnpm/node_modules"
exec node "@/packages/a/cli.js" "$@"\n`
      project.write({ 'packages/b/node_modules/.bin/a': shim }, 0o755)
      project.link({
        'packages/b/node_modules/a': '../../a',
        'packages/b/node_modules/dep': `../../../${store}/dep`,
        [`${store}/a`]: '../../../../packages/a',
        'node_modules/.pnpm/node_modules/dep': '../dep@1.0.0/node_modules/dep',
      })
    },
    use: `cd packages/b && ${REQUIRE} && node -e 'console.log(require("dep"))' && node_modules/.bin/a`,
    changed: 'packages/a/index.js',
  },
  {
    name: 'yarn with plug and play',
    setup: (project) => {
      project.write({
        ...ROOT, ...pkg('a'),
        '.pnp.cjs': `const { resolve } = require('path')
          exports.resolveRequest = (name) => resolve('@/packages', name)\n`,
        '.pnp.data.json': `{"packageLocation":"@/packages/","large":"${'x'.repeat(500_000)}"}`,
      })
    },
    use: `node -e 'console.log(require(require("./.pnp.cjs").resolveRequest("a")))'`,
    changed: 'packages/a/index.js',
  },
  {
    name: 'packages that are found above it, in a monorepo',
    below: 'mono/packages/a',
    setup: (project) => {
      project.write({
        'package.json': '{"name":"a","version":"1.0.0","main":"index.js"}',
        'index.js': 'module.exports = "word"\n',
        '../b/package.json': '{"name":"b","version":"1.0.0"}',
        '../../package.json': '{"private":true,"workspaces":["packages/*"]}',
        '../../node_modules/dep/index.js': 'module.exports = require("a")\n',
      })
      project.link({ '../../node_modules/a': '../packages/a', '../../node_modules/b': '../packages/b' })
    },
    use: `node -e 'console.log(require("dep"))'`,
    changed: 'index.js',
    note: /^The packages in .* were copied as well\.|lead out of the folder.*: b\.$/,
  },
  {
    name: 'an editable install by a path',
    skip: needsPython,
    setup: editable({ '__editable__.a-1.0.pth': '@/src\n' }),
    use: PYTHON,
    changed: 'src/a/__init__.py',
  },
  {
    name: 'an editable install by a finder',
    skip: needsPython,
    setup: editable({
      '__editable__.a-1.0.pth': 'import __editable___a_1_0_finder as f; f.install()\n',
      '__editable___a_1_0_finder.py': FINDER,
    }),
    use: PYTHON,
    changed: 'src/a/__init__.py',
  },
  {
    name: 'an editable install by an egg link',
    skip: needsPython,
    setup: editable({ 'a.egg-link': '@/src\n.', 'easy-install.pth': '@/src\n' }),
    use: PYTHON,
    changed: 'src/a/__init__.py',
  },
  {
    name: 'an editable install by another name of the folder',
    skip: needsPython,
    setup: (project) => {
      project.run(`ln -s project ${project.top}/alias`)
      editable({ '_a.pth': `${project.top}/alias/src\n` })(project)
      const script = `#!${project.top}/alias/.venv/bin/python3\nfrom a import main\nmain()\n`
      project.write({ '.venv/bin/a': script }, 0o755)
    },
    use: PYTHON,
    changed: 'src/a/__init__.py',
  },
  {
    name: 'an editable install in a folder with spaces, letters beyond ASCII and a long name',
    skip: needsPython,
    below: `ä b/${'long'.repeat(40)}/project`,
    setup: (project) => {
      editable({ '__editable__.a-1.0.pth': '@/src\n' })(project)
      const script = `#!/bin/sh\n'''exec' "@/.venv/bin/python3" "$0" "$@"\n' '''\nfrom a import main\nmain()\n`
      project.write({ '.venv/bin/a': script }, 0o755)
    },
    use: PYTHON,
    changed: 'src/a/__init__.py',
  },
  {
    name: 'an activated environment under another name',
    skip: needsPython,
    setup: (project) => {
      project.write({ 'src/a/__init__.py': 'WORD = "word"\ndef main(): print(WORD)\n' })
      project.run('python3 -m venv --without-pip env && cd env && ln -s lib/python3*/site-packages site')
      project.write({ 'env/site/a.pth': '@/src\n' })
    },
    use: `. env/bin/activate && python -c 'import a; print(a.WORD)' && test "$VIRTUAL_ENV" = "$PWD/env"`,
    changed: 'src/a/__init__.py',
  },
]

for (const { name, skip = false, setup, use, changed, below, note } of cases) {
  test(`a copy uses its own code, not the original's: ${name}`, { skip }, async (t) => {
    const project = new Project(t, below)
    setup(project)
    const words = attempt(use, project.cwd)
    assert.match(words.output, /^(word\n)+$/)
    const before = project.outside()
    const { root, notes } = await project.isolate()
    project.assertUntouched(before)
    assert.deepEqual(notes.filter((text) => !note?.test(text)), [])
    assert.deepEqual(attempt(use, root), words)
    const file = join(root, changed)
    writeFileSync(file, readFileSync(file, 'utf8').replace('word', 'other'))
    assert.equal(attempt(use, root).output, words.output.replaceAll('word', 'other'))
    assert.deepEqual(attempt(use, project.cwd), words)
    project.assertUntouched(before)
    assert.deepEqual(mentions(root, project.cwd), [], 'nothing leads back')
  })
}

/** Files and links of a folder that hold a path. */
function mentions(root: string, path: string): readonly string[] {
  return Object.keys(wholeTree(root)).filter((name) => {
    const file = join(root, Buffer.from(name, 'latin1').toString())
    const stats = lstatSync(file)
    if (stats.isSymbolicLink()) return readlinkSync(file).startsWith(path)
    return stats.isFile() && readFileSync(file, 'utf8').includes(path)
  })
}

test('an editable install elsewhere is named', { skip: needsPython }, async (t) => {
  const project = new Project(t).write({ 'src/a/__init__.py': 'WORD = "word"\n' })
  project.run(`python3 -m venv --without-pip ../venv
    cd ../venv && ln -s lib/python3*/site-packages site`)
  project.write({ '../venv/site/a.pth': '@/src\n', '../venv/site/b.pth': `${project.cwd}2/src\n` })
  project.write({ '../venv/site/__editable__c.py': `MAPPING = {'c': '${project.cwd}/src'}` })
  const before = process.env['PATH']
  t.after(() => (process.env['PATH'] = before))
  process.env['PATH'] = `${project.top}/venv/bin:${before}`
  const { notes } = await project.isolate()
  assert.equal(notes.length, 1)
  const [note] = notes
  assert.match(note!, /^Python gets .*python3[^,]*\/site-packages\/a\.pth: create a virtual environment/)
  assert.match(note!, /site-packages\/__editable__c\.py/)
  assert.doesNotMatch(note!, /b\.pth/)
})

test('a package elsewhere that leads back is named', async (t) => {
  const project = new Project(t).write({
    'package.json': '{"name":"root","dependencies":{"dep":"link:../dep"}}',
    '../dep/index.js': 'module.exports = require("root")\n',
  })
  project.link({ 'node_modules/dep': '../../dep', '../dep/node_modules/root': '../../project' })
  const { notes } = await project.isolate()
  assert.match(notes.join(), /^These links lead out of the folder, .*: node_modules\/dep\.$/)
})

test('npm installs nothing above a copy that is no package', { skip: !has('npm') }, async (t) => {
  const project = new Project(t)
  project.write({ 'x.js': '', '../dep/package.json': '{"name":"dep","version":"1.0.0"}' })
  project.write({ '../package.json': '{"name":"above","private":true}' })
  const before = project.outside()
  const { root } = await project.isolate()
  const install = 'npm install --offline --no-audit --no-fund --cache ./.npm-cache'
  attempt(`${install} ${project.top}/dep`, root)
  project.assertUntouched(before)
})

/** A folder of packages that is large enough to be mounted. */
function manyPackages(project: Project): void {
  const files = Array.from({ length: 250 }, (_, i) => [`node_modules/p${i}/index.js`, `${i}`])
  project.write({ 'package.json': '{}', 'a.js': 'a', ...Object.fromEntries(files) })
}

interface MountCase {
  readonly name: string
  readonly more: (project: Project) => void
  readonly mounted: boolean
}

const mountCases: readonly MountCase[] = [
  { name: 'only packages', more: () => undefined, mounted: true },
  {
    name: 'relative links to a workspace',
    more: (project) => project.write({ 'packages/w/x': '' }).link({ 'node_modules/w': '../packages/w' }),
    mounted: true,
  },
  { name: 'an absolute link', more: (project) => project.link({ 'node_modules/w': '@/a.js' }), mounted: false },
  { name: 'a link out', more: (project) => project.link({ 'node_modules/w': '../../b' }), mounted: false },
  {
    name: 'a script with the path',
    more: (project) => project.write({ 'node_modules/p1/node_modules/.bin/x': 'node @/a.js' }),
    mounted: false,
  },
  {
    name: 'settings with the path',
    more: (project) => project.write({ 'node_modules/.modules.yaml': '@/x' }),
    mounted: false,
  },
  {
    name: 'a closed folder',
    more: (project) => project.write({ 'node_modules/closed/x': '' }),
    mounted: false,
  },
  {
    name: 'a pipe',
    more: (project) => void project.run('mkfifo node_modules/p1/pipe'),
    mounted: false,
  },
]

for (const { name, more, mounted } of mountCases) {
  test(`packages are ${mounted ? 'mounted' : 'copied'} for a sandbox: ${name}`, async (t) => {
    const project = new Project(t)
    manyPackages(project)
    more(project)
    const closed = [join(project.cwd, 'node_modules/closed')]
    const folders = project.foldersWith({ closed })
    const { root, readOnly, notes } = await folders.create('run', project.cwd, { mounts: true })
    const packages = join(root, 'node_modules')
    const mounts = [{ from: join(project.cwd, 'node_modules'), to: packages }]
    assert.deepEqual(readOnly, mounted ? mounts : [])
    assert.equal(existsSync(join(packages, 'p1')), !mounted)
    const hasPendingMessages = notes.some((text) => /^node_modules cannot be changed by/.test(text))
    assert.equal(hasPendingMessages, mounted)
    assert.deepEqual((await folders.find('run'))?.readOnly, readOnly)
  })
}

test('packages are copied for plain processes, and never linked', async (t) => {
  const project = new Project(t)
  manyPackages(project)
  const { root, readOnly } = await project.isolate()
  assert.deepEqual(readOnly, [])
  const file = join(root, 'node_modules/p7/index.js')
  assert.equal(lstatSync(file).nlink, 1)
  chmodSync(file, 0o600)
  writeFileSync(file, 'changed')
  assert.equal(readFileSync(join(project.cwd, 'node_modules/p7/index.js'), 'utf8'), '7')
})
