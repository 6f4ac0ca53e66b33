/** Section 4.1, rows 1 to 5, and section 1 on writes. */
import { until } from '../../../harness/until.ts';
import {
  burn,
  dataOf,
  listTokens,
  mintSequential,
  readToken,
  refusedNft,
  setExtraData,
  transferFrom,
} from '../client/endpoints.ts';
import { contract } from '../client/parameters.ts';
import type { Service } from '../client/service.ts';
import { type EndpointName, EXTRA, META, sharedReply } from '../client/shared-replies.ts';
import {
  completeToken,
  settled,
  TOKEN_URI,
  unknownAddress,
  userAddr,
  userToken,
  wallet,
} from '../client/test-data.ts';
import { ensure, equal, NotHeld, type Statement, statement } from '../statement.ts';
import { mintWith } from './mint-input.ts';

const WRITES: EndpointName[] = [
  'NFT mint',
  'NFT mint-sequential',
  'NFT burn',
  'NFT set-extra-data',
  'NFT transfer-from',
];

const HASHES: Statement[] = [
  ...WRITES.flatMap((endpoint) =>
    [
      ['4.1', `${endpoint} answers tx_hash of 66 characters`] as const,
      ['8', `tx_hash has length 66 (${endpoint})`] as const,
    ].map(([section, title]) =>
      statement(section, title, async (service) => {
        dataOf(await sharedReply(service, endpoint)).text('tx_hash', 66);
      }),
    ),
  ),
  statement('1', 'Every write returns a transaction hash of its own', async (service) => {
    const hashes = new Set<string>();
    for (const endpoint of WRITES)
      hashes.add(dataOf(await sharedReply(service, endpoint)).text('tx_hash'));
    equal('the count of different hashes', hashes.size, WRITES.length);
  }),
];

const MINTS: Statement[] = [
  ...(['toAddr', 'tokenId', 'tokenURI'] as const).map((field) =>
    statement('4.1', `mint: ${field} is required`, async (service) =>
      refusedNft(await mintWith(service, 'mint', { [field]: undefined }), 400n),
    ),
  ),
  ...(['toAddr', 'tokenURI'] as const).map((field) =>
    statement('4.1', `mint-sequential: ${field} is required`, async (service) =>
      refusedNft(await mintWith(service, 'mint-sequential', { [field]: undefined }), 400n),
    ),
  ),
  statement('4.1', 'mint takes metaData and extraData', async (service) => {
    dataOf(await mintWith(service, 'mint', { metaData: META, extraData: EXTRA }));
  }),
  statement('4.1', 'mint-sequential: tokenId is an integer, assigned automatically', async (s) => {
    const { id } = await sequential(s);
    ensure(id >= 0n, `tokenId should be the id of a token and is ${id}`);
  }),
  statement('4.1', 'mint-sequential assigns another tokenId each time', async (service) => {
    const form = { toAddr: await wallet(service), tokenURI: TOKEN_URI };
    const one = dataOf(await mintSequential(service, form)).integer('tokenId');
    const two = dataOf(await mintSequential(service, form)).integer('tokenId');
    ensure(one !== two, `two tokens should have two ids, and both have ${one}`);
  }),
  statement('4.1', 'mint-sequential mints the token with the assigned id', async (service) => {
    const { id, toAddr } = await sequential(service);
    const record = await settled(service, id);
    equal('token_id', record.integer('token_id'), id);
    equal('token_owner', record.text('token_owner').toLowerCase(), toAddr.toLowerCase());
    equal('token_metadata', record.text('token_metadata'), META);
    equal('token_extradata', record.text('token_extradata'), EXTRA);
  }),
];

function sequential(service: Service) {
  return service.once('sequential', async () => {
    const toAddr = await wallet(service);
    const form = { toAddr, tokenURI: TOKEN_URI, metaData: META, extraData: EXTRA };
    const reply = await mintSequential(service, form);
    return { toAddr, id: dataOf(reply).integer('tokenId') };
  });
}

const OTHERS: Statement[] = [
  statement('4.1', 'burn: tokenId is required', async (service) =>
    refusedNft(await burn(service, {}), 400n),
  ),
  statement('4.1', 'burn: tokenId is an integer', async (service) =>
    refusedNft(await burn(service, { tokenId: 'seven' }), 400n),
  ),
  statement('4.1', 'burn removes the token from its owner', async (service) => {
    const id = await completeToken(service);
    dataOf(await burn(service, { tokenId: String(id) }));
    const ownerAddr = await wallet(service);
    const removed = await until(
      async () => {
        const list = dataOf(await listTokens(service, { ownerAddr, perPage: '100' })).list('data');
        return list.every((row) => row.integer('token_id') !== id) ? true : undefined;
      },
      { deadlineMs: service.options.patienceMs ?? 8_000 },
    );
    if (!removed) throw new NotHeld(`token ${id} is still listed for its owner after its burn`);
  }),
  statement('4.1', 'set-extra-data: the path tokenId is an integer', async (service) => {
    const path = `/v1/chain/erc721/${await contract(service)}/tokens/seven/set-extra-data`;
    const form = { extraData: EXTRA };
    const reply = await service.send('base', 'PUT', path, { form, as: 'user' });
    refusedNft(reply, 400n, 404n);
  }),
  statement('4.1', 'set-extra-data changes the mutable data of the token', async (service) => {
    const id = await userToken(service);
    const reply = await setExtraData(service, id, { extraData: '{"a":"ä + b & c"}' });
    const hash = dataOf(reply).text('tx_hash');
    const text = (await settled(service, id, hash)).text('token_extradata');
    equal('token_extradata', text, '{"a":"ä + b & c"}');
  }),
  statement('4.1', 'set-extra-data: extraData is a JSON string', async (service) => {
    const id = await userToken(service);
    refusedNft(await setExtraData(service, id, { extraData: '{"a":' }), 400n);
  }),
  ...(['fromAddr', 'toAddr', 'tokenId'] as const).map((field) =>
    statement('4.1', `transfer-from: ${field} is required`, async (service) => {
      const { [field]: _left, ...form } = await transferForm(service);
      refusedNft(await transferFrom(service, form), 400n);
    }),
  ),
  statement('4.1', 'transfer-from: tokenId is an integer', async (service) => {
    const form = { ...(await transferForm(service)), tokenId: 'seven' };
    refusedNft(await transferFrom(service, form), 400n);
  }),
  statement('4.1', 'transfer-from: fromAddr is the current owner', async (service) => {
    const form = { ...(await transferForm(service)), fromAddr: unknownAddress() };
    refusedNft(await transferFrom(service, form), 400n, 401n, 422n);
  }),
  statement('4.1', 'transfer-from: toAddr is the new owner', async (service) => {
    const form = await transferForm(service);
    const hash = dataOf(await transferFrom(service, form)).text('tx_hash');
    const record = await settled(service, BigInt(form.tokenId), hash);
    equal('token_owner', record.text('token_owner').toLowerCase(), form.toAddr.toLowerCase());
  }),
  statement('4.1', 'contractId is an integer path parameter', async (service) => {
    const reply = await service.send('base', 'GET', '/v1/chain/erc721/seven/tokens');
    refusedNft(reply, 400n, 404n);
  }),
  statement('4.1', 'The contract is the one of the path', async (service) => {
    const id = await completeToken(service);
    equal('token_id', dataOf(await readToken(service, id)).integer('token_id'), id);
    const path = `/v1/chain/erc721/${2n ** 40n}/tokens/${id}`;
    refusedNft(await service.send('base', 'GET', path), 400n, 401n, 404n, 422n);
  }),
];

async function transferForm(service: Service) {
  const tokenId = String(await userToken(service));
  return { fromAddr: await userAddr(service), toAddr: await wallet(service), tokenId };
}

export const NFT_WRITES: Statement[] = [...HASHES, ...MINTS, ...OTHERS];
