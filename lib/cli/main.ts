#!/usr/bin/env node
/**
 * Loads the program, which an old Node cannot read: the build puts a check of its version above.
 *
 * @module
 */
await import('./program.js')
