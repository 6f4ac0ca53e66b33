/** The schemas of the service's records. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonText, parseJson } from '../../src/kernel/json.ts';
import {
  accessTokenRecord,
  maintenanceRecord,
  tokenCheckRecord,
  tokenPage,
  tokenRecord,
  walletRecord,
} from '../../src/upstream/parse/records.ts';
import { ADDR, HASH, token, wallet } from './rig.ts';

/** A whole number of 1 to 60 digits. */
const whole = fc
  .integer({ min: 1, max: 60 })
  .chain((digits) => fc.bigInt({ min: -(10n ** BigInt(digits)) + 1n, max: 10n ** BigInt(digits) }));
/** As the service may write it. */
const written = (value: bigint, asText: boolean) => (asText ? value.toString() : value);

describe('A whole number of 1 to 60 digits stays exact, as number or text,', () => {
  it('in a wallet', () => {
    fc.assert(
      fc.property(whole, fc.boolean(), (amount, asText) => {
        const text = jsonText({ ...wallet, amt_token: written(amount, asText) });
        expect(walletRecord.parse(parseJson(text)).balance).toBe(amount);
      }),
    );
  });

  it('in a page of tokens', () => {
    fc.assert(
      fc.property(whole, whole, whole, fc.boolean(), (contract, id, total, asText) => {
        const row = {
          ...token,
          contract_id: written(contract, asText),
          token_id: written(id, asText),
        };
        const page = { total: written(total, asText), perPage: 1, page: 1, lastPage: 1 };
        const read = tokenPage.parse(parseJson(jsonText({ ...page, data: [row] })));
        expect(read.total).toBe(total);
        expect(read.tokens[0]).toMatchObject({ contractId: contract, tokenId: id });
      }),
    );
  });
});

it('A token keeps its texts unchanged', () => {
  expect(tokenRecord.parse({ ...token, token_is_locked: 1, status: 2 })).toEqual({
    contractId: 3n,
    tokenId: 9n,
    owner: ADDR,
    uri: 'ipfs://x',
    metaData: '{"a":1}',
    extraData: '',
    creator: ADDR,
    createdAtText: '2026-01-01 09:00:00',
    ownedAtText: '2026-01-02 09:00:00',
    locked: true,
    status: 2,
    lastTxHash: HASH,
  });
});

it.each([
  ['The status of a wallet as text', walletRecord, { ...wallet, status: '2' }],
  ['A record with further fields', walletRecord, { ...wallet, more: 1 }],
  ['A lock written as boolean', tokenRecord, { ...token, token_is_locked: false }],
  ['A lock written as text', tokenRecord, { ...token, token_is_locked: '0' }],
  ['A token with null texts', tokenRecord, { ...token, token_metadata: null, last_tx_hash: null }],
  ['A status we do not know', tokenRecord, { ...token, status: 7 }],
  ['An empty page', tokenPage, { total: 0, perPage: 100, page: 1, lastPage: 1, data: [] }],
  [
    'An absent maintenance',
    maintenanceRecord,
    { status: 'ACTIVE', start: null, end: null, message: null },
  ],
  ['A check without a token', tokenCheckRecord, { active: false }],
])('%s is read', (_title, record, value) => {
  expect(record.safeParse(value).success).toBe(true);
});

it.each([
  ['An amount with a fraction', walletRecord, { ...wallet, amt_token: 1.5 }],
  ['An amount in exponents', walletRecord, { ...wallet, amt_token: 1e300 }],
  ['An amount that is missing', walletRecord, { token_addr: ADDR, status: 1 }],
  ['An amount with a sign', walletRecord, { ...wallet, amt_token: '+5' }],
  ['An address of 41 characters', walletRecord, { ...wallet, token_addr: ADDR.slice(1) }],
  ['A lock that is neither', tokenRecord, { ...token, token_is_locked: 2 }],
  ['A token without its id', tokenRecord, { ...token, token_id: null }],
  ['A list', walletRecord, [wallet]],
  ['Null', walletRecord, null],
  [
    'A page with a broken row',
    tokenPage,
    { total: 1, perPage: 1, page: 1, lastPage: 1, data: [{}] },
  ],
  ['An unknown maintenance status', maintenanceRecord, { status: 'MAYBE' }],
  ['An access token with a line break', accessTokenRecord, { access_token: 'a\nb' }],
])('%s is refused', (_title, record, value) => {
  expect(record.safeParse(value).success).toBe(false);
});
