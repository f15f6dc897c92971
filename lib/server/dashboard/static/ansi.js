/**
 * The colours of a program's output. Pure, and linear whatever the text.
 *
 * 1. SGR sequences (ECMA-48, 8.3.117) become styles: 16 colours, of which those of the palette of
 *    256 and true colours are the nearest, so that all of them can be read on either background.
 * 2. What only tidies the rest of a line or the character set is left out.
 * 3. Every other control stays, and is shown as an escape: output cannot hide what it says.
 *    Concealed and blinking text is plain text.
 */

/**
 * `fg` and `bg`: a colour from 0 to 15, or null for that of the page.
 *
 * @typedef {{
 *   readonly fg: number | null,
 *   readonly bg: number | null,
 *   readonly bold: boolean,
 *   readonly dim: boolean,
 *   readonly italic: boolean,
 *   readonly underline: boolean,
 *   readonly strike: boolean,
 *   readonly inverse: boolean,
 * }} Style
 * @typedef {{ readonly text: string, readonly style: Style }} Run
 */

/** @type {Style} */
export const PLAIN = {
  fg: null, bg: null, bold: false, dim: false, italic: false, underline: false, strike: false,
  inverse: false,
}

/** A style, the end of a line, the rest of a line erased, or the usual character set. */
const SEQUENCE = /\x1b(?:\[([\d;:]{0,128})m|\[0?K|\(B)|\r?\n/g
/** Parameters of one sequence. */
const MOST_PARAMETERS = 64

/**
 * The lines of a text, each in pieces of one style. The style goes on from line to line.
 *
 * @param {string} text
 * @returns {Run[][]} at least one line
 */
export function linesOf(text) {
  /** @type {Run[][]} */
  const lines = [[]]
  let style = PLAIN
  let from = 0
  const take = (/** @type {number} */ to) => {
    if (to === from) return
    const line = /** @type {Run[]} */ (lines.at(-1))
    const last = line.at(-1)
    const part = text.slice(from, to)
    if (last?.style === style) line[line.length - 1] = { text: last.text + part, style }
    else line.push({ text: part, style })
  }
  for (const match of text.matchAll(SEQUENCE)) {
    take(match.index)
    from = match.index + match[0].length
    if (match[1] !== undefined) style = styled(style, match[1])
    else if (match[0].endsWith('\n')) lines.push([])
  }
  take(text.length)
  return lines
}

/** The text alone, as `linesOf()`. @param {string} text */
export function withoutStyles(text) {
  return text.replace(SEQUENCE, (found) => (found.endsWith('\n') ? '\n' : ''))
}

/**
 * @param {Style} style
 * @param {string} parameters such as `1;38;5;208`
 * @returns {Style} the same object when nothing changes
 */
export function styled(style, parameters) {
  // Colons join the parts of one parameter: `38:2::10:20:30`, or as some programs have it without
  // the colour space.
  const all = parameters.split(';', MOST_PARAMETERS)
  /** @type {Style} */
  let next = style
  for (let i = 0; i < all.length; i++) {
    const [code, ...parts] = (all[i] ?? '').split(':', MOST_PARAMETERS).map(Number)
    if (code === 38 || code === 48) {
      const isJoined = parts.length > 0
      const given = isJoined ? parts : all.slice(i + 1, i + 5).map(Number)
      const [colour, used] = colourOf(given, isJoined)
      if (!isJoined) i += used
      if (colour !== null) next = { ...next, [code === 38 ? 'fg' : 'bg']: colour }
    } else if (code === 4 && parts[0] === 0) next = { ...next, underline: false }
    else next = changed(next, code ?? 0)
  }
  return same(style, next) ? style : next
}

/**
 * @param {readonly number[]} given what follows 38 or 48
 * @param {boolean} isJoined by colons: then there may be a colour space before red
 * @returns {[colour: number | null, used: number]}
 */
function colourOf(given, isJoined) {
  if (given[0] === 5) return [nearest(paletteOf(given[1] ?? 0)), 2]
  if (given[0] !== 2) return [null, 1]
  const [r = 0, g = 0, b = 0] = isJoined && given.length > 4 ? given.slice(2) : given.slice(1)
  return [nearest([r, g, b]), 4]
}

/**
 * @param {Style} style
 * @param {number} code
 * @returns {Style}
 */
function changed(style, code) {
  if (code >= 30 && code <= 37) return { ...style, fg: code - 30 }
  if (code >= 40 && code <= 47) return { ...style, bg: code - 40 }
  if (code >= 90 && code <= 97) return { ...style, fg: code - 82 }
  if (code >= 100 && code <= 107) return { ...style, bg: code - 92 }
  switch (code) {
    case 0: return PLAIN
    case 1: return { ...style, bold: true }
    case 2: return { ...style, dim: true }
    case 3: return { ...style, italic: true }
    case 4: case 21: return { ...style, underline: true }
    case 7: return { ...style, inverse: true }
    case 9: return { ...style, strike: true }
    case 22: return { ...style, bold: false, dim: false }
    case 23: return { ...style, italic: false }
    case 24: return { ...style, underline: false }
    case 27: return { ...style, inverse: false }
    case 29: return { ...style, strike: false }
    case 39: return { ...style, fg: null }
    case 49: return { ...style, bg: null }
    default: return style
  }
}

/**
 * @param {Style} a
 * @param {Style} b
 */
function same(a, b) {
  return /** @type {(keyof Style)[]} */ (Object.keys(PLAIN)).every((key) => a[key] === b[key])
}

/** Red, green and blue of the 16 colours of xterm. @type {readonly (readonly number[])[]} */
const SIXTEEN = [
  [0, 0, 0], [205, 0, 0], [0, 205, 0], [205, 205, 0],
  [0, 0, 238], [205, 0, 205], [0, 205, 205], [229, 229, 229],
  [127, 127, 127], [255, 0, 0], [0, 255, 0], [255, 255, 0],
  [92, 92, 255], [255, 0, 255], [0, 255, 255], [255, 255, 255],
]

/** A colour of the palette of 256. @param {number} index @returns {readonly number[]} */
function paletteOf(index) {
  if (!(index >= 0 && index <= 255)) return [127, 127, 127]
  if (index < 16) return SIXTEEN[index] ?? []
  if (index > 231) return Array.from({ length: 3 }, () => 8 + (index - 232) * 10)
  const level = (/** @type {number} */ of) => (of === 0 ? 0 : 55 + of * 40)
  const cube = index - 16
  return [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level)
}

/**
 * The nearest of the 16 colours: by its hue, or by its lightness when it has hardly any.
 *
 * @param {readonly number[]} colour red, green and blue from 0 to 255
 */
function nearest(colour) {
  const [r = 0, g = 0, b = 0] = colour.map((part) => (part >= 0 && part <= 255 ? part : 127))
  const most = Math.max(r, g, b)
  const range = most - Math.min(r, g, b)
  if (range < 40) return most < 64 ? 0 : most < 170 ? 8 : most < 240 ? 7 : 15
  const sixth =
    most === r ? ((g - b) / range + 6) % 6 : most === g ? (b - r) / range + 2 : (r - g) / range + 4
  // Red, yellow, green, cyan, blue, magenta.
  const hue = [1, 3, 2, 6, 4, 5][Math.round(sixth) % 6] ?? 7
  return most > 215 ? hue + 8 : hue
}

/**
 * The classes of a style; empty for plain text.
 *
 * @param {Style} style
 * @returns {string}
 */
export function classesOf({ fg, bg, bold, dim, italic, underline, strike, inverse }) {
  const [front, back] = inverse ? [bg, fg] : [fg, bg]
  const classes = [
    front !== null && `fg-${front}`,
    back !== null && `bg-${back}`,
    inverse && back === null && 'inverse',
    bold && 'bold',
    dim && front === null && !inverse && 'dim',
    italic && 'italic',
    underline && 'underline',
    strike && 'strike',
  ]
  return classes.filter(Boolean).join(' ')
}
