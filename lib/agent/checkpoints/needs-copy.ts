import { isTerminal } from '../events.js'
import type { RunDetails } from '../run-details.js'

/** May the copy of an isolated run still be needed? */
export function needsCopy({ role, status, changes }: RunDetails): boolean {
  if (changes === 'applied' || changes === 'discarded') return false
  // What an attempt or a delegate changed is brought from what it has stored.
  return role === 'root' || !isTerminal(status)
}
