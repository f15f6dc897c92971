/**
 * Follows one guide as somebody does who has just installed the package: in an empty folder, block
 * after block. All of them become one script of bash, so that variables of the shell, files and
 * servers of one block are there for the next. What is changed in a block:
 *
 * - port 8000, or what else a program listens on: a free port
 * - hosts below `.example`, and that of Groq: a stand-in on loopback
 * - `/srv`, `/var` and `/etc`: folders of these names in the folder of the guide
 * - what its rule replaces
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isTypeScript, root, type Block } from '../../helpers/markdown.js'
import { FIXED_RANGE, plantBugs } from '../../helpers/plant-bugs.js'
import { createDatabase, urlOf } from '../postgres/postgres.js'
import { freePort } from '../programs.js'
import { environment, isFor, type Guide, type Rule } from './rule.js'
import { startStandIns, type StandIns } from './stand-ins.js'

const [major] = process.versions.node.split('.').map(Number)
/** As the README says: from Node 24 on a file of TypeScript runs as it is, before that with tsx. */
const runsTypeScript = major! >= 24

/** A bound for one program, in seconds; a guide whose program never ends fails by it. */
const LIMIT = 120
/** The same for all of a guide. */
const GUIDE_LIMIT = 600

const modules = join(root, 'test/peers/node_modules')
const here = fileURLToPath(new URL('.', import.meta.url))

/** Functions of the script, for rules as well. */
const PRELUDE = `set -euo pipefail
# An error status is an error here, which the guides do not ask of curl.
curl() { command curl --fail-with-body "$@"; }
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2> /dev/null; }
# A program has no event for "I listen now": asking again is all there is.
until_listens() {
  until listens; do
    kill -0 $! 2> /dev/null || { cat "$1"; return 1; }
    sleep 0.05
  done
}
npx() {
  case "\${2-}" in
    '' | --*) command npx "$@" --port $port > server.out 2>&1 & until_listens server.out ;;
    *) command npx "$@" ;;
  esac
}
run() { timeout ${LIMIT} node $loader "$@" > "$block.out" 2>&1 || { cat "$block.out"; return 1; }; }
serve() { node $loader "$block" > "$block.out" 2>&1 & server=$!; until_listens "$block.out"; }
stop() {
  code=0; kill $server; wait $server || code=$?
  test $code = 0 || test "$code $1" = '143 stops' || { cat "$block.out"; return 1; }
}
until_status() { node until.mjs $origin $2 $1; }
until_out() {
  timeout ${LIMIT} grep -qm1 "$1" <(tail -n +1 -F "$block.out") || { cat "$block.out"; return 1; }
}
plant() { cp "$folder/faulty.js" "$shop/range.js"; }
`

/** What a text means that assumes a service; its model is the stand-in's. */
const SERVICE = `cd "$shop"; export RUNWRIGHT_MODEL=openai:gpt-5-mini; npx runwright; cd "$folder"`

/** Waits until a run has a status, which must be the one at its next gate or at its end. */
const UNTIL = `import { RunServiceClient } from 'runwright/server'
const [baseUrl, id, wanted] = process.argv.slice(2)
const runs = new RunServiceClient({ baseUrl, key: process.env.UNTIL_KEY })
const kinds = ['human_check_required', 'run_end']
for await (const _ of runs.events(id, { kinds })) if ((await runs.get(id)).status === wanted) break
const { status, final_state, error } = await runs.get(id)
await runs.close()
if (status === wanted) process.exit()
console.error('the run is', status, 'in place of', wanted, final_state.goal_reason, error)
process.exit(1)
`

/** Everything that a walk through one guide needs. */
export class Walk {
  readonly #guide: Guide
  readonly #blocks: readonly Block[]
  readonly #folder: string
  readonly #standIns: StandIns
  readonly #port: number

  private constructor(
    guide: Guide,
    blocks: readonly Block[],
    folder: string,
    standIns: StandIns,
    port: number,
  ) {
    this.#guide = guide
    this.#blocks = blocks
    this.#folder = folder
    this.#standIns = standIns
    this.#port = port
  }

  /**
   * Follows the blocks of a guide below `parent`, which has the package installed.
   *
   * @throws AssertionError with the output when a block does not do what it says.
   */
  static async follow(guide: Guide, blocks: readonly Block[], parent: string): Promise<void> {
    const folder = join(parent, guide.document.replaceAll(/\W/g, '-'))
    const standIns = await startStandIns()
    const postgres = guide.postgres === undefined ? undefined : await createDatabase()
    try {
      const walk = new Walk(guide, blocks, folder, standIns, await freePort())
      walk.#prepare(join(parent, 'node_modules/runwright'))
      await walk.#run(postgres === undefined ? {} : { DATABASE_URL: urlOf(postgres.connection) })
      walk.#compareOutputs()
    } finally {
      await postgres?.drop()
      await standIns.close()
    }
  }

  #prepare(installed: string): void {
    const folder = this.#folder
    const { files = {}, packages = [], installs = false, service = false } = this.#guide
    mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true })
    const link = (target: string, name: string): void => {
      const path = join(folder, 'node_modules', name)
      mkdirSync(dirname(path), { recursive: true })
      symlinkSync(target, path)
    }
    if (!installs) {
      link(installed, 'runwright')
      link('../runwright/dist/cli/main.js', '.bin/runwright')
    }
    for (const name of packages) link(join(modules, name), name)
    writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }')
    writeFileSync(join(folder, 'until.mjs'), UNTIL)
    copyFileSync(join(here, 'checks.ts'), join(folder, 'checks.ts'))
    const shop = plantBugs(join(folder, 'srv/projects/shop'))
    copyFileSync(join(shop, 'range.js'), join(folder, 'faulty.js'))
    writeFileSync(join(folder, 'fixed.js'), FIXED_RANGE)
    if (this.#blocks.some(({ text }) => text.includes('npx runwright')) || service) {
      // The package is installed where the project is.
      cpSync(installed, join(shop, 'node_modules/runwright'), { recursive: true })
      mkdirSync(join(shop, 'node_modules/.bin'))
      symlinkSync('../runwright/dist/cli/main.js', join(shop, 'node_modules/.bin/runwright'))
    }
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true })
      writeFileSync(join(folder, name), this.#localize(content))
    }
  }

  async #run(env: Readonly<Record<string, string>>): Promise<void> {
    writeFileSync(join(this.#folder, 'guide.sh'), this.#script())
    const { PATH = '' } = process.env
    // A group of its own, which ends with it: what a guide starts may go on for ever.
    const child = spawn('bash', ['guide.sh'], {
      cwd: this.#folder,
      env: { PATH, HOME: this.#folder, ...environment(this.#standIns.origin), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    }
    const end = (): void => {
      try {
        process.kill(-child.pid!, 'SIGKILL')
      } catch {
        // Nobody is left in it.
      }
    }
    const late = setTimeout(end, 1000 * GUIDE_LIMIT)
    process.once('exit', end)
    const [code] = (await once(child, 'exit')) as [number | null]
    clearTimeout(late)
    process.off('exit', end)
    end()
    assert.equal(code, 0, output)
  }

  #script(): string {
    const { service, start = '' } = this.#guide
    const lines = [
      PRELUDE,
      `port=${this.#port} origin=http://127.0.0.1:${this.#port} stand_in=${this.#standIns.origin}`,
      `folder="$PWD" shop="$PWD/srv/projects/shop" loader='${runsTypeScript ? '' : `--import ${import.meta.resolve('tsx')}`}'`,
      ...(service === true ? [SERVICE] : []),
      this.#localize(start),
    ]
    const steps = this.#blocks.flatMap((block) => this.#step(block))
    return `${[...lines, ...steps].join('\n')}\n`
  }

  #step(block: Block): readonly string[] {
    const rule = this.#ruleOf(block)
    const { bugs, first = '', before = '', after = '', then = '', serves } = rule
    const isShell = block.info === 'sh'
    const file = this.#fileOf(block)
    const [ahead, behind] = [before, after].map((code) => this.#localize(code)) as [string, string]
    const say = [`echo "== ${block.document}:${block.line} ($SECONDS s)"; block=${file}`]
    if (bugs === true) say.push('plant')
    say.push(this.#localize(first))
    const text = this.#textOf(block, rule)
    if (isShell) return [...say, ahead, text, behind, then]
    const helped = ahead + behind === '' ? '' : `import * as checks from './checks.ts'\n${ahead}\n`
    writeFileSync(join(this.#folder, file), `${helped}${text}\n${behind}\n`)
    const test = block.text.includes("from 'node:test'") ? '--test ' : ''
    if (block.info === 'json') return [...say, then]
    if (serves === undefined) return [...say, `run ${test}$block`, then]
    return [...say, 'serve', then, serves === 'stays' ? '' : `stop ${serves}`]
  }

  /** The text of a block, behind the first one of TypeScript if its info string says so. */
  #textOf(block: Block, { replace = {} }: Rule): string {
    let { text } = block
    for (const [from, to] of Object.entries(replace)) {
      assert.ok(text.includes(from), `${block.document}:${block.line} has no ${from}`)
      text = text.replaceAll(from, to)
    }
    const local = this.#localize(text)
    if (block.info !== 'ts continues') return local
    const first = this.#blocks.find(isTypeScript)!
    return `${this.#textOf(first, this.#ruleOf(first))}\n${local}`
  }

  #localize(text: string): string {
    const { origin, proxy } = this.#standIns
    return text
      .replaceAll(/https:\/\/(?:\w+)\.example(?!:)/g, origin)
      .replaceAll(/wss:\/\/(?:\w+)\.example(?!:)/g, origin.replace('http', 'ws'))
      .replaceAll('https://api.groq.com', origin)
      .replaceAll('gate.example:1080', proxy)
      .replaceAll(/(?<![\w./$}-])\/(?=(?:srv|var|etc)\/)/g, `${this.#folder}/`)
      .replaceAll(/(?<=(?:127\.0\.0\.1|localhost):)8000\b/g, String(this.#port))
      .replaceAll(/(?<=listen\(|port: )(?:8000|8080)\b/g, String(this.#port))
  }

  #compareOutputs(): void {
    for (const block of this.#blocks) {
      const { out } = this.#ruleOf(block)
      if (out === undefined) continue
      const output = readFileSync(join(this.#folder, `${this.#fileOf(block)}.out`), 'utf8')
      assert.match(output, out, `the output of ${block.document}:${block.line}`)
    }
  }

  #ruleOf(block: Block): Rule {
    const rule = this.#guide.rules?.find((one) => isFor(one, block.text))
    return rule ?? { has: '' }
  }

  #fileOf({ info, line }: Block): string {
    return `block-${line}.${info === 'sh' ? 'sh' : info === 'json' ? 'json' : 'ts'}`
  }
}

/** Whether a block is followed: the rest shows something. */
export const isFollowed = (block: Block): boolean =>
  isTypeScript(block) || block.info === 'sh' || block.info === 'json'
