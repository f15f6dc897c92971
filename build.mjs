/**
 * Builds `dist`, or the given folder, from `lib`: a few JavaScript files per module of the package
 * instead of one per source file, so that an import opens few files, and the declarations that the
 * entry points reach.
 *
 * 1. Modules stay apart: `agent` imports `../http/index.js`, so that there is one of every class
 *    whichever entry points a program uses. What two entries of one module share, and what is
 *    imported only when needed, goes into chunks beside them.
 * 2. Classes and public functions keep their names, and lines are short; other names are shortened
 *    (`build/names.mjs`), comments and indentation go. Source maps tell lines of the sources
 *    (`build/source-map.mjs`). The declarations keep their comments, but what no entry point
 *    reaches goes (`build/declarations.mjs`), and those of a module are in one file
 *    (`build/joined-declarations.mjs`). All together has to fit in 3 000 000 bytes with the
 *    documents, see `test/pack.mjs`.
 * 3. No file is read at run time but by an import, so that a bundled program needs nothing beside
 *    it: workers are text in modules of their own, and so are the files of the dashboard, packed
 *    until they are needed, and the programs for test runners (`build/programs.mjs`). The program
 *    `runwright`, which is not bundled, copies the project of its demo from `examples`.
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
import { basename, dirname, extname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync } from 'node:zlib'
import { cutDeclarations } from './build/declarations.mjs'
import { joinDeclarations } from './build/joined-declarations.mjs'
import { exportedNames, prepareNames, shortenShared } from './build/names.mjs'
import { PROGRAMS_MODULE, takePrograms } from './build/programs.mjs'
import { thin } from './build/source-map.mjs'
import { compact, esbuild, target, workerCode, WORKERS } from './build/workers.mjs'

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

/** Modules that the source reads from files, and what takes their place. */
const embedded = {
  ...Object.fromEntries(
    Object.entries(WORKERS).map(([module, path]) => [module, () => workerModule(path)]),
  ),
  'server/dashboard/files.ts': async () =>
    packedModule((unpacked) => `export const PAGE_FILES = ${unpacked}`, await pageFiles()),
}

rmSync(dist, { recursive: true, force: true })
const declarationsTo = ['-p', lib, '--emitDeclarationOnly', '--outDir', dist]
execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), ...declarationsTo], {
  stdio: 'inherit',
})
const typed = entryPoints().map(({ types }) => join(dist, relative('dist', types)))
cutDeclarations(typed)
const reached = declarations(typed)
const joined = ['http', 'ws', 'agent', 'server'].map((name) => {
  const folder = join(dist, name)
  const all = [...reached].filter((path) => path.startsWith(`${folder}/`))
  const others = all.filter((path) => !typed.includes(path))
  return joinDeclarations(folder, all.filter((path) => typed.includes(path)), others)
})
prune(dist, new Set([...reached, ...joined]))
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
    minifySyntax: true,
    legalComments: 'none',
    logLevel: 'warning',
    bundle: true,
    sourcemap: 'linked',
    sourcesContent: false,
    splitting: true,
    metafile: true,
    chunkNames: 'chunk-[hash]',
    format: 'esm',
    platform: 'node',
    target,
    plugins: [
      {
        name: 'modules stay apart',
        setup: (build) => build.onResolve({ filter: /^\./ }, apart(name)),
      },
      { name: 'text in place of files', setup: embed },
    ],
  })
  const scripts = Object.keys(metafile.outputs).filter((file) => file.endsWith('.js'))
  const folder = join(dist, name)
  const files = scripts.map((file) => relative(folder, join(root, file)))
  await shorten(folder, files, entries)
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
 * Makes the scripts of a module and their source maps as they are shipped.
 *
 * @param {string} folder
 * @param {readonly string[]} files Paths in there.
 * @param {readonly string[]} entries
 */
async function shorten(folder, files, entries) {
  const codes = new Map(files.map((file) => [file, readFileSync(join(folder, file), 'utf8')]))
  const names = new Set(entries.map((entry) => entry.replace('.ts', '.js')))
  const published = new Set([...names].flatMap((name) => exportedNames(codes.get(name) ?? '')))
  const shared = shortenShared(codes, names)
  const known = { published, shared }
  for (const [file, code] of codes) await shortenOne(join(folder, file), code, known)
}

/**
 * @param {string} file
 * @param {string} code
 * @param {{ published: ReadonlySet<string>, shared: ReadonlySet<string> }} known
 */
async function shortenOne(file, code, known) {
  const [, start = '', rest = ''] =
    /^(#!.*\n)?([^]*?)(?:\/\/# sourceMappingURL=.*\s*)?$/.exec(code) ?? []
  const full = readFileSync(`${file}.map`).toString('base64')
  const inline = `//# sourceMappingURL=data:application/json;base64,${full}`
  const short = await esbuild.transform(`${start}${prepareNames(rest, known)}\n${inline}`, {
    ...compact,
    minifyIdentifiers: true,
    lineLimit: 0,
    platform: 'node',
    target,
    sourcefile: file,
    sourcemap: 'external',
    sourcesContent: false,
  })
  // Most sources are of the same module.
  const sources = join(lib, relative(dist, file).split('/').slice(0, -1)[0] ?? '')
  const nameOf = (/** @type {string} */ source) => relative(sources, resolve(dirname(file), source))
  const shipped = thin(short.code, JSON.parse(short.map), {
    nameOf,
    sourceRoot: `${relative(dirname(file), dirname(dist))}/${relative(root, sources)}/`,
  })
  writeFileSync(file, `${shipped.code}//# sourceMappingURL=${basename(file)}.map\n`)
  writeFileSync(`${file}.map`, shipped.map)
  checkCharacters(file)
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

/** @typedef {(file: { path: string }) => object} Resolve */

/**
 * @param {object} build
 * @param {(where: { filter: RegExp, namespace?: string }, load: Load) => void} build.onLoad
 * @param {(where: { filter: RegExp }, resolve: Resolve) => void} build.onResolve
 */
function embed(build) {
  const { programs, modules } = takePrograms(join(lib, 'agent/goals/reports'))
  build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
    const name = relative(lib, path)
    const contents = await embedded[name]?.()
    if (contents !== undefined) return { contents, loader: 'js' }
    const rest = modules.get(path)
    return rest === undefined ? undefined : { contents: rest, loader: 'ts' }
  })
  const here = new RegExp(`^${PROGRAMS_MODULE}$`)
  build.onResolve({ filter: here }, ({ path }) => ({ path, namespace: 'packed' }))
  build.onLoad({ filter: here, namespace: 'packed' }, async () => ({
    contents: packedModule((texts) => `export const PROGRAMS = ${texts}`, programs),
    loader: 'js',
  }))
}

/** A worker as text in a module of its own, unpacked when it is started. @param {string} path */
async function workerModule(path) {
  const code = await workerCode(join(lib, path))
  return packedModule((text) => `export const workerCode = () => ${text}`, code)
}

/**
 * A value that its module unpacks. For what a program only hands on: as text it would take two to
 * four times as much of the package.
 *
 * @param {(unpacked: string) => string} moduleWith What the module does with the value.
 * @param {unknown} value
 */
function packedModule(moduleWith, value) {
  const packed = brotliCompressSync(JSON.stringify(value)).toString('base64')
  return `import { brotliDecompressSync } from 'node:zlib'
    const packed = '${packed}'
    ${moduleWith(`JSON.parse(brotliDecompressSync(Buffer.from(packed, 'base64')).toString())`)}`
}

/**
 * The files of the dashboard, scripts and styles without comments; nobody calls their names. Those
 * of one kind stand together, which packs better.
 */
async function pageFiles() {
  const folder = join(lib, 'server/dashboard/static')
  const names = readdirSync(folder).sort((a, b) => extname(a).localeCompare(extname(b)))
  const files = names.map(async (name) => {
    const text = readFileSync(join(folder, name), 'utf8')
    const loader = /\.(js|css)$/.exec(name)?.[1]
    if (loader === undefined) return [name, text]
    const options = { ...compact, minifyIdentifiers: true, lineLimit: 0, loader }
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
