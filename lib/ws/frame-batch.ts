/**
 * The frames to be written to a connection at the end of this turn of the event loop, as a node in
 * a tree that all connections share. Connections that are sent the same frames in the same order
 * reach the same node, so those frames are joined once and each connection makes one write.
 *
 *   turn ─ A ─ B ─ C      1000 subscribers are at node C: one join of A B C, one write each
 *              └── D      one connection was sent A B D
 */
export class FrameBatch {
  readonly #parent: FrameBatch | null
  readonly #piece: Buffer
  /** Total size of this piece and all before it. */
  readonly bytes: number
  readonly #children: FrameBatch[] = []
  #joined: readonly Buffer[] | null = null

  private constructor(parent: FrameBatch | null, piece: Buffer) {
    this.#parent = parent
    this.#piece = piece
    this.bytes = (parent === null ? 0 : parent.bytes) + piece.length
  }

  /** The node for `piece` after this one: the same object in each call with that `piece`. */
  append(piece: Buffer): FrameBatch {
    return FrameBatch.#step(this.#children, this, piece)
  }

  /** What to write: one buffer, or the pieces if together they are too large to copy. */
  join(): readonly Buffer[] {
    return (this.#joined ??= this.#gather())
  }

  #gather(): readonly Buffer[] {
    const pieces: Buffer[] = []
    for (let node: FrameBatch | null = this; node !== null; node = node.#parent) {
      pieces.push(node.#piece)
    }
    pieces.reverse()
    return this.bytes <= MAX_JOINED_BYTES ? [Buffer.concat(pieces, this.bytes)] : pieces
  }

  /** The node for the first piece of this turn. */
  static start(piece: Buffer): FrameBatch {
    return FrameBatch.#step(firstPieces, null, piece)
  }

  /** Drops the tree: later frames start a new one. */
  static endTurn(): void {
    if (firstPieces.length > 0) firstPieces = []
  }

  static #step(siblings: FrameBatch[], parent: FrameBatch | null, piece: Buffer): FrameBatch {
    const oldest = Math.max(0, siblings.length - MAX_SEARCHED)
    for (let i = siblings.length - 1; i >= oldest; i--) {
      if (siblings[i]!.#piece === piece) return siblings[i]!
    }
    const added = new FrameBatch(parent, piece)
    siblings.push(added)
    return added
  }
}

/** Above this, copying costs more than a vectored write. */
const MAX_JOINED_BYTES = 65_536
/** How many children of a node, newest first, are searched for a piece. */
const MAX_SEARCHED = 8

/** The tree of the present turn. */
let firstPieces: FrameBatch[] = []
