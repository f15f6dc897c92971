/**
 * What the name of a file tells about its part in a check. Names alone decide little: a helper or a
 * folder `unit` may as well be code under test, so `owners.ts` asks who refers to them.
 *
 * @module
 */
import { posix } from 'node:path'

import { compileGlobs } from '../../workspace/globs.js'
import { SKIPPED_FOLDERS } from '../../workspace/skipped-folders.js'
import { JS_TESTS, OTHER_TESTS, PYTHON_TESTS, TEST_TREES } from '../test-files.js'

/** What a file is written in; `data` for everything that is no program. */
export type Language = 'javascript' | 'python' | 'shell' | 'make' | 'other' | 'data'

/** Alternatives in a regular expression. */
const oneOf = (words: string): string => `(?:${words.trim().split(/\s+/).join('|')})`

const EXTENSIONS: ReadonlyMap<string, Language> = new Map(
  Object.entries({
    javascript: 'js cjs mjs jsx ts cts mts tsx vue svelte coffee',
    python: 'py pyi pyx',
    shell: 'sh bash zsh ksh bats',
    make: 'mk',
    other:
      'go rs java kt kts groovy scala c h cc cpp cxx hpp cs fs rb php pl pm lua swift m mm ex ' +
      'exs erl hs ml clj dart zig nim r jl awk jq sed sql proto graphql wasm node so o a class jar',
  }).flatMap(([language, names]) =>
    names.split(' ').map((name): [string, Language] => [name, language as Language]),
  ),
)

/** The language by name; that of files without an extension is in their first line. */
export function languageOf(path: string): Language {
  const name = posix.basename(path)
  if (/^(?:GNUmakefile|makefile|Makefile)$/.test(name)) return 'make'
  const extension = posix.extname(name).slice(1).toLowerCase()
  return EXTENSIONS.get(extension) ?? 'data'
}

/** The language that the first line of a program names; null without such a line. */
export function shebang(text: string): Language | null {
  if (!text.startsWith('#!')) return null
  const line = text.slice(2, 200).split('\n', 1)[0]!
  if (/python/.test(line)) return 'python'
  if (/\b(?:node|deno|bun|tsx)\b/.test(line)) return 'javascript'
  return /sh\b/.test(line) ? 'shell' : 'other'
}

/** The name without its last extension. */
export function stemOf(path: string): string {
  return posix.basename(path, posix.extname(path))
}

/** A path without its last extension. */
export function withoutExtension(path: string): string {
  return path.slice(0, path.length - posix.extname(path).length)
}

const isTestPattern = compileGlobs([...JS_TESTS, ...PYTHON_TESTS, ...OTHER_TESTS])
const isTestTree = compileGlobs(TEST_TREES)

/** True for a name by which runners find tests. */
export function isTestName(path: string): boolean {
  return isTestPattern(path)
}

/** True for everything below a folder such as `test` or `__tests__`. */
export function isInTestTree(path: string): boolean {
  return isTestTree(path)
}

/** What a test is about, by its name: `total` for `total.test.ts` and `test_total.py`. */
export function subjectOf(path: string): string {
  return stemOf(path).replace(/^tests?[-_.]|[-_.](?:tests?|spec)$/i, '')
}

/** Folders in which code under test usually lies. */
const CODE_FOLDERS = new Set(
  (
    'src lib libs app apps source sources server client api core bin cmd pkg internal public ' +
    'static assets www components pages routes views templates models controllers services locales'
  ).split(' '),
)

/** Is there a folder of code on the way to this file? */
export function isInCodeFolder(path: string): boolean {
  return foldersOf(path).some((name) => CODE_FOLDERS.has(name.toLowerCase()))
}

const TEST_FOLDER = new RegExp(
  `^${oneOf(String.raw`
    qa t units? unit[-_]?tests? e2e integrations? acceptance functional regression smoke testing
    checks? verif(?:y|ication) cypress playwright .*[-_]tests? tests?[-_].* test-d`)}$`,
  'i',
)

const FIXTURE_FOLDER = new RegExp(
  `^${oneOf(String.raw`
    __\w{1,40}__ fixtures? test[-_]?data test[-_]?fixtures? goldens? expected expectations?
    snapshots? approved cassettes mocks?`)}$`,
  'i',
)
const FIXTURE_NAME = new RegExp(
  `(?:^|[._-])${oneOf(`
    expected expectations? goldens? snap snapshots? fixtures? approved mocks?`)}(?:[._-]|$)`,
  'i',
)
const INPUT_FOLDER = /^(?:cases|samples?|inputs?|corpus|vectors|scenarios|test[-_]?cases)$/i

const SUPPORT_FOLDER = new RegExp(
  `^${oneOf(`
    helpers? support testing test-utils? harness stubs fakes doubles vendor(?:ed)?
    third[-_]?party`)}$`,
  'i',
)

/** Is this, by its name or folder, a helper of tests, or what tests are given? */
export function isSupport(path: string): boolean {
  if (isFixtureName(path) || isInputName(path) || isHelperName(path)) return true
  return foldersOf(path).some((name) => SUPPORT_FOLDER.test(name) || TEST_FOLDER.test(name))
}

/** Data that by its name or folder is compared with, or given to, what is tested. */
export function isFixtureName(path: string): boolean {
  return (
    FIXTURE_NAME.test(posix.basename(path)) ||
    foldersOf(path).some((name) => FIXTURE_FOLDER.test(name))
  )
}

/** What a runner compares with and finds by itself, in whatever folder. */
export function isSnapshot(path: string): boolean {
  return /\.(?:snap|snapshot|approved)(?:\.\w{1,20})?$/.test(path)
}

/** Data in a folder for what is given to the code under test. */
export function isInputName(path: string): boolean {
  return foldersOf(path).some((name) => INPUT_FOLDER.test(name))
}

const RUNNERS = '(?:jest|vitest|mocha|ava|karma|jasmine|playwright|cypress|tap|qunit|pytest|node)'
const HELPING = oneOf(`
  helpers? utils? utilities setup teardown support fixtures? mocks? kit server case base data
  harness common tools? env environment matchers? hooks? globals?`)
const HELPER_NAME = new RegExp(
  `^(?:(?:.*[-_.])?(?:tests?|specs?|testing|${RUNNERS})[-_.]?${HELPING}` +
    `|setup[-_.]?(?:tests?|env|globals?|${RUNNERS})` +
    '|global[-_]?(?:setup|teardown)|conftest|testing)$',
  'i',
)
const HELPER_FOLDER = new RegExp(
  `^${oneOf(String.raw`
    __(?:mocks|fixtures|helpers|utils|support)__
    (?:tests?|specs?)[-_](?:helpers?|utils?|support|kit) testutils? testkit`)}$`,
  'i',
)

const EXAMPLE_FOLDER = /^(?:examples?|demos?|samples?|bench(?:marks?)?|scripts?|tools?)$/i

/** Programs beside the code, which are run by tests as well as written by people. */
export function isExample(path: string): boolean {
  return foldersOf(path).some((name) => EXAMPLE_FOLDER.test(name))
}

/** Code that by its name helps tests and nothing else. */
export function isHelperName(path: string): boolean {
  return (
    HELPER_NAME.test(stemOf(path)) || foldersOf(path).some((name) => HELPER_FOLDER.test(name))
  )
}

/** A folder from which runners load by themselves. */
export function isMockFolder(path: string): boolean {
  return foldersOf(path).includes('__mocks__')
}

const CHECKING = new RegExp(
  `(?:^|[^a-z])${oneOf(`
    tests? specs? checks? checker verify verifier verification grade grader assert validate
    validator compare differ judge score qa e2e ci`)}(?:[^a-z]|$)`,
  'i',
)

/** Is this, by its name, a program that checks others? */
export function isCheckingName(path: string): boolean {
  return CHECKING.test(path)
}

const WORK_NAME = /^(?:index|main|__main__|app|server|cli|start|solution|program)$/i
const PREPARING_NAME = new RegExp(
  `^${oneOf(`
    build compile bundle generate gen setup deploy release format migrate seed install prepare`)}$`,
  'i',
)

/** Is this, by its name, a program that is the work itself? */
export function isWorkName(path: string): boolean {
  return WORK_NAME.test(stemOf(path))
}

/** Is this, by its name, a program that is the work itself, or builds it? */
export function isMainName(path: string): boolean {
  return isWorkName(path) || PREPARING_NAME.test(stemOf(path))
}

const TOOLS = oneOf(`
  jest vitest vite ava karma playwright cypress wdio nyc c8 babel swc postcss webpack rollup esbuild
  tsup tsdown rspack rsbuild metro eslint prettier stylelint commitlint lint-staged knip svelte vue
  next nuxt astro tailwind stryker web-test-runner jasmine mocha tap uvu xo biome turbo unocss node
  snowpack ember-cli angular happo backstop codecept testcafe nightwatch protractor wallaby`)
/** The name of the configuration of a tool that checks may run. */
const TOOL_CONFIGURATION = new RegExp(
  `^\\.?${TOOLS}[\\w.-]{0,60}\\.(?:config|conf|workspace)\\.\\w+$`,
)
const ANY_CONFIGURATION =
  /^[\w.-]+\.(?:config|conf)\.(?:[cm]?[jt]sx?|json[5c]?|ya?ml|toml|ini)$/
const CONFIGURATION_NAMES = new RegExp(
  `^${oneOf(String.raw`
    \.[\w-]+rc(?:\.(?:[cm]?[jt]s|json[5c]?|ya?ml|toml))? (?:ts|js)config[\w.-]*\.json \.env(?:\..*)?
    \.?pytest\.(?:ini|toml) \.?ruff\.toml \.?mypy\.ini \.(?:eslint|prettier|stylelint)ignore
    \.pnp\.(?:cjs|loader\.mjs) phpunit\.xml(?:\.dist)? pyrightconfig\.json tslint\.json
    biome\.jsonc? deno\.jsonc? bunfig\.toml nx\.json turbo\.json lerna\.json pnpm-workspace\.yaml
    node\.config\.json \.coveragerc \.flake8 \.pylintrc \.rspec \.python-version \.nvmrc
    \.tool-versions conftest\.py noxfile\.py mocha\.opts ava\.js wallaby\.js`)}$`,
)

/** The configuration of a known tool, in any folder. */
export function isToolConfiguration(path: string): boolean {
  const name = posix.basename(path)
  return CONFIGURATION_NAMES.test(name) || TOOL_CONFIGURATION.test(name)
}

/** Configuration by name; among code, only that of known tools. */
export function isConfiguration(path: string): boolean {
  if (isToolConfiguration(path)) return true
  return ANY_CONFIGURATION.test(posix.basename(path)) && !isInCodeFolder(path)
}

const PROSE = new RegExp(
  `^${oneOf(`
    readme change(?:s|log) history licen[cs]e copying notice authors contribut(?:ing|ors)
    code_of_conduct security governance news todo version citation maintainers codeowners`)}` +
    '(?:[._-].*)?$',
  'i',
)
const LOCKS =
  /^(?:package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|bun\.lockb?|go\.sum|.*\.lock)$/
const DELIVERED = new RegExp(
  `^${oneOf(String.raw`
    manifest\.json action\.ya?ml (?:docker-)?compose[\w.-]*\.ya?ml
    (?:openapi|swagger|schema)[\w.-]*\.(?:json|ya?ml) procfile vercel\.json netlify\.toml
    bower\.json component\.json composer\.json requirements[\w.-]*\.txt environment\.ya?ml pipfile
    gemfile setup\.py \.gitlab-ci\.yml`)}$`,
  'i',
)
const DELIVERED_STEM = /^(?:answers?|outputs?|out|results?|solutions?|submission|reports?)$/i
const NOT_OF_CHECKS = new Set(
  'docs doc documentation .github .husky .vscode .idea'.split(' '),
)
const BUILT = new Set(['dist', 'build', 'out', 'lib-cov', 'target'])
const GENERATED = /\.(?:pyc|pyo|tsbuildinfo|map)$|\.egg-info\//

/** What never belongs to a check, whoever reads it: dependencies, prose, locks, output. */
export function isNeverOfChecks(path: string): boolean {
  const folders = foldersOf(path)
  if (folders.some((name) => SKIPPED_FOLDERS.has(name)) || GENERATED.test(path)) return true
  if (LOCKS.test(posix.basename(path)) || /^\.(?:git|npm|docker)\w+$/.test(posix.basename(path))) {
    return true
  }
  if (folders.some((name) => FIXTURE_FOLDER.test(name))) return false
  return folders.some((name) => BUILT.has(name) || NOT_OF_CHECKS.has(name))
}

/** Data that is the work itself rather than part of a check: prose, manifests, answers. */
export function isDelivered(path: string): boolean {
  const name = posix.basename(path)
  const isDockerfile = name.toLowerCase().split('.').includes('dockerfile')
  if (isDockerfile || PROSE.test(name)) return true
  return DELIVERED.test(name) || DELIVERED_STEM.test(stemOf(path))
}

const PAGE = new RegExp(
  `\\.${oneOf('html? css s[ac]ss less svg mdx? rst adoc tex ipynb ejs hbs pug njk j2 jinja2?')}$`,
  'i',
)

/** Pages, styles and prose, which people write as often as code. */
export function isPage(path: string): boolean {
  return PAGE.test(path)
}

/** Documents, whose samples may be tests. */
export function isDocument(path: string): boolean {
  return /\.(?:mdx?|markdown|rst|adoc)$/i.test(path)
}

/** Texts for people, which may hold samples of code. */
export function isProse(path: string): boolean {
  if (foldersOf(path).some((name) => SKIPPED_FOLDERS.has(name))) return false
  return isDocument(path) || path.endsWith('.txt') || PROSE.test(posix.basename(path))
}

function foldersOf(path: string): readonly string[] {
  return path.split('/').slice(0, -1)
}
