/**
 * The routes of the service's API: which requests are writes, of which kind, and to which host they
 * go. A table lists every write of interface section 4; other writes have the kind `other`. Pure.
 */

import { createHash } from 'node:crypto';
import { wholeOf } from '../kernel/amounts.ts';
import { canonicalJson, isObject, sha256Hex, tryParseJson } from '../kernel/json.ts';
import type { WriteFields } from '../operations/operations.ts';
import { membersOfKind } from '../resources/operations/gateway.ts';
import type { Kind } from '../resources/operations/operation.ts';

/** The hosts of the service. */
export type Host = 'base' | 'auth' | 'tx';

export interface Request {
  method: string;
  /** Raw, without the query. */
  path: string;
  /** With its question mark, or empty. */
  query: string;
  contentType: string | undefined;
  /** The headers that are forwarded. */
  headers: [string, string][];
  body: Uint8Array;
}

/** What method and path determine, before the body is read. */
export type Route =
  | { type: 'read'; host: Host }
  /** Authorization and maintenance: needs no key, is neither recorded nor logged. */
  | { type: 'unauthenticated'; host: 'auth' }
  | { type: 'write'; host: Host; kind: Kind; family: Family };

/** The route of a write, with the fields of its path and body. */
export type WriteRoute = Extract<Route, { type: 'write' }> & { fields: WriteFields };

type Family = 'transaction' | 'nft' | 'other';

type Values = Record<string, unknown>;
interface WriteRow {
  method: string;
  path: RegExp;
  kind: Exclude<Kind, 'other'>;
  family: Family;
  /** @param path the groups of the pattern */
  fields: (values: Values, path: readonly string[]) => WriteFields;
}

/** Servers may accept a trailing slash. */
const END = '/?$';
const NFT = '^/v1/chain/erc721/(\\d+)';
const token = (v: Values) => ({
  toAddr: addressIn(v.toAddr),
  tokenUri: text(v.tokenURI),
  metaData: text(v.metaData),
  extraData: text(v.extraData),
});
const money = (v: Values) => ({
  fromAddr: addressIn(v.fromAddr),
  toAddr: addressIn(v.toAddr),
  amount: whole(v.amount),
  feeAmount: whole(v.feeAmount),
  reasonType: text(v.reasonType),
});

/** At most one row matches a request. */
export const WRITES: readonly WriteRow[] = [
  {
    method: 'POST',
    path: new RegExp(`${NFT}/mint${END}`),
    kind: 'mint',
    family: 'nft',
    fields: (v, [contract]) => ({
      ...token(v),
      contractId: whole(contract),
      tokenId: whole(v.tokenId),
    }),
  },
  {
    method: 'POST',
    path: new RegExp(`${NFT}/mint-sequential${END}`),
    kind: 'mint_sequential',
    family: 'nft',
    fields: (v, [contract]) => ({ ...token(v), contractId: whole(contract) }),
  },
  {
    method: 'POST',
    path: new RegExp(`${NFT}/burn${END}`),
    kind: 'burn',
    family: 'nft',
    fields: (v, [contract]) => ({ contractId: whole(contract), tokenId: whole(v.tokenId) }),
  },
  {
    method: 'PUT',
    path: new RegExp(`${NFT}/tokens/(\\d+)/set-extra-data${END}`),
    kind: 'set_extra_data',
    family: 'nft',
    fields: (v, [contract, id]) => ({
      contractId: whole(contract),
      tokenId: whole(id),
      extraData: text(v.extraData),
    }),
  },
  {
    method: 'POST',
    path: new RegExp(`${NFT}/transfer-from${END}`),
    kind: 'transfer_from',
    family: 'nft',
    fields: (v, [contract]) => ({
      contractId: whole(contract),
      tokenId: whole(v.tokenId),
      fromAddr: addressIn(v.fromAddr),
      toAddr: addressIn(v.toAddr),
    }),
  },
  {
    method: 'POST',
    path: /^\/v1\/app\/token\/operations\/(\d+)\/give\/?$/,
    kind: 'give',
    family: 'transaction',
    fields: (v, [no]) => ({
      ...money({ ...v, fromAddr: null, feeAmount: null }),
      operationNo: whole(no),
    }),
  },
  {
    method: 'POST',
    path: /^\/v1\/app\/token\/operations\/receive-from\/?$/,
    kind: 'receive_from',
    family: 'transaction',
    fields: (v) => money({ ...v, toAddr: null }),
  },
  {
    method: 'POST',
    path: /^\/v1\/app\/token\/accounts\/transfer\/?$/,
    kind: 'transfer',
    family: 'transaction',
    fields: (v) => money(v),
  },
];

/** Safe methods (RFC 9110, section 9.2.1). The gateway refuses TRACE. */
const SAFE = ['GET', 'HEAD', 'OPTIONS'];

/** @param path raw, without the query */
export function routeOf(method: string, path: string): Route {
  const host = hostOf(path);
  if (host === 'auth') return { type: 'unauthenticated', host };
  if (SAFE.includes(method)) return { type: 'read', host };
  const { kind, family } = matchWrite(method, path)?.row ?? { kind: 'other', family: 'other' };
  return { type: 'write', host, kind, family };
}

/** The fields of a write. Those that cannot be parsed are null; the service validates them. */
export function fieldsOf(request: Request): WriteFields {
  const match = matchWrite(request.method, request.path);
  return match ? match.row.fields(valuesOf(request), match.groups) : {};
}

function matchWrite(method: string, path: string): { row: WriteRow; groups: string[] } | undefined {
  for (const row of WRITES) {
    const match = row.method === method ? row.path.exec(path) : null;
    if (match) return { row, groups: match.slice(1) };
  }
  return undefined;
}

/** The members that the body of a write may have; undefined for the kind `other`. */
export function membersOf({ method, path }: Request): readonly string[] | undefined {
  const kind = matchWrite(method, path)?.row.kind;
  return kind && membersOfKind(kind);
}

/** The kinds of write that go to a host. */
export function kindsOf(host: Host): Kind[] {
  const kinds = WRITES.filter(({ family }) => (family === 'transaction' ? 'tx' : 'base') === host);
  return [...kinds.map(({ kind }) => kind), ...(host === 'base' ? ['other' as const] : [])];
}

function hostOf(path: string): Host {
  if (/^\/v1\/(oauth|system)(\/|$)/.test(path)) return 'auth';
  if (/^\/v1\/app\/token\/account\/?$/.test(path)) return 'base';
  return path.startsWith('/v1/app/token/') ? 'tx' : 'base';
}

/** Identifies repeats of a request: a hash of method, path, query and canonical body. */
export function fingerprintOf(request: Request): string {
  const { method, path, query } = request;
  const target = withUpperCodes(path + query);
  const body = canonicalBody(request) ?? sha256Hex(request.body);
  return createHash('sha256').update(`${method}\n${target}\n${body}`).digest('base64url');
}

/** Encodings of characters are equal in any case (RFC 3986, section 6.2.2.1). */
export function withUpperCodes(target: string): string {
  return target.replace(/%[\da-f]{2}/gi, (code) => code.toUpperCase());
}

/** Undefined for a body that is not JSON, or is nested too deeply. */
function canonicalBody(request: Request): string | undefined {
  const parsed = isJson(request) ? tryParseJson(textOf(request.body)) : undefined;
  try {
    return parsed === undefined ? undefined : canonicalJson(parsed);
  } catch {
    return undefined;
  }
}

function valuesOf(request: Request): Values {
  if (!isJson(request)) return Object.fromEntries(new URLSearchParams(textOf(request.body)));
  const parsed = tryParseJson(textOf(request.body));
  return isObject(parsed) ? parsed : {};
}

/** The interface does not document the content type of transactions, so the body counts too. */
export function isJson({ contentType, body }: Request): boolean {
  return /\bjson\b/i.test(contentType ?? '') || textOf(body).trimStart().startsWith('{');
}

export function textOf(body: Uint8Array): string {
  return new TextDecoder().decode(body);
}

/** Postgres cannot store NUL and lone surrogates. */
function text(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  return value.slice(0, TEXT_MAX).toWellFormed().replaceAll('\0', '\ufffd');
}

/** Addresses are indexed, and index entries are small. */
function addressIn(value: unknown): string | null {
  return text(value)?.slice(0, ADDRESS_MAX).toWellFormed() ?? null;
}

/** In UTF-16 units; both exceed every length that the interface documents. */
const ADDRESS_MAX = 255;
const TEXT_MAX = 4_000;

function whole(value: unknown): bigint | null {
  return wholeOf(value) ?? null;
}
