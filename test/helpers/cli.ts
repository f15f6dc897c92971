/** The program `runwright` as a child process, with or without a terminal. */
import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import type { TestContext } from 'node:test'
import { root } from './markdown.js'
import { programAt } from './programs.js'
import { serve } from './serve.js'

/** The program and the arguments before those of the command. */
export const runwright: readonly string[] = [process.execPath, ...programAt('lib/cli/main.ts')]

/** A home folder with a project in it, for one test. */
export interface World {
  readonly home: string
  readonly project: string
  /** Where the program keeps its data. */
  readonly state: string
}

export function world(t: TestContext, files: Readonly<Record<string, string>> = {}): World {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-cli-')))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  const project = join(home, 'project')
  mkdirSync(project)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text)
  return { home, project, state: join(home, 'state') }
}

export interface StartOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  /** Columns of a pseudo-terminal; without it there is none. */
  readonly columns?: number
  /** What is run in place of the program. */
  readonly command?: readonly string[]
}

/** A process that was started, and what it has printed so far. */
export class Started {
  readonly child: ChildProcess
  out = ''
  err = ''
  readonly #ended: Promise<number | null>

  constructor(child: ChildProcess) {
    this.child = child
    child.stdout!.setEncoding('utf8').on('data', (text: string) => (this.out += text))
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.err += text))
    this.#ended = once(child, 'close').then(([code]) => code as number | null)
  }

  /** Waits until what it has printed since `from` matches. */
  async until(pattern: RegExp, from = 0): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.out.slice(from)) ?? pattern.exec(this.err)
      if (found !== null) return found
      const data = new AbortController()
      const news = [this.child.stdout!, this.child.stderr!].map((stream) =>
        once(stream, 'data', { signal: data.signal }).catch(() => null),
      )
      const ended = await Promise.race([...news.map((one) => one.then(() => false)), this.#over()])
      data.abort()
      if (ended && pattern.exec(this.out.slice(from)) === null && !pattern.test(this.err)) {
        assert.fail(`it ended without ${pattern}: ${this.out}${this.err}`)
      }
    }
  }

  type(text: string): void {
    this.child.stdin!.write(text)
  }

  resize(columns: number): void {
    ;(this.child.stdio[3] as Writable).write(`${columns}\n`)
  }

  /** Resolves to the exit code, when all that it has printed was read. */
  async end(): Promise<number | null> {
    return await this.#ended
  }

  async #over(): Promise<true> {
    await this.#ended
    return true
  }
}

/** Starts `runwright` with these arguments in the project of a world. */
export function start(
  t: TestContext,
  { home, project, state }: World,
  args: readonly string[],
  { cwd = project, env = {}, columns, command = [...runwright, ...args] }: StartOptions = {},
): Started {
  const helper = join(root, 'test/helpers/pseudo-terminal.py')
  const words = columns === undefined ? command : ['python3', helper, String(columns), ...command]
  const { PATH = '' } = process.env
  const child = spawn(words[0]!, words.slice(1), {
    cwd,
    env: { PATH, HOME: home, XDG_STATE_HOME: state, TERM: 'xterm-256color', ...env },
    stdio: ['pipe', 'pipe', 'pipe', ...(columns === undefined ? [] : (['pipe'] as const))],
  })
  t.after(() => child.kill('SIGKILL'))
  // Its reader may be gone, which is not what is tested.
  child.stdin!.on('error', () => undefined)
  return new Started(child)
}

/** What a model says and calls. */
export interface Turn {
  readonly text?: string
  readonly calls?: readonly { readonly tool: string; readonly args: object }[]
}

/**
 * Serves a model that gives these turns, one after the other, and is silent after them.
 *
 * @param until - the first turn is given when it resolves
 * @returns the variables and arguments with which the program uses it.
 */
export async function modelServer(
  t: TestContext,
  turns: readonly Turn[],
  until: Promise<void> = Promise.resolve(),
): Promise<ModelServer> {
  const left = [...turns]
  const served = await serve((request, response) => {
    request.resume().on('end', () => {
      const turn = left.shift()
      if (turn !== undefined) void until.then(() => answer(response, turn))
    })
  })
  t.after(() => served.close())
  return { env: { OPENAI_BASE_URL: `${served.origin}/v1` }, args: ['--model', 'openai:stub'] }
}

export interface ModelServer {
  readonly env: Readonly<Record<string, string>>
  readonly args: readonly string[]
}

function answer(response: ServerResponse, { text = '', calls = [] }: Turn): void {
  const tool_calls = calls.map(({ tool, args }, index) => ({
    index,
    id: `call_${index}`,
    type: 'function',
    function: { name: tool, arguments: JSON.stringify(args) },
  }))
  const delta = { role: 'assistant', content: text, ...(calls.length > 0 && { tool_calls }) }
  const finish = calls.length > 0 ? 'tool_calls' : 'stop'
  const chunks = [
    { choices: [{ index: 0, delta }] },
    { choices: [{ index: 0, delta: {}, finish_reason: finish }] },
    { choices: [], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } },
  ]
  response.setHeader('content-type', 'text/event-stream')
  for (const chunk of chunks) response.write(`data: ${JSON.stringify(chunk)}\n\n`)
  response.end('data: [DONE]\n\n')
}
