/** The name of a host in a TLS handshake. */
import { isIP } from 'node:net';

/**
 * The name without the dot that ends an absolute one, and an empty text for an IP address, which
 * has no name (RFC 6066, section 3). The header Host has the host as it was given.
 * @param hostname as a URL has it
 */
export function serverNameOf(hostname: string): string {
  const isAddress = hostname.startsWith('[') || isIP(hostname) !== 0;
  return isAddress ? '' : hostname.replace(/\.$/, '');
}
