/** Section 4.2: the own wallet, and a wallet by its address. */
import { accountBy, dataOf, ownAccount, refusedPayment } from '../client/endpoints.ts';
import { unknownAddress, wallet } from '../client/test-data.ts';
import { ensure, equal, type Statement, statement } from '../statement.ts';

export const ACCOUNTS: Statement[] = [
  statement('4.2', 'Own wallet: the wallet record of the logged-in user', async (service) => {
    const record = dataOf(await ownAccount(service));
    record.text('token_addr', 42);
    record.integer('amt_token');
    record.integer('status');
  }),
  statement('4.2', 'Own wallet: no query, and the same wallet every time', async (service) => {
    const one = dataOf(await ownAccount(service)).text('token_addr');
    equal('token_addr', dataOf(await ownAccount(service)).text('token_addr'), one);
  }),
  statement('4.2', 'Wallet by address: the record of that address', async (service) => {
    const addr = await wallet(service);
    const record = dataOf(await accountBy(service, addr));
    equal('token_addr', record.text('token_addr').toLowerCase(), addr.toLowerCase());
    record.integer('amt_token');
    record.integer('status');
  }),
  statement('4.2', 'Wallet by address: addr is required', async (service) => {
    const reply = await service.send('base', 'GET', '/v1/app/token/account');
    refusedPayment(reply, '401', '399', '997');
  }),
  ...[41, 43].map((length) =>
    statement('4.2', `Wallet by address: addr of length ${length} is refused`, async (service) => {
      const addr = unknownAddress().padEnd(43, '0').slice(0, length);
      refusedPayment(await accountBy(service, addr), '399', '997', '398');
    }),
  ),
  statement('4.2', 'Both variants are GET: POST is no endpoint', async (service) => {
    const reply = await service.send('base', 'POST', '/v1/app/token/account', { form: {} });
    const success = reply.status === 200 && reply.top.at('data').present;
    ensure(!success, `POST should not be answered with success; it was ${reply.summary}`);
  }),
];
