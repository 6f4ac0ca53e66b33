/**
 * Give, deduct and transfer (section 4.3), with every limit and every error of section 7.2. The
 * rules are judged in one fixed order, before anything changes: who calls, the form of the body,
 * the amount, the parties, the limit of 24 hours, the balance.
 */
import { addressKey } from '../../kernel/addresses.ts';
import { parseWhole } from '../../kernel/amounts.ts';
import { callerOf } from '../state/grants.ts';
import { type PaymentKind, WALLET_STATUS, type Wallet } from '../state/records.ts';
import { move } from '../state/wallets.ts';
import type { World } from '../world.ts';
import { type Answer, type Call, success } from './call.ts';
import { accountRefusal } from './refusals.ts';
import { type PaymentRequest, readPayment } from './transaction-body.ts';

/** POST …/operations/{operationNo}/give */
export function give(world: World, call: Call): Answer {
  authorize(world, call);
  const operationNo = parseWhole(call.params.operationNo ?? '');
  if (operationNo === undefined) throw accountRefusal(399);
  const request = readPayment(call.body, ['toAddr'], false);
  checkAmount(world, request);
  const from = operatorAddress(world, operationNo, 'give');
  return pay(world, 'give', request, from, request.addr('toAddr'), operationNo);
}

/** POST …/operations/receive-from */
export function receiveFrom(world: World, call: Call): Answer {
  authorize(world, call);
  const request = readPayment(call.body, ['fromAddr'], true);
  checkAmount(world, request);
  const operationNo = world.switches().collect_operator;
  const to = operatorAddress(world, operationNo, 'receive-from');
  return pay(world, 'receive_from', request, request.addr('fromAddr'), to, operationNo);
}

/** POST …/accounts/transfer */
export function transfer(world: World, call: Call): Answer {
  authorize(world, call);
  const request = readPayment(call.body, ['fromAddr', 'toAddr'], true);
  checkAmount(world, request);
  const [from, to] = [request.addr('fromAddr'), request.addr('toAddr')];
  if (addressKey(from) === addressKey(to)) throw accountRefusal(399);
  return pay(world, 'transfer', request, from, to);
}

function authorize(world: World, call: Call): void {
  if (callerOf(world, call.authorization)?.kind !== 'client') throw accountRefusal(401);
}

/** @throws Refusal 399, 297, 296 */
function checkAmount(world: World, { amount, fee, reasonType }: PaymentRequest): void {
  const rules = world.switches();
  if (rules.reason_types && !rules.reason_types.includes(reasonType)) throw accountRefusal(399);
  if (rules.fee === 'deducted' && fee > amount) throw accountRefusal(399);
  const limits = { transferMin: rules.transfer_min, transferMax: rules.transfer_max };
  if (amount < limits.transferMin) throw accountRefusal(297, limits);
  if (amount > limits.transferMax) throw accountRefusal(296, limits);
}

/** @throws Refusal 397 for an operator wallet that is not configured */
function operatorAddress(world: World, operationNo: bigint, method: string): string {
  const operator = world.operators.get(String(operationNo));
  if (!operator) throw accountRefusal(397, { method });
  return operator.addr;
}

/** Judges the parties and the balance, then moves the tokens and numbers the transaction. */
function pay(
  world: World,
  kind: PaymentKind,
  { amount, fee, reasonType }: PaymentRequest,
  fromAddr: string,
  toAddr: string,
  operation_no: bigint | null = null,
): Answer {
  const from = getParty(world, fromAddr);
  const to = getParty(world, toAddr);
  for (const party of [from, to]) checkStatus(world, party);
  if (kind === 'transfer') checkDay(world, from, amount);

  const rules = world.switches();
  const feeTo = fee > 0n ? operatorAddress(world, rules.fee_operator, kind) : undefined;
  const deducted = rules.fee === 'deducted';
  const leaves = deducted ? amount : amount + fee;
  const arrives = deducted ? amount - fee : amount;
  if (from.balance < amount) throw accountRefusal(198, { amount: from.balance });
  if (from.balance < leaves) {
    throw accountRefusal(196, { amount: from.balance, sendAmount: leaves });
  }

  move(world, from.addr, -leaves);
  move(world, to.addr, arrives);
  if (feeTo) move(world, feeTo, fee);
  const tx_app_no = world.app.app_no;
  const tx_log_no = rules.tx_log_no_base + world.next('tx_log_no');
  world.applied({
    kind,
    tx_app_no,
    tx_log_no,
    operation_no,
    from_addr: from.addr,
    to_addr: to.addr,
    amount,
    fee_amount: kind === 'give' ? null : fee,
    reason_type: reasonType,
  });
  return success({ tx_app_no, tx_log_no });
}

/** @throws Refusal 398 */
function getParty(world: World, addr: string): Wallet {
  const wallet = world.wallets.get(addressKey(addr));
  if (!wallet) throw accountRefusal(398);
  return wallet;
}

/** @throws Refusal 199 or 197 */
function checkStatus(world: World, { status }: Wallet): void {
  if (status === WALLET_STATUS.suspended || status === WALLET_STATUS.withdrawn) {
    throw accountRefusal(199);
  }
  // The service would have to lift the stop that the user asked for, and may not.
  if (status === WALLET_STATUS.userRequest && world.switches().user_request === 'refuse') {
    throw accountRefusal(197);
  }
}

/** @throws Refusal 295 */
function checkDay(world: World, from: Wallet, amount: bigint): void {
  const onedayLimit = world.switches().oneday_limit;
  const onedaySendAmount = world.spending.within(from.addr, world.now());
  if (onedaySendAmount + amount > onedayLimit) {
    throw accountRefusal(295, { onedayLimit, onedaySendAmount });
  }
}
