/** Section 7.2: errors of the account and transaction endpoints. */
import { accountBy, pay, refusedPayment } from '../client/endpoints.ts';
import { paymentText, reason, unit } from '../client/parameters.ts';
import type { Reply } from '../client/reply.ts';
import type { Service } from '../client/service.ts';
import {
  balanceOf,
  freshWallet,
  nonce,
  otherWallet,
  unknownAddress,
  wallet,
} from '../client/test-data.ts';
import { ensure, equal, NotChecked, type Statement, statement } from '../statement.ts';

const CODES: [status: string, code: string, condition: string][] = [
  ['500', '999', 'unidentified error'],
  ['500', '997', 'invalid parameter value'],
  ['500', '499', 'balance lookup error'],
  ['406', '401', 'unauthorized'],
  ['406', '399', 'invalid parameter value'],
  ['406', '398', 'wallet address of the account not found'],
  ['406', '397', 'wrong app number setting'],
  ['406', '396', 'transaction record does not exist'],
  ['406', '199', 'wallet address is withdrawn or under sanction'],
  ['406', '198', 'balance too low to send'],
  ['406', '197', 'changing the member wallet status failed'],
  ['406', '196', 'balance too low once the fee is included'],
  ['406', '299', 'amount is zero or negative'],
  ['406', '298', 'amount is not an integer'],
  ['406', '297', 'amount below the minimum transfer amount'],
  ['406', '296', 'amount above the maximum per transfer'],
  ['406', '295', 'amount would exceed the cumulative limit over the last 24 hours'],
  ['406', '294', 'received amount after fee would be fractional'],
];

/** An account read that meets a scripted error; no other request meets it. */
function faultyAccount(service: Service, code: string): Promise<Reply> {
  const addr = unknownAddress();
  const fault = { kind: 'error', code };
  return service.control.withFault(fault, addr, () => accountBy(service, addr));
}

async function faultyGive(service: Service, code: string): Promise<Reply> {
  const { control } = service;
  const reasonType = nonce();
  const json = { toAddr: await freshWallet(service), amount: 1, reasonType };
  return control.withFault({ kind: 'error', code }, reasonType, () => pay(service, 'give', json));
}

function shaped(reply: Reply, status: string, code: string): void {
  equal(`status of ${reply.summary}`, reply.top.text('status'), status);
  refusedPayment(reply, code);
}

const TABLE: Statement[] = CODES.flatMap(([status, code, condition]) => [
  statement('7.2', `Status ${status}, code ${code}: ${condition} (account)`, async (service) =>
    shaped(await faultyAccount(service, code), status, code),
  ),
  statement('7.2', `Status ${status}, code ${code}: ${condition} (transaction)`, async (service) =>
    shaped(await faultyGive(service, code), status, code),
  ),
]);

/** A transfer between two new wallets. */
async function transfer(service: Service, balance: bigint, amount: number, feeAmount = 0) {
  const fromAddr = await freshWallet(service, balance);
  const toAddr = await freshWallet(service);
  return pay(service, 'transfer', { fromAddr, toAddr, amount, feeAmount });
}

/** A transfer of a whole balance plus a fee. @throws NotChecked where the fee is deducted */
async function feeTooHigh(service: Service): Promise<Reply> {
  const reply = await transfer(service, 50n, 50, 7);
  if (reply.status === 200 && reply.top.at('data').present) {
    throw new NotChecked('this service deducts the fee from the amount');
  }
  return reply;
}

function mentions(message: string, figure: bigint): void {
  const digits = message.replace(/(?<=\d),(?=\d{3})/g, '');
  ensure(digits.includes(String(figure)), `the message should contain ${figure}: "${message}"`);
}

const CONDITIONS: Statement[] = [
  statement('7.2', '401: unknown access token', async (service) =>
    shaped(await accountBy(service, unknownAddress(), { bearer: nonce() }), '406', '401'),
  ),
  statement('7.2', '398: unknown address (account)', async (service) =>
    shaped(await accountBy(service, unknownAddress()), '406', '398'),
  ),
  statement('7.2', '398: unknown address (give)', async (service) =>
    shaped(
      await pay(service, 'give', { toAddr: unknownAddress(), amount: unit(service) }),
      '406',
      '398',
    ),
  ),
  statement('7.2', '397: the message contains the method', async (service) => {
    const json = {
      toAddr: await wallet(service),
      amount: unit(service),
      reasonType: reason(service),
    };
    const path = '/v1/app/token/operations/987654321/give';
    const reply = await service.send('tx', 'POST', path, { json });
    if (reply.top.object('error').text('code') !== '397') {
      throw new NotChecked(`this service does not answer 397 here: ${reply.summary}`);
    }
    const message = refusedPayment(reply, '397');
    ensure(
      message !== '' && !message.includes(':method'),
      `the message should contain the method: "${message}"`,
    );
  }),
  ...(
    [
      [2, 'under sanction'],
      [9, 'withdrawn'],
    ] as const
  ).flatMap(([status, name]) => [
    statement('7.2', `199: the sender wallet is ${name}`, async (service) => {
      const fromAddr = await freshWallet(service, 10n, status);
      const toAddr = await freshWallet(service);
      shaped(await pay(service, 'transfer', { fromAddr, toAddr, amount: 1 }), '406', '199');
    }),
    statement('7.2', `199: the recipient wallet is ${name}`, async (service) => {
      const toAddr = await freshWallet(service, 0n, status);
      shaped(await pay(service, 'give', { toAddr, amount: 1 }), '406', '199');
    }),
  ]),
  statement('7.2', '198: balance too low; the message contains the balance', async (service) => {
    const reply = await transfer(service, 41n, 42);
    shaped(reply, '406', '198');
    mentions(refusedPayment(reply, '198'), 41n);
  }),
  statement('7.2', '198: receive-from above the balance', async (service) => {
    const fromAddr = await wallet(service);
    const amount = (await balanceOf(service, fromAddr)) + 1n;
    const text = paymentText(service, { fromAddr }, amount);
    shaped(await pay(service, 'receive-from', text), '406', '198');
  }),
  statement('7.2', '196: balance too low once the fee is included', async (service) =>
    shaped(await feeTooHigh(service), '406', '196'),
  ),
  statement(
    '7.2',
    '196: the message contains the user amount and the send amount',
    async (service) => {
      const message = refusedPayment(await feeTooHigh(service), '196');
      mentions(message, 50n);
      ensure(/57|50.*50/.test(message), `the message should contain the send amount: "${message}"`);
    },
  ),
  ...[0, -1].flatMap((amount) =>
    (['give', 'receive-from', 'transfer'] as const).map((kind) =>
      statement('7.2', `299: an amount of ${amount} (${kind})`, async (service) => {
        const [fromAddr, toAddr] = [await wallet(service), await otherWallet(service)];
        const parties = {
          give: { toAddr },
          'receive-from': { fromAddr },
          transfer: { fromAddr, toAddr },
        };
        shaped(await pay(service, kind, { ...parties[kind], amount }), '406', '299');
      }),
    ),
  ),
  statement('7.2', '298: an amount of 1.5', async (service) =>
    shaped(await transfer(service, 10n, 1.5), '406', '298'),
  ),
  statement('7.2', '297: an amount below the minimum', (service) =>
    service.control.withSwitches({ transfer_min: '10' }, async () => {
      shaped(await transfer(service, 100n, 9), '406', '297');
      equal('the minimum itself', (await transfer(service, 100n, 10)).status, 200);
    }),
  ),
  statement('7.2', '296: an amount above the maximum', (service) =>
    service.control.withSwitches({ transfer_max: '10' }, async () => {
      shaped(await transfer(service, 100n, 11), '406', '296');
      equal('the maximum itself', (await transfer(service, 100n, 10)).status, 200);
    }),
  ),
  statement('7.2', '295: the cumulative limit over 24 hours', (service) =>
    service.control.withSwitches({ oneday_limit: '10' }, async () => {
      const fromAddr = await freshWallet(service, 100n);
      const toAddr = await freshWallet(service);
      const send = (amount: number) => pay(service, 'transfer', { fromAddr, toAddr, amount });
      equal('the first transfer', (await send(6)).status, 200);
      shaped(await send(5), '406', '295');
      equal('up to the limit', (await send(4)).status, 200);
    }),
  ),
  statement('7.2', 'A refused transaction moves nothing', async (service) => {
    const fromAddr = await freshWallet(service, 41n);
    const toAddr = await freshWallet(service);
    refusedPayment(await pay(service, 'transfer', { fromAddr, toAddr, amount: 42 }), '198');
    equal('the balance of the sender', await balanceOf(service, fromAddr), 41n);
    equal('the balance of the recipient', await balanceOf(service, toAddr), 0n);
  }),
];

/** This moves the clock by a day, so it comes last. */
export const CUMULATIVE_LIMIT: Statement[] = [
  statement('7.2', '295: a transfer stops counting 24 hours later', (service) =>
    service.control.withSwitches({ oneday_limit: '10' }, async () => {
      const fromAddr = await freshWallet(service, 100n);
      const toAddr = await freshWallet(service);
      const send = () => pay(service, 'transfer', { fromAddr, toAddr, amount: 10 });
      equal('the first transfer', (await send()).status, 200);
      shaped(await send(), '406', '295');
      await service.passTime(86_400_000);
      equal('a transfer a day later', (await send()).status, 200);
    }),
  ),
];

const SHAPE: Statement[] = [
  statement('7.2', 'status of an error is a string', async (service) => {
    (await accountBy(service, unknownAddress())).top.text('status');
  }),
  ...['code', 'message'].map((name) =>
    statement('7.2', `error.${name} is a string`, async (service) => {
      (await accountBy(service, unknownAddress())).top.object('error').text(name);
    }),
  ),
];

export const ERRORS_PAYMENTS: Statement[] = [...SHAPE, ...TABLE, ...CONDITIONS];
