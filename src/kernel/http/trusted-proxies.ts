/**
 * Who sent a request that came through proxies of the operator's, and the address that the client
 * used. Only what a trusted proxy has added counts: a client may send any `X-Forwarded-*` itself.
 * Pure.
 */
import type { IncomingMessage } from 'node:http';
import ipaddr from 'ipaddr.js';

/** What is read of a request; of a header sent several times Node joins the values with commas. */
export interface ProxiedRequest {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  socket: { remoteAddress?: string | undefined };
}

export interface TrustedProxies {
  /** The address of the client; undefined for a request without a connection. */
  addressOf(request: ProxiedRequest): string | undefined;
  /** Such as `https://tallyhook.example`, as the client knows this server. */
  originOf(request: ProxiedRequest): string;
}

/** Node's request, as Hono's server hands it to handlers; undefined without a connection. */
export function incomingOf({ env }: { env: unknown }): IncomingMessage | undefined {
  return (env as { incoming?: IncomingMessage } | undefined)?.incoming;
}

/** The origin of this server, as the client of a request knows it. */
export function ownOriginOf(
  trusted: Pick<TrustedProxies, 'originOf'>,
  c: { env: unknown; req: { url: string } },
): string {
  const incoming = incomingOf(c);
  return incoming ? trusted.originOf(incoming) : new URL(c.req.url).origin;
}

/** @param ranges such as `10.0.0.0/8` or `fd00::/8`, which are valid */
export function makeTrustedProxies(ranges: readonly string[]): TrustedProxies {
  const parsed = ranges.map((range) => ipaddr.parseCIDR(range));
  const isTrusted = (address: string): boolean => {
    const own = ipaddr.process(address);
    return parsed.some(([range, bits]) => range.kind() === own.kind() && own.match(range, bits));
  };
  return {
    addressOf({ headers, socket }) {
      let client = addressIn(socket.remoteAddress ?? '');
      if (client === undefined) return socket.remoteAddress;
      const hops = valuesOf(headers['x-forwarded-for']);
      while (isTrusted(client)) {
        const before = addressIn(hops.pop() ?? '');
        if (before === undefined) break;
        client = before;
      }
      return client;
    },
    originOf({ headers, socket }) {
      const peer = addressIn(socket.remoteAddress ?? '');
      const isProxied = peer !== undefined && isTrusted(peer);
      const last = (name: string) => (isProxied ? valuesOf(headers[name]).pop() : undefined);
      const protocol = last('x-forwarded-proto')?.toLowerCase() === 'https' ? 'https' : 'http';
      const host = [last('x-forwarded-host'), headers.host].find(isHost);
      return `${protocol}://${host ?? 'localhost'}`;
    },
  };
}

function valuesOf(header: string | string[] | undefined): string[] {
  return [header ?? []]
    .flat()
    .join(',')
    .split(',')
    .map((value) => value.trim());
}

/** An address, with a port or not, in its normal form; undefined for anything else. */
function addressIn(text: string): string | undefined {
  const bracketed = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1];
  const withPort = /^([\d.]+):\d{1,5}$/.exec(text)?.[1];
  const address = bracketed ?? withPort ?? text;
  // A scope such as %eth0 names an interface of this machine.
  const bare = address.replace(/%.*$/, '');
  const isPlain = ipaddr.IPv4.isValidFourPartDecimal(bare) || ipaddr.IPv6.isValid(bare);
  return isPlain ? ipaddr.process(bare).toString() : undefined;
}

function isHost(text: unknown): text is string {
  return (
    typeof text === 'string' && /^[\w.-]+(?::\d{1,5})?$|^\[[\da-f:.]+\](?::\d{1,5})?$/i.test(text)
  );
}
