import { appendFileSync, readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'
import type { ConnectionOptions, SecureContext } from 'node:tls'
import { checkOptions, type OptionKinds } from '../internal/options.js'
import { certificatesFromEnvironment, certificatesIn, keyLogFile } from './environment.js'

/** TLS options, as plain data so that they can be sent to the worker thread of `Client`. */
export interface VerifyOptions {
  /** Certificates to trust instead of the built-in ones: PEM, as text or bytes. */
  readonly ca?: string | Uint8Array | readonly (string | Uint8Array)[] | undefined
  /** Whether a certificate that fails verification ends the connection. @defaultValue true */
  readonly rejectUnauthorized?: boolean | undefined
  readonly minVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined
  readonly maxVersion?: 'TLSv1.2' | 'TLSv1.3' | undefined
  readonly ciphers?: string | undefined
}

/** Whether to verify, the path of a file or folder of certificates to trust, or options. */
export type Verify = boolean | string | VerifyOptions

/** A client certificate: the path of a PEM file with certificate and key, or both apart. */
export type ClientCertificate =
  | string
  | {
      /** PEM, or the path of a PEM file. */
      readonly cert: string
      /** PEM, or the path of a PEM file. */
      readonly key: string
      /** Decrypts `key`. */
      readonly passphrase?: string | undefined
    }

const VERIFY: OptionKinds<VerifyOptions> = {
  ca: 'any', rejectUnauthorized: 'boolean', minVersion: 'string', maxVersion: 'string',
  ciphers: 'string',
}
const CERTIFICATE: OptionKinds<Exclude<ClientCertificate, string>> = {
  cert: 'string! PEM text, or the path of a file', key: 'string! PEM text, or the path of a file',
  passphrase: 'string',
}

/** TLS options after files and the environment were read. @internal */
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
 * Reads the files that the options name and, with `trustEnv`, those that the environment names.
 *
 * @throws TypeError naming option and path when a file cannot be read.
 */
export function resolveTls(options: {
  readonly verify?: Verify | undefined
  readonly cert?: ClientCertificate | null | undefined
  readonly trustEnv?: boolean | undefined
}): TlsSettings {
  const { verify = true, cert = null } = options
  if (!['boolean', 'string', 'object'].includes(typeof verify) || verify === null) {
    throw new TypeError(`verify must be true, false, a path or an object, got ${String(verify)}`)
  }
  const trustEnv = options.trustEnv ?? true
  const given = typeof verify === 'object' ? verify : {}
  checkOptions(given, VERIFY, 'verify')
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
  throw new TypeError('verify.ca must be certificates in PEM; to give a path, set verify to it')
}

function resolveCertificate(
  cert: ClientCertificate | null,
): { cert: string; key: string; passphrase?: string | undefined } | null {
  if (cert === null) return null
  if (typeof cert === 'string') {
    const pem = readOption('cert', cert, (path) => readFileSync(path, 'utf8'))
    return { cert: pem, key: pem }
  }
  checkOptions(cert, CERTIFICATE, 'cert')
  return {
    cert: pemOf('cert.cert', cert.cert),
    key: pemOf('cert.key', cert.key),
    passphrase: cert.passphrase,
  }
}

function pemOf(option: string, value: string): string {
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

/** Options of {@link tlsConnectOptions}, as those of a client. */
export interface TlsConnectOptions {
  /** Whether certificates are verified, and against which authorities. @defaultValue true */
  readonly verify?: Verify | undefined
  /** The program's own certificate. @defaultValue null */
  readonly cert?: ClientCertificate | null | undefined
  /** Reads SSL_CERT_FILE and SSL_CERT_DIR. @defaultValue true */
  readonly trustEnv?: boolean | undefined
}

const TLS_CONNECT: OptionKinds<TlsConnectOptions> = {
  verify: 'any', cert: 'any', trustEnv: 'boolean',
}

/**
 * The options of `tls.connect()` for protocols other than HTTP that trust what a client of this
 * library trusts: pass them as `tls` to a `WebSocketClient`.
 *
 * @throws TypeError naming option and path when a file cannot be read.
 */
export function tlsConnectOptions(
  options: TlsConnectOptions = {},
): Pick<ConnectionOptions, 'rejectUnauthorized' | 'secureContext'> {
  checkOptions(options, TLS_CONNECT, 'tlsConnectOptions()')
  const settings = resolveTls(options)
  const { rejectUnauthorized, secureContext } = new TlsContext(settings).optionsFor('', [])
  return { rejectUnauthorized, secureContext } as ReturnType<typeof tlsConnectOptions>
}

/** TLS options for the connections of one transport, which share one secure context. @internal */
export class TlsContext {
  readonly #settings: TlsSettings
  #context: SecureContext | null = null

  constructor(settings: TlsSettings) {
    this.#settings = settings
  }

  /** The options of `tls.connect()` for a host. */
  optionsFor(servername: string, alpn: readonly string[]): Record<string, unknown> {
    const { keyLogFile: file } = this.#settings
    return {
      secureContext: this.#secureContext(),
      rejectUnauthorized: this.#settings.rejectUnauthorized,
      ALPNProtocols: [...alpn],
      // The certificate is checked against this name; for an IP address SNI cannot carry it.
      host: servername,
      ...(isIP(servername) === 0 ? { servername } : {}),
      ...(file === null ? {} : { onKeyLog: (line: Buffer) => appendFileSync(file, line) }),
    }
  }

  #secureContext(): SecureContext {
    if (this.#context !== null) return this.#context
    const { rejectUnauthorized: _reject, keyLogFile: _log, ...all } = this.#settings
    const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null))
    // node:tls is loaded by the first connection that needs it.
    return (this.#context = process.getBuiltinModule('node:tls').createSecureContext(given))
  }
}
