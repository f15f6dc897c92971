/**
 * All of runwright as four namespaces. Each is also an entry point of its own (`runwright/http`,
 * `/ws`, `/agent`, `/server`), which loads less.
 *
 * @module
 */
export * as agent from './agent/index.js'
export * as http from './http/index.js'
export * as server from './server/index.js'
export * as ws from './ws/index.js'
