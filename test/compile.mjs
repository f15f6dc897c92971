/**
 * Compiles the repository into a folder of JavaScript, file for file, so that test files start
 * without a loader and without compiling, each for itself, what all of them import.
 */
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const sources = ['lib', 'test', 'examples']

/** Folders of what is read, served or started from where it is. */
const asTheyAre = new Set(['node_modules', 'fixtures', 'static', 'demo-project'])

// The compiler is the one that tsx brings along, as in build.mjs.
const require = createRequire(import.meta.url)
const esbuild = createRequire(require.resolve('tsx/package.json'))('esbuild')

/**
 * Returns the folder, which is the caller's to remove. In it the package has the same name and the
 * same entry points.
 *
 * @returns {Promise<string>}
 */
export async function compile() {
  const target = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-compiled-')))
  const entryPoints = sources.flatMap((folder) => mirror(folder, target))
  await esbuild.build({
    entryPoints,
    outdir: target,
    outbase: root,
    absWorkingDir: root,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    keepNames: true,
    sourcemap: 'inline',
    sourcesContent: false,
    logLevel: 'warning',
    plugins: [{ name: 'tests know where they are', setup: tellWhere }],
  })
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const [name, entry] of Object.entries(manifest.exports)) {
    const source = entry['runwright-source']
    if (source !== undefined) manifest.exports[name] = source.replace(/ts$/, 'js')
  }
  writeFileSync(join(target, 'package.json'), JSON.stringify(manifest))
  symlinkSync(join(root, 'node_modules'), join(target, 'node_modules'), 'junction')
  return target
}

/**
 * Makes `folder` in `target` but for its TypeScript, and returns that.
 *
 * @param {string} folder
 * @param {string} target
 * @returns {string[]}
 */
function mirror(folder, target) {
  mkdirSync(join(target, folder))
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory() && !asTheyAre.has(entry.name)) return mirror(path, target)
    if (/(?<!\.d)\.ts$/.test(path)) return [path]
    symlinkSync(join(root, path), join(target, path), entry.isDirectory() ? 'junction' : 'file')
    return []
  })
}

/**
 * What a plugin of the bundler gets, as far as it is used here.
 *
 * @typedef {(file: { path: string }) => object | undefined} Load
 * @typedef {{ onLoad(where: { filter: RegExp }, load: Load): void }} Bundling
 */

/**
 * Test files read fixtures and start children beside themselves: to them, `import.meta` is that of
 * the source.
 *
 * @param {Bundling} build
 */
function tellWhere(build) {
  build.onLoad({ filter: /\.ts$/ }, ({ path }) => {
    if (!path.startsWith(join(root, 'test'))) return undefined
    /** @type {Readonly<Record<string, string>>} */
    const meta = { url: pathToFileURL(path).href, filename: path, dirname: dirname(path) }
    const code = readFileSync(path, 'utf8')
    const own = /\bimport\.meta\.(url|filename|dirname)\b/g
    const contents = code.replaceAll(own, (_, name) => JSON.stringify(meta[name]))
    return { contents, loader: 'ts' }
  })
}
