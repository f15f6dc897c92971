/** The measured process: serves one contender, and carries out the orders of the parent. */
import type { Socket } from 'node:net'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { CONTENDERS } from './contenders.js'

/** A message of the parent. */
export type Order =
  | { readonly kind: 'broadcast'; readonly perTurn: number; readonly forMs: number }
  | { readonly kind: 'cpu' }
  | { readonly kind: 'heap' }

export type Answer = {
  readonly port?: number
  readonly deliveries?: number
  readonly wallMs?: number
  readonly cpuUs?: number
  readonly heapBytes?: number
  readonly rssBytes?: number
}

const contender = CONTENDERS[process.argv[2]!]!()
const open = new Set<Socket>()
contender.server.on('connection', (socket: Socket) => {
  open.add(socket)
  socket.on('close', () => open.delete(socket))
})

const TEXT = JSON.stringify({ kind: 'log', seq: 0, text: 'x'.repeat(300) }).slice(0, 298) + '"}'
const stalled = Number(process.env['STALLED'] ?? 0)

function cpuUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Broadcasts turn after turn, and waits for sockets that fall behind, except stalled ones. */
async function broadcast(perTurn: number, forMs: number): Promise<Answer> {
  const texts = Array.from({ length: perTurn }, () => TEXT)
  const [began, cpu] = [performance.now(), cpuUs()]
  let turns = 0
  while (performance.now() - began < forMs) {
    contender.broadcast(texts)
    turns++
    await nextTurn()
    for (const socket of open) {
      if (socket.writableLength < 65_536 || isStalled(socket)) continue
      while (socket.writableLength > 0) await nextTurn()
    }
  }
  for (const socket of open) {
    while (socket.writableLength > 0 && !isStalled(socket)) await nextTurn()
  }
  const wallMs = performance.now() - began
  return { deliveries: turns * perTurn * (open.size - stalled), wallMs, cpuUs: cpuUs() - cpu }
}

/** Whether `socket` is one of the first connections, which never read. */
function isStalled(socket: Socket): boolean {
  if (stalled === 0) return false
  let index = 0
  for (const one of open) {
    if (index++ >= stalled) return false
    if (one === socket) return true
  }
  return false
}

async function heap(): Promise<Answer> {
  for (let i = 0; i < 5; i++) {
    globalThis.gc?.()
    await nextTurn()
  }
  const { heapUsed, rss } = process.memoryUsage()
  return { heapBytes: heapUsed, rssBytes: rss }
}

async function obey(order: Order): Promise<Answer> {
  if (order.kind === 'broadcast') return await broadcast(order.perTurn, order.forMs)
  return order.kind === 'cpu' ? { cpuUs: cpuUs() } : await heap()
}

process.on('message', (order: Order) => {
  void obey(order).then((answer) => process.send!(answer))
})
process.on('disconnect', () => process.exit())
contender.server.listen(0, '127.0.0.1', () => {
  process.send!({ port: (contender.server.address() as AddressInfo).port })
})
