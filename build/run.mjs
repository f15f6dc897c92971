/**
 * Runs a program of the repository with the library as its sources are now:
 * `node build/run.mjs examples/demo.ts`.
 *
 * All of it is compiled into one file, which takes half a second. A loader would compile eight
 * hundred, which takes as long as most programs here run. `import.meta.url` is that of the source,
 * so that what is beside it is found. Stack traces are those of the sources with
 * `NODE_OPTIONS=--enable-source-maps`.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { esbuild, target, workerCode, WORKERS } from './workers.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const lib = join(root, 'lib')

const source = resolve(process.argv[2] ?? '')
// Where packages are found as from the sources. Another process may start the same program.
const folder = join(root, 'node_modules/.cache/runwright')
const file = join(folder, `${basename(source, '.ts')}.mjs`)
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
  // Reading it takes as long as compiling.
  sourcemap: process.sourceMapsEnabled && 'inline',
  sourcesContent: false,
  logLevel: 'warning',
  plugins: [{ name: 'files know where they are', setup: tellWhere }],
})
// It has said itself what is wrong.
const { outputFiles } = await compiling.catch(() => process.exit(1))
mkdirSync(folder, { recursive: true })
writeFileSync(`${file}.${process.pid}`, outputFiles[0].contents)
renameSync(`${file}.${process.pid}`, file)
process.argv.splice(1, 2, source)
await import(pathToFileURL(file).href)

/** @typedef {(file: { path: string }) => Promise<object | undefined>} Load */

/** @param {{ onLoad(where: { filter: RegExp }, load: Load): void }} build */
function tellWhere(build) {
  build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
    const worker = new Map(Object.entries(WORKERS)).get(relative(lib, path))
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
