/** The module that `routes.ts` makes of the server's table of events. */
import type { AgentEvent } from '../../agent/events.js'

interface EventFacts {
  /** Names the entry in the timeline; null: the event has no entry of its own. */
  readonly label: string | null
  /** When to read the details again that have changed. Absent: with a later event. */
  readonly refresh?: 'soon' | 'now'
}

/** A service of a later version sends kinds that the page does not know yet. */
export const EVENTS: { readonly [K in AgentEvent['kind']]?: EventFacts }
