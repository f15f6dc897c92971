import {
  isTerminal,
  MemoryStore,
  StoreError,
  type Claim,
  type EventPayloads,
  type LeftMessage,
  type LogEnd,
  type RunRecord,
  type RunStore,
  type SharedRuns,
  type SharedRunsListener,
} from 'runwright/agent'
import { handleOn } from './shared-memory.js'

/** Replaces an append; `store` appends as the process would. */
export type AppendHook = (
  records: readonly RunRecord[],
  store: () => Promise<void>,
) => Promise<void>

/** One process's store of a {@link SharedCluster}. */
export interface ClusterStore extends RunStore {
  readonly shared: SharedRuns
  /** Other processes may take over the runs of this one, which does not notice. */
  lapse(): void
  /** The claims of this process become doubtful, as when its lease cannot be renewed. */
  doubt(): void
  /** Settles when a claim of this process is next released. */
  released(): Promise<void>
}

interface Process {
  readonly held: Set<string>
  listener: SharedRunsListener | undefined
  onReleased: () => void
}

interface Left {
  readonly message: EventPayloads['user_message']
  answer: LeftMessage | null
}

/** Processes that share the runs in memory, without leases: a test decides when claims lapse. */
export class SharedCluster {
  readonly #memory = new MemoryStore()
  readonly #processes = new Set<Process>()
  /** The holder of each claimed run; null when the holder has lapsed. */
  readonly #holders = new Map<string, Process | null>()
  readonly #watchers = new Map<string, Set<(end: LogEnd) => void>>()
  /** Messages left for holders, by run; a holder answers by the function. */
  readonly #left = new Map<string, Map<string, Left>>()

  /** Opens the store of one more process. */
  async connect(hook: AppendHook = (_, store) => store()): Promise<ClusterStore> {
    await this.#memory.open()
    const own: Process = { held: new Set(), listener: undefined, onReleased: () => undefined }
    this.#processes.add(own)
    return Object.assign(Object.create(handleOn(this.#memory)) as RunStore, {
      shared: this.#sharedRuns(own),
      append: (runId: string, records: readonly RunRecord[]) =>
        hook(records, () => this.#append(own, runId, records)),
      lapse: () => {
        for (const [runId, holder] of this.#holders)
          if (holder === own) this.#holders.set(runId, null)
        for (const other of this.#processes) if (other !== own) other.listener?.claimable()
      },
      doubt: () => {
        for (const runId of own.held) own.listener?.doubtful(runId)
      },
      released: () => new Promise<void>((resolve) => (own.onReleased = resolve)),
    })
  }

  #sharedRuns(own: Process): SharedRuns {
    return {
      admit: async ({ created }) => {
        await this.#append(own, created.run_id, [created])
        this.#claimable()
        return { outcome: 'admitted' }
      },
      claim: (slots) => this.#claim(own, slots),
      release: async (runId) => {
        if (own.held.delete(runId) && this.#holders.get(runId) === own) this.#holders.delete(runId)
        own.onReleased()
        this.#claimable()
      },
      requestAbort: async (runId, by) => {
        this.#holders.get(runId)?.listener?.abortRequested(runId, { by })
      },
      leaveMessage: (runId, message) => this.#leave(runId, message),
      takeMessages: async (runId) =>
        [...(this.#left.get(runId)?.values() ?? [])]
          .filter(({ answer }) => answer === null)
          .map(({ message }) => message),
      answerMessage: async (runId, messageId, answer) => {
        const left = this.#left.get(runId)?.get(messageId)
        if (left !== undefined) left.answer = answer
      },
      listen: (listener) => void (own.listener = listener),
      watch: (runId, changed) => {
        const watchers = this.#watchers.get(runId) ?? new Set()
        this.#watchers.set(runId, watchers.add(changed))
        return () => watchers.delete(changed)
      },
      holds: (runId) => own.held.has(runId),
      confirm: async (runId) => {
        if (this.#holders.get(runId) !== own)
          throw new StoreError('ERR_AGENT_CLAIM_LOST', `run ${runId} is held by another process`)
      },
    }
  }

  async #claim(own: Process, slots: number): Promise<readonly Claim[]> {
    const { heads } = await this.#memory.list({ limit: 100, status: ['pending', 'running'] })
    const open = heads
      .map(({ details }) => details.run_id)
      .filter((runId) => (this.#holders.get(runId) ?? null) === null)
      .slice(0, slots)
    return open.map((runId) => {
      const abandoned = this.#holders.has(runId)
      this.#holders.set(runId, own)
      own.held.add(runId)
      const hasMessages = [...(this.#left.get(runId)?.values() ?? [])].some(
        ({ answer }) => answer === null,
      )
      return { runId, abandoned, abort: null, hasMessages, overdue: false }
    })
  }

  async #leave(runId: string, message: EventPayloads['user_message']): Promise<LeftMessage> {
    const all = this.#left.get(runId) ?? new Map<string, Left>()
    this.#left.set(runId, all)
    for (;;) {
      const known = all.get(message.message_id)
      if (known !== undefined && known.answer !== null) {
        all.delete(message.message_id)
        return known.answer
      }
      const head = await this.#memory.head(runId)
      if (head === null || isTerminal(head.details.status)) return 'ended'
      const holder = this.#holders.get(runId)
      if (holder === undefined) return 'unclaimed'
      if (known === undefined) all.set(message.message_id, { message, answer: null })
      if (holder === null) return 'kept'
      holder.listener?.messagesLeft(runId)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  async #append(own: Process, runId: string, records: readonly RunRecord[]): Promise<void> {
    const holder = this.#holders.get(runId)
    if (holder !== undefined && holder !== own) {
      own.held.delete(runId)
      own.listener?.lost(runId)
      throw new StoreError('ERR_AGENT_CLAIM_LOST', `run ${runId} is held by another process`)
    }
    await this.#memory.append(runId, records)
    const head = await this.#memory.head(runId)
    if (head === null) return
    const { last_seq, status } = head.details
    if (isTerminal(status) || status === 'awaiting_human') {
      this.#holders.delete(runId)
      own.held.delete(runId)
    }
    for (const changed of this.#watchers.get(runId) ?? []) changed(last_seq)
  }

  #claimable(): void {
    for (const { listener } of this.#processes) listener?.claimable()
  }
}
