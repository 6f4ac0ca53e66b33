/**
 * Which URLs and IP addresses webhooks may be sent to. Pure. Only public unicast addresses are
 * allowed, of IPv6 only those in 2000::/3; loopback, private, CGNAT, multicast and reserved
 * addresses and IPv6 forms that embed an IPv4 address are refused unless an operator allows their
 * range, and metadata services of clouds always. The WHATWG parser normalises every spelling of an
 * IP address (0x7f.1, 2130706433, 127.1). The addresses that a name resolves to are checked at
 * every connection (delivery/http/resolve.ts).
 */
import ipaddr from 'ipaddr.js';
import { Failure } from '../../kernel/errors.ts';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
/** Ranges that an operator allows beside the public addresses. */
export type AllowedRanges = readonly [Address, number][];

/** What an operator allows. */
export interface UrlRules {
  allowed: AllowedRanges;
  /** Unencrypted receivers; those on an allowed loopback address need no permission. */
  allowHttp: boolean;
}

const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');
/**
 * They answer with credentials of the machine, and a range that an operator allows for receivers,
 * such as fd00::/8, may contain them.
 */
const METADATA = parseRanges([
  '169.254.0.0/16', // link-local: AWS, Google, Azure, Oracle, DigitalOcean, Tencent
  '168.63.129.16/32', // Azure
  '100.100.100.200/32', // Alibaba
  '192.0.0.192/32', // Oracle
  'fd00:ec2::/32', // AWS
  'fd20:ce::/32', // Google
  'fe80::/10', // link-local
]);

const URL_LENGTH_MAX = 2_048;

/** Ports of other protocols: a request must not be usable to talk to such a service. */
const PORTS_REFUSED = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
  103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 445,
  465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 873, 989,
  990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 2375, 2376, 3306, 3389, 3659, 4045, 4190, 5060,
  5061, 5432, 5984, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 9200, 9300, 10080,
  11211, 27017,
]);

/**
 * Parses ranges such as `127.0.0.0/8` or `fd00::/8`.
 * @throws Failure `bad_setting` naming the malformed range
 */
export function parseRanges(cidrs: readonly string[]): AllowedRanges {
  return cidrs.map((cidr) => {
    if (!ipaddr.isValidCIDR(cidr))
      throw new Failure('bad_setting', `${cidr} is not a range such as 10.0.0.0/8`);
    return ipaddr.parseCIDR(cidr);
  });
}

/** The IP address in a URL's hostname; undefined for a name. */
export function literalAddress(hostname: string): string | undefined {
  const bare = hostname.replace(/^\[|\]$/g, '');
  return ipaddr.isValid(bare) ? bare : undefined;
}

/**
 * True unless the address is public or allowed; also for text that is not an address. A mapped
 * address such as ::ffff:127.0.0.1 is allowed only by an IPv6 range, not by the IPv4 range.
 */
export function isRefused(address: string, allowed: AllowedRanges): boolean {
  if (!ipaddr.isValid(address)) return true;
  const parsed = ipaddr.parse(address);
  if (isIn(METADATA, ipaddr.process(address))) return true;
  return !isPublic(parsed) && !isIn(allowed, parsed);
}

function isPublic(address: Address): boolean {
  if (address.range() !== 'unicast') return false;
  return address.kind() === 'ipv4' || isIn([GLOBAL_UNICAST], address);
}

function isIn(ranges: AllowedRanges, address: Address): boolean {
  return ranges.some(
    ([range, bits]) => range.kind() === address.kind() && address.match(range, bits),
  );
}

/**
 * The URL in normal form.
 * @throws Failure `url_refused` with the reason: not http or https, credentials, a port of another
 * protocol, or an address that is not public
 */
export function validateUrl(text: string, rules: UrlRules): URL {
  const url = text.length <= URL_LENGTH_MAX && URL.canParse(text) ? new URL(text) : undefined;
  if (!url) throw new Failure('url_refused', 'not a URL of at most 2048 characters');
  const mayUseHttp = rules.allowHttp || isAllowedLoopback(url.hostname, rules.allowed);
  if (url.protocol !== 'https:' && !(mayUseHttp && url.protocol === 'http:'))
    throw new Failure('url_refused', `the URL must start with https://${orHttp(rules)}`);
  if (url.username || url.password)
    throw new Failure('url_refused', 'use a header instead of credentials in the URL');
  refusePlace(url, rules);
  url.hash = '';
  return url;
}

function refusePlace(
  { port, hostname }: Pick<URL, 'port' | 'hostname'>,
  { allowed }: UrlRules,
): void {
  if (port && PORTS_REFUSED.has(Number(port)))
    throw new Failure('url_refused', `port ${port} belongs to another protocol`);
  const address = literalAddress(hostname);
  if (address !== undefined && isRefused(address, allowed))
    throw new Failure('url_refused', 'the address is not public');
}

/** A server of a broker; the host of an IPv6 address has no brackets. */
export interface Server {
  host: string;
  port: number;
}

/**
 * Parses `host:port` or `host` of a broker's server, which obeys the rules of URLs.
 * @param isEncrypted its connections use TLS
 * @throws Failure `url_refused` with the reason
 */
export function parseServer(
  text: string,
  { defaultPort, isEncrypted }: { defaultPort: number; isEncrypted: boolean },
  rules: UrlRules,
): Server {
  const { url, hostname } = hostAndPort(text) ?? {};
  if (!url || !hostname)
    throw new Failure('url_refused', `${text.slice(0, 60)} is not a server such as host:9092`);
  const port = Number(url.port || defaultPort);
  refusePlace({ port: String(port), hostname }, rules);
  if (!isEncrypted && !rules.allowHttp && !isAllowedLoopback(hostname, rules.allowed))
    throw new Failure('url_refused', 'the connection must use TLS');
  return { host: hostname.replace(/^\[|\]$/g, ''), port };
}

function hostAndPort(text: string): { url: URL; hostname: string } | undefined {
  // A scheme without a default port, which the parser would drop.
  if (text.length > SERVER_LENGTH_MAX || !URL.canParse(`tcp://${text}`)) return undefined;
  const url = new URL(`tcp://${text}`);
  const { username, password, pathname, search, hash } = url;
  if (username || password || pathname || search || hash) return undefined;
  // Only a URL of HTTP has its host in normal form.
  if (!URL.canParse(`http://${url.hostname}`)) return undefined;
  return { url, hostname: new URL(`http://${url.hostname}`).hostname };
}

const SERVER_LENGTH_MAX = 260;

/** What is sent there never leaves the machine. */
function isAllowedLoopback(hostname: string, allowed: AllowedRanges): boolean {
  const address = hostname === 'localhost' ? '127.0.0.1' : literalAddress(hostname);
  if (address === undefined || isRefused(address, allowed)) return false;
  return ipaddr.parse(address).range() === 'loopback';
}

function orHttp({ allowHttp }: UrlRules): string {
  return allowHttp ? ' or http://' : '';
}
