/**
 * Bundles test files into a scratch folder, so that a process that runs some of them loads about 50
 * files in place of 900 and needs no loader.
 */
import {
  existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync, symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { embed, esbuild, options } from '../build.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))

/**
 * Bundles each group of test files into one entry. Beside them it puts the package's entry points,
 * its program, the examples and the programs that tests start with `programAt()`, at the paths of
 * their sources. All of them share chunks, so that a class exists once in a process. A group of one
 * file stays at its path too, and chunks are below `test/peers`, where the packages of both are.
 *
 * @param {readonly (readonly string[])[]} groups Paths of test files from the root.
 * @returns {Promise<{ folder: string, entries: string[] }>} The folder, which is the caller's to
 *   remove, and the path of each group's entry.
 */
export async function compile(groups) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'runwright-compiled-')))
  const { exports, ...manifest } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const paths = Object.entries(exports).filter(([, entry]) => typeof entry === 'object')
  /** @type {ReadonlyMap<string, string>} The source of each entry point of the package. */
  const sources = new Map(paths.map(([path, entry]) => [path, entry['runwright-source']]))
  const isCovered = process.env['NODE_V8_COVERAGE'] !== undefined
  const programs = new Set([
    'lib/cli/main.ts',
    ...[...sources.values()].map((path) => path.replace('./', '')),
    ...examples(),
    ...startedByTests(),
    // As an entry point, a source has a chunk of its own: c8 cannot read the map of a larger one.
    ...(isCovered ? sourcesIn('lib') : []),
  ])
  const names = groups.map(([only = '', ...others], index) =>
    others.length > 0 ? `group-${index}` : only.replace(/\.ts$/, ''),
  )
  await esbuild.build({
    ...options,
    entryPoints: [
      ...[...programs].map((path) => ({ in: path, out: path.replace(/\.ts$/, '') })),
      ...names.map((out, index) => ({ in: `group:${index}`, out })),
    ],
    outdir: folder,
    format: 'esm',
    splitting: true,
    chunkNames: 'test/peers/chunks/[name]-[hash]',
    packages: 'external',
    keepNames: true,
    // The package says that its modules have no side effects; its tests have nothing else.
    ignoreAnnotations: true,
    // Node reads maps only where a comment names them: it does for coverage.
    sourcemap: isCovered ? 'linked' : 'external',
    sourcesContent: false,
    plugins: [
      embed,
      { name: 'groups', setup: (/** @type {Building} */ build) => loadGroups(build, groups) },
      { name: 'self', setup: (/** @type {Building} */ build) => resolveSelf(build, sources) },
      { name: 'places', setup: keepPlaces },
    ],
  })
  const compiled = [...sources].map(([path, source]) => [path, source.replace(/ts$/, 'js')])
  const own = { ...manifest, exports: Object.fromEntries(compiled) }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(own))
  mkdirSync(join(folder, 'test/peers'), { recursive: true })
  const linked = [
    'node_modules', 'test/peers/node_modules', 'test/fixtures',
    'examples/node_modules', 'examples/demo-project',
  ]
  for (const needed of linked.filter((path) => existsSync(join(root, path))))
    symlinkSync(join(root, needed), join(folder, needed), 'junction')
  return { folder, entries: names.map((name) => join(folder, `${name}.js`)) }
}

/** @returns {string[]} */
function examples() {
  return ['examples', 'examples/mounts'].flatMap((folder) => {
    const names = readdirSync(join(root, folder))
    return names.filter((name) => name.endsWith('.ts')).map((name) => `${folder}/${name}`)
  })
}

/**
 * The paths of TypeScript below a folder, without what has packages of its own or is data.
 *
 * @param {string} folder A path from the root.
 * @returns {string[]}
 */
export function sourcesIn(folder) {
  const excluded = new Set(['peers', 'bench', 'types', 'fixtures', 'node_modules'])
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`
    if (entry.isDirectory()) return excluded.has(entry.name) ? [] : sourcesIn(path)
    return /(?<!\.d)\.ts$/.test(path) ? [path] : []
  })
}

/** The programs in `test` that a call of `programAt()` names. @returns {string[]} */
function startedByTests() {
  const sources = [...sourcesIn('test'), ...sourcesIn('test/peers')]
  const calls = sources.flatMap((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    return [...text.matchAll(/programAt\('(test\/[^']+)'/g)]
  })
  return [...new Set(calls.map(([, path = '']) => path))]
}

/**
 * The part of esbuild's plugin interface that is used here.
 *
 * @typedef {{ path: string }} Module
 * @typedef {object} Building
 * @property {(where: { filter: RegExp }, resolve: (module: Module) => unknown) => void} onResolve
 * @property {(where: { filter: RegExp, namespace?: string }, load: (module: Module) => unknown) =>
 *   void} onLoad
 */

/** @param {Building} build @param {readonly (readonly string[])[]} groups */
function loadGroups(build, groups) {
  build.onResolve({ filter: /^group:/ }, ({ path }) => ({ path, namespace: 'groups' }))
  build.onLoad({ filter: /./, namespace: 'groups' }, ({ path }) => {
    const files = groups[Number(path.split(':')[1])] ?? []
    return { contents: files.map((file) => `import './${file}'`).join('\n'), resolveDir: root }
  })
}

/**
 * Resolves the package's own name to its sources.
 *
 * @param {Building} build
 * @param {ReadonlyMap<string, string>} sources
 */
function resolveSelf(build, sources) {
  build.onResolve({ filter: /^runwright(\/|$)/ }, ({ path }) => {
    const source = sources.get(path.replace('runwright', '.'))
    return source === undefined ? undefined : { path: join(root, source) }
  })
}

/**
 * Gives `import.meta` the values it has in the source, since tests and the demo of `lib/cli` read
 * files next to it. Elsewhere it is a part of programs in strings, or tells a program where it is.
 *
 * @param {Building} build
 */
function keepPlaces(build) {
  build.onLoad({ filter: /\/(test|lib\/cli)\/.*\.ts$/ }, ({ path }) => {
    const code = readFileSync(path, 'utf8')
    if (!code.includes('import.meta.')) return undefined
    /** @type {Readonly<Record<string, string>>} */
    const meta = { url: pathToFileURL(path).href, filename: path, dirname: dirname(path) }
    const own = /\bimport\.meta\.(url|filename|dirname)\b/g
    const contents = code.replaceAll(own, (_, name) => JSON.stringify(meta[name]))
    return { contents, loader: 'ts' }
  })
}
