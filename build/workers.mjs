/**
 * The workers of the library as scripts, for a program that is compiled into few files. The bundler
 * is the one that tsx brings along: nothing more to install.
 */
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
export const esbuild = createRequire(require.resolve('tsx/package.json'))('esbuild')

export const target = 'node20.19'

/** Lines of a program stay readable in debuggers. */
export const compact = /** @type {const} */ ({
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 200,
  legalComments: 'none',
  logLevel: 'warning',
})

/** Modules whose `workerCode()` starts a file, and these files, by their paths below `lib`. */
export const WORKERS = {
  'http/transports/blocking/worker-code.ts': 'http/transports/blocking/worker.ts',
  'agent/workspace/tree-worker-code.ts': 'agent/workspace/tree-worker.ts',
}

/**
 * A worker as one script. Nobody sees its names: errors cross to the caller as data. The function
 * that Node gives scripts to load its modules has another name elsewhere.
 *
 * @param {string} path
 */
export async function workerCode(path) {
  const { outputFiles } = await esbuild.build({
    entryPoints: [path],
    ...compact,
    minifyIdentifiers: true,
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'node',
    target,
  })
  return `(function(require){${outputFiles[0].text}})(process.getBuiltinModule)`
}
