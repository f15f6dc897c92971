/**
 * The packages that bugs are planted in: every one comes from its registry with its tests, which
 * pass as they are. Nothing of them is kept here but names, versions and how the tests run.
 */

/** What prints the results of the tests. */
export type Runner =
  | 'tape' | 'tap' | 'node:test' | 'mocha' | 'jest' | 'vitest' | 'ava' | 'pytest' | 'unittest'

export interface RealPackage {
  /** The name in the npm registry, or Debian's name of the Python package. */
  readonly name: string
  readonly version: string
  readonly language: 'javascript' | 'python'
  readonly runner: Runner
  /** The command, to which arguments are added: those of the whole suite, or one test file. */
  readonly command: string
  readonly all: string
  /** Test files, as a pattern of their paths. */
  readonly tests: RegExp
  /** Files that get bugs, as a pattern of their paths. */
  readonly sources: RegExp
  /** What the tests need besides the dependencies of the package, by exact version. */
  readonly tools: Readonly<Record<string, string>>
}

const TAPE = { tape: '5.9.0' }
const TAP = { tap: '16.3.10' }
const MOCHA = { mocha: '10.8.2' }

type Rest = Pick<RealPackage, 'all' | 'tests' | 'sources'> & {
  readonly tools?: Readonly<Record<string, string>>
}

function npm(
  runner: Runner, command: string, tools: Readonly<Record<string, string>>,
): (name: string, version: string, rest: Rest) => RealPackage {
  return (name, version, rest) => ({
    name, version, language: 'javascript', runner, command, ...rest,
    tools: { ...tools, ...rest.tools },
  })
}

function debian(
  runner: 'pytest' | 'unittest', name: string, version: string, folder: string, tests: string,
): RealPackage {
  return {
    name, version, language: 'python', runner, tools: {},
    command: runner === 'pytest' ? 'python3 -m pytest' : 'python3 -m unittest',
    all: runner === 'pytest' ? `${folder}/${tests}` : `discover -t . -s ${folder}/${tests}`,
    tests: new RegExp(`^${folder}/${tests}/test_\\w+\\.py$`),
    sources: new RegExp(`^${folder}/(?!${tests}/|__init__)\\w+\\.py$`),
  }
}

const tape = npm('tape', 'npx --no-install tape', TAPE)
const tap = npm('tap', 'npx --no-install tap --no-coverage --reporter=tap', TAP)
const mocha = npm('mocha', 'npx --no-install mocha', MOCHA)
const node = npm('node:test', 'node --test', {})
const jest = npm('jest', "npx --no-install jest --transform '{}'", { jest: '29.7.0' })
const vitest = npm('vitest', 'npx --no-install vitest run', { vitest: '3.2.4' })
const ava = npm('ava', 'npx --no-install ava', { ava: '1.4.1' })

const TEST_FOLDER = { all: "'test/*.js'", tests: /^test\/[^/]+\.js$/ }
const NODE_TESTS = { all: '', tests: /^test\/.*\.test\.js$/ }
const INDEX = { sources: /^index\.js$/ }
const LIB = { sources: /^lib\/[^/]+\.js$/ }

export const PACKAGES: readonly RealPackage[] = [
  tape('minimist', '1.2.8', { ...TEST_FOLDER, ...INDEX }),
  mocha('flat', '5.0.2', { all: '--ui tdd test/test.js', tests: /^test\/test\.js$/, ...INDEX }),
  node('@fastify/proxy-addr', '5.1.3', { ...NODE_TESTS, ...INDEX }),
  tap('nopt', '3.0.6', { ...TEST_FOLDER, ...LIB }),
  // Written for other runners with the same functions.
  jest('json-schema-traverse', '1.0.0', { all: '', tests: /^spec\/index\.spec\.js$/, ...INDEX }),
  jest('debounce', '1.2.1', {
    all: '', tests: /^test\.js$/, ...INDEX, tools: { sinon: '1.17.7' },
  }),
  vitest('zod', '3.25.76', {
    all: 'src/v3/tests/string.test.ts src/v3/tests/object.test.ts',
    tests: /^src\/v3\/tests\/(string|object)\.test\.ts$/,
    sources: /^v3\/(types|helpers\/util|helpers\/parseUtil|ZodError)\.js$/,
  }),
  ava('arrgv', '1.0.2', { all: 'test.js', tests: /^test\.js$/, ...INDEX }),
  debian('pytest', 'python3-h11', '0.14.0-1.1~deb12u1', 'h11', 'tests'),
  {
    ...debian('unittest', 'python3-hyperlink', '21.0.0-5', 'hyperlink', 'test'),
    // The others take long.
    all: ['url', 'parse', 'decoded_url'].map((name) => `hyperlink/test/test_${name}.py`).join(' '),
    tests: /^hyperlink\/test\/test_(url|parse|decoded_url)\.py$/,
    sources: /^hyperlink\/_url\.py$/,
  },
  tape('qs', '6.17.1', { ...TEST_FOLDER, ...LIB, tools: {
    'es-value-fixtures': '1.7.1', 'for-each': '0.3.5', 'has-bigints': '1.1.0',
    'has-override-mistake': '1.0.1', 'has-property-descriptors': '1.0.2', 'has-proto': '1.2.0',
    'has-symbols': '1.1.0', 'iconv-lite': '0.5.1', 'mock-property': '1.1.2',
    'object-inspect': '1.13.4', 'qs-iconv': '1.0.4', 'safer-buffer': '2.1.2',
  } }),
  mocha('object-path', '0.11.8', {
    all: 'test.js', tests: /^test\.js$/, ...INDEX, tools: { chai: '4.5.0' },
  }),
  node('@fastify/merge-json-schemas', '0.2.2', {
    all: 'test/if*.test.js test/items.test.js test/properties.test.js test/def*.test.js',
    tests: /^test\/(if|items|properties|def).*\.test\.js$/, sources: /^(index|lib\/\w+)\.js$/,
  }),
  debian('pytest', 'python3-toolz', '0.12.0-1', 'toolz', 'tests'),
  tape('traverse', '0.6.11', {
    ...TEST_FOLDER, ...INDEX, tools: { 'es-value-fixtures': '1.7.1' },
  }),
  mocha('json-pointer', '0.6.2', {
    all: '', tests: /^test\/test\.js$/, ...INDEX,
    tools: { chai: '1.10.0', 'seamless-immutable': '7.1.4' },
  }),
  node('json-schema-ref-resolver', '3.0.1', { ...NODE_TESTS, ...INDEX }),
  tap('rfdc', '1.4.1', { all: 'test', tests: /^test\/index\.js$/, ...INDEX }),
  tape('fast-uri', '3.1.9', {
    ...TEST_FOLDER, sources: /^(index|lib\/\w+)\.js$/,
    tools: { ajv: '8.17.1', 'uri-js': '4.4.1' },
  }),
  debian('unittest', 'python3-isodate', '0.6.1-1', 'isodate', 'tests'),
  node('find-my-way', '9.10.1', {
    all: 'test/find*.test.js test/has*.test.js test/path*.test.js test/pretty*.test.js',
    tests: /^test\/(find|has|path|pretty).*\.test\.js$/, sources: /^(index|lib\/\w+)\.js$/,
    tools: { rfdc: '1.4.1' },
  }),
  tape('object-inspect', '1.13.4', { ...TEST_FOLDER, ...INDEX, tools: {
    'error-cause': '1.0.9', 'es-value-fixtures': '1.7.1', 'for-each': '0.3.5',
    'functions-have-names': '1.2.3', globalthis: '1.0.4', 'has-symbols': '1.1.0',
    'has-tostringtag': '1.0.2', semver: '6.3.1', 'make-arrow-function': '1.2.0',
    'mock-property': '1.1.2', 'string.prototype.repeat': '1.0.0',
  } }),
  node('pino-std-serializers', '7.1.0', {
    all: 'test/err.test.js test/err-with-cause.test.js', tests: /^test\/err.*\.test\.js$/,
    sources: /^lib\/err[\w-]*\.js$/,
  }),
  tap('fast-safe-stringify', '2.1.1', {
    all: 'test.js test-stable.js', tests: /^test(-stable)?\.js$/, ...INDEX,
    tools: { clone: '2.1.2' },
  }),
  debian('pytest', 'python3-automat', '22.10.0-1', 'automat', '_test'),
  tape('fastq', '1.20.3', {
    all: 'test/test.js test/promise.js', tests: /^test\/(test|promise)\.js$/,
    sources: /^queue\.js$/, tools: { async: '3.2.6', 'neo-async': '2.6.2' },
  }),
  mocha('url-join', '4.0.1', {
    all: '--require should', tests: /^test\/tests\.js$/, ...LIB, tools: { should: '13.2.3' },
  }),
  tape('jsonparse', '1.3.1', { ...TEST_FOLDER, sources: /^jsonparse\.js$/ }),
  mocha('domutils', '1.5.1', {
    all: "'test/tests/*.js'", tests: /^test\/tests\/\w+\.js$/, ...LIB,
    tools: { htmlparser2: '3.3.0', domhandler: '2.4.2' },
  }),
  tape('secure-json-parse', '2.7.0', {
    all: "'test/*.test.js'", tests: /^test\/[^/]+\.test\.js$/, ...INDEX,
  }),
  debian('unittest', 'python3-translationstring', '1.4-2', 'translationstring', 'tests'),
  tap('cron-parser', '2.18.0', {
    all: 'test/parser.js test/parser_day_of_month.js test/leap_year.js test/empty_around_comma.js',
    tests: /^test\/(parser|leap_year|empty)\w*\.js$/, ...LIB, tools: { sinon: '9.2.4' },
  }),
  tape('@fastify/deepmerge', '3.2.4', { ...TEST_FOLDER, ...INDEX }),
  tape('split2', '4.2.0', {
    all: 'test.js', tests: /^test\.js$/, ...INDEX,
    tools: { 'binary-split': '1.0.5', 'callback-stream': '1.1.0' },
  }),
  node('safe-regex2', '5.1.2', { ...NODE_TESTS, ...INDEX }),
  tap('safe-stable-stringify', '1.1.1', {
    all: 'test.js', tests: /^test\.js$/, sources: /^stable\.js$/, tools: { clone: '2.1.2' },
  }),
  tape('ent', '2.2.2', { ...TEST_FOLDER, sources: /^(en|de)code\.js$/ }),
  mocha('delegates', '1.0.0', {
    all: '--require should', tests: /^test\/index\.js$/, ...INDEX, tools: { should: '13.2.3' },
  }),
  tape('varint', '6.0.0', {
    all: 'test.js', tests: /^test\.js$/, sources: /^(en|de)code\.js$/,
  }),
  {
    ...debian('pytest', 'python3-webencodings', '0.5.1-5', 'webencodings', 'tests.py'),
    tests: /^webencodings\/tests\.py$/, sources: /^webencodings\/(__init__|x_user_defined)\.py$/,
  },
]
