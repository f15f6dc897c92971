/**
 * Builds `dist`, or the given folder, from `lib`: a few JavaScript files per module of the package
 * instead of one per source file, so that an import opens few files, and the declarations that the
 * entry points reach.
 *
 * 1. Modules stay apart: `agent` imports `../http/index.js`, so that there is one of every class
 *    whichever entry points a program uses. What two entries of one module share, and what is
 *    imported only when needed, goes into chunks beside them.
 * 2. Names stay and lines are short, so that stack traces can be read; comments and indentation go.
 *    The declarations keep their comments.
 * 3. No file is read at run time but by an import, so that a bundled program needs nothing beside
 *    it: workers and the files of the dashboard are text in modules of their own.
 * 4. The bundler is the one that tsx brings along: nothing more to install.
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  readFileSync,
  readdirSync,
  rmSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(fileURLToPath(import.meta.url))
const lib = join(root, 'lib')
const dist = resolve(process.argv[2] ?? join(root, 'dist'))

/** What is built together: the entries of one module. */
const modules = {
  '.': ['index.ts'],
  http: ['index.ts'],
  ws: ['index.ts'],
  agent: ['index.ts', 'testing/index.ts'],
  server: ['index.ts'],
  cli: ['main.ts'],
}

/** Names and lines of a program stay readable in stack traces and debuggers. */
const compact = /** @type {const} */ ({
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 100,
  legalComments: 'none',
  logLevel: 'warning',
})
const require = createRequire(import.meta.url)
const esbuild = createRequire(require.resolve('tsx/package.json'))('esbuild')

/** Modules that the source reads from files, and what takes their place. */
const embedded = {
  'http/transports/blocking/worker-code.ts': () =>
    workerModule('WORKER_CODE', 'http/transports/blocking/worker.ts'),
  'agent/workspace/tree-worker-code.ts': () =>
    workerModule('WORKER_CODE', 'agent/workspace/tree-worker.ts'),
  'server/dashboard/files.ts': async () =>
    `export const PAGE_FILES = ${JSON.stringify(await pageFiles())}`,
}

rmSync(dist, { recursive: true, force: true })
const declarationsTo = ['-p', lib, '--emitDeclarationOnly', '--outDir', dist]
execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), ...declarationsTo], {
  stdio: 'inherit',
})
prune(dist, declarations(entryPoints().map(({ types }) => join(dist, relative('dist', types)))))
for (const [name, entries] of Object.entries(modules)) await bundle(name, entries)
chmodSync(join(dist, 'cli/main.js'), 0o755)

/** @returns {{ types: string }[]} The entries of `exports` that have types. */
function entryPoints() {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  return Object.values(exports).filter((entry) => typeof entry === 'object')
}

/**
 * @param {string} name
 * @param {readonly string[]} entries
 */
async function bundle(name, entries) {
  const { metafile } = await esbuild.build({
    entryPoints: entries.map((entry) => ({
      in: join(lib, name, entry),
      out: entry.replace('.ts', ''),
    })),
    outdir: join(dist, name),
    absWorkingDir: root,
    ...compact,
    bundle: true,
    splitting: true,
    metafile: true,
    chunkNames: 'chunk-[hash]',
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    plugins: [
      {
        name: 'modules stay apart',
        setup: (build) => build.onResolve({ filter: /^\./ }, apart(name)),
      },
      { name: 'text in place of files', setup: embed },
    ],
  })
  for (const file of Object.keys(metafile.outputs)) {
    restoreClassNames(join(root, file))
    checkCharacters(join(root, file))
  }
  for (const [file, { imports }] of Object.entries(metafile.outputs)) {
    for (const { path, external } of imports) {
      if (external && path.startsWith('.') && dirname(file) !== relative(root, join(dist, name))) {
        throw new Error(
          `${file} imports ${path}, which is right in the folder of ${name}/index.js only`,
        )
      }
    }
  }
}

/**
 * The bundler makes `Name = class _Name` of a class that mentions itself, and the underscore would
 * show in stack traces and wherever an object is printed.
 *
 * @param {string} file
 */
function restoreClassNames(file) {
  const code = readFileSync(file, 'utf8')
  const names = [...code.matchAll(/\b(\w+)=class _\1\b/g)].map(([, name]) => name)
  if (names.length > 0)
    writeFileSync(file, code.replace(new RegExp(`\\b_(${names.join('|')})\\b`, 'g'), '$1'))
}

/**
 * A single character beyond ASCII doubles what a file takes in memory, where Node keeps it as text.
 * The bundler escapes them but for raw templates.
 *
 * @param {string} file
 */
function checkCharacters(file) {
  const [found] = /.{0,40}[^\0-\x7f].{0,40}/.exec(readFileSync(file, 'utf8')) ?? []
  if (found !== undefined) throw new Error(`${file}: write the character as an escape: ${found}`)
}

/** @typedef {(file: { path: string }) => Promise<object | undefined>} Load */

/** @param {{ onLoad(where: { filter: RegExp }, load: Load): void }} build */
function embed(build) {
  build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
    const contents = await embedded[relative(lib, path)]?.()
    return contents === undefined ? undefined : { contents, loader: 'js' }
  })
}

/**
 * A worker as text in a module of its own.
 *
 * @param {string} name
 * @param {string} path
 */
async function workerModule(name, path) {
  return `export const ${name} = ${JSON.stringify(await workerCode(path))}`
}

/**
 * A worker as one script. Nobody sees its names: errors cross to the caller as data. The function
 * that Node gives scripts to load its modules has another name elsewhere.
 *
 * @param {string} path
 */
async function workerCode(path) {
  const { outputFiles } = await esbuild.build({
    entryPoints: [join(lib, path)],
    ...compact,
    minifyIdentifiers: true,
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'node',
    target: 'node20.19',
  })
  return `(function(require){${outputFiles[0].text}})(process.getBuiltinModule)`
}

/** The files of the dashboard, scripts and styles without comments; nobody calls their names. */
async function pageFiles() {
  const folder = join(lib, 'server/dashboard/static')
  const files = readdirSync(folder).map(async (name) => {
    const text = readFileSync(join(folder, name), 'utf8')
    const loader = /\.(js|css)$/.exec(name)?.[1]
    if (loader === undefined) return [name, text]
    const options = { ...compact, minifyIdentifiers: true, loader }
    return [name, (await esbuild.transform(text, options)).code]
  })
  return Object.fromEntries(await Promise.all(files))
}

/** Leaves the index of another module as an import. @param {string} name */
function apart(name) {
  return (
    /** @type {{ kind: string, resolveDir: string, path: string }} */ { kind, resolveDir, path },
  ) => {
    if (kind === 'entry-point') return undefined
    const target = relative(lib, resolve(resolveDir, path))
    const other = /^(http|ws|agent|server)\/index\.js$/.exec(target)?.[1]
    if (other === undefined || other === name) return undefined
    return { path: name === '.' ? `./${target}` : `../${target}`, external: true }
  }
}

/**
 * The declarations that `entries` lead to, themselves among them.
 *
 * @param {readonly string[]} entries
 */
function declarations(entries) {
  const found = new Set(entries)
  for (const file of found) {
    for (const [, path] of readFileSync(file, 'utf8').matchAll(
      /(?:from |import\()['"](\.[^'"]+)\.js['"]/g,
    )) {
      found.add(`${resolve(dirname(file), path)}.d.ts`)
    }
  }
  return found
}

/**
 * Removes every file of `folder` that is not in `kept`, and folders left empty.
 *
 * @param {string} folder
 * @param {ReadonlySet<string>} kept
 */
function prune(folder, kept) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) prune(path, kept)
    else if (!kept.has(path)) rmSync(path)
  }
  if (readdirSync(folder).length === 0) rmdirSync(folder)
}
