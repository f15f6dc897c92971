/**
 * What others write costs linear time, whatever it is: each parser gets hostile texts of growing
 * size. Twice the size may take at most three times the steps, which are counted.
 */
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { deflateSync, gzipSync } from 'node:zlib'
import { HttpError, Response } from 'runwright/http'

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
import { makeRules } from '../lib/agent/goals/sealed/make-rules.js'
import { optionalFilesIn } from '../lib/agent/goals/sealed/presence.js'
import { makeTargets } from '../lib/agent/goals/shipped/workspace-facts.js'
import { newProgress, noteResult } from '../lib/agent/log/progress.js'
import { readMessages } from '../lib/agent/mcp/json-rpc.js'
import { readChallenge } from '../lib/agent/mcp/oauth/discovery.js'
import { readCallResult, readResourceResult } from '../lib/agent/mcp/results.js'
import { importSchema } from '../lib/agent/mcp/schema-import.js'
import { LeadingThought, ObjectEnd } from '../lib/agent/models/openai/chat-stream.js'
import { durationOf, redactSecrets } from '../lib/agent/models/provider-errors.js'
import { parseFailures, parseOutcomes } from '../lib/repair/read-report.js'
import { comparedIn, parseFrames } from '../lib/repair/report.js'
import { tokenizeJavaScript } from '../lib/repair/tokenize-javascript.js'
import { tokenizePython } from '../lib/repair/tokenize-python.js'
import { parseArguments } from '../lib/agent/models/tool-arguments.js'
import {
  anthropicSchema, geminiSchema, isStrictSchema, openAiSchema,
} from '../lib/agent/models/tool-schemas.js'
import { escapeInvisible } from '../lib/internal/text.js'
import { headAndTail } from '../lib/agent/output.js'
import { Redactor } from '../lib/agent/redaction/redactor.js'
import { StreamRedactor } from '../lib/agent/redaction/stream-redactor.js'
import { checkSchema } from '../lib/agent/check-schema.js'
import { decodeCursor } from '../lib/agent/stores/list-query.js'
import { literalMatcher } from '../lib/agent/tools/line-matcher.js'
import { TextFinder } from '../lib/agent/tools/text-finder.js'
import { parseTraceparent } from '../lib/agent/tracing/trace-context.js'
import { diffText } from '../lib/agent/workspace/diff.js'
import { changedPackages } from '../lib/agent/workspace/diff-lockfile.js'
import { mergeTexts } from '../lib/agent/workspace/merge-text.js'
import { atOnce } from '../lib/internal/time.js'
import { parseChallenges } from '../lib/internal/web.js'
import type { JsonObject } from '../lib/internal/json.js'
import { DigestCredentials } from '../lib/http/auth/digest-credentials.js'
import { parseNetrc } from '../lib/http/auth/netrc.js'
import { CacheDirectives } from '../lib/http/cache/directives.js'
import { parseHttpDate } from '../lib/http/cache/http-date.js'
import { decodeContentSync } from '../lib/http/content/decoders.js'
import { SseParser } from '../lib/http/content/sse-parser.js'
import {
  ByteChunker, decodeText, encodingName, IncrementalText, LineSplitter, TextChunker,
} from '../lib/http/content/text.js'
import { ZstdFrames } from '../lib/http/content/zstd.js'
import { Cookies } from '../lib/http/cookies/jar.js'
import { parsePublicSuffixes } from '../lib/http/cookies/public-suffixes.js'
import { parseCookieDate, parseSetCookie } from '../lib/http/cookies/set-cookie.js'
import { listMembers } from '../lib/http/field-values.js'
import { Headers } from '../lib/http/headers.js'
import { parseLinks } from '../lib/http/links.js'
import { parseNoProxy } from '../lib/http/environment.js'
import { Masker } from '../lib/http/recording/masking.js'
import { parseRetryAfter } from '../lib/http/retry.js'
import { ResponseParser } from '../lib/http/transports/http1/response-parser.js'
import { FieldSectionReader } from '../lib/http/transports/http2/field-sections.js'
import {
  checkFrame, FLAG, FRAME, frame, FrameParser, Http2Fault, settingsIn,
} from '../lib/http/transports/http2/frames.js'
import { decodeHuffman, HpackDecoder, HpackError } from '../lib/http/transports/http2/hpack.js'
import { HandshakeReader } from '../lib/http/transports/proxy/handshake-reader.js'
import { ResponseBody } from '../lib/http/transports/response-body.js'
import { parseUrl, percentDecoded, redactUrl } from '../lib/http/url.js'
import { bearerToken } from '../lib/server/access/auth.js'
import { isLoopbackHost } from '../lib/server/access/origin.js'
import { chooseType } from '../lib/server/messages/accept.js'
import { ProblemError } from '../lib/server/errors.js'
import { duplicateKey } from '../lib/server/messages/body.js'
import { decodeFilePath, encodeFilePath } from '../lib/server/messages/file-path.js'
import { matchesTag } from '../lib/server/messages/etag.js'
import { checkQuery } from '../lib/server/messages/query.js'
import { targetOf } from '../lib/server/messages/request-target.js'
import { HandshakeError } from '../lib/ws/errors.js'
import { parseExtensions } from '../lib/ws/extensions.js'
import { Receiver } from '../lib/ws/receiver.js'
import { RefusedBody } from '../lib/ws/read-response.js'
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

const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1')

/** Calls `feed` with copies of the bytes, in chunks. */
function inChunks(bytes: Buffer, size: number, feed: (chunk: Buffer) => unknown): void {
  for (let at = 0; at < bytes.length; at += size) feed(Buffer.from(bytes.subarray(at, at + size)))
}

/** Calls `parse`, which may refuse what it gets. */
function refusing(error: new (...args: never[]) => Error, parse: () => unknown): void {
  try {
    parse()
  } catch (thrown) {
    assert.ok(thrown instanceof error, String(thrown))
  }
}

function parseFrames2(text: string, size: number): void {
  const sections = new FieldSectionReader(1e6)
  const parser = new FrameParser({
    onData: () => undefined,
    onFrame: (type, flags, stream, payload) => {
      checkFrame(type, stream, payload)
      if (type === FRAME.headers) sections.begin(flags, stream, payload)
      else if (type === FRAME.continuation) sections.continue(flags, stream, payload)
      else if (type === FRAME.settings) settingsIn(flags, payload)
    },
  })
  refusing(Http2Fault, () => inChunks(bytesOf(text), size, (chunk) => parser.feed(chunk)))
}

/** A short frame of a WebSocket server. */
const plainFrame = (first: number, payload: string): string =>
  String.fromCharCode(first, payload.length) + payload

/** A short frame of a WebSocket client. */
function maskedFrame(first: number, payload: string): string {
  const masked = bytesOf(payload).map((byte, i) => byte ^ bytesOf('key!')[i % 4]!)
  const head = String.fromCharCode(first, payload.length | 0x80)
  return `${head}key!${Buffer.from(masked).toString('latin1')}`
}

const NO_LIMITS = { maxMessageBytes: 1e9, maxFragments: 1e9, maxControlFramesPerSecond: null }
const TAKES_ALL = {
  message: () => true, ping() {}, pong() {}, close() {}, failed() {}, paused() {},
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
      for (const char of text) {
        end.add(char)
        void end.isReached
      }
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
  {
    name: 'header blocks of HTTP/2',
    parse: (text) => refusing(HpackError, () => new HpackDecoder(1e6).decode(bytesOf(text))),
    units: [
      '\x82', '\xbe', '\x40\x01a\x01b', '\x40\x01a\x00', '\x00\x01a\x01b', '\x7f\x00', '\xff\x80\x80\x00',
      '\x20', '\x3f\xe1\x1f', '\x40\x81\x1f\x81\x1f', '\x40\x00\x00', '\x00\x01:\x01\n',
    ],
    around: ['\x40\x01a\x01b', ''],
  },
  {
    name: 'Huffman codes',
    parse: (text) => decodeHuffman(bytesOf(text), 0, text.length),
    units: ['\x00', '\x1f', '\xff', 'a', '\xf8'],
  },
  ...[1, 7, 65_536].map((size): Parser => ({
    name: `frames of HTTP/2 in chunks of ${size}`,
    parse: (text) => parseFrames2(text, size),
    units: [
      frame(FRAME.data, 0, 1, ''), frame(FRAME.data, 0, 1, 'a'), frame(FRAME.data, FLAG.padded, 1, '\0'),
      frame(FRAME.headers, FLAG.endHeaders, 1, '\x82'), frame(FRAME.headers, 0, 1, '\x82'),
      frame(FRAME.continuation, 0, 1, '\x82'), frame(FRAME.continuation, 0, 1, ''),
      frame(FRAME.settings, 0, 0, '\0\x03\0\0\0\x01'.repeat(50)), frame(FRAME.ping, 0, 0, 'are you?'),
      frame(FRAME.windowUpdate, 0, 0, '\0\0\0\x01'), frame(99, 0, 0, 'a'.repeat(1_000)), '\0',
    ],
    around: [frame(FRAME.headers, 0, 1, ''), ''],
  })),
  {
    name: 'content that nobody takes',
    parse: async (text) => {
      const body = new ResponseBody({ waiting() {}, pause() {}, resume() {}, abandon() {} })
      for (const char of text) body.push(Buffer.from(char))
      body.end()
      while ((await body.next()).done !== true);
    },
    units: ['a', 'é'],
  },
  {
    name: 'answers of proxies, byte by byte',
    parse: async (text) => {
      const socket = Object.assign(new EventEmitter(), { pause() {}, unshift() {} })
      const reader = new HandshakeReader(socket as never, 'the proxy')
      const taken = reader.takeUntil('\r\n\r\n', 1e6).catch(() => null)
      for (const byte of bytesOf(text)) {
        socket.emit('data', Buffer.of(byte))
        await null
      }
      socket.emit('end')
      await taken
    },
    units: ['a', '\r\n', '\r', 'a: b\r\n'],
    around: ['a', 'b\r\n\r\n'],
  },
  {
    name: 'digest challenges',
    parse: (text) => {
      refusing(HttpError, () => {
        const credentials = new DigestCredentials('user', 'password')
        credentials.challenged([text, text], 0)
        credentials.authorize('GET', '/', Buffer.from(text))
      })
    },
    units: [
      'Digest realm="a", nonce="b", ', 'Digest algorithm=x, ', 'qop="auth, ', 'qop=auth,', 'stale=true,',
      ',', '"', '\\', 'a', 'a=', 'Basic ',
    ],
    around: ['Digest realm="a", nonce="', '", qop="auth"'],
  },
  {
    name: 'challenges of MCP servers',
    parse: (text) => readChallenge([text]),
    units: ['a ', ' ', 'a', 'scope="a ', '", '],
    around: ['Bearer scope="', '"'],
  },
  {
    name: 'links of a response',
    parse: (text) => new Response(200, { headers: { Link: text } }).links,
    units: ['<a>; rel="a b",', '<a>,', 'a ', '; rel=a', '"'],
    around: ['<a>; rel="', '"'],
  },
  ...(['gzip', 'deflate', 'br'] as const).map((coding): Parser => ({
    name: `${coding} content`,
    parse: (text) => {
      refusing(HttpError, () => decodeContentSync(bytesOf(text), [coding], null))
    },
    units: [gzipSync('a').toString('latin1'), deflateSync('a').toString('latin1'), '\0', 'a', '\x1f\x8b'],
    around: [gzipSync('a').toString('latin1'), ''],
  })),
  {
    name: 'frames of zstd',
    parse: (text) => {
      for (const size of [1, 65_536]) {
        const frames = new ZstdFrames()
        refusing(Error, () => inChunks(bytesOf(text), size, (chunk) => frames.feed(chunk)))
      }
    },
    units: [
      '\x50\x2a\x4d\x18\x00\x00\x00\x00', '\x50\x2a\x4d\x18\x01\x00\x00\x00a',
      '\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00', '\x08\x00\x00a', '\0',
    ],
    around: ['\x28\xb5\x2f\xfd\x00\x00', ''],
  },
  {
    name: 'text in other encodings',
    parse: (text) => {
      for (const encoding of ['utf-8', 'utf-16le', 'utf-32le', 'shift_jis']) {
        const decoder = new IncrementalText(encoding)
        for (const byte of bytesOf(text)) decoder.feed(Buffer.of(byte))
        decodeText(bytesOf(text), encoding)
      }
    },
    units: ['a', '\0', '\xff', '\xe3\x81\x82'],
  },
  {
    name: 'pieces of equal size',
    parse: (text) => {
      for (const size of [1, 1e6]) {
        const [bytes, characters] = [new ByteChunker(size), new TextChunker(size)]
        for (const char of text) {
          bytes.feed(bytesOf(char))
          characters.feed(char)
        }
        bytes.feed(bytesOf(text))
        characters.feed(text)
      }
    },
    units: ['a', '\ud83d', '\ude00'],
  },
  ...([['server', 1], ['server', 65_536], ['client', 1], ['client', 65_536]] as const).map(
    ([role, size]): Parser => {
      const frameOf = role === 'server' ? maskedFrame : plainFrame
      return {
        name: `WebSocket frames for a ${role}, in chunks of ${size}`,
        parse: (text) => {
          const receiver = new Receiver(null, TAKES_ALL, NO_LIMITS, null, role)
          inChunks(bytesOf(text), size, (chunk) => receiver.push(chunk))
        },
        units: [
          frameOf(0, ''), frameOf(0, 'a'), frameOf(0, 'ab'.repeat(60)), frameOf(0x89, ''), frameOf(0x8a, 'a'),
          frameOf(0, 'a') + frameOf(0x89, 'b'), frameOf(0x80, '') + frameOf(1, 'a'), frameOf(0, '\xc3') + frameOf(0, '\xa4'),
        ],
        around: [frameOf(1, ''), frameOf(0x80, '')],
      }
    },
  ),
  {
    name: 'text of a model, character by character',
    parse: (text) => {
      const stream = new StreamRedactor(new Redactor(['correct horse battery']))
      for (const char of text) stream.push(char)
      stream.end()
    },
    units: ['a', 'sk-', 'correct horse ', 'A', 'A ', '\n', 'password=', '://a:', 'Bearer ', '-----BEGIN PRIVATE KEY-----'],
    around: ['-----BEGIN PRIVATE KEY-----\n', ''],
  },
  {
    name: 'schemas of MCP tools',
    parse: (text) => {
      // Schemas with more parts are refused.
      const names = Array.from({ length: text.length >> 5 }, (_, i) => `${text.slice(0, 1)}${i}`)
      const fields = Object.fromEntries(names.map((name) => [name, {}]))
      const branches = names.map((_, i) => ({ properties: { a: { const: i } } }))
      const lists = { enum: names, required: names, dependentRequired: { a: names } }
      for (const schema of [
        { properties: fields, required: names },
        { $defs: fields, anyOf: branches },
        { patternProperties: { [text.slice(0, 500)]: {} }, pattern: text },
        { description: text, title: text, $comment: text, [text]: text, default: text },
        { ...lists, $ref: `#/${text}` },
      ] as JsonObject[]) {
        const imported = importSchema(schema, true)
        if (imported.schema === null) continue
        checkSchema(imported.schema, { ...fields, [text]: text })
        for (const adapt of [openAiSchema, anthropicSchema]) adapt(text, imported.schema)
        geminiSchema(imported.schema)
        isStrictSchema({ type: 'object', additionalProperties: false, ...imported.schema })
      }
    },
    units: ['a', '(', '(a|', '[a', 'a*', '.{9}', '\u202e', '/', '~1', '"', ' '],
  },
  {
    name: 'results of MCP tools',
    parse: (text) => {
      const parts = text.split('').map((part) => ({ type: 'text', text: part }))
      readCallResult({ content: parts, structuredContent: text }, null)
      readResourceResult({ contents: parts })
      readMessages(parts)
      for (const type of ['image', 'resource', text])
        readCallResult({ content: [{ type, data: text, mimeType: text, uri: text }] }, null)
    },
    units: ['a', 'iVBORw0K', '=', '\u202e'],
  },
  {
    name: 'queries',
    parse: (text) => {
      const parameters = [{ name: 'metadata', in: 'query', prefix: true }] as const
      const names = text.split('').map((char, i) => `metadata.${char}${i}`)
      checkQuery(new URLSearchParams(names.join('&')), parameters, new Set())
    },
    units: ['a', 'é'],
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
