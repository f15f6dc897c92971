/**
 * The code of the worker that copies folders, as text. The build replaces this module by the
 * compiled worker itself, so that a bundled program needs no file beside it. In the source it is an
 * import of the worker's file; for TypeScript the worker registers the loader first, since it does
 * not inherit that of the thread that starts it.
 */
export const COPY_WORKER_CODE: string = import.meta.url.endsWith('.ts')
  ? `import(${JSON.stringify(import.meta.resolve('tsx/esm/api'))}).then((tsx) => {
      tsx.register()
      return import(${JSON.stringify(new URL('./copy-worker.ts', import.meta.url).href)})
    })`
  : `import(${JSON.stringify(new URL('./copy-worker.js', import.meta.url).href)})`
