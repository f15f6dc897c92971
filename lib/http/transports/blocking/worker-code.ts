/**
 * The code of the worker behind `Client`, as text. The build replaces this module by the compiled
 * worker itself, so that a bundled program needs no file beside it. In the source it is an import
 * of the worker's file; for TypeScript the worker registers the loader first, since it does not
 * inherit that of the thread that starts it.
 */
export function workerCode(): string {
  const isTypeScript = import.meta.url.endsWith('.ts')
  const file = new URL(isTypeScript ? './worker.ts' : './worker.js', import.meta.url)
  const load = `import(${JSON.stringify(file.href)})`
  if (!isTypeScript) return load
  return `import(${JSON.stringify(import.meta.resolve('tsx/esm/api'))}).then((tsx) => {
    tsx.register()
    return ${load}
  })`
}
