/**
 * Marks what was searched for, by the CSS Custom Highlight API: the document is not changed, so
 * that focus and selection stay. Browsers without it find, but do not mark.
 */

/** Marks of one document, at most. */
const MOST = 2_000

/**
 * @param {Element} root
 * @param {string} words in lower case; empty for no marks
 * @param {'found' | 'found-in-output'} [name] of the marks, whose colours the style sheet has
 */
export function highlight(root, words, name = 'found') {
  if (!('highlights' in CSS)) return
  const ranges = words === '' ? [] : rangesIn(root, words)
  CSS.highlights.set(name, new Highlight(...ranges))
}

/**
 * @param {Element} root
 * @param {string} words
 */
function rangesIn(root, words) {
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT)
  /** @type {Range[]} */
  const ranges = []
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
    const { data } = /** @type {Text} */ (node)
    const text = data.toLowerCase()
    // Of some letters the lower case is longer: places would be wrong.
    if (text.length !== data.length) continue
    for (let at = text.indexOf(words); at !== -1; at = text.indexOf(words, at + words.length)) {
      if (ranges.length === MOST) return ranges
      const range = new Range()
      range.setStart(node, at)
      range.setEnd(node, at + words.length)
      ranges.push(range)
    }
  }
  return ranges
}
