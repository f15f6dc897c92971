/** One link of a Link header (RFC 8288): its target as it was written, and its parameters. */
export interface Link {
  /** The target, relative or absolute as the server wrote it. */
  readonly url: string
  /** The relation type, when there is one. */
  readonly rel?: string
  readonly [parameter: string]: string | undefined
}

/** What a link is found by: its relation types, which compare without case (RFC 8288, section 3.3). */
export function relationsOf({ rel, url }: Link): readonly string[] {
  const relations = (rel ?? '').toLowerCase().split(/\s+/).filter((relation) => relation !== '')
  return relations.length === 0 ? [url] : relations
}

/** Parses the members of a Link header. Malformed members are skipped. */
export function parseLinks(header: string): Link[] {
  const links: Link[] = []
  const member = /<([^>]*)>((?:\s*;\s*[^\s=;,]+(?:\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^",;\s]*))?)*)/g
  for (const [, url, rest] of header.matchAll(member)) {
    const link: Record<string, string> & { url: string } = { url: url!.trim() }
    const parameter = /;\s*([^\s=;,]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",;\s]*)))?/g
    for (const [, name, quoted, plain] of rest!.matchAll(parameter)) {
      const key = name!.toLowerCase()
      if (!(key in link)) link[key] = quoted?.replace(/\\(.)/g, '$1') ?? plain ?? ''
    }
    links.push(link)
  }
  return links
}
