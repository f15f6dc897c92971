/**
 * What others write costs linear time, whatever it is: each parser gets hostile texts of growing
 * size. Twice the size may take at most three times the steps, which are counted.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

import { readCheckScript } from '../lib/agent/goals/check-script.js'
import { compileGlobs } from '../lib/agent/workspace/globs.js'
import { goalRegistry } from '../lib/agent/goals/registry.js'
import { hashRelevantPart, samplesIn } from '../lib/agent/goals/relevant-part.js'
import { junitTests } from '../lib/agent/goals/reports/bun.js'
import { changeOf } from '../lib/agent/goals/compare-tests.js'
import { cargoTests } from '../lib/agent/goals/reports/cargo.js'
import { readableGo, readGo } from '../lib/agent/goals/reports/go.js'
import { collectTests } from '../lib/agent/goals/reports/outcomes.js'
import { detectReporter } from '../lib/agent/goals/reports/registry.js'
import { configuredFiles, pythonPlugins } from '../lib/agent/goals/runner-files.js'
import { importsIn } from '../lib/agent/goals/sealed/imports.js'
import { judgesIn } from '../lib/agent/goals/sealed/judging.js'
import { makeRules } from '../lib/agent/goals/sealed/make-rules.js'
import { optionalFilesIn } from '../lib/agent/goals/sealed/presence.js'
import { usesRunner } from '../lib/agent/goals/sealed/test-texts.js'
import { makeTargets } from '../lib/agent/goals/shipped/workspace-facts.js'
import { newProgress, noteResult } from '../lib/agent/log/progress.js'
import { LeadingThought } from '../lib/agent/models/openai/leading-thought.js'
import { ObjectEnd } from '../lib/agent/models/openai/object-end.js'
import { redactSecrets } from '../lib/agent/models/provider-errors.js'
import { durationOf } from '../lib/agent/models/rate-limit-headers.js'
import { parseFailures, parseOutcomes } from '../lib/agent/models/repair/read-report.js'
import { comparedIn, parseFrames } from '../lib/agent/models/repair/report.js'
import { tokenizeJavaScript } from '../lib/agent/models/repair/tokenize-javascript.js'
import { tokenizePython } from '../lib/agent/models/repair/tokenize-python.js'
import { parseArguments } from '../lib/agent/models/tool-arguments.js'
import { escapeInvisible } from '../lib/internal/escape-invisible.js'
import { headAndTail } from '../lib/agent/output.js'
import { Redactor } from '../lib/agent/redaction/redactor.js'
import { checkSchema } from '../lib/agent/check-schema.js'
import { decodeCursor } from '../lib/agent/stores/list-order.js'
import { literalMatcher } from '../lib/agent/tools/line-matcher.js'
import { TextFinder } from '../lib/agent/tools/text-finder.js'
import { parseTraceparent } from '../lib/agent/tracing/trace-context.js'
import { diffText } from '../lib/agent/workspace/diff.js'
import { changedPackages } from '../lib/agent/workspace/lock-changes.js'
import { mergeTexts } from '../lib/agent/workspace/merge-text.js'
import { atOnce } from '../lib/internal/next-turn.js'
import { parseChallenges } from '../lib/internal/challenges.js'
import { parseNetrc } from '../lib/http/auth/netrc.js'
import { CacheDirectives } from '../lib/http/cache/directives.js'
import { parseHttpDate } from '../lib/http/cache/http-date.js'
import { SseParser } from '../lib/http/content/sse-parser.js'
import { encodingName, LineSplitter } from '../lib/http/content/text.js'
import { Cookies } from '../lib/http/cookies/jar.js'
import { parsePublicSuffixes } from '../lib/http/cookies/public-suffixes.js'
import { parseCookieDate, parseSetCookie } from '../lib/http/cookies/set-cookie.js'
import { listMembers } from '../lib/http/field-values.js'
import { Headers } from '../lib/http/headers.js'
import { parseLinks } from '../lib/http/links.js'
import { parseNoProxy } from '../lib/http/no-proxy.js'
import { Masker } from '../lib/http/recording/masking.js'
import { parseRetryAfter } from '../lib/http/retry.js'
import { ResponseParser } from '../lib/http/transports/http1/response-parser.js'
import { parseUrl, percentDecoded, redactUrl } from '../lib/http/url.js'
import { bearerToken } from '../lib/server/access/auth.js'
import { isLoopbackHost } from '../lib/server/access/origin.js'
import { chooseType } from '../lib/server/messages/accept.js'
import { ProblemError } from '../lib/server/errors.js'
import { duplicateKey } from '../lib/server/messages/duplicate-key.js'
import { decodeFilePath, encodeFilePath } from '../lib/server/messages/file-path.js'
import { matchesTag } from '../lib/server/messages/etag.js'
import { targetOf } from '../lib/server/messages/request-target.js'
import { HandshakeError } from '../lib/ws/errors.js'
import { parseExtensions } from '../lib/ws/extensions.js'
import { RefusedBody } from '../lib/ws/refused-body.js'
import { HeadReader } from '../lib/ws/response-head.js'
import { readFolderOf, readPackOf } from './helpers/object-texts.js'
import { StepCounter } from './helpers/steps.js'

/** Characters of the two texts whose steps are compared. */
const SIZE = 4_000
/** Steps that do not depend on the text. */
const FIXED = 2_000

interface Parser {
  readonly name: string
  readonly parse: (text: string) => unknown
  /** What the text repeats. */
  readonly units: readonly string[]
  /** What comes before and after. */
  readonly around?: readonly [before: string, after: string]
}

const folder = mkdtempSync(join(tmpdir(), 'runwright-growth-'))
const goals = goalRegistry()
const inFile =
  (name: string, read: (cwd: string) => Promise<unknown>) =>
  async (text: string): Promise<void> => {
    writeFileSync(join(folder, name), text)
    await read(folder).finally(() => rmSync(join(folder, name)))
  }
const halves = (text: string): readonly [string, string] => {
  const middle = text.length / 2
  return [`${text.slice(0, middle)}!${text.slice(middle)}`, text + text]
}

const WORDS = ['x=/node ', 'a ', ';', '(', 'x=(', '"', "'", '\\"', ';x="', '-c "a;" ', '`', '#', '{']
const RUNNERS = ['python ', 'PYTHONPATH=', 'NODE_OPTIONS=$', 'node --test ', 'npx ', '-x ', '@']
const BLANKS = [' ', '\t', '\n', '\r', ' \n', '\u00a0']
const REPORTS = [
  ...BLANKS, 'ok 1 - a\n', 'not ok 1 - a\n  ---\n  error: x\n', ' # SKIP', '# Subtest: a\n',
  'FAIL: a (b.c)\n', '='.repeat(45) + '\nFAIL: a (b)\n' + '-'.repeat(45) + '\nTraceback\n',
  'Traceback\n', ' ... skipped', 'PASSED a\n', 'FAILED a\n', 'FAILED a[', '____ a\n', 'E   x\n',
  'a == ', 'expected: a', 'at /a/b.js:1', 'a', '/a', 'a.b:', '\u001b[', 'File "a", line 1\n', '0m0.',
]
const LOCK_FILES = [
  'package-lock.json', 'yarn.lock', 'pnpm-lock.yaml', 'bun.lock', 'Cargo.lock', 'go.sum',
  'requirements.txt', 'Gemfile.lock',
]
const PARSERS: readonly Parser[] = [
  { name: 'objects of folders', parse: readFolderOf, units: ['a', 'ab', '\ufffd', '/', '\ud800'] },
  {
    name: 'packs of objects',
    parse: (text) => readPackOf(text, join(folder, 'one.pack')),
    units: ['a', 'abcdefgh', 'RP\x01\0', '\0'],
  },
  { name: 'commands', parse: detectReporter, units: [...WORDS, ...RUNNERS, '\n', '\\\n'] },
  {
    name: 'a check that is followed',
    parse: (text) => readCheckScript(text, folder).catch(() => null),
    units: [...WORDS, 'a1 ', 'cd x;npm t;', 'sh a;', 'npm t;', 'make -C b;', '../', 'test*{a,b}'],
  },
  {
    name: 'a goal',
    parse: (text) => goals.resolve(text, folder).catch(() => null),
    units: ['shell: x=/node ', 'a', 'a-', 'a:', ' ', 'perf: ', 'PYTHONPATH=a ', 'NODE_OPTIONS="a" '],
    around: ['shell: ', 'x'],
  },
  {
    name: 'a goal with a time',
    parse: (text) => goals.resolve(text, folder).catch(() => null),
    units: [' ', '<', '1', '< 1', 'm', ' < 1ms'],
    around: ['perf: a', 'x'],
  },
  {
    name: 'settings of runners',
    parse: inFile('jest.config.js', configuredFiles),
    units: ['file:[', 'setupFiles', 'file: "', 'file:{', 'require: a ', 'file:\n', ' '],
  },
  { name: 'a makefile', parse: inFile('Makefile', makeTargets), units: ['a', ' ', 'a:\n', ' \n', ':'] },
  {
    name: 'globs',
    parse: (text) => compileGlobs([`**/${'*a'.repeat(20)}b`, '{a,b}*{c,**/d}'])(text),
    units: ['a', 'a/', 'b', 'ab/'],
  },
  {
    name: 'sections of settings',
    parse: (text) => hashRelevantPart('pyproject.toml', text),
    units: ['[', '[tool.pytest', '[a]\n', 'a=', '\n', ' ', '"'],
  },
  {
    name: 'files that tests look for',
    parse: optionalFilesIn,
    units: [
      'const a = existsSync(a)\n', 'existsSync(a)', 'a=b\n', '!a ', '(', 'try{require(a)}catch{}',
      'readdir(a).includes(b)',
    ],
  },
  {
    name: 'imports, and what they judge',
    parse: (text) => {
      const imports = importsIn(text)
      return [judgesIn(text, imports, new Set(imports)), usesRunner(text, imports)]
    },
    units: [
      "import a from 'tape'\n", "const { a: b } = require('./a')\n", 'test(', 'a(b(1), 2)\n',
      'import {a,', 'from ', "'", '//', 'a ', ' ', 'import ',
    ],
    around: ["import b, { a } from './a'\nimport c from './c'\n", ''],
  },
  {
    name: 'samples in prose',
    parse: samplesIn,
    units: ['```\n', '    a\n', 'a\n', '\n', '----\n', '~~~', ' '],
  },
  {
    name: 'plugins of pytest',
    parse: pythonPlugins,
    units: ['-p a ', 'pytest_plugins = ["a"', 'a.', '-p', ' ', '='],
  },
  {
    name: 'rules of make',
    parse: makeRules,
    units: ['a: b\n', 'a = $(a)\n', '$(', 'a += $(b) ', 'include a\n', '\\\n', '#', ' ', '%'],
  },
  {
    name: 'JUnit reports',
    parse: junitTests,
    units: [
      '<!--', '<![CDATA[', '<', '<a ', '<a x="', '<a x="1" ', '<testsuite>', '<testcase name="a">', ' ',
      '&amp', '<testcase name="&#1;&a"/>',
    ],
  },
  {
    name: 'reports of Cargo',
    parse: (text) => cargoTests('p', text, text),
    units: ['a: test\n', 'ok a\n', 'ok:', ' ', ': test', 'failed a: '],
  },
  {
    name: 'reports of Go',
    parse: (text) => Promise.all([readGo(text), readableGo(text)]),
    units: ['{"', '{"Action":"fail","Package":"a"}\n', '{"Action":"run","Package":"a","Test":"b"}\n', '\n'],
  },
  {
    name: 'tests of the same name',
    parse: (text) =>
      collectTests(text.split('').map((name) => ({ names: ['a', name], outcome: 'pass' }))),
    units: ['a', 'ab'],
  },
  {
    name: 'reported files that have no tests any more',
    parse: (text) => {
      const names = text.split('').map((_, i) => `${i}`)
      const all = <T>(value: T): Record<string, T> =>
        Object.fromEntries(names.map((name) => [name, value]))
      changeOf({ tests: all('pass'), idle: null }, all('fail'))
      changeOf({ tests: all('pass'), idle: names }, all('fail'))
    },
    units: ['a'],
  },
  {
    name: 'durations in output',
    parse: (text) => {
      const call = { tool: 'bash', args: {} }
      noteResult(newProgress(), call, { output: text, exitCode: 0 }, true)
    },
    units: ['1', '1.', '1 ', 'duration_ms ', '1m'],
  },
  ...(['tap', 'unittest', 'pytest', 'any'] as const).map((kind) => ({
    name: `the repair model's reading of ${kind} reports`,
    parse: (text: string) => [parseOutcomes(kind, text, 1), parseFailures(kind, text)],
    units: REPORTS,
  })),
  { name: 'stack frames', parse: parseFrames, units: ['a', '/', '.', 'a.b:1', 'file://', 'File "', ':1'] },
  { name: 'compared values', parse: comparedIn, units: ['a == ', 'expected ', 'E ', ' ', 'assert ', '\n'] },
  { name: 'JavaScript', parse: tokenizeJavaScript, units: ['a', '/', '/*', '`', '${', '"', '1', '.', '\n', '(', '}'] },
  { name: 'Python', parse: tokenizePython, units: ['a', '"""', "'", '#', '1', '.', '\n', '(', ' ', '\\\n'] },
  { name: 'arguments of a tool', parse: parseArguments, units: ['{', '[', '"', '\\', ' ', '{"a":'] },
  {
    name: 'reasoning before text',
    parse: (text) => {
      const thought = new LeadingThought()
      for (const char of text) thought.pass(char)
    },
    units: [' ', '<', '<think>', 'a'],
  },
  { name: 'keys in errors', parse: (text) => redactSecrets(text, ['secret']), units: ['sk-', 'Bearer ', 'a', '='] },
  { name: 'durations of rate limits', parse: durationOf, units: ['1', '1m', '1.', 'm'] },
  {
    name: 'secrets',
    parse: (text) => {
      const redactor = new Redactor(['correct horse battery'])
      redactor.text(text)
      redactor.settled(text, 0)
    },
    units: ['sk-', '-eyJ0123456789', '-----BEGIN PRIVATE KEY-----', 'correct horse ', 'a', 'A '],
    around: ['', '!'],
  },
  { name: 'invisible characters', parse: escapeInvisible, units: ['\u202e', 'a', '\u200b'] },
  { name: 'long output', parse: (text) => headAndTail(text, 1_000), units: ['a', 'é', '\n'] },
  {
    name: 'values and schemas',
    parse: (text) => {
      const items = { anyOf: [{ type: 'object', required: ['a'] }, { type: 'string' }] } as const
      checkSchema({ type: 'array', items }, text.split(','))
      checkSchema({ type: 'object', additionalProperties: false }, { [text]: text })
    },
    units: ['a', ',', '~/', '😀'],
  },
  { name: 'cursors', parse: (text) => assert.throws(() => decodeCursor(text)), units: ['a', 'W1', '='] },
  {
    name: 'texts to replace',
    parse: (text) => {
      const [wanted, file] = halves(text)
      new TextFinder(wanted).indexIn(file)
    },
    units: ['a', 'ab', 'aab'],
  },
  {
    name: 'lines with a text',
    parse: (text) => literalMatcher(text.slice(0, 1_000), false).match(text + text, 10),
    units: ['a', 'a\n', 'ab', '\n'],
  },
  { name: 'traceparent', parse: parseTraceparent, units: ['0', '00-', '-'] },
  {
    name: 'diffs',
    parse: (text) => {
      const lines = text.replaceAll('a', 'a\n')
      diffText(lines, lines.replaceAll('a', 'b'), { before: 'a', after: 'b' })
      diffText(lines, `b${lines}\nb`, { before: 'a', after: 'b' })
    },
    units: ['aaaaaaaaaaaaaaaaaaa', 'ba', '\n'],
  },
  ...LOCK_FILES.map((path): Parser => ({
    name: `packages of ${path}`,
    parse: (text) => atOnce(changedPackages(path, text, `${text}a`)),
    units: [
      '[[package]]\nname = "a"\nversion = "1"\n', 'a@1:\n  version "1"\n  integrity x\n',
      'packages:\n  a@1:\n    resolution: x\n', '    "a": ["a@1", "sha', '    a (1)\n',
      'a==1 \\\n  --hash=1\n', 'a 1 h1:x\n', '  version version', "'", '(', ' ', '@', '/',
    ],
  })),
  {
    name: 'merged texts',
    parse: (text) => {
      const [base, ours, theirs] = [text, `b${text}`, `${text}\nb`].map((it) => Buffer.from(it))
      atOnce(mergeTexts(base!, ours!, theirs!))
    },
    units: ['a', 'a\n', '\n', 'ab\nb\n'],
  },
  {
    name: 'challenges',
    parse: (text) => parseChallenges([text]),
    units: ['a', 'a=', 'a="', '"', '\\"', ' ', ',', 'Basic realm="\\'],
  },
  { name: 'netrc files', parse: parseNetrc, units: ['"', '"\\', 'machine ', ' ', 'macdef\n', '#', 'a'] },
  {
    name: 'arguments in pieces',
    parse: (text) => {
      const end = new ObjectEnd()
      for (let at = 1; at <= text.length; at++) end.isIn(text.slice(0, at))
    },
    units: ['a', '{', '}', '[', '"', '\\', ' ', '{"a":"', '{"a":[1]},'],
    around: ['{', '}'],
  },
  {
    name: 'event streams',
    parse: (text) => {
      const parser = new SseParser()
      for (const char of text) parser.feed(char)
    },
    units: ['a', '\r', '\n', 'data:', ':', 'id:1\n', 'data:a\n\n'],
  },
  {
    name: 'secrets of recordings',
    parse: (text) => {
      for (const type of ['application/json', 'multipart/form-data', 'application/x-www-form-urlencoded'])
        new Masker().all(new Masker().body(text, type))
    },
    units: ['{"token":[', 'eyJaaaaa.', '://a', '"', '\\', '":"', ' ', '"token":"a",', 'a=b&', 'token=b&', '--a\r\n', '\r\n\r\n', '; name="a"'],
    around: ['--a\r\n', '!'],
  },
  { name: 'charsets', parse: encodingName, units: ['a', ' ', '-'] },
  {
    name: 'lines',
    parse: (text) => {
      const splitter = new LineSplitter()
      for (const char of text) splitter.feed(char)
    },
    units: ['a', '\r', '\n', '\r\n'],
  },
  { name: 'public suffixes', parse: parsePublicSuffixes, units: ['a', 'a.', '!', '*.', '\n', ' '] },
  { name: 'Set-Cookie', parse: parseSetCookie, units: ['a', ';', '=', ' ', ';expires=1', ';domain=a.'] },
  { name: 'dates of cookies', parse: parseCookieDate, units: ['1', ' ', '1:', 'jan ', '-'] },
  { name: 'HTTP dates', parse: (text) => parseHttpDate(text, 0), units: ['Sun, ', '0', ' ', 'Jan'] },
  {
    name: 'Cache-Control',
    parse: (text) => {
      const control = new CacheDirectives(new Headers([['Cache-Control', text]]))
      return [control.milliseconds('a'), control.fields('a'), control.isBare('a')]
    },
    units: ['a', 'a,', 'a=1,', '=', ' ', '"', 'a="', 'a="b",', '\\', '\\"', 'a="\\",', 'a="a, b",'],
  },
  { name: 'lists', parse: listMembers, units: ['a', ',', ' ', '"'] },
  {
    name: 'Link',
    parse: parseLinks,
    units: ['<', '<a>', '<a>;', ';', ';a=', ';a=""', '<a>;b="', '\\', '\\"', ' ', ';a= ;a=""', '<a>; '],
    around: ['<a>', '!'],
  },
  { name: 'NO_PROXY', parse: parseNoProxy, units: ['a', ',', '[', ']', ':1', '/1', '*.', ' '] },
  { name: 'Retry-After', parse: (text) => parseRetryAfter(text, 0), units: ['1', ' ', 'a', ':'] },
  {
    name: 'responses of HTTP/1.1',
    parse: (text) => {
      const ignore = (): void => undefined
      const events = new Proxy({}, { get: () => ignore }) as never
      const parser = new ResponseParser(events, 1_000_000)
      parser.reset('GET')
      try {
        for (const byte of Buffer.from(text)) parser.feed(Buffer.from([byte]))
      } catch {
        // Refused: the text is invalid.
      }
    },
    units: ['a', 'A: b\r\n', ' ', ':', 'Transfer-Encoding: chunked\r\n', 'Content-Length: 1\r\n'],
    around: ['HTTP/1.1 200 OK\r\n', '\r\n\r\n'],
  },
  {
    name: 'URLs',
    parse: (text) => {
      redactUrl(text)
      percentDecoded(text)
      try {
        parseUrl(text)
      } catch {
        // Invalid ones are redacted for the message.
      }
    },
    units: ['/', '\\', '@', 'a', '?key=', '&token=a', '%', ':', 'a@'],
    around: ['', ' '],
  },
  {
    name: 'Authorization',
    parse: (text) => bearerToken({ headers: { authorization: `Bearer ${text}!` } } as never),
    units: [' ', 'a', '=', 'a='],
  },
  { name: 'Host', parse: isLoopbackHost, units: ['127', '.1', ':', '[::1]', 'localhost'] },
  {
    name: 'Accept',
    parse: (text) => {
      try {
        chooseType(text, ['application/json', 'text/event-stream'])
      } catch {
        // Not acceptable.
      }
    },
    units: ['a', ',', ';', 'a/b;q=', ' ', ';q=1'],
  },
  {
    name: 'paths of files',
    parse: (text) => {
      try {
        return decodeFilePath(text)
      } catch (error) {
        assert.ok(error instanceof ProblemError)
        return null
      }
    },
    units: ['a', '%ff', '%c3%a4', '/', '%', '%2', '..', '/.', '%2f', 'ä'],
  },
  {
    name: 'names of files',
    parse: (text) => encodeFilePath(text),
    units: ['a', '/', '\udcff', '\ud800', '😀', '%', ' '],
  },
  { name: 'If-None-Match', parse: (text) => matchesTag(text, 'x'), units: ['"', ',', 'W/', ' ', 'W/"a",'] },
  {
    name: 'keys of JSON',
    parse: (text) => duplicateKey(JSON.stringify({ [text]: { [text]: text.split('a') } })),
    units: ['a', '"', '\\', ' ', ':', '{'],
  },
  {
    name: 'request targets',
    parse: (text) => targetOf({ url: text } as never, ''),
    units: ['/', '?', '#', 'http://', 'a', '%'],
    around: ['/', ''],
  },
  {
    name: 'Sec-WebSocket-Extensions',
    parse: parseExtensions,
    units: ['a', ',', ';', 'a;b=', '"', 'a;b="', '\\', ' ', 'a;b="c",'],
  },
  {
    name: 'responses to WebSocket handshakes, byte by byte',
    parse: (text) => {
      const reader = new HeadReader()
      try {
        for (const byte of Buffer.from(text, 'latin1')) reader.push(Buffer.of(byte))
      } catch (error) {
        assert.ok(error instanceof HandshakeError)
      }
    },
    units: ['a', 'a: b\r\n', '\r\n', '\r', ' ', 'HTTP/1.1 100 a\r\n\r\n', 'Set-Cookie: a\r\n'],
    around: ['HTTP/1.1 101 a\r\n', ''],
  },
  {
    name: 'contents of refused WebSocket handshakes',
    parse: (text) => {
      const head = { status: 400, isHttp11: true, fields: [['transfer-encoding', 'chunked']] }
      const body = new RefusedBody(head as never)
      body.push(Buffer.from(text, 'latin1'))
      body.take()
    },
    units: ['1\r\na\r\n', 'a', '\r\n', '1;', '0', 'f'],
  },
]

function textOf(parser: Parser, unit: string, size: number): string {
  const [before, after] = parser.around ?? ['', '']
  return before + unit.repeat(Math.ceil(size / unit.length)) + after
}

after(() => rmSync(folder, { recursive: true }))

test('twice as much of anything hostile takes at most three times the steps', async () => {
  using counter = new StepCounter()
  const grows: string[] = []
  for (const parser of PARSERS) {
    for (const unit of parser.units) {
      await parser.parse(textOf(parser, unit, 100))
      const steps: number[] = []
      for (const size of [SIZE, 2 * SIZE]) {
        const text = textOf(parser, unit, size)
        counter.take()
        await parser.parse(text)
        steps.push(counter.take())
      }
      const [once, twice] = steps as [number, number]
      if (twice > 3 * once + FIXED || twice === Infinity) {
        grows.push(`${parser.name}: ${JSON.stringify(unit)} takes ${once} and ${twice} steps`)
      }
    }
  }
  assert.deepEqual(grows, [])
})

const SET_COOKIE: readonly (readonly [
  kind: string,
  field: (i: number) => readonly [url: string, field: string],
])[] = [
  ['of many domains', (i) => [`https://h${i}.test/`, 'a=b']],
  ['of one domain', (i) => ['https://a.test/', `k${i}=b`]],
  ['that expire', (i) => [`https://h${i % 100}.test/`, `k${i}=b; Max-Age=${1_000 + (i % 999)}`]],
  ['that replace one', () => ['https://a.test/', 'a=b; Max-Age=1000']],
  ['without TLS', (i) => [`http://h${i}.test/`, `k${i}=b`]],
  ['that are Secure', (i) => [`https://h${i}.test/`, `k${i}=b; Secure`]],
]

test('setting cookies takes as many steps in a full jar as in an empty one', () => {
  for (const [kind, field] of SET_COOKIE) {
    const jar = new Cookies()
    const set = (from: number, count: number): void => {
      for (let i = from; i < from + count; i++) {
        const [url, value] = field(i)
        jar.extract(new URL(url), new Headers({ 'Set-Cookie': value }))
        jar.headerFor(new URL('https://other.test/'))
      }
    }
    const stepsOf = (from: number): number => {
      using counter = new StepCounter()
      counter.take()
      set(from, 30)
      return counter.take()
    }
    set(0, 1)
    const first = stepsOf(1)
    set(31, 3_200)
    const full = stepsOf(3_231)
    assert.ok(full < 2 * first, `cookies ${kind}: ${first} steps, then ${full}`)
  }
})
