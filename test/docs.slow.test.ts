import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import ts from 'typescript'
import { CONTINUES, read, root, samples, type Block } from './helpers/markdown.js'

const nameOf = ({ document, line }: Block): string => join(root, `${document}.${line}.ts`)

function programOf({ document, info, text }: Block): string {
  if (info !== CONTINUES) return text
  const first = samples.find((sample) => sample.document === document)!
  return `${first.text}\n${text}`
}

/** Declares frameworks in samples: packages of the interop tests, without types in the root. */
function foreignModules(): string {
  const manifest = JSON.parse(read('test/peers/package.json')) as Record<string, object>
  const groups = ['dependencies', 'devDependencies']
  const names = groups.flatMap((group) => Object.keys(manifest[group] ?? {}))
  return names.map((name) => `declare module '${name}'\n`).join('')
}

function compilerOptions(): ts.CompilerOptions {
  const { config, error } = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile)
  assert.equal(error, undefined)
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root)
  return {
    ...options,
    noEmit: true,
    skipLibCheck: true,
    // A sample is a program without declarations, and need not use everything it shows.
    declaration: false,
    isolatedDeclarations: false,
    noUnusedLocals: false,
    noUnusedParameters: false,
    noPropertyAccessFromIndexSignature: false,
  }
}

/** Type-checks all samples in one program, each as a module in memory beside its document. */
function checkSamples(): Map<string, string[]> {
  const texts = new Map(
    samples.map((sample) => [nameOf(sample), `${programOf(sample)}\nexport {}\n`]),
  )
  const foreign = join(root, 'docs/foreign-modules.d.ts')
  texts.set(foreign, foreignModules())
  const options = compilerOptions()
  const host = ts.createCompilerHost(options)
  const { getSourceFile, fileExists, readFile } = host
  host.fileExists = (path) => texts.has(path) || fileExists(path)
  host.readFile = (path) => texts.get(path) ?? readFile(path)
  host.getSourceFile = (path, ...rest) => {
    const text = texts.get(path)
    if (text === undefined) return getSourceFile(path, ...rest)
    return ts.createSourceFile(path, text, rest[0])
  }
  host.getCurrentDirectory = () => root
  const program = ts.createProgram({ rootNames: [...texts.keys()], options, host })
  assert.deepEqual(program.getOptionsDiagnostics().map(messageOf), [])
  const source = program.getSourceFile(join(root, 'lib/http/index.ts'))
  assert.ok(source !== undefined, 'samples are checked against the sources, not against a build')
  const problems = new Map<string, string[]>()
  for (const sample of samples) {
    const file = program.getSourceFile(nameOf(sample))
    add(problems, sample, program.getSyntacticDiagnostics(file))
    add(problems, sample, program.getSemanticDiagnostics(file))
  }
  return problems
}

/** What the parameters of callbacks are to a framework without types. */
const UNTYPED: ReadonlySet<number> = new Set([7006, 7031])

function add(
  problems: Map<string, string[]>,
  sample: Block,
  found: readonly ts.Diagnostic[],
): void {
  const told = found.filter(({ code }) => !UNTYPED.has(code) || sample.info !== CONTINUES)
  const lines = told.map((diagnostic) => {
    const start = diagnostic.file?.getLineAndCharacterOfPosition(diagnostic.start ?? 0).line ?? 0
    return `${sample.document}:${sample.line + start}: ${messageOf(diagnostic)}`
  })
  problems.set(sample.document, [...(problems.get(sample.document) ?? []), ...lines])
}

function messageOf({ code, messageText }: ts.Diagnostic): string {
  return `TS${code} ${ts.flattenDiagnosticMessageText(messageText, '\n')}`
}

test('the TypeScript samples of all documents compile', () => {
  const problems = [...checkSamples()].flatMap(([document, found]) =>
    found.map((problem) => `${document}: ${problem}`),
  )
  assert.deepEqual(problems, [])
})
