/**
 * Opens connections to the service. A failure in here is proof that no byte of a request left. TLS
 * runs over a TCP socket of ours, so that a write can be stopped with a reset: after a plain close
 * the kernel would still deliver what it has buffered, long after the deadline.
 */
import type { Socket } from 'node:net';
import { buildConnector } from 'undici';

/** The handshake failed; `cause` says how. */
class TlsFailure extends Error {
  readonly code = 'TALLYHOOK_TLS';
}

export interface Connector {
  connect: buildConnector.connector;
  /** Resets the last TCP connection and drops what was not delivered. */
  reset(): void;
}

/** A source of connectors that share TLS sessions. */
export function makeConnectors(timeoutMs: number): () => Connector {
  const tcp = buildConnector({ timeout: timeoutMs });
  const tls = buildConnector({ timeout: timeoutMs, allowH2: false });
  return () => {
    let last: Socket | undefined;
    const connect: buildConnector.connector = (options, done) => {
      const secure = options.protocol === 'https:';
      const port = options.port || (secure ? '443' : '80');
      tcp({ hostname: options.hostname, protocol: 'http:', port }, (error, socket) => {
        if (error || !socket) return done(error ?? new Error('no socket'), null);
        last = socket;
        if (!secure) return done(null, socket);
        tls({ ...options, port, httpSocket: socket }, (failure, secured) => {
          if (!failure && secured) return done(null, secured);
          socket.destroy();
          done(new TlsFailure('TLS', { cause: failure }), null);
        });
      });
    };
    return { connect, reset: () => reset(last) };
  };
}

function reset(socket: Socket | undefined): void {
  if (!socket || socket.destroyed) return;
  try {
    socket.resetAndDestroy();
  } catch {
    // The handle is closed or is no TCP handle; only a plain close is possible.
    socket.destroy();
  }
}
