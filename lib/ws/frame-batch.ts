/**
 * The frames that a connection is owed in one turn of the event loop, as a path in a tree that all
 * connections share: whoever is sent the same frames in the same order walks the same path, so the
 * frames of a turn are joined once, and every such connection writes the same buffer once.
 *
 *   turn ─ A ─ B ─ C      1000 subscribers hold node C: one join of A B C, one write each
 *              └── D      another was sent A B D
 */
export class Batch {
  readonly #parent: Batch | null
  readonly #piece: Buffer
  /** Octets of this piece and all before it. */
  readonly bytes: number
  readonly #children: Batch[] = []
  #joined: readonly Buffer[] | null = null

  private constructor(parent: Batch | null, piece: Buffer) {
    this.#parent = parent
    this.#piece = piece
    this.bytes = (parent === null ? 0 : parent.bytes) + piece.length
  }

  /** The node for `piece` behind this one: the same object for everybody who asks. */
  append(piece: Buffer): Batch {
    return Batch.#step(this.#children, this, piece)
  }

  /** What to write: one buffer, or a few when the whole is too large to be worth copying. */
  join(): readonly Buffer[] {
    return (this.#joined ??= this.#gather())
  }

  #gather(): readonly Buffer[] {
    const pieces: Buffer[] = []
    for (let node: Batch | null = this; node !== null; node = node.#parent) pieces.push(node.#piece)
    pieces.reverse()
    return this.bytes <= MAX_JOINED_BYTES ? [Buffer.concat(pieces, this.bytes)] : pieces
  }

  /** A first piece, in the tree of this turn. */
  static start(piece: Buffer): Batch {
    return Batch.#step(firstPieces, null, piece)
  }

  /** Ends the turn: nothing is shared with what comes later. */
  static endTurn(): void {
    if (firstPieces.length > 0) firstPieces = []
  }

  static #step(siblings: Batch[], parent: Batch | null, piece: Buffer): Batch {
    const oldest = Math.max(0, siblings.length - MAX_SEARCHED)
    for (let i = siblings.length - 1; i >= oldest; i--) {
      if (siblings[i]!.#piece === piece) return siblings[i]!
    }
    const added = new Batch(parent, piece)
    siblings.push(added)
    return added
  }
}

/** Above this, copying costs more than handing the kernel a list. */
const MAX_JOINED_BYTES = 65_536
/** How many different continuations of one node are looked through. */
const MAX_SEARCHED = 8

let firstPieces: Batch[] = []
