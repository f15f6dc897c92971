/**
 * The code of the worker behind `TrackedFolder` and copies, as text; see `worker-code.ts` of the
 * HTTP client, which is made in the same way.
 */
export function workerCode(): string {
  const isTypeScript = import.meta.url.endsWith('.ts')
  const file = new URL(isTypeScript ? './tree-worker.ts' : './tree-worker.js', import.meta.url)
  const load = `import(${JSON.stringify(file.href)})`
  if (!isTypeScript) return load
  return `import(${JSON.stringify(import.meta.resolve('tsx/esm/api'))}).then((tsx) => {
    tsx.register()
    return ${load}
  })`
}
