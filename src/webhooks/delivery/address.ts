/**
 * Which IP addresses webhooks may be sent to. Pure: judges text, opens nothing. Only public unicast
 * is allowed; everything special (loopback, private, link-local, CGNAT, multicast, reserved, and
 * the IPv6 forms that carry an IPv4 address) is refused unless an operator allowed that very range.
 */
import ipaddr from 'ipaddr.js';
import { Failure } from '../../kernel/errors.ts';

/** Ranges that an operator allows beside the public addresses. */
export type AllowedRanges = readonly [ipaddr.IPv4 | ipaddr.IPv6, number][];

/**
 * Parses ranges such as `127.0.0.0/8` or `fd00::/8`.
 * @throws Failure `bad_setting` naming the text that is no range
 */
export function parseRanges(cidrs: readonly string[]): AllowedRanges {
  return cidrs.map((cidr) => {
    if (!ipaddr.isValidCIDR(cidr))
      throw new Failure('bad_setting', `${cidr} is not a range such as 10.0.0.0/8`);
    return ipaddr.parseCIDR(cidr);
  });
}

/** The address that a URL's hostname spells out, or undefined for a name. */
export function literalAddress(hostname: string): string | undefined {
  const bare = hostname.replace(/^\[|\]$/g, '');
  return ipaddr.isValid(bare) ? bare : undefined;
}

/**
 * True when nothing may be sent to this address. What is no address at all is refused too. An
 * address such as ::ffff:127.0.0.1 is not read as the IPv4 address in it: only a range of its own
 * allows it.
 */
export function isRefused(address: string, allowed: AllowedRanges): boolean {
  if (!ipaddr.isValid(address)) return true;
  const parsed = ipaddr.parse(address);
  if (parsed.range() === 'unicast') return false;
  return !allowed.some(
    ([range, bits]) => range.kind() === parsed.kind() && parsed.match(range, bits),
  );
}
