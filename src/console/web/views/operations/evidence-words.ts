/** In words: why an operation counts as executed or not, by the evidence that is stored with it. */

import { FAULT_WORDS } from '../../../../resources/faults.ts';
import { Amount, Time, WalletLink } from '../../kit/elements.ts';
import { wordsOf } from '../../kit/format.ts';
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
interface Evidence {
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

/** The cause of a transition; that of a resolution names the basis of its evidence. */
export function causeWords(cause: string): unknown {
  const basis = /^evidence: (\w+)$/.exec(cause)?.[1];
  if (basis && BASES[basis]) return BASES[basis];
  const [before, addr, after] = cause.split(/\b([0-9a-z]{42})\b/i);
  return addr
    ? html`${before}<${WalletLink} addr=${addr} />${after}`
    : (FAULT_WORDS[cause] ?? cause);
}

export function evidenceWords(state: string, stored: unknown): unknown[] {
  const {
    basis = '',
    first,
    second,
    indicated,
    explanations,
    ...found
  } = (stored ?? {}) as Evidence;
  const drifts = [found.drift, found.drifts].flat().filter((id) => id !== undefined);
  const lines: unknown[] = [
    BASES[basis] && `How it is known: ${BASES[basis]}.`,
    ...[first, second].flatMap((shown) => (shown ? shownWords(shown) : [])),
    ...drifts.map((id) => html`It explains the drift <a href=${`/drifts/${id}`}>${id}</a>.`),
    indicated && `What was observed indicates: ${wordsOf(indicated)}.`,
    explanations && `${explanations}.`,
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
