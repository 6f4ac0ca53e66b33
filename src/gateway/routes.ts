/**
 * What a request to the service is. One table knows every write of interface section 4; everything
 * is recorded through the same description, and a write path that nobody has heard of is `other`.
 * Pure.
 */

import { wholeOf } from '../kernel/amounts.ts';
import { canonicalJson, type Json, sha256Hex, tryParseJson } from '../kernel/json.ts';
import type { Kind, WriteFields } from '../operations/operations.ts';

/** Which host of the service a path belongs to (design, section 4, gateway). */
export type Host = 'base' | 'auth' | 'tx';

export interface Request {
  method: string;
  /** The raw path, without the query. */
  path: string;
  contentType: string | undefined;
  body: Uint8Array;
}

/** What the head of a request says, before its body is read. */
export type Classified =
  | { what: 'read'; host: Host }
  /** Authorization and maintenance: passed through, never recorded, never logged. */
  | { what: 'private'; host: 'auth' }
  | { what: 'write'; host: Host; kind: Kind; family: Family };

export type Description =
  | Exclude<Classified, { what: 'write' }>
  | (Extract<Classified, { what: 'write' }> & { fields: WriteFields });

export type Family = 'transaction' | 'nft' | 'other';

type Values = Record<string, unknown>;
interface WriteRow {
  method: string;
  path: RegExp;
  kind: Kind;
  family: Family;
  fields: (values: Values, path: readonly string[]) => WriteFields;
}

/** A slash at the end names the same thing: a server may take either. */
const END = '/?$';
const NFT = '^/v1/chain/erc721/(\\d+)';
const token = (v: Values) => ({
  toAddr: party(v.toAddr),
  tokenUri: text(v.tokenURI),
  metaData: text(v.metaData),
  extraData: text(v.extraData),
});
const money = (v: Values) => ({
  fromAddr: party(v.fromAddr),
  toAddr: party(v.toAddr),
  amount: whole(v.amount),
  feeAmount: whole(v.feeAmount),
  reasonType: text(v.reasonType),
});

/** Every write of the interface; the order does not matter, no two rows match the same request. */
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
      fromAddr: party(v.fromAddr),
      toAddr: party(v.toAddr),
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

/** Methods that change nothing (RFC 9110, section 9.2.1), as far as they can be forwarded. */
const SAFE = ['GET', 'HEAD', 'OPTIONS'];

/** What a request is by its method and raw path. Never fails. */
export function classify(method: string, path: string): Classified {
  const host = hostOf(path);
  if (host === 'auth') return { what: 'private', host };
  if (SAFE.includes(method)) return { what: 'read', host };
  const { kind, family } = rowOf(method, path)?.row ?? { kind: 'other', family: 'other' };
  return { what: 'write', host, kind, family };
}

/**
 * Says what a request is. Never fails: fields that cannot be read are null, and the service judges
 * them.
 */
export function describe(request: Request): Description {
  const classified = classify(request.method, request.path);
  if (classified.what !== 'write') return classified;
  const found = rowOf(request.method, request.path);
  const fields = found ? found.row.fields(valuesOf(request), found.parts) : {};
  return { ...classified, fields };
}

function rowOf(method: string, path: string): { row: WriteRow; parts: string[] } | undefined {
  for (const row of WRITES) {
    const match = row.method === method ? row.path.exec(path) : null;
    if (match) return { row, parts: match.slice(1) };
  }
  return undefined;
}

export function hostOf(path: string): Host {
  if (/^\/v1\/(oauth|system)(\/|$)/.test(path)) return 'auth';
  if (/^\/v1\/app\/token\/account\/?$/.test(path)) return 'base';
  return path.startsWith('/v1/app/token/') ? 'tx' : 'base';
}

/**
 * What makes two requests the same for an idempotency key: method, path with query, canonical body.
 */
export function fingerprintOf(request: Request, query: string): string {
  const body = canonicalBody(request) ?? sha256Hex(request.body);
  return sha256Hex(`${request.method}\n${request.path}${query}\n${body}`);
}

/** Undefined for what is not JSON, or nested so deeply that it has no canonical form. */
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
  const parsed: Json | undefined = tryParseJson(textOf(request.body));
  return parsed && typeof parsed === 'object' && !Array.isArray(parsed) ? parsed : {};
}

/** The content type of transaction bodies is not shown, so the body itself also counts. */
export function isJson({ contentType, body }: Request): boolean {
  return /\bjson\b/i.test(contentType ?? '') || textOf(body).trimStart().startsWith('{');
}

export function textOf(body: Uint8Array): string {
  return new TextDecoder().decode(body);
}

/** Texts are kept as they came, up to the size that a column is worth; NUL cannot be stored. */
function text(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  return value.slice(0, TEXT_MAX).toWellFormed().replaceAll('\0', '\ufffd');
}

/** An address is looked up by index, whose entries are small; the service has none this long. */
function party(value: unknown): string | null {
  return text(value)?.slice(0, PARTY_MAX).toWellFormed() ?? null;
}

const PARTY_MAX = 255;
/** In UTF-16 units; more than the interface allows wherever it names a length. */
const TEXT_MAX = 4_000;

function whole(value: unknown): bigint | null {
  return wholeOf(value) ?? null;
}
