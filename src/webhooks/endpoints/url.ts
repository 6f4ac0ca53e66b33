/**
 * Which URLs an endpoint may have. Pure. The WHATWG parser normalises every spelling of an IP
 * address (0x7f.1, 2130706433, 127.1) before it is judged here. Names are judged again at every
 * connect, by the addresses they then resolve to (resolve.ts).
 */
import { Failure } from '../../kernel/errors.ts';
import { type AllowedRanges, isRefused, literalAddress } from '../delivery/address.ts';

const URL_LENGTH_MAX = 2_048;

/** Ports of other protocols, which an HTTP request could be made to speak to. */
const PORTS_REFUSED = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102,
  103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 445,
  465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 873, 989,
  990, 993, 995, 1433, 1521, 1719, 1720, 1723, 2049, 2375, 2376, 3306, 3389, 3659, 4045, 4190, 5060,
  5061, 5432, 5984, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 9200, 9300, 10080,
  11211, 27017,
]);

/**
 * The URL in its normal form.
 * @throws Failure `url_refused` with the reason: not http or https, credentials, a port of another
 * protocol, or an address that is not public
 */
export function judgeUrl(text: string, allowed: AllowedRanges): URL {
  const url = text.length <= URL_LENGTH_MAX && URL.canParse(text) ? new URL(text) : undefined;
  if (!url) throw new Failure('url_refused', 'not a URL of at most 2048 characters');
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    throw new Failure('url_refused', 'the URL must start with https:// or http://');
  if (url.username || url.password)
    throw new Failure('url_refused', 'use a header instead of credentials in the URL');
  if (url.port && PORTS_REFUSED.has(Number(url.port)))
    throw new Failure('url_refused', `port ${url.port} belongs to another protocol`);
  const address = literalAddress(url.hostname);
  if (address !== undefined && isRefused(address, allowed))
    throw new Failure('url_refused', 'the address is not public');
  url.hash = '';
  return url;
}
