/** In words: why an operation counts as executed or not, by the evidence that is stored with it. */

import { FAULT_WORDS } from '../../../../resources/faults.ts';
import { Amount, Code, Time, WalletLink } from '../../kit/elements.ts';
import { countText, wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';

interface Poll {
  wallet: string;
  balance: string;
  without_open: string;
  started_at: string;
}
/** What one round of observations showed, by its basis. */
interface Shown {
  polls?: Poll[];
  cause?: string;
  tokens_listed?: number;
  token_id?: string;
}
/** A wallet of an operation that people decide. */
interface Held {
  wallet: string;
  balance: string;
  /** What it would hold without the writes whose outcome is open. */
  without_open: string;
  if_executed: string;
  others: { operation_id: string; if_executed: string }[];
  others_count: number;
  started_at: string;
}
/** What was last observed of its wallets before it was sent. */
interface Before {
  wallets?: { name: string; at: number; seen: { balance?: string } | null }[];
}
interface Evidence {
  wallets?: Held[];
  basis?: string;
  first?: Shown;
  second?: Shown;
  indicated?: string;
  explanations?: string;
  drift?: string;
  drifts?: string[];
}

const BASES: Record<string, string> = {
  two_sided: 'each of its wallets was polled twice, and the balances agree',
  one_sided: 'a wallet was polled shortly before the send and twice after it',
  token: 'its token was polled twice, and both polls agree',
  scan: 'the list of its contract was read twice, and both readings agree',
  drift: 'a drift is this write',
};

/** Why an operation is in a state, where its evidence is no cause of its own. */
const CAUSES: Record<string, string> = {
  queue: 'recorded, to be sent when the service is back',
  send: 'recorded, and sent to the service',
  answer: 'the service answered',
  report: 'reported from elsewhere',
  decision: 'two owners decided',
};

/** The cause of a transition; that of a resolution names the basis of its evidence. */
export function causeWords(cause: string): unknown {
  const basis = /^evidence: (\w+)$/.exec(cause)?.[1];
  if (basis && BASES[basis]) return BASES[basis];
  const [before, addr, after] = cause.split(/\b([0-9a-z]{42})\b/i);
  return addr
    ? html`${before}<${WalletLink} addr=${addr} />${after}`
    : (CAUSES[cause] ?? FAULT_WORDS[cause] ?? cause);
}

/** Of an operation, as the API shows it. */
interface Told {
  state: string;
  evidence: unknown;
  pre_image: unknown;
}

export function evidenceWords({ state, evidence, pre_image: before }: Told): unknown[] {
  const {
    wallets = [],
    basis = '',
    first,
    second,
    indicated,
    explanations,
    ...found
  } = (evidence ?? {}) as Evidence;
  const drifts = [found.drift, found.drifts].flat().filter((id) => id !== undefined);
  const lines: unknown[] = [
    BASES[basis] && `How it is known: ${BASES[basis]}.`,
    ...[first, second].flatMap((shown) => (shown ? shownWords(shown) : [])),
    ...wallets.flatMap((held) => heldWords(held, (before ?? {}) as Before)),
    ...drifts.map((id) => html`It explains the drift <a href=${`/drifts/${id}`}>${id}</a>.`),
    indicated && `What was observed indicates: ${wordsOf(indicated)}.`,
    explanations && `Why it is not decided: ${explanations}.`,
  ].filter(Boolean);
  if (lines.length > 0) return lines;
  return state === 'unknown'
    ? ['None yet: polls of its wallets or token go on.']
    : ['The answer of the service, or none was needed.'];
}

function shownWords({ polls = [], cause, tokens_listed: listed, token_id: token }: Shown) {
  return [
    ...polls.map(
      ({ wallet, balance, without_open: without, started_at: at }) =>
        html`<${Time} at=${at} exact />: wallet <${WalletLink} addr=${wallet} /> held${' '}
          <${Amount} of=${balance} />; without the open writes it would hold${' '}
          <${Amount} of=${without} />.`,
    ),
    cause && `The token: ${cause}.`,
    listed !== undefined &&
      `Of ${listed} tokens of the contract ${token ? `token ${token} is it` : 'none is it'}.`,
  ];
}

/** The arithmetic of one wallet: what changed, and what each outcome leaves unexplained. */
function heldWords(held: Held, { wallets = [] }: Before) {
  const { wallet, balance, without_open: without, if_executed: effect, others } = held;
  const earlier = wallets.find(({ name }) => name === `wallet:${wallet}`);
  const was = earlier?.seen?.balance;
  const lines = [
    html`Wallet <${WalletLink} addr=${wallet} />
      ${
        earlier &&
        was !== undefined &&
        html` held <${Amount} of=${was} /> at${' '}
          <${Time} at=${new Date(earlier.at).toISOString()} exact />, before the send, and`
      }
      ${' '}held <${Amount} of=${balance} /> at <${Time} at=${held.started_at} exact />${
        was !== undefined && html`: <${Amount} of=${differenceOf(balance, was)} signed />`
      }.`,
  ];
  const left = differenceOf(balance, without);
  lines.push(html`All that is known explains <${Amount} of=${without} />. If the operation was
      executed (<${Amount} of=${effect} signed />),
      ${' '}<${Left} of=${differenceOf(left, effect)} /> there; if not, <${Left} of=${left} />.`);
  if (others.length > 0)
    lines.push(
      html`Open as well:${others.map(
        ({ operation_id: id, if_executed: its }) =>
          html` <${Amount} of=${its} signed /> by${' '}
          <${Code} text=${id} href=${`/operations/${id}`} />`,
      )}.`,
    );
  else if (held.others_count > 0)
    lines.push(html`${countText(held.others_count)} other writes on it are open as well.`);
  return lines;
}

function Left({ of }: { of: string }) {
  if (of === '0') return 'nothing stays unexplained';
  return html`<${Amount} of=${of} signed /> stays unexplained`;
}

/** Amounts are whole numbers of any size. */
function differenceOf(a: string, b: string): string {
  return String(BigInt(a) - BigInt(b));
}
