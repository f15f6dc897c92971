import type { Caller } from '../agent/index.js'
import { callHost } from '../internal/web.js'
import { describeValue } from '../internal/options.js'
import type { Principal } from './access/auth.js'
import { Limiter } from './access/limits.js'
import { TenantQuotas } from './access/quotas.js'
import { accountOf } from './access/principal.js'
import type { FailedCall, ServiceConfig, ServiceEngine } from './config.js'
import { HeavyCalls } from './messages/heavy.js'
import { draining, isUnusableRun, toProblemError, type ProblemError } from './errors.js'
import type { StreamKind } from './monitoring/log.js'
import { Monitor } from './monitoring/monitor.js'
import type { Call } from './router.js'
import type { StreamEnd } from './streams/pump.js'

/** What dispatcher, routes and streams of one service share. */
export class ServiceContext {
  readonly engine: ServiceEngine
  readonly config: ServiceConfig
  /** Null when nothing is limited. */
  readonly limiter: Limiter | null
  /** Null when tenants have no limits. */
  readonly quotas: TenantQuotas | null
  /** Null when nothing is counted or logged. */
  readonly monitor: Monitor | null
  readonly heavy: HeavyCalls
  /** `draining` starts no more runs; `closed` answers public routes only. */
  state: 'open' | 'draining' | 'closed' = 'open'

  constructor(engine: ServiceEngine, config: ServiceConfig) {
    this.engine = engine
    this.config = config
    this.limiter = config.limits === null ? null : new Limiter(config.limits)
    const { tenantLimits } = config
    this.quotas = tenantLimits === null ? null : new TenantQuotas(engine, tenantLimits)
    const monitored = config.metrics || config.onLog !== null
    this.monitor = monitored ? new Monitor(engine, config.onLog) : null
    this.heavy = new HeavyCalls(config.streams.stuckMs)
  }

  /**
   * Whether a caller gets the exact bytes of files that hold secrets.
   *
   * @throws TypeError when the host's function returns something else, which must open nothing.
   */
  mayReadFiles(principal: Principal | null): boolean {
    const { readFiles } = this.config
    const may: unknown = typeof readFiles === 'function' ? readFiles(principal) : readFiles
    if (typeof may === 'boolean') return may
    // An error of an asynchronous rule would end the process.
    void Promise.resolve(may).catch(() => undefined)
    throw new TypeError(`readFiles must return true or false, got ${describeValue(may)}`)
  }

  /**
   * Does work that reads whole files, when it is the turn of the principal. The caller that it gets
   * has a signal, which ends the work when the connection closes.
   *
   * @throws `ProblemError` 429
   */
  async limited<T>(
    { request, principal, caller }: Pick<Call, 'request' | 'principal' | 'caller'>,
    work: (caller: Caller) => Promise<T>,
  ): Promise<T> {
    const account = accountOf(principal)
    return await this.heavy.limited(account, request, (signal) => work({ ...caller, signal }))
  }

  /**
   * Admits a stream. The caller reports its end, once, to the function returned.
   *
   * @throws `ProblemError` 429
   */
  openStream(
    kind: StreamKind,
    runId: string,
    principal: Principal | null,
  ): (end: StreamEnd) => void {
    const release = this.limiter?.admitStream(accountOf(principal))
    const count = this.monitor?.streamOpened(kind, runId)
    return (end) => {
      release?.()
      count?.(end)
    }
  }

  /**
   * The problem to answer a thrown value with. While the service closes, errors of the store are
   * expected: the caller should come back later.
   */
  problemFor(error: unknown, seesAll: boolean): ProblemError {
    const known = toProblemError(error, seesAll)
    const isExpected = known.status >= 500 && !isUnusableRun(known.code) && this.state !== 'open'
    return isExpected ? draining() : known
  }

  /** Passes an unexpected error to the host's `onError`, whose own errors are ignored. */
  report(error: unknown, call: FailedCall): void {
    // A failing log must not take the service down.
    callHost(() => this.config.onError(error, call), () => {})
  }
}
