/** Section 7.1: errors of the NFT endpoints. */
import {
  dataOf,
  listTokens,
  mint,
  readToken,
  refusedNft,
  setExtraData,
  transferFrom,
} from '../client/endpoints.ts';
import { contract } from '../client/parameters.ts';
import type { Reply } from '../client/reply.ts';
import type { Service } from '../client/service.ts';
import { sample } from '../client/shared-replies.ts';
import {
  newTokenId,
  nonce,
  TOKEN_URI,
  unknownAddress,
  userAddr,
  userToken,
  wallet,
} from '../client/test-data.ts';
import { ensure, equal, type Statement, statement } from '../statement.ts';
import { mintWith } from './mint-input.ts';

/** Requests that lead to each status. */
const WAYS: [status: bigint, title: string, go: (service: Service) => Promise<Reply>][] = [
  [
    400n,
    'validation error: a wrong parameter of a write',
    (service) => mintWith(service, 'mint', { toAddr: 'short' }),
  ],
  [
    400n,
    'validation error: a wrong parameter of a read',
    (service) => listTokens(service, { ownerAddr: 'short' }),
  ],
  [401n, 'unauthorized: a read', (service) => listTokens(service, {}, { bearer: nonce() })],
  [
    401n,
    'unauthorized: a write',
    async (service) => {
      const form = { toAddr: await wallet(service), tokenURI: TOKEN_URI };
      return mint(service, { ...form, tokenId: String(newTokenId()) }, { bearer: nonce() });
    },
  ],
  [
    404n,
    'URL does not exist (write)',
    async (service) => {
      const path = `/v1/chain/erc721/${await contract(service)}/no-such-url`;
      return service.send('base', 'POST', path, { form: { tokenId: '1' } });
    },
  ],
  [
    404n,
    'URL does not exist (read)',
    async (service) =>
      service.send('base', 'GET', `/v1/chain/erc721/${await contract(service)}/no-such-url`),
  ],
  [
    422n,
    'request cannot be processed: a mint of an id that is taken',
    async (service) => mintWith(service, 'mint', { tokenId: String((await sample(service)).id) }),
  ],
  [
    422n,
    'request cannot be processed: a transfer of a locked token',
    async (service) => {
      const id = await userToken(service);
      await service.control.setToken(await contract(service), id, { locked: true });
      const parties = { fromAddr: await userAddr(service), toAddr: await wallet(service) };
      return transferFrom(service, { ...parties, tokenId: String(id) });
    },
  ],
  [
    422n,
    'request cannot be processed: new data for a token that is being processed',
    async (service) => {
      const id = await userToken(service);
      return service.control.withSwitches({ settle_median_ms: 600_000 }, async () => {
        dataOf(await setExtraData(service, id, { extraData: '{}' }));
        return setExtraData(service, id, { extraData: '{"again":1}' });
      });
    },
  ],
];

/** A read that meets the fault; no other request meets it. */
function faultyRead(service: Service, fault: object): Promise<Reply> {
  const ownerAddr = unknownAddress();
  const { control } = service;
  return control.withFault(fault, ownerAddr, () => listTokens(service, { ownerAddr }));
}

function faultyMint(service: Service, fault: object): Promise<Reply> {
  const tokenURI = `https://example.com/${nonce()}`;
  const { control } = service;
  return control.withFault(fault, encodeURIComponent(tokenURI), () =>
    mintWith(service, 'mint', { tokenURI }),
  );
}

const FORCED: Statement[] = [
  ...[400n, 401n, 404n, 422n, 500n].flatMap((status) => [
    statement('7.1', `Body status ${status} comes with HTTP 200 (read)`, async (service) =>
      refusedNft(await faultyRead(service, { kind: 'error', code: String(status) }), status),
    ),
    statement('7.1', `Body status ${status} comes with HTTP 200 (write)`, async (service) =>
      refusedNft(await faultyMint(service, { kind: 'error', code: String(status) }), status),
    ),
  ]),
  ...[403, 405, 410, 502, 504].flatMap((status) => [
    statement('7.1', `${status} is returned as the HTTP code itself (read)`, async (service) =>
      equal(
        'the HTTP code',
        (await faultyRead(service, { kind: 'status', status })).status,
        status,
      ),
    ),
    statement('7.1', `${status} is returned as the HTTP code itself (write)`, async (service) =>
      equal(
        'the HTTP code',
        (await faultyMint(service, { kind: 'status', status })).status,
        status,
      ),
    ),
  ]),
];

const SHAPE: Statement[] = [
  statement('7.1', 'status of an error is an integer', async (service) => {
    (await wrong(service)).top.integer('status');
  }),
  statement('7.1', 'error is an array', async (service) => {
    (await wrong(service)).top.list('error');
  }),
  ...['message', 'field', 'validation'].map((name) =>
    statement('7.1', `${name} of each error is a string`, async (service) => {
      for (const each of (await wrong(service)).top.list('error')) each.text(name);
    }),
  ),
  statement('7.1', 'An error names the field that is wrong', async (service) => {
    const reply = await wrong(service);
    const fields = reply.top.list('error').map((each) => each.text('field'));
    ensure(fields.includes('toAddr'), `toAddr should be named; received: ${reply.summary}`);
  }),
];

/** A validation error. */
function wrong(service: Service): Promise<Reply> {
  return service.once('validation error', () => mintWith(service, 'mint', { toAddr: 'short' }));
}

const BEGUN = { state: 'on', duration_ms: 600_000 };

const MAINTENANCE: Statement[] = [
  ['read', (service: Service) => listTokens(service)] as const,
  ['single read', (service: Service) => readToken(service, 1n)] as const,
  ['write', (service: Service) => mintWith(service, 'mint', {})] as const,
].map(([name, go]) =>
  statement('7.1', `HTTP 503 says that the service is under maintenance (${name})`, async (s) => {
    // Obtained before maintenance starts.
    await wallet(s);
    await s.clientToken();
    await s.control.withMaintenance(BEGUN, async () => {
      const reply = await go(s);
      equal(`the HTTP code of ${reply.summary}`, reply.status, 503);
      ensure(
        /maintenance/i.test(reply.text),
        `the body should mention maintenance: ${reply.summary}`,
      );
    });
  }),
);

export const ERRORS_NFT: Statement[] = [
  ...WAYS.map(([status, title, go]) =>
    statement('7.1', `${status} ${title}`, async (service) =>
      refusedNft(await go(service), status),
    ),
  ),
  ...SHAPE,
  ...FORCED,
  ...MAINTENANCE,
];
