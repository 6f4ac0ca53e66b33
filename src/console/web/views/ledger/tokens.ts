/** Tokens of a contract as last observed, and the way to a contract. */

import { token } from '../../../../resources/ledger/token.ts';
import type { Shown } from '../../../../resources/resource.ts';
import { type Page, useData, useList } from '../../kit/api.ts';
import { columnsFor } from '../../kit/columns.ts';
import { valuesOf } from '../../kit/dialog.ts';
import { Card, ListTable, Pill, View } from '../../kit/elements.ts';
import { html } from '../../kit/html.ts';
import { go } from '../../kit/router.ts';
import type { ViewProps } from '../../pages.ts';

type Token = Shown<typeof token>;

const STATUSES = ['pending', 'complete', 'in progress', 'failed'];

export function TokenState({ of: { presence, status } }: { of: Token }) {
  if (presence === 'absent') return html`<${Pill} tone="bad">not found any more<//>`;
  const text = STATUSES[status ?? -1] ?? 'present';
  return html`<${Pill} tone=${text === 'failed' ? 'bad' : 'none'}>${text}<//>`;
}

/** Without a contract: asks for one. */
export default function Tokens(_: ViewProps) {
  const watches = useData<Page<{ contract_id: string | null }>>('/api/watches?limit=500');
  const watched = (watches.data?.data ?? []).flatMap(({ contract_id: id }) => id ?? []);
  const find = (event: Event) => {
    const { contract = '', token = '' } = valuesOf(event);
    go(`/tokens/${[contract, token].filter(Boolean).map(encodeURIComponent).join('/')}`);
  };
  return html`<${View} title="Tokens" lead="Tokens are listed by their contract.">
    <${Card}>
      <form class="filters" onSubmit=${find} role="search">
        <label class="field">
          <span>Contract</span>
          <input name="contract" inputmode="numeric" pattern="[0-9]+" required />
        </label>
        <label class="field">
          <span>Token (optional)</span>
          <input name="token" inputmode="numeric" pattern="[0-9]+" />
        </label>
        <button type="submit">Open</button>
      </form>
    <//>
    ${
      watches.data &&
      watched.length === 0 &&
      html`<p class="empty">
        No contract is watched. <a href="/watches">Watch one</a> to have all of its tokens listed;
        tokens that writes touch are found above.
      </p>`
    }
    ${
      watched.length > 0 &&
      html`<${Card} title="Watched contracts">
        <div class="actions">
          ${[...new Set(watched)].map(
            (id) => html`<a class="button quiet" href=${`/tokens/${id}`}>contract ${id}</a>`,
          )}
        </div>
      <//>`
    }
  <//>`;
}

export function Contract({ id }: { id: string }) {
  const list = useList<Token>(`/api/tokens/${encodeURIComponent(id)}?limit=100`);
  return html`<${View}
    title=${`Tokens of contract ${id}`}
    lead="As last observed, by token id."
  >
    <${Card}>
      <${ListTable}
        list=${list}
        columns=${COLUMNS}
        keyOf=${({ token_id: id }: Token) => id}
        empty="No token of this contract was observed. Watch the contract to scan all of them."
      />
    <//>
  <//>`;
}

const COLUMNS = columnsFor(token, {
  token_id: {
    of: ({ contract_id: contract, token_id: id }) =>
      html`<a href=${`/tokens/${contract}/${id}`}>${contract}/${id}</a>`,
  },
  status: { number: false, of: (row) => html`<${TokenState} of=${row} />` },
  locked: { number: false, of: ({ locked }) => (locked ? 'locked' : undefined) },
});
