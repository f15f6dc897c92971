/**
 * The projects of `sealed.mjs`: 5 000 files each, half of them packages, with 300 modules, 60 files
 * of tests, data and pages. One of the modules is wrong, which one test tells.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const FILES = 5_000
const PACKAGED = 2_500
const MODULES = 300
const TESTS = 60
const AREAS = 12

/** Numbers that are the same each time. */
function numbers(seed) {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const words = (
  'account balance batch border buffer cache change client column count customer entry event ' +
  'filter folder format group header index invoice label ledger limit list margin member message ' +
  'method model number option order page parser payment price product query range record region ' +
  'report result route rule sample schema section server session sheet source state status stock ' +
  'store stream table target tax team template text time token total unit user value vendor view'
).split(' ')

const module = (i) => `area${i % AREAS}/${words[i % words.length]}-${i}`
const pythonModule = (i) => `area${i % AREAS}/${words[i % words.length]}_${i}`

/** A text of about so many bytes in which words are called by their names. */
function filler(next, bytes, comment) {
  let text = ''
  while (text.length < bytes) {
    const line = Array.from({ length: 9 }, () => words[next(words.length)]).join(' ')
    text += `${comment} ${line}\n`
  }
  return text
}

const javaScript = {
  goal: 'node-test',
  packages: 'node_modules',
  fixed: [`src/${module(0)}.js`, 'export const value0 = (n) => n + 0\n'],
  files(next) {
    const files = { 'package.json': '{ "name": "project", "version": "1.0.0", "type": "module" }\n' }
    for (let i = 0; i < MODULES; i++) {
      const used = [i * 2 + 1, i * 2 + 2].filter((one) => one < MODULES)
      const imports = used.map((one) => `import { value${one} } from '../${module(one)}.js'\n`)
      const lines = Array.from({ length: 12 }, (_, at) => {
        const [a, b] = [words[next(words.length)], words[next(words.length)]]
        return (
          `\n/** The ${a} of each ${b}; see '${a}/${b}'. */\nexport function ${a}${at}(${b}s) {\n` +
          `  return ${b}s.map((one) => ({ ...one, ${a}: one['${b}'] ?? ${at} }))\n}\n`
        )
      })
      const sum = used.map((one) => ` + 0 * value${one}(n)`).join('')
      const value = i === 0 ? 'n + 1' : `n + ${i}${sum}`
      files[`src/${module(i)}.js`] =
        `${imports.join('')}${filler(next, 900, '//')}` +
        `export const value${i} = (n) => ${value}\n${lines.join('')}`
    }
    for (let i = 0; i < TESTS; i++) {
      const used = Array.from({ length: 5 }, (_, at) => (i * 5 + at) % MODULES)
      const cases = used.map(
        (one) => `test('value ${one}', () => {\n  for (const n of numbers) {\n` +
          `    assert.equal(value${one}(n), n + ${one})\n  }\n})\n`,
      )
      files[`test/part${i}.test.js`] =
        "import assert from 'node:assert/strict'\nimport { readFileSync } from 'node:fs'\n" +
        "import { test } from 'node:test'\n" +
        used.map((one) => `import { value${one} } from '../src/${module(one)}.js'\n`).join('') +
        `const url = new URL('fixtures/numbers-${i}.json', import.meta.url)\n` +
        "const numbers = JSON.parse(readFileSync(url, 'utf8'))\n" + cases.join('')
      files[`test/fixtures/numbers-${i}.json`] = JSON.stringify([i, i + 1, 17])
    }
    return files
  },
  packaged(next, i) {
    const folder = `node_modules/package-${i % 110}`
    const name = i < 110 ? 'package.json' : `lib/${words[next(words.length)]}-${i}.js`
    const text = `{ "name": "package-${i}", "version": "1.0.${i}", "main": "lib/index.js" }\n`
    return [`${folder}/${name}`, i < 110 ? text : filler(next, next(9_000), '//')]
  },
  prepare() {},
}

const python = {
  goal: 'pytest',
  packages: '.venv',
  fixed: [`src/${pythonModule(0)}.py`, 'def value0(n):\n    return n + 0\n'],
  files(next) {
    const files = {
      'pyproject.toml':
        '[project]\nname = "project"\nversion = "1.0.0"\n\n' +
        '[tool.pytest.ini_options]\npythonpath = ["src"]\ntestpaths = ["tests"]\n',
    }
    for (let area = 0; area < AREAS; area++) files[`src/area${area}/__init__.py`] = ''
    const dotted = (i) => pythonModule(i).replace('/', '.')
    for (let i = 0; i < MODULES; i++) {
      const used = [i * 2 + 1, i * 2 + 2].filter((one) => one < MODULES)
      const imports = used.map((one) => `from ${dotted(one)} import value${one}\n`)
      const lines = Array.from({ length: 12 }, (_, at) => {
        const [a, b] = [words[next(words.length)], words[next(words.length)]]
        return (
          `\n\ndef ${a}${at}(${b}s):\n    """The ${a} of each ${b}; see '${a}/${b}'."""\n` +
          `    return [{**one, "${a}": one.get("${b}", ${at})} for one in ${b}s]\n`
        )
      })
      const sum = used.map((one) => ` + 0 * value${one}(n)`).join('')
      const value = i === 0 ? 'n + 1' : `n + ${i}${sum}`
      files[`src/${pythonModule(i)}.py`] =
        `${imports.join('')}${filler(next, 900, '#')}` +
        `\n\ndef value${i}(n):\n    return ${value}\n${lines.join('')}`
    }
    for (let i = 0; i < TESTS; i++) {
      const used = Array.from({ length: 5 }, (_, at) => (i * 5 + at) % MODULES)
      const cases = used.map(
        (one) => `\n\ndef test_value_${one}():\n    for n in NUMBERS:\n` +
          `        assert value${one}(n) == n + ${one}\n`,
      )
      files[`tests/test_part${i}.py`] =
        'import json\nfrom pathlib import Path\n\n' +
        used.map((one) => `from ${dotted(one)} import value${one}\n`).join('') +
        `\nNUMBERS = json.loads((Path(__file__).parent / "fixtures/numbers-${i}.json").read_text())\n` +
        cases.join('')
      files[`tests/fixtures/numbers-${i}.json`] = JSON.stringify([i, i + 1, 17])
    }
    return files
  },
  packaged(next, i, root) {
    this.site ??= join('.venv/lib', readdirSync(join(root, '.venv/lib'))[0], 'site-packages')
    const name = i < 110 ? '__init__' : `${words[next(words.length)]}_${i}`
    return [`${this.site}/package_${i % 110}/${name}.py`, filler(next, next(9_000), '#')]
  },
  /** The runner itself is that of the machine. */
  prepare(root) {
    const options = ['--without-pip', '--system-site-packages']
    execFileSync('python3', ['-m', 'venv', ...options, join(root, '.venv')])
  },
}

export const projects = { 'node:test': javaScript, pytest: python }

/** Makes a project in a folder. */
export function makeProject(root, project) {
  const next = numbers(1)
  mkdirSync(root, { recursive: true })
  project.prepare(root)
  const files = project.files(next)
  for (let i = 0; i < PACKAGED; i++) {
    const [path, text] = project.packaged(next, i, root)
    files[path] = text
  }
  for (let i = Object.keys(files).length; i < FILES; i++) {
    const kind = ['data', 'docs', 'assets', 'locales'][i % 4]
    const extension = { data: 'json', docs: 'md', assets: 'svg', locales: 'txt' }[kind]
    files[`${kind}/${words[i % words.length]}/${i}.${extension}`] = filler(next, next(6_000), '-')
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
}
