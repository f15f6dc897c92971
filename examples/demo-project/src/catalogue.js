/** Books whose title or author contains the words, whatever their case. */
export function search(books, words) {
  const wanted = words.trim().toLowerCase()
  return books.filter(({ title, author }) => {
    return title.toLowerCase().includes(wanted) && author.toLowerCase().includes(wanted)
  })
}

/** One page of a list; pages count from 1. */
export function page(list, number, size) {
  const start = (number - 1) * size
  return list.slice(start, start + size)
}

/** Number of pages that a list fills. */
export function pageCount(list, size) {
  return Math.ceil(list.length / size)
}
