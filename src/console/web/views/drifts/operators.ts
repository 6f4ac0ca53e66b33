/** The wallets that operators pay from, and what is proposed about them. */
import { operator } from '../../../../resources/ledger/operator.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { useList, withQuery } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { Card, Chip, ListTable, State, View, WalletLink } from '../../kit/elements.ts';
import { html } from '../../kit/html.ts';
import { setQuery, usePlace } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';
import { Mapping } from './operator-mapping.ts';

type Operator = Shown<typeof operator>;

const SOURCE_WORDS = { setting: 'the settings', mapping: 'two owners' };

export default function Operators(_: ViewProps) {
  const proposed = usePlace().query.get('proposed') ?? '';
  const path = withQuery('/api/operators', { limit: '50', proposed });
  const list = useList<Operator>(path, ({ operator_no: no }) => no);
  const waiting = (list.rows ?? []).filter(({ proposal }) => proposal?.state === 'proposed');
  return html`<${View}
    title="Operators"
    lead="Gives of an operator are posted from its wallet, which the settings name or two owners
      map: one proposes it on the page of a drift of the wallet, another approves it here."
  >
    ${
      proposed &&
      html`<${Chip} text="Only what waits" remove=${() => setQuery({ proposed: '' })} />`
    }
    ${waiting.map(
      ({
        operator_no: no,
        proposal,
      }) => html`<${Card} key=${no} tone="warn" title=${`Operator ${no}`}>
        <${Mapping} no=${no} addr=${proposal?.addr} done=${list.reload} />
      <//>`,
    )}
    <${Card}>
      <${ListTable}
        list=${list}
        file=${operator}
        columns=${COLUMNS}
        keyOf=${({ operator_no: no }: Operator) => no}
        empty=${proposed ? 'No proposal waits.' : 'No operator has a wallet or a proposal for one.'}
      />
    <//>
  <//>`;
}

const COLUMNS = columnsFor(operator, {
  addr: {
    of: ({ operator_no: no, addr }) =>
      addr === null ? `account operator:${no}` : html`<${WalletLink} addr=${addr} />`,
  },
  source: { of: ({ source }) => (source === null ? '' : SOURCE_WORDS[source]) },
}).concat({
  head: 'Newest proposal',
  of: ({ proposal }) =>
    proposal &&
    html`<span>
      <${State} of=${proposal.state} />${' '}
      <${WalletLink} addr=${proposal.addr} />, by ${proposal.proposed_by}
    </span>`,
});
