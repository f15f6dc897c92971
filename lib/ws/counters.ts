/**
 * What the connections of one server or client have done so far: plain numbers that only grow, for
 * metrics. The object is live.
 */
export interface TrafficCounters {
  /** Messages received in full. */
  messagesReceived: number
  /** Bytes read from the transports, without opening handshakes and TLS. */
  bytesReceived: number
  /** Messages passed on to the transports. */
  messagesSent: number
  /** Bytes passed on to the transports, without opening handshakes and TLS. */
  bytesSent: number
  /** Messages for which `send` returned `dropped`, by the policies `drop` and `coalesce`. */
  messagesDropped: number
  /** Messages that newer ones with the same key replaced, by the policy `coalesce`. */
  messagesReplaced: number
  /** Connections ended with 1013 by the policy `close`. */
  slowReaders: number
  /** Pings sent to see whether a peer is there. */
  pingsSent: number
  /** Those that were followed by an interval without a byte from the peer. */
  pingsUnanswered: number
  /** Connections ended because their peers sent nothing for `keepAlive.timeoutMs`. */
  peersLost: number
}

/** Counters of a new server or client. */
export function newCounters(): TrafficCounters {
  return {
    messagesReceived: 0,
    bytesReceived: 0,
    messagesSent: 0,
    bytesSent: 0,
    messagesDropped: 0,
    messagesReplaced: 0,
    slowReaders: 0,
    pingsSent: 0,
    pingsUnanswered: 0,
    peersLost: 0,
  }
}

/** Opening handshakes that got no connection, by the reason. */
export interface RefusedCounters {
  /** They broke a rule of the standard or `maxHeaders`: 400, 405, 426, 431 or 505. */
  handshake: number
  /** Pages of other origins: 403. */
  origin: number
  /** By `authorize`. */
  authorize: number
  /** Too many connections, the server was closing, or `authorize` took too long: 503. */
  unavailable: number
  /** `authorize` threw, or returned what cannot be sent: 500. */
  error: number
  /** The client disconnected before it had an answer. */
  gone: number
}

/** The counters of a server. All but `connectionsOpen` only grow. */
export interface WebSocketServerCounters extends TrafficCounters {
  /** Connections that are not closed, including those in a closing handshake. */
  connectionsOpen: number
  /** All connections so far. */
  connectionsTotal: number
  readonly refused: RefusedCounters
}

/** Counters of a new server. */
export function newServerCounters(): WebSocketServerCounters {
  return {
    ...newCounters(),
    connectionsOpen: 0,
    connectionsTotal: 0,
    refused: { handshake: 0, origin: 0, authorize: 0, unavailable: 0, error: 0, gone: 0 },
  }
}
