import { Receiver, type ReceiverEvents, type ReceiverLimits } from './receiver.js'
import type { Inflater } from './inflater.js'
import type { Role } from './frame.js'

/** Receivers that wait for a connection with input, at most. */
const MOST_AT_REST = 16

/** Receivers of the connections that have input, which are few at any one time. */
export class ReceiverPool<Connection> {
  readonly #limits: ReceiverLimits
  readonly #role: Role
  readonly #atRest: Receiver<Connection>[] = []

  constructor(limits: ReceiverLimits, role: Role) {
    this.#limits = limits
    this.#role = role
  }

  /** One for a connection that received so many `controls` lately; see {@link Receiver.serve}. */
  take(
    connection: Connection,
    events: ReceiverEvents<Connection>,
    controls: number,
  ): Receiver<Connection> {
    const receiver = this.#atRest.pop() ?? this.create(connection, events, null)
    return receiver.serve(connection, controls)
  }

  /** Takes one back, which must be at rest. */
  give(receiver: Receiver<Connection>): void {
    if (this.#atRest.length < MOST_AT_REST) this.#atRest.push(receiver)
  }

  /** One that stays with its connection, whose inflater it has. */
  create(
    connection: Connection,
    events: ReceiverEvents<Connection>,
    inflater: Inflater | null,
  ): Receiver<Connection> {
    return new Receiver(connection, events, this.#limits, inflater, this.#role)
  }
}
