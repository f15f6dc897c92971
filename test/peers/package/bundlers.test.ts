import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Worker } from 'node:worker_threads'
import { isComplete, oneOfEach } from '../../helpers/choice.js'
import { HTTP, HTTP_RESULT, installIn, main, proveHost, SERVE } from './host.js'
import { buildInto } from './tarball.js'

// A program that uses the whole package, bundled by each tool, and run without the package.

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../', import.meta.url))
const require = createRequire(join(root, 'test/peers/package.json'))
const folder = mkdtempSync(join(tmpdir(), 'runwright-bundlers-'))
let app: Worker
let origins: string[] = []

const PROGRAMS = {
  http: `${HTTP}${main('await http(origin, secureOrigin)')}`,
  all: `${HTTP}${SERVE}${main('[...(await http(origin, secureOrigin)), await serve()]')}`,
}

before(async () => {
  const dist = join(folder, 'dist')
  await buildInto(dist)
  installIn(folder, dist)
  writeFileSync(join(folder, 'package.json'), '{"type":"module","private":true}')
  for (const [name, code] of Object.entries(PROGRAMS)) {
    writeFileSync(join(folder, `${name}.js`), code)
  }
  app = new Worker(join(root, 'test/fixtures/http/app-worker.mjs'), { execArgv: [] })
  const [ports] = (await once(app, 'message')) as [{ port: number; securePort: number }]
  origins = [`http://127.0.0.1:${ports.port}`, `https://127.0.0.1:${ports.securePort}`]
})
after(async () => {
  await app?.terminate()
  rmSync(folder, { recursive: true, force: true })
})

interface Build {
  readonly entry: string
  readonly out: string
  readonly format: 'esm' | 'cjs'
  readonly minify: boolean
}

/** Each bundles the program into a folder, where it is `main.mjs` or `main.cjs`. */
const BUNDLERS: Readonly<Record<string, (build: Build) => Promise<unknown>>> = {
  esbuild: ({ entry, out, format, minify }) =>
    require('esbuild').build({
      entryPoints: { main: entry },
      outdir: out,
      outExtension: { '.js': extension(format) },
      bundle: true,
      platform: 'node',
      format,
      minify,
      logLevel: 'error',
      logOverride: { 'empty-import-meta': 'error' },
    }),
  async rollup({ entry, out, format }) {
    const { rollup } = require('rollup')
    const { nodeResolve } = require('@rollup/plugin-node-resolve')
    const bundle = await rollup({
      input: { main: entry },
      plugins: [nodeResolve({ exportConditions: ['node'] })],
      external: /^node:/,
      onwarn: (warning: { message: string }) => assert.fail(warning.message),
    })
    const names = `[name]${extension(format)}`
    await bundle.write({ dir: out, format, entryFileNames: names, chunkFileNames: names })
  },
  async vite({ entry, out, format, minify }) {
    const { build } = await import(pathToFileURL(require.resolve('vite')).href)
    const names = `[name]${extension(format)}`
    await build({
      root: folder,
      configFile: false,
      logLevel: 'error',
      ssr: { noExternal: true },
      build: {
        ssr: true,
        outDir: out,
        minify,
        rollupOptions: {
          input: { main: entry },
          output: { format, entryFileNames: names, chunkFileNames: names },
        },
      },
    })
  },
  async webpack({ entry, out, format, minify }) {
    const esm = format === 'esm'
    await runWebpack({
      mode: minify ? 'production' : 'development',
      entry: { main: entry },
      experiments: { outputModule: esm },
      output: {
        path: out,
        filename: `[name]${extension(format)}`,
        chunkFilename: `[name].chunk${extension(format)}`,
        module: esm,
      },
    })
  },
}

const extension = (format: string): string => (format === 'esm' ? '.mjs' : '.cjs')

async function runWebpack(options: object): Promise<void> {
  const compiler = require('webpack')({ target: 'node20', context: folder, ...options })
  const stats = await promisify(compiler.run.bind(compiler))()
  const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true })
  assert.deepEqual([errors, warnings], [[], []])
}

const WAYS = [
  { program: 'all', format: 'esm', minify: true },
  { program: 'all', format: 'cjs', minify: false },
  { program: 'all', format: 'esm', minify: false },
  { program: 'all', format: 'cjs', minify: true },
  { program: 'http', format: 'esm', minify: false },
  { program: 'http', format: 'cjs', minify: false },
] as const

/** Each tool bundles each program, in one of the ways or in all. */
const bundles = Object.keys(BUNDLERS).flatMap((tool) => {
  // Rollup minifies nothing, and webpack takes as long for that as for all others.
  const minifies = tool !== 'rollup' && (tool !== 'webpack' || isComplete)
  const ways = WAYS.filter(({ minify }) => minifies || !minify)
  return oneOfEach(ways, ({ program }) => program).map((way) => ({
    ...way,
    tool,
    name: `${way.program} as ${way.format}${way.minify ? ', minified' : ''}`,
    entry: join(folder, `${way.program}.js`),
    out: join(folder, `${tool}-${way.program}-${way.format}-${way.minify}`),
  }))
})

for (const { tool, name, ...build } of bundles) {
  test(`${tool} bundles ${name}`, async () => {
    await BUNDLERS[tool]!(build)
  })
}

test('the package is not needed any more', () => {
  for (const gone of ['node_modules', 'dist']) rmSync(join(folder, gone), { recursive: true })
})

for (const { tool, name, program, format, out } of bundles) {
  test(`what ${tool} has made of ${name} works alone`, async () => {
    const args = [join(out, `main${extension(format)}`), ...origins]
    const check = (found: readonly unknown[]): void => assert.deepEqual(found, HTTP_RESULT)
    if (program === 'all') return await proveHost({ file: process.execPath, args }, check)
    const { stdout } = await run(process.execPath, args, { cwd: folder, timeout: 120_000 })
    check(JSON.parse(stdout) as unknown[])
  })
}
