/**
 * How a connection to the service comes to stand. Everything that fails in here fails before a byte
 * of a request, which is what makes it proof.
 *
 * TLS is laid over a TCP socket of ours, so that a write that must not go on can be cut with a
 * reset: a plain close would leave the kernel delivering what it still holds, long after our
 * deadline.
 */
import type { Socket } from 'node:net';
import { buildConnector } from 'undici';

/** The handshake failed; `cause` says how. */
export class TlsFailure extends Error {
  readonly code = 'TALLYHOOK_TLS';
}

export interface Connected {
  connect: buildConnector.connector;
  /** Drops the TCP connection with a reset, and what was not delivered with it. */
  reset(): void;
}

/** A source of connectors; TLS sessions are shared by all that one source makes. */
export function makeConnectors(timeoutMs: number): () => Connected {
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
        tls({ ...options, port, httpSocket: socket }, (failure, over) => {
          if (!failure && over) return done(null, over);
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
    // The handle is gone or is no TCP handle: a plain close is what is left.
    socket.destroy();
  }
}
