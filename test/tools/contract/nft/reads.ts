/** Section 4.1, rows 6 and 7: the list with its filters and pages, and the single read. */
import { dataOf, listTokens, mint, readToken, refusedNft } from '../client/endpoints.ts';
import { contract } from '../client/parameters.ts';
import type { JsonField } from '../client/reply.ts';
import type { Service } from '../client/service.ts';
import { sample } from '../client/shared-replies.ts';
import { completeToken, freshWallet, newTokenId, TOKEN_URI, wallet } from '../client/test-data.ts';
import { ensure, equal, NotChecked, type Statement, statement } from '../statement.ts';

/** The most pages of one owner that are read. */
const PAGES_MAX = 60n;

const lower = (place: JsonField, name: string) => place.text(name).toLowerCase();

async function rows(service: Service, query: Record<string, string>): Promise<JsonField[]> {
  return dataOf(await listTokens(service, { perPage: '100', ...query })).list('data');
}

async function ids(service: Service, query: Record<string, string>): Promise<bigint[]> {
  return (await rows(service, query)).map((row) => row.integer('token_id'));
}

const SHAPE: Statement[] = [
  ...['total', 'perPage', 'page', 'lastPage'].map((name) =>
    statement('4.1', `list: ${name} is an integer`, async (service) => {
      dataOf(await listTokens(service)).integer(name);
    }),
  ),
  statement('4.1', 'list: data is an array of NFT token records', async (service) => {
    await sample(service);
    for (const row of dataOf(await listTokens(service)).list('data')) row.integer('token_id');
  }),
  statement('4.1', 'list: every query parameter is optional', async (service) => {
    dataOf(await listTokens(service, {}));
  }),
  statement('4.1', 'list: total is the number of tokens found', async (service) => {
    const ownerAddr = await threeTokens(service);
    const total = dataOf(await listTokens(service, { ownerAddr })).integer('total');
    equal('total', total, BigInt((await everyId(service, ownerAddr, '2')).length));
    ensure(!service.controlled || total === 3n, `total should be 3 and is ${total}`);
  }),
];

const FILTERS: Statement[] = [
  statement('4.1', 'list: ownerAddr restricts to tokens of that owner', async (service) => {
    const { owner, id } = await sample(service);
    const data = dataOf(await listTokens(service, { ownerAddr: owner, perPage: '100' }));
    const found = data.list('data');
    const isWhole = data.integer('total') === BigInt(found.length);
    for (const row of found) equal('token_owner', lower(row, 'token_owner'), owner.toLowerCase());
    const has = found.some((row) => row.integer('token_id') === id) || !isWhole;
    ensure(has, `the list of ${owner} should hold its token ${id}`);
  }),
  statement('4.1', 'list: creatorAddr restricts to tokens of that creator', async (service) => {
    const creatorAddr = (await sample(service)).single.text('token_creator', 42);
    const found = await rows(service, { creatorAddr });
    ensure(found.length > 0, `the list of the creator ${creatorAddr} should not be empty`);
    for (const row of found) {
      equal('token_creator', lower(row, 'token_creator'), creatorAddr.toLowerCase());
    }
  }),
  ...['ownerAddr', 'creatorAddr'].map((name) =>
    statement('4.1', `list: an ${name} without tokens finds nothing`, async (service) => {
      await sample(service);
      const query = { [name]: `0x${'1'.repeat(39)}e` };
      equal('total', dataOf(await listTokens(service, query)).integer('total'), 0n);
    }),
  ),
  statement('4.1', 'list: isLocked=true restricts to locked tokens', async (service) => {
    const { locked, owner } = await lockedToken(service);
    const found = await rows(service, { ownerAddr: owner, isLocked: 'true' });
    for (const row of found) equal('token_is_locked', row.integer('token_is_locked'), 1n);
    const has = found.some((row) => row.integer('token_id') === locked);
    ensure(has, `the locked tokens should hold token ${locked}`);
  }),
  statement('4.1', 'list: isLocked=false restricts to unlocked tokens', async (service) => {
    const ownerAddr = (await sample(service)).owner;
    const found = await rows(service, { ownerAddr, isLocked: 'false' });
    ensure(found.length > 0, 'the unlocked tokens should hold the one that was minted');
    for (const row of found) equal('token_is_locked', row.integer('token_is_locked'), 0n);
  }),
  statement('4.1', 'list: valid=true restricts to tokens not being processed', (service) =>
    service.control.withSwitches({ settle_median_ms: 600_000 }, async () => {
      const toAddr = await freshWallet(service);
      const id = newTokenId();
      dataOf(await mint(service, { toAddr, tokenId: String(id), tokenURI: TOKEN_URI }));
      equal(
        'the count with valid=true',
        (await ids(service, { ownerAddr: toAddr, valid: 'true' })).length,
        0,
      );
      equal(
        'the list without valid has the token',
        (await ids(service, { ownerAddr: toAddr })).includes(id),
        true,
      );
    }),
  ),
  statement('4.1', 'list: valid=true holds tokens that are complete', async (service) => {
    const { owner } = await sample(service);
    const found = await rows(service, { ownerAddr: owner, valid: 'true' });
    ensure(found.length > 0, 'a complete token should be among the valid ones');
    for (const row of found) {
      const being = [0n, 2n].includes(row.integer('status'));
      ensure(!being, `a token that is being processed is listed as valid: ${row.summary}`);
    }
  }),
  ...['isLocked', 'valid'].map((name) =>
    statement('4.1', `list: ${name} is a boolean: other text is refused`, async (service) =>
      refusedNft(await listTokens(service, { [name]: 'perhaps' }), 400n),
    ),
  ),
  ...['page', 'perPage'].map((name) =>
    statement('4.1', `list: ${name} is an integer: other text is refused`, async (service) =>
      refusedNft(await listTokens(service, { [name]: 'many' }), 400n),
    ),
  ),
];

const PAGES: Statement[] = [
  statement('4.1', 'list: page is the current page', async (service) => {
    const ownerAddr = await threeTokens(service);
    const data = dataOf(await listTokens(service, { ownerAddr, page: '2', perPage: '1' }));
    equal('page', data.integer('page'), 2n);
  }),
  statement('4.1', 'list: perPage is the most that one page holds', async (service) => {
    const ownerAddr = await threeTokens(service);
    const data = dataOf(await listTokens(service, { ownerAddr, perPage: '2' }));
    const perPage = data.integer('perPage');
    const count = BigInt(data.list('data').length);
    ensure(count <= perPage, `a page of ${perPage} should not hold ${count} tokens`);
  }),
  statement('4.1', 'list: lastPage is the last page that holds tokens', async (service) => {
    const ownerAddr = await threeTokens(service);
    const query = { ownerAddr, perPage: '2' };
    const last = dataOf(await listTokens(service, query)).integer('lastPage');
    const at = async (page: bigint) =>
      dataOf(await listTokens(service, { ...query, page: String(page) })).list('data').length;
    ensure((await at(last)) > 0, `page ${last}, the last one, should not be empty`);
    equal('tokens after the last page', await at(last + 1n), 0);
  }),
  statement('4.1', 'list: the pages together hold every token once', async (service) => {
    const ownerAddr = await threeTokens(service);
    const seen = await everyId(service, ownerAddr, '1');
    equal('the count of different tokens', new Set(seen).size, seen.length);
    equal('the count of tokens', seen.length, (await everyId(service, ownerAddr, '2')).length);
  }),
];

/** The ids of all pages. @throws NotChecked when there are too many */
async function everyId(service: Service, ownerAddr: string, perPage: string): Promise<bigint[]> {
  const found: bigint[] = [];
  for (let page = 1n; page <= PAGES_MAX; page += 1n) {
    const query = { ownerAddr, perPage, page: String(page) };
    const data = dataOf(await listTokens(service, query));
    found.push(...data.list('data').map((row) => row.integer('token_id')));
    if (page >= data.integer('lastPage')) return found;
  }
  throw new NotChecked('needs a --wallet that owns fewer tokens');
}

const SINGLE: Statement[] = [
  statement('4.1', 'read answers one NFT token record', async (service) => {
    const { single, id } = await sample(service);
    equal('token_id', single.integer('token_id'), id);
  }),
  statement('4.1', 'read: tokenId is an integer', async (service) =>
    refusedNft(await readToken(service, 'seven'), 400n, 404n),
  ),
  statement('4.1', 'read shows the same record as the list', async (service) => {
    const { single, listed, id } = await sample(service);
    const row = listed.find((each) => each.integer('token_id') === id);
    if (!row) return;
    for (const name of ['token_owner', 'token_uri', 'token_metadata', 'last_tx_hash']) {
      equal(name, row.text(name), single.text(name));
    }
  }),
];

export const NFT_READS: Statement[] = [...SHAPE, ...FILTERS, ...PAGES, ...SINGLE];

/** The owner of three tokens, a new wallet if possible. */
function threeTokens(service: Service): Promise<string> {
  return service.once('three tokens', async () => {
    const to = await (service.controlled ? freshWallet(service) : wallet(service));
    for (let n = 0; n < 3; n += 1) await completeToken(service, { to });
    return to;
  });
}

function lockedToken(service: Service): Promise<{ locked: bigint; owner: string }> {
  return service.once('locked token', async () => {
    const locked = await completeToken(service);
    await service.control.setToken(await contract(service), locked, { locked: true });
    return { locked, owner: await wallet(service) };
  });
}
