/**
 * Every kind of write, numbered, so that the service's log and the recorded operations can be
 * compared: the number is in the operation's reference and in the effect that the service logs.
 */
import type { Effect } from '../../../src/sandbox/state/records.ts';
import type { App } from '../../harness/app.ts';
import { ADMIN_KEY, type World } from '../../harness/daemon.ts';
import { until } from '../../harness/until.ts';
import { userTokenOf } from '../../harness/user-token.ts';

export interface NumberedWrite {
  /** What the write requires, done before the daemon starts. */
  prepare?: (n: number) => void;
  /** @param headers further ones, beside the reference */
  write: (app: App, n: number, headers?: Record<string, string>) => Promise<unknown>;
  /** The number of the write that an effect in the service's log comes from. */
  numberOf: (effect: Effect) => number;
  /** The kind of operation, where it is not the name. */
  kind?: string;
}

const CONTRACT = '/v1/chain/erc721/1';
const URI = 'https://example.com/kill/';

export const referenceOf = (n: number) => ({ 'tallyhook-reference': `kill-${n}.` });

const numberOfGive = ({ amount }: Effect) => Number(amount) - 1_000;

/** Accepted into the request queue during maintenance, and sent after it. */
function queuedGive({ ada, sandbox }: World): NumberedWrite['write'] {
  return async (app, n) => {
    sandbox.control.maintenance({ state: 'on' });
    const wait = { prefer: 'respond-async', ...referenceOf(n) };
    const answer = await app.give(ada, 1_000 + n, wait).finally(() => {
      sandbox.control.maintenance({ state: 'off' });
    });
    const id = String(answer.headers['tallyhook-operation']);
    await until(async () => {
      const { json } = await app.call('GET', `/api/operations/${id}`);
      return (json as { state?: string }).state === 'accepted' || undefined;
    });
  };
}

/**
 * The writes of one world, in which Ada can pay for any number of them and is logged in for those
 * that need a user's token.
 */
export async function numberedWrites(world: World): Promise<Record<string, NumberedWrite>> {
  world.sandbox.control.setWallet(world.ada, { amt_token: 1_000_000_000n });
  const user = await userTokenOf(world.sandbox, 1);
  const asAda = { authorization: `Bearer ${user}`, 'tallyhook-key': ADMIN_KEY };
  return { ...payments(world), ...mints(world), ...tokenWrites(world, asAda) };
}

function payments(world: World): Record<string, NumberedWrite> {
  const { ada, ben } = world;
  return {
    give: {
      write: (app, n, headers) => app.give(ada, 1_000 + n, { ...referenceOf(n), ...headers }),
      numberOf: numberOfGive,
    },
    'queued give': { kind: 'give', write: queuedGive(world), numberOf: numberOfGive },
    receive_from: {
      write: (app, n) => app.receiveFrom(ada, 1 + n, referenceOf(n)),
      numberOf: ({ amount }) => Number(amount) - 1,
    },
    transfer: {
      write: (app, n) => app.transfer(ada, ben, 1 + n, referenceOf(n)),
      numberOf: ({ amount }) => Number(amount) - 1,
    },
  };
}

const form = (app: App, method: string, path: string, body: object, headers: object) =>
  app.call(method, `${CONTRACT}/${path}`, new URLSearchParams(body as never), { ...headers });
const tokenLess = (first: number) => (effect: Effect) => Number(effect.token_id) - first;

function mints({ ada, sandbox }: World): Record<string, NumberedWrite> {
  const ofUri = (n: number) => ({ toAddr: ada, tokenURI: `${URI}${n}` });
  return {
    mint: {
      write: (app, n) => app.mint(ada, 10_000 + n, referenceOf(n)),
      numberOf: tokenLess(10_000),
    },
    mint_sequential: {
      write: (app, n) => form(app, 'POST', 'mint-sequential', ofUri(n), referenceOf(n)),
      numberOf: ({ token_id: id }) =>
        Number(sandbox.world.tokens.get(`1/${id}`)?.uri.slice(URI.length)),
    },
  };
}

/** Writes to tokens that Ada has. */
function tokenWrites({ ada, ben, sandbox }: World, asAda: object): Record<string, NumberedWrite> {
  const ownToken = (first: number) => (n: number) => {
    sandbox.control.setToken(1n, BigInt(first + n), { owner: ada, extra: '{}' });
  };
  const extra = (n: number) => ({ extraData: `{"n":${n}}` });
  const move = (n: number) => ({ fromAddr: ada, toAddr: ben, tokenId: 40_000 + n });
  return {
    burn: {
      prepare: ownToken(20_000),
      write: (app, n) => form(app, 'POST', 'burn', { tokenId: 20_000 + n }, referenceOf(n)),
      numberOf: tokenLess(20_000),
    },
    set_extra_data: {
      prepare: ownToken(30_000),
      write: (app, n) => {
        const path = `tokens/${30_000 + n}/set-extra-data`;
        return form(app, 'PUT', path, extra(n), { ...referenceOf(n), ...asAda });
      },
      numberOf: tokenLess(30_000),
    },
    transfer_from: {
      prepare: ownToken(40_000),
      write: (app, n) =>
        form(app, 'POST', 'transfer-from', move(n), { ...referenceOf(n), ...asAda }),
      numberOf: tokenLess(40_000),
    },
  };
}
