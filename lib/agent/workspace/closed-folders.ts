import { isInside, realOrAsIs } from './paths.js'

/**
 * The closed folders for tools that work in a copy: it lies in one of them, and nothing else of
 * that one can be reached from it.
 */
export async function closedInCopy(
  root: string,
  closed: readonly string[],
): Promise<readonly string[]> {
  const real = await Promise.all(closed.map(realOrAsIs))
  return real.filter((folder) => !isInside(root, folder))
}
