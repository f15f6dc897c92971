/**
 * The code of the worker behind `TrackedFolder` and copies, as text; see `worker-code.ts` of the
 * HTTP client, which is made in the same way.
 */
export const WORKER_CODE: string = import.meta.url.endsWith('.ts')
  ? `import(${JSON.stringify(import.meta.resolve('tsx/esm/api'))}).then((tsx) => {
      tsx.register()
      return import(${JSON.stringify(new URL('./tree-worker.ts', import.meta.url).href)})
    })`
  : `import(${JSON.stringify(new URL('./tree-worker.js', import.meta.url).href)})`
