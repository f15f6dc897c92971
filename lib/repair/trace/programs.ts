/**
 * The recorders, as texts; the build puts the files' contents here.
 *
 * @module
 */
import { readFileSync } from 'node:fs'

export const RECORDER: string = readFileSync(new URL('./recorder.cjs', import.meta.url), 'utf8')
export const RUNNERS: string = readFileSync(new URL('./runners.cjs', import.meta.url), 'utf8')
export const SITECUSTOMIZE: string = readFileSync(
  new URL('./sitecustomize.py', import.meta.url), 'utf8',
)
