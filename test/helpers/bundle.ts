import { renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root } from './markdown.js'

interface Bundler {
  buildSync(options: Readonly<Record<string, unknown>>): { readonly metafile?: Metafile }
  transformSync(code: string, options: Readonly<Record<string, unknown>>): { readonly code: string }
}

interface Metafile {
  readonly inputs: Readonly<Record<string, { readonly imports: readonly ImportOf[] }>>
}

interface ImportOf {
  readonly path: string
  readonly kind: string
}

// The esbuild that tsx depends on, as in build.mjs.
const require = createRequire(import.meta.url)
const esbuild = createRequire(require.resolve('tsx/package.json'))('esbuild') as Bundler

/** Compiles TypeScript to JavaScript, with an inline source map. */
export function transform(code: string): string {
  const target = 'node20.19'
  return esbuild.transformSync(code, { loader: 'ts', target, keepNames: true, sourcemap: 'inline' })
    .code
}

/**
 * Bundles a TypeScript file of this repository, with everything it imports of this repository, into
 * one file of JavaScript in the folder `target`, and returns its path. For child processes that are
 * started by the dozen: without a loader they start ten times as fast.
 */
export function bundle(entry: URL, target: string): string {
  const path = fileURLToPath(entry)
  const outfile = join(target, basename(path).replace(/\.ts$/, '.mjs'))
  esbuild.buildSync({
    entryPoints: [path],
    outfile,
    bundle: true,
    conditions: ['runwright-source'],
    external: ['pg'],
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    logLevel: 'warning',
  })
  return outfile
}

/** The same, and beside it the worker that looks at folders and copies them. */
export function bundleWithWorkers(entry: URL, target: string): string {
  writeFileSync(join(target, 'package.json'), '{ "type": "module" }')
  const worker = new URL('../../lib/agent/workspace/tree-worker.ts', import.meta.url)
  renameSync(bundle(worker, target), join(target, 'tree-worker.js'))
  return bundle(entry, target)
}

/**
 * Lists the repository files (paths from the root) and Node modules that importing a file loads.
 * Dynamic imports do not count.
 */
export function loadedBy(entry: string): ReadonlySet<string> {
  const { metafile } = esbuild.buildSync({
    absWorkingDir: root,
    entryPoints: [join(root, entry)],
    outfile: 'bundle.js',
    write: false,
    metafile: true,
    bundle: true,
    format: 'esm',
    platform: 'node',
  })
  const loaded = new Set<string>()
  const load = (path: string): void => {
    if (loaded.has(path)) return
    loaded.add(path)
    for (const { path: next, kind } of metafile?.inputs[path]?.imports ?? [])
      if (kind === 'import-statement') load(next)
  }
  load(entry)
  return loaded
}
