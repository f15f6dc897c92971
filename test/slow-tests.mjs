/**
 * The tests that `npm test` leaves out and `npm run test:all` runs: each takes over two seconds
 * alone on a machine with two cores, and the reason says why it cannot take less.
 *
 * @type {readonly { file: string, name: string, seconds: number, reason: string }[]}
 */
export const slowTests = []

/**
 * Files that do not share a process with others, and why.
 *
 * @type {Readonly<Record<string, string>>}
 */
export const ownProcess = {
  'test/http/built.test.ts': 'starts many children beside a server in the same process',
}
