/** Sections 4.2, 4.3 and 7.2: wallets, payments, every code, every limit. */

import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { addressKey } from '../../src/kernel/addresses.ts';
import { ACCOUNT_CODES } from '../../src/sandbox/endpoints/errors.ts';
import { type Caller, STRANGER, startCaller, stopAll } from './client.ts';

let caller: Caller;
let client: string;
const PAY = '/v1/app/token';

beforeAll(async () => {
  caller = await startCaller();
});
afterAll(stopAll);
beforeEach(async () => {
  caller.clock.set(Date.UTC(2026, 0, 1));
  caller.sandbox.control.reset({});
  client = await caller.clientToken();
});

const post = (path: string, json: string | object, as = client) =>
  caller.send('POST', `${PAY}/${path}`, { as, json });
const give = (change: object = {}) =>
  post('operations/1/give', {
    toAddr: caller.addressOf(1),
    amount: 10,
    reasonType: 'prize',
    ...change,
  });
const receive = (change: object = {}) =>
  post('operations/receive-from', {
    fromAddr: caller.addressOf(1),
    amount: 10,
    feeAmount: 0,
    reasonType: 'shop',
    ...change,
  });
const transfer = (change: object = {}) =>
  post('accounts/transfer', {
    fromAddr: caller.addressOf(1),
    toAddr: caller.addressOf(2),
    amount: 10,
    feeAmount: 1,
    reasonType: 'gift',
    ...change,
  });
const operator = (no: number) => caller.sandbox.control.state().operators[no]?.balance ?? 0n;
const set = (switches: object) => caller.sandbox.control.setSwitches(switches);

describe('A payment moves tokens and is numbered', () => {
  test('give: from the operator wallet to a member', async () => {
    const before = operator(1);
    expect((await give()).body).toEqual({ status: 200, data: { tx_app_no: 101, tx_log_no: 1 } });
    expect(caller.balanceOf(caller.addressOf(1))).toBe(1_010n);
    expect(operator(1)).toBe(before - 10n);
  });

  test('receive-from: from a member to the operator wallet, the fee on top', async () => {
    const before = operator(1);
    await receive({ feeAmount: 3 });
    expect(caller.balanceOf(caller.addressOf(1))).toBe(987n);
    expect(operator(1)).toBe(before + 10n);
    expect(operator(0)).toBe(3n);
  });

  test('transfer: the fee is on top, or deducted when that is switched on', async () => {
    await transfer();
    expect(caller.balanceOf(caller.addressOf(1))).toBe(989n);
    expect(caller.balanceOf(caller.addressOf(2))).toBe(510n);
    set({ fee: 'deducted' });
    expect((await transfer()).at('data.tx_log_no')).toBe(2);
    expect(caller.balanceOf(caller.addressOf(1))).toBe(979n);
    expect(caller.balanceOf(caller.addressOf(2))).toBe(519n);
    expect(operator(0)).toBe(2n);
  });

  test('fees go to the operator wallet of the switch; none is error 397', async () => {
    set({ fee_operator: 1n });
    const before = operator(1);
    await transfer();
    expect([operator(0), operator(1)]).toEqual([0n, before + 1n]);
    set({ fee_operator: 9n });
    expect((await transfer()).at('error.code')).toBe('397');
    expect((await transfer({ feeAmount: 0 })).at('status')).toBe(200);
  });

  test('with amounts and numbers of sixty digits, exactly', async () => {
    const huge = 10n ** 59n + 7n;
    const ada = caller.addressOf(1);
    caller.sandbox.control.setWallet(ada, { amt_token: huge });
    set({ tx_log_no_base: 2n ** 70n });
    const reply = await post(
      'accounts/transfer',
      `{"fromAddr":"${ada}","toAddr":"${caller.addressOf(2)}","amount":${huge - 3n},` +
        '"feeAmount":2,"reasonType":"all"}',
    );
    expect(reply.at('data.tx_log_no')).toBe(2n ** 70n + 1n);
    expect(caller.balanceOf(ada)).toBe(1n);
    const read = await caller.send('GET', `${PAY}/account?addr=${caller.addressOf(2)}`, {
      as: client,
    });
    expect(read.at('data.amt_token')).toBe(huge + 497n);
  });
});

describe('Every code of section 7.2 can be met', () => {
  const member = (no: number) => caller.addressOf(no);
  const CASES: [code: string, what: string, ask: () => Promise<{ text: string }>][] = [
    ['401', 'a token of a user', async () => post('accounts/transfer', {}, await userToken())],
    ['997', 'no JSON', () => post('accounts/transfer', '{')],
    ['997', 'no object', () => post('accounts/transfer', '[]')],
    ['997', 'a field is missing', () => transfer({ feeAmount: undefined })],
    ['399', 'an address of another length', () => transfer({ toAddr: '0x1' })],
    ['399', 'no reason', () => transfer({ reasonType: '' })],
    ['399', 'the fee is negative', () => transfer({ feeAmount: -1 })],
    ['399', 'sender and receiver are one', () => transfer({ toAddr: member(1) })],
    ['398', 'no such wallet', () => transfer({ toAddr: STRANGER })],
    ['397', 'no such operator', () => post('operations/7/give', body())],
    ['399', 'no number of an operator', () => post('operations/x/give', body())],
    ['199', 'the receiver is suspended', () => transfer({ toAddr: member(6) })],
    ['199', 'the sender is withdrawn', () => transfer({ fromAddr: member(8) })],
    ['197', 'the user stopped the wallet', () => transfer({ toAddr: member(7) })],
    ['198', 'the balance is too low', () => transfer({ amount: 1_001 })],
    ['196', 'too low with the fee', () => transfer({ amount: 1_000 })],
    ['299', 'zero', () => transfer({ amount: 0 })],
    ['299', 'negative', () => give({ amount: -5 })],
    ['298', 'a fraction', () => give({ amount: 1.5 })],
    ['298', 'text', () => give({ amount: '10' })],
    ['294', 'a fee that is a fraction', () => transfer({ feeAmount: 0.5 })],
    ['297', 'below the minimum', () => limited({ transfer_min: 11n })],
    ['296', 'above the maximum', () => limited({ transfer_max: 9n })],
    ['295', 'above the limit of a day', () => limited({ oneday_limit: 9n })],
    ['999', 'scripted', () => scripted('999')],
    ['499', 'scripted', () => scripted('499')],
    ['396', 'scripted', () => scripted('396')],
  ];
  const body = () => ({ toAddr: member(1), amount: 1, reasonType: 'x' });
  const userToken = async () => String((await caller.login(1)).at('access_token'));
  const limited = (switches: object) => {
    set(switches);
    return transfer();
  };
  const scripted = (code: string) => {
    caller.sandbox.control.addFault({ kind: 'error', code });
    return transfer();
  };

  test.each(CASES)('%s: %s', async (code, _what, ask) => {
    const wallets = JSON.stringify(await allWallets());
    const { text } = await ask();
    const { status, error } = JSON.parse(text);
    expect({ status, code: error.code }).toEqual({
      status: ['999', '997', '499'].includes(code) ? '500' : '406',
      code,
    });
    expect(JSON.stringify(await allWallets())).toBe(wallets);
  });

  test('and the table above names each of them', () => {
    const met = new Set(CASES.map(([code]) => code));
    expect(Object.keys(ACCOUNT_CODES).filter((code) => !met.has(code))).toEqual([]);
  });

  test('the messages carry their figures', async () => {
    const said = async (reply: Promise<{ at(way: string): unknown }>) =>
      String((await reply).at('error.message'));
    expect(await said(transfer({ amount: 5_000 }))).toContain('1000');
    expect(await said(transfer({ amount: 1_000 }))).toMatch(/1000.*1001/);
    expect(await said(post('operations/7/give', body()))).toContain('give');
    for (const [amount, feeAmount, received] of [
      [3, 0.5, '2.5'],
      [1, 0.9, '0.1'],
      [1, 2.25, '-1.25'],
      [9_007_199_254_740_991, 0.001, '9007199254740990.999'],
    ]) {
      const message = await said(transfer({ amount, feeAmount }));
      expect(message.endsWith(`: ${received}`)).toBe(true);
    }
    set({ transfer_min: 20n, transfer_max: 30n, oneday_limit: 40n });
    expect(await said(transfer())).toContain('20');
    expect(await said(transfer({ amount: 31 }))).toContain('30');
    await transfer({ amount: 25 });
    expect(await said(transfer({ amount: 25 }))).toMatch(/40.*25/);
  });

  test.each(Object.keys(ACCOUNT_CODES))(
    'a scripted %s has figures for every word',
    async (code) => {
      const { control } = caller.sandbox;
      control.addFault({ kind: 'error', code });
      expect((await give()).at('error.message')).not.toMatch(/:[a-zA-Z]/);
      const figures = {
        amount: '12345',
        method: '12345',
        onedayLimit: '12345',
        recvAmount: '12345',
      };
      control.addFault({ kind: 'error', code, figures });
      const figured = ['397', '294', '295', '198', '196'].includes(code);
      expect(String((await give()).at('error.message')).includes('12345')).toBe(figured);
    },
  );

  test('the HTTP code is the number in the body, or 200 when that is switched on', async () => {
    expect((await transfer({ amount: 0 })).status).toBe(406);
    expect((await post('accounts/transfer', '{')).status).toBe(500);
    set({ error_http: 'ok' });
    expect((await transfer({ amount: 0 })).status).toBe(200);
  });
});

async function allWallets() {
  return caller.sandbox.control.state().wallets.map(({ addr, balance, status }) => ({
    addr: addressKey(addr),
    balance: String(balance),
    status,
  }));
}

test('the limit of 24 hours slides with the clock', async () => {
  set({ oneday_limit: 100n, fee: 'deducted' });
  const hour = 3_600_000;
  const pay = async (amount: number) => {
    client = await caller.clientToken();
    return (await transfer({ amount, feeAmount: 0 })).at('status');
  };
  expect(await pay(60)).toBe(200);
  caller.clock.advance(12 * hour);
  expect(await pay(40)).toBe(200);
  expect(await pay(1)).toBe('406');
  caller.clock.advance(12 * hour - 1);
  expect(await pay(1)).toBe('406');
  caller.clock.advance(1);
  expect(await pay(60)).toBe(200);
  expect(await pay(1)).toBe('406');
});

describe('The account endpoint', () => {
  const account = (as: string, query = '') => caller.send('GET', `${PAY}/account${query}`, { as });

  test('shows a wallet by its address, whatever its status', async () => {
    for (const [no, status] of [
      [1, 1],
      [6, 2],
      [7, 3],
      [8, 9],
    ] as const) {
      const reply = await account(client, `?addr=${caller.addressOf(no)}`);
      const data = { token_addr: caller.addressOf(no), amt_token: 1_000, status };
      expect(reply.body).toEqual({ status: 200, data });
    }
  });

  test('makes a wallet for a logged-in user who has none, once', async () => {
    const eve = String((await caller.login(5)).at('access_token'));
    const first = await account(eve);
    expect(first.at('data')).toMatchObject({ amt_token: 0, status: 1 });
    expect(String(first.at('data.token_addr'))).toHaveLength(42);
    expect((await account(eve)).text).toBe(first.text);
  });

  test('refuses the wrong kind of token, a wrong address and an unknown one', async () => {
    const ada = String((await caller.login(1)).at('access_token'));
    const codes = [
      await account(client),
      await account(ada, `?addr=${caller.addressOf(1)}`),
      await account('nonsense'),
      await account(client, '?addr=0x1'),
      await account(client, `?addr=${STRANGER}`),
    ].map((reply) => reply.at('error.code'));
    expect(codes).toEqual(['401', '401', '401', '399', '398']);
  });
});

test('payments neither make nor lose a token', async () => {
  const total = () =>
    caller.sandbox.control.state().wallets.reduce((sum, { balance }) => sum + balance, 0n);
  const before = total();
  const step = fc.record({
    kind: fc.constantFrom(give, receive, transfer),
    amount: fc.integer({ min: -2, max: 1_200 }),
    feeAmount: fc.integer({ min: -2, max: 50 }),
    fee: fc.constantFrom('on_top', 'deducted'),
  });
  await fc.assert(
    fc.asyncProperty(step, async ({ kind, amount, feeAmount, fee }) => {
      set({ fee });
      await kind({ amount, feeAmount });
      expect(total()).toBe(before);
      expect(caller.sandbox.control.state().wallets.every((each) => each.balance >= 0n)).toBe(true);
    }),
    { numRuns: 60 },
  );
});
