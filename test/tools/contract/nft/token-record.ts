/** Section 2.1: the NFT token record, field by field, in the single read and in the list. */
import { dataOf, listTokens, readToken, setExtraData, transferFrom } from '../client/endpoints.ts';
import { contract } from '../client/parameters.ts';
import type { JsonField } from '../client/reply.ts';
import type { Service } from '../client/service.ts';
import { EXTRA, hugeToken, META, sample } from '../client/shared-replies.ts';
import {
  completeToken,
  settled,
  TOKEN_URI,
  userAddr,
  userToken,
  wallet,
} from '../client/test-data.ts';
import { ensure, equal, type Statement, statement, untestable } from '../statement.ts';

type Field = [title: string, check: (record: JsonField, service: Service) => Promise<void> | void];

function oneOf(record: JsonField, name: string, ...allowed: bigint[]): void {
  const value = record.integer(name);
  ensure(
    allowed.includes(value),
    `${name} should be one of ${allowed}; received: ${record.summary}`,
  );
}

/** JSON text or an empty text. */
function jsonText(record: JsonField, name: string): void {
  const text = record.text(name);
  ensure(text === '' || isJson(text), `${name} should be JSON text or empty and is "${text}"`);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** JSON text without white space; other text unchanged. */
function plain(text: string): string {
  return isJson(text) ? JSON.stringify(JSON.parse(text)) : text;
}

const FIELDS: Field[] = [
  [
    'contract_id is an integer, the NFT contract id',
    async (record, service) =>
      equal('contract_id', record.integer('contract_id'), await contract(service)),
  ],
  ['token_id is an integer, the token id', (record) => void record.integer('token_id')],
  ['token_owner is a string of length 42', (record) => void record.text('token_owner', 42)],
  ['token_uri is a string', (record) => void record.text('token_uri')],
  ['token_metadata is a string of JSON text', (record) => jsonText(record, 'token_metadata')],
  ['token_extradata is a string of JSON text', (record) => jsonText(record, 'token_extradata')],
  ['token_creator is a string of length 42', (record) => void record.text('token_creator', 42)],
  ['token_created_at is written like YYYY-MM-DD HH:MM:SS', (r) => void r.time('token_created_at')],
  ['token_owned_at is written like YYYY-MM-DD HH:MM:SS', (r) => void r.time('token_owned_at')],
  [
    'token_is_locked is an integer: 1 = locked, 0 = unlocked',
    (record) => oneOf(record, 'token_is_locked', 0n, 1n),
  ],
  [
    'status is an integer: 0 Pending, 1 Complete, 2 Progress, 3 Fail',
    (record) => oneOf(record, 'status', 0n, 1n, 2n, 3n),
  ],
  ['last_tx_hash is a string of length 66', (record) => void record.text('last_tx_hash', 66)],
];

const SHAPES = FIELDS.flatMap(([title, check]) => [
  statement('2.1', `${title} (single-token read)`, async (service) =>
    check((await sample(service)).single, service),
  ),
  statement('2.1', `${title} (list)`, async (service) => {
    for (const record of (await sample(service)).listed) await check(record, service);
  }),
]);

/** Values of a token that was minted with known input. */
const VALUES = [
  statement('2.1', 'token_id is the id of the token that is read', async (service) => {
    const { id, single } = await sample(service);
    equal('token_id', single.integer('token_id'), id);
  }),
  statement('2.1', 'token_id beyond 2^53 is written digit by digit', async (service) => {
    const id = await hugeToken(service);
    equal('token_id', dataOf(await readToken(service, id)).integer('token_id'), id);
  }),
  statement('2.1', 'token_owner is the wallet address of the owner', async (service) => {
    const { single, owner } = await sample(service);
    equal('token_owner', single.text('token_owner').toLowerCase(), owner.toLowerCase());
  }),
  statement('2.1', "token_uri is the URI of the token's metadata", async (service) => {
    equal('token_uri', (await sample(service)).single.text('token_uri'), TOKEN_URI);
  }),
  statement('2.1', 'token_metadata is the data given at the mint', async (service) => {
    const text = (await sample(service)).single.text('token_metadata');
    equal('token_metadata', plain(text), META);
  }),
  statement('2.1', 'token_extradata is the data given at the mint', async (service) => {
    const text = (await sample(service)).single.text('token_extradata');
    equal('token_extradata', plain(text), EXTRA);
  }),
  statement('2.1', 'token_metadata and token_extradata may be an empty string', async (service) => {
    const record = dataOf(await readToken(service, await plainToken(service)));
    record.text('token_metadata');
    record.text('token_extradata');
  }),
  statement('2.1', 'token_metadata is immutable, token_extradata is mutable', async (service) => {
    const to = await userAddr(service);
    const id = await completeToken(service, { to, metaData: META, extraData: EXTRA });
    const reply = await setExtraData(service, id, { extraData: '{"level":2}' });
    const record = await settled(service, id, dataOf(reply).text('tx_hash'));
    equal('token_extradata', plain(record.text('token_extradata')), '{"level":2}');
    equal('token_metadata', plain(record.text('token_metadata')), META);
  }),
  statement('2.1', 'token_creator is a wallet address that creatorAddr finds', async (service) => {
    const { id, single, owner } = await sample(service);
    const query = { creatorAddr: single.text('token_creator', 42), ownerAddr: owner };
    const data = dataOf(await listTokens(service, { ...query, perPage: '100' }));
    const rows = data.list('data');
    const found = rows.some((row) => row.integer('token_id') === id);
    ensure(
      found || data.integer('total') > BigInt(rows.length),
      `the list of its creator should contain token ${id}`,
    );
  }),
  statement('2.1', 'token_created_at does not change when the owner does', async (service) => {
    const { before, after } = await moved(service);
    equal('token_created_at', after.text('token_created_at'), before.text('token_created_at'));
  }),
  statement('2.1', 'token_owned_at is the time of the last owner change', async (service) => {
    const { before, after } = await moved(service);
    const [old, now] = [before.text('token_owned_at'), after.text('token_owned_at')];
    const later = service.controlled ? now > old : now >= old;
    ensure(later, `token_owned_at should change with the owner; it was ${old} and is ${now}`);
  }),
  statement('2.1', 'last_tx_hash is the hash of the most recent write', async (service) => {
    const { after, hash } = await moved(service);
    equal('last_tx_hash', after.text('last_tx_hash', 66), hash);
  }),
];

const LOCK = [
  statement('2.1', 'A token is locked when it is registered on a market', async (service) => {
    const id = await completeToken(service);
    await service.control.setToken(await contract(service), id, { locked: true });
    const record = dataOf(await readToken(service, id));
    equal('token_is_locked', record.integer('token_is_locked'), 1n);
  }),
  statement(
    '2.1',
    "While a token is locked, its owner cannot change the token's information",
    async (service) => {
      const id = await userToken(service);
      await service.control.setToken(await contract(service), id, { locked: true });
      const before = dataOf(await readToken(service, id)).text('token_extradata');
      const reply = await setExtraData(service, id, { extraData: '{"changed":true}' });
      ensure(
        reply.status !== 200 || reply.top.integer('status') !== 200n,
        `set-extra-data of a locked token should be refused; it was answered ${reply.summary}`,
      );
      const after = dataOf(await readToken(service, id)).text('token_extradata');
      equal('token_extradata of a locked token', after, before);
    },
  ),
];

export const TOKEN_RECORD: Statement[] = [
  ...SHAPES,
  ...VALUES,
  ...LOCK,
  untestable('2.1', 'Time zone of timestamps', 'not shown by the interface'),
];

/** A token that was minted without data. */
function plainToken(service: Service): Promise<bigint> {
  return service.once('plain token', () => completeToken(service));
}

/** A token before and after a transfer, and the hash of the transfer. */
function moved(service: Service): Promise<{ before: JsonField; after: JsonField; hash: string }> {
  return service.once('moved token', async () => {
    const id = await userToken(service);
    const before = dataOf(await readToken(service, id));
    // Timestamps have whole seconds.
    if (service.controlled) await service.control.moveClock(2_000);
    const fields = { fromAddr: await userAddr(service), toAddr: await wallet(service) };
    const data = dataOf(await transferFrom(service, { ...fields, tokenId: String(id) }));
    const hash = data.text('tx_hash', 66);
    return { before, after: await settled(service, id, hash), hash };
  });
}
