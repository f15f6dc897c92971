/** One link of a Link header (RFC 8288), with its parameters by name. */
export interface Link {
  /** The target as the server wrote it, relative or absolute. */
  readonly url: string
  /** The relation types, separated by spaces. */
  readonly rel?: string
  readonly [parameter: string]: string | undefined
}

/** Relation types of a link, in lower case (RFC 8288, section 3.3); its target if it has none. */
export function relationsOf({ rel, url }: Link): readonly string[] {
  const relations = (rel ?? '').toLowerCase().split(/\s+/).filter((relation) => relation !== '')
  return relations.length === 0 ? [url] : relations
}

/** Parses the members of a Link header. Malformed members are skipped. */
export function parseLinks(header: string): Link[] {
  const links: Link[] = []
  const target = /<([^<>]*)>/g
  for (let found = target.exec(header); found !== null; found = target.exec(header)) {
    const link: Record<string, string> & { url: string } = { url: found[1]!.trim() }
    const parameter = /\s*;\s*([^\s=;,]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",;\s]*)))?/gy
    parameter.lastIndex = target.lastIndex
    for (const [part, name, quoted, plain] of header.matchAll(parameter)) {
      target.lastIndex += part.length
      const key = name!.toLowerCase()
      if (!(key in link)) link[key] = quoted?.replace(/\\(.)/g, '$1') ?? plain ?? ''
    }
    links.push(link)
  }
  return links
}
