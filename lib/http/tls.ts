import { appendFileSync, readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'
import type { SecureContext } from 'node:tls'
import { certificatesFromEnvironment, certificatesIn, keyLogFile } from './environment.js'

/** Options of TLS that are plain data, so that they can cross to the thread of `Client`. */
export interface VerifyOptions {
  /** Certificates to trust in place of the built-in ones: PEM, as text or octets. */
  readonly ca?: string | Uint8Array | readonly (string | Uint8Array)[] | undefined
  /** Whether a certificate that cannot be verified ends the connection. @defaultValue true */
  readonly rejectUnauthorized?: boolean | undefined
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined
  readonly maxVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined
  readonly ciphers?: string | undefined
}

/** True, false, the path of a file or folder of certificates, or options. */
export type Verify = boolean | string | VerifyOptions

/** A client certificate: the path of a PEM file with both, or its parts, in PEM or as paths. */
export type ClientCertificate =
  | string
  | {
      readonly cert: string
      readonly key: string
      /** Of an encrypted key. */
      readonly passphrase?: string | undefined
    }

/** What TLS is set up with, resolved to data. @internal */
export interface TlsSettings {
  readonly ca: readonly string[] | null
  readonly rejectUnauthorized: boolean
  readonly cert: string | null
  readonly key: string | null
  readonly passphrase: string | null
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3' | null
  readonly maxVersion: 'TLSv1.2' | 'TLSv1.3' | null
  readonly ciphers: string | null
  readonly keyLogFile: string | null
}

/**
 * Reads the files that the options name, and the environment where it is trusted.
 *
 * @throws TypeError when a file cannot be read, naming option and path.
 */
export function resolveTls(options: {
  readonly verify?: Verify | undefined
  readonly cert?: ClientCertificate | null | undefined
  readonly trustEnv?: boolean | undefined
}): TlsSettings {
  const { verify = true, cert = null } = options
  if (!['boolean', 'string', 'object'].includes(typeof verify) || verify === null) {
    throw new TypeError(`verify must be true, false, a path or options, got ${String(verify)}`)
  }
  const trustEnv = options.trustEnv ?? true
  const given = typeof verify === 'object' ? verify : {}
  const client = resolveCertificate(cert)
  return {
    ca: certificatesOf(verify, trustEnv),
    rejectUnauthorized: verify === false ? false : (given.rejectUnauthorized ?? true),
    cert: client?.cert ?? null,
    key: client?.key ?? null,
    passphrase: client?.passphrase ?? null,
    minVersion: given.minVersion ?? null,
    maxVersion: given.maxVersion ?? null,
    ciphers: given.ciphers ?? null,
    keyLogFile: trustEnv ? keyLogFile() : null,
  }
}

function certificatesOf(verify: Verify, trustEnv: boolean): readonly string[] | null {
  if (typeof verify === 'string') {
    return readOption('verify', verify, (path) => {
      return statSync(path).isDirectory() ? certificatesIn(path) : [readFileSync(path, 'utf8')]
    })
  }
  if (typeof verify === 'object' && verify.ca !== undefined) {
    const { ca } = verify
    return typeof ca === 'string' || ca instanceof Uint8Array ? [pemText(ca)] : ca.map(pemText)
  }
  if (verify === false || !trustEnv) return null
  return readOption('SSL_CERT_FILE or SSL_CERT_DIR', '', () => certificatesFromEnvironment())
}

function pemText(pem: string | Uint8Array): string {
  const text = typeof pem === 'string' ? pem : Buffer.from(pem).toString('latin1')
  if (text.includes('-----BEGIN')) return text
  throw new TypeError(
    'verify.ca must be certificates in PEM; give the path of a file as verify itself',
  )
}

function resolveCertificate(
  cert: ClientCertificate | null,
): { cert: string; key: string; passphrase?: string | undefined } | null {
  if (cert === null) return null
  if (typeof cert === 'string') {
    const pem = readOption('cert', cert, (path) => readFileSync(path, 'utf8'))
    return { cert: pem, key: pem }
  }
  return {
    cert: pemOf('cert.cert', cert.cert),
    key: pemOf('cert.key', cert.key),
    passphrase: cert.passphrase,
  }
}

function pemOf(option: string, value: string): string {
  if (typeof value !== 'string')
    throw new TypeError(`${option} must be a PEM or its path, got ${typeof value}`)
  if (value.includes('-----BEGIN')) return value
  return readOption(option, value, (path) => readFileSync(path, 'utf8'))
}

function readOption<T>(option: string, path: string, read: (path: string) => T): T {
  try {
    return read(path)
  } catch (cause) {
    throw new TypeError(`${option}: ${(cause as Error).message}`, { cause })
  }
}

/** TLS for the connections of one transport; the costly context is made once. @internal */
export class TlsContext {
  readonly #settings: TlsSettings
  #context: SecureContext | null = null

  constructor(settings: TlsSettings) {
    this.#settings = settings
  }

  /** What `tls.connect` is told for a host. */
  optionsFor(servername: string, alpn: readonly string[]): Record<string, unknown> {
    const { keyLogFile: file } = this.#settings
    return {
      secureContext: this.#secureContext(),
      rejectUnauthorized: this.#settings.rejectUnauthorized,
      ALPNProtocols: [...alpn],
      // The name that the certificate is checked against, also for addresses, which SNI cannot carry.
      host: servername,
      ...(isIP(servername) === 0 ? { servername } : {}),
      ...(file === null ? {} : { onKeyLog: (line: Buffer) => appendFileSync(file, line) }),
    }
  }

  #secureContext(): SecureContext {
    const { ca, cert, key, passphrase, minVersion, maxVersion, ciphers } = this.#settings
    // Loaded with the first connection that needs it.
    this.#context ??= process.getBuiltinModule('node:tls').createSecureContext({
      ...(ca === null ? {} : { ca: [...ca] }),
      ...(cert === null ? {} : { cert }),
      ...(key === null ? {} : { key }),
      ...(passphrase === null ? {} : { passphrase }),
      ...(minVersion === null ? {} : { minVersion }),
      ...(maxVersion === null ? {} : { maxVersion }),
      ...(ciphers === null ? {} : { ciphers }),
    })
    return this.#context
  }
}
