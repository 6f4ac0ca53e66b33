/** One operation as a story: what was asked, what happened, what it means, and what can be done. */

import { type operationDetail, TOKEN_KINDS } from '../../../../resources/operations/operation.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { call, useData } from '../../kit/api.ts';
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
import { wordsOf } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';
import type { ViewProps } from '../../pages.ts';
import { evidenceWords } from './evidence-words.ts';
import { Timeline } from './timeline.ts';

type Operation = Shown<typeof operationDetail>;

export default function OperationView({ ids }: ViewProps) {
  const path = `/api/operations/${encodeURIComponent(ids[0] ?? '')}`;
  const { data, problem, reload } = useData<Operation>(path, 10_000);
  if (!data) return html`<${Pending} problem=${problem} retry=${reload} />`;
  const title = html`${wordsOf(data.kind)} <${State} of=${data.state} />`;
  return html`<${View} title=${title} lead=${html`<${Code} text=${data.id} whole />`}>
    <${Failed} problem=${problem} retry=${reload} />
    <${Actions} operation=${data} path=${path} done=${reload} />
    <div class="columns">
      <${Card} title="What was asked"><${Facts} pairs=${factsOf(data)} /><//>
      <${Card} title="What happened"><${Timeline} operation=${data} path=${path} /><//>
    </div>
    <${Card} title="Evidence">
      ${evidenceWords(data).map((text) => html`<p>${text}</p>`)}
      <details>
        <summary>All of it, as stored</summary>
        <pre>${storedText(data)}</pre>
      </details>
    <//>
  <//>`;
}

const storedText = ({ evidence, pre_image: before }: Operation) =>
  JSON.stringify({ evidence, before_the_send: before }, null, 2);

const wallet = (addr: string | null) => addr && html`<${WalletLink} addr=${addr} whole />`;

function factsOf(o: Operation): [string, unknown][] {
  const token = o.token_id === null ? null : `${o.contract_id}/${o.token_id}`;
  return [
    ['From', wallet(o.from_addr)],
    ['Operator', o.operation_no],
    ['To', wallet(o.to_addr)],
    ['Contract', token === null ? o.contract_id : null],
    ['Token', token && html`<a href=${`/tokens/${token}`}>${token}</a>`],
    ['Amount', o.amount && html`<${Amount} of=${o.amount} />`],
    ['Fee', o.fee_amount && html`<${Amount} of=${o.fee_amount} />`],
    ['Reason', o.reason_type],
    ['Reference', o.reference],
    ['Idempotency key', o.idempotency_key],
    ['Source', o.source],
    ['Number', o.tx_log_no && `${o.tx_app_no ?? 'our app'} / ${o.tx_log_no}`],
    ['Hash', o.tx_hash && html`<${Code} text=${o.tx_hash} whole />`],
    ['Outcome', wordsOf(o.outcome)],
    ['Took effect', o.effective_at && html`<${Time} at=${o.effective_at} exact />`],
    ['Known from', o.effective_basis],
    ['Waits for', o.waits_for && html`<${WaitsFor} of=${o.waits_for} />`],
    ['Expires', o.expires_at && html`<${Time} at=${o.expires_at} exact />`],
  ];
}

/** What could hold the same difference as the write. */
function WaitsFor({ of }: { of: NonNullable<Operation['waits_for']> }) {
  const link = (path: string, id: string) => html`<a href=${`${path}/${id}`}>${id}</a> `;
  return html`${of.drifts.map((id) => link('/drifts', id))}
  ${of.operations.map((id) => link('/operations', id))}`;
}

const RESOLVED = ['executed', 'not_executed', 'settled'];

/** Two owners decide; a queued operation may be cancelled. */
function Actions({
  operation,
  path,
  done,
}: {
  operation: Operation;
  path: string;
  done: () => void;
}) {
  const { state, kind, decisions } = operation;
  if (state === 'queued')
    return html`<${Card} tone="warn" title="It waits to be sent">
      <p>The operation is sent before it expires, unless it is cancelled.</p>
      <${Order}
        needs=${['gateway']}
        label="Cancel the operation"
        kind="danger"
        text="It is not sent any more. Its idempotency key stays used."
        order=${() => call('DELETE', path)}
        done=${done}
      />
    <//>`;
  const isResolved =
    RESOLVED.includes(state) || (state === 'accepted' && TOKEN_KINDS.includes(kind));
  if (state !== 'undecided' && !isResolved) return null;
  const newest = decisions.at(-1);
  const waiting = newest && !newest.approved_at ? newest : undefined;
  const approve = () =>
    call('POST', `${path}/approve`, { n: waiting?.n, outcome: waiting?.outcome });
  const propose = (outcome: string) => html`<${Order}
    needs=${DECIDE}
    label=${`Propose: ${wordsOf(outcome)}`}
    kind="quiet"
    text="Nothing changes until another owner approves. Say where the outcome can be verified."
    fields=${[REASON]}
    order=${(values: object) => call('POST', `${path}/decide`, { outcome, ...values })}
    done=${done}
  />`;
  return html`<${Card}
    tone=${state === 'undecided' ? 'bad' : 'none'}
    title=${state === 'undecided' ? 'Decide the outcome' : 'Correct the outcome'}
  >
    <p>
      ${
        state === 'undecided'
          ? 'The evidence decides nothing. Look it up at the service, then propose the outcome. ' +
            'Executed posts its amounts in the ledger, not executed posts nothing; what a wallet ' +
            'then holds beyond its ledger is recorded as a drift.'
          : 'If the service shows another outcome for certain, propose that one.'
      }
    </p>
    ${
      waiting &&
      html`<p class="notice warn">
        ${waiting.proposed_by} proposed “${wordsOf(waiting.outcome)}”: ${waiting.reason}
        <${Order}
          needs=${DECIDE}
          proposedBy=${waiting.proposed_by}
          label=${`Approve: ${wordsOf(waiting.outcome)}`}
          kind="danger"
          text="The ledger is posted accordingly, and subscribers get an event. Another owner
            than the one who proposed it approves."
          order=${approve}
          done=${done}
        />
      </p>`
    }
    <div class="actions">
      ${['undecided', 'not_executed'].includes(state) && propose('executed')}
      ${state !== 'not_executed' && propose('not_executed')}
    </div>
  <//>`;
}
