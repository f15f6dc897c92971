import type { DeltaPayload, StreamItem } from 'runwright/agent'

interface Delta {
  readonly kind: string
  readonly run_id: string
  readonly iteration: number
  readonly ts: number
  readonly payload: DeltaPayload
}

export const deltaOf = (item: StreamItem): Delta => JSON.parse(item.json) as Delta
