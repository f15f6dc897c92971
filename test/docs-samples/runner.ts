/**
 * Runs samples of the documents as modules, each in its own folder. Hosts and folders in them are
 * replaced by stand-ins; `rules.ts` has the code around each sample.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { transform } from '../helpers/bundle.js'
import { documents, isTypeScript, markdown, root, type Block } from '../helpers/markdown.js'
import { plantBugs, repairBugs } from '../helpers/plant-bugs.js'
import { compiled, withLoader } from '../helpers/programs.js'
import { keys, rules, type Rule } from './rules.js'
import { startStandIns, type StandIns } from './stand-ins.js'

/** The code blocks of all documents. */
export const blocks: readonly Block[] = documents.flatMap(
  (document) => markdown.get(document)!.blocks,
)
const isJson = ({ info }: Block): boolean => info === 'json'
/** The package that samples import: compiled, or the sources, which need the loader. */
const source = compiled ?? root
const node = compiled === undefined ? withLoader : []
const insideName = `test/docs-samples/inside.${compiled === undefined ? 'ts' : 'js'}`
const inside = JSON.stringify(pathToFileURL(join(source, insideName)).href)

/** The rule for a sample; undefined if it runs as it is. */
export const ruleOf = (block: Block): Rule | undefined =>
  rules.find(({ document, has }) => document === block.document && block.text.includes(has))

/** Whether a sample needs other packages. */
export const needsPeers = (block: Block): boolean => ruleOf(block)?.peers === true

/** Whether a sample runs as a module: TypeScript, or JSON that its rule uses as `sample`. */
export const isModule = (block: Block): boolean =>
  isTypeScript(block) || (isJson(block) && ruleOf(block) !== undefined)

/** How a process ended. */
export interface Ended {
  readonly code: number | string | null
  readonly output: string
}

/** Runs samples in child processes, with their folders and stand-ins. */
export class SampleRunner {
  readonly #folder: string
  readonly #standIns: StandIns
  readonly #env: Readonly<Record<string, string>>

  private constructor(folder: string, standIns: StandIns, env: Readonly<Record<string, string>>) {
    this.#folder = folder
    this.#standIns = standIns
    this.#env = env
  }

  /** `packages` are paths below test/peers/node_modules that samples may import. */
  static async open(
    packages: readonly string[] = [],
    env: Readonly<Record<string, string>> = {},
  ): Promise<SampleRunner> {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-samples-')))
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(source, join(folder, 'node_modules/runwright'))
    for (const name of packages) {
      symlinkSync(join(root, 'test/peers/node_modules', name), join(folder, 'node_modules', name))
    }
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    return new SampleRunner(folder, await startStandIns(), env)
  }

  async close(): Promise<void> {
    await this.#standIns.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** Creates the working directory of a sample, with the folders and files that it needs. */
  prepareFolder(block: Block): string {
    const cwd = join(this.#folder, `${block.document.replaceAll(/\W/g, '-')}-${block.line}`)
    const { bugs = false, files = {} } = ruleOf(block) ?? {}
    const shop = plantBugs(join(cwd, 'srv/projects/shop'))
    if (!bugs) repairBugs(shop)
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(dirname(join(cwd, name)), { recursive: true })
      writeFileSync(join(cwd, name), content)
    }
    return cwd
  }

  /** Replaces remote hosts, absolute folders and fixed ports in a text. */
  localize(text: string, cwd: string): string {
    return text
      .replaceAll(/https:\/\/(?:api|files|chat|tracker)\.example(?!:)/g, this.#standIns.origin)
      .replaceAll('https://api.groq.com', this.#standIns.origin)
      .replaceAll('gate.example:1080', this.#standIns.proxy)
      .replaceAll(/\/(?=(?:srv|var|etc)\/)/g, `${cwd}/`)
      .replaceAll(/(?<=listen\()(?:8000|8080)\b/g, '0')
  }

  /**
   * Runs samples one after the other in one process, each in its folder. With `alone`, a test file
   * runs in the process, which ends by itself.
   */
  async runModules(group: readonly Block[], alone = false): Promise<void> {
    const steps = group.map((block) => {
      const cwd = this.prepareFolder(block)
      const file = this.#write(this.#assemble(block, cwd), cwd)
      const name = JSON.stringify(`sample ${block.document}:${block.line}`)
      const start = `process.chdir(${JSON.stringify(cwd)}); console.log(${name})`
      return `${start}; await import(${JSON.stringify(file)})`
    })
    const first = group[0]!
    const main = join(this.#folder, `${first.document.replaceAll(/\W/g, '-')}-${first.line}.mjs`)
    // A sample may leave servers open, so the process must exit.
    writeFileSync(main, `${steps.join('\n')}\n${alone ? '' : 'process.exit()\n'}`)
    const { code, output } = await this.run(process.execPath, [...node, main], this.#folder)
    assert.equal(code, 0, output)
    if (alone) assert.ok(Number(/^# pass (\d+)$/m.exec(output)?.[1]) > 0, `no test ran: ${output}`)
  }

  /** Runs a program with the environment of samples. */
  run(command: string, args: readonly string[], cwd: string): Promise<Ended> {
    const { PATH = '' } = process.env
    const env = { PATH, HOME: this.#folder, ...keys(this.#standIns.origin), ...this.#env }
    return new Promise((resolve) => {
      execFile(
        command,
        args,
        { cwd, env, timeout: 120_000, maxBuffer: 2 ** 24 },
        (error, stdout, stderr) => {
          resolve({
            code: error === null ? 0 : (error.code ?? error.signal ?? 1),
            output: `${stdout}${stderr}`,
          })
        },
      )
    })
  }

  /** Writes the module of a sample; returns its path. */
  #write(code: string, cwd: string): string {
    const file = join(cwd, compiled === undefined ? 'sample.ts' : 'sample.js')
    writeFileSync(file, compiled === undefined ? code : transform(code))
    return file
  }

  /** The module of a sample: imports, the code of its rule, and the sample itself. */
  #assemble(block: Block, cwd: string): string {
    const { before = '', after = '', replace = {} } = ruleOf(block) ?? {}
    let text = isJson(block) ? `const sample = ${block.text}` : block.text
    for (const [from, to] of Object.entries(replace)) {
      assert.ok(text.includes(from), `${block.document}:${block.line} has no ${from}`)
      text = text.replaceAll(from, to)
    }
    const names = 'assert, printed, originOf, tryService, shut, doRun, connectPeer, twoSteps'
    const prelude = [
      `import { ${names} } from ${inside}`,
      `const INSIDE = ${inside}, folder = ${JSON.stringify(cwd)}`,
      `const standIn = '${this.#standIns.origin}'`,
      'printed.length = 0',
    ]
    return `${prelude.join('; ')}; ${before}\n${this.localize(text, cwd)}\n${after}\nexport {}\n`
  }
}
