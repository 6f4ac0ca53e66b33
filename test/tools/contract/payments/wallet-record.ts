/** Sections 2.3 and 2.4, and the wallet statuses of section 3. */
import { accountBy, dataOf, ownAccount, pay } from '../client/endpoints.ts';
import { unit } from '../client/parameters.ts';
import type { JsonField } from '../client/reply.ts';
import type { Service } from '../client/service.ts';
import { payments, sharedReply } from '../client/shared-replies.ts';
import { freshWallet, wallet } from '../client/test-data.ts';
import { ensure, equal, type Statement, statement } from '../statement.ts';

const BIG = 2n ** 53n + 1n;

const VARIANTS: [name: string, read: (service: Service) => Promise<JsonField>][] = [
  ['own wallet', async (service) => dataOf(await sharedReply(service, 'own wallet lookup'))],
  ['wallet by address', async (service) => dataOf(await sharedReply(service, 'account by addr'))],
];

const FIELDS: [title: string, check: (record: JsonField) => void][] = [
  ['token_addr is a string of length 42', (record) => void record.text('token_addr', 42)],
  ['amt_token is an integer', (record) => void record.integer('amt_token')],
  [
    'status is an integer: 1, 2, 3 or 9',
    (record) => {
      const known = [1n, 2n, 3n, 9n].includes(record.integer('status'));
      ensure(known, `status should be 1, 2, 3 or 9; received: ${record.summary}`);
    },
  ],
];

const STATUSES = [
  [1, 'normal'],
  [2, 'suspended'],
  [3, 'user request'],
  [9, 'member withdrawn'],
] as const;

export const WALLET_RECORD: Statement[] = [
  ...VARIANTS.flatMap(([name, read]) =>
    FIELDS.map(([title, check]) =>
      statement('2.3', `${title} (${name})`, async (service) => check(await read(service))),
    ),
  ),
  statement('2.3', "token_addr is the user's app wallet address", async (service) => {
    const own = dataOf(await ownAccount(service));
    const found = dataOf(await accountBy(service, own.text('token_addr')));
    equal('token_addr', found.text('token_addr'), own.text('token_addr'));
  }),
  statement('2.3', 'amt_token is the service token balance', async (service) => {
    const {
      unit: one,
      wallet: [before = 0n, after = 0n],
    } = await payments(service);
    equal('the balance after a give', after, before + 2n * one);
  }),
  statement('2.3', 'amt_token beyond 2^53 is written digit by digit', async (service) => {
    const addr = await freshWallet(service, BIG);
    equal('amt_token', dataOf(await accountBy(service, addr)).integer('amt_token'), BIG);
  }),
  ...STATUSES.flatMap(([status, name]) =>
    [
      ['2.3', `Wallet status ${status} is ${name}`] as const,
      ['3', `Wallet status has the state ${status} ${name}`] as const,
    ].map(([section, title]) =>
      statement(section, title, async (service) => {
        const addr = await freshWallet(service, 7n, status);
        const record = dataOf(await accountBy(service, addr));
        equal('status', record.integer('status'), BigInt(status));
        equal('amt_token', record.integer('amt_token'), 7n);
      }),
    ),
  ),
];

export const PAYMENT_RESULT: Statement[] = [
  ...(['give', 'receive-from', 'transfer'] as const).flatMap((kind) =>
    ['tx_app_no', 'tx_log_no'].map((field) =>
      statement('2.4', `${field} is an integer (${kind})`, async (service) => {
        dataOf(await sharedReply(service, kind)).integer(field);
      }),
    ),
  ),
  statement('2.4', 'tx_log_no beyond 2^53 is written digit by digit', async (service) => {
    const toAddr = await wallet(service);
    await service.control.withSwitches({ tx_log_no_base: String(BIG) }, async () => {
      const reply = await pay(service, 'give', { toAddr, amount: unit(service) });
      const seen = dataOf(reply).integer('tx_log_no');
      ensure(seen > BIG, `tx_log_no should be above ${BIG} and is ${seen}`);
      equal('the digits of tx_log_no', reply.text.includes(`:${seen}`), true);
    });
  }),
];
