/**
 * Whether the caller chose to wait (`Prefer: respond-async`, RFC 7240), and until when. Pure.
 */
import { type Instant, parseInstant } from '../kernel/clock.ts';
import { Failure } from '../kernel/errors.ts';

const TTL_MAX_MS = 7 * 86_400_000;

/**
 * Until when a write of a caller that chose to wait may still be sent; undefined when it did not.
 * @param expires the header `Tallyhook-Expires`; absent: `ttlMs` from now
 * @throws Failure `invalid_request` for an instant that is unreadable, past, or too far ahead
 */
export function waitsUntil(
  prefer: string | undefined,
  expires: string | undefined,
  now: Instant,
  ttlMs: number,
): Instant | undefined {
  if (!prefersAsync(prefer)) return undefined;
  if (expires === undefined) return now + ttlMs;
  const at = parseInstant(expires.trim());
  if (at === undefined)
    throw new Failure('invalid_request', 'tallyhook-expires must be an instant (RFC 3339)');
  if (at <= now) throw new Failure('invalid_request', 'tallyhook-expires is past');
  if (at > now + TTL_MAX_MS)
    throw new Failure('invalid_request', 'tallyhook-expires is more than 7 days ahead');
  return at;
}

function prefersAsync(prefer: string | undefined): boolean {
  return (prefer ?? '')
    .split(',')
    .some((one) => /^respond-async$/i.test(one.split(';')[0]?.trim() ?? ''));
}
