import type { TestContext } from 'node:test'
import { Project } from '../../helpers/isolated.js'

const files = {
  'a.txt': 'a',
  'b/c.txt': 'c',
  '.env': 'KEY=1',
  'node_modules/x/index.js': 'x',
}

/** A small project. */
export function project(t: TestContext): Project {
  return new Project(t).write(files)
}
