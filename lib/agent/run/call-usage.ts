/**
 * What model calls use, as the log has it.
 *
 * @module
 */
import { ModelError } from '../errors.js'
import type { EventPayloads, RecordDraft } from '../events.js'
import type { LogWriter } from '../log/writer.js'
import { chargeFor } from '../models/pricing.js'
import { sanitizeUsage } from '../models/usage.js'
import type { CallUsage, ModelPrices } from '../usage.js'

/** Whose call it was, at which price. */
export interface Payer {
  readonly iteration: number
  /** The name of the model for the log; null where no other model can take over. */
  readonly model: string | null
  readonly prices: ModelPrices | null
  readonly purpose: EventPayloads['llm_usage']['purpose']
}

/** The record of what a call has used. `failed`: it gave no usable turn. */
export function usageRecord(
  { iteration, model, prices, purpose }: Payer,
  reported: CallUsage,
  failed = false,
): RecordDraft {
  const usage = sanitizeUsage(reported)
  const more = { cost_usd: chargeFor(usage, prices), purpose }
  // Without a spread: see `turnPayload()` of the worker's turns.
  const payload = Object.assign(usage, more)
  if (model !== null) Object.assign(payload, { model_name: model })
  return { kind: 'llm_usage', iteration, payload: failed ? { ...payload, failed } : payload }
}

/** Follows one call, to note what it has used if it fails. */
export class FailedCall {
  #used: () => CallUsage | null = () => null

  /** For the model: see `ModelRequest.onUsage`. */
  readonly onUsage = (used: () => CallUsage | null): void => {
    this.#used = used
  }

  /**
   * Notes what the call has used; false for nothing. Once it is in the log, a crash cannot count it
   * again: the next attempt is another call.
   */
  note(log: LogWriter, payer: Payer, error: unknown, signal: AbortSignal): boolean {
    const used = error instanceof ModelError ? error.usage : signal.aborted ? this.#asked() : null
    // Nothing can be noted for a run that another process has taken over.
    if (used === undefined || used === null || log.hasFailed) return false
    log.note(usageRecord(payer, used, true))
    return true
  }

  /** A model of the host may throw anything. */
  #asked(): CallUsage | null {
    try {
      return this.#used()
    } catch {
      return null
    }
  }
}
