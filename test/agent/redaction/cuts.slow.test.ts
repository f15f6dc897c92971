/** Wherever a text is cut, no part of a secret survives at the cut: seeded, one channel each. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject, ToolContext } from 'runwright/agent'
import { addSecret } from '../../../lib/internal/errors.js'
import { readVerdict } from '../../../lib/agent/goals/judged-goal.js'
import { shorten } from '../../../lib/agent/goals/reports/outcomes.js'
import { readMessages } from '../../../lib/agent/mcp/json-rpc.js'
import { readCallResult } from '../../../lib/agent/mcp/results.js'
import { mistakeError, providerError } from '../../../lib/agent/models/provider-errors.js'
import { sanitizeTurn } from '../../../lib/agent/models/sanitize-turn.js'
import { clip, firstBytes, headAndTail, OutputKeeper, TextTail } from '../../../lib/agent/output.js'
import { redactor } from '../../../lib/agent/redaction/redactor.js'
import { StreamRedactor } from '../../../lib/agent/redaction/stream-redactor.js'
import { failureOf } from '../../../lib/agent/run/steps/finish.js'
import { checkSchema } from '../../../lib/agent/check-schema.js'
import { readFileTool } from '../../../lib/agent/tools/read-file.js'
import { searchFilesTool } from '../../../lib/agent/tools/search-files.js'
import { fileChange } from '../../../lib/agent/workspace/diff.js'
import { Random } from '../../helpers/random.js'
import {
  assertNoPart,
  filler,
  givenSecret,
  shapedSecret,
  telltale,
  type Secret,
} from '../../helpers/secrets.js'

/** Splits a text into pieces of random sizes. */
function pieces(text: string, random: Random, most: number): string[] {
  const all: string[] = []
  for (let at = 0; at < text.length; ) {
    const length = random.integer(1, most)
    all.push(text.slice(at, at + length))
    at += length
  }
  return all
}

function contextOf(content: string): ToolContext {
  const file = { path: 'a', type: 'file', size: content.length }
  return {
    signal: new AbortController().signal,
    workspace: { list: async () => [file], readFile: async () => Buffer.from(content) },
  } as unknown as ToolContext
}

interface Channel {
  /** Characters of the text around its secret, and where the text is cut. */
  readonly size: number
  readonly cuts: readonly number[]
  readonly show: (text: string, random: Random) => string | Promise<string>
}

const context = { model: 'test:m', secrets: [] }
const rules = { model: 'test:m', usedIds: new Set<string>(), redactor }

function turnWith(call: object): string {
  const turn = sanitizeTurn({ message: { text: '', calls: [call] }, usage: {} }, rules)
  return JSON.stringify(turn)
}

const CHANNELS: Readonly<Record<string, Channel>> = {
  'output of a command': {
    size: 80_000,
    // Where the output is cut, and where what is kept of it to redact it ends.
    cuts: [1_000, 17_384, 62_616, 79_000],
    show(text, random) {
      const keeper = new OutputKeeper(2_000)
      const bytes = Buffer.from(text)
      for (let at = 0; at < bytes.length; ) {
        const length = random.integer(1, 9_000)
        keeper.add(bytes.subarray(at, at + length))
        at += length
      }
      return keeper.finish().text
    },
  },
  'output of a command that is a little too long': {
    size: 3_000,
    cuts: [1_000, 2_000],
    show(text) {
      const keeper = new OutputKeeper(2_000)
      keeper.add(Buffer.from(text))
      return keeper.finish().text
    },
  },
  'beginning and end of a text': {
    size: 5_000,
    cuts: [1_000, 4_000],
    show: (text) => headAndTail(text, 2_000),
  },
  'beginning of a text': { size: 900, cuts: [300], show: (text) => clip(text, 300) },
  'bytes of a text': { size: 900, cuts: [300], show: (text) => firstBytes(text, 300) },
  'end of an error output': {
    size: 60_000,
    cuts: [59_500, 43_116],
    show(text, random) {
      const tail = new TextTail(500)
      for (const piece of pieces(text, random, 3_000)) tail.add(piece)
      return tail.shown
    },
  },
  'text of a model in pieces': {
    size: 600,
    cuts: [300],
    show(text, random) {
      const stream = new StreamRedactor(redactor)
      const shown = pieces(text, random, 40).map((piece) => stream.push(piece))
      return shown.join('') + stream.end()
    },
  },
  'lines of a file': {
    size: 2_000,
    cuts: [1_000],
    async show(text, random) {
      const near = text.slice(0, 1_000).split('\n').length
      const offset = near + random.integer(0, 3)
      const args: JsonObject = { path: 'a', offset, limit: random.integer(1, 4) }
      return (await readFileTool.execute(args, contextOf(text))).output
    },
  },
  'a line of a search': {
    size: 2_000,
    cuts: [1_000],
    async show(text, random) {
      // Around each occurrence of a word a long line is shown in part.
      const line = random.chance(0.5) ? text.replaceAll('\n', ' ') : text
      const shown = await searchFilesTool.execute({ pattern: 'lorem' }, contextOf(line))
      const key = await searchFilesTool.execute({ pattern: 'Key' }, contextOf(text))
      return `${shown.output}\n${key.output}`
    },
  },
  'a diff': {
    size: 2_000,
    cuts: [1_000],
    async show(text, random) {
      // Before a line: a secret that the change itself divides is none in the file.
      const at = text.indexOf('\n', random.integer(0, text.length)) + 1
      const changed = `${text.slice(0, at)}changed\n${text.slice(at)}`
      return (await fileChange('a', Buffer.from(text), Buffer.from(changed))).diff
    },
  },
  'a label of a tool server': {
    size: 600,
    cuts: [200],
    show: (text) =>
      readCallResult({ content: [{ type: 'resource_link', uri: text, name: text }] }, null).output,
  },
  'an error of a tool server': {
    size: 5_000,
    cuts: [2_000],
    show: (text) =>
      JSON.stringify(readMessages({ jsonrpc: '2.0', id: 1, error: { code: 1, message: text } })),
  },
  'an error of a provider': {
    size: 3_000,
    cuts: [1_000],
    show: (text) =>
      providerError(
        { status: 400, header: () => null, body: { error: { message: text } }, now: 0 },
        context,
      ).message,
  },
  'an error page of a provider': {
    size: 3_000,
    cuts: [1_000],
    show: (text) =>
      providerError({ status: 502, header: () => null, body: text, now: 0 }, context).message,
  },
  'a mistake of a model': {
    size: 3_000,
    cuts: [1_000],
    show: (text) => mistakeError(text, context, {} as never).message,
  },
  'the reason of a judge': {
    size: 3_000,
    cuts: [1_000],
    show: (text) => {
      const call = { call_id: 'c', tool: 'verdict', args: { reason: text, achieved: false } }
      return JSON.stringify(readVerdict({ role: 'assistant', text: '', calls: [call] }))
    },
  },
  'the name of a tool': {
    size: 600,
    cuts: [256],
    show: (text) => turnWith({ call_id: 'c', tool: text, args: {} }),
  },
  'the error of a call': {
    size: 9_000,
    cuts: [4_000],
    show: (text) => turnWith({ call_id: 'c', tool: 't', args: {}, error: text }),
  },
  'the id of a call': {
    size: 60,
    cuts: [30],
    show: (text) => turnWith({ call_id: text.replaceAll(/[^\w.:-]/g, ''), tool: 't', args: {} }),
  },
  'message and traceback of an error': {
    size: 20_000,
    cuts: [8_000, 7_900],
    show: (text) => JSON.stringify(failureOf(new Error(text), '/nowhere')),
  },
  'a value that breaks a schema': {
    size: 400,
    cuts: [80, 100, 60],
    show: (text) =>
      JSON.stringify(checkSchema({ properties: { a: { enum: ['x'] } } }, { a: text })),
  },
  'the name of a test': { size: 1_200, cuts: [380], show: (text) => shorten(text) },
}

for (const [name, { size, cuts, show }] of Object.entries(CHANNELS)) {
  const rounds = size > 10_000 ? 12 : 40
  test(`no part of a secret is in ${name}`, async () => {
    const random = new Random(name.length * 7_919 + size)
    const isId = name === 'the id of a call'
    for (let round = 0; round < rounds; round++) {
      const secret: Secret =
        isId || random.chance(0.5) ? givenSecret(random, isId) : shapedSecret(random)
      if (secret.kind === 'a given secret') addSecret(secret.text)
      const written = isId ? secret.text : secret.write(random)
      // Most secrets lie across a cut, where one half of them would be shown.
      const cut = random.pick(cuts)
      const before = Math.max(0, cut - random.integer(0, written.length))
      const text =
        `${filler(random, before)} ${written} ` +
        filler(random, Math.max(0, size - before - written.length))
      assertNoPart(await show(text, random), secret, name)
    }
  })
}

test('the invariant sees what a cut before the redaction leaves', () => {
  const random = new Random(5)
  const secret = givenSecret(random)
  addSecret(secret.text)
  const cut = redactor.text(`key ${secret.text}`.slice(0, 4 + telltale(secret.text)))
  assert.throws(() => assertNoPart(cut, secret, 'a text'), /shows/)
})
