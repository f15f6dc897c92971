import type { ChildRole } from '../events.js'
import type { DelegateRequest } from '../tool.js'

/** A run that is to be started, with the id under which the log of its parent has it. */
export interface NewChild {
  readonly runId: string
  readonly role: ChildRole
  /** Of an attempt: its model. Of a delegate: what it is to do. */
  readonly asked: { readonly model_name: string } | DelegateRequest
}
