/** An image that a model sees. */
export type ImagePart = {
  /** Of the bytes, whatever the source said. */
  readonly media_type: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'
  /** Base64 (RFC 4648, section 4), with padding. */
  readonly data: string
}

/** Bytes of an image. */
export function imageBytes({ data }: ImagePart): number {
  return (data.length / 4) * 3 - (data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0)
}
