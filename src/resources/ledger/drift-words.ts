/** A drift in words of people: what happened, why, and what a proposal would do. Pure. */
import type { ProposalKind } from '../operations/decision.ts';
import type { Shown } from '../resource.ts';
import type { Cause, DriftState, drift } from './drift.ts';

type Drift = Shown<typeof drift>;
/** What the words need of a drift; `window_to` and `window_from` are instants. */
export type DriftFacts = Pick<
  Drift,
  'addr' | 'amount' | 'amount_min' | 'amount_max' | 'window_from' | 'window_to'
>;

/** How a reader sees amounts and instants; an instant as `<day> <time>` has its day named once. */
export interface Texts {
  amount?: (digits: string) => string;
  time?: (iso: string) => string;
  /** The day that need not be named. */
  today?: string;
}

/** Probable causes, in short and in full. */
export const CAUSE_WORDS: Record<Cause, readonly [short: string, long: string]> = {
  made_elsewhere: ['made elsewhere', 'a change made elsewhere, not through Tallyhook'],
  fee_rule: [
    'another fee rule',
    'the service charges fees by another rule than the configured one',
  ],
  lost_operation: [
    'an operation of ours',
    'an operation of ours that counts as not executed or became known later',
  ],
  opening: [
    'before the opening',
    'a change that happened before the opening of the wallet in the ledger',
  ],
  operator_wallet: [
    "an operator's gives",
    'gives of an operator that seems to pay from this wallet, which is not mapped to it',
  ],
};

/** Why the wallet seems to be that of an operator, and what ends its drifts. */
export function operatorTexts({
  addr,
  operator,
}: Pick<Drift, 'addr' | 'operator'>): readonly string[] {
  if (!operator) return [];
  const { operator_no: no } = operator;
  return [
    `This looks like the wallet of operator ${no}: its drifts equal gives that the operator paid.`,
    'Two owners can map it while daemons run, on the page of the drift or by npx tallyhook ' +
      `operators propose ${no} --addr ${addr} --reason "…"; or set ledger.operators: ` +
      `{"${no}": "${addr}"} for all daemons and restart them. What the operator paid since the ` +
      'opening of the wallet is then posted from it, and the drifts that this explains close by ' +
      'themselves. Do not book them before.',
  ];
}

/** How it ended; none of a drift that has not. */
export const ENDING_WORDS: Partial<Record<DriftState, string>> = {
  booked: 'the difference was booked to the account external',
  linked: 'an operation explains it',
  dismissed: 'it was dismissed without a posting',
  returned: 'a later observation did not show it any more',
  explained: 'operations explain it',
  merged: 'it became part of another drift',
};

export const isUnclosed = ({ state }: { state: string }) =>
  state === 'open' || state === 'proposed';

const asItIs = (text: string) => text;
const unsigned = (amount: string) => amount.replace('-', '');

/** Such as `1 token` or `12 tokens`, without its sign. */
function sizeText(amount: string, { amount: shown = asItIs }: Texts = {}): string {
  const size = unsigned(amount);
  return `${shown(size)} ${size === '1' ? 'token' : 'tokens'}`;
}

/** The signed amount, or its bounds. */
export function differenceText({
  amount,
  amount_min: min,
  amount_max: max,
}: Pick<DriftFacts, 'amount' | 'amount_min' | 'amount_max'>): string {
  const signed = (text: string) => (/^[1-9]/.test(text) ? `+${text}` : text);
  return amount === null ? `${signed(min)} to ${signed(max)}` : signed(amount);
}

/** What happened to the wallet that is named next: `3 tokens left`; a range while not exact. */
export function changeText(drift: DriftFacts, texts: Texts = {}): string {
  const { amount, amount_min: min, amount_max: max } = drift;
  const size = (digits: string) => sizeText(digits, texts);
  const shown = (digits: string) => (texts.amount ?? asItIs)(digits);
  if (amount !== null) {
    if (amount === '0') return 'No token moved in';
    return `${size(amount)} ${amount.startsWith('-') ? 'left' : 'arrived at'}`;
  }
  if (max.startsWith('-')) return `${shown(unsigned(max))} to ${size(min)} left`;
  if (!min.startsWith('-')) return `${shown(min)} to ${size(max)} arrived at`;
  return `A change between ${shown(min)} and ${shown(max)} tokens happened to`;
}

/** When it happened: `between 22:23:05 and 22:24:10`. */
function windowText(
  { window_from, window_to }: Pick<DriftFacts, 'window_from' | 'window_to'>,
  { time = asItIs, today }: Texts = {},
): string {
  const from = window_from === null ? null : time(window_from);
  const to = time(window_to);
  const without = (text: string) => (today ? text.replace(`${today} `, '') : text);
  if (from === null) return `before ${without(to)}`;
  const [day, start] = dayAndTime(from);
  const [endDay, end] = dayAndTime(to);
  if (day !== endDay || start === '') return `between ${without(from)} and ${without(to)}`;
  return day === today ? `between ${start} and ${end}` : `on ${day} between ${start} and ${end}`;
}

/** A time may have its offset behind it. */
function dayAndTime(text: string): [day: string, time: string] {
  const [day = '', ...time] = text.split(' ');
  return [day, time.join(' ')];
}

/** What follows the wallet in the sentence about a drift. */
export function circumstancesText(
  drift: Pick<DriftFacts, 'window_from' | 'window_to'> & { state?: string },
  texts?: Texts,
): string {
  const ending = ENDING_WORDS[drift.state as DriftState];
  return `${windowText(drift, texts)}; ${ending ?? 'none of our operations explains it'}.`;
}

/** What happened, as one sentence. */
export function sentenceOf(drift: DriftFacts & { state?: string }, texts?: Texts): string {
  return `${changeText(drift, texts)} wallet ${drift.addr} ${circumstancesText(drift, texts)}`;
}

/** What a proposal would do; an operation is named after `link it to`. */
export function proposalText(kind: ProposalKind, operation: string | null): string {
  if (kind === 'book') return 'book the difference to the account external';
  if (kind === 'dismiss') return 'dismiss it without a posting';
  return `link it to ${operation ?? 'an operation'}`;
}

/** What happens to the ledger when a proposal is approved. */
export function consequenceOf(kind: ProposalKind, amount: string | null, texts?: Texts): string {
  if (kind === 'link')
    return 'The operation becomes executed and the ledger posts it. It cannot be taken back.';
  if (kind === 'dismiss')
    return 'Nothing is posted. If the difference is still observed, it becomes a new drift.';
  const count = amount === null ? 'the difference' : sizeText(amount, texts);
  const way =
    amount === null
      ? 'between the wallet and the account external'
      : amount.startsWith('-')
        ? 'from the wallet to the account external'
        : 'from the account external to the wallet';
  return `The ledger moves ${count} ${way}. A posting is never deleted.`;
}
