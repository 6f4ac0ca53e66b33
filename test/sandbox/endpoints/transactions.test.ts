/** Payment rules that the contract suite does not check: fees, exact codes, figures, the day. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ACCOUNT_CODES } from '../../../src/sandbox/endpoints/errors.ts';
import { useCaller } from '../client.ts';

const caller = useCaller();
const ACCOUNT = '/v1/app/token';

const post = (path: string, json: string | object) =>
  caller.send('POST', `${ACCOUNT}/${path}`, { as: caller.client, json });
const give = (change: object = {}, operator = '1') =>
  post(`operations/${operator}/give`, {
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
const wallets = () => caller.sandbox.control.state().wallets;
const balances = () => [1, 2].map((no) => caller.balanceOf(caller.addressOf(no)));
const operators = () => caller.sandbox.control.state().operators.map(({ balance }) => balance);
const set = (switches: object) => caller.sandbox.control.setSwitches(switches);

describe('A fee', () => {
  it('is on top of the amount, or deducted from it, and goes to operator 0', async () => {
    await transfer();
    expect(balances()).toEqual([989n, 510n]);
    set({ fee: 'deducted' });
    await transfer();
    expect(balances()).toEqual([979n, 519n]);
    expect(operators()[0]).toBe(2n);
  });

  it('goes to the operator of the switch; an operator that does not exist is error 397', async () => {
    const [, before = 0n] = operators();
    set({ fee_operator: 1n });
    await transfer();
    await receive({ feeAmount: 3 });
    expect(operators()).toEqual([0n, before + 1n + 10n + 3n]);
    set({ fee_operator: 9n });
    expect((await transfer()).at('error.code')).toBe('397');
    expect((await transfer({ feeAmount: 0 })).at('status')).toBe(200);
  });
});

describe('A refused payment changes no wallet and has the exact code', () => {
  const CASES: [code: string, reason: string, request: () => Promise<{ text: string }>][] = [
    ['997', 'the body is not JSON', () => post('accounts/transfer', '{')],
    ['997', 'the body is not an object', () => post('accounts/transfer', '[]')],
    ['997', 'a field is missing', () => transfer({ feeAmount: undefined })],
    ['399', 'an address has another length', () => transfer({ toAddr: '0x1' })],
    ['399', 'the reason type is empty', () => transfer({ reasonType: '' })],
    ['399', 'the fee is negative', () => transfer({ feeAmount: -1 })],
    ['399', 'sender and receiver are the same', () => transfer({ toAddr: caller.addressOf(1) })],
    ['399', 'the operator number is not a number', () => give({}, 'x')],
    ['197', 'the user stopped the wallet', () => transfer({ toAddr: caller.addressOf(7) })],
    ['298', 'the amount is text', () => give({ amount: '10' })],
    ['294', 'the fee is a fraction', () => transfer({ feeAmount: 0.5 })],
  ];

  it.each(CASES)('%s: %s', async (code, _reason, request) => {
    const before = wallets();
    expect(JSON.parse((await request()).text).error.code).toBe(code);
    expect(wallets()).toEqual(before);
  });
});

describe('Error messages', () => {
  const messageOf = async (reply: Promise<{ at(path: string): unknown }>) =>
    String((await reply).at('error.message'));

  it('contain the figures of the refused payment', async () => {
    expect(await messageOf(transfer({ amount: 5_000 }))).toContain('1000');
    expect(await messageOf(transfer({ amount: 1_000 }))).toMatch(/1000.*1001/);
    expect(await messageOf(give({}, '7'))).toContain('give');
    for (const [amount, feeAmount, received] of [
      [3, 0.5, '2.5'],
      [1, 0.9, '0.1'],
      [1, 2.25, '-1.25'],
      [9_007_199_254_740_991, 0.001, '9007199254740990.999'],
    ]) {
      const message = await messageOf(transfer({ amount, feeAmount }));
      expect(message.endsWith(`: ${received}`)).toBe(true);
    }
    set({ transfer_min: 20n, transfer_max: 30n, oneday_limit: 40n });
    expect(await messageOf(transfer())).toContain('20');
    expect(await messageOf(transfer({ amount: 31 }))).toContain('30');
    await transfer({ amount: 25 });
    expect(await messageOf(transfer({ amount: 25 }))).toMatch(/40.*25/);
  });

  it('of scripted errors have a figure for every placeholder', async () => {
    const { control } = caller.sandbox;
    const names = ['amount', 'method', 'onedayLimit', 'recvAmount'];
    const figures = Object.fromEntries(names.map((name) => [name, '12345']));
    const withFigures = [];
    for (const code of Object.keys(ACCOUNT_CODES)) {
      control.addFault({ kind: 'error', code });
      expect(await messageOf(give())).not.toMatch(/:[a-zA-Z]/);
      control.addFault({ kind: 'error', code, figures });
      if ((await messageOf(give())).includes('12345')) withFigures.push(code);
    }
    expect(withFigures.sort()).toEqual(['196', '198', '294', '295', '397']);
  });
});

it('The limit of 24 hours slides with the clock', async () => {
  set({ oneday_limit: 100n });
  const hour = 3_600_000;
  const pay = async (amount: number) => {
    caller.client = await caller.clientToken();
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

it('Payments neither create nor lose a token, and no balance becomes negative', async () => {
  const total = () => wallets().reduce((sum, { balance }) => sum + balance, 0n);
  const before = total();
  const step = fc.record({
    pay: fc.constantFrom(give, receive, transfer),
    amount: fc.integer({ min: -2, max: 1_200 }),
    feeAmount: fc.integer({ min: -2, max: 50 }),
    fee: fc.constantFrom('on_top', 'deducted'),
  });
  await fc.assert(
    fc.asyncProperty(step, async ({ pay, amount, feeAmount, fee }) => {
      set({ fee });
      await pay({ amount, feeAmount });
      expect(total()).toBe(before);
      expect(wallets().every(({ balance }) => balance >= 0n)).toBe(true);
    }),
    { numRuns: 60 },
  );
});
