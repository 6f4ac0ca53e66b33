/** Section 7.2: errors of the account and transaction endpoints. */
import { accountBy, pay, refusedPayment } from './endpoints.ts';
import { paymentText, reason, unit } from './named.ts';
import { balanceOf, freshWallet, nonce, otherWallet, strangeAddress, wallet } from './objects.ts';
import type { Reply } from './reply.ts';
import type { Service } from './service.ts';
import { insist, NotChecked, type Statement, same, statement } from './statement.ts';

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

/** An account read, and a give, that meet an error; no other request does. */
function faultyAccount(service: Service, code: string): Promise<Reply> {
  const addr = strangeAddress();
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
  same(`status of ${reply.told}`, reply.top.text('status'), status);
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

/** A transfer of the whole balance with a fee. @throws NotChecked where the amount bears the fee */
async function feeTooHigh(service: Service): Promise<Reply> {
  const reply = await transfer(service, 50n, 50, 7);
  if (reply.status === 200 && reply.top.at('data').present) {
    throw new NotChecked('the fee is deducted from the amount here, so that none is too high');
  }
  return reply;
}

function mentions(message: string, figure: bigint): void {
  const digits = message.replace(/(?<=\d),(?=\d{3})/g, '');
  insist(digits.includes(String(figure)), `the message should tell ${figure}: "${message}"`);
}

const CONDITIONS: Statement[] = [
  statement('7.2', '401 is what an unknown token gets', async (service) =>
    shaped(await accountBy(service, strangeAddress(), { bearer: nonce() }), '406', '401'),
  ),
  statement('7.2', '398 is what the address of nobody gets (account)', async (service) =>
    shaped(await accountBy(service, strangeAddress()), '406', '398'),
  ),
  statement('7.2', '398 is what the address of nobody gets (give)', async (service) =>
    shaped(
      await pay(service, 'give', { toAddr: strangeAddress(), amount: unit(service) }),
      '406',
      '398',
    ),
  ),
  statement('7.2', '397 tells the method', async (service) => {
    const json = {
      toAddr: await wallet(service),
      amount: unit(service),
      reasonType: reason(service),
    };
    const path = '/v1/app/token/operations/987654321/give';
    const reply = await service.send('tx', 'POST', path, { json });
    if (reply.top.object('error').text('code') !== '397') {
      throw new NotChecked(`no way to 397 is known here: ${reply.told}`);
    }
    const message = refusedPayment(reply, '397');
    insist(message !== '' && !message.includes(':method'), `no method is told: "${message}"`);
  }),
  ...(
    [
      [2, 'under sanction'],
      [9, 'withdrawn'],
    ] as const
  ).flatMap(([status, name]) => [
    statement('7.2', `199 is what a wallet that is ${name} gets as sender`, async (service) => {
      const fromAddr = await freshWallet(service, 10n, status);
      const toAddr = await freshWallet(service);
      shaped(await pay(service, 'transfer', { fromAddr, toAddr, amount: 1 }), '406', '199');
    }),
    statement('7.2', `199 is what a wallet that is ${name} gets as recipient`, async (service) => {
      const toAddr = await freshWallet(service, 0n, status);
      shaped(await pay(service, 'give', { toAddr, amount: 1 }), '406', '199');
    }),
  ]),
  statement('7.2', '198 is what a balance too low gets, and tells the balance', async (service) => {
    const reply = await transfer(service, 41n, 42);
    shaped(reply, '406', '198');
    mentions(refusedPayment(reply, '198'), 41n);
  }),
  statement('7.2', '198 is what receive-from gets above the balance', async (service) => {
    const fromAddr = await wallet(service);
    const amount = (await balanceOf(service, fromAddr)) + 1n;
    const text = paymentText(service, { fromAddr }, amount);
    shaped(await pay(service, 'receive-from', text), '406', '198');
  }),
  statement('7.2', '196 is what a balance too low for the fee gets', async (service) =>
    shaped(await feeTooHigh(service), '406', '196'),
  ),
  statement('7.2', '196 tells the user amount and the send amount', async (service) => {
    const message = refusedPayment(await feeTooHigh(service), '196');
    mentions(message, 50n);
    insist(/57|50.*50/.test(message), `the message should tell the send amount: "${message}"`);
  }),
  ...[0, -1].flatMap((amount) =>
    (['give', 'receive-from', 'transfer'] as const).map((kind) =>
      statement('7.2', `299 is what an amount of ${amount} gets (${kind})`, async (service) => {
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
  statement('7.2', '298 is what an amount of 1.5 gets', async (service) =>
    shaped(await transfer(service, 10n, 1.5), '406', '298'),
  ),
  statement('7.2', '297 is what an amount below the minimum gets', (service) =>
    service.control.withSwitches({ transfer_min: '10' }, async () => {
      shaped(await transfer(service, 100n, 9), '406', '297');
      same('the minimum itself', (await transfer(service, 100n, 10)).status, 200);
    }),
  ),
  statement('7.2', '296 is what an amount above the maximum gets', (service) =>
    service.control.withSwitches({ transfer_max: '10' }, async () => {
      shaped(await transfer(service, 100n, 11), '406', '296');
      same('the maximum itself', (await transfer(service, 100n, 10)).status, 200);
    }),
  ),
  statement('7.2', '295 is what the cumulative limit over 24 hours gives', (service) =>
    service.control.withSwitches({ oneday_limit: '10' }, async () => {
      const fromAddr = await freshWallet(service, 100n);
      const toAddr = await freshWallet(service);
      const send = (amount: number) => pay(service, 'transfer', { fromAddr, toAddr, amount });
      same('the first transfer', (await send(6)).status, 200);
      shaped(await send(5), '406', '295');
      same('up to the limit', (await send(4)).status, 200);
    }),
  ),
  statement('7.2', 'A refused transaction moves nothing', async (service) => {
    const fromAddr = await freshWallet(service, 41n);
    const toAddr = await freshWallet(service);
    refusedPayment(await pay(service, 'transfer', { fromAddr, toAddr, amount: 42 }), '198');
    same('the balance of the sender', await balanceOf(service, fromAddr), 41n);
    same('the balance of the recipient', await balanceOf(service, toAddr), 0n);
  }),
];

/** A day passes here, so this stands last. */
export const CUMULATIVE_LIMIT: Statement[] = [
  statement('7.2', '295 counts the last 24 hours: a day later the limit is free again', (service) =>
    service.control.withSwitches({ oneday_limit: '10' }, async () => {
      const fromAddr = await freshWallet(service, 100n);
      const toAddr = await freshWallet(service);
      const send = () => pay(service, 'transfer', { fromAddr, toAddr, amount: 10 });
      same('the first transfer', (await send()).status, 200);
      shaped(await send(), '406', '295');
      await service.passTime(86_400_000);
      same('a transfer a day later', (await send()).status, 200);
    }),
  ),
];

const SHAPE: Statement[] = [
  statement('7.2', 'status of an error is a string', async (service) => {
    (await accountBy(service, strangeAddress())).top.text('status');
  }),
  ...['code', 'message'].map((name) =>
    statement('7.2', `error.${name} is a string`, async (service) => {
      (await accountBy(service, strangeAddress())).top.object('error').text(name);
    }),
  ),
];

export const ERRORS_PAYMENTS: Statement[] = [...SHAPE, ...TABLE, ...CONDITIONS];
