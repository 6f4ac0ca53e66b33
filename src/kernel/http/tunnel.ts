/**
 * A connection to a target through a forward proxy, by CONNECT (RFC 9110, section 9.3.6), for http
 * and https targets alike, so that no request is sent to the proxy itself. A failure is proof that
 * no byte for the target left.
 */
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, isIPv6, type Socket } from 'node:net';
import { connect as connectSecurely } from 'node:tls';
import { withDeadline } from '../clock.ts';
import type { ForwardProxy } from './forward-proxy.ts';
import { ProxyFailure, type ProxyFault } from './proxy-failure.ts';
import { serverNameOf } from './server-name.ts';

export interface Tunnel {
  /** What is written here goes to the target. */
  socket: Socket;
  /** The TCP connection to the proxy, which can be reset. */
  tcp: Socket;
}

const HEADERS_BYTES_MAX = 16_384;

/**
 * @param target name or address of the target; a name is resolved by the proxy
 * @param timeoutMs for all of it
 * @throws ProxyFailure
 */
export async function openTunnel(
  proxy: ForwardProxy,
  target: { hostname: string; port: number | string },
  timeoutMs: number,
): Promise<Tunnel> {
  const { hostname: host, port } = proxy;
  const tcp = connect({ host, port, noDelay: true, keepAlive: true });
  // Also after the tunnel is open, when its user has handlers of its own.
  tcp.on('error', () => {});
  const late = () => {
    throw new ProxyFailure('proxy_timeout');
  };
  try {
    const socket = await withDeadline(dig(tcp, proxy, authorityOf(target)), timeoutMs, late);
    return { socket, tcp };
  } catch (error) {
    tcp.destroy();
    throw error;
  }
}

async function dig(tcp: Socket, proxy: ForwardProxy, authority: string): Promise<Socket> {
  await once(tcp, 'connect').catch(failing('proxy_unreachable'));
  const socket = proxy.isSecure ? await secured(tcp, proxy) : tcp;
  const status = await ask(socket, authority, proxy.authorization);
  const fault = faultOf(status);
  if (fault) throw new ProxyFailure(fault);
  return socket;
}

function failing(fault: ProxyFault): (cause: unknown) => never {
  return (cause) => {
    throw new ProxyFailure(fault, cause);
  };
}

async function secured(tcp: Socket, { hostname }: ForwardProxy): Promise<Socket> {
  const socket = connectSecurely({
    socket: tcp,
    host: hostname,
    servername: serverNameOf(hostname),
  });
  await once(socket, 'secureConnect').catch(failing('proxy_tls'));
  socket.on('error', () => {});
  return socket;
}

function authorityOf({ hostname, port }: { hostname: string; port: number | string }): string {
  return isIPv6(hostname) ? `[${hostname}]:${port}` : `${hostname}:${port}`;
}

/** The status of the answer to a CONNECT. */
function ask(socket: Socket, authority: string, authorization: string | undefined) {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const asked = request({
    method: 'CONNECT',
    path: authority,
    headers: {
      host: authority,
      ...(authorization ? { 'proxy-authorization': authorization } : {}),
    },
    createConnection: () => socket,
    maxHeaderSize: HEADERS_BYTES_MAX,
  });
  asked.once('connect', ({ statusCode = 0 }, _socket, head: Buffer) => {
    // The target does not speak before it is asked something.
    const isClear = faultOf(statusCode) !== undefined || head.length === 0;
    if (isClear) resolve(statusCode);
    else reject(new ProxyFailure('proxy_unreadable'));
  });
  asked.once('error', (error: NodeJS.ErrnoException) => {
    const isNotHttp = error.code?.startsWith('HPE_') ?? false;
    reject(new ProxyFailure(isNotHttp ? 'proxy_unreadable' : 'proxy_closed', error));
  });
  asked.end();
  return promise;
}

/** Undefined when the tunnel is open. */
function faultOf(status: number): ProxyFault | undefined {
  if (status >= 200 && status < 300) return undefined;
  if (status === 407) return 'proxy_auth';
  return status >= 500 ? 'proxy_target_unreachable' : 'proxy_refused';
}
