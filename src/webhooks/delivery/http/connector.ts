/**
 * Connections of webhooks, directly or through a forward proxy. Through one, too, they go to an
 * address that was resolved and judged here, and the receiver's name is only in SNI and `Host`;
 * unless the proxy alone can resolve names.
 */
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { monotonicMs } from '../../../kernel/clock.ts';
import {
  type ForwardProxy,
  makeProxyOf,
  type ProxySettings,
} from '../../../kernel/http/forward-proxy.ts';
import { ProxyFailure } from '../../../kernel/http/proxy-failure.ts';
import { serverNameOf } from '../../../kernel/http/server-name.ts';
import { openTunnel, type Tunnel } from '../../../kernel/http/tunnel.ts';
import { endWithError, failedHandshake } from '../../../resources/faults.ts';
import type { TlsSettings } from '../../endpoints/destination/auth.ts';

export interface ProxyUse extends ProxySettings {
  /** The proxy gets names, and no resolved address is judged. */
  resolvesNames?: boolean | undefined;
}

/**
 * @param lookup returns judged addresses only
 * @param tls for receivers with a client certificate or authorities of their own
 */
export function makeConnector(
  lookup: LookupFunction,
  timeoutMs: number,
  proxies: ProxyUse,
  { certificate, privateKey, ca }: TlsSettings = {},
): buildConnector.connector {
  const own = {
    ...(certificate === undefined || privateKey === undefined
      ? {}
      : { cert: certificate, key: privateKey }),
    ...(ca === undefined ? {} : { ca }),
  };
  const direct = buildConnector({ timeout: timeoutMs, lookup, allowH2: false, ...own });
  const secure = buildConnector({ timeout: timeoutMs, allowH2: false, ...own });
  const proxyOf = makeProxyOf(proxies);
  const addressesOf = async (hostname: string) =>
    isIP(hostname) !== 0 || proxies.resolvesNames ? [hostname] : lookUpAll(lookup, hostname);
  const tunnelTo = async (
    options: buildConnector.Options,
    proxy: ForwardProxy,
  ): Promise<Tunnel> => {
    const until = monotonicMs() + timeoutMs;
    const { hostname, protocol } = options;
    const port = options.port || (protocol === 'https:' ? 443 : 80);
    const addresses = await addressesOf(hostname);
    return firstTunnel(addresses, (address) =>
      openTunnel(proxy, { hostname: address, port }, until - monotonicMs()),
    );
  };
  return (options, report) => {
    const done: buildConnector.Callback = (...[error, socket]) =>
      error ? report(error, null) : report(null, endWithError(socket));
    const proxy = proxyOf(options);
    const named = { ...options, servername: serverNameOf(options.hostname) };
    if (!proxy) return direct(named, done);
    const useTunnel = ({ socket, tcp }: Tunnel) => {
      if (options.protocol !== 'https:') return done(null, socket);
      secure({ ...named, httpSocket: socket }, (error, secured) => {
        if (!error && secured) return done(null, secured);
        tcp.destroy();
        done(error ?? failedHandshake(null), null);
      });
    };
    tunnelTo(options, proxy).then(useTunnel, (error: Error) => done(error, null));
  };
}

function lookUpAll(lookup: LookupFunction, hostname: string): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>();
  lookup(hostname, { all: true }, (error, found) => {
    if (error) reject(error);
    else resolve([found].flat().map((one) => (typeof one === 'string' ? one : one.address)));
  });
  return promise;
}

/** Tries the addresses in their order while the proxy does not reach them. */
async function firstTunnel(
  addresses: readonly string[],
  open: (address: string) => Promise<Tunnel>,
): Promise<Tunnel> {
  const [address = '', ...others] = addresses;
  try {
    return await open(address);
  } catch (error) {
    const isElsewhere = error instanceof ProxyFailure && error.fault === 'proxy_target_unreachable';
    if (!isElsewhere || others.length === 0) throw error;
    return firstTunnel(others, open);
  }
}
