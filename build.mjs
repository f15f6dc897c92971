/**
 * Builds `dist`, or the folder given as an argument, from `lib`.
 *
 * 1. Each entry point becomes one readable file of JavaScript; code that several of them use, or
 *    that is imported on demand, goes into chunks. A class therefore exists once, whichever entry
 *    points a program imports.
 * 2. The compiler writes the declarations. Those that no entry point reaches are left out.
 * 3. The code reads no file of its own at run time, so that it still works after a user's bundler
 *    has merged it into one file: the plugin {@link embed} turns workers and the dashboard's files
 *    into strings.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withVersionCheck } from './version-check.mjs'

const root = dirname(fileURLToPath(import.meta.url))
const lib = join(root, 'lib')

const require = createRequire(import.meta.url)
/** The esbuild that tsx depends on. */
export const esbuild = createRequire(require.resolve('tsx/package.json'))('esbuild')

/** Options for all bundles of the library. */
export const options = /** @type {const} */ ({
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  logLevel: 'warning',
})

/** Modules that read files when they run from source, each with the module that replaces it. */
const replacements = {
  'http/transports/blocking/worker-code.ts': () => worker('http/transports/blocking/worker.ts'),
  'agent/workspace/tree-worker-code.ts': () => worker('agent/workspace/tree-worker.ts'),
  'server/dashboard/files.ts': () => {
    const folder = join(lib, 'server/dashboard/static')
    const names = readdirSync(folder).sort()
    const files = names.map((name) => [name, readFileSync(join(folder, name), 'utf8')])
    return `export const PAGE_FILES = ${JSON.stringify(Object.fromEntries(files), null, 2)}`
  },
}

/**
 * A module that exports a worker as one script. A script started with `eval` gets a `require` for
 * Node's modules under another name in Bun and Deno, so it is passed in.
 *
 * @param {string} path
 */
async function worker(path) {
  const { outputFiles } = await esbuild.build({
    ...options,
    entryPoints: [join(lib, path)],
    write: false,
    format: 'cjs',
    // A string that nobody reads: errors cross to the caller as data.
    minify: true,
  })
  const script = `(function(require){${outputFiles[0].text}})(process.getBuiltinModule)`
  return `export const workerCode = () => ${JSON.stringify(script)}`
}

/** A program in a file of its own that a module `programs.ts` reads. */
const PROGRAM = /readFileSync\(\s*new URL\('([^']+)', import\.meta\.url\), 'utf8',?\s*\)/g

/** The plugin of esbuild that turns files read at run time into strings. */
export const embed = {
  name: 'embed',
  /** @param {{ onLoad(where: { filter: RegExp }, load: () => unknown): void }} build */
  setup(build) {
    for (const [path, contents] of Object.entries(replacements)) {
      const filter = new RegExp(`/lib/${path.replaceAll('.', '\\.')}$`)
      build.onLoad({ filter }, async () => ({ contents: await contents(), loader: 'js' }))
    }
    build.onLoad({ filter: /\/lib\/.*\/programs\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replaceAll(PROGRAM, (_, name) =>
        JSON.stringify(readFileSync(join(dirname(path), name), 'utf8')),
      ),
      loader: 'ts',
    }))
  },
}

/** @param {string} dist */
async function build(dist) {
  const { exports, bin, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const inDist = (/** @type {string} */ path) => join(dist, relative('dist', path))
  const entries = Object.values(exports).filter((entry) => typeof entry === 'object')
  rmSync(dist, { recursive: true, force: true })
  const tsc = ['-p', lib, '--emitDeclarationOnly', '--outDir', dist]
  execFileSync(process.execPath, [require.resolve('typescript/bin/tsc'), ...tsc], {
    stdio: 'inherit',
  })
  removeUnreached(dist, new Set(entries.map(({ types }) => inDist(types))))
  const { outputFiles } = await esbuild.build({
    ...options,
    entryPoints: [...entries.map((entry) => entry['runwright-source']), './lib/cli/main.ts'],
    write: false,
    outdir: dist,
    outbase: lib,
    // One level deep, as the sources of `cli` are: from both, the examples are at `../../examples`.
    chunkNames: 'chunks/[name]-[hash]',
    splitting: true,
    format: 'esm',
    legalComments: 'none',
    plugins: [embed],
  })
  for (const { path, text } of outputFiles) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, withVersionCheck(withClassNames(text), engines.node))
  }
  chmodSync(inDist(bin.runwright), 0o755)
}

/**
 * Removes declarations that the entry points do not lead to.
 *
 * @param {string} dist
 * @param {Set<string>} reached Paths of the entry points' declarations. Others are added.
 */
function removeUnreached(dist, reached) {
  for (const path of reached) {
    const text = readFileSync(path, 'utf8')
    for (const [, module = ''] of text.matchAll(/(?:from|import|import\() ?'(\.[^']+)\.js'/g)) {
      reached.add(`${resolve(dirname(path), module)}.d.ts`)
    }
  }
  for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    const path = join(dist, name)
    if (name.endsWith('.d.ts') && !reached.has(path)) rmSync(path)
  }
}

/**
 * Undoes a renaming: esbuild makes `var Foo = class _Foo` of a class that mentions itself, and
 * stack traces and the console would show that name.
 *
 * @param {string} code
 */
function withClassNames(code) {
  const renamed = new Set([...code.matchAll(/^var (\w+) = class _\1\b/gm)].map(([, name]) => name))
  return code.replaceAll(/(?<![\w$#.])_(\w+)/g, (word, name) => (renamed.has(name) ? name : word))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await build(resolve(process.argv[2] ?? join(root, 'dist')))
}
