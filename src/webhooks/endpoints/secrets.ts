/**
 * What of an endpoint is sealed at rest: its signing keys and its extra headers. Each is sealed for
 * its own place, so that a text copied to another endpoint or column does not open.
 */
import { z } from 'zod';
import type { Encryption } from '../../kernel/encryption.ts';
import { jsonText, parseJson } from '../../kernel/json.ts';
import { SCHEMES, type SigningKey } from './keys.ts';

const keysShape = z.array(
  z.object({
    scheme: z.enum(SCHEMES),
    secret: z.string(),
    from: z.number(),
    until: z.number().nullable(),
  }),
);
const headersShape = z.record(z.string(), z.string());

const keysPlace = (endpointId: string) => `endpoints.encrypted_secrets:${endpointId}`;
const headersPlace = (endpointId: string) => `endpoints.encrypted_headers:${endpointId}`;

export function closeKeys(
  seal: Encryption,
  endpointId: string,
  keys: readonly SigningKey[],
): string {
  return seal.close(jsonText(keys), keysPlace(endpointId));
}

/** @throws Failure `seal_broken` */
export function openKeys(seal: Encryption, endpointId: string, sealed: string): SigningKey[] {
  return keysShape.parse(parseJson(seal.open(sealed, keysPlace(endpointId))));
}

export function closeHeaders(
  seal: Encryption,
  endpointId: string,
  headers: Readonly<Record<string, string>>,
): string | null {
  if (Object.keys(headers).length === 0) return null;
  return seal.close(jsonText(headers), headersPlace(endpointId));
}

/** @throws Failure `seal_broken` */
export function openHeaders(
  seal: Encryption,
  endpointId: string,
  sealed: string | null,
): Record<string, string> {
  if (sealed === null) return {};
  return headersShape.parse(parseJson(seal.open(sealed, headersPlace(endpointId))));
}
