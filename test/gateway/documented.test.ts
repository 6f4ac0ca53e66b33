/** The gateway's paths as the document has them, against the gateway and the simulated service. */
import { expect, it } from 'vitest';
import { schemaOf } from '../../src/api/http/schemas.ts';
import { routeOf } from '../../src/gateway/routes.ts';
import { GATEWAY_PATHS, isOpen, queuedOperation } from '../../src/resources/operations/gateway.ts';
import { KINDS } from '../../src/resources/operations/operation.ts';
import { CLIENT } from '../harness/daemon.ts';
import { useRig } from '../harness/rig.ts';

const rig = useRig();
const CONTRACT = 1;

it('Each documented path of the gateway is the read or the kind of write that it says', () => {
  for (const path of GATEWAY_PATHS) {
    const route = routeOf(path.method.toUpperCase(), path.path.replaceAll(/\{\w+\}/g, '12'));
    if (isOpen(path)) expect(route.type).toBe('unauthenticated');
    else if (path.kind) expect(route).toMatchObject({ type: 'write', kind: path.kind });
    else expect(route.type).toBe('read');
  }
  const kinds = GATEWAY_PATHS.flatMap(({ kind = [] }) => kind);
  expect(kinds.toSorted()).toEqual(KINDS.filter((kind) => kind !== 'other').toSorted());
});

/** An input of each path that needs no user, with parameters by their names. */
const INPUTS: Record<string, () => { values?: object; headers?: Record<string, string> }> = {
  give: () => ({ values: { operationNo: 1, toAddr: rig.world.ada, amount: 40, reasonType: 'a' } }),
  transfer: () => ({
    values: {
      fromAddr: rig.world.ada,
      toAddr: rig.world.ben,
      amount: 4,
      feeAmount: 1,
      reasonType: 'a',
    },
  }),
  receive_from: () => ({
    values: { fromAddr: rig.world.ada, amount: 4, feeAmount: 1, reasonType: 'a' },
  }),
  '/v1/app/token/account': () => ({ values: { addr: rig.world.ada } }),
  mint: () => ({
    values: { toAddr: rig.world.ada, tokenId: 777, tokenURI: 'u', metaData: '{}', extraData: '' },
  }),
  mint_sequential: () => ({ values: { toAddr: rig.world.ada, tokenURI: 'u' } }),
  '/v1/chain/erc721/{contractId}/tokens': () => ({ values: { isLocked: false, perPage: 3 } }),
  '/v1/chain/erc721/{contractId}/tokens/{tokenId}': () => ({ values: { tokenId: 777 } }),
  burn: () => ({ values: { tokenId: 777 } }),
  '/v1/oauth/token': () => ({
    values: { grant_type: 'client_credentials' },
    headers: { authorization: basic() },
  }),
  '/v1/system/maintenance': () => ({}),
};

const basic = () =>
  `Basic ${Buffer.from(`${CLIENT.clientId}:${CLIENT.clientSecret}`).toString('base64')}`;

/** Sends what the definition of a path says of its input. */
async function call(name: string, { values = {}, headers = {} }: ReturnType<typeof inputOf>) {
  const path = GATEWAY_PATHS.find((one) => (one.kind ?? one.path) === name);
  if (!path) throw new Error(`${name} is not documented`);
  const all: Record<string, unknown> = { contractId: CONTRACT, ...values };
  const given = (fields = {}) =>
    Object.keys(fields).flatMap((one) =>
      all[one] === undefined ? [] : [[one, String(all[one])] as [string, string]],
    );
  const place = path.path.replaceAll(/\{(\w+)\}/g, (_, one: string) => String(all[one]));
  const query = new URLSearchParams(given(path.query)).toString();
  const { type, fields } = path.body ?? {};
  const json = Object.fromEntries(Object.entries(all).filter(([one]) => one in (fields ?? {})));
  const body = type === 'form' ? new URLSearchParams(given(fields)) : type && json;
  const target = query === '' ? place : `${place}?${query}`;
  const answer = await rig.app.call(path.method.toUpperCase(), target, body, headers);
  return { path, answer };
}

const TOKEN = '/v1/chain/erc721/{contractId}/tokens/{tokenId}';
const readToken = async () => (await call(TOKEN, inputOf(TOKEN))).answer.json.data;

const inputOf = (name: string) => INPUTS[name]?.() ?? {};

it.each(Object.keys(INPUTS))('The service answers %s as the document says', async (name) => {
  // A new token is processed first.
  if (name === 'burn') await expect.poll(async () => (await readToken()).status).toBe(1);
  const { path, answer } = await call(name, inputOf(name));
  expect(answer.status, answer.text).toBe(200);
  const parsed = schemaOf({ fields: path.answer }).safeParse(answer.json);
  expect(parsed.error?.issues ?? [], answer.text).toEqual([]);
  expect(parsed.data).toEqual(answer.json);
});

it.each([
  ['transfer', { fromAddr: 'x', toAddr: 'y', amount: 1, feeAmount: 1, reasonType: 'a' }],
  ['burn', { tokenId: 99_999_999 }],
  ['/v1/oauth/check_token', { token: 'none' }],
])('The service refuses %s as the document says', async (name, values) => {
  const { path, answer } = await call(name, { values });
  const parsed = schemaOf(path.refusal).safeParse(answer.json);
  expect(parsed.error?.issues ?? [], answer.text).toEqual([]);
  expect(parsed.data).toEqual(answer.json);
});

it('A queued write is answered as the document says', async () => {
  rig.world.sandbox.control.maintenance({ state: 'on' });
  try {
    const { answer } = await call('give', {
      ...inputOf('give'),
      headers: { prefer: 'respond-async' },
    });
    expect(answer.status, answer.text).toBe(202);
    expect(schemaOf(queuedOperation).safeParse(answer.json).data).toEqual(answer.json);
  } finally {
    rig.world.sandbox.control.maintenance({ state: 'off' });
  }
});
