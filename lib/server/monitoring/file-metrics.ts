import type { AgentEvent } from '../../agent/index.js'
import { Counter, type Metric } from './metrics.js'

/** Counts what runs, and people after them, do to folders and conversations. */
export class FileMetrics {
  readonly #checkpoints = new Counter(
    'runwright_checkpoints_total',
    'Checkpoints of folders, by the reason for them.',
    ['reason'],
  )
  readonly #bytes = new Counter(
    'runwright_checkpoint_bytes_total',
    'Bytes of content that checkpoints stored and that were not stored before.',
  )
  readonly #operations = new Counter(
    'runwright_file_operations_total',
    'Finished restores and applies; incomplete ones left alone what others changed meanwhile.',
    ['operation', 'outcome'],
  )
  readonly #decisions = new Counter(
    'runwright_changes_decided_total',
    'What became of the changes of isolated runs.',
    ['changes'],
  )
  readonly #isolated = new Counter(
    'runwright_isolated_runs_total',
    'Isolated runs created, but for attempts and delegates.',
  )
  readonly #forks = new Counter('runwright_forks_total', 'Runs forked from others.')
  readonly #messages = new Counter('runwright_messages_total', 'Messages to runs.')

  readonly all: readonly Metric[] = [
    this.#checkpoints,
    this.#bytes,
    this.#operations,
    this.#decisions,
    this.#isolated,
    this.#forks,
    this.#messages,
  ]

  count({ kind, payload }: AgentEvent): void {
    if (kind === 'checkpoint') {
      this.#checkpoints.add(1, payload.reason)
      this.#bytes.add(payload.new_bytes)
    } else if (kind === 'files_changed') {
      const outcome = payload.skipped.length === 0 ? 'done' : 'incomplete'
      this.#operations.add(1, payload.operation, outcome)
    } else if (kind === 'changes_decided') this.#decisions.add(1, payload.changes)
    else if (kind === 'user_message') this.#messages.add(1)
    else if (kind === 'run_created') {
      const { role, workspace } = payload
      if (workspace === 'isolated' && role === undefined) this.#isolated.add(1)
      if (payload.forked_from !== undefined) this.#forks.add(1)
    }
  }
}
