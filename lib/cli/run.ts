/** `runwright run <goal>`: one run in the terminal, without a server. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { escapeInvisibleJson, shellWord } from '../internal/text.js'
import {
  AgentError,
  FileStore,
  InvalidRequestError,
  isTerminal,
  RunEngine,
  type JsonObject,
  type RunDetails,
} from '../agent/index.js'
import {
  CommandError,
  EXIT,
  UsageError,
  type Arguments,
  type CommandSpec,
} from './command-line.js'
import { Follower, type UnansweredGate } from './follow.js'
import { cannotWrite, dataFolder, projectFolder } from './folders.js'
import { DEFAULT_MODEL, modelProviders } from './models.js'
import { printError } from './print.js'
import { modelName } from './serve.js'
import { badSetting, onWarning } from './server.js'
import { Terminal } from './terminal.js'
import { diffLines, endLine } from './timeline.js'

export const RUN: CommandSpec = {
  usage: 'runwright run <goal> [options]',
  about: `Pursues one goal in the current folder, and shows what happens. Goals are names such as
npm-test, node-test and pytest; auto, which finds the tests of the project; "shell: <command>"; and
free text together with --check.`,
  options: {
    cwd: { value: '<folder>', about: ['the project, default the current folder'] },
    check: { value: '<command>', about: ['what must succeed, for a goal in free text'] },
    setup: { value: '<command>', about: ['runs once before the first check, such as "npm ci"'] },
    model: {
      value: '<name>',
      about: ['default $RUNWRIGHT_MODEL or', DEFAULT_MODEL],
    },
    approve: {
      value: '[<which>]',
      words: ['writes', 'all', 'iterations', 'never'],
      about: [
        'ask before tool calls that may change something (writes, the',
        'default of --approve alone), before all calls, or after each of',
        'the iterations; default never',
      ],
    },
    isolated: { about: ['work in a private copy, and ask before the changes are applied'] },
    attempts: {
      value: '<number>',
      about: ['let so many isolated runs try, and apply the changes of the', 'first that succeeds'],
    },
    'max-iterations': { value: '<number>', about: ['default 20'] },
    data: { value: '<folder>', about: ['where the run is stored; default as for the server'] },
    json: { about: ['print one line of JSON per event, and one with the result'] },
  },
  more: `Exit codes: 0 the goal is achieved, 1 it is not or something failed, 2 wrong usage,
3 the run waits at a gate that nobody can answer here, 130 aborted. Ctrl-C aborts the run; a second
one leaves at once, and the run continues with the next server of this folder: runwright.

Each of these variables makes the models of a provider available: OPENAI_API_KEY, OPENAI_BASE_URL,
ANTHROPIC_API_KEY, GEMINI_API_KEY, OLLAMA_HOST.`,
}

/** @returns the exit code. */
export async function run(args: Arguments): Promise<number> {
  const request = requestOf(args)
  const cwd = projectFolder(args.get('cwd'), '--cwd')
  const data = dataFolder(args.get('data'), cwd)
  const shown = args.get('data') === undefined ? '' : ` --data ${shellWord(data)}`
  const server = `npx runwright --root ${shellWord(cwd)}${shown}`
  const directory = join(data, 'runs')
  await mkdir(directory, { recursive: true, mode: 0o700 }).catch((error: unknown) => {
    throw cannotWrite(data, '--data', error)
  })
  const engine = await explainedFor(server, async () => {
    await assertNoneUnfinished(directory, server)
    return await RunEngine.open({
      store: new FileStore({ directory, onWarning }),
      roots: [cwd],
      defaultModel: modelName(args) ?? DEFAULT_MODEL,
      providers: modelProviders(),
    })
  }).catch(badSetting)
  try {
    const { details } = await explainedFor(server, () => engine.create({ ...request, cwd }))
    return await new Session(engine, args.has('json'), server).play(details)
  } finally {
    await engine.close()
  }
}

/** The request of these arguments, whose folder and model are set apart. */
export function requestOf(args: Arguments): JsonObject {
  const [goal, ...others] = args.words
  if (goal === undefined) throw new UsageError('name a goal, such as npm-test; see run --help')
  if (others.length > 0) {
    throw new UsageError(`put a goal of several words in quotes: "${args.words.join(' ')}"`)
  }
  const [approve, check, setup] = [args.get('approve'), args.get('check'), args.get('setup')]
  const [attempts, iterations] = [args.number('attempts'), args.number('max-iterations')]
  return {
    goal,
    ...(check !== undefined && { check }),
    ...(setup !== undefined && { setup }),
    ...(approve === 'iterations' && { hitl_enabled: true }),
    ...((approve === 'writes' || approve === 'all') && { approval: approve }),
    ...(args.has('isolated') && { workspace: 'isolated' }),
    ...(attempts !== undefined && { attempts: { count: attempts } }),
    ...(iterations !== undefined && { max_iterations: iterations }),
  }
}

/** What the fields of a request are called here, as they are typed. */
const OPTION_OF: ReadonlyMap<string, string> = new Map([
  ['goal', 'the goal'],
  ['check', '--check'],
  ['setup', '--setup'],
  ['hitl_enabled', '--approve'],
  ['approval', '--approve'],
  ['workspace', '--isolated'],
  ['attempts', '--attempts'],
  ['max_iterations', '--max-iterations'],
  ['cwd', '--cwd'],
  ['model_name', '--model'],
])

/** The text of an error of the engine, which has fields in backticks, some with their values. */
function withOptions(text: string): string {
  return text.replaceAll(/`(\w+)(?::( [^`]+))?`/g, (quoted, field: string, value = '') => {
    const option = OPTION_OF.get(field)
    return option === undefined ? quoted : option + value
  })
}

/** An error of the engine in the words of this command. */
export function inOwnWords(error: AgentError, server: string): CommandError {
  const { code, message } = error
  if (error instanceof InvalidRequestError) {
    const lines = error.violations.map(({ pointer, detail }) => {
      const [, field = ''] = pointer.split('/')
      return `${OPTION_OF.get(field) ?? pointer} ${withOptions(detail)}`
    })
    return new UsageError(lines.join('; '))
  }
  if (code === 'ERR_AGENT_GOAL' || code === 'ERR_AGENT_MODEL') {
    return new UsageError(withOptions(message))
  }
  const hint = `; if that is ${server}, start the run in its dashboard, or set --data`
  if (code === 'ERR_AGENT_STORE_LOCKED') return new CommandError(message + hint, EXIT.failed)
  const isOfData = code.startsWith('ERR_AGENT_STORE')
  return new CommandError(`${message}${isOfData ? ' (--data)' : ''}`, EXIT.failed)
}

async function explainedFor<T>(server: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw error instanceof AgentError ? inOwnWords(error, server) : error
  }
}

/**
 * An engine that opens goes on with the runs that have not ended, and nobody would see that. It is
 * asked of the store first, so that nothing begins.
 */
async function assertNoneUnfinished(directory: string, server: string): Promise<void> {
  await using store = new FileStore({ directory, onWarning })
  await store.open()
  const status = ['pending', 'running', 'awaiting_human'] as const
  const { heads } = await store.list({ limit: 1, status })
  const [head] = heads
  if (head === undefined) return
  const { goal, run_id, root_run_id } = head.details
  throw new CommandError(
    `run ${root_run_id ?? run_id} (${goal}) has not ended: ${server} continues it, ` +
      'and its page has buttons to answer its gate and to abort it',
    EXIT.failed,
  )
}

/** npm passes on the Ctrl-C that the terminal has sent already; no finger is that fast. */
const ECHO_MS = 200

/** One run from its start to the exit code. */
class Session {
  readonly #engine: RunEngine
  readonly #json: boolean
  readonly #terminal: Terminal
  readonly #server: string

  constructor(engine: RunEngine, json: boolean, server: string) {
    this.#engine = engine
    this.#json = json
    this.#terminal = new Terminal(json)
    this.#server = server
  }

  async play(started: RunDetails): Promise<number> {
    const { run_id } = started
    const follower = new Follower(this.#engine, this.#terminal, this.#json)
    const release = this.#abortOnSignal(run_id)
    try {
      if (!this.#json) await this.#introduce(started)
      await follower.follow(started)
      const { unanswered } = follower
      if (unanswered !== null) return await this.#leave(unanswered)
      const details = await this.#engine.get(run_id)
      if (!this.#json) await this.#report(details)
      if (details.changes === 'pending') await this.#offer(details)
      if (this.#json) await this.#printJson(await this.#engine.get(run_id))
      return codeOf(details)
    } finally {
      release()
    }
  }

  async #introduce({ run_id, goal, model_name, cwd }: RunDetails): Promise<void> {
    await this.#terminal.line([['bold', goal], ` with ${model_name} in ${cwd}`])
    await this.#terminal.line([['dim', `run ${run_id}`]])
  }

  async #report(details: RunDetails): Promise<void> {
    await this.#terminal.line(endLine(details), true)
    // A goal that is met at once leaves nothing to compare.
    if (details.iteration === 0) return
    const changes = await this.#engine.workspaces.changes(details.run_id)
    for (const line of diffLines(changes, details)) await this.#terminal.line(line, true)
  }

  async #printJson(details: RunDetails): Promise<void> {
    await this.#terminal.write(`${escapeInvisibleJson(JSON.stringify(details))}\n`)
  }

  /** Nobody can answer: the run waits for a server of its folder. */
  async #leave({ waiting, details }: UnansweredGate): Promise<number> {
    if (this.#json) await this.#printJson(details)
    const where = `answer it on the page of ${this.#server}`
    printError(`run ${waiting} waits at a gate that nobody can answer here; ${where}`)
    return EXIT.gate
  }

  /** Asks what becomes of the changes of an isolated run. */
  async #offer({ run_id, cwd }: RunDetails): Promise<void> {
    const { workspaces } = this.#engine
    const kept = `the changes wait in a private copy: ${this.#server} shows and applies them`
    if (!this.#terminal.canAsk) return printError(kept)
    await this.#terminal.converse(async (dialogue) => {
      const question = `y to apply the changes to ${cwd}, n to keep them apart: `
      for (;;) {
        const typed = (await dialogue.ask(question)) ?? 'n'
        if (typed === 'n') return await dialogue.say(kept)
        if (typed !== 'y') continue
        try {
          const { applied, held_back: held } = await workspaces.apply(run_id, {})
          const without = held.length === 0 ? '' : `; held back: ${held.join(', ')}`
          return await dialogue.say(`applied: ${applied.join(', ')}${without}`)
        } catch (error) {
          if (!(error instanceof AgentError)) throw error
          return await dialogue.say(['red', error.message], `; ${kept}`)
        }
      }
    })
  }

  /** The first signal aborts the run, the second ends the process at once. */
  #abortOnSignal(runId: string): () => void {
    let abortedAt: number | null = null
    const abort = (): void => {
      if (abortedAt !== null) return
      abortedAt = performance.now()
      this.#terminal.stopAsking()
      // A run that has ended meanwhile is not aborted.
      this.#engine.abort(runId).catch(() => undefined)
    }
    const onSignal = (signal: NodeJS.Signals): void => {
      const isEcho = abortedAt !== null && performance.now() - abortedAt < ECHO_MS
      // A terminal that is closed says so several times.
      if (abortedAt !== null && !isEcho && signal !== 'SIGHUP') process.exit(EXIT.aborted)
      abort()
    }
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
    for (const signal of signals) process.on(signal, onSignal)
    this.#terminal.watch(() => onSignal('SIGINT'), abort)
    return () => signals.forEach((signal) => process.off(signal, onSignal))
  }
}

function codeOf({ status }: RunDetails): number {
  if (status === 'achieved') return EXIT.achieved
  return status === 'aborted' || !isTerminal(status) ? EXIT.aborted : EXIT.failed
}
