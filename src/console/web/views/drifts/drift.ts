/** One drift: what happened, why it is believed, who looks into it, and how it ends. */

import type { driftDetail } from '../../../../resources/ledger/drift.ts';
import {
  CAUSE_WORDS,
  consequenceOf,
  isUnclosed,
  operatorTexts,
} from '../../../../resources/ledger/drift-words.ts';
import type { wallet } from '../../../../resources/ledger/wallet.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { call, type Page, useData, withQuery } from '../../kit/api.ts';
import { DECIDE, Order, REASON } from '../../kit/dialog.ts';
import {
  Amount,
  Card,
  Code,
  Facts,
  Failed,
  Pending,
  State,
  Time,
  View,
  WalletLink,
} from '../../kit/elements.ts';
import { instantText, wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import type { ViewProps } from '../../pages.ts';
import type { Operation } from '../operations/operations.ts';
import { Approve, Assign, LinkSearch, Propose, waitingOf } from './drift-orders.ts';
import {
  actionText,
  type Drift,
  evidenceTexts,
  ProposalText,
  readersTexts,
  Sentence,
} from './drift-words.ts';
import { Mapping } from './operator-mapping.ts';

type DriftDetail = Shown<typeof driftDetail>;
type Wallet = Shown<typeof wallet>;

const EVERY_MS = 10_000;
/** Drifts and open writes of a wallet that are named beside a drift. */
const OTHERS_MAX = 20;

export default function DriftView({ ids }: ViewProps) {
  const path = `/api/drifts/${encodeURIComponent(ids[0] ?? '')}`;
  const { data, problem, reload } = useData<DriftDetail>(path, 10_000);
  if (!data) return html`<${Pending} problem=${problem} retry=${reload} />`;
  return html`<${View}
    title=${html`Drift <${State} of=${data.state} />`}
    lead=${html`<${Sentence} of=${data} />`}
    actions=${isUnclosed(data) && html`<${Assign} drifts=${[data]} done=${reload} />`}
  >
    <${Failed} problem=${problem} retry=${reload} />
    ${isUnclosed(data) && html`<${Shares} drift=${data} />`}
    <${Decide} drift=${data} path=${path} done=${reload} />
    <div class="columns">
      <${Card} title="What is known"><${Facts} pairs=${factsOf(data)} /><//>
      <${Card} title="Why it is a drift">
        ${evidenceTexts(data).map((text) => html`<p>${text}</p>`)}
        <details>
          <summary>The evidence as stored</summary>
          <pre>${JSON.stringify(data.evidence, null, 2)}</pre>
        </details>
      <//>
    </div>
    <${Card} title="What happened">
      <ol class="timeline">
        ${data.actions.map(
          ({ action, at, by, detail }) => html`<li>
            <${Time} at=${at} exact />
            <span>
              <b>${by === 'reconciler' ? 'Tallyhook' : by}</b> ${actionText(action, detail)}
            </span>
          </li>`,
        )}
      </ol>
    <//>
    ${
      (isUnclosed(data) || data.state === 'booked') &&
      html`<${Card} title="Link an operation">
        <p class="muted">
          If one of our operations made this change, propose to link it instead of booking.
        </p>
        <${LinkSearch} drift=${data} done=${reload} />
      <//>`
    }
  <//>`;
}

function factsOf(drift: DriftDetail): [string, unknown][] {
  const { amount, amount_min: min, amount_max: max } = drift;
  return [
    ['Wallet', html`<${WalletLink} addr=${drift.addr} whole />`],
    [
      'Difference',
      amount === null
        ? html`<${Amount} of=${min} signed /> to <${Amount} of=${max} signed />`
        : html`<${Amount} of=${amount} signed />`,
    ],
    ['Happened after', drift.window_from && instantText(drift.window_from)],
    ['Happened before', instantText(drift.window_to)],
    ['Confirmed', html`<${Time} at=${drift.opened_at} exact />`],
    ['Ended', drift.closed_at && html`<${Time} at=${drift.closed_at} exact />`],
    ['Probable cause', CAUSE_WORDS[drift.cause][0]],
    ['Assigned to', drift.assignee ?? 'no one'],
    ['Id', html`<${Code} text=${drift.id} />`],
  ];
}

/** Which part of what the wallet differs by is this drift, and what else there is. */
function Shares({ drift: { id, addr, amount } }: { drift: DriftDetail }) {
  const of = { addr, limit: String(OTHERS_MAX) };
  const wallet = useData<Wallet>(`/api/wallets/${addr}`, EVERY_MS).data;
  const drifts = useData<Page<Drift>>(
    withQuery('/api/drifts', { ...of, state: 'unclosed' }),
    EVERY_MS,
  ).data;
  const writesOf = (state: string) =>
    useData<Page<Operation>>(withQuery('/api/operations', { ...of, state }), EVERY_MS).data;
  const [undecided, unknown] = [writesOf('undecided'), writesOf('unknown')];
  if (!wallet || !drifts || !undecided || !unknown || wallet.observed_balance === null) return null;
  const { observed_balance: observed, ledger_balance: now } = wallet;
  // What was posted since is no part of the difference.
  const ledger = wallet.ledger_at_observation ?? now;
  const others = drifts.data.filter((other) => other.id !== id);
  const writes = [...undecided.data, ...unknown.data];
  const signed = (of: string | null) => html`<${Amount} of=${of} signed />`;
  return html`<${Card}
    title="What the wallet differs by"
    tone=${writes.length > 0 ? 'warn' : 'none'}
  >
    <${Facts}
      pairs=${[
        ['Service', html`<${Amount} of=${observed} /> <${Time} at=${wallet.observed_at} />`],
        ['Ledger at that time', html`<${Amount} of=${ledger} />`],
        ['Difference', signed(String(BigInt(observed) - BigInt(ledger)))],
        ['This drift', amount === null ? 'not exact yet' : signed(amount)],
        ...others.map((other): [string, unknown] => [
          'Another drift',
          html`<a href=${`/drifts/${other.id}`}>
            ${other.amount === null ? 'not exact yet' : signed(other.amount)}
          </a>`,
        ]),
        [
          'More drifts',
          drifts.next_cursor && html`<a href=${`/drifts?addr=${addr}`}>all of the wallet</a>`,
        ],
        ['Not yet posted', wallet.unposted === '0' ? null : signed(wallet.unposted)],
        ['In flight', wallet.in_flight === '0' ? null : signed(wallet.in_flight)],
      ]}
    />
    ${
      writes.length > 0 &&
      html`<p class="notice warn">
        Before you book: the outcome of these writes of the wallet is not known, and one of them may
        be the change.${' '}
        ${writes.map(
          (one) => html`<a href=${`/operations/${one.id}`}>
            ${wordsOf(one.kind)} <${Amount} of=${one.amount} /></a
          >${' '}`,
        )}
      </p>`
    }
  <//>`;
}

interface DecideProps {
  drift: DriftDetail;
  path: string;
  done: () => void;
}

/** What a person can do now: propose, or approve what another owner proposed. */
function Decide({ drift, path, done }: DecideProps) {
  const waiting = waitingOf(drift);
  if (waiting) {
    const { kind, operation_id: operation, reason, proposed_by: by, proposed_at: at } = waiting;
    const given = waiting.approvals.map(({ owner }) => owner);
    return html`<${Card} tone="warn" title="A proposal waits for another owner">
      <p>
        <b>${by}</b> proposed <${Time} at=${at} /> to${' '}
        <${ProposalText} kind=${kind} operation=${operation} />: “${reason}”
      </p>
      <p class="muted">${consequenceOf(kind, drift.amount, readersTexts())}</p>
      ${
        waiting.approvals_needed > 1 &&
        html`<p class="muted">
          It needs ${waiting.approvals_needed} approvals; given by: ${given.join(', ') || 'no one'}.
        </p>`
      }
      <div class="actions">
        <${Approve} drifts=${[drift]} done=${done} />
        ${kind !== 'book' && html`<${Propose} drifts=${[drift]} kind="book" done=${done} />`}
        ${kind !== 'dismiss' && html`<${Propose} drifts=${[drift]} kind="dismiss" done=${done} />`}
      </div>
    <//>`;
  }
  if (!isUnclosed(drift)) return null;
  return html`<${Card} tone="bad" title="Propose how it ends">
    ${operatorTexts(drift).map((text) => html`<p class="notice warn">${text}</p>`)}
    ${
      drift.operator &&
      html`<${Mapping} no=${drift.operator.operator_no} addr=${drift.addr} done=${done} />`
    }
    <p>
      A proposal changes nothing. The owner of another key approves it; then the ledger follows.
    </p>
    <div class="actions">
      <${Prepared} drift=${drift} path=${path} done=${done} />
      ${drift.amount !== null && html`<${Propose} drifts=${[drift]} kind="book" done=${done} />`}
      <${Propose} drifts=${[drift]} kind="dismiss" done=${done} />
    </div>
  <//>`;
}

/** A proposal that fits the cause; that of booking has a button of its own. */
function Prepared({ drift, path, done }: DecideProps) {
  const { prepared } = drift;
  if (prepared?.proposal !== 'link') return null;
  const { operation_id: operation } = prepared;
  const isOther = prepared.drift_id !== drift.id;
  return html`<${Order}
    needs=${DECIDE}
    label="Propose what fits the cause"
    text=${html`Proposes to <${ProposalText} kind="link" operation=${operation} />${
      isOther && ', for the earlier drift of this wallet that was booked'
    }. Nothing changes until another owner approves.`}
    fields=${[REASON]}
    order=${(values: object) => call('POST', `${path}/propose`, values)}
    done=${done}
  />`;
}
