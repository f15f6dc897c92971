/** What a worker uses of the library; bundles of earlier versions export the same names. */
export { RunEngine } from '../../../lib/agent/engine.js'
export { PostgresStore } from '../../../lib/agent/stores/postgres/postgres-store.js'
export { defineTool } from '../../../lib/agent/tools/define.js'
export { NO_USAGE } from '../../../lib/agent/usage.js'
