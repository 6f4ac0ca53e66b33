/** The records of the service, read without losing a digit. */
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

const ADDR = `0x${'aB'.repeat(20)}`;
const HASH = `0x${'cd'.repeat(32)}`;
const wallet = { token_addr: ADDR, amt_token: 5, status: 1 };
const token = {
  contract_id: 3,
  token_id: 9,
  token_owner: ADDR,
  token_uri: 'ipfs://x',
  token_metadata: '{"a":1}',
  token_extradata: '',
  token_creator: ADDR,
  token_created_at: '2026-01-01 09:00:00',
  token_owned_at: '2026-01-02 09:00:00',
  token_is_locked: 1,
  status: 2,
  last_tx_hash: HASH,
};
/** A whole number of 1 to 60 digits. */
const whole = fc
  .integer({ min: 1, max: 60 })
  .chain((digits) => fc.bigInt({ min: -(10n ** BigInt(digits)) + 1n, max: 10n ** BigInt(digits) }));
/** As the service may write it. */
const written = (value: bigint, asText: boolean) => (asText ? value.toString() : value);

describe('whole numbers of 1 to 60 digits survive, as number or text', () => {
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

it('a token keeps its texts as they are', () => {
  expect(tokenRecord.parse(token)).toEqual({
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
  ['the status of a wallet as text', walletRecord, { ...wallet, status: '2' }],
  ['further fields', walletRecord, { ...wallet, more: 1 }],
  ['a lock written as boolean', tokenRecord, { ...token, token_is_locked: false }],
  ['a lock written as text', tokenRecord, { ...token, token_is_locked: '0' }],
  ['texts that are null', tokenRecord, { ...token, token_metadata: null, last_tx_hash: null }],
  ['a status we do not know', tokenRecord, { ...token, status: 7 }],
  ['an empty page', tokenPage, { total: 0, perPage: 100, page: 1, lastPage: 1, data: [] }],
  [
    'no maintenance',
    maintenanceRecord,
    { status: 'ACTIVE', start: null, end: null, message: null },
  ],
  ['a check without a token', tokenCheckRecord, { active: false }],
])('%s is read', (_what, record, value) => {
  expect(record.safeParse(value).success).toBe(true);
});

it.each([
  ['an amount with a fraction', walletRecord, { ...wallet, amt_token: 1.5 }],
  ['an amount in exponents', walletRecord, { ...wallet, amt_token: 1e300 }],
  ['an amount that is missing', walletRecord, { token_addr: ADDR, status: 1 }],
  ['an amount with a sign', walletRecord, { ...wallet, amt_token: '+5' }],
  ['an address of 41 characters', walletRecord, { ...wallet, token_addr: ADDR.slice(1) }],
  ['a lock that is neither', tokenRecord, { ...token, token_is_locked: 2 }],
  ['a token without its id', tokenRecord, { ...token, token_id: null }],
  ['a list', walletRecord, [wallet]],
  ['null', walletRecord, null],
  [
    'a page with a broken row',
    tokenPage,
    { total: 1, perPage: 1, page: 1, lastPage: 1, data: [{}] },
  ],
  ['an unknown maintenance status', maintenanceRecord, { status: 'MAYBE' }],
  ['an access token with a line break', accessTokenRecord, { access_token: 'a\nb' }],
])('%s is refused', (_what, record, value) => {
  expect(record.safeParse(value).success).toBe(false);
});
