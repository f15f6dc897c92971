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
  /** Messages that slow readers lost by the policies `drop` and `coalesce`: `send` said `dropped`. */
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
