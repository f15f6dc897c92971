/**
 * Everything that is read from the environment, in one place. Nothing is read at import, and
 * nothing at all when a client's `trustEnv` is false.
 *
 * @module
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { isNoProxy, parseNoProxy, type NoProxyRule } from './no-proxy.js'

type Environment = Readonly<Record<string, string | undefined>>

/** Which proxy the environment names for a URL. */
export interface ProxyEnvironment {
  /** The URL of the proxy for `url`, or null for a direct connection. */
  proxyFor(url: URL): string | null
}

/**
 * HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY; names in lower case win. HTTP_PROXY in upper
 * case is ignored under CGI, where a request header can set it.
 */
export function proxiesFromEnvironment(env: Environment = process.env): ProxyEnvironment | null {
  const read = (name: string): string | null => {
    // One in lower case wins, also when it is empty: that switches off what is set in upper case.
    const lower = env[name]
    if (lower !== undefined) return lower === '' ? null : lower
    if (name === 'http_proxy' && env['REQUEST_METHOD'] !== undefined) return null
    const upper = env[name.toUpperCase()]
    return upper === undefined || upper === '' ? null : upper
  }
  const all = read('all_proxy')
  const http = read('http_proxy') ?? all
  const https = read('https_proxy') ?? all
  if (http === null && https === null) return null
  const rules: NoProxyRule[] = parseNoProxy(read('no_proxy') ?? '')
  return {
    proxyFor: (url) => {
      const proxy = url.protocol === 'https:' ? https : http
      if (proxy === null || isNoProxy(url, rules)) return null
      return /^[a-z][a-z0-9+.-]*:\/\//i.test(proxy) ? proxy : `http://${proxy}`
    },
  }
}

/** Certificates of SSL_CERT_FILE, or of all files of SSL_CERT_DIR; null when neither is set. */
export function certificatesFromEnvironment(env: Environment = process.env): string[] | null {
  const file = env['SSL_CERT_FILE']
  if (file !== undefined && file !== '') return [readFileSync(file, 'utf8')]
  const folder = env['SSL_CERT_DIR']
  if (folder === undefined || folder === '') return null
  return certificatesIn(folder)
}

/** The certificates of the files in a folder. */
export function certificatesIn(folder: string): string[] {
  const found: string[] = []
  for (const name of readdirSync(folder)) {
    try {
      const text = readFileSync(join(folder, name), 'utf8')
      if (text.includes('-----BEGIN CERTIFICATE-----')) found.push(text)
    } catch {
      // A folder, or a dangling link, as such places often have.
    }
  }
  return found
}

/** The file to which TLS keys are written for tools that read captured traffic. */
export function keyLogFile(env: Environment = process.env): string | null {
  const file = env['SSLKEYLOGFILE']
  return file === undefined || file === '' ? null : file
}

/** The path of the netrc file: NETRC, or ~/.netrc; null when there is no such file. */
export function netrcFile(env: Environment = process.env): string | null {
  const named = env['NETRC']
  const file = named !== undefined && named !== '' ? named : join(homedir(), '.netrc')
  return existsSync(file) ? file : null
}
