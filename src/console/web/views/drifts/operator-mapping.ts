/** Two owners map a wallet to the operator that pays from it. */
import type { operatorDetail } from '../../../../resources/ledger/operator.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { call, useData } from '../../kit/api.ts';
import { DECIDE, Order, REASON } from '../../kit/dialog.ts';
import { Time, WalletLink } from '../../kit/elements.ts';
import { countText } from '../../kit/format.ts';
import { html } from '../../kit/html.ts';

type Operator = Shown<typeof operatorDetail>;

const EVERY_MS = 10_000;

/** Proposes the mapping, or approves or rejects what was proposed. */
export function Mapping({ no, addr, done }: { no: string; addr: string; done: () => void }) {
  const path = `/api/operators/${no}`;
  const { data, reload } = useData<Operator>(path, EVERY_MS);
  if (!data) return null;
  const { proposal, effect } = data;
  const give = (act: string, values: object) => call('POST', `${path}/${act}`, values);
  const after = () => {
    reload();
    done();
  };
  if (data.addr !== null)
    return html`<p>
      Operator ${no} pays from <${WalletLink} addr=${data.addr} /> now. What this explains closes
      with an observation of the wallet.
    </p>`;
  if (proposal?.state !== 'proposed')
    return html`${
      proposal?.state === 'rejected' &&
      html`<p>
          <b>${proposal.proposed_by}</b> proposed to map operator ${no} to${' '}
          <${WalletLink} addr=${proposal.addr} />; ${proposal.rejected_by} rejected that:
          “${proposal.reject_reason}”
        </p>`
    }
      <div class="actions">
      <${Order}
        needs=${DECIDE}
        label=${`Map this wallet to operator ${no}`}
        text="Nothing changes until another owner approves. Then what the operator paid since the
          opening of the wallet is posted from it."
        fields=${[REASON]}
        order=${(values: object) => give('propose', { addr, ...values })}
        done=${after}
      />
    </div>`;
  const { n, proposed_by: by } = proposal;
  return html`<p>
      <b>${by}</b> proposed <${Time} at=${proposal.proposed_at} /> to map operator ${no} to
      ${' '}<${WalletLink} addr=${proposal.addr} />, which waits for another owner:
      “${proposal.reason}”
    </p>
    <div class="actions">
      <${Order}
        needs=${DECIDE}
        label="Approve the mapping"
        kind="danger"
        text=${`${effectText(effect)} The owner who proposed it cannot approve it.`}
        proposedBy=${by}
        order=${() => give('approve', { n })}
        done=${after}
      />
      <${Order}
        needs=${DECIDE}
        label="Reject the mapping"
        kind="quiet"
        text="Nothing changes. Another wallet may be proposed then."
        fields=${[REASON]}
        order=${(values: object) => give('reject', { n, ...values })}
        done=${after}
      />
    </div>`;
}

/** What an approval does, in numbers. */
function effectText(effect: Operator['effect']): string {
  const [gives, drifts] = [effect?.gives ?? 0, effect?.drifts.length ?? 0].map(countText);
  return (
    `Posted gives that are posted again, from the wallet: ${gives}. Open drifts that they ` +
    `explain: ${drifts}. It cannot be taken back.`
  );
}
