/**
 * Which targets are reached through a forward proxy, by the variables that most programs read:
 * `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`. Loopback is always reached directly, so
 * the sandbox and receivers on this machine need no exception. Pure.
 */
import ipaddr from 'ipaddr.js';

/** Plain data, for other processes too. The URLs hold logins: never logged or shown. */
export interface ProxySettings {
  /** URL of the proxy of https:// targets; undefined: they are reached directly. */
  https?: string | undefined;
  /** The same of http:// targets. */
  http?: string | undefined;
  /** Targets that are reached directly, as `NO_PROXY` lists them. */
  except?: string | undefined;
}

export interface ForwardProxy {
  /** Whether the connection to the proxy is encrypted. */
  isSecure: boolean;
  /** An IPv6 address without brackets. */
  hostname: string;
  port: number;
  /** The value of `Proxy-Authorization`; secret. */
  authorization: string | undefined;
}

export interface ProxyTarget {
  protocol: string;
  hostname: string;
  /** Empty for the port of the protocol. */
  port?: string | number | null | undefined;
}

export type ProxyOf = (target: ProxyTarget) => ForwardProxy | undefined;

/**
 * The proxy at an address such as `http://user:password@proxy:3128`; without a scheme it is http.
 * Undefined for anything else, such as a SOCKS proxy.
 */
export function parseProxy(text: string): ForwardProxy | undefined {
  const url = URL.parse(withScheme(text));
  if (!url || !/^https?:$/.test(url.protocol) || url.hostname === '') return undefined;
  if (url.pathname !== '/' || url.search || url.hash) return undefined;
  const isSecure = url.protocol === 'https:';
  const login = loginOf(url);
  if (login === undefined) return undefined;
  return {
    isSecure,
    hostname: bareHost(url.hostname),
    port: Number(url.port) || (isSecure ? 443 : 80),
    authorization: login === '' ? undefined : `Basic ${Buffer.from(login).toString('base64')}`,
  };
}

/** The address of a proxy may lack its scheme. */
export function withScheme(text: string): string {
  return text.includes('://') ? text : `http://${text}`;
}

/** `user:password`; empty without a user, undefined when it is wrongly encoded. */
function loginOf({ username, password }: URL): string | undefined {
  try {
    return username && `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  } catch {
    return undefined;
  }
}

export function makeProxyOf({ https, http, except = '' }: ProxySettings): ProxyOf {
  const proxies = { 'https:': https && parseProxy(https), 'http:': http && parseProxy(http) };
  const exceptions = except
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(parseException);
  return (target) => {
    const { protocol } = target;
    const proxy = protocol === 'https:' || protocol === 'http:' ? proxies[protocol] : undefined;
    if (!proxy) return undefined;
    const host = bareHost(target.hostname).toLowerCase().replace(/\.$/, '');
    const port = Number(target.port) || (protocol === 'https:' ? 443 : 80);
    if (isLoopback(host) || exceptions.some((matches) => matches(host, port))) return undefined;
    return proxy;
  };
}

function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function isLoopback(host: string): boolean {
  if (ipaddr.isValid(host)) return ipaddr.process(host).range() === 'loopback';
  return host === 'localhost' || host.endsWith('.localhost');
}

type Exception = (host: string, port: number) => boolean;

/** `*`, a range, or an address or a name with all names below it, with a port or not. */
function parseException(text: string): Exception {
  if (text === '*') return () => true;
  if (ipaddr.isValidCIDR(text)) {
    const [range, bits] = ipaddr.parseCIDR(text);
    return (host) => {
      const address = ipaddr.isValid(host) ? ipaddr.process(host) : undefined;
      return address?.kind() === range.kind() && address.match(range, bits);
    };
  }
  const [, bracketed, plain, port] = /^(?:\[(.*)\]|([^:]*))(?::(\d+))?$/.exec(text) ?? [];
  const name = (bracketed ?? plain ?? text).toLowerCase().replace(/^\*?\.|\.$/g, '');
  const matchesHost = ipaddr.isValid(name)
    ? (host: string) => ipaddr.isValid(host) && sameAddress(host, name)
    : (host: string) => host === name || host.endsWith(`.${name}`);
  return (host, at) => (port === undefined || Number(port) === at) && matchesHost(host);
}

function sameAddress(a: string, b: string): boolean {
  return ipaddr.process(a).toString() === ipaddr.process(b).toString();
}
