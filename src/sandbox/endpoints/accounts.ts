/**
 * The wallets of service tokens: account reads (section 4.2), and give, deduct and transfer
 * (section 4.3) with the limits and errors of section 7.2. A payment is checked in a fixed order
 * before anything changes: caller, form of the body, amount, parties, 24-hour limit, balance.
 */
import { ADDRESS_LENGTH, addressKey } from '../../kernel/addresses.ts';
import { parseWhole, wholeOf } from '../../kernel/amounts.ts';
import { type Json, tryParseJson } from '../../kernel/json.ts';
import { callerOf } from '../state/grants.ts';
import { type PaymentKind, WALLET_STATUS, type Wallet } from '../state/records.ts';
import { addBalance, walletOf } from '../state/wallets.ts';
import type { World } from '../world.ts';
import { type Answer, type Call, success } from './call.ts';
import { accountRefusal } from './errors.ts';

/** GET /v1/app/token/account: without a query the own wallet, with `addr` any wallet. */
export function readAccount(world: World, call: Call): Answer {
  const caller = callerOf(world, call.authorization);
  const addr = call.query.get('addr');
  if (!caller || caller.kind !== (addr === null ? 'user' : 'client')) throw accountRefusal(401);
  const { wallets } = world.asOf(world.now() - Math.max(call.ageMs, world.switches().read_lag_ms));
  if (caller.kind === 'user') {
    const wallet = walletOf(world, caller.member);
    return success(recordOf(wallets.get(addressKey(wallet.addr)) ?? wallet));
  }
  if (addr?.length !== ADDRESS_LENGTH) throw accountRefusal(399);
  const wallet = wallets.get(addressKey(addr));
  if (!wallet) throw accountRefusal(398);
  return success(recordOf(wallet));
}

function recordOf({ addr, balance, status }: Wallet) {
  return { token_addr: addr, amt_token: balance, status };
}

interface PaymentRequest {
  addr(field: string): string;
  amount: bigint;
  /** Zero where the endpoint has no fee. */
  fee: bigint;
  reasonType: string;
}

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

/** Checks the parties and the balance, moves the tokens and numbers the transaction. */
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
  if (kind === 'transfer') checkDayLimit(world, from, amount);

  const rules = world.switches();
  const feeTo = fee > 0n ? operatorAddress(world, rules.fee_operator, kind) : undefined;
  const deducted = rules.fee === 'deducted';
  const leaves = deducted ? amount : amount + fee;
  const arrives = deducted ? amount - fee : amount;
  if (from.balance < amount) throw accountRefusal(198, { amount: from.balance });
  if (from.balance < leaves) {
    throw accountRefusal(196, { amount: from.balance, sendAmount: leaves });
  }

  addBalance(world, from.addr, -leaves);
  addBalance(world, to.addr, arrives);
  if (feeTo) addBalance(world, feeTo, fee);
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
  // The payment would need a change of a status that the user requested.
  if (status === WALLET_STATUS.userRequest && world.switches().user_request === 'refuse') {
    throw accountRefusal(197);
  }
}

/** @throws Refusal 295 */
function checkDayLimit(world: World, from: Wallet, amount: bigint): void {
  const onedayLimit = world.switches().oneday_limit;
  const onedaySendAmount = world.transferTotals.within(from.addr, world.now());
  if (onedaySendAmount + amount > onedayLimit) {
    throw accountRefusal(295, { onedayLimit, onedaySendAmount });
  }
}

/**
 * Parses a body.
 * @throws Refusal 997 when it is not a JSON object or a field is missing, 399 for a malformed
 * field, 298 or 299 for the amount, 294 for a fractional fee
 */
function readPayment(text: string, addresses: string[], hasFee: boolean): PaymentRequest {
  const body = objectOf(tryParseJson(text));
  const required = [...addresses, 'amount', ...(hasFee ? ['feeAmount'] : []), 'reasonType'];
  for (const field of required) {
    if (body.get(field) === undefined || body.get(field) === null) throw accountRefusal(997);
  }
  for (const field of addresses) {
    const addr = body.get(field);
    if (typeof addr !== 'string' || addr.length !== ADDRESS_LENGTH) throw accountRefusal(399);
  }
  const reasonType = body.get('reasonType');
  if (typeof reasonType !== 'string' || reasonType === '') throw accountRefusal(399);

  const amount = numberOf(body.get('amount'));
  if (amount === undefined) throw accountRefusal(298);
  if (amount <= 0n) throw accountRefusal(299);
  const fee = hasFee ? feeOf(body.get('feeAmount'), amount) : 0n;
  return { addr: (field) => String(body.get(field)), amount, fee, reasonType };
}

function objectOf(value: Json | undefined): Map<string, Json> {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw accountRefusal(997);
  }
  return new Map(Object.entries(value));
}

/** Decimal text is not an integer here. */
function numberOf(value: Json | undefined): bigint | undefined {
  return typeof value === 'string' ? undefined : wholeOf(value);
}

/** @throws Refusal 294 for a fraction, 399 for anything else that is not a fee */
function feeOf(value: Json | undefined, amount: bigint): bigint {
  const fee = numberOf(value);
  if (fee !== undefined && fee >= 0n) return fee;
  const decimals = /^(\d+)\.(\d+)$/.exec(String(value));
  if (typeof value !== 'number' || !decimals) throw accountRefusal(399);
  const [, whole = '', part = ''] = decimals;
  throw accountRefusal(294, { recvAmount: lessFraction(amount, whole + part, part.length) });
}

/** `amount` − `digits` / 10^`places`, exactly, as decimal text. */
function lessFraction(amount: bigint, digits: string, places: number): string {
  const rest = amount * 10n ** BigInt(places) - BigInt(digits);
  const text = (rest < 0n ? -rest : rest).toString().padStart(places + 1, '0');
  return `${rest < 0n ? '-' : ''}${text.slice(0, -places)}.${text.slice(-places)}`;
}
