/** Section 4.3: give, receive-from and transfer. */
import { dataOf, type PaymentKind, pay, paymentPath, refusedPayment } from '../client/endpoints.ts';
import { operator, paymentText, reason, unit } from '../client/parameters.ts';
import type { Service } from '../client/service.ts';
import { PAYMENT_ADDRESSES, paymentBody, payments } from '../client/shared-replies.ts';
import { balanceAfter, balanceOf, freshWallet, unknownAddress } from '../client/test-data.ts';
import { ensure, equal, NotChecked, type Statement, statement } from '../statement.ts';

const KINDS: PaymentKind[] = ['give', 'receive-from', 'transfer'];

const FIELDS = (kind: PaymentKind) => [
  ...PAYMENT_ADDRESSES[kind],
  'amount',
  ...(kind === 'give' ? [] : ['feeAmount']),
  'reasonType',
];

const REQUIRED: Statement[] = KINDS.flatMap((kind) => [
  ...FIELDS(kind).map((field) =>
    statement('4.3', `${kind}: ${field} is required`, async (service) => {
      const proper = await paymentBody(service, kind);
      refusedPayment(await pay(service, kind, { ...proper, [field]: undefined }), '997', '399');
    }),
  ),
  ...PAYMENT_ADDRESSES[kind].flatMap((field) =>
    [41, 43].map((length) =>
      statement('4.3', `${kind}: ${field} of length ${length} is refused`, async (service) => {
        const wrong = unknownAddress().padEnd(43, '0').slice(0, length);
        const changed = { ...(await paymentBody(service, kind)), [field]: wrong };
        refusedPayment(await pay(service, kind, changed), '997', '399', '398');
      }),
    ),
  ),
  statement(
    '4.3',
    `${kind} takes a JSON object as body: other text is refused`,
    async (service) => {
      for (const text of ['amount=1', '[]', '"x"', '{"amount":']) {
        refusedPayment(await pay(service, kind, text), '997', '399');
      }
    },
  ),
  statement('4.3', `${kind}: amount is an integer: 1.5 is refused`, async (service) => {
    const changed = { ...(await paymentBody(service, kind)), amount: 1.5 };
    refusedPayment(await pay(service, kind, changed), '298');
  }),
]);

const MOVES: Statement[] = [
  ...(
    [
      ['give adds the amount to the recipient', 'wallet', 0, 2n],
      ['transfer takes the amount from the sender', 'wallet', 1, -1n],
      ['transfer adds the amount to the recipient', 'other', 0, 1n],
      ['receive-from takes the amount from the user', 'other', 1, -1n],
    ] as const
  ).map(([title, holder, step, units]) =>
    statement('4.3', title, async (service) => {
      const shared = await payments(service);
      const [before = 0n, after = 0n] = shared[holder].slice(step);
      equal('the change of the balance', after - before, units * shared.unit);
    }),
  ),
  statement('4.3', 'give: the operator wallet of the path pays', async (service) => {
    const toAddr = await freshWallet(service);
    const number = await operator(service);
    const before = await operatorBalance(service, number);
    dataOf(await pay(service, 'give', { toAddr, amount: 5 }));
    equal('the decrease of the operator', before - (await operatorBalance(service, number)), 5n);
  }),
  statement('4.3', 'receive-from: deducted tokens go to an operator wallet', async (service) => {
    const fromAddr = await freshWallet(service, 9n);
    const before = await operatorBalance(service);
    dataOf(await pay(service, 'receive-from', { fromAddr, amount: 9 }));
    equal('the increase of the operators', (await operatorBalance(service)) - before, 9n);
  }),
  ...(['receive-from', 'transfer'] as const).map((kind) =>
    statement('4.3', `${kind}: feeAmount is an integer that is accepted`, async (service) => {
      const proper = await paymentBody(service, kind);
      const from = String(proper.fromAddr);
      if (!service.controlled) throw new NotChecked('needs --control');
      dataOf(await pay(service, kind, { ...proper, amount: 10, feeAmount: 2 }));
      const left = await balanceOf(service, from);
      ensure(left === 88n || left === 90n, `100 less 10 and a fee of 2 leaves ${left}`);
    }),
  ),
  statement('4.3', 'amount beyond 2^53 is moved digit by digit', async (service) => {
    const amount = 2n ** 53n + 1n;
    const toAddr = await freshWallet(service);
    const text = paymentText(service, { toAddr }, amount);
    dataOf(await pay(service, 'give', text));
    equal('amt_token', await balanceAfter(service, toAddr, amount), amount);
    const back = paymentText(service, { fromAddr: toAddr }, amount);
    dataOf(await pay(service, 'receive-from', back));
    equal('amt_token', await balanceAfter(service, toAddr, 0n), 0n);
  }),
  statement(
    '4.3',
    'give: an operator wallet that is not configured is refused',
    async (service) => {
      const { toAddr } = await paymentBody(service, 'give');
      const json = { toAddr, amount: unit(service), reasonType: reason(service) };
      const path = '/v1/app/token/operations/987654321/give';
      const reply = await service.send('tx', 'POST', path, { json });
      ensure(reply.top.at('error').present, `an error should be answered; it was ${reply.summary}`);
    },
  ),
  ...KINDS.map((kind) =>
    statement('4.3', `${kind} is a POST: GET is no endpoint`, async (service) => {
      const reply = await service.send('tx', 'GET', await paymentPath(service, kind));
      const success = reply.status === 200 && reply.top.at('data').present;
      ensure(!success, `GET should not be answered with success; it was ${reply.summary}`);
    }),
  ),
];

export const TRANSACTIONS: Statement[] = [...REQUIRED, ...MOVES];

/** The balance of one operator wallet, or the sum of all. */
async function operatorBalance(service: Service, number?: string): Promise<bigint> {
  const { operators } = await service.control.state();
  const counted = operators.filter((each) => number === undefined || each.operation_no === number);
  return counted.reduce((sum, { balance }) => sum + BigInt(balance), 0n);
}
