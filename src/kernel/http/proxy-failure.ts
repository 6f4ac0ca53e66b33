/** Why a forward proxy opened no tunnel: no byte for the target left. Loaded by the browser too. */

/** What is wrong with a proxy; stable. */
export type ProxyFault =
  /** Its name is not found, or nothing accepts connections there. */
  | 'proxy_unreachable'
  /** The TLS handshake with the proxy itself failed. */
  | 'proxy_tls'
  /** No tunnel within the time to connect. */
  | 'proxy_timeout'
  /** 407: it wants another login. */
  | 'proxy_auth'
  /** 403 and the like: its rules do not allow this target. */
  | 'proxy_refused'
  /** 502 and the like: it did not reach the target. */
  | 'proxy_target_unreachable'
  /** It closed the connection instead of an answer. */
  | 'proxy_closed'
  /** What it answered is not HTTP. */
  | 'proxy_unreadable';

export class ProxyFailure extends Error {
  readonly fault: ProxyFault;
  constructor(fault: ProxyFault, cause?: unknown) {
    super(fault, { cause });
    this.fault = fault;
  }
}
