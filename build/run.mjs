/**
 * Runs a program of the repository with the library as its sources are now:
 * `node build/run.mjs examples/demo.ts`.
 *
 * All of it is compiled into one file, which takes half a second, and is kept until a source
 * changes. A loader would compile eight hundred, which takes as long as most programs here run.
 * `import.meta.url` is that of the source, so that what is beside it is found. Stack traces are
 * those of the sources with `NODE_OPTIONS=--enable-source-maps`.
 */
import { createHash } from 'node:crypto'
import {
  existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync,
} from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** What the compiled file depends on; packages take it away with their folder. */
const SOURCES = ['lib', 'build', 'examples', 'package.json', 'package-lock.json']

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const lib = join(root, 'lib')
const source = resolve(process.argv[2] ?? '')
// Where packages are found as from the sources.
const folder = join(root, 'node_modules/.cache/runwright')
const file = join(folder, `${basename(source, '.ts')}.mjs`)
// Of the time before it is compiled: what changes meanwhile counts the next time.
const head = `// ${stateOf([...SOURCES, source])}\n`
if (!existsSync(file) || !readFileSync(file, 'utf8').startsWith(head)) await compile()
process.argv.splice(1, 2, source)
await import(pathToFileURL(file).href)

/** @param {string[]} paths */
function stateOf(paths) {
  const all = paths.map((path) => resolve(root, path)).flatMap((path) => {
    if (!lstatSync(path).isDirectory()) return [path]
    const below = readdirSync(path, { recursive: true, withFileTypes: true })
    return below.map(({ parentPath, name }) => join(parentPath, name))
  })
  const hash = createHash('sha256').update(String(process.sourceMapsEnabled))
  for (const path of all) {
    const { size, mtimeMs, ctimeMs } = lstatSync(path)
    hash.update(`${path}\0${size} ${mtimeMs} ${ctimeMs}\n`)
  }
  return hash.digest('hex')
}

async function compile() {
  const { esbuild, target, workerCode, WORKERS } = await import('./workers.mjs')
  const workers = new Map(Object.entries(WORKERS))
  /** @typedef {(file: { path: string }) => Promise<object | undefined>} Load */
  /** @param {{ onLoad(where: { filter: RegExp }, load: Load): void }} build */
  const setup = (build) => {
    build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const worker = workers.get(relative(lib, path))
      if (worker !== undefined) {
        const text = JSON.stringify(await workerCode(join(lib, worker)))
        return { contents: `export const workerCode = () => ${text}`, loader: 'js' }
      }
      const text = readFileSync(path, 'utf8')
      if (!text.includes('import.meta.url')) return undefined
      const define = { 'import.meta.url': JSON.stringify(pathToFileURL(path).href) }
      const options = { loader: 'ts', define, sourcefile: path, sourcemap: 'inline' }
      return { contents: (await esbuild.transform(text, options)).code, loader: 'js' }
    })
  }
  const compiling = esbuild.build({
    entryPoints: [source],
    absWorkingDir: root,
    bundle: true,
    conditions: ['runwright-source'],
    outfile: file,
    write: false,
    format: 'esm',
    platform: 'node',
    target,
    keepNames: true,
    banner: { js: head.trimEnd() },
    // Reading it takes as long as compiling.
    sourcemap: process.sourceMapsEnabled && 'inline',
    sourcesContent: false,
    logLevel: 'warning',
    plugins: [{ name: 'files know where they are', setup }],
  })
  // It has said itself what is wrong.
  const { outputFiles } = await compiling.catch(() => process.exit(1))
  mkdirSync(folder, { recursive: true })
  // Another process may start the same program.
  writeFileSync(`${file}.${process.pid}`, outputFiles[0].contents)
  renameSync(`${file}.${process.pid}`, file)
}
