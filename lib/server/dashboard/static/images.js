/**
 * Images that a model has seen. They are fetched with the key when they are opened, and shown as
 * blobs of their own type, which never is that of a document.
 */
import { messageOf, send } from './api.js'
import { h } from './dom.js'
import { plural, size } from './format.js'

/** @typedef {import('../types.js').ImageInfo} ImageInfo */

/** What the page shows, whatever the service says. */
const TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

/**
 * @param {string} runId
 * @param {number} seq of the event
 * @param {readonly (ImageInfo | null)[]} images null where nothing is known of one
 */
export function imagesView(runId, seq, images) {
  const list = h('div.images')
  const names = images.map((image) => image?.name ?? '').filter((name) => name !== '')
  const title = [plural(images.length, 'image'), ...names].join(' · ')
  const open = () => {
    if (!details.open || list.childElementCount > 0) return
    images.forEach((image, index) => list.append(imageView(runId, seq, image, index)))
  }
  const details = h('details.images-box', { ontoggle: open }, h('summary', title), list)
  return details
}

/**
 * @param {string} runId
 * @param {number} seq
 * @param {ImageInfo | null} image
 * @param {number} index
 */
function imageView(runId, seq, image, index) {
  const name = image?.name ?? `Image ${index + 1}`
  const facts = image === null ? name : `${name} · ${size(image.bytes)}`
  const box = h('figure', h('figcaption.hint', facts))
  void load(`api/runs/${runId}/images?event=${seq}&index=${index}`).then(
    (url) => {
      const shown = h('img', { alt: name, decoding: 'async', src: url })
      // The picture is decoded by then, and keeps no memory but its own.
      shown.addEventListener('load', () => URL.revokeObjectURL(url))
      shown.addEventListener('error', () => {
        URL.revokeObjectURL(url)
        shown.replaceWith(h('p.error-text', 'This is no image that the browser can show.'))
      })
      box.prepend(shown)
    },
    (error) => box.prepend(h('p.error-text', messageOf(error))),
  )
  return box
}

/** @param {string} path */
async function load(path) {
  const response = await send('GET', path, { headers: { Accept: 'image/*' }, quiet: true })
  const type = response.headers.get('Content-Type') ?? ''
  const blob = new Blob([await response.arrayBuffer()], {
    type: TYPES.has(type) ? type : 'application/octet-stream',
  })
  return URL.createObjectURL(blob)
}

/** The images of the request of a run; hidden without any. */
export class RequestImages {
  element = h('section.request-images', { hidden: true, 'aria-label': 'Images of the request' })

  /** @param {import('../types.js').RunDetails} details */
  update({ run_id, images }) {
    if (images === 0 || !this.element.hidden) return
    this.element.hidden = false
    this.element.append(imagesView(run_id, 1, Array.from({ length: images }, () => null)))
  }
}
